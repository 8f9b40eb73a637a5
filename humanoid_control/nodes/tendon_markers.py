"""The tendons as markers: their ways at the estimated angles, coloured by how far each is from what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.between_ticks import BetweenTicks
from humanoid_control.nodes.marker_template import MarkerTemplate
from humanoid_control.nodes.messages import WORLD
from humanoid_control.nodes.qos import STREAM_OUT
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.tendon_file import tendon_geometry
from humanoid_control.tendons.tendon_estimator import TendonEstimator

GREEN, YELLOW, RED = (np.array(c + [0.95]) for c in ([0.25, 0.7, 0.35], [0.98, 0.8, 0.1], [0.9, 0.1, 0.1]))
OUT = np.array([0.45, 0.2, 0.8, 0.6])  # left out
WIDTH = 0.006  # [m]
LIFETIME = 0.5  # [s]
SPARE_SEGMENTS = 16  # beyond those at first: ways get more of them where they bend around something
_GAP = np.full((1, 3), np.nan)


class TendonMarkers:
    """Publishes `tendon_markers` while somebody listens: one list of lines, in the frame `world`.

    A tendon is green where its length agrees with the others, yellow at half the gate of the filter, red at the gate,
    and violet where it is left out. Joints without tendons are drawn in the neutral posture.
    """

    def __init__(self, node: TickNode, robot: Robot, estimator: TendonEstimator) -> None:
        self._node, self.estimator = node, estimator
        publisher: Any = node.create_publisher(MarkerArray, "tendon_markers", STREAM_OUT)
        drawn = robot if robot.base == "fixed" else load_robot(node.params.robot, "fixed")
        self.geometry = tendon_geometry(drawn, joints=drawn.joint_names)
        self._theta = drawn.postures["neutral"].copy()
        self._joints = np.array([drawn.joint_index(name) for name in estimator.joint_names])
        self._order = [estimator.muscle_names.index(name) for name in self.geometry.tendon_names]
        self._rows = [np.array([estimator.muscle_names.index(m) for m in g.tendons]) for g in estimator.groups]
        self._size = 0
        self._template: MarkerTemplate | None = None
        self._timing = BetweenTicks(publisher)

    def spare(self, left: float, rate: float) -> None:
        """Publish if it is time, somebody listens, and there is room; left: time to the next tick [s], rate [Hz]."""
        self._timing.publish(left, rate, lambda: self.write(self._node.get_clock().now().to_msg()))

    def write(self, stamp: Time) -> bytes:
        """The serialized message for the estimate as it is."""
        points, colors = self.lines()
        if self._template is None or len(points) > self._size:
            self._size = len(points) + 2 * SPARE_SEGMENTS
            self._template = MarkerTemplate(_message(self._size))
        more = self._size - len(points)  # the rest lies on the last point
        points = np.concatenate([points, np.repeat(points[-1:], more, axis=0)])
        colors = np.concatenate([colors, np.repeat(colors[-1:], more, axis=0)])
        self._template.set_stamp(stamp)
        self._template.set_points(0, points, colors)
        return self._template.bytes()

    def lines(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends (2 S, 3) of the pieces of all ways in the world [m], and their colours (2 S, 4)."""
        self._theta[self._joints] = self.estimator.theta
        paths = self.geometry.paths(self._theta)
        rows = np.concatenate([part for path in paths for part in (path, _GAP)])
        tendon = np.repeat(self._order, [len(path) + 1 for path in paths])
        # between two tendons, and between the branches of a pulley, nothing runs
        drawn = np.isfinite(rows[:-1, 0]) & np.isfinite(rows[1:, 0])
        ends = np.stack([rows[:-1], rows[1:]], axis=1)[drawn].reshape(-1, 3)
        return ends, np.repeat(self.colors()[tendon[:-1][drawn]], 2, axis=0)

    def colors(self) -> np.ndarray:
        """(M, 4) by innovation, in the order of the estimator's tendons."""
        e, gate = self.estimator, self.estimator.settings.gate or 6.0
        score = np.zeros(len(e.muscle_names))
        for f, rows in zip(e.filters, self._rows, strict=True):
            score[rows] = np.maximum(score[rows], np.abs(np.nan_to_num(f.score)))
        share = np.clip(score / gate, 0.0, 1.0)[:, None]
        low = GREEN + np.minimum(2 * share, 1.0) * (YELLOW - GREEN)
        out = low + np.maximum(2 * share - 1.0, 0.0) * (RED - YELLOW)
        faults = e.faults
        out[faults.excluded | faults.missing | faults.slack] = OUT
        return out


def _message(points: int) -> MarkerArray:
    m = Marker(ns="tendons", id=0, type=Marker.LINE_LIST, action=Marker.ADD)
    m.header.frame_id = WORLD
    m.pose.orientation.w = 1.0
    m.scale.x = WIDTH
    m.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
    m.lifetime = Duration(nanosec=int(1e9 * LIFETIME))
    m.points, m.colors = [Point() for _ in range(points)], [ColorRGBA() for _ in range(points)]
    return MarkerArray(markers=[m])
