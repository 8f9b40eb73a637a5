"""The newest of everything the viewer has heard, turned from messages into numbers when it is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot


class ViewState:
    """Newest message of each kind. Messages are only kept; the work is done at the drawing rate.

    Attributes:
        joints: (n,) [rad], NaN until heard.
        X_world_root: pose of the root link where odometry gives it, else None.
        targets: target name -> (x, y, z) [m].
        dancer: (2 B, 3) ends of the bones [m].
        markers: topic -> its newest markers; None where nothing is new.
        clip_time: [s], or None.
        nodes: rows for the panel.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._joints: Any = None
        self._targets: Any = None
        self._dancer: Any = None
        self._odometry: Any = None
        self.markers: dict[str, list[Any] | None] = {}
        self.clip_time: float | None = None
        self.nodes: dict[str, tuple[str, int, str, dict[str, str]]] = {}
        self.joints = np.full(robot.n, np.nan)

    def on_joints(self, message: Any) -> None:
        self._joints = message

    def on_targets(self, message: Any) -> None:
        self._targets = message

    def on_dancer(self, message: Any) -> None:
        self._dancer = message

    def on_odometry(self, message: Any) -> None:
        self._odometry = message

    def on_clip_time(self, message: Any) -> None:
        self.clip_time = float(message.data)

    def on_diagnostics(self, message: Any) -> None:
        for s in message.status:
            level = s.level[0] if isinstance(s.level, bytes) else int(s.level)
            self.nodes[s.name] = (s.name.strip("/"), level, s.message, {v.key: v.value for v in s.values})

    def take_joints(self) -> bool:
        """Read the newest joint states; whether every joint is known."""
        m = self._joints
        if m is not None and len(m.position) == len(m.name):
            theirs, ours = self.robot.order_of(m.name)
            self.joints[ours] = np.asarray(m.position)[theirs]
        return bool(np.isfinite(self.joints).all())

    def take_targets(self) -> dict[str, tuple[float, float, float]]:
        """The newest targets, each once."""
        m, self._targets = self._targets, None
        if m is None:
            return {}
        positions = {
            k.ns: (k.pose.position.x, k.pose.position.y, k.pose.position.z) for k in m.markers if k.action == 0
        }
        return {name: p for name, p in positions.items() if np.isfinite(p).all()}

    def take_markers(self, topic: str) -> list[Any] | None:
        """The newest markers of a topic, once."""
        markers, self.markers[topic] = self.markers.get(topic), None
        return markers

    def take_dancer(self) -> np.ndarray:
        """The newest figure of the dancer (2 B, 3); empty when nothing is new."""
        m, self._dancer = self._dancer, None
        points = m.markers[0].points if m is not None and m.markers else []
        return np.array([[p.x, p.y, p.z] for p in points]).reshape(-1, 3)

    def root_pose(self) -> pin.SE3 | None:
        """Pose of the root link from odometry; None without."""
        if self._odometry is None:
            return None
        p, o = self._odometry.pose.pose.position, self._odometry.pose.pose.orientation
        return pin.XYZQUATToSE3(np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w]))
