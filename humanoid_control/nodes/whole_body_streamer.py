"""Node `whole_body_streamer`: a motion clip in; root, legs and arms of a robot out, its feet held on the ground.

It solves frame by frame, as it plays, and publishes a reference: joint states and the odometry of the root, for a page
or rviz to show, and for a controller that balances to follow. Nothing here balances.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Float64
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.errors import ClipError
from humanoid_control.nodes.base.messages import (
    EVENTS,
    LATCHED,
    STREAM_OUT,
    PeriodicStamps,
    fill_joint_state,
    joint_state,
    points_of,
    segments_marker,
    target_markers,
)
from humanoid_control.nodes.base.parameters import param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.statistics import Samples
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.base.transforms import TransformOutput, base_transform
from humanoid_control.nodes.streaming.clip_source import MAX_RATE, ClipParameters, clip_points
from humanoid_control.retargeting.contacts import EDGES
from humanoid_control.retargeting.frame_solver import HELD
from humanoid_control.retargeting.whole_body import WholeBodyRetargeter
from humanoid_control.retargeting.whole_body_player import WholeBodyPlayer
from humanoid_control.retargeting.whole_body_scaling import BODY_POINTS, WholeBodyScaler, shows_legs
from humanoid_control.robots import load_robot

LIFETIME = 0.5  # [s] without a new message the contacts go
HOLDS, SWINGS = ColorRGBA(r=0.1, g=0.7, b=0.25, a=1.0), ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.5)
ON, OFF = "on", "off"


@dataclass(frozen=True)
class WholeBodyStreamerParameters(ClipParameters):
    """Parameters of the whole-body streamer."""

    rate: float = param(0.0, "frames a second; 0: as the clip, 120 at the most", "Hz", 0.0, 500.0)
    seam: float = param(
        1.5, "time to step over from the clip's end to its beginning, or to a moment sought", "s", 0, 10
    )
    show_every: int = param(3, "publish targets, figure and contacts every so many frames", "", 1, 100)
    figure_offset: float = param(1.1, "how far to the left of the robot the figure is shown", "m", -10.0, 10.0)


class WholeBodyStreamer(TickNode):
    """Plays a clip, solves for the whole body in every tick, and publishes what it found."""

    Parameters = WholeBodyStreamerParameters
    params: WholeBodyStreamerParameters
    node_name = "whole_body_streamer"

    def configure(self) -> float:
        p = self.params
        self.robot = load_robot(p.robot, "floating")
        body = clip_points(p)
        for text in body.warnings:
            self.get_logger().warning(text)
        if not shows_legs(body):
            raise ClipError(
                f"{body.name} does not show knees, ankles and toes: start the stack 'imitation', which moves the upper "
                "body"
            )
        targets = WholeBodyScaler(body, self.robot).targets(body)
        for text in targets.notes:
            self.get_logger().info(text)
        self.solver = WholeBodyRetargeter.following(targets, self.robot)
        self.player = WholeBodyPlayer(
            targets,
            self.solver.inputs(targets),
            self.solver.legs.soles,
            p.seam,
            p.loop,
            p.speed,
            self.solver.problem.free,
        )
        self.dt = 1.0 / (p.rate or min(targets.rate, MAX_RATE))
        self._make_outputs(targets.name)
        self.took = Samples(int(5.0 / self.dt))
        self.begin()  # also compiles, where that is still to be done
        self.solver.step(self.player.advance(0.0), 0, self.dt)
        return 1.0 / self.dt

    def _make_outputs(self, clip: str) -> None:
        p = self.params
        self.joints = joint_state(self.robot.joint_names)
        self.odometry = Odometry(child_frame_id=self.robot.root_link)
        self.odometry.header.frame_id = p.world_frame
        self.figure = MarkerArray(markers=[segments_marker("dancer", (0.2, 0.5, 0.9), 0.03, p.world_frame)])
        self.points = target_markers(BODY_POINTS, p.world_frame)
        self.edges = MarkerArray(markers=[segments_marker(e, (0.0, 0.0, 0.0), 0.012, p.world_frame) for e in EDGES])
        for k, m in enumerate(self.edges.markers):
            m.id, m.lifetime.nanosec = k, int(1e9 * LIFETIME)
        self.joints_out = self.create_publisher(JointState, "reference_joint_states", STREAM_OUT)
        self.odometry_out = self.create_publisher(Odometry, "reference_odometry", STREAM_OUT)
        self.targets_out = self.create_publisher(MarkerArray, "targets", STREAM_OUT)
        self.figure_out = self.create_publisher(MarkerArray, "dancer", STREAM_OUT)
        self.contacts_out = self.create_publisher(MarkerArray, "contacts", STREAM_OUT)
        self.time_out = self.create_publisher(Float64, "clip/time", STREAM_OUT)
        self.duration_out = self.create_publisher(Float64, "clip/duration", LATCHED)
        self.duration_out.publish(Float64(data=self.player.duration))
        self.transforms = TransformOutput(self)
        self.create_subscription(Float64, "clip/seek", lambda m: self.player.seek(m.data), EVENTS)
        for name in ("play", "pause", "restart"):
            self.create_service(Trigger, f"~/{name}", self._service(name))
        self.clip, self.stamps_out = clip, PeriodicStamps(round(1e9 * self.dt))

    def _service(self, name: str) -> Any:
        """A Trigger service that does one thing."""

        def callback(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            response.success, response.message = True, name
            if name == "restart":
                self.player.seek(0.0)
            self.player.playing = name != "pause"
            return response

        return callback

    def parameters_changed(self, changed: set[str]) -> None:
        if (player := getattr(self, "player", None)) is not None:
            player.loop, player.speed = self.params.loop, self.params.speed

    def activate(self) -> None:
        self.begin()
        self.player.playing = not self.params.paused

    def begin(self) -> None:
        """The clip's first posture, as the clip has it."""
        self.player.restart()
        self.solver.start(self.player.advance(0.0), self.player.heading, self.player.targets.name)
        self.last, self.root = self.solver.joints.copy(), self.solver.root
        self.count, self.error, self.held = 0, float("nan"), False
        self.stamps_out.restart()

    def tick(self, now: float) -> None:
        frame = self.player.advance(self.dt if self.count else 0.0)
        begin = time.perf_counter()
        joints = self.solver.step(frame, 0, self.dt) if self.count else self.solver.joints.copy()
        self.took.add(time.perf_counter() - begin)
        if not np.isfinite(joints).all():
            self.health.report("number", Level.ERROR, "a posture is not a number: begun anew")
            self.begin()
            return
        self.held = self.solver.used_fallback == HELD
        text = f"the posture is held: the next one would be {1e3 * self.solver.clearance:.0f} mm from a collision"
        self.health.check("held", self.held, Level.WARN, text)
        self.publish(joints, self.stamps_out.next(self.get_clock().now().nanoseconds))
        self.count += 1

    def publish(self, joints: np.ndarray, stamp: Any) -> None:
        """Joints and root; now and then what is looked at."""
        X, before = self.solver.root, self.root
        self.joints_out.publish(fill_joint_state(self.joints, stamp, joints, (joints - self.last) / self.dt))
        m = self.odometry
        m.header.stamp = stamp
        p, o = m.pose.pose.position, m.pose.pose.orientation
        p.x, p.y, p.z, o.x, o.y, o.z, o.w = pin.SE3ToXYZQUAT(X).tolist()
        v = pin.log6(before.actInv(X)).vector / self.dt
        linear, angular = m.twist.twist.linear, m.twist.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = v.tolist()
        self.odometry_out.publish(m)
        if self.transforms.sends:
            self.transforms.publish(base_transform(m))
        self.last, self.root = joints, X
        if self.count % self.params.show_every == 0:
            self._show(stamp)

    def _show(self, stamp: Any) -> None:
        """Targets, the person's figure beside the robot, and the edges of the soles."""
        shown = self.player.shown()
        for marker, point in zip(self.points.markers, shown.tolist(), strict=True):
            marker.header.stamp = stamp
            marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = point
        self.targets_out.publish(self.points)
        left = self.root.rotation[:, 1] if abs(self.root.rotation[2, 1]) < 0.9 else np.array([0.0, 1.0, 0.0])
        aside = self.params.figure_offset * np.array([left[0], left[1], 0.0]) / np.hypot(left[0], left[1])
        figure = self.figure.markers[0]
        figure.header.stamp, figure.points = stamp, points_of(self.player.skeleton() + aside)
        self.figure_out.publish(self.figure)
        corners = self.solver.sole_corners()
        for e, marker in enumerate(self.edges.markers):
            on = bool(self.solver.contacts[e])
            marker.header.stamp, marker.text = stamp, ON if on else OFF
            marker.color, marker.points = HOLDS if on else SWINGS, points_of(corners[2 * e : 2 * e + 2])
        self.contacts_out.publish(self.edges)
        self.time_out.publish(Float64(data=self.player.time))
        self.error = self.solver.error(shown)

    def values(self) -> dict[str, Any]:
        p50, p99 = self.took.percentiles()
        clearance = self.solver.clearance
        return {
            "clip": self.clip,
            "time_s": round(self.player.time, 3),
            "duration_s": round(self.player.duration, 3),
            "playing": self.player.playing,
            "contacts": " ".join(e for e, on in zip(EDGES, self.solver.contacts, strict=True) if on) or "none",
            "error_mm": round(1000 * self.error, 1),
            "clearance_m": f"{clearance:.4f}" if np.isfinite(clearance) else "far",
            "step_p50_ms": round(1000 * p50, 4),
            "step_p99_ms": round(1000 * p99, 4),
        }


def main() -> int:
    return main_of(WholeBodyStreamer)


if __name__ == "__main__":
    sys.exit(main())
