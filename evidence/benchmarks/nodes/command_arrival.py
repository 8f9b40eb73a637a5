"""Latency of commands as another process sees it: from the stamp of targets to the arrival of the command they made.

The listener is a process of its own, scheduled as the nodes are: it does what the driver of a robot does, and nothing
else. It keeps stamps and times of arrival; which command answers which targets is found afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

from evidence.benchmarks import Row, row_of
from humanoid_control.terminal import warn

MODULE = "evidence.benchmarks.nodes.command_arrival"
TIMEOUT = 30.0  # [s] for the listener to hear a command, and to tell what it heard
LONGEST = 0.1  # [s] targets that no command answers in this time are left out
COMMAND_STAMP, MARKER_STAMP = 4, 8  # places of the first stamp in the bytes of a JointState and of a MarkerArray
DEPTH = 50  # messages that wait while the listener is not running


class Listener:
    """The listener as a child process: a context manager around the nodes, so that it is ready before they are busy.

    What counts is between `begin` and `end`; `rows` tells it when the context has been left.
    """

    def __enter__(self) -> Listener:
        self.heard: dict[str, Any] = {}
        self._since = self._until = time.time_ns()
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", MODULE], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        return self

    def begin(self) -> None:
        """Wait until it hears commands; where it does not in time, there are no rows in the end."""
        assert self._process.stdout is not None
        there, _, _ = select.select([self._process.stdout], [], [], TIMEOUT)
        if not there or self._process.stdout.readline().strip() != "ready":
            warn("the subscriber process receives no joint_commands: its latency is omitted")
        self._since = time.time_ns()

    def end(self) -> None:
        """Stop counting."""
        self._until = time.time_ns()

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            out, _err = self._process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, _err = self._process.communicate()
        with contextlib.suppress(ValueError):  # it was killed
            self.heard = json.loads(out.removeprefix("ready"))

    def rows(self, name: str, period: float) -> list[Row]:
        """Rows in ms: from targets to the arrival of their command, and from any command's stamp to its arrival.

        Args:
            name: of the first row. period: of the commands [s].
        """
        heard = self.heard
        told = [np.array(heard.get(k, []), dtype=np.int64) for k in ("targets", "stamps", "arrivals")]
        counts = (told[1] >= self._since) & (told[1] <= self._until)
        targets = 1e-9 * told[0][(told[0] >= self._since) & (told[0] <= self._until)]
        stamps, arrivals = 1e-9 * told[1][counts], 1e-9 * told[2][counts]
        used = answers(targets, stamps, period)
        late = arrivals[used[used >= 0]] - targets[used >= 0]
        more = {"scheduling": heard.get("scheduling", ""), "targets": len(targets), "answered": int((used >= 0).sum())}
        if not len(late):
            return []
        return [row_of(name, "ms", 1e3 * late, **more), row_of("command_transport", "ms", 1e3 * (arrivals - stamps))]


def answers(targets: np.ndarray, commands: np.ndarray, period: float) -> np.ndarray:
    """The command that answers each message of targets, as an index (T,), -1 where that is not known.

    Targets make an extra command between two regular ones, so the commands before and after it are one period apart,
    and those around a regular one nearly two. Targets that come just behind a regular command make none, and the next
    one answers: where there is no extra one, the later of the first two that follow is taken, which is never too good.

    Args:
        targets, commands: stamps, rising [s]. period: of regular commands [s].
    """
    out = np.full(len(targets), -1)
    following = np.append(targets, np.inf)[1:]
    for k, (stamp, after) in enumerate(zip(targets, following, strict=True)):
        first, end = np.searchsorted(commands, [stamp, min(after, stamp + LONGEST)], side="right")
        if first < 1 or first + 1 >= len(commands) or first >= end:
            continue
        span = np.array([commands[j + 1] - commands[j - 1] for j in range(first, min(end, len(commands) - 1))])
        if len(span) and abs(span.min() - period) < 0.5 * period:
            out[k] = first + int(np.argmin(np.abs(span - period)))
        else:
            out[k] = min(first + 1, end - 1)
    return out


def stamp_at(raw: bytes, place: int) -> int:
    """A stamp in a serialized message [ns]."""
    seconds, nanoseconds = struct.unpack_from("<iI", raw, place)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def listen(priority: int = 50) -> dict[str, Any]:
    """Listen until SIGINT or SIGTERM: stamps of targets and commands, and when commands came [ns]."""
    import rclpy
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import MarkerArray

    from humanoid_control.nodes.base.runner import make_executor
    from humanoid_control.nodes.base.tick_node import set_priority

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    targets: list[int] = []
    stamps: list[int] = []
    arrivals: list[int] = []

    def on_command(raw: bytes) -> None:
        arrivals.append(time.time_ns())
        stamps.append(stamp_at(raw, COMMAND_STAMP))

    def on_targets(raw: bytes) -> None:
        if len(raw) >= MARKER_STAMP + 8:
            targets.append(stamp_at(raw, MARKER_STAMP))

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("command_listener")
    qos = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(JointState, "joint_commands", on_command, qos, raw=True)
    node.create_subscription(MarkerArray, "targets", on_targets, qos, raw=True)
    executor = make_executor()
    executor.add_node(node)
    scheduling, told = set_priority(priority), False
    while not stop.is_set():
        executor.spin_once(timeout_sec=0.1)
        if stamps and not told:
            print("ready", flush=True)
            told = True
    heard = {"scheduling": scheduling, "targets": sorted(targets), "stamps": stamps, "arrivals": arrivals}
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()
    return heard


def main() -> int:
    """Listen, and print what was heard."""
    print(json.dumps(listen()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
