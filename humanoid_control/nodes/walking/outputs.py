"""Outputs of a walker: odometry, transforms, contacts, state, plan markers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Point32, Polygon
from nav_msgs.msg import Odometry
from std_msgs.msg import Bool, ColorRGBA, String
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.estimation.floating_base import BaseEstimate
from humanoid_control.nodes.base.messages import EVENTS, LATCHED, STREAM_OUT, stamp_of
from humanoid_control.nodes.base.transforms import TransformOutput, base_transform, transform
from humanoid_control.nodes.walking.requests import FOOTPRINT
from humanoid_control.robots import Robot
from humanoid_control.robots.footprint import footprint_polygon
from humanoid_control.walking import Walker, WalkReport
from humanoid_control.walking.feet import SIDES, Feet

ORIENTATION_STD, SPEED_STD, TURNING_STD = 5e-3, 0.02, 0.01  # [rad], [m/s], [rad/s] standard deviations of odometry
HEIGHT_STD, START_STD = 5e-3, 1e-3  # [m]
THICK, BALL, WIDTH = 0.012, 0.05, 0.01  # [m] thickness of a sole, diameter of a point, width of a line
FOOT_COLORS = ((0.2, 0.45, 0.9, 0.55), (0.9, 0.5, 0.15, 0.55))
ZMP_COLOR, DCM_COLOR, COM_COLOR = (0.85, 0.15, 0.15, 1.0), (0.1, 0.6, 0.3, 1.0), (0.9, 0.16, 0.63, 1.0)
EDGE_COLOR = (0.15, 0.15, 0.15, 0.9)
LIFETIME = 0.5  # [s] lifetime of the markers without a new message


class WalkOutputs:
    """Publishers of a robot localised by its own sensors.

    Attributes:
        X_odom_footprint: footprint (REP 120): centre of the soles, height of the lower one, yaw of the base.
        way: travelled distance [m].
    """

    def __init__(self, node: Any, robot: Robot, odom_frame: str, drift: float, state: str = "walking/state") -> None:
        """Create the publishers.

        Args:
            odom_frame: frame of odometry, without prefix.
            drift: standard deviation of the odometry position per distance.
        """
        frame = node.params.frame
        self.robot, self.frame, self.drift = robot, frame(odom_frame), drift
        self._root_frame, self._footprint_frame = frame(robot.root_link), frame(FOOTPRINT)
        self.odom = node.create_publisher(Odometry, "odom", STREAM_OUT)
        self._state = node.create_publisher(String, state, LATCHED)
        self._contacts = [node.create_publisher(Bool, f"contact/{s}_foot", STREAM_OUT) for s in SIDES]
        self._tf = TransformOutput(node)
        corners = footprint_polygon(robot)
        self._outline = Polygon(points=[Point32(x=float(x), y=float(y)) for x, y in corners])
        self._footprint, self._second = node.create_publisher(Polygon, "footprint", EVENTS), -1
        self._published_state = ""
        self.restart()

    def restart(self) -> None:
        """Restart odometry."""
        self.way, self._place = 0.0, None
        self.X_odom_footprint = pin.SE3.Identity()

    def publish_state(self, state: str) -> None:
        """Publish the state if it changed."""
        if state != self._published_state:
            self._published_state = state
            self._state.publish(String(data=state))

    @property
    def state(self) -> str:
        return self._published_state

    def publish(self, now: BaseEstimate, stamp: Time, touching: np.ndarray) -> None:
        """Publish odometry, transforms and contacts (2,)."""
        message = self.odometry(now, stamp)
        self.odom.publish(message)
        for publisher, touches in zip(self._contacts, touching, strict=True):
            publisher.publish(Bool(data=bool(touches)))
        if stamp.sec != self._second:  # repeated, because costmaps may start at any time
            self._second = stamp.sec
            self._footprint.publish(self._outline)
        if self._tf.sends:  # each frame has one parent, so footprint and base are both children of odom
            foot = transform(message.header.stamp, self.frame, self._footprint_frame, self.X_odom_footprint)
            self._tf.publish(base_transform(message), foot)

    def odometry(self, now: BaseEstimate, stamp: Time) -> Odometry:
        """Return the estimate as odometry; its twist in root link axes."""
        m = Odometry(child_frame_id=self._root_frame)
        m.header.stamp, m.header.frame_id = stamp, self.frame
        p, o = m.pose.pose.position, m.pose.pose.orientation
        p.x, p.y, p.z, o.x, o.y, o.z, o.w = now.q[:7].tolist()
        linear, angular = m.twist.twist.linear, m.twist.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = now.v[:6].tolist()
        place = now.q[:2].copy()
        if self._place is not None:
            self.way += float(np.linalg.norm(place - self._place))
        self._place = place
        m.pose.covariance = self._pose_covariance()
        m.twist.covariance = np.diag([SPEED_STD**2] * 3 + [TURNING_STD**2] * 3).ravel()
        X = pin.XYZQUATToSE3(now.q[:7])
        yaw = float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
        soles = np.array([S.translation for S in now.soles])
        middle = np.array([*soles[:, :2].mean(axis=0), soles[:, 2].min()])
        self.X_odom_footprint = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), middle)
        return m

    def _pose_covariance(self) -> np.ndarray:
        """Return the pose covariance, which grows with the distance."""
        along = START_STD**2 + (self.drift * self.way) ** 2
        return np.diag([along, along, HEIGHT_STD**2] + [ORIENTATION_STD**2] * 3).ravel()


def plan_markers(walker: Walker, report: WalkReport, stamp: int, frame: str) -> MarkerArray:
    """Return markers of the plan.

    Namespaces: l_foot, r_foot (as on `footsteps`), zmp (commanded), dcm and com (estimated), support.

    Args:
        stamp: stamp [ns].
    """
    plan, now = walker.plan, report.estimate
    out, names = [], [f"{s}_foot" for s in SIDES]
    phases = [p for p in plan.phases if p.land > walker.t]
    for k, phase in enumerate(phases):
        foot = phase.step.foot
        out.append(sole_marker(names[foot], k, walker.feet, foot, phase.step.X))
    ground = min(X.translation[2] for X in report.references.soles)
    xi = now.center[:2] + now.center_velocity[:2] / plan.path.omega
    out.append(ball("zmp", [*report.balance.zmp, ground], ZMP_COLOR))
    out.append(ball("dcm", [*xi, ground], DCM_COLOR))
    out.append(ball("com", now.center, COM_COLOR))
    polygon = walker.stabilizer.polygon(report.references)
    edges = marker("support", 0, Marker.LINE_LIST, (WIDTH, 0.0, 0.0), EDGE_COLOR)
    corners = [Point(x=float(x), y=float(y), z=float(ground) + THICK) for x, y in polygon]
    edges.points = [p for k in range(len(corners)) for p in (corners[k - 1], corners[k])]
    out.append(edges)
    for m in out:
        m.header.stamp, m.header.frame_id = stamp_of(stamp), frame
    return MarkerArray(markers=out)


def sole_marker(ns: str, number: int, feet: Feet, foot: int, X: pin.SE3) -> Marker:
    low, high = feet.lower[foot], feet.upper[foot]
    m = marker(ns, number, Marker.CUBE, (*(high - low), THICK), FOOT_COLORS[foot])
    at = X * pin.SE3(np.eye(3), np.array([*(0.5 * (low + high)), 0.5 * THICK]))
    p, o = m.pose.position, m.pose.orientation
    p.x, p.y, p.z, o.x, o.y, o.z, o.w = pin.SE3ToXYZQUAT(at).tolist()
    return m


def ball(ns: str, at: Any, color: tuple[float, ...]) -> Marker:
    m = marker(ns, 0, Marker.SPHERE, (BALL, BALL, BALL), color)
    p = m.pose.position
    p.x, p.y, p.z = (float(x) for x in at)
    return m


def marker(ns: str, number: int, kind: int, size: Any, color: tuple[float, ...]) -> Marker:
    m = Marker(ns=ns, id=number, type=kind, action=Marker.ADD)
    m.pose.orientation.w = 1.0
    m.scale.x, m.scale.y, m.scale.z = (float(s) for s in size)
    m.color = ColorRGBA(**dict(zip("rgba", color, strict=True)))
    m.lifetime = Duration(nanosec=int(1e9 * LIFETIME))
    return m


def figures_of(r: WalkReport | None) -> dict[str, float]:
    """Return figures of a tick, initially 0."""
    return {
        "zmp_cut_mm": round(1e3 * r.balance.cut, 2) if r is not None else 0.0,
        "slip_mm_s": round(1e3 * float(np.max(r.estimate.slip)), 2) if r is not None else 0.0,
        "yaw_torque_nm": round(r.reaction.yaw_torque, 2) if r is not None else 0.0,
        "friction_used": round(r.reaction.friction, 3) if r is not None else 0.0,
        "sole_turned_deg": round(float(np.degrees(np.abs(r.estimate.turned).max())), 2) if r is not None else 0.0,
        "bias_mm": round(1e3 * float(np.hypot(*r.bias)), 2) if r is not None else 0.0,
    }
