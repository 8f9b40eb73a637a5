"""Sources of a streamed whole body: a clip or live markers, each with its solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.nodes.base.parameters import param
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.nodes.streaming.clip_source import (
    CALIBRATES_NOT,
    MAX_RATE,
    ClipParameters,
    PlayedClip,
    clip_points,
)
from humanoid_control.nodes.streaming.live_source import LiveParameters, LiveSource
from humanoid_control.retargeting.whole_body.live import LiveWholeBody
from humanoid_control.retargeting.whole_body.player import WholeBodyPlayer
from humanoid_control.retargeting.whole_body.retargeter import WholeBodyRetargeter, followed_settings
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS, WholeBodyScaler, shows_legs
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class WholeBodyParameters(LiveParameters, ClipParameters):
    """Parameters of both sources."""

    source: str = param("clip", "clip: plays a file; live: follows the topic `markers`", choices=("clip", "live"))
    rate: float = param(0.0, "frame rate of a clip; 0: rate of the clip, at most 120", "Hz", 0.0, 500.0)
    seam: float = param(
        1.5, "time to step from the end of the clip to its beginning, or to a new playback position", "s", 0, 10
    )
    lead_in: float = param(1.5, "time to move from the robot posture to the posture of live markers", "s", 0.0, 10.0)
    figure_offset: float = param(
        1.1, "lateral offset of the displayed figure, to the left of the robot", "m", -10.0, 10.0
    )


class PlayedBody(PlayedClip):
    """Clip solved frame by frame.

    Attributes:
        rate: tick rate [Hz].
    """

    player: WholeBodyPlayer
    stamp: float | None = None  # stamp of the last posture [s]; None: the present

    def __init__(self, node: TickNode, robot: Robot, p: WholeBodyParameters) -> None:
        """Read the clip and log its assumptions.

        Raises:
            HumanoidError: if it is unreadable or shows no legs.
        """
        body = clip_points(p)
        for text in body.warnings:
            node.get_logger().warning(text)
        if not shows_legs(body):
            raise ClipError(
                f"{body.name} has no knees, ankles and toes: start the stack 'imitation', which moves the upper body"
            )
        targets = WholeBodyScaler(body, robot).targets(body)
        for text in targets.notes:
            node.get_logger().info(text)
        s = self.solver = WholeBodyRetargeter.following(targets, robot, followed_settings())
        frames = s.inputs(targets)
        player = WholeBodyPlayer(targets, frames, s.legs.soles, p.seam, p.loop, p.speed, s.problem.free)
        super().__init__(node, player, targets.name)
        self.rate, self._paused = p.rate or min(targets.rate, MAX_RATE), p.paused

    def begin(self) -> None:
        """Start at the first posture of the clip."""
        self.player.restart()
        self.solver.start(self.player.advance(0.0), self.player.heading, self.name)
        self.player.playing, self._first = not self._paused, True

    def advance(self, now: float) -> float:
        """Move to the next posture; return its duration [s]."""
        dt = 1.0 / self.rate
        if not self._first:
            self.solver.step(self.player.advance(dt), 0, dt)
        self._first = False
        return dt

    def shown(self) -> np.ndarray:
        """Return targets (12, 3) of BODY_POINTS [m]."""
        self.publish_time()
        return self.player.shown()

    def skeleton(self) -> np.ndarray:
        """Return bone ends (2 B, 3) of the figure [m]."""
        return self.player.skeleton()

    def serve(self, name: str) -> tuple[bool, str]:
        if name == "calibrate":
            return False, CALIBRATES_NOT
        if name == "restart":
            self.player.seek(0.0)
        self.player.playing = name != "pause"
        return True, name


class FollowedBody:
    """Live markers: the robot stands until the calibration, then follows.

    Attributes:
        rate: rate of ticks between frames [Hz]; each frame triggers its own tick.
    """

    name = "live markers"
    stamp: float | None = None  # frame stamp of the last posture [s]

    def __init__(self, node: TickNode, robot: Robot, p: WholeBodyParameters) -> None:
        self._source = LiveSource(node, robot, p, p.marker_set, p.lead_in, p.figure_offset, LiveWholeBody)
        assert isinstance(self._source.live, LiveWholeBody)
        self.live = self._source.live
        self.rate, self._paused = p.live_rate, p.paused
        self._shown = math.nan

    @property
    def solver(self) -> WholeBodyRetargeter:
        return self.live.solver

    def change(self, p: WholeBodyParameters) -> None:
        """Do nothing."""

    def begin(self) -> None:
        """Stand and calibrate."""
        self.live.begin_standing()
        self.live.playing = not self._paused

    def advance(self, now: float) -> float:
        """Move to the next posture; return its duration [s], or 0."""
        points, self.stamp = self._source.advance(now)
        if points is None:  # the standing robot is shown periodically
            still = not self.live.calibrated and not now - self._shown < 1.0 / self.rate
            self._shown, self.stamp = now if still else self._shown, None
            return 1.0 / self.rate if still else 0.0
        return self.live.follow()

    def shown(self) -> np.ndarray | None:
        """Return targets (12, 3) of BODY_POINTS [m], or None."""
        return None if self.live.targets is None else self.live.targets[: len(BODY_POINTS)]

    def skeleton(self) -> np.ndarray | None:
        """Return bone ends (2 B, 3) of the figure [m], or None."""
        return self.live.skeleton()

    def serve(self, name: str) -> tuple[bool, str]:
        return self._source.serve(name)

    def values(self) -> dict[str, Any]:
        return self._source.values()
