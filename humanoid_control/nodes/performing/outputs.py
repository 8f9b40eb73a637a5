"""Outputs of a performer besides commands: references, forces, plan markers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.nodes.base.messages import LATCHED, STREAM_OUT, fill_joint_state, joint_state, stamp_of
from humanoid_control.nodes.walking.outputs import (
    COM_COLOR,
    DCM_COLOR,
    EDGE_COLOR,
    FOOT_COLORS,
    THICK,
    WIDTH,
    ZMP_COLOR,
    WalkOutputs,
    ball,
    marker,
)
from humanoid_control.performing import WholeBodyController
from humanoid_control.performing.plan_view import corners_of, frame_of, plan_view
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.robots import Robot
from humanoid_control.walking.feet import SIDES

SHAFT, HEAD, HEAD_LENGTH = 0.025, 0.06, 0.08  # [m] sizes of an arrow
FORCE_LENGTH = 0.6  # [m] arrow length of the robot's weight
FORCE_COLOR, PLANNED_COLOR = (0.95, 0.55, 0.1, 1.0), (0.55, 0.2, 0.75, 1.0)
DRIFT = 0.01  # odometry drift per distance


class PerformingOutputs:
    """Publishers of a performer.

    Attributes:
        base: odometry, contacts and state.
    """

    def __init__(self, node: Any, robot: Robot, odom_frame: str) -> None:
        self.base = WalkOutputs(node, robot, odom_frame, DRIFT, "performing/state")
        self.frame, self._root_frame = node.params.frame(odom_frame), node.params.frame(robot.root_link)
        self._joints = joint_state(robot.joint_names)
        self._joints_out = node.create_publisher(JointState, "reference_joint_states", STREAM_OUT)
        self._odometry_out = node.create_publisher(Odometry, "reference_odometry", STREAM_OUT)
        self._forces = [node.create_publisher(WrenchStamped, f"reference_wrench/{s}_foot", STREAM_OUT) for s in SIDES]
        self._time = node.create_publisher(Float64, "clip/time", STREAM_OUT)
        self._duration = node.create_publisher(Float64, "clip/duration", LATCHED)

    def begin(self, duration: float) -> None:
        """Announce a motion with its clip duration [s]."""
        self._duration.publish(Float64(data=duration))

    def publish(self, c: WholeBodyController, stamp: Time) -> None:
        """Publish estimate and reference."""
        assert c.estimate is not None
        self.base.publish(c.estimate, stamp, c.estimator.contacts.touching)
        m, k = c.motion, frame_of(c)
        self._joints_out.publish(fill_joint_state(self._joints, stamp, m.q[k, 7:], m.v[k, 6:], m.torque[k]))
        o = Odometry(child_frame_id=self._root_frame)
        o.header.stamp, o.header.frame_id = stamp, self.frame
        p, x = o.pose.pose.position, o.pose.pose.orientation
        p.x, p.y, p.z, x.x, x.y, x.z, x.w = m.q[k, :7].tolist()
        linear, angular = o.twist.twist.linear, o.twist.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = m.v[k, :6].tolist()
        self._odometry_out.publish(o)
        for f, publisher in enumerate(self._forces):
            w = WrenchStamped()
            w.header.stamp, w.header.frame_id = stamp, self.frame
            # About the sole reference point, in the axes of the plan.
            arms = corners_of(c.soles, f, m.sole_rotation[k, f], m.sole_position[k, f]) - m.sole_position[k, f]
            force, torque = c.forces[f].sum(axis=0), np.cross(arms, c.forces[f]).sum(axis=0)
            w.wrench.force.x, w.wrench.force.y, w.wrench.force.z = force.tolist()
            w.wrench.torque.x, w.wrench.torque.y, w.wrench.torque.z = torque.tolist()
            publisher.publish(w)
        self._time.publish(Float64(data=float(m.clock[k])))


def plan_markers(c: WholeBodyController, stamp: int, frame: str) -> MarkerArray:
    """Return markers of the plan and of the measured forces.

    Namespaces: l_foot, r_foot: future landings; l_force, r_force: measured forces; zmp (measured), zmp_planned, dcm,
    com, support (polygon).

    Args:
        stamp: stamp [ns].
    """
    view = plan_view(c)
    out = [_landing(c.soles, *landing) for landing in view.landings]
    for f, (at, force) in view.forces.items():
        arrow = marker(f"{SIDES[f]}_force", 0, Marker.ARROW, (SHAFT, HEAD, HEAD_LENGTH), FORCE_COLOR)
        arrow.points = [_point(at), _point(at + FORCE_LENGTH / c.weight * force)]
        out.append(arrow)
    for ns, xy, color in (("zmp", view.zmp, ZMP_COLOR), ("zmp_planned", view.zmp_planned, PLANNED_COLOR)):
        out.append(ball(ns, [*xy, THICK], color))
    out += [ball("dcm", [*view.dcm, THICK], DCM_COLOR), ball("com", view.center, COM_COLOR)]
    edges = marker("support", 0, Marker.LINE_LIST, (WIDTH, 0.0, 0.0), EDGE_COLOR)
    points = [_point([*xy, THICK]) for xy in view.support]
    edges.points = [p for i in range(len(points)) for p in (points[i - 1], points[i])]
    out.append(edges)
    for m in out:
        m.header.stamp, m.header.frame_id = stamp_of(stamp), frame
    return MarkerArray(markers=out)


def _landing(soles: RigidSoles, number: int, f: int, X: pin.SE3) -> Marker:
    low, high = soles.corners[f].min(axis=0), soles.corners[f].max(axis=0)
    box = marker(f"{SIDES[f]}_foot", number, Marker.CUBE, (*(high - low)[:2], THICK), FOOT_COLORS[f])
    at = X * pin.SE3(np.eye(3), np.array([*(0.5 * (low + high))[:2], 0.5 * THICK]))
    p, o = box.pose.position, box.pose.orientation
    p.x, p.y, p.z, o.x, o.y, o.z, o.w = pin.SE3ToXYZQUAT(at).tolist()
    return box


def _point(at: Any) -> Point:
    x, y, z = (float(v) for v in at)
    return Point(x=x, y=y, z=z)
