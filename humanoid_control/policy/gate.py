"""Gate on torques between a policy and its drives: limits of range and speed are kept, and the body is kept apart.

A target of a PD loop is a torque, not a place: a limit on the *target's* rate takes torque away at the moment it keeps
the balance. So a command is judged by the motion that it causes, not by itself. At every step of the PD loop, with q
and v measured and M the joint-space inertia of the floating robot with armature, in this order, each result clipped
to the torque limits:

1. PD with feed-forward.
2. Range: where q + h v leaves the range, torque at most M_jj ((limit - q) / h - v) / T toward it; mirrored below.
3. Speed: where |v| > 0.8 of the limit, torque with it at most tau_max (0.9 v_max - |v|) / (0.1 v_max): none is left at
   0.9 of the limit, and at the limit all of it brakes.
4. Pairs of shapes nearer than 120 mm: where d + h d' < margin, torque on the arm, or on hip roll and yaw, so that the
   distance grows at least as ((margin - d) / h - d') / T.

Nothing else is touched: where no rule acts, the torque is that of the PD loop, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.numerics.packed import Packed
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
    """Constants of the gate, as measured on eight runs of six policies of a G1.

    Attributes:
        horizon: h, over which the motion is predicted [s]; longer ones act in far more steps and gain nothing.
        settling: T, in which a speed is to be reached [s].
        margin: distance of shapes that is kept [m].
        near: distance below which a pair is looked at [m].
        range, speed, pairs: which rules act.
        exempt: pairs of links that may touch, such as hands that a motion brings together.
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
    """How often the gate acted: a report, never a trigger.

    Attributes:
        steps: of the PD loop.
        active: in which some rule acted.
        range, speed, pairs: in which that rule acted.
        joints: (n,) steps in which the torque of a joint was changed.
    """

    steps: int = 0
    active: int = 0
    range: int = 0
    speed: int = 0
    pairs: int = 0
    joints: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))

    @property
    def share(self) -> float:
        """Steps in which some rule acted, as a share of all."""
        return self.active / max(self.steps, 1)


def pd_torque(targets: PolicyTargets, q: np.ndarray, v: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Torque (n,) of the PD loops with feed-forward, clipped to the limits [N m].

    Args:
        targets: with finite gains.
        q, v: (n,) measured [rad], [rad/s].
        limit: (n,) [N m].
    """
    tau = targets.kp * (targets.q - q) + targets.kd * (targets.v - v) + targets.tau
    clipped: np.ndarray = np.minimum(np.maximum(tau, -limit), limit)
    return clipped


class TorqueGate:
    """The gate of one robot.

    Attributes:
        settings: constants.
        activity: since the last reset.
        torque_limit: (n,) [N m].
    """

    def __init__(self, robot: Robot, armature: np.ndarray, settings: GateSettings | None = None) -> None:
        """Create the torque gate.

        Args:
            robot: with a base that floats.
            armature: (n,) rotor inertia seen at the joints [kg m^2].
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
        """Count again."""
        self.activity = GateActivity(joints=np.zeros(self.robot.n, dtype=int))

    def _near_distances(self) -> np.ndarray:
        """Distance (P,) below which each pair is looked at; below all for those that may touch [m]."""
        if self._monitor is None:
            return np.zeros(0)
        out = np.full(self._monitor.count, self.settings.near)
        links = {s.name: s.link for s in self.robot.shapes}
        for k in range(self._monitor.count):
            if frozenset(links.get(name, name) for name in self._monitor.name(k)) in self.settings.exempt:
                out[k] = -np.inf
        return out

    def torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Torque (n,) for the drives [N m]: finite and within the limits, whatever it is given.

        A joint with a NaN measurement gets no torque; the others use its last position.

        Args:
            targets: with finite gains.
            q, v: (n,) measured [rad], [rad/s].
        """
        if np.abs(q).max(initial=0.0) < SANE and np.abs(v).max(initial=0.0) < SANE:  # false where not a number
            return self._bounded_torque(targets, q, v)
        known = (np.abs(q) < SANE) & (np.abs(v) < SANE)
        place, speed = np.where(known, q, self._q[self.robot.iq :]), np.where(known, v, 0.0)
        tau = self._bounded_torque(PolicyTargets(*(np.where(known, row, 0.0) for row in targets)), place, speed)
        return np.where(known, tau, 0.0)

    def _bounded_torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """See `torque`; q and v are numbers."""
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
        if self._bounds is not None:  # farther pairs cannot come so near, however their joints turn
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
        # One pass: where torques are at their limits, further ones turn joints that part nothing.
        out = tau
        for k in np.flatnonzero(closing):
            goal = ((s.margin - near.distance[k]) / s.horizon - rate[k]) / s.settling
            g, direction = self._accelerations(J[k]), self._reach[near.pair[k]] * J[k]
            lack, reach = goal - g @ out, g @ direction
            if lack > 0.0 and reach > LEAST_REACH:
                out = np.minimum(np.maximum(out + lack / reach * direction, -self.torque_limit), self.torque_limit)
        return tau if np.array_equal(out, tau) else out

    def _accelerations(self, J: np.ndarray) -> np.ndarray:
        """Row (n,) g: a torque tau makes the distance with the gradient J accelerate by g tau; after `pin.crba`."""
        row = np.zeros(self.robot.nv)
        row[self.robot.iv :] = J
        pin.cholesky.decompose(self._model, self._data)
        solved: np.ndarray = pin.cholesky.solve(self._model, self._data, row)[self.robot.iv :]
        return solved


SANE = 1e6  # [rad], [rad/s] beyond which a measurement is none
SLACK = 1e-6  # [m] of a distance: round-off
LEAST_REACH = 1e-6  # [m^2/(kg m^2)] of the joints that a pair may use: below it they cannot part it


def _pair_joints(robot: Robot, monitor: CollisionMonitor) -> np.ndarray:
    """Joints (P, n) that part each pair: 1 for those of the arm that is one of its sides, else for hip roll and yaw.

    Weights by effort limits over all joints would hand a hand's pair to hips and waist, and the robot falls.
    """
    arms, hips = arm_joints(robot), hip_joints(robot)
    columns = robot.ancestor_mask[:, robot.iv :].astype(bool)
    links = {f.name: f.parentJoint for f in robot.model.frames if f.type == pin.FrameType.BODY}
    shapes = {s.name: links[s.link] for s in robot.shapes}
    out = np.zeros((monitor.count, robot.n))
    for k in range(monitor.count):
        sides = [shapes.get(name, links.get(name, 0)) for name in monitor.name(k)]
        moved = np.array([columns[j] for j in sides])
        apart = moved[0] ^ moved[1]  # joints that move one side and not the other
        chosen = apart & arms
        if not chosen.any():
            chosen = apart & hips
        out[k] = chosen if chosen.any() else apart
    return out


def arm_joints(robot: Robot) -> np.ndarray:
    """Which joints (n,) move one wrist and not the other, and all that these carry."""
    columns = robot.ancestor_mask[:, robot.iv :].astype(bool)
    sides = [p for p in ("l_wrist", "r_wrist") if p in robot.points]
    if len(sides) < 2:
        return np.zeros(robot.n, dtype=bool)
    left, right = (columns[robot.model.frames[robot.points[p]].parentJoint] for p in sides)
    carried = columns[robot.model.njoints - robot.n :] & (left ^ right)
    arms: np.ndarray = carried.any(axis=1)
    return arms


def hip_joints(robot: Robot) -> np.ndarray:
    """Which joints (n,) roll and turn a hip: of the first three of each leg those whose axis is not sideward."""
    model, data = robot.model, robot.model.createData()
    pin.computeJointJacobians(model, data, robot.q("neutral"))
    columns = robot.ancestor_mask[:, robot.iv :].astype(bool)
    out = np.zeros(robot.n, dtype=bool)
    for foot in robot.feet:
        joint = model.frames[model.getFrameId(foot.link, pin.FrameType.BODY)].parentJoint
        for k in np.flatnonzero(columns[joint])[:3]:
            out[k] = abs(data.J[4, robot.iv + k]) < SIDEWARD
    return out


SIDEWARD = 0.7  # share of an axis along y from which a joint is one of pitch


def exempt_pairs(links: Iterable[tuple[str, str]]) -> tuple[frozenset[str], ...]:
    """Pairs of links that may touch, for `GateSettings`."""
    return tuple(frozenset(pair) for pair in links)


def named_pairs(text: str, robot: Robot) -> tuple[frozenset[str], ...]:
    """Return the pairs of links in a text such as 'l_hand/r_hand, l_hand/torso', for `GateSettings`.

    Raises:
        ConfigError: not two links with a stroke between them. UnknownNameError: a link without shapes.
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
