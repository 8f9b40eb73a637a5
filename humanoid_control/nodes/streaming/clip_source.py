"""Targets from a motion clip: parameters and player topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from humanoid_control.mocap import BodyPoints, find_body_points, load_body_points, load_clip
from humanoid_control.nodes.base.command_owner import EVENTS_TIMEOUT, listen_to_one
from humanoid_control.nodes.base.messages import EVENTS, LATCHED, STREAM_OUT
from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.retargeting import POINTS, ClipPlayer, scale_to_robot
from humanoid_control.retargeting.player import Figure, Player
from humanoid_control.robots import Robot

MAX_RATE = 120.0  # [Hz] maximum target rate
LONGEST_STEP = 0.2  # [s] maximum advance per tick; longer pauses delay the clip


CALIBRATES_NOT = "the source is a clip: only live markers are calibrated"


class PlayedClip:
    """Player with the topics `clip/time`, `clip/duration` and `clip/seek`."""

    def __init__(self, node: TickNode, player: Player, name: str) -> None:
        self.player, self.name = player, name
        self._time = node.create_publisher(Float64, "clip/time", STREAM_OUT)
        self._duration = node.create_publisher(Float64, "clip/duration", LATCHED)
        self._duration.publish(Float64(data=player.duration))
        listen_to_one(node, Float64, "clip/seek", lambda m: player.seek(m.data), EVENTS_TIMEOUT, EVENTS)

    def publish_time(self) -> None:
        self._time.publish(Float64(data=self.player.time))

    def change(self, p: ClipParameters) -> None:
        """Apply changed live parameters."""
        self.player.loop, self.player.speed = p.loop, p.speed

    def values(self) -> dict[str, Any]:
        p = self.player
        return {
            "clip": self.name,
            "time_s": round(p.time, 3),
            "duration_s": round(p.duration, 3),
            "playing": p.playing,
        }


class ClipSource(PlayedClip):
    """Targets of a played clip, with its figure."""

    player: ClipPlayer

    def __init__(self, node: TickNode, robot: Robot, body: BodyPoints, lead_in: float, left: float) -> None:
        """Create player and topics.

        Args:
            lead_in: time from the current posture to the first frame [s].
            left: offset of the dancer's figure to the left of the robot [m].
        """
        targets = scale_to_robot(body, robot)
        self.rate = min(targets.rate, MAX_RATE)
        rest = robot.point_positions(robot.q("neutral"), POINTS)
        super().__init__(node, ClipPlayer(targets, rest, lead_in), targets.name)
        self._figure = Figure(targets, left)
        self._before: float | None = None

    @property
    def current(self) -> np.ndarray:
        """Current targets (7, 3)."""
        return self.player.points()

    def begin_at(self, points: np.ndarray) -> None:
        """Start the lead-in at these points (7, 3)."""
        self.player.begin_at(points)

    def stop(self) -> None:
        """Pause time until the next `advance`."""
        self._before = None

    def advance(self, now: float) -> tuple[np.ndarray, None]:
        """Return current targets; no stamp."""
        self.player.advance(0.0 if self._before is None else min(now - self._before, LONGEST_STEP))
        self._before = now
        return self.player.points(), None

    def segments(self) -> np.ndarray:
        """Return figure bone ends (2 B, 3)."""
        self.publish_time()
        return self._figure.segments(self.player.body())

    def serve(self, name: str) -> tuple[bool, str]:
        """Play, pause or restart; return success and a message."""
        if name == "calibrate":
            return False, CALIBRATES_NOT
        if name == "restart":
            self.player.restart()
        else:
            self.player.playing = name == "play"
        return True, name

    def values(self) -> dict[str, Any]:
        return {"source": "clip", **super().values()}


@dataclass(frozen=True)
class ClipFileParameters(WorldParameters):
    """Parameters of a clip."""

    clip: str = param("dance", "motion clip: dance or gentle_dance (built in), or the path of a file")
    clip_rate: float = param(
        0.0,
        "frame rate of an AMC, CSV, TSV, NPZ, PKL or PT file without one, or of a BVH file with a wrong one; 0: from "
        "the file",
        "Hz",
        0.0,
        1000.0,
    )
    clip_unit: str = param("", "length unit of the clip: mm, cm, m or inch; empty: from the file, or detected")
    clip_up: str = param("", "upward axis of the clip file: x, y, z, -x, -y, -z; empty: detected")
    clip_scale: float = param(1.0, "scale factor of the clip, for skeletons of other sizes", "", 1e-6, 1e6)
    clean: bool = param(True, "clean the clip: check labels, fill short gaps and filter noise")
    marker_set: str = param("", "marker set name, or path of a marker set file; empty: detected by the labels")


@dataclass(frozen=True)
class ClipParameters(ClipFileParameters):
    """Parameters of a clip and its playback."""

    loop: bool = param(True, "restart at the end", live=True)
    speed: float = param(1.0, "playback speed relative to the clip", "start paused", 0.05, 4.0, live=True)
    paused: bool = param(False, "begin paused")


def clip_points(p: ClipFileParameters) -> BodyPoints:
    """Read the body points of the clip.

    Raises:
        HumanoidError: if it is unreadable.
    """
    marker_set, rate = p.marker_set or None, p.clip_rate or None
    if p.clean:
        return load_body_points(p.clip, marker_set, rate=rate, unit=p.clip_unit, scale=p.clip_scale, up=p.clip_up)
    return find_body_points(load_clip(p.clip, rate, p.clip_unit, p.clip_scale, p.clip_up), marker_set)


def serve_playback(node: TickNode, serve: Callable[[str], tuple[bool, str]]) -> None:
    """Create the services `play`, `pause`, `restart` and `calibrate` of a source.

    Args:
        serve: does what a service is named and returns success and a message.
    """

    def service(name: str) -> Any:
        def callback(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            response.success, response.message = serve(name)
            return response

        return callback

    for name in ("play", "pause", "restart", "calibrate"):
        node.create_service(Trigger, f"~/{name}", service(name))
