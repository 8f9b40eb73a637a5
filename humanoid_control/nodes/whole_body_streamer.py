"""Node `whole_body_streamer`: whole-body reference with fixed contacts from a clip or live markers.

It does not balance.
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
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import (
    STREAM_OUT,
    PeriodicStamps,
    RisingStamps,
    fill_joint_state,
    joint_state,
    points_of,
    segments_marker,
    stamp_of,
    target_markers,
)
from humanoid_control.nodes.base.parameters import param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.base.transforms import TransformOutput, base_transform
from humanoid_control.nodes.streaming.clip_source import serve_playback
from humanoid_control.nodes.streaming.whole_body_source import FollowedBody, PlayedBody, WholeBodyParameters
from humanoid_control.retargeting.frame_solver import HELD
from humanoid_control.retargeting.whole_body.contacts import EDGES
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS
from humanoid_control.robots import load_robot

LIFETIME = 0.5  # [s] lifetime of the contact markers without a new message
HOLDS, SWINGS = ColorRGBA(r=0.1, g=0.7, b=0.25, a=1.0), ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.5)
ON, OFF = "on", "off"


@dataclass(frozen=True)
class WholeBodyStreamerParameters(WholeBodyParameters):
    """Parameters of the whole-body streamer."""

    show_every: int = param(3, "number of frames per message of targets, figure and contacts", "", 1, 100)


class WholeBodyStreamer(TickNode):
    """Node that solves for the whole body in every tick."""

    Parameters = WholeBodyStreamerParameters
    params: WholeBodyStreamerParameters
    node_name = "whole_body_streamer"
    source: PlayedBody | FollowedBody

    def configure(self) -> float:
        p = self.params
        self.robot = load_robot(p.robot, "floating")
        self.source = FollowedBody(self, self.robot, p) if p.source == "live" else PlayedBody(self, self.robot, p)
        self._make_outputs()
        self.took = SampleWindow(int(5.0 * self.source.rate))
        self.begin()  # also compiles if necessary
        for _ in range(2):
            self.source.advance(time.monotonic())
        return self.source.rate

    def _make_outputs(self) -> None:
        p = self.params
        world = p.world
        self.joints = joint_state(self.robot.joint_names)
        self.odometry = Odometry(child_frame_id=p.frame(self.robot.root_link))
        self.odometry.header.frame_id = world
        self.figure = MarkerArray(markers=[segments_marker("dancer", (0.2, 0.5, 0.9), 0.03, world)])
        self.points = target_markers(BODY_POINTS, world)
        self.edges = MarkerArray(markers=[segments_marker(e, (0.0, 0.0, 0.0), 0.012, world) for e in EDGES])
        for k, m in enumerate(self.edges.markers):
            m.id, m.lifetime.nanosec = k, int(1e9 * LIFETIME)
        self.joints_out = self.create_publisher(JointState, "reference_joint_states", STREAM_OUT)
        self.odometry_out = self.create_publisher(Odometry, "reference_odometry", STREAM_OUT)
        self.targets_out = self.create_publisher(MarkerArray, "targets", STREAM_OUT)
        self.figure_out = self.create_publisher(MarkerArray, "dancer", STREAM_OUT)
        self.contacts_out = self.create_publisher(MarkerArray, "contacts", STREAM_OUT)
        self.transforms = TransformOutput(self)
        serve_playback(self, self.source.serve)
        self.periods, self.frame_stamps = PeriodicStamps(round(1e9 / self.source.rate)), RisingStamps()

    def parameters_changed(self, changed: set[str]) -> None:
        if (source := getattr(self, "source", None)) is not None:
            source.change(self.params)

    def activate(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.source.begin()
        self.last, self.root = self.source.solver.joints.copy(), self.source.solver.root
        self.count, self.error, self.held = 0, float("nan"), False
        self.periods.restart()

    def tick(self, now: float) -> None:
        begin = time.perf_counter()
        passed = self.source.advance(now)
        if not passed:
            return
        self.took.add(time.perf_counter() - begin)
        solver = self.source.solver
        joints = solver.joints.copy()
        if not np.isfinite(joints).all():
            self.health.report("number", Level.ERROR, "a posture is not a number: restarted")
            self.begin()
            return
        self.held = solver.used_fallback == HELD
        text = f"the posture is held: the next one would be {1e3 * solver.clearance:.0f} mm from a collision"
        self.health.check("held", self.held, Level.WARN, text)
        ns = self.get_clock().now().nanoseconds
        stamp = self.source.stamp
        time_of = self.periods.next(ns) if stamp is None else stamp_of(self.frame_stamps.next(round(1e9 * stamp)))
        self.publish(joints, time_of, passed)
        self.count += 1

    def publish(self, joints: np.ndarray, stamp: Any, passed: float) -> None:
        """Publish joints and root, moved for `passed` [s]."""
        X, before = self.source.solver.root, self.root
        self.joints_out.publish(fill_joint_state(self.joints, stamp, joints, (joints - self.last) / passed))
        m = self.odometry
        m.header.stamp = stamp
        p, o = m.pose.pose.position, m.pose.pose.orientation
        p.x, p.y, p.z, o.x, o.y, o.z, o.w = pin.SE3ToXYZQUAT(X).tolist()
        v = pin.log6(before.actInv(X)).vector / passed
        linear, angular = m.twist.twist.linear, m.twist.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = v.tolist()
        self.odometry_out.publish(m)
        if self.transforms.sends:
            self.transforms.publish(base_transform(m))
        self.last, self.root = joints, X
        if self.count % self.params.show_every == 0:
            self._show(stamp)

    def _show(self, stamp: Any) -> None:
        solver, shown, bones = self.source.solver, self.source.shown(), self.source.skeleton()
        corners = solver.sole_corners()
        for e, marker in enumerate(self.edges.markers):
            on = bool(solver.contacts[e])
            marker.header.stamp, marker.text = stamp, ON if on else OFF
            marker.color, marker.points = HOLDS if on else SWINGS, points_of(corners[2 * e : 2 * e + 2])
        self.contacts_out.publish(self.edges)
        if shown is None or bones is None:
            return
        for marker, point in zip(self.points.markers, shown.tolist(), strict=True):
            marker.header.stamp = stamp
            marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = point
        self.targets_out.publish(self.points)
        left = self.root.rotation[:, 1] if abs(self.root.rotation[2, 1]) < 0.9 else np.array([0.0, 1.0, 0.0])
        aside = self.params.figure_offset * np.array([left[0], left[1], 0.0]) / np.hypot(left[0], left[1])
        figure = self.figure.markers[0]
        figure.header.stamp, figure.points = stamp, points_of(bones + aside)
        self.figure_out.publish(self.figure)
        self.error = solver.error(shown)

    def values(self) -> dict[str, Any]:
        p50, p99 = self.took.percentiles()
        solver = self.source.solver
        clearance = solver.clearance
        return {
            **self.source.values(),
            "contacts": " ".join(e for e, on in zip(EDGES, solver.contacts, strict=True) if on) or "none",
            "error_mm": round(1000 * self.error, 1),
            "clearance_m": f"{clearance:.4f}" if np.isfinite(clearance) else "far",
            "step_p50_ms": round(1000 * p50, 4),
            "step_p99_ms": round(1000 * p99, 4),
        }


def main() -> int:
    return main_of(WholeBodyStreamer)


if __name__ == "__main__":
    sys.exit(main())
