"""Markers of the inverse kinematics: shapes coloured by distance, near pairs, centre of mass, momentum."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.ik import IkResult
from humanoid_control.kinematics.centroidal import centroidal_momentum_map
from humanoid_control.nodes.base.messages import STREAM_OUT, WORLD, stamp_of
from humanoid_control.nodes.base.serialized_markers import IdlePublisher, SerializedMarkers
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.robots import Robot
from humanoid_control.robots.self_collision import BALL_PART, BOX_PART, CYLINDER_PART, ShapeParts

GREY, YELLOW, RED = np.array([0.62, 0.64, 0.67, 0.35]), np.array([0.98, 0.8, 0.1, 0.6]), np.array([0.9, 0.1, 0.1, 0.85])
AT_MARGIN = 1e-3  # [m] a pair that the solver keeps at the margin is red
PAIRS = 24  # lines at the most, the nearest ones
LIFETIME = 0.5  # [s] without a new message the markers go
METRES_PER_LINEAR = 0.03  # [m / (kg m/s)]
METRES_PER_ANGULAR = 0.15  # [m / (kg m^2/s)]
SHORTEST = 1e-3  # [m] an arrow has a direction at least
TYPES = {BALL_PART: Marker.SPHERE, CYLINDER_PART: Marker.CYLINDER, BOX_PART: Marker.CUBE}


class IkMarkers:
    """Publishes `ik_markers` between ticks, while somebody listens.

    Namespaces: shapes, near_pairs, closest_points, centre_of_mass, linear_momentum, angular_momentum.

    Attributes:
        idle_publisher: when messages are made, and how long they took.
    """

    def __init__(self, node: TickNode, robot: Robot) -> None:
        self.robot, self._node = robot, node
        publisher: Any = node.create_publisher(MarkerArray, "ik_markers", STREAM_OUT)
        self._parts, self._data = ShapeParts(robot), robot.model.createData()
        message, self._first = _message(self._parts)
        self._bytes = SerializedMarkers(message)
        self._pairs = robot.pairs
        self._moving_mass = float(sum(i.mass for i in list(robot.model.inertias)[1:]))
        self.idle_publisher = IdlePublisher(publisher)
        self._points, self._colors = np.zeros((2 * PAIRS, 3)), np.zeros((2 * PAIRS, 4))
        self._poses = np.tile([0.0, 0, 0, 0, 0, 0, 1], (1, 1))

    def publish(self, left: float, rate: float, result: IkResult, margin: float, activation: float) -> None:
        """Publish if it is time, somebody listens, and there is room before the next tick.

        Args:
            left: time to the next tick [s].
            rate: of the markers [Hz]; 0: none.
            result: of the last tick.
            margin, activation: distances at and below which a shape is red, and at which it begins to be yellow [m].
        """

        def write() -> bytes:
            return self.write(stamp_of(self._node.present()), result, margin, activation)

        self.idle_publisher.publish(left, rate, write)

    def write(self, stamp: Time, result: IkResult, margin: float, activation: float) -> bytes:
        """The serialized message of a tick."""
        t, near = self._bytes, result.near
        t.set_stamp(stamp)
        t.set_poses(0, self._parts.place(result.q))
        clearance = np.full(len(self.robot.shapes), np.inf)
        for side in self._pairs[near.pair].T:
            np.minimum.at(clearance, side, near.distance)
        t.set_colors(0, colors_of(clearance, margin, activation)[self._parts.shape])
        lines, dots, center, linear, angular = range(self._first, self._first + 5)
        self._write_pairs(lines, dots, result, margin, activation)
        momentum = centroidal_momentum_map(self.robot.model, self._data, result.q)
        com = self._center_of_mass(momentum.center)
        self._poses[0, :3] = com
        t.set_poses(center, self._poses)
        for marker, J, scale in (
            (linear, momentum.linear, METRES_PER_LINEAR),
            (angular, momentum.angular, METRES_PER_ANGULAR),
        ):
            arrow = scale * (J @ result.v)
            long = np.linalg.norm(arrow) > SHORTEST
            t.set_points(marker, np.array([com, com + (arrow if long else [0.0, 0.0, SHORTEST])]))
        return t.bytes()

    def _center_of_mass(self, moving: np.ndarray) -> np.ndarray:
        """Centre of mass of all links, those held included, from that of the moving ones."""
        held, m = self.robot.model.inertias[0], self._moving_mass
        return (m * moving + held.mass * held.lever) / (m + held.mass)

    def _write_pairs(self, lines: int, dots: int, result: IkResult, margin: float, activation: float) -> None:
        near, t = result.near, self._bytes
        order = np.argsort(near.distance)[:PAIRS]
        order = order[near.distance[order] < activation]
        for marker in (lines, dots):
            t.show(marker, len(order) > 0)
        if not len(order):
            return
        k = np.concatenate([order, np.full(PAIRS - len(order), order[-1])])  # the rest lies on the last one
        self._points[0::2], self._points[1::2] = near.point_1[k], near.point_2[k]
        colors = colors_of(near.distance[k], margin, activation)
        colors[:, 3] = 1.0
        self._colors[0::2], self._colors[1::2] = colors, colors
        for marker in (lines, dots):
            t.set_points(marker, self._points, self._colors)


def colors_of(distance: np.ndarray, margin: float, activation: float) -> np.ndarray:
    """Colours (K, 4) of distances (K,) [m]: grey beyond the activation, to yellow at the margin, red from there on."""
    share = np.clip((activation - distance) / max(activation - margin, 1e-9), 0.0, 1.0)[:, None]
    return np.where((distance <= margin + AT_MARGIN)[:, None], RED, GREY + share * (YELLOW - GREY))


def _message(parts: ShapeParts) -> tuple[MarkerArray, int]:
    """The markers as they stay, and the index of the first one that is no shape."""
    array = MarkerArray()
    for k, (kind, size) in enumerate(zip(parts.kind.tolist(), parts.size.tolist(), strict=True)):
        array.markers.append(_marker("shapes", k, TYPES[kind], size))
    lines = _marker("near_pairs", 0, Marker.LINE_LIST, (0.006, 0.0, 0.0))
    dots = _marker("closest_points", 0, Marker.SPHERE_LIST, (0.018, 0.018, 0.018))
    for m in (lines, dots):
        m.points, m.colors = [Point() for _ in range(2 * PAIRS)], [ColorRGBA() for _ in range(2 * PAIRS)]
    center = _marker("centre_of_mass", 0, Marker.SPHERE, (0.05, 0.05, 0.05), (0.9, 0.16, 0.63, 0.9))
    linear = _marker("linear_momentum", 0, Marker.ARROW, (0.014, 0.03, 0.05), (0.1, 0.6, 0.6, 0.9))
    angular = _marker("angular_momentum", 0, Marker.ARROW, (0.014, 0.03, 0.05), (0.45, 0.2, 0.8, 0.9))
    for m in (linear, angular):
        m.points = [Point(), Point(z=SHORTEST)]
    first = len(array.markers)
    array.markers += [lines, dots, center, linear, angular]
    return array, first


def _marker(ns: str, number: int, kind: int, scale: Any, color: Any = GREY) -> Marker:
    m = Marker(ns=ns, id=number, type=kind, action=Marker.ADD)
    m.header.frame_id = WORLD
    m.pose.orientation.w = 1.0
    m.scale.x, m.scale.y, m.scale.z = (float(s) for s in scale)
    m.color = ColorRGBA(**dict(zip("rgba", (float(c) for c in color), strict=True)))
    m.lifetime = Duration(nanosec=int(1e9 * LIFETIME))
    return m
