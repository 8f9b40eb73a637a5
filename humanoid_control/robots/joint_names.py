"""What a person may call a joint: its name, its meaning, either without the side, or the first words of several."""

from __future__ import annotations

from humanoid_control.errors import UnknownNameError
from humanoid_control.robots.robot import Robot


def joints_named(robot: Robot, name: str) -> tuple[str, ...]:
    """The joints that a name stands for: a joint, a meaning, either without its side, or the first words of several.

    Raises:
        UnknownNameError: none, with the nearest names.
    """
    for names in ((name,), (f"l_{name}", f"r_{name}")):
        exact = tuple(j for n in names if (j := robot.joint_for(n)) is not None)
        if exact:
            return exact
    begins = tuple(f"{side}{name}_" for side in ("", "l_", "r_"))
    found = {joint: None for meaning, joint in robot.meanings.items() if meaning.startswith(begins)}
    if not found:
        bare = {m.removeprefix("l_").removeprefix("r_") for m in robot.meanings}
        raise UnknownNameError("joint", name, bare | set(robot.meanings), hint=f"(robot {robot.name})")
    return tuple(found)
