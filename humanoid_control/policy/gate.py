"""Torque gate between policy and drives: keeps range, speed and distances of shapes.

At every step of the PD loop, with measured q, v and joint-space inertia M of the floating robot with armature, in this
order, each result clipped to the torque limits:

1. PD with feed-forward.
2. Range: if q + h v leaves the range, torque at most M_jj ((limit - q) / h - v) / T towards it; mirrored below.
3. Speed: if |v| > 0.8 of the limit, torque along v at most tau_max (0.9 v_max - |v|) / (0.1 v_max): zero at 0.9 of the
limit, full braking at the limit.
4. Pairs of shapes nearer than 120 mm: if d + h d' < margin, torque on the arm, or on hip roll and yaw, so that the
distance grows at least as ((margin - d) / h - d') / T.

Without an active rule the torque equals the PD torque bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.policy.gate_kernels import (
    RANGE,
    SPEED,
    GateArrays,
    close_loops,
    keep_range,
    keep_speed,
)
from humanoid_control.policy.runner import PolicyTargets
from humanoid_control.robots import Robot
from humanoid_control.robots.self_collision import CollisionMonitor


@dataclass(frozen=True)
class GateSettings:
    """Constants of the gate, fitted on six G1 policies.

    Attributes:
        horizon: h, prediction [s]; longer ones act more often without benefit.
        settling: T, time to reach a speed [s].
        margin: between shapes [m].
        near: distance of active pairs [m].
        exempt: pairs of links that may touch.
    """

    horizon: float = 0.020
    settling: float = 0.010
    margin: float = 0.005
    near: float = 0.120
    range: bool = True
    speed: bool = True
    pairs: bool = True
    exempt: tuple[frozenset[str], ...] = ()


@dataclass
class GateActivity:
    """Activity counters; for reports only.

    Attributes:
        active: steps with any rule active.
        joints: steps with a changed torque, by joint (n,).
    """

    steps: int = 0
    active: int = 0
    range: int = 0
    speed: int = 0
    pairs: int = 0
    joints: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))

    @property
    def share(self) -> float:
        """Share of steps with any rule active."""
        return self.active / max(self.steps, 1)


def pd_torque(targets: PolicyTargets, q: np.ndarray, v: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return PD torque with feed-forward, clipped (n,) [N m].

    Args:
        targets: finite gains.
        q: measured (n,) [rad].
        v: measured (n,) [rad/s].
        limit: (n,) [N m].
    """
    tau = targets.kp * (targets.q - q) + targets.kd * (targets.v - v) + targets.tau
    clipped: np.ndarray = np.minimum(np.maximum(tau, -limit), limit)
    return clipped


class TorqueGate:
    """Torque gate of one robot.

    Attributes:
        torque_limit: (n,) [N m].
    """

    def __init__(self, robot: Robot, armature: np.ndarray, settings: GateSettings | None = None) -> None:
        """Create the gate.

        Args:
            robot: floating base.
            armature: rotor inertia at the joints (n,) [kg m^2].
        """
        self.robot, self.settings = robot, settings or GateSettings()
        self.torque_limit = robot.effort.copy()
        self._model = robot.model.copy()
        self._model.armature = np.concatenate([np.zeros(robot.iv), armature])
        self._data = self._model.createData()
        self._q = robot.q("neutral").copy()
        if robot.iq:
            self._q[: robot.iq] = pin.SE3ToXYZQUAT(pin.SE3.Identity())
        self._monitor = CollisionMonitor.of(robot) if self.settings.pairs and len(robot.pairs) else None
        self._reach = _pair_joints(robot, self._monitor) if self._monitor is not None else np.zeros((0, robot.n))
        self._activation = self._near_distances()
        bounds = getattr(self._monitor, "motion_bound", None)  # volumes have none
        self._bounds = None if bounds is None else np.ascontiguousarray(bounds[:, robot.iv :])
        n, own = robot.n, self.settings
        lower, upper, speed = (np.require(row, float, ["C", "W"]) for row in (robot.lower, robot.upper, robot.velocity))
        q, v, inertia, tau = np.zeros((4, n))
        limit, h, T = self.torque_limit, own.horizon, own.settling
        self._arrays = Packed(GateArrays(np.zeros((5, n)), q, v, lower, upper, speed, limit, inertia, tau, h, T))
        self.activity = GateActivity(joints=np.zeros(robot.n, dtype=int))

    def reset(self) -> None:
        """Reset the counters."""
        self.activity = GateActivity(joints=np.zeros(self.robot.n, dtype=int))

    def _near_distances(self) -> np.ndarray:
        """Return activation distances (P,) [m]; -inf for exempt pairs."""
        if self._monitor is None:
            return np.zeros(0)
        out = np.full(self._monitor.count, self.settings.near)
        links = {s.name: s.link for s in self.robot.shapes}
        for k in range(self._monitor.count):
            if frozenset(links.get(name, name) for name in self._monitor.name(k)) in self.settings.exempt:
                out[k] = -np.inf
        return out

    def torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return torque (n,) [N m], always finite and within limits.

        An unmeasured (NaN) joint gets none; the others use its last position.

        Args:
            targets: finite gains.
            q: measured (n,) [rad].
            v: measured (n,) [rad/s].
        """
        if np.abs(q).max(initial=0.0) < SANE and np.abs(v).max(initial=0.0) < SANE:  # False for NaN
            return self._bounded_torque(targets, q, v)
        known = (np.abs(q) < SANE) & (np.abs(v) < SANE)
        place, speed = np.where(known, q, self._q[self.robot.iq :]), np.where(known, v, 0.0)
        tau = self._bounded_torque(PolicyTargets(*(np.where(known, row, 0.0) for row in targets)), place, speed)
        return np.where(known, tau, 0.0)

    def _bounded_torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Compute `torque` for finite q and v."""
        a, table, s, count = self._arrays.record, self._arrays.table, self.settings, self.activity
        for row, values in zip(a.target, targets, strict=True):
            row[:] = values
        a.q[:], a.v[:], self._q[self.robot.iq :] = q, v, q
        rules = close_loops(table)
        tau = raw = a.tau.copy()
        if s.range and rules & RANGE:
            a.inertia[:] = np.diagonal(pin.crba(self._model, self._data, self._q))[self.robot.iv :]
            if keep_range(table):
                count.range, tau = count.range + 1, a.tau.copy()
        if s.speed and rules & SPEED and keep_speed(table):
            count.speed, tau = count.speed + 1, a.tau.copy()
        if self._monitor is not None:
            apart = self._keep_apart(tau, v)
            count.pairs += apart is not tau
            tau = apart
        count.steps += 1
        if tau is not raw:
            count.active += 1
            count.joints += tau != raw
        return tau

    def _keep_apart(self, tau: np.ndarray, v: np.ndarray) -> np.ndarray:
        assert self._monitor is not None
        s, iv = self.settings, self.robot.iv
        reach = self._activation
        if self._bounds is not None:  # other pairs cannot come near within the horizon at these joint speeds
            closing_speed = self._bounds @ np.abs(v)
            reach = np.minimum(reach, s.margin + SLACK + s.horizon * closing_speed)
        near = self._monitor.update(self._q, reach)
        if not len(near):
            return tau
        pin.computeJointJacobians(self._model, self._data, self._q)
        J = near.gradient(self._data.J)[:, iv:]
        rate = J @ v
        closing = near.distance + s.horizon * rate < s.margin
        if not closing.any():
            return tau
        pin.crba(self._model, self._data, self._q)
        # one pass: with torques at their limits, more passes would only move joints that separate nothing
        out = tau
        for k in np.flatnonzero(closing):
            goal = ((s.margin - near.distance[k]) / s.horizon - rate[k]) / s.settling
            g, direction = self._accelerations(J[k]), self._reach[near.pair[k]] * J[k]
            lack, reach = goal - g @ out, g @ direction
            if lack > 0.0 and reach > LEAST_REACH:
                out = np.minimum(np.maximum(out + lack / reach * direction, -self.torque_limit), self.torque_limit)
        return tau if np.array_equal(out, tau) else out

    def _accelerations(self, J: np.ndarray) -> np.ndarray:
        """Return g (n,): torque tau accelerates the distance by g tau; after `pin.crba`."""
        row = np.zeros(self.robot.nv)
        row[self.robot.iv :] = J
        pin.cholesky.decompose(self._model, self._data)
        solved: np.ndarray = pin.cholesky.solve(self._model, self._data, row)[self.robot.iv :]
        return solved


SANE = 1e6  # [rad], [rad/s] beyond which a measurement is invalid
SLACK = 1e-6  # [m] round-off of a distance
LEAST_REACH = 1e-6  # [m^2/(kg m^2)] below which the permitted joints cannot separate a pair


def _pair_joints(robot: Robot, monitor: CollisionMonitor) -> np.ndarray:
    """Return joints (P, n) that separate each pair: of an arm on one side, else hip roll and yaw.

    With all joints weighted by effort limits, hips and waist would separate hands, and the robot would fall.
    """
    arms, hips = arm_joints(robot), hip_joints(robot)
    columns = robot.ancestor_mask[:, robot.iv :].astype(bool)
    links = {f.name: f.parentJoint for f in robot.model.frames if f.type == pin.FrameType.BODY}
    shapes = {s.name: links[s.link] for s in robot.shapes}
    out = np.zeros((monitor.count, robot.n))
    for k in range(monitor.count):
        sides = [shapes.get(name, links.get(name, 0)) for name in monitor.name(k)]
        moved = np.array([columns[j] for j in sides])
        apart = moved[0] ^ moved[1]  # joints that move exactly one side
        chosen = apart & arms
        if not chosen.any():
            chosen = apart & hips
        out[k] = chosen if chosen.any() else apart
    return out


def arm_joints(robot: Robot) -> np.ndarray:
    """Return joints (n,) that move exactly one wrist, and all joints they carry."""
    columns = robot.ancestor_mask[:, robot.iv :].astype(bool)
    sides = [p for p in ("l_wrist", "r_wrist") if p in robot.points]
    if len(sides) < 2:
        return np.zeros(robot.n, dtype=bool)
    left, right = (columns[robot.model.frames[robot.points[p]].parentJoint] for p in sides)
    carried = columns[robot.model.njoints - robot.n :] & (left ^ right)
    arms: np.ndarray = carried.any(axis=1)
    return arms


def hip_joints(robot: Robot) -> np.ndarray:
    """Return hip roll and yaw joints (n,)."""
    model, data = robot.model, robot.model.createData()
    pin.computeJointJacobians(model, data, robot.q("neutral"))
    columns = robot.ancestor_mask[:, robot.iv :].astype(bool)
    out = np.zeros(robot.n, dtype=bool)
    for foot in robot.feet:
        joint = model.frames[model.getFrameId(foot.link, pin.FrameType.BODY)].parentJoint
        for k in np.flatnonzero(columns[joint])[:3]:
            out[k] = abs(data.J[4, robot.iv + k]) < SIDEWARD
    return out


SIDEWARD = 0.7  # share of an axis along y above which a joint is a pitch joint


def exempt_pairs(links: Iterable[tuple[str, str]]) -> tuple[frozenset[str], ...]:
    """Return pairs of links for `GateSettings.exempt`."""
    return tuple(frozenset(pair) for pair in links)


def named_pairs(text: str, robot: Robot) -> tuple[frozenset[str], ...]:
    """Parse pairs such as 'l_hand/r_hand, l_hand/torso' for `GateSettings.exempt`.

    Raises:
        ConfigError: if a part is not two links.
        UnknownNameError: if a link has no shapes.
    """
    known = sorted({shape.link for shape in robot.shapes})
    out = []
    for part in (p.strip() for p in text.split(",") if p.strip()):
        links = [link.strip() for link in part.split("/")]
        if len(links) != 2 or links[0] == links[1]:
            raise ConfigError(f"may_touch: '{part}' must be two links, as in l_hand/r_hand")
        for link in links:
            if link not in known:
                raise UnknownNameError("link with shapes in may_touch", link, known)
        out.append((links[0], links[1]))
    return exempt_pairs(out)
