"""Targets from live markers: MarkerArray with labels, or PoseArray in a known order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray
from visualization_msgs.msg import MarkerArray

from humanoid_control.errors import ConfigError
from humanoid_control.estimation import ClockOffset
from humanoid_control.nodes.base.command_owner import TARGETS_IN, TARGETS_TIMEOUT, listen_to_one
from humanoid_control.nodes.base.messages import seconds
from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.nodes.base.serialized_markers import MarkerReader
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.retargeting.live import LiveSettings, LiveTargets
from humanoid_control.retargeting.player import Figure
from humanoid_control.robots import Robot

TOPIC = "markers"
PROBLEMS = ("calibration", "clock", "input", "labels", "hidden", "segments", "silence")
DELAY_GROWTH = 1e-5  # [s] maximum growth of the delay per frame, so that drifting clocks are followed
OTHER_CLOCK = 1.0  # [s] larger changes of the delay, or stamps this far from the present, mean another clock


class SourceClock:
    """Arrival times without jitter: source stamp plus shortest observed delay."""

    def __init__(self) -> None:
        self._stamp = self._delay = float("nan")

    def time(self, stamp: float, arrival: float) -> float:
        """Return the arrival of a frame without jitter [s], never later than the actual one.

        Args:
            stamp: stamp of the source's clock [s]; must increase.
            arrival: arrival by this computer's clock [s].
        """
        grows, self._stamp = not stamp <= self._stamp, stamp
        if not grows:
            self._delay = float("nan")
            return arrival
        delay = arrival - stamp
        if not abs(delay - self._delay) < OTHER_CLOCK:
            self._delay = delay
        self._delay = min(delay, self._delay + DELAY_GROWTH)
        return stamp + self._delay

    def stamp(self, time: float) -> float:
        """Return the source stamp of a time [s]; NaN without usable stamps."""
        return time - self._delay


@dataclass(frozen=True)
class MarkerFrame:
    """Frame of markers.

    Attributes:
        positions: positions (M, 3) [m].
        time: arrival without jitter [s, monotonic].
        arrival: measured arrival [s, monotonic].
        ros: arrival in ROS time [s].
    """

    labels: tuple[str, ...]
    positions: np.ndarray
    time: float
    arrival: float
    ros: float


class MarkerInput:
    """Newest frame of the topic `markers`.

    Attributes:
        problem: why the last message was rejected, or empty.
        clock: clock of the source.
        offset: its offset to this computer's.
    """

    def __init__(self, node: TickNode, order: str) -> None:
        """Subscribe.

        Args:
            order: comma-separated labels of a PoseArray; empty: the topic is a MarkerArray.

        Raises:
            ConfigError: if a label appears twice.
        """
        self.order = tuple(label.strip() for label in order.split(",") if label.strip())
        if len(set(self.order)) < len(self.order):
            twice = next(label for label in self.order if self.order.count(label) > 1)
            raise ConfigError(f"parameter live_labels contains '{twice}' twice")
        self.problem = ""
        self._reader = MarkerReader(_label)
        self.clock, self.offset, self._node = SourceClock(), ClockOffset(), node
        self._newest: tuple[PoseArray | bytes, float, float] | None = None
        if self.order:
            listen_to_one(node, PoseArray, TOPIC, self._on_message, TARGETS_TIMEOUT, TARGETS_IN, wakes=True)
        else:
            listen_to_one(node, MarkerArray, TOPIC, self._on_message, TARGETS_TIMEOUT, TARGETS_IN, raw=True, wakes=True)

    def _on_message(self, message: PoseArray | bytes) -> None:
        self._newest = (message, time.monotonic(), 1e-9 * self._node.get_clock().now().nanoseconds)

    def take(self) -> MarkerFrame | None:
        """Return the newest frame, once."""
        if self._newest is None:
            return None
        (message, arrival, now), self._newest = self._newest, None
        self.problem = ""
        if isinstance(message, bytes):
            m = self._reader.read(message)
            return MarkerFrame(m.names, m.poses[:, :3], self._time(m.stamp, now, arrival), arrival, now)
        if len(message.poses) != len(self.order):
            self.problem = f"PoseArray of {len(message.poses)} poses, live_labels has {len(self.order)}: ignored"
            return None
        at = [p.position for p in message.poses]
        stamp = seconds(message.header.stamp)
        positions = np.array([(p.x, p.y, p.z) for p in at], dtype=float).reshape(-1, 3)
        return MarkerFrame(self.order, positions, self._time(stamp, now, arrival), arrival, now)

    def _time(self, stamp: float, now: float, arrival: float) -> float:
        """Return the arrival without jitter [s, monotonic] of a source stamp."""
        self.offset.time(stamp, now, arrival)
        return self.clock.time(stamp, arrival)


def _label(ns: str, text: str) -> str:
    return text or ns


@dataclass(frozen=True)
class LiveParameters(WorldParameters):
    """Parameters of live markers."""

    live_rate: float = param(
        100.0, "rate of the held targets between frames, and of reference_joint_states", "Hz", 10.0, 500.0
    )
    live_labels: str = param(
        "", "comma-separated labels of the poses if `markers` is a PoseArray; empty: it is a MarkerArray"
    )
    live_up: str = param(
        "auto",
        "upward axis of the marker frame; auto: detected from the body",
        choices=("auto", "+x", "-x", "+y", "-y", "+z", "-z"),
    )
    live_calibration: float = param(2.0, "duration of the initial upright calibration posture", "s", 0.2, 60.0)
    live_upright: bool = param(True, "map the upright calibration posture to the zero posture of the robot trunk")
    live_fade: float = param(0.3, "time in which the velocity of a hidden marker fades to zero", "s", 0.01, 5.0)
    live_return_speed: float = param(1.0, "speed at which a target returns to a reappearing marker", "m/s", 0.05, 10.0)
    live_max_speed: float = param(6.0, "maximum speed of a target", "m/s", 0.1, 50.0)
    live_timeout: float = param(0.5, "silence of all markers after which a warning is reported", "s", 0.05, 10.0)


class LiveSource:
    """Connection of `LiveTargets` to the topic `markers` and a node."""

    def __init__(self, node: TickNode, robot: Robot, parameters: LiveParameters, marker_set: str, lead_in: float,
                 left: float, kind: type[LiveTargets] = LiveTargets) -> None:  # fmt: skip
        """Subscribe.

        Args:
            left: offset of the figure to the left [m].
            kind: class of the targets.
        """
        p = parameters
        settings = LiveSettings(marker_set, p.live_calibration, p.live_upright, p.live_up, p.live_fade,
                                p.live_return_speed, p.live_max_speed, p.live_timeout, lead_in)  # fmt: skip
        self.rate = p.live_rate
        self.live = kind(robot, settings)
        self._node, self._left = node, left
        self._input = MarkerInput(node, p.live_labels)
        self._added, self._latency = SampleWindow(1000), SampleWindow(1000)
        self._figure: Figure | None = None
        self._logged: tuple[str, ...] = ()

    @property
    def current(self) -> np.ndarray | None:
        """Current targets (7, 3); None before the calibration."""
        return self.live.targets

    def begin_at(self, points: np.ndarray) -> None:
        """Start the lead-in at these points (7, 3)."""
        self.live.begin_at(points)

    def advance(self, now: float) -> tuple[np.ndarray | None, float | None]:
        """Return targets and the stamp of their frame [s], measured or extrapolated."""
        frame = self._input.take()
        moment = now if frame is None else frame.time
        if frame is None:
            points = self.live.hold(now)
        else:
            points = self.live.frame(frame.labels, frame.positions, frame.time, frame.arrival)
        self._report()
        ros, done = 1e-9 * self._node.get_clock().now().nanoseconds, time.monotonic()
        stamp = self._input.clock.stamp(moment) + self._input.offset.correction
        if not 0 <= ros - stamp < OTHER_CLOCK:  # the source has another clock, or none
            stamp = ros - (done - moment)
        if frame is not None and points is not None:
            self._added.add(done - frame.arrival)
            self._latency.add(ros - stamp)
        return points, stamp

    def _report(self) -> None:
        problems = {**self.live.problems, **({"input": self._input.problem} if self._input.problem else {})}
        if clock := self._input.offset.problem:
            problems["clock"] = f"markers: {clock}"
        for kind in PROBLEMS:
            self._node.health.check(kind, kind in problems, Level.WARN, problems.get(kind, ""))
        if self.live.warnings != self._logged:
            self._logged = self.live.warnings
            for text in self._logged:
                self._node.get_logger().warning(text)

    def segments(self) -> np.ndarray | None:
        """Return figure bone ends (2 B, 3); None before the calibration."""
        if self.live.body is None or self.live.shown is None:
            return None
        if self._figure is None:
            self._figure = Figure(self.live.shown, self._left)
        return self._figure.segments(self.live.body)

    def change(self, p: Any) -> None:
        """Do nothing: live markers have no loop and no speed."""

    def serve(self, name: str) -> tuple[bool, str]:
        """Play, pause, or calibrate again; return success and a message."""
        if name in ("restart", "calibrate"):
            self.restart()
            return True, "stand upright"
        self.live.playing = name == "play"
        return True, name

    def restart(self) -> None:
        """Calibrate again, holding the targets."""
        self.live.calibrate()
        self._figure = None

    def values(self) -> dict[str, Any]:
        added, latency = self._added.percentiles(), self._latency.percentiles()
        return {
            "source": "live",
            "calibrated": self.live.calibrated,
            "marker_set": self.live.marker_set,
            "markers_hz": round(self.live.frame_rate, 1),
            "playing": self.live.playing,
            "added_p50_ms": round(1000 * added[0], 3),
            "added_p99_ms": round(1000 * added[1], 3),
            "latency_p50_ms": round(1000 * latency[0], 3),
            "latency_p99_ms": round(1000 * latency[1], 3),
        }
