"""Wrenches that act on a link for a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class Push:
    """A wrench (6,) [force N, torque N m] in world axes, at a point (3,) of the link's frame [m], until a time [s]."""

    link: str
    point: np.ndarray
    wrench: np.ndarray
    until: float


class Pushes:
    """The pushes that are under way."""

    def __init__(self, robot: Robot) -> None:
        self._links = {f.name: k for k, f in enumerate(robot.model.frames) if f.type == pin.FrameType.BODY}
        self._robot_name = robot.name
        self._list: list[Push] = []

    def frame(self, link: str) -> int:
        """Frame id of a link.

        Raises:
            UnknownNameError: with the nearest names.
        """
        if link not in self._links:
            raise UnknownNameError("link", link, self._links, hint=f"(robot {self._robot_name})")
        return self._links[link]

    def add(self, time: float, link: str, wrench: np.ndarray, duration: float, point: np.ndarray | None = None) -> None:
        """Begin a push; see `Engine.push`."""
        self.frame(link)  # refuses one that is unknown
        wrench = np.array(wrench, dtype=float)
        if wrench.shape != (6,) or not np.isfinite(wrench).all():
            raise ConfigError(f"a push on {link} must be six numbers (force, torque), got {wrench.tolist()}")
        if not 0 < duration < np.inf:
            raise ConfigError(f"a push must last longer than 0 s, got {duration:g}")
        at = np.zeros(3) if point is None else np.array(point, dtype=float)
        self._list.append(Push(link, at, wrench, time + duration))

    def clear(self) -> None:
        """End all."""
        self._list.clear()

    def __bool__(self) -> bool:
        return bool(self._list)

    def active(self, time: float) -> Iterator[Push]:
        """Those that still act; the others are forgotten."""
        self._list = [p for p in self._list if time < p.until - 1e-9]
        return iter(self._list)
