"""What a performer publishes beside its commands: references, forces, and the plan as markers."""

from __future__ import annotations

from itertools import chain
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
from humanoid_control.performing import DynamicMotion, WholeBodyController
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.performing.whole_body_controller import STAND
from humanoid_control.robots import Robot
from humanoid_control.walking.feet import SIDES, reaction_of
from humanoid_control.walking.support import convex_hull

COMING = 4  # landings that are shown
SHAFT, HEAD, HEAD_LENGTH = 0.025, 0.06, 0.08  # [m] of an arrow
FORCE_LENGTH, LEAST_FORCE = 0.6, 0.03  # [m] of the robot's weight; share of it that is shown
FORCE_COLOR, PLANNED_COLOR = (0.95, 0.55, 0.1, 1.0), (0.55, 0.2, 0.75, 1.0)
DRIFT = 0.01  # of odometry, as a share of the way


class PerformingOutputs:
    """Publishers of a performer.

    Attributes:
        base: odometry, contacts and state.
    """

    def __init__(self, node: Any, robot: Robot, odom_frame: str) -> None:
        """Make them; node: that they are of. robot: whose. odom_frame: of odometry and plan."""
        self.base = WalkOutputs(node, robot, odom_frame, DRIFT, "performing/state")
        self.robot, self.frame = robot, odom_frame
        self._joints = joint_state(robot.joint_names)
        self._joints_out = node.create_publisher(JointState, "reference_joint_states", STREAM_OUT)
        self._odometry_out = node.create_publisher(Odometry, "reference_odometry", STREAM_OUT)
        self._forces = [node.create_publisher(WrenchStamped, f"reference_wrench/{s}_foot", STREAM_OUT) for s in SIDES]
        self._time = node.create_publisher(Float64, "clip/time", STREAM_OUT)
        self._duration = node.create_publisher(Float64, "clip/duration", LATCHED)

    def begin(self, duration: float) -> None:
        """A motion is there; duration: of its clip [s]."""
        self._duration.publish(Float64(data=duration))

    def publish(self, c: WholeBodyController, stamp: Time) -> None:
        """Publish where the robot is and what it should do, at the time of the measurement."""
        assert c.estimate is not None
        self.base.publish(c.estimate, stamp, c.estimator.contacts.touching)
        m, k = c.motion, frame_of(c)
        self._joints_out.publish(fill_joint_state(self._joints, stamp, m.q[k, 7:], m.v[k, 6:], m.torque[k]))
        o = Odometry(child_frame_id=self.robot.root_link)
        o.header.stamp, o.header.frame_id = stamp, self.frame
        p, x = o.pose.pose.position, o.pose.pose.orientation
        p.x, p.y, p.z, x.x, x.y, x.z, x.w = m.q[k, :7].tolist()
        linear, angular = o.twist.twist.linear, o.twist.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = m.v[k, :6].tolist()
        self._odometry_out.publish(o)
        for f, publisher in enumerate(self._forces):
            w = WrenchStamped()
            w.header.stamp, w.header.frame_id = stamp, self.frame
            # About the reference of the sole, in the axes of the plan.
            arms = corners_of(c.soles, f, m.sole_rotation[k, f], m.sole_position[k, f]) - m.sole_position[k, f]
            force, torque = c.forces[f].sum(axis=0), np.cross(arms, c.forces[f]).sum(axis=0)
            w.wrench.force.x, w.wrench.force.y, w.wrench.force.z = force.tolist()
            w.wrench.torque.x, w.wrench.torque.y, w.wrench.torque.z = torque.tolist()
            publisher.publish(w)
        self._time.publish(Float64(data=float(m.clock[k])))


def frame_of(c: WholeBodyController) -> int:
    """The frame of the motion that a controller is at."""
    return int(np.clip(round(c.clock * c.motion.rate), 0, len(c.motion) - 1))


def corners_of(soles: RigidSoles, f: int, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Corners (4, 3) of a sole at a pose [m]."""
    return np.asarray(soles.corners[f] @ R.T + p)


def plan_markers(c: WholeBodyController, stamp: int, frame: str) -> MarkerArray:
    """What is to come and what is felt, to be seen.

    Namespaces: l_foot, r_foot: where the coming landings will be; l_force, r_force: felt under each foot, at its
    centre of pressure; zmp (felt), zmp_planned, dcm, com, support: the polygon of the soles that stand.

    Args:
        c: controller that has made a tick. stamp: [ns]. frame: of the markers.
    """
    out = [*_landings(c), *_forces(c), *_points(c), _support(c)]
    for m in out:
        m.header.stamp, m.header.frame_id = stamp_of(stamp), frame
    return MarkerArray(markers=out)


def _landings(c: WholeBodyController) -> list[Marker]:
    """Boxes where the feet come down next."""
    m, k = c.motion, frame_of(c)
    out = []
    for j, f in coming_landings(m, k):
        low, high = c.soles.corners[f].min(axis=0), c.soles.corners[f].max(axis=0)
        box = marker(f"{SIDES[f]}_foot", j, Marker.CUBE, (*(high - low)[:2], THICK), FOOT_COLORS[f])
        X = pin.SE3(m.sole_rotation[j, f], m.sole_position[j, f] + [*c.offset, 0.0])
        at = X * pin.SE3(np.eye(3), np.array([*(0.5 * (low + high))[:2], 0.5 * THICK]))
        p, o = box.pose.position, box.pose.orientation
        p.x, p.y, p.z, o.x, o.y, o.z, o.w = pin.SE3ToXYZQUAT(at).tolist()
        out.append(box)
    return out


def coming_landings(motion: DynamicMotion, frame: int) -> list[tuple[int, int]]:
    """The next landings after a frame, as (frame, foot), in the order of time."""
    lands = motion.stands[frame + 1 :] & ~motion.stands[frame:-1]
    rows, feet = np.nonzero(lands[: round(10.0 * motion.rate)])
    return [(frame + 1 + int(k), int(f)) for k, f in zip(rows[:COMING], feet[:COMING], strict=True)]


def _forces(c: WholeBodyController) -> list[Marker]:
    """Arrows of the forces that are felt."""
    out = []
    assert c.estimate is not None
    for f, (X, w) in enumerate(zip(c.estimate.soles, c.felt, strict=True)):
        if w[2] < LEAST_FORCE * c.weight:
            continue
        pressed = X.act(np.array([-w[4] / w[2], w[3] / w[2], 0.0]))
        tip = pressed + FORCE_LENGTH / c.weight * (X.rotation @ w[:3])
        arrow = marker(f"{SIDES[f]}_force", 0, Marker.ARROW, (SHAFT, HEAD, HEAD_LENGTH), FORCE_COLOR)
        arrow.points = [_point(pressed), _point(tip)]
        out.append(arrow)
    return out


def _points(c: WholeBodyController) -> list[Marker]:
    """Balls at the zero-moment point that is felt and the planned one, at the divergent component and at the mass."""
    e, k = c.estimate, frame_of(c)
    assert e is not None
    zmp, xi = reaction_of(e.soles, c.felt).zmp, e.center[:2] + e.center_velocity[:2] / c.omega
    return [
        ball("zmp", [*zmp, THICK], ZMP_COLOR),
        ball("zmp_planned", [*(c.motion.zmp[k] + c.offset), THICK], PLANNED_COLOR),
        ball("dcm", [*xi, THICK], DCM_COLOR),
        ball("com", e.center, COM_COLOR),
    ]


def _support(c: WholeBodyController) -> Marker:
    """Edges of the polygon of the corners that stand."""
    edges = marker("support", 0, Marker.LINE_LIST, (WIDTH, 0.0, 0.0), EDGE_COLOR)
    assert c.estimate is not None
    poses = [x[0] for x in c.soles.poses(c.robot, c.estimate.q[None])]
    standing = [f for f in (0, 1) if c.feet[f].state == STAND]
    if standing:
        corners = np.vstack([corners_of(c.soles, f, poses[0][f], poses[1][f])[:, :2] for f in standing])
        points = [_point([*xy, THICK]) for xy in convex_hull(corners)]
        edges.points = list(chain.from_iterable((points[i - 1], points[i]) for i in range(len(points))))
    return edges


def _point(at: Any) -> Point:
    x, y, z = (float(v) for v in at)
    return Point(x=x, y=y, z=z)
