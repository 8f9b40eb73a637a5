"""Recording of topics to a bag, and playback, with unmodified message bytes.

```python
import threading
from pathlib import Path

from humanoid_control.evaluation import BagReader
from humanoid_control.session.recording import BagPlayer, Recorder

recorder = Recorder(Path("run"), ["joint_commands", "targets"])
recorder.run(threading.Event(), seconds=10.0)
print(recorder.close())

player = BagPlayer(BagReader(Path("run")))
player.play(threading.Event(), speed=0.5)
player.close()
```
"""

from __future__ import annotations

import importlib
import re
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from humanoid_control.errors import ConfigError, EnvironmentProblem, UnknownNameError
from humanoid_control.evaluation.bag import BagReader, BagWriter
from humanoid_control.terminal import progress, warn

SKIPPED = ("/rosout", "/parameter_events")


def absolute_topics(names: Iterable[str]) -> set[str]:
    """Return topic names with a leading slash."""
    return {name if name.startswith("/") else f"/{name}" for name in names}


def message_class(type_name: str) -> Any:
    """Return the class of a type such as 'sensor_msgs/msg/JointState', or None."""
    package, _, name = type_name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        return None


class Recorder:
    """ROS node that records every new topic."""

    def __init__(self, output: Path, only: Iterable[str] = ()) -> None:
        """Open the bag and join the network.

        Args:
            output: new directory of the bag.
            only: topics to record; empty: all but SKIPPED.

        Raises:
            ConfigError: if the bag cannot be written.
        """
        import rclpy
        from rclpy.signals import SignalHandlerOptions

        from humanoid_control.nodes.base.runner import make_executor

        self.bag = BagWriter(output)
        self._only = absolute_topics(only)
        self._seen: set[str] = set()
        self._stop = threading.Event()
        self._failure = ""
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node: Any = rclpy.create_node("recorder")
        self._executor = make_executor()
        self._executor.add_node(self.node)

    def run(self, stop: threading.Event, seconds: float) -> None:
        """Record until `stop`, at most `seconds` [s].

        Raises:
            EnvironmentProblem: if writing fails.
        """
        self._stop = stop
        end = time.monotonic() + seconds
        next_look = 0.0
        while not stop.is_set() and time.monotonic() < end:
            if time.monotonic() >= next_look:
                self._subscribe_new_topics()
                next_look = time.monotonic() + 0.25
            self._executor.spin_once(timeout_sec=0.05)
            if self._failure:
                raise EnvironmentProblem(f"the recording {self.bag.directory} stops here: {self._failure}")

    def _subscribe_new_topics(self) -> None:
        for topic, types in self.node.get_topic_names_and_types():
            if topic in self._seen or topic in SKIPPED or (self._only and topic not in self._only):
                continue
            publishers = self.node.get_publishers_info_by_topic(topic)
            if publishers:
                self._subscribe(topic, types[0], publishers[0].qos_profile)

    def _subscribe(self, topic: str, type_name: str, offered: Any) -> None:
        from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

        self._seen.add(topic)
        message = message_class(type_name)
        if message is None:
            warn(f"humanoid record: {topic} is ignored: its type {type_name} is not installed")
            return
        latched = offered.durability == DurabilityPolicy.TRANSIENT_LOCAL
        reliable = offered.reliability == ReliabilityPolicy.RELIABLE
        qos = QoSProfile(
            depth=500,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        self.bag.add_topic(topic, type_name, latched)

        def received(data: bytes) -> None:
            if self._stop.is_set() or self._failure:  # one call of the executor may deliver a whole backlog
                return
            try:
                self.bag.write(topic, time.time_ns(), bytes(data))
            except OSError as e:
                self._failure = e.strerror or str(e)

        self.node.create_subscription(message, topic, received, qos, raw=True)

    def close(self) -> dict[str, int]:
        """Finish the bag, then leave the network; return messages by topic.

        Raises:
            EnvironmentProblem: if the end of the bag cannot be written.
        """
        import rclpy

        try:
            self.bag.close()
        except OSError as e:
            if not self._failure:
                raise EnvironmentProblem(f"the recording {self.bag.directory} cannot be closed: {e.strerror}") from None
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()
        return dict(self.bag.counts)


# -------- Playing


def chosen_topics(bag: BagReader, names: Iterable[str]) -> set[str]:
    """Return the topics of a bag with these names, by default all.

    Raises:
        UnknownNameError: if the bag lacks one.
    """
    chosen = absolute_topics(names)
    for topic in chosen:
        if topic not in bag.topics:
            raise UnknownNameError("topic", topic, bag.topics, hint=f"(in {bag.path})")
    return chosen or set(bag.topics)


def robot_in(bag: BagReader) -> str:
    """Return the robot named in a recording.

    Raises:
        ConfigError: if there is none; use --robot.
    """
    if "/diagnostics" in bag.topics:
        for _, _, message in bag.messages({"/diagnostics"}):
            for status in message.status:
                if status.hardware_id:
                    return str(status.hardware_id)
    if "/robot_description" in bag.topics:
        for _, _, message in bag.messages({"/robot_description"}):
            name = re.search(r"<robot\b[^>]*\bname=[\"']([^\"']+)", message.data)
            if name:
                return name[1]
    raise ConfigError(f"{bag.path} does not name its robot: give --robot")


class BagPlayer:
    """Publishers of the topics of a bag."""

    def __init__(self, bag: BagReader, only: Iterable[str] = ()) -> None:
        """Join the network; types that are not installed are skipped.

        Args:
            bag: bag to play; `close` closes it.
            only: topics to play; empty: all.

        Raises:
            UnknownNameError: if the bag lacks one.
        """
        import rclpy
        from rclpy.signals import SignalHandlerOptions

        from humanoid_control.nodes.base.messages import LATCHED, PLAYED

        self.bag, chosen = bag, chosen_topics(bag, only)
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node: Any = rclpy.create_node("player")
        self.publishers: dict[str, Any] = {}
        for topic, (type_name, _) in bag.topics.items():
            if topic not in chosen:
                continue
            message = message_class(type_name)
            if message is None:
                warn(f"humanoid replay: {topic} is ignored: its type {type_name} is not installed")
                continue
            qos = LATCHED if bag.latched(topic) else PLAYED
            self.publishers[topic] = self.node.create_publisher(message, topic, qos)

    def meet(self, quiet: float = 0.7, most: float = 5.0) -> None:
        """Wait until no new subscription appears, so that none misses the beginning.

        Args:
            quiet: time without new subscriptions [s], four times as long at first.
            most: maximum wait [s].
        """
        end, found, since = time.monotonic() + most, -1, time.monotonic()
        while (now := time.monotonic()) < end and now - since < (quiet if found > 0 else 4 * quiet):
            count = sum(p.get_subscription_count() for p in self.publishers.values())
            if count != found:
                found, since = count, now
            time.sleep(0.05)

    def play(self, stop: threading.Event, speed: float = 1.0) -> int:
        """Play once, or until `stop`; return the number of messages.

        Args:
            speed: multiple of the recorded pace.
        """
        first, begin, n = None, time.monotonic(), 0
        with progress("replay", self.bag.duration) as show:
            for topic, time_ns, data in self.bag.raw(set(self.publishers)):
                first = time_ns if first is None else first
                due = begin + 1e-9 * (time_ns - first) / speed
                while (wait := due - time.monotonic()) > 0 and not stop.is_set():
                    time.sleep(min(wait, 0.1))
                if stop.is_set():
                    break
                self.publishers[topic].publish(data)
                n += 1
                if n % 100 == 0:
                    show(1e-9 * (time_ns - first))
        return n

    def close(self) -> None:
        """Leave the network and close the bag."""
        import rclpy

        self.node.destroy_node()
        rclpy.try_shutdown()
        self.bag.close()
