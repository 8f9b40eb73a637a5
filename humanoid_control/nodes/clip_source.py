"""Targets from a clip, for the streamer."""

from __future__ import annotations

from typing import Any

import numpy as np
from std_msgs.msg import Float64

from humanoid_control.capture import BodyPoints
from humanoid_control.imitation import POINTS, scale_to_robot
from humanoid_control.imitation.figure import Figure
from humanoid_control.imitation.player import ClipPlayer
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.qos import EVENTS, LATCHED, STREAM_OUT
from humanoid_control.robots import Robot

MAX_RATE = 120.0  # [Hz] of targets
LONGEST = 0.2  # [s] a longer pause between two ticks is not made up for


class ClipSource:
    """Wires a `ClipPlayer` to the topics `clip/time`, `clip/duration` and `clip/seek` of a node."""

    def __init__(self, node: TickNode, robot: Robot, body: BodyPoints, lead_in: float, left: float) -> None:
        """Prepare.

        Args:
            node: that ticks.
            robot: to imitate.
            body: the clip.
            lead_in: time to move from where the robot is to the first frame [s].
            left: of the dancer's figure [m].
        """
        targets = scale_to_robot(body, robot)
        self.rate = min(targets.rate, MAX_RATE)
        self.player = ClipPlayer(targets, robot.point_positions(robot.q("neutral"), POINTS), lead_in)
        self._figure = Figure(targets, left)
        self._time = node.create_publisher(Float64, "clip/time", STREAM_OUT)
        self._duration = node.create_publisher(Float64, "clip/duration", LATCHED)
        self._duration.publish(Float64(data=self.player.duration))
        node.create_subscription(Float64, "clip/seek", lambda m: self.player.seek(m.data), EVENTS)
        self._before: float | None = None

    @property
    def current(self) -> np.ndarray:
        """The targets (7, 3) now."""
        return self.player.points()

    def begin_at(self, points: np.ndarray) -> None:
        """The clip begins with a lead-in from these points (7, 3)."""
        self.player.begin_at(points)

    def stop(self) -> None:
        """Time does not pass until the next `advance`."""
        self._before = None

    def advance(self, now: float) -> tuple[np.ndarray, None]:
        """Targets to publish; they are of the present."""
        self.player.advance(0.0 if self._before is None else min(now - self._before, LONGEST))
        self._before = now
        return self.player.points(), None

    def segments(self) -> np.ndarray:
        """The dancer's figure: ends (2 B, 3) of the bones."""
        self._time.publish(Float64(data=self.player.time))
        return self._figure.segments(self.player.body())

    def play(self) -> None:
        self.player.playing = True

    def pause(self) -> None:
        self.player.playing = False

    def restart(self) -> None:
        """Begin again with the lead-in."""
        self.player.restart()

    def values(self) -> dict[str, Any]:
        """For diagnostics."""
        p = self.player
        return {
            "source": "clip",
            "clip": p.targets.name,
            "time_s": round(p.time, 3),
            "duration_s": round(p.duration, 3),
            "playing": p.playing,
        }
