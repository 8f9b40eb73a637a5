"""Torque gate between policy and drives: keeps range, speed and distances of shapes.

At every step of the PD loop, with measured q, v and joint-space inertia M of the floating robot with armature, in this
order, each result clipped to the torque limits:

1. PD with feed-forward.
2. Range: if q + h v leaves the range, torque at most M_jj ((limit - q) / h - v) / T towards it, less tau_max for each
0.03 rad beyond it; mirrored below.
3. Speed: if |v| > 0.8 of the limit, torque along v at most tau_max (0.9 v_max - |v|) / (0.1 v_max): zero at 0.9 of the
limit, full braking at the limit.
4. Pairs of shapes nearer than 120 mm: if d + h d' < margin, torque on the arm, or on hip roll and yaw, so that the
distance grows at least as ((margin - d) / h - d') / T.

Without an active rule the torque equals the PD torque bit by bit. Torque limits are guaranteed; range, speed and
distances are kept as far as the torque allows. The range has no margin: the horizon h makes the rule act before it
ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pair_distance import PairJoints, PairsFound
from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses
from humanoid_control.kinematics.joint_inertia import ModelInertia
from humanoid_control.policy.gate_kernels import (
    PAIRS,
    RANGE,
    SANE,
    SPEED,
    UNMEASURED,
    GateArrays,
    GateRules,
    keep_volumes_apart,
    limit_torques,
)
from humanoid_control.policy.runner import PolicyTargets
from humanoid_control.robots import Robot
from humanoid_control.robots.closing_pairs import ClosingPairs
from humanoid_control.robots.self_collision import CollisionMonitor, ShapePairs


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
        torque_limit: (n,) [N m]; may change in place.
    """

    def __init__(self, robot: Robot, armature: np.ndarray, settings: GateSettings | None = None) -> None:
        """Create the gate.

        Args:
            robot: floating base.
            armature: rotor inertia at the joints (n,) [kg m^2].
        """
        self.robot, self.settings = robot, settings or GateSettings()
        self.torque_limit = robot.effort.copy()
        model = robot.model.copy()
        model.armature = np.concatenate([np.zeros(robot.iv), armature])
        self._monitor = CollisionMonitor.of(robot) if self.settings.pairs and len(robot.pairs) else None
        self._exempt = self._exempt_pairs()
        self._arrays = Packed(self._make_arrays(model))
        self.reset()

    def reset(self) -> None:
        """Reset the counters."""
        self.activity = GateActivity(joints=np.zeros(self.robot.n, dtype=int))

    def _exempt_pairs(self) -> np.ndarray:
        """Return the pairs that may touch (P,)."""
        if self._monitor is None:
            return np.zeros(0, dtype=bool)
        links = {s.name: s.link for s in self.robot.shapes}
        sides = (self._monitor.name(k) for k in range(self._monitor.count))
        exempt = (frozenset(links.get(name, name) for name in pair) in self.settings.exempt for pair in sides)
        return np.fromiter(exempt, dtype=bool, count=self._monitor.count)

    def _make_arrays(self, model: pin.Model) -> GateArrays:
        robot, s, monitor = self.robot, self.settings, self._monitor
        n, shapes = robot.n, monitor if isinstance(monitor, ShapePairs) else None
        rules = GateRules(s.horizon, s.settling, s.margin, s.near, s.range, s.speed)
        lower, upper, speed = (np.require(row, float, ["C", "W"]) for row in (robot.lower, robot.upper, robot.velocity))
        q = robot.q("neutral").copy()
        if robot.iq:
            q[: robot.iq] = pin.SE3ToXYZQUAT(pin.SE3.Identity())
        count = monitor.count if monitor is not None else 0
        none = PairJoints(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
        inertia, raw, tau = np.zeros((3, n))
        return GateArrays(
            rules=rules,
            target=np.zeros((5, n)),
            measured=np.zeros((2, n)),
            q=q,
            v=np.zeros(robot.nv),
            lower=lower,
            upper=upper,
            speed=speed,
            limit=self.torque_limit,
            inertia=inertia,
            raw=raw,
            tau=tau,
            tree=ModelTree.of(model),
            world=WorldPoses.of(model.njoints, model.njoints),
            body=ModelInertia.of(model),
            pairs=ClosingPairs.of(robot, shapes, np.flatnonzero(self._exempt)),
            found=PairsFound.buffer(count),
            sides=none if monitor is None else monitor.joints.record,
            separating=np.zeros((0, n)) if monitor is None else _pair_joints(robot, monitor),
            gradient=np.zeros((count, n)),
            closing=np.zeros(count, dtype=np.int64),
            solved=np.zeros(robot.nv),
        )

    def torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return torque (n,) [N m], always finite and within limits.

        An unmeasured (NaN) joint gets none; the others use its last position.

        Args:
            targets: finite gains.
            q: measured (n,) [rad].
            v: measured (n,) [rad/s].
        """
        a, table, count = self._arrays.record, self._arrays.table, self.activity
        for row, values in zip(a.target, targets, strict=True):
            row[:] = values
        a.measured[0], a.measured[1] = q, v
        changed = limit_torques(table)
        if changed & UNMEASURED:
            return self._torque_of_measured(targets, q, v)
        if self._monitor is not None and not len(a.pairs.pairs):
            changed |= keep_volumes_apart(table, self._find_near_volumes())
        count.steps += 1
        if changed:
            count.active += 1
            count.range += changed & RANGE != 0
            count.speed += changed & SPEED != 0
            count.pairs += changed & PAIRS != 0
            count.joints += a.tau != a.raw
        return a.tau.copy()

    def _torque_of_measured(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return torques with unmeasured joints at their last position, and without torque."""
        known = (np.abs(q) < SANE) & (np.abs(v) < SANE)
        place, speed = np.where(known, q, self._arrays.record.q[self.robot.iq :]), np.where(known, v, 0.0)
        tau = self.torque(PolicyTargets(*(np.where(known, row, 0.0) for row in targets)), place, speed)
        return np.where(known, tau, 0.0)

    def compile_volumes(self) -> None:
        """Compile what only robots with swept-sphere volumes use."""
        keep_volumes_apart(self._arrays.table, 0)

    def _find_near_volumes(self) -> int:
        """Fill the rows of near pairs of swept-sphere volumes, which have no motion bounds; return their number."""
        assert self._monitor is not None
        a = self._arrays.record
        near = self._monitor.update(a.q, np.where(self._exempt, -np.inf, self.settings.near))
        for memory, rows in zip(a.found, near.found, strict=True):
            memory[: len(near)] = rows
        return len(near)


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
