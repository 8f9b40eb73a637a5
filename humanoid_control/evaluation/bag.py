"""Reader and writer of MCAP bags with serialized messages, compatible with rosbag2 and Foxglove."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader, StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from humanoid_control.documents import read_yaml
from humanoid_control.errors import ConfigError, HumanoidError, first_line
from humanoid_control.terminal import warn

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

VERSION: Literal[9] = 9
MAGIC = b"\x89MCAP0\r\n"
_NO_SUMMARY = struct.pack("<BQQQI", 2, 20, 0, 0, 0) + MAGIC  # footer of a file without index, then the end magic
_LARGEST_RECORD = 1 << 40  # [bytes] larger lengths indicate damage


@cache
def typestore() -> Typestore:
    """Return the message definitions of a current ROS 2 release, cached."""
    return get_typestore(Stores.ROS2_KILTED)


class BagWriter:
    """Writer of serialized messages to `<directory>/<name>.mcap`, with rosbag2 metadata."""

    def __init__(self, directory: Path) -> None:
        """Open a new bag.

        Raises:
            ConfigError: if the directory exists, or cannot be written.
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
        """Announce a topic with a type such as 'sensor_msgs/msg/JointState'."""
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
        """Finish the bag.

        Raises:
            OSError: if its end cannot be written; the file is closed all the same.
        """
        storage = self._writer.storage
        try:
            self._writer.close()
        except OSError:
            # What cannot be flushed would be reported again, below the reason, when the file is collected.
            file = getattr(storage, "bio", None)
            if file is not None:
                file.raw.close()
            raise


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


class _UnfinishedFile(io.RawIOBase):
    """File object: complete records of an .mcap file without footer, followed by a footer."""

    def __init__(self, path: Path, end: int) -> None:
        """Open the file.

        Args:
            end: end of the last complete record [bytes].
        """
        super().__init__()
        self._file, self._end, self._at = path.open("rb"), end, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek relative to start, position or end of the footer."""
        self._at = max(0, offset + (0, self._at, self._end + len(_NO_SUMMARY))[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._at < self._end:
            self._file.seek(self._at)
            data = self._file.read(min(len(view), self._end - self._at))
        else:
            data = _NO_SUMMARY[self._at - self._end :][: len(view)]
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class _UnfinishedPath:
    """Path of an unfinished file, as far as the library uses it."""

    suffix = ".mcap"

    def __init__(self, path: Path, end: int) -> None:
        self._path, self._end = path, end

    def exists(self) -> bool:
        return True

    def is_dir(self) -> bool:
        return False

    def open(self, mode: str = "rb") -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_UnfinishedFile(self._path, self._end)))

    def __str__(self) -> str:
        return str(self._path)


def _end_of_records(path: Path) -> tuple[int, int] | None:
    """Return the end of the last complete record and the size [bytes] of an .mcap file without footer; else None."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC or size < len(MAGIC) + len(_NO_SUMMARY):
            return None
        file.seek(-len(MAGIC), io.SEEK_END)
        if file.read() == MAGIC:
            return None
        at = len(MAGIC)
        while at + 9 <= size:
            file.seek(at)
            kind, length = struct.unpack("<BQ", file.read(9))
            # 15 ends the data section; the index after it is incomplete.
            if kind in (0, 2, 15) or length > _LARGEST_RECORD or at + 9 + length > size:
                break
            at += 9 + length
    return at, size


def _unfinished(bag: Path) -> tuple[Path, int, int] | None:
    """Return the .mcap file of an unfinished bag, with the result of `_end_of_records`; None for other bags."""
    files = [bag] if bag.is_file() else sorted(bag.glob("*.mcap"))
    if len(files) != 1 or files[0].suffix != ".mcap":
        return None
    ends = _end_of_records(files[0])
    return None if ends is None else (files[0], *ends)


class BagReader:
    """Reader of a bag from `humanoid record`, the demo or rosbag2.

    An unfinished bag is read up to its last complete chunk, with a warning that is also in `note`.
    """

    def __init__(self, path: Path) -> None:
        """Open a bag directory, the .mcap file in it, or a single .mcap file.

        Raises:
            ConfigError: if it does not exist, or is not a bag.
        """
        alone = path.suffix == ".mcap" and path.is_file() and not (path.parent / "metadata.yaml").is_file()
        directory = path.parent if path.suffix == ".mcap" and not alone else path
        if not (directory.exists() and path.exists()):
            raise ConfigError(f"bag not found: {path}")
        self._types = typestore()
        self.path = directory
        self.note = ""
        if (unfinished := _unfinished(directory)) is not None:
            self._open_unfinished(*unfinished)
            return
        with self._damage_told(f"{path} is not a ROS 2 bag, or a damaged one"):
            if (metadata := directory / "metadata.yaml").is_file():
                read_yaml(metadata)  # fails fast, where the library takes seconds
            self._reader = Reader(directory)
            self._reader.open()
            hash(tuple(self.topics.items()))  # a name in damaged metadata may have any type

    def _open_unfinished(self, file: Path, end: int, size: int) -> None:
        """Open the complete records of a file without footer."""
        command = f"`mcap recover {file.name} -o whole.mcap` may repair it"
        with self._damage_told(f"{file}: its recorder did not finish it, and it is damaged: {command}"):
            self._reader = Reader(cast(Any, _UnfinishedPath(file, end)))
            self._reader.open()
            hash(tuple(self.topics.items()))
        count = self._reader.message_count
        if not count:
            self._reader.close()
            raise ConfigError(f"{file}: its recorder did not finish it, and no message is complete: {command}")
        lost = f", the last {size - end:,} bytes are cut" if size > end else ""
        self.note = f"{file}: its recorder did not finish it: {count:,} complete messages are read{lost}"
        warn(self.note)

    @contextmanager
    def _damage_told(self, what: str) -> Iterator[None]:
        """Convert any library error on a damaged file to a ConfigError."""
        try:
            yield
        except HumanoidError:
            raise
        except Exception as e:
            reason = "it states a size that does not fit into memory" if isinstance(e, MemoryError) else first_line(e)
            # messages about Python, not about the file
            if isinstance(e, (TypeError, IndexError, struct.error, EOFError)):
                reason = "it is truncated, or its lengths are wrong"
            raise ConfigError(f"{what}: {reason.rstrip('.')}") from None

    @property
    def topics(self) -> dict[str, tuple[str, int]]:
        """Topic -> (type name, number of messages)."""
        return {c.topic: (c.msgtype, c.msgcount) for c in self._reader.connections}

    @property
    def duration(self) -> float:
        """Time from first to last message [s]."""
        return 1e-9 * self._reader.duration

    def rates(self) -> dict[str, float]:
        """Return topic -> message rate between its first and last message [Hz]; 0 for a single message."""
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        count: dict[str, int] = {}
        for topic, time_ns, _ in self.raw():
            first.setdefault(topic, time_ns)
            last[topic], count[topic] = time_ns, count.get(topic, 0) + 1
        spans = {t: 1e-9 * (last[t] - first[t]) for t in count}
        return {t: (n - 1) / spans[t] if spans[t] > 0 else 0.0 for t, n in sorted(count.items())}

    def latched(self, topic: str) -> bool:
        """Return True if a topic was latched (transient local)."""
        for c in self._reader.connections:
            if c.topic == topic:
                offered = getattr(c.ext, "offered_qos_profiles", ())
                return any(q.durability == QosDurability.TRANSIENT_LOCAL for q in offered)
        return False

    def raw(self, topics: set[str] | None = None) -> Iterator[tuple[str, int, bytes]]:
        """Yield (topic, time [ns], serialized message) in time order.

        Raises:
            ConfigError: if the file is damaged.
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
        """Yield (topic, time [ns], message) in time order.

        Raises:
            ConfigError: if the file or a message is damaged.
        """
        types = {c.topic: c.msgtype for c in self._reader.connections}
        for topic, time_ns, data in self.raw(topics):
            with self._damage_told(f"{self.path}: a message of {topic} is damaged, or of an unknown type"):
                message = self._types.deserialize_cdr(data, types[topic])
            yield topic, time_ns, message

    def close(self) -> None:
        self._reader.close()
