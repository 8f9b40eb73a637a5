"""Targets from live markers, for the streamer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanoid_control.imitation.figure import Figure
from humanoid_control.imitation.live_settings import LiveSettings
from humanoid_control.imitation.live_targets import LiveTargets
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.health import Level
from humanoid_control.nodes.marker_input import MarkerInput
from humanoid_control.nodes.parameters import NodeParameters, param
from humanoid_control.nodes.statistics import Samples
from humanoid_control.robots import Robot

KINDS = ("calibration", "input", "labels", "hidden", "segments", "silence")
OTHER_CLOCK = 1.0  # [s] a stamp farther than this from the present is by another clock


@dataclass(frozen=True)
class LiveParameters(NodeParameters):
    """Parameters of live markers."""

    live_rate: float = param(100.0, "ticks: of held targets, and of reference_joint_states", "Hz", 10.0, 500.0)
    live_labels: str = param(
        "", "labels of the poses when `markers` is a PoseArray, separated by commas; empty: it is a MarkerArray"
    )
    live_up: str = param(
        "auto",
        "axis of the markers' frame that points upward; auto: found from the body",
        choices=("auto", "+x", "-x", "+y", "-y", "+z", "-z"),
    )
    live_calibration: float = param(2.0, "for how long the person stands upright at first", "s", 0.2, 60.0)
    live_upright: bool = param(True, "the calibration's upright posture is the robot's zero posture of the trunk")
    live_fade: float = param(0.3, "time over which the velocity of a hidden marker fades to zero", "s", 0.01, 5.0)
    live_return_speed: float = param(1.0, "at which a target moves over to a marker that is back", "m/s", 0.05, 10.0)
    live_max_speed: float = param(6.0, "of a target, whatever the markers do", "m/s", 0.1, 50.0)
    live_timeout: float = param(0.5, "silence of all markers after which a warning says so", "s", 0.05, 10.0)


class LiveSource:
    """Wires `LiveTargets` to the topic `markers`, the parameters and the diagnostics of a node."""

    def __init__(self, node: TickNode, robot: Robot, parameters: LiveParameters, marker_set: str, lead_in: float,
                 left: float) -> None:  # fmt: skip
        """Prepare.

        Args:
            node: that ticks.
            robot: to imitate.
            parameters: of live markers.
            marker_set, lead_in: as for LiveSettings.
            left: of the dancer's figure [m].
        """
        p = parameters
        settings = LiveSettings(marker_set, p.live_calibration, p.live_upright, p.live_up, p.live_fade,
                                p.live_return_speed, p.live_max_speed, p.live_timeout, lead_in)  # fmt: skip
        self.rate = p.live_rate
        self.live = LiveTargets(robot, settings)
        self._node, self._left = node, left
        self._input = MarkerInput(node, p.live_labels)
        self._added, self._latency = Samples(1000), Samples(1000)
        self._figure: Figure | None = None
        self._said: tuple[str, ...] = ()

    @property
    def current(self) -> np.ndarray | None:
        """The targets (7, 3) now; None before the calibration."""
        return self.live.targets

    def begin_at(self, points: np.ndarray) -> None:
        """The lead-in begins at these points (7, 3)."""
        self.live.begin_at(points)

    def advance(self, now: float) -> tuple[np.ndarray | None, float | None]:
        """Targets to publish, and their stamp [s]: of the frame they come from, or where it would have been."""
        frame = self._input.take()
        moment = now if frame is None else frame.time
        if frame is None:
            points = self.live.hold(now)
        else:
            points = self.live.frame(frame.labels, frame.positions, frame.time)
        self._report()
        ros, done = 1e-9 * self._node.get_clock().now().nanoseconds, time.monotonic()
        stamp = self._input.clock.stamp(moment)
        if not abs(ros - stamp) < OTHER_CLOCK:  # the source has another clock, or none
            stamp = ros - (done - moment)
        if frame is not None and points is not None:
            self._added.add(done - frame.arrival)
            self._latency.add(ros - stamp)
        return points, stamp

    def _report(self) -> None:
        problems = {**self.live.problems, **({"input": self._input.problem} if self._input.problem else {})}
        for kind in KINDS:
            self._node.health.check(kind, kind in problems, Level.WARN, problems.get(kind, ""))
        if self.live.warnings != self._said:
            self._said = self.live.warnings
            for text in self._said:
                self._node.get_logger().warning(text)

    def segments(self) -> np.ndarray | None:
        """The dancer's figure: ends (2 B, 3) of the bones; None before the calibration."""
        if self.live.body is None or self.live.shown is None:
            return None
        if self._figure is None:
            self._figure = Figure(self.live.shown, self._left)
        return self._figure.segments(self.live.body)

    def play(self) -> None:
        self.live.playing = True

    def pause(self) -> None:
        self.live.playing = False

    def restart(self) -> None:
        """Calibrate again; the targets stay where they are meanwhile."""
        self.live.calibrate()
        self._figure = None

    def values(self) -> dict[str, Any]:
        """For diagnostics."""
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
