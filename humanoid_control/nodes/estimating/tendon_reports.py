"""Diagnostics of an estimate from tendons: faults, ground truth, markers, covariance."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Float64MultiArray, MultiArrayDimension
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.errors import first_few
from humanoid_control.nodes.base.messages import STREAM_OUT, floats, stamp_of, state_of
from humanoid_control.nodes.base.serialized_markers import IdlePublisher, SerializedMarkers
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.tendons import TendonEstimator
from humanoid_control.tendons.estimator.diagnosis import ChiSquareMean, Observability, nees, observability
from humanoid_control.tendons.mappings.mapping import Array

FAULT_PERIOD = 0.25  # [s] between updates of the faults
POSTURES = 12  # recent postures in the observability of relative measurements
OBSERVABILITY_PERIOD = 0.5  # [s] between observability checks of consecutive groups
ROOM, SMOOTH = 1.5, 0.2  # free time needed, in multiples of its mean cost; weight of the newest cost in the mean
MIXED = math.radians(15.0)  # [rad] uncertainty of a step, beyond which joint axes count as indistinguishable
NAMED = 4  # tendons named in one line
COMPARED = 8  # estimates waiting for ground truth of their time, and vice versa
SAME_STAMP = 1e-6  # [s]
COMPARISON_PERIOD = 0.02  # [s]
GREEN, YELLOW, RED = (np.array(c + [0.95]) for c in ([0.25, 0.7, 0.35], [0.98, 0.8, 0.1], [0.9, 0.1, 0.1]))
BLUE, SLACK = np.array([0.2, 0.4, 0.95, 0.95]), np.array([0.6, 0.6, 0.6, 0.35])
SLACK_SHARE = 0.5  # share of the minimum tension below which a tendon is drawn as slack
NO_MOST = 500.0  # [N] tension drawn red for tendons without a maximum
EXCLUDED = np.array([0.45, 0.2, 0.8, 0.6])
WIDTH = 0.006  # [m]
LIFETIME = 0.5  # [s]
MORE_SEGMENTS = 16  # spare segments: paths that wrap around bodies need more
GAP = np.full((1, 3), np.nan)
COVARIANCE_RATE = 50.0  # [Hz] maximum rate


def moment_arms_of(estimator: TendonEstimator, group: int) -> Observability:
    """Return the observability of a group's own joints at the current estimate."""
    f = estimator.filters[group]
    return observability(f.mapping.jacobian(f.theta)[:, : len(f.group.own)], f.group.own)


class TendonReport:
    """Diagnostics: innovation consistency, tendon faults, observability."""

    def __init__(self, node: TickNode, estimator: TendonEstimator) -> None:
        self.health, self.estimator = node.health, estimator
        self._nis = ChiSquareMean()
        self._faults_read = self._observed = 0.0
        self._cost, self._group = 1e-3, 0
        self._seen: dict[str, Observability] = {}
        self._here: dict[str, Observability] = {}
        self.faults: dict[str, str] = {}

    def add(self) -> None:
        self._nis.add(*self.estimator.nis)

    def update(self, now: float) -> None:
        """Report excluded tendons periodically."""
        if now - self._faults_read < FAULT_PERIOD:
            return
        self._faults_read = now
        self.faults = self.estimator.faults.report()
        named = first_few((f"{name} {why}" for name, why in self.faults.items()), NAMED, "; ")
        self.health.check("tendons", bool(named), Level.WARN, f"ignored: {named}")

    def slack_time(self, left: float) -> None:
        """Check the observability of one group, if time allows."""
        now = time.monotonic()
        if now - self._observed < OBSERVABILITY_PERIOD or (
            left < ROOM * self._cost and now - self._observed < 10 * OBSERVABILITY_PERIOD
        ):
            return
        self._observed = now
        k = self._group = (self._group + 1) % len(self.estimator.groups)
        self._seen[self.estimator.groups[k].name] = self.estimator.observability_of(k, POSTURES)
        self._here[self.estimator.groups[k].name] = moment_arms_of(self.estimator, k)
        self._cost += SMOOTH * (time.monotonic() - now - self._cost)
        blind = self._blind() if self.estimator.settings.observation == "absolute" else ""
        self.health.check("blind", bool(blind), Level.WARN, f"the lengths do not distinguish these joints: {blind}")
        mixed = "" if self.estimator.settings.observation == "absolute" else self._mixed()
        text = f"length changes do not distinguish these joints here, the estimate may keep an error: {mixed}"
        self.health.check("mixed", bool(mixed), Level.WARN, text)

    def _uncertain(self, here: Observability) -> float:
        """Return the standard deviation of a step in its least observable direction [rad]."""
        return math.sqrt(2.0) * self.estimator.settings.length_noise / max(here.smallest, 1e-9)

    def _mixed(self) -> str:
        """Return joints with indistinguishable axes by group."""
        mixed = (f"{name}: {', '.join(h.joints)}" for name, h in self._here.items() if self._uncertain(h) > MIXED)
        return "; ".join(mixed)

    def _blind(self) -> str:
        """Return unobservable joints by group."""
        return "; ".join(f"{name}: {', '.join(o.joints)}" for name, o in self._seen.items() if not o.observable)

    def values(self) -> dict[str, Any]:
        """Return figures; innovations since the last call."""
        e, nis = self.estimator, self._nis
        self._nis = ChiSquareMean()
        worst = int(np.argmax(e.deviation))
        out = {
            "groups": len(e.groups),
            "joints_estimated": len(e.joint_names),
            "tendons": len(e.muscle_names),
            "tendons_left_out": "; ".join(f"{n}: {why}" for n, why in self.faults.items()),
            "nis_per_degree": round(nis.per_degree, 3),
            "deviation_max_deg": round(float(np.rad2deg(e.deviation[worst])), 3),
            "deviation_max_joint": e.joint_names[worst],
            "recoveries": sum(f.recoveries for f in e.filters),
            "groups_doubted": ", ".join(f.group.name for f in e.filters if f.contradicted or not f.honest),
        }
        if self._seen:
            weakest = min(self._seen.values(), key=lambda o: (o.rank - len(o.direction), o.smallest))
            out["smallest_singular_value"] = f"{weakest.smallest:.3g}"
            out["weakest_joints"] = ", ".join(weakest.joints)
            out["unobservable"] = self._blind()
            least = min(self._here.values(), key=lambda o: o.smallest)
            out["step_uncertain_deg"] = round(math.degrees(min(self._uncertain(least), math.pi)), 2)
            out["step_uncertain_joints"] = ", ".join(least.joints)
        return out


class GroundTruthComparison:
    """Comparison of estimates with true joint states of equal stamps.

    Attributes:
        error: estimate minus truth at the last comparison (J,) [rad]; NaN for joints that the topic lacks.
    """

    def __init__(self, node: TickNode, estimator: TendonEstimator, topic: str) -> None:
        self.estimator = estimator
        self.error = np.full(len(estimator.joint_names), np.nan)
        self._own = [np.array([estimator.joint_names.index(j) for j in g.own]) for g in estimator.groups]
        self._estimates: deque[tuple[float, Array, list[Array]]] = deque(maxlen=COMPARED)
        self._truths: deque[tuple[float, Array]] = deque(maxlen=COMPARED)
        self._names: tuple[str, ...] = ()
        self._there = np.zeros(0, dtype=np.int64)
        self._nees, self._last = ChiSquareMean(), 0.0
        node.listen(JointState, topic, self._on_truth)

    def add(self, stamp: float) -> None:
        """Record the current estimate with its stamp [s]."""
        if abs(stamp - self._last) < COMPARISON_PERIOD:
            return
        filters = self.estimator.filters
        blocks = [f.P[: len(own), : len(own)].copy() for f, own in zip(filters, self._own, strict=True)]
        self._estimates.append((stamp, self.estimator.theta.copy(), blocks))
        self._compare()

    def _on_truth(self, m: JointState) -> None:
        truth = state_of(m)
        if np.isnan(truth.q).all():
            return
        if truth.names != self._names:
            self._names, known = truth.names, {name: k for k, name in enumerate(truth.names)}
            self._there = np.array([known.get(j, -1) for j in self.estimator.joint_names])
        self._truths.append((truth.stamp, np.append(truth.q, np.nan)[self._there]))
        self._compare()

    def _compare(self) -> None:
        for stamp, theta, blocks in self._estimates:
            truth = next((angles for t, angles in self._truths if abs(t - stamp) < SAME_STAMP), None)
            if truth is None:
                continue
            self.error = theta - truth
            for own, P in zip(self._own, blocks, strict=True):
                if np.isfinite(self.error[own]).all():
                    self._nees.add(nees(self.error[own], P), len(own))
            self._last = stamp
            self._estimates.clear()
            return

    def values(self) -> dict[str, Any]:
        """Return figures; NEES since the last call."""
        size = np.rad2deg(np.abs(self.error))
        if np.isnan(size).all():
            return {"compared": "nothing: no joint state at the time of a tendon sample"}
        mean, self._nees = self._nees, ChiSquareMean()
        worst = int(np.nanargmax(size))
        return {
            "nees_per_degree": round(mean.per_degree, 3),
            "error_mean_deg": round(float(np.nanmean(size)), 3),
            "error_max_deg": round(float(size[worst]), 3),
            "error_max_joint": self.estimator.joint_names[worst],
        }


class TendonMarkers:
    """Publisher of `tendon_markers`: one line list in the world frame.

    By `colour` innovation, tendons are green at zero, yellow at half the filter gate, red at the gate. By tension, they
    are blue at the minimum, green and yellow at one and two thirds of the range, red at the maximum, grey if slack.
    Excluded tendons are violet.

    Attributes:
        tensions: newest tensions (M,) [N], in estimator order; None if not measured.
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
        rows = {t.name: (t.min_tension or 10.0, min(t.max_tension, NO_MOST)) for t in self.geometry.tendons}
        self._range = np.array([rows[name] for name in estimator.muscle_names]).T
        self.tensions: Array | None = None
        self._size = 0
        self._bytes: SerializedMarkers | None = None
        self._idle_publisher = IdlePublisher(publisher)

    def publish(self, left: float, rate: float) -> None:
        """Publish if due, subscribed and short enough for `left` [s]."""
        self._idle_publisher.publish(left, rate, lambda: self.write(stamp_of(self._node.present())))

    def write(self, stamp: Time) -> bytes:
        points, colors = self.lines()
        if self._bytes is None or len(points) > self._size:
            self._size = len(points) + 2 * MORE_SEGMENTS
            self._bytes = SerializedMarkers(_message(self._size, self._node.params.world))
        more = self._size - len(points)  # unused points repeat the last point
        points = np.concatenate([points, np.repeat(points[-1:], more, axis=0)])
        colors = np.concatenate([colors, np.repeat(colors[-1:], more, axis=0)])
        self._bytes.set_stamp(stamp)
        self._bytes.set_points(0, points, colors)
        return self._bytes.bytes()

    def lines(self) -> tuple[np.ndarray, np.ndarray]:
        """Return segment ends (2 S, 3) in the world [m] and colours (2 S, 4)."""
        self._theta[self._joints] = self.estimator.theta
        paths = self.geometry.paths(self._theta)
        rows = np.concatenate([part for path in paths for part in (path, GAP)])
        tendon = np.repeat(self._order, [len(path) + 1 for path in paths])
        # no segment connects two tendons, or the branches of a pulley
        drawn = np.isfinite(rows[:-1, 0]) & np.isfinite(rows[1:, 0])
        ends = np.stack([rows[:-1], rows[1:]], axis=1)[drawn].reshape(-1, 3)
        return ends, np.repeat(self.colors()[tendon[:-1][drawn]], 2, axis=0)

    def colors(self) -> np.ndarray:
        """Return colours (M, 4) in estimator order."""
        if self.tensions is not None and self._node.params.colour == "tension":
            return self._colors_by_tension(self.tensions)
        e, gate = self.estimator, self.estimator.settings.gate or 6.0
        score = np.zeros(len(e.muscle_names))
        for f, rows in zip(e.filters, self._rows, strict=True):
            score[rows] = np.maximum(score[rows], np.abs(np.nan_to_num(f.score)))
        share = np.clip(score / gate, 0.0, 1.0)[:, None]
        low = GREEN + np.minimum(2 * share, 1.0) * (YELLOW - GREEN)
        out = low + np.maximum(2 * share - 1.0, 0.0) * (RED - YELLOW)
        return self._mark_left_out(out)

    def _colors_by_tension(self, tensions: Array) -> np.ndarray:
        least, most = self._range
        share = np.clip(3.0 * (np.nan_to_num(tensions) - least) / np.maximum(most - least, 1.0), 0.0, 3.0)[:, None]
        out = np.repeat(BLUE[None], len(tensions), axis=0)
        for k, (low, high) in enumerate(((BLUE, GREEN), (GREEN, YELLOW), (YELLOW, RED))):
            out = np.where(share > k, low + np.clip(share - k, 0.0, 1.0) * (high - low), out)
        out = self._mark_left_out(out)
        out[np.nan_to_num(tensions) < SLACK_SHARE * least] = SLACK
        return out

    def _mark_left_out(self, out: np.ndarray) -> np.ndarray:
        faults = self.estimator.faults
        out[faults.excluded | faults.missing | faults.slack] = EXCLUDED
        return out


def _message(points: int, frame: str) -> MarkerArray:
    m = Marker(ns="tendons", id=0, type=Marker.LINE_LIST, action=Marker.ADD)
    m.header.frame_id = frame
    m.pose.orientation.w = 1.0
    m.scale.x = WIDTH
    m.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
    m.lifetime = Duration(nanosec=int(1e9 * LIFETIME))
    m.points, m.colors = [Point() for _ in range(points)], [ColorRGBA() for _ in range(points)]
    return MarkerArray(markers=[m])


class TendonOutputs:
    """Publisher of `~/covariance` and `tendon_markers` between ticks."""

    def __init__(self, node: TickNode, robot: Robot, estimator: TendonEstimator) -> None:
        self.estimator = estimator
        self.markers = TendonMarkers(node, robot, estimator)
        self._covariance = node.create_publisher(Float64MultiArray, "~/covariance", STREAM_OUT)
        n = len(estimator.joint_names)
        names = ",".join(estimator.joint_names)
        self._message = Float64MultiArray()
        self._message.layout.dim = [
            MultiArrayDimension(label=names, size=n, stride=n * n),
            MultiArrayDimension(label=names, size=n, stride=n),
        ]
        self._own = [np.array([estimator.joint_names.index(j) for j in g.own]) for g in estimator.groups]
        self._next = 0.0

    def covariance(self) -> np.ndarray:
        """Return the joint covariance (J, J) [rad^2], zero between groups."""
        n = len(self.estimator.joint_names)
        out = np.zeros((n, n))
        for f, own in zip(self.estimator.filters, self._own, strict=True):
            out[np.ix_(own, own)] = f.P[: len(own), : len(own)]
        return out

    def slack_time(self, left: float, markers_rate: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0 / COVARIANCE_RATE
            if self._covariance.get_subscription_count():
                self._message.data = floats(self.covariance().ravel())
                self._covariance.publish(self._message)
        self.markers.publish(left, markers_rate)
