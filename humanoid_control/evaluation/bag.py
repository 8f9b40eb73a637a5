"""Bags: MCAP files that rosbag2 tools and Foxglove open, written and read with the raw bytes of the messages."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pinocchio as pin
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader, StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from humanoid_control.documents import read_yaml
from humanoid_control.errors import ConfigError, HumanoidError, first_line
from humanoid_control.files import whole_file
from humanoid_control.retargeting import JointTrajectory, WholeBodyTrajectory
from humanoid_control.robots import Robot

VERSION: Literal[9] = 9


@cache
def typestore() -> Typestore:
    """Message definitions of a current ROS 2 release; made once, which takes a tenth of a second."""
    return get_typestore(Stores.ROS2_KILTED)


class BagWriter:
    """Writes serialized messages to `<directory>/<name>.mcap`, with the metadata file that rosbag2 expects."""

    def __init__(self, directory: Path) -> None:
        """Open a new bag.

        Raises:
            ConfigError: the directory exists already, or cannot be written.
        """
        self._types = typestore()
        try:
            self._writer = Writer(directory, version=VERSION, storage_plugin=StoragePlugin.MCAP)
            self._writer.open()
        except (WriterError, OSError) as e:
            raise ConfigError(f"cannot write the bag {directory}: {e}") from None
        self.directory = directory
        self._connections: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def add_topic(self, topic: str, type_name: str, latched: bool = False) -> None:
        """Announce a topic, type as 'sensor_msgs/msg/JointState'."""
        qos = [_latched_qos()] if latched else []
        self._connections[topic] = self._writer.add_connection(
            topic, type_name, typestore=self._types, offered_qos_profiles=qos
        )
        self.counts[topic] = 0

    def write(self, topic: str, time_ns: int, data: bytes) -> None:
        """Append a serialized message."""
        self._writer.write(self._connections[topic], time_ns, data)
        self.counts[topic] += 1

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def _latched_qos() -> Qos:
    forever = QosTime(sec=9223372036, nsec=854775807)
    return Qos(
        QosHistory.KEEP_LAST,
        1,
        QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL,
        forever,
        forever,
        QosLiveliness.AUTOMATIC,
        forever,
        False,
    )


def write_joint_commands(path: Path, trajectory: JointTrajectory, robot: Robot | None = None) -> None:
    """Write a trajectory as one MCAP file of the topic `joint_commands`; it appears whole or not at all.

    Of a whole body the bag also holds what shows it: `joint_states`, the root on `odom` and `/tf`, and the robot on
    `robot_description`.

    Args:
        path: of the file; `humanoid replay` plays it.
        trajectory: positions and velocities of joints.
        robot: whose it is; needed for a whole body.

    Raises:
        ConfigError: it cannot be written.
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
    """Writes joints and roots of a trajectory to a bag.

    Args:
        bag: it. topics: that are announced.
    """

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
        """A message, e.g. of 'geometry_msgs/Vector3'."""
        return self.store.types[kind.replace("/", "/msg/")](**fields)

    def _write(self, topic: str, ns: int, message: Any, kind: str) -> None:
        self.bag.write(topic, ns, bytes(self.store.serialize_cdr(message, kind)))

    def _header(self, ns: int, frame: str = "") -> Any:
        stamp = self._new("builtin_interfaces/Time", sec=ns // 10**9, nanosec=ns % 10**9)
        return self._new("std_msgs/Header", stamp=stamp, frame_id=frame)

    def _vector(self, xyz: np.ndarray, kind: str = "geometry_msgs/Vector3") -> Any:
        return self._new(kind, **dict(zip("xyz", map(float, xyz), strict=True)))

    def text(self, topic: str, text: str) -> None:
        """A text at the beginning."""
        self._write(topic, 0, self._new("std_msgs/String", data=text), "std_msgs/msg/String")

    def joints(self, topic: str, ns: int, names: Iterable[str], q: np.ndarray, v: np.ndarray) -> None:
        """Angles (n,) [rad] and velocities (n,) [rad/s]."""
        message = self._new("sensor_msgs/JointState", header=self._header(ns), name=list(names), position=q,
                            velocity=v, effort=np.zeros(0))  # fmt: skip
        self._write(topic, ns, message, self.TYPES[topic])

    def root(self, ns: int, trajectory: WholeBodyTrajectory, k: int, link: str) -> None:
        """Pose and twist of the root link at frame k: twist in its own frame, to the next frame."""
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


class BagReader:
    """Reads a bag that `humanoid record`, the demo or rosbag2 has written."""

    def __init__(self, path: Path) -> None:
        """Open a bag: its directory, the .mcap file in it, or an .mcap file alone.

        Raises:
            ConfigError: not there, or not a bag.
        """
        alone = path.suffix == ".mcap" and path.is_file() and not (path.parent / "metadata.yaml").is_file()
        directory = path.parent if path.suffix == ".mcap" and not alone else path
        if not directory.exists():
            raise ConfigError(f"there is no bag {path}")
        self._types = typestore()
        self.path = directory
        with self._damage_told(f"{path} is not a ROS 2 bag, or a damaged one"):
            if (metadata := directory / "metadata.yaml").is_file():
                read_yaml(metadata)  # refuses in no time what the library takes seconds to choke on
            self._reader = Reader(directory)
            self._reader.open()
            hash(tuple(self.topics.items()))  # a name in its metadata may be anything

    @contextmanager
    def _damage_told(self, what: str) -> Iterator[None]:
        """Within it, whatever the library raises on a damaged file becomes a ConfigError.

        It takes lengths and offsets as the file states them: a damaged one ends in an error of struct, of a text, of a
        decompressor, in an assertion, or in a demand for more memory than there is.
        """
        try:
            yield
        except HumanoidError:
            raise
        except Exception as e:
            reason = "it states a size that does not fit into memory" if isinstance(e, MemoryError) else first_line(e)
            raise ConfigError(f"{what}: {reason.rstrip('.')}") from None

    @property
    def topics(self) -> dict[str, tuple[str, int]]:
        """Topic -> (type name, number of messages)."""
        return {c.topic: (c.msgtype, c.msgcount) for c in self._reader.connections}

    @property
    def duration(self) -> float:
        """From the first to the last message [s]."""
        return 1e-9 * self._reader.duration

    def rates(self) -> dict[str, float]:
        """Topic -> messages a second between its first and its last one [Hz]; 0 for a single message."""
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        count: dict[str, int] = {}
        for topic, time_ns, _ in self.raw():
            first.setdefault(topic, time_ns)
            last[topic], count[topic] = time_ns, count.get(topic, 0) + 1
        spans = {t: 1e-9 * (last[t] - first[t]) for t in count}
        return {t: (n - 1) / spans[t] if spans[t] > 0 else 0.0 for t, n in sorted(count.items())}

    def latched(self, topic: str) -> bool:
        """True where a topic was published for late subscribers."""
        for c in self._reader.connections:
            if c.topic == topic:
                offered = getattr(c.ext, "offered_qos_profiles", ())
                return any(q.durability == QosDurability.TRANSIENT_LOCAL for q in offered)
        return False

    def raw(self, topics: set[str] | None = None) -> Iterator[tuple[str, int, bytes]]:
        """(topic, time [ns], serialized message) in the order of time.

        Raises:
            ConfigError: the file is damaged there.
        """
        chosen = [c for c in self._reader.connections if topics is None or c.topic in topics]
        rows = self._reader.messages(connections=chosen)
        while True:
            with self._damage_told(f"{self.path} is damaged"):
                if (row := next(rows, None)) is None:
                    return
            connection, time_ns, data = row
            yield connection.topic, time_ns, bytes(data)

    def messages(self, topics: set[str]) -> Iterator[tuple[str, int, Any]]:
        """(topic, time [ns], message) in the order of time.

        Raises:
            ConfigError: the file, or a message in it, is damaged.
        """
        types = {c.topic: c.msgtype for c in self._reader.connections}
        for topic, time_ns, data in self.raw(topics):
            with self._damage_told(f"{self.path}: a message of {topic} is damaged, or of no known type"):
                message = self._types.deserialize_cdr(data, types[topic])
            yield topic, time_ns, message

    def close(self) -> None:
        self._reader.close()
