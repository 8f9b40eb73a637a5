"""Trajectories as bags, for replay."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin

from humanoid_control.evaluation.bag import BagWriter, typestore
from humanoid_control.files import whole_file
from humanoid_control.retargeting import JointTrajectory, WholeBodyTrajectory
from humanoid_control.robots import Robot


def write_joint_commands(path: Path, trajectory: JointTrajectory, robot: Robot | None = None) -> None:
    """Write a trajectory as one MCAP file with the topic `joint_commands`, atomically.

    For a whole body, the bag also holds `joint_states`, the root on `odom` and `/tf`, and `robot_description`.

    Args:
        robot: required for a whole body.

    Raises:
        ConfigError: if the file cannot be written.
    """
    whole = trajectory if isinstance(trajectory, WholeBodyTrajectory) and robot is not None else None
    with whole_file(path) as part:
        folder = part.with_suffix("")
        bag = BagWriter(folder)
        messages = _Messages(bag, ["/joint_commands", *(["/joint_states", "/odom", "/tf"] if whole else [])])
        if robot is not None and whole:
            bag.add_topic("/robot_description", "std_msgs/msg/String", latched=True)
            messages.text("/robot_description", robot.urdf)
        for k, (q, v) in enumerate(zip(trajectory.positions, trajectory.velocities, strict=True)):
            ns = round(1e9 * k / trajectory.rate)
            for topic in ("/joint_commands", "/joint_states")[: 2 if whole else 1]:
                messages.joints(topic, ns, trajectory.joint_names, q, v)
            if robot is not None and whole:
                messages.root(ns, whole, k, robot.root_link)
        bag.close()
        shutil.move(folder / f"{folder.name}.mcap", part)


class _Messages:
    """Writer of joints and roots of a trajectory to a bag."""

    TYPES: ClassVar = {
        "/joint_commands": "sensor_msgs/msg/JointState",
        "/joint_states": "sensor_msgs/msg/JointState",
        "/odom": "nav_msgs/msg/Odometry",
        "/tf": "tf2_msgs/msg/TFMessage",
    }

    def __init__(self, bag: BagWriter, topics: Iterable[str]) -> None:
        self.bag, self.store = bag, typestore()
        for topic in topics:
            bag.add_topic(topic, self.TYPES[topic])

    def _new(self, kind: str, **fields: Any) -> Any:
        """Create a message, e.g. of 'geometry_msgs/Vector3'."""
        return self.store.types[kind.replace("/", "/msg/")](**fields)

    def _write(self, topic: str, ns: int, message: Any, kind: str) -> None:
        self.bag.write(topic, ns, bytes(self.store.serialize_cdr(message, kind)))

    def _header(self, ns: int, frame: str = "") -> Any:
        stamp = self._new("builtin_interfaces/Time", sec=ns // 10**9, nanosec=ns % 10**9)
        return self._new("std_msgs/Header", stamp=stamp, frame_id=frame)

    def _vector(self, xyz: np.ndarray, kind: str = "geometry_msgs/Vector3") -> Any:
        return self._new(kind, **dict(zip("xyz", map(float, xyz), strict=True)))

    def text(self, topic: str, text: str) -> None:
        self._write(topic, 0, self._new("std_msgs/String", data=text), "std_msgs/msg/String")

    def joints(self, topic: str, ns: int, names: Iterable[str], q: np.ndarray, v: np.ndarray) -> None:
        """Write angles (n,) [rad] and velocities (n,) [rad/s]."""
        message = self._new("sensor_msgs/JointState", header=self._header(ns), name=list(names), position=q,
                            velocity=v, effort=np.zeros(0))  # fmt: skip
        self._write(topic, ns, message, self.TYPES[topic])

    def root(self, ns: int, trajectory: WholeBodyTrajectory, k: int, link: str) -> None:
        """Write pose and twist of the root link at frame k: twist in its own frame, by forward differences."""
        p, x = trajectory.root_position, trajectory.root_quaternion
        last = min(k + 1, len(p) - 1)
        R, R_next = (pin.Quaternion(x[i]).toRotationMatrix() for i in (k, last))
        slide, turn = R.T @ (p[last] - p[k]) * trajectory.rate, pin.log3(R.T @ R_next) * trajectory.rate
        place = self._vector(p[k], "geometry_msgs/Point")
        turned = self._new("geometry_msgs/Quaternion", **dict(zip("xyzw", map(float, x[k]), strict=True)))
        pose = self._new("geometry_msgs/Pose", position=place, orientation=turned)
        twist = self._new("geometry_msgs/Twist", linear=self._vector(slide), angular=self._vector(turn))
        message = self._new(
            "nav_msgs/Odometry",
            header=self._header(ns, "odom"),
            child_frame_id=link,
            pose=self._new("geometry_msgs/PoseWithCovariance", pose=pose, covariance=np.zeros(36)),
            twist=self._new("geometry_msgs/TwistWithCovariance", twist=twist, covariance=np.zeros(36)),
        )
        self._write("/odom", ns, message, self.TYPES["/odom"])
        moved = self._new("geometry_msgs/Transform", translation=self._vector(p[k]), rotation=turned)
        transform = self._new("geometry_msgs/TransformStamped", header=self._header(ns, "odom"), child_frame_id=link,
                              transform=moved)  # fmt: skip
        self._write("/tf", ns, self._new("tf2_msgs/TFMessage", transforms=[transform]), self.TYPES["/tf"])
