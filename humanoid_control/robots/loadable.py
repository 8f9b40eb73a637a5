"""Check of a robot before a stack starts, in a child process that loads the libraries."""

from __future__ import annotations

from humanoid_control.in_child import in_child


def check_robot(name_or_path: str) -> None:
    """Check in a child process that a robot can be loaded.

    Raises:
        UnknownNameError: as `load_robot`.
        RobotError: as `load_robot`.
    """
    in_child(_load, name_or_path)


def _load(name_or_path: str) -> None:
    from humanoid_control.robots import load_robot

    load_robot(name_or_path)
