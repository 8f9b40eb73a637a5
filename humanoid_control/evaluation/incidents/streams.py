"""Streams of a recorded run as arrays: joints, diagnostics, power, contacts, base poses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.evaluation.recorded_run import nanoseconds
from humanoid_control.kinematics import NodeStatus, node_statuses

JOINTS = ("joint_commands", "joint_states", "estimated_joint_states", "applied_commands", "reference_joint_states")
POSES = ("odom", "ground_truth/odometry")
TEXTS = ("hardware_state", "walking/state", "performing/state")
CONTACTS = ("contact/l_foot", "contact/r_foot")
OTHERS = ("battery", "diagnostics", "simulator/paused")
NAMES = (*JOINTS, *POSES, *TEXTS, *CONTACTS, *OTHERS)


@dataclass
class JointStream:
    """Messages of a joint topic; joints that a message omits are NaN.

    Attributes:
        received: (T,) arrival at the recorder [s].
        stamps: (T,) sender stamps from the first on [s].
        given: (T, n) whether a position was sent.
    """

    received: np.ndarray
    stamps: np.ndarray
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    given: np.ndarray

    def columns(self, names: Iterable[str]) -> list[int]:
        """Return the columns of joints."""
        index = {n: k for k, n in enumerate(self.names)}
        return [index[n] for n in names]


@dataclass
class RobotStreams:
    """Recorded data of a robot (namespace).

    Attributes:
        poses: topic -> (received (T,), rows (T, 13): position, quaternion x y z w, twist).
        values: topic -> (time [s], text, bool or number).
    """

    joints: dict[str, JointStream] = field(default_factory=dict)
    poses: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    values: dict[str, list[tuple[float, Any]]] = field(default_factory=dict)


@dataclass
class RunStreams:
    """Recorded run.

    Attributes:
        duration: from first to last message [s].
        robots: namespace ('' or '/left') -> streams.
        statuses: node -> (time [s], status).
        hardware: robot named by the diagnostics; empty: none.
    """

    path: Path
    duration: float
    robots: dict[str, RobotStreams]
    statuses: dict[str, list[tuple[float, NodeStatus]]]
    hardware: str


def split_topic(topic: str) -> tuple[str, str]:
    """Return namespace and name of a known topic, else ('', '')."""
    for name in NAMES:
        if topic.endswith(f"/{name}"):
            return topic[: -len(name) - 1], name
    return "", ""


def read_streams(path: Path) -> RunStreams:
    """Read a bag directory or .mcap file.

    Raises:
        ConfigError: if the bag is missing, damaged, or has no relevant topic.
    """
    bag = BagReader(path)
    known = {t: split_topic(t) for t, (_, count) in bag.topics.items() if count and split_topic(t)[1]}
    if not known:
        bag.close()
        raise ConfigError(f"{path} contains none of {', '.join(NAMES)}: nothing to check")
    raw: dict[str, list[tuple[int, Any]]] = {t: [] for t in known}
    statuses: dict[str, list[tuple[float, NodeStatus]]] = {}
    first, hardware = -1, ""
    for topic, ns, message in bag.messages(set(known)):
        first = ns if first < 0 else first
        if known[topic][1] == "diagnostics":
            for name, status in node_statuses(message).items():
                statuses.setdefault(name, []).append((1e-9 * (ns - first), status))
            hardware = hardware or next((str(s.hardware_id) for s in message.status if s.hardware_id), "")
        else:
            raw[topic].append((ns - first, message))
    duration = bag.duration
    bag.close()
    robots: dict[str, RobotStreams] = {}
    for topic, rows in raw.items():
        space, name = known[topic]
        if rows:
            _take(robots.setdefault(space, RobotStreams()), name, rows)
    return RunStreams(path, duration, robots, statuses, hardware)


def _take(streams: RobotStreams, name: str, rows: list[tuple[int, Any]]) -> None:
    if name in JOINTS:
        streams.joints[name] = _joints(rows)
    elif name in POSES:
        received = 1e-9 * np.array([ns for ns, _ in rows])
        streams.poses[name] = received, np.array([_pose(m) for _, m in rows])
    else:
        value = {"battery": lambda m: float(m.voltage)}.get(name, lambda m: m.data)
        streams.values[name] = [(1e-9 * ns, value(m)) for ns, m in rows]


def _joints(rows: list[tuple[int, Any]]) -> JointStream:
    names = tuple(dict.fromkeys(n for _, m in rows for n in m.name))
    index = {n: k for k, n in enumerate(names)}
    values = np.full((2, len(rows), len(names)), np.nan)
    given = np.zeros((len(rows), len(names)), dtype=bool)
    for k, (_, m) in enumerate(rows):
        columns = [index[n] for n in m.name]
        for field_index, sent in enumerate((m.position, m.velocity)):
            if len(sent) == len(columns):
                values[field_index, k, columns] = sent
        given[k, columns] = len(m.position) == len(columns)
    stamps = np.array([nanoseconds(m.header.stamp) for _, m in rows], dtype=np.int64)
    received = 1e-9 * np.array([ns for ns, _ in rows])
    return JointStream(received, 1e-9 * (stamps - stamps[0]), names, values[0], values[1], given)


def _pose(m: Any) -> list[float]:
    p, o = m.pose.pose.position, m.pose.pose.orientation
    v, w = m.twist.twist.linear, m.twist.twist.angular
    return [p.x, p.y, p.z, o.x, o.y, o.z, o.w, v.x, v.y, v.z, w.x, w.y, w.z]
