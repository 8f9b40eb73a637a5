"""Tick of the resolved rate in one compiled call, for the known classes of tasks and objectives.

It doubles `ResolvedRate._step_by_step`, which stays for dependent rows, switching and custom classes. The
double pays: step by step, the same kernels with Python between them take 2.2 times as long for the row `tick_nullspace`
of `humanoid bench ik` (45 instead of 20.5 us), and 2.4 times for `tick_nullspace_free`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import PairJoints, PairsFound
from humanoid_control.collision.ssv.distance import measure_segments
from humanoid_control.collision.ssv.model import POSE_COLUMNS
from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.ik.free_velocities import DofMap, DofSelection, fill_downhill
from humanoid_control.ik.integrate import Integration, advance
from humanoid_control.ik.null_space.momentum_tracking import MODES, MomentumTracking, one_axis_rates
from humanoid_control.ik.null_space.objectives import (
    ComfortCost,
    JointLimitCost,
    Objective,
    SelfCollisionCost,
    fill_band_depth,
    repulsion_gradient,
)
from humanoid_control.ik.null_space.velocity_solver import SolverSettings, apply_velocity_limits
from humanoid_control.ik.null_space.weighted_step import factored_rows, null_part, task_part
from humanoid_control.ik.task_table import TableArrays, TaskTable, fill_rows, is_tabled
from humanoid_control.ik.tasks.task import Task
from humanoid_control.kinematics.joint_twists import fill_centroidal_map
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import ShapePairs, VolumePairs, monitor_shapes

NO_PAIRS, SHAPES, VOLUMES = range(3)
DONE, STEP_BY_STEP = range(2)
NUMBERS = 6  # residual, manipulability, both factors of the limits, finite, demand: the end of an outcome
NO_TABLE: Any = np.zeros(1, dtype=np.int64)
METHODS = ("cost", "gradient")
OWN = {kind: [getattr(kind, name) for name in METHODS] for kind in (JointLimitCost, ComfortCost, SelfCollisionCost)}
MOMENTUM_OWN = MomentumTracking.rates, MomentumTracking.place


class RatePairs(NamedTuple):
    """Pairs of a SelfCollisionCost, or none.

    Attributes:
        contact: s_0 of `repulsion` (P,).
        blend: t of `repulsion`.
    """

    kind: int
    table: Table[Any]
    poses: F2
    found: PairsFound
    joints: PairJoints
    activation: F1
    contact: F1
    blend: float


class RateMomentum(NamedTuple):
    """Parameters of a MomentumTracking about one axis.

    Attributes:
        row: centroidal map row; -1: no tracking.
        mu: see `one_axis_rates` [kg m^2].
    """

    row: int
    J: F2
    reference: F1
    reducing: I1
    limit: F1
    mode: int
    mu: float
    share: float
    clamp: bool


class RateTables(NamedTuple):
    """Tables and numbers of one tick.

    Attributes:
        band: width of a JointLimitCost at each limit [rad].
        posture: reference of a ComfortCost (n,) [rad].
        comfort: its weights (n,); 0 without one.
    """

    tasks: Table[TableArrays]
    dofs: DofMap
    mobility: F1
    pairs: RatePairs
    momentum: RateMomentum
    band: float
    band_weight: float
    posture: F1
    comfort: F1
    velocity: F1
    integration: Integration
    null_gain: float
    max_gain: float
    clamp: bool


# -------- Kernels


@kernel(allocates=True)
def rate_tick(table: Table[RateTables], q: np.ndarray, dt: float, out: np.ndarray) -> int:
    """Compute one tick.

    Args:
        out: next q (nq,), v (nv,) and NUMBERS numbers, filled.

    Returns:
        DONE, or STEP_BY_STEP for dependent rows (also tasks of weight 0): then nothing is filled.
    """
    t = unpack(table, RateTables)
    a = unpack(t.tasks, TableArrays)
    # The monitor has placed the joints if there are shapes; `fill_rows` then need not do it again.
    near = monitor_shapes(t.pairs.table, q, t.pairs.activation) if t.pairs.kind == SHAPES else 0
    fill_rows(t.tasks, q, t.max_gain / dt, t.pairs.kind == SHAPES)
    # Algorithm 4.3: one Cholesky factor for tasks and null space.
    w, WJ, U = factored_rows(a.J, t.mobility, 0.0)
    if not w > 0.0:
        return STEP_BY_STEP
    # Volumes use the joint poses that the task rows have computed.
    if t.pairs.kind == VOLUMES:
        near = measure_segments(t.pairs.table, a.world.R, a.world.p, t.pairs.poses, t.pairs.activation.max())
    z = _null_velocity(t, q, near, a.twists)
    task, demand = task_part(WJ, U, a.v), 0.0
    if t.momentum.row >= 0:
        demand = _add_momentum(t, a, task, z)
    # Project objectives and momentum into the null space of the tasks.
    null = null_part(a.J, WJ, U, z)
    _, v, finite, null_scale, speed_scale, residual = apply_velocity_limits(
        task, null, t.dofs.column, t.dofs.factor, t.velocity, t.clamp, a.J, a.v
    )
    advance(t.integration, q, v, dt, out)
    last = q.shape[0] + v.shape[0]
    out[last], out[last + 1], out[last + 2], out[last + 3] = residual, w, null_scale, speed_scale
    out[last + 4], out[last + 5] = 1.0 if finite else 0.0, demand
    return DONE


@kernel(allocates=True)
def _null_velocity(t: RateTables, q: np.ndarray, near: int, twists: np.ndarray) -> np.ndarray:
    nv, n = t.dofs.column.shape[0], t.posture.shape[0]
    iq, gradient, pairs = q.shape[0] - n, np.zeros(nv), t.pairs
    if pairs.kind != NO_PAIRS:
        f = pairs.found
        first = PairsFound(f.pair[:near], f.distance[:near], f.normal[:near], f.point_1[:near], f.point_2[:near])
        repulsion_gradient(twists, first, pairs.joints, pairs.activation, pairs.contact, pairs.blend, gradient)
    # Gradients of JointLimitCost and ComfortCost, diagonal in the joints.
    if t.band_weight > 0.0:
        depth = np.empty(n)
        fill_band_depth(q[iq:], t.integration.lower, t.integration.upper, t.band, 0.5, t.band_weight, depth)
        for i in range(n):
            gradient[nv - n + i] += depth[i]
    for i in range(n):
        gradient[nv - n + i] += t.comfort[i] * (q[iq + i] - t.posture[i])
    z = np.zeros(t.mobility.shape[0])
    fill_downhill(t.null_gain, gradient, t.dofs.column, t.dofs.factor, t.mobility, z)
    return z


@kernel(allocates=True)
def _add_momentum(t: RateTables, a: TableArrays, task: np.ndarray, z: np.ndarray) -> float:
    """Add to z (k,) the rates that cancel the momentum of the velocity `task` (k,), and return the demand."""
    m, nv = t.momentum, t.dofs.column.shape[0]
    # The task table computes the centroidal map for momentum tasks only.
    if not a.with_momentum:
        fill_centroidal_map(a.tree, a.world, a.links)
    v, rates = np.zeros(nv), np.zeros(nv)
    # Momentum row, and the task velocity in all columns, v = S u.
    for c in range(nv):
        m.J[0, c] = a.links.momentum[m.row, c]
        if t.dofs.column[c] >= 0:
            v[c] = t.dofs.factor[c] * task[t.dofs.column[c]]
    share = one_axis_rates(m.J[0], v, m.reducing, m.reference[0], m.mode, m.mu, m.limit, rates)
    # Scale all rates evenly, so that their direction stays along J^T.
    if m.clamp and share > 1.0:
        for c in range(nv):
            rates[c] /= share
    fill_downhill(1.0, rates, t.dofs.column, t.dofs.factor, t.mobility, z)
    return share * m.share


# -------- The tick of a solver


@dataclass(frozen=True)
class RateWork:
    """Work of one tick; numbers of objectives and momentum are read at each tick."""

    tasks: Sequence[Task]
    objectives: Sequence[Objective]
    momentum: MomentumTracking | None
    settings: SolverSettings
    dofs: DofSelection

    @property
    def is_known(self) -> bool:
        """True if all classes are compiled and have no replaced methods."""
        kinds = [type(o) for o in self.objectives]
        own = all(k in OWN and [getattr(k, name) for name in METHODS] == OWN[k] for k in kinds)
        m = self.momentum
        one_axis = m is None or (
            type(m) is MomentumTracking and (type(m).rates, type(m).place) == MOMENTUM_OWN and len(m.rows) == 1
        )
        measured = all(
            type(o.pairs) in (ShapePairs, VolumePairs) and o.pairs.count
            for o in self.objectives
            if isinstance(o, SelfCollisionCost)
        )
        return own and one_axis and measured and len(set(kinds)) == len(kinds) and all(map(is_tabled, self.tasks))

    def parts(self) -> list[Any]:
        """Return the packed objects; replacing one requires packing again."""
        parts: list[Any] = [*self.tasks, self.settings, self.dofs, self.dofs.mobility]
        for o in self.objectives:
            parts.append(o)
            if isinstance(o, SelfCollisionCost):
                parts += (o.pairs, o.activation, o.contact, o.blend)
            elif isinstance(o, ComfortCost):
                parts += (o.posture, o.weights)
            elif isinstance(o, JointLimitCost):
                parts += (o.band, o.weight)
        m = self.momentum
        return parts if m is None else [*parts, m, m.mode, m.mu, m.speed_share, m.clamp]


class CompiledRate:
    """Compiled tick of a solver, packed once for the same work."""

    def __init__(self, robot: Robot) -> None:
        """Prepare for a robot."""
        self._robot, self._size = robot, robot.nq + robot.nv + NUMBERS
        self._parts: list[Any] = []
        self._packed: Packed[RateTables] | None = None
        self._reference = np.zeros(1)

    def run(self, work: RateWork, q: np.ndarray, dt: float) -> np.ndarray | None:
        """Return the outcome (nq + nv + NUMBERS,) of `rate_tick`; None for unknown classes or dependent rows.

        Raises:
            ConfigError: if the target of a task was never set.
        """
        parts = work.parts()
        if len(parts) != len(self._parts) or not all(map(is_, parts, self._parts)):
            self._packed, self._parts = None, []
            self._packed = self._pack(work) if work.is_known else None
            self._parts = parts
        if self._packed is None:
            return None
        momentum, out = work.momentum, np.empty(self._size)
        if momentum is not None:
            self._reference[0] = momentum.reference[momentum.rows[0] - 3]
        return out if rate_tick(self._packed.table, q, dt, out) == DONE else None

    def _pack(self, work: RateWork) -> Packed[RateTables]:
        r, s, dofs, posture = self._robot, work.settings, work.dofs, np.zeros(self._robot.n)
        kinds: dict[type, Any] = {type(o): o for o in work.objectives}
        apart, limit = kinds.get(SelfCollisionCost), kinds.get(JointLimitCost)
        comfort = kinds.get(ComfortCost)
        shapes = apart.pairs if apart is not None and isinstance(apart.pairs, ShapePairs) else None
        self._table = TaskTable(r, dofs, work.tasks, None if shapes is None else shapes.poses.world)
        return Packed(
            RateTables(
                tasks=self._table.packed.table,
                dofs=dofs.map,
                mobility=dofs.mobility,
                pairs=self._pairs(apart),
                momentum=self._momentum(work.momentum),
                band=1.0 if limit is None else float(limit.band),
                band_weight=0.0 if limit is None else float(limit.weight),
                posture=posture if comfort is None else comfort.posture,
                comfort=posture if comfort is None else comfort.weights,
                velocity=r.velocity,
                integration=Integration.of(r, s.keep_range),
                null_gain=float(s.null_gain),
                max_gain=float(s.max_gain),
                clamp=s.clamp,
            )
        )

    def _pairs(self, cost: SelfCollisionCost | None) -> RatePairs:
        poses = np.zeros((self._robot.model.njoints, POSE_COLUMNS))
        if cost is None:
            no_joint = np.zeros(0, dtype=np.int64)
            joints, none = PairJoints(no_joint, no_joint, np.zeros((0, 0))), np.zeros(0)
            return RatePairs(NO_PAIRS, NO_TABLE, poses, PairsFound.buffer(0), joints, none, none, 0.0)
        pairs, joints = cost.pairs, cost.pairs.joints.record
        table: Table[Any]
        if isinstance(pairs, ShapePairs):
            kind, table, found = SHAPES, pairs.packed.table, pairs.arrays.found
        else:
            assert isinstance(pairs, VolumePairs)
            memory = pairs.segments.packed
            kind, table, found = VOLUMES, memory.table, memory.record.found.pairs
        return RatePairs(kind, table, poses, found, joints, cost.activation, cost.contact, float(cost.blend))

    def _momentum(self, m: MomentumTracking | None) -> RateMomentum:
        if m is None:
            none, nothing = np.zeros(0), np.zeros(0, dtype=np.int64)
            return RateMomentum(-1, np.zeros((1, self._robot.nv)), self._reference, nothing, none, 0, 0.0, 0.0, False)
        limit, mode = m.speed_share * m.speed, list(MODES).index(m.mode)
        return RateMomentum(
            int(m.rows[0]), m.J, self._reference, m.columns, limit, mode, float(m.mu), float(m.speed_share), m.clamp
        )
