"""Node `trajectory_streamer`: a motion clip in, targets for a robot out, at the clip's own rate."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from std_msgs.msg import Float64
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.capture import body_points, load_clip
from humanoid_control.imitation import POINTS, scale_to_robot
from humanoid_control.imitation.figure import Figure
from humanoid_control.imitation.player import ClipPlayer
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.messages import points_of, segments_marker, target_markers
from humanoid_control.nodes.parameters import NodeParameters, param
from humanoid_control.nodes.qos import EVENTS, LATCHED, STREAM_OUT
from humanoid_control.nodes.repeating_markers import MarkerWriter
from humanoid_control.nodes.run import main_of
from humanoid_control.robots import load_robot

MAX_RATE = 120.0


@dataclass(frozen=True)
class TrajectoryStreamerParameters(NodeParameters):
    """Parameters of the trajectory streamer."""

    clip: str = param("dance", "motion clip: 'dance' is built in, anything else is the path of a file")
    marker_set: str = param("", "marker set of the clip, or the path of an own one; empty: found by the labels")
    loop: bool = param(True, "begin again at the end", live=True)
    speed: float = param(1.0, "speed against the clip's own", "", 0.05, 4.0, live=True)
    lead_in: float = param(1.5, "time to move from the rest posture to the first frame", "s", 0.0, 10.0)
    paused: bool = param(False, "begin paused")
    dancer_every: int = param(2, "publish the dancer's figure every so many targets", "", 1, 100)
    dancer_offset: float = param(1.1, "how far to the left of the robot the dancer is shown", "m", -10.0, 10.0)


class TrajectoryStreamer(TickNode):
    """Plays a clip as targets."""

    Parameters = TrajectoryStreamerParameters
    params: TrajectoryStreamerParameters
    node_name = "trajectory_streamer"

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, "fixed")
        body = body_points(load_clip(p.clip), p.marker_set or None)
        targets = scale_to_robot(body, robot)
        rest = robot.point_positions(robot.q("neutral"), POINTS)
        self.player = ClipPlayer(targets, rest, p.lead_in, p.loop, p.speed)
        self.player.playing = not p.paused
        self.figure = Figure(targets, p.dancer_offset)
        self.writer = MarkerWriter(target_markers(POINTS))
        self.dancer_message = MarkerArray(markers=[segments_marker("dancer", (0.2, 0.5, 0.9), 0.03)])
        self.targets = self.create_publisher(MarkerArray, "targets", STREAM_OUT)
        self.dancer = self.create_publisher(MarkerArray, "dancer", STREAM_OUT)
        self.time = self.create_publisher(Float64, "clip/time", STREAM_OUT)
        self.duration = self.create_publisher(Float64, "clip/duration", LATCHED)
        self.duration.publish(Float64(data=self.player.duration))
        self.create_subscription(Float64, "clip/seek", lambda m: self.player.seek(m.data), EVENTS)
        for name, action in {"play": self.play, "pause": self.pause, "restart": self.player.restart}.items():
            self.create_service(Trigger, f"~/{name}", self.service(name, action))
        self.before: float | None = None
        self.count = 0
        return min(targets.rate, MAX_RATE)

    def play(self) -> None:
        self.player.playing = True

    def pause(self) -> None:
        self.player.playing = False

    @staticmethod
    def service(name: str, action: Any) -> Any:
        """A Trigger service that does one thing."""

        def callback(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            action()
            response.success, response.message = True, name
            return response

        return callback

    def parameters_changed(self, changed: set[str]) -> None:
        if hasattr(self, "player"):
            self.player.loop, self.player.speed = self.params.loop, self.params.speed

    def activate(self) -> None:
        self.before = None

    def tick(self, now: float) -> None:
        self.player.advance(0.0 if self.before is None else min(now - self.before, 0.2))
        self.before = now
        stamp = self.get_clock().now().to_msg()
        self.targets.publish(self.writer.write(stamp, self.player.points()))
        self.count += 1
        if self.count % self.params.dancer_every == 0:
            marker = self.dancer_message.markers[0]
            marker.header.stamp = stamp
            marker.points = points_of(self.figure.segments(self.player.body()))
            self.dancer.publish(self.dancer_message)
            self.time.publish(Float64(data=self.player.time))

    def values(self) -> dict[str, Any]:
        p = self.player
        return {
            "clip": p.targets.name,
            "time_s": round(p.time, 3),
            "duration_s": round(p.duration, 3),
            "playing": p.playing,
        }


def main() -> int:
    return main_of(TrajectoryStreamer)


if __name__ == "__main__":
    sys.exit(main())
