"""Table of tasks: weighted rows of many small tasks in one compiled call.

Points, centres of mass, orientations, poses, joints and momentum are blocks of rows. Their structure is read once;
targets, velocities, gains and weights are read at each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3, I1, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.compiled.settings import config
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.tasks.centroidal import (
    AngularMomentumTask,
    CenterOfMass,
    CenterOfMassTask,
    LimbCenterOfMass,
    LinearMomentumTask,
    MomentumTask,
)
from humanoid_control.ik.tasks.frames import FrameTask, OrientationTask
from humanoid_control.ik.tasks.joints import JointTask
from humanoid_control.ik.tasks.points import FramePoint, Point, PointsTask, PointTask
from humanoid_control.ik.tasks.task import Task, TaskGoal
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses, joint_poses
from humanoid_control.kinematics.joint_twists import LinkInertias, fill_centroidal_map, fill_twists
from humanoid_control.numerics.rotation import rotation_vector
from humanoid_control.robots.robot import Robot

# -------- Kernels

POINT, TURN, JOINT, MOMENTUM = range(4)
NONE = -1


class PointParts(NamedTuple):
    """P points, each a weighted mean of T points fixed in joints (a point on a link, or a centre of mass).

    Attributes:
        start: first term of each point (P + 1,).
        lever: point in the joint frame (T, 3) [m].
    """

    start: I1
    joint: I1
    share: F1
    lever: F2


class PlacedPoints(NamedTuple):
    """P points of N joints in the world.

    Attributes:
        x: positions, world frame (P, 3) [m].
        share: weight of each point carried by each joint (P, N).
        moment: weighted sum of the carried positions, world frame (P, N, 3) [m].
    """

    x: F2
    share: F2
    moment: F3

    @classmethod
    def of(cls, points: int, joints: int) -> PlacedPoints:
        """Allocate memory for a number of points and joints."""
        return cls(np.empty((points, 3)), np.empty((points, joints)), np.empty((points, joints, 3)))


class Blocks(NamedTuple):
    """B blocks of rows, each of one kind.

    Attributes:
        a: point of a POINT, joint of a JOINT, centroidal map row of a MOMENTUM (B,).
        b: origin of a POINT, or NONE (B,).
        frame_R: orientation of the frame in its joint (B, 3, 3).
        base: joint of the frame that gives the axes, or NONE (B,).
        base_R: orientation of this frame in its joint (B, 3, 3).
        at: index in the target of the task (B,); for a TURN, 1 for a rotation stored by columns.
    """

    kind: I1
    first: I1
    a: I1
    b: I1
    frame: I1
    frame_R: F3
    base: I1
    base_R: F3
    task: I1
    at: I1


class GoalTable(NamedTuple):
    """Table of the packed TaskGoal of a task, one indirection more."""

    words: Table[TaskGoal]


class Columns(NamedTuple):
    """Columns of the Jacobian."""

    support: F2
    joint: I1
    free: I1
    factor: F1


class TableArrays(NamedTuple):
    """Arrays of `fill_rows` for T tasks.

    Attributes:
        own: the first rows of J, filled here; custom tasks fill the rest before.
    """

    tree: ModelTree
    world: WorldPoses
    links: LinkInertias
    with_momentum: bool
    twists: F2
    parts: PointParts
    placed: PlacedPoints
    blocks: Blocks
    goals: I2
    columns: Columns
    matrices: F3
    own: F2
    J: F2
    v: F1


@kernel
def place_points(world: WorldPoses, parent: np.ndarray, parts: PointParts, out: PlacedPoints) -> None:
    """Compute positions of weighted points, and the share of each point that every joint carries."""
    R, p, count = world.R, world.p, parent.shape[0]
    for k in range(parts.start.shape[0] - 1):
        for j in range(count):
            out.share[k, j] = 0.0
            for c in range(3):
                out.moment[k, j, c] = 0.0
        for c in range(3):
            out.x[k, c] = 0.0
        for t in range(parts.start[k], parts.start[k + 1]):
            j, share = parts.joint[t], parts.share[t]
            x, y, z = parts.lever[t, 0], parts.lever[t, 1], parts.lever[t, 2]
            out.share[k, j] += share
            for c in range(3):
                at = p[j, c] + R[j, c, 0] * x + R[j, c, 1] * y + R[j, c, 2] * z
                out.moment[k, j, c] += share * at
                out.x[k, c] += share * at
        # Sum up the tree from the leaves: parents have smaller indices than their children.
        for j in range(count - 1, 0, -1):
            if out.share[k, j] == 0.0:
                continue
            out.share[k, parent[j]] += out.share[k, j]
            for c in range(3):
                out.moment[k, parent[j], c] += out.moment[k, j, c]


@kernel
def fill_rows(table: Table[TableArrays], q: np.ndarray, max_gain: float, placed: bool) -> None:
    """Fill the Jacobian and desired velocity of every block; tasks of weight 0 get zeros.

    Args:
        placed: True if the joint poses are already those of q.
    """
    t = unpack(table, TableArrays)
    if not placed:
        joint_poses(t.tree, q, t.world)
    fill_twists(t.tree, t.world, t.twists)
    if t.with_momentum:
        fill_centroidal_map(t.tree, t.world, t.links)
    place_points(t.world, t.tree.parent, t.parts, t.placed)
    t.own[:, :] = 0.0
    free, factor = t.columns.free, t.columns.factor
    nv, iq, iv = free.shape[0], 7 if t.tree.floating else 0, 6 if t.tree.floating else 0
    for k in range(t.blocks.kind.shape[0]):
        goal = unpack(unpack(t.goals[t.blocks.task[k]], GoalTable).words, TaskGoal)
        row, a, at, kind = t.blocks.first[k], t.blocks.a[k], t.blocks.at[k], t.blocks.kind[k]
        w, gain = goal.numbers[0], min(goal.numbers[1], max_gain)
        if w == 0.0:
            # Only the rates need zeros here: J was cleared as a whole.
            t.v[row : row + (3 if kind <= TURN else 1)] = 0.0
        elif kind == JOINT:
            if free[iv + a] != NONE:
                t.J[row, free[iv + a]] += w * factor[iv + a]
            t.v[row] = w * (goal.velocity[at] + gain * (goal.target[at] - q[iq + a]))
        elif kind == MOMENTUM:
            for c in range(nv):
                if free[c] != NONE:
                    t.J[row, free[c]] += w * factor[c] * t.links.momentum[a, c]
            t.v[row] = w * goal.target[at]
        else:
            _fill_vector(table, k, gain)


@kernel
def _fill_vector(table: Table[TableArrays], k: int, gain: float) -> None:
    """Fill block k, a POINT or TURN of nonzero weight, with its gain [1/s]."""
    # A call that passes the record itself copies 400 words, which takes 0.15 us.
    t = unpack(table, TableArrays)
    goal = unpack(unpack(t.goals[t.blocks.task[k]], GoalTable).words, TaskGoal)
    R, columns, block, J6 = t.world.R, t.columns, t.blocks, t.twists
    x, carried, moment = t.placed
    A0, A1, own, seen_R, vectors = t.matrices[0], t.matrices[1], t.matrices[2], t.matrices[3], t.matrices[4]
    error, column, d = vectors[0], vectors[1], vectors[2]
    row, w, a, b, base, at = block.first[k], goal.numbers[0], block.a[k], block.b[k], block.base[k], block.at[k]
    turned, turn = base != NONE, block.kind[k] == TURN
    # A0: orientation in the world of the frame that gives the axes; A1: of the frame that turns.
    if turned:
        _product(R[base], block.base_R[k], A0)
    if turn:
        w *= goal.numbers[2]
        _product(R[block.frame[k]], block.frame_R[k], A1)
        # `at` = 1: the goal stores the rotation by columns, otherwise by rows.
        for i in range(3):
            for j in range(3):
                seen_R[i, j] = goal.R[3 * j + i] if at else goal.R[3 * i + j]
        if turned:
            _product_transposed(A0, A1, own)
            rotation_vector(own, seen_R, error)
        else:
            rotation_vector(A1, seen_R, error)
        # Desired angular velocity: feed-forward plus gain times the rotation vector to the target.
        for i in range(3):
            t.v[row + i] = w * (goal.turn[i] + gain * error[i])
    else:
        for i in range(3):
            # Point relative to its origin, seen in the frame of the axes if there is one.
            d[i] = x[a, i] - (x[b, i] if b != NONE else 0.0)
        for i in range(3):
            seen = A0[0, i] * d[0] + A0[1, i] * d[1] + A0[2, i] * d[2] if turned else d[i]
            t.v[row + i] = w * (goal.velocity[at + i] + gain * (goal.target[at + i] - seen))
    for c in range(columns.free.shape[0]):
        to = columns.free[c]
        if to == NONE:
            continue
        # Twist column (linear o_v, angular o) of the joint: a point x that it carries moves at o_v + o x x.
        o0, o1, o2 = J6[3, c], J6[4, c], J6[5, c]
        if turn:
            s = columns.support[block.frame[k], c] - (columns.support[base, c] if turned else 0.0)
            if s == 0.0:
                continue
            column[0], column[1], column[2] = s * o0, s * o1, s * o2
        else:
            j = columns.joint[c]
            s, m0, m1, m2 = carried[a, j], moment[a, j, 0], moment[a, j, 1], moment[a, j, 2]
            # Columns that move point and origin alike cancel.
            if b != NONE:
                s -= carried[b, j]
                m0, m1, m2 = m0 - moment[b, j, 0], m1 - moment[b, j, 1], m2 - moment[b, j, 2]
            # The axes rotate with the base: subtract omega x d.
            if turned and columns.support[base, c] != 0.0:
                m0, m1, m2 = m0 - d[0], m1 - d[1], m2 - d[2]
            if s == 0.0 and m0 == 0.0 and m1 == 0.0 and m2 == 0.0:
                continue
            column[0] = s * J6[0, c] + o1 * m2 - o2 * m1
            column[1] = s * J6[1, c] + o2 * m0 - o0 * m2
            column[2] = s * J6[2, c] + o0 * m1 - o1 * m0
        f = w * columns.factor[c]
        # Rotate into the frame of the axes (A0^T) and map the joint velocity to its free velocity.
        for i in range(3):
            u = A0[0, i] * column[0] + A0[1, i] * column[1] + A0[2, i] * column[2] if turned else column[i]
            t.J[row + i, to] += f * u


@kernel
def _product(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@kernel
def _product_transposed(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    for i in range(3):
        for j in range(3):
            out[i, j] = A[0, i] * B[0, j] + A[1, i] * B[1, j] + A[2, i] * B[2, j]


# -------- Table of tasks

TABLED = (PointTask, PointsTask, CenterOfMassTask, OrientationTask, FrameTask, JointTask)
MOMENTA = {LinearMomentumTask: 0, AngularMomentumTask: 3}  # first row of the centroidal map
TABLED_POINTS = (FramePoint, CenterOfMass, LimbCenterOfMass)


def is_tabled(task: Task) -> bool:
    """Return True if `TaskTable` supports a task; subclasses may compute anything and are excluded."""
    if type(task) in MOMENTA:
        return True
    if type(task) not in TABLED:
        return False
    if not isinstance(task, PointTask):
        return True
    return all(p is None or type(p) in TABLED_POINTS for p in (task.point, task.origin))


class TaskTable:
    """Rows of tasks that `is_tabled` accepts; points and centres of mass are means of points fixed in joints.

    Attributes:
        rows: number of their rows.
        custom_rows: number of rows behind them, filled by custom tasks.
    """

    def __init__(
        self,
        robot: Robot,
        dofs: DofSelection,
        tasks: Sequence[Task],
        world: WorldPoses | None = None,
        custom_rows: int = 0,
    ) -> None:
        """Read the structure of the tasks.

        Raises:
            ConfigError: if the target of a task was never set.
        """
        self.robot, self.dofs, self.tasks, self.custom_rows = robot, dofs, list(tasks), custom_rows
        self._points: dict[int, tuple[Point, int]] = {}  # keeps the points alive, so that their ids stay unique
        self._start, self._parts = [0], []  # type: list[int], list[tuple[int, float, np.ndarray]]
        self._blocks: list[tuple[int, int, int, int, int, np.ndarray, int, np.ndarray, int, int]] = []
        self.parts: list[slice] = []
        self.rows = 0
        for k, task in enumerate(self.tasks):
            begin = self.rows
            self._add(task, k)
            self.parts.append(slice(begin, self.rows))
        levels = [np.full(p.stop - p.start, t.level) for t, p in zip(self.tasks, self.parts, strict=True)]
        self.level = np.concatenate([np.zeros(0), *levels]).astype(int)
        self._goals = PackedGoals(self.tasks)
        self.packed = Packed(self._arrays(world or WorldPoses.of(robot.model.njoints, robot.model.njoints)))

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskTable, (self.robot, self.dofs, self.tasks, None, self.custom_rows)

    # -- reading the tasks --------------------------------------------------------------------------------------

    def _add(self, task: Task, k: int) -> None:
        if isinstance(task, PointTask):
            b = NONE if task.origin is None else self._point(task.origin)
            self._block(k, POINT, 3, (self._point(task.point), b), base=task.axes)
        elif isinstance(task, PointsTask):
            for i, frame in enumerate(task.frames):
                self._block(k, POINT, 3, (self._point(FramePoint(self.robot, frame)), NONE), at=3 * i)
        elif isinstance(task, OrientationTask):
            self._block(k, TURN, 3, frame=task.frame, base=task.relative_to)
        elif isinstance(task, FrameTask):
            self._block(k, POINT, 3, (self._point(FramePoint(self.robot, task.frame)), NONE))
            self._block(k, TURN, 3, frame=task.frame, at=1)
        elif isinstance(task, JointTask):
            for i, j in enumerate(task.joints):
                self._block(k, JOINT, 1, (int(j), NONE), at=i)
        elif isinstance(task, MomentumTask):
            for axis in np.flatnonzero(task.axes).tolist():
                self._block(k, MOMENTUM, 1, (MOMENTA[type(task)] + axis, NONE), at=axis)

    def _block(
        self,
        task: int,
        kind: int,
        rows: int,
        ab: tuple[int, int] = (NONE, NONE),
        frame: int | None = None,
        base: int | None = None,
        at: int = 0,
    ) -> None:
        of_frame, of_base = self._frame_in_joint(frame), self._frame_in_joint(base)
        self._blocks.append((kind, self.rows, *ab, *of_frame, *of_base, task, at))
        self.rows += rows

    def _frame_in_joint(self, frame: int | None) -> tuple[int, np.ndarray]:
        """Return the joint that carries a frame, and the orientation of the frame in it."""
        if frame is None:
            return NONE, np.eye(3)
        f = self.robot.model.frames[frame]
        return int(f.parentJoint), np.array(f.placement.rotation)

    def _point(self, point: Point) -> int:
        if id(point) in self._points:
            return self._points[id(point)][1]
        model = self.robot.model
        if isinstance(point, FramePoint):
            f = model.frames[point.frame]
            parts = [(int(f.parentJoint), 1.0, f.placement.act(point.offset))]
        else:
            joints = point.joints if isinstance(point, LimbCenterOfMass) else range(model.njoints)
            total = sum(model.inertias[j].mass for j in joints)
            parts = [(j, model.inertias[j].mass / total, np.array(model.inertias[j].lever)) for j in joints]
        self._parts += parts
        self._start.append(len(self._parts))
        self._points[id(point)] = point, len(self._start) - 2
        return len(self._start) - 2

    def _arrays(self, world: WorldPoses) -> TableArrays:
        r, model, count = self.robot, self.robot.model, len(self._blocks)
        column_joint = np.zeros(r.nv, dtype=np.int64)
        for j in range(1, model.njoints):
            column_joint[model.joints[j].idx_v : model.joints[j].idx_v + model.joints[j].nv] = j
        parts = PointParts(
            np.array(self._start, dtype=np.int64),
            np.array([j for j, _, _ in self._parts], dtype=np.int64),
            np.array([s for _, s, _ in self._parts], dtype=float),
            np.array([x for _, _, x in self._parts], dtype=float).reshape(-1, 3),
        )
        fields = list(zip(*self._blocks, strict=True)) or [()] * len(Blocks._fields)
        turns = (np.int64, ()), (float, (3, 3))
        shapes = ((np.int64, ()),) * 4 + turns + turns + ((np.int64, ()),) * 2
        blocks = Blocks(
            *(np.array(f, dtype=t).reshape(count, *shape) for f, (t, shape) in zip(fields, shapes, strict=True))
        )
        J = np.empty((self.rows + self.custom_rows, self.dofs.k))
        return TableArrays(
            tree=ModelTree.of(model),
            world=world,
            links=LinkInertias.of(model),
            with_momentum=bool((blocks.kind == MOMENTUM).any()),
            twists=np.zeros((6, r.nv)),
            parts=parts,
            placed=PlacedPoints.of(len(self._start) - 1, model.njoints),
            blocks=blocks,
            goals=self._goals.table,
            columns=Columns(r.ancestor_mask, column_joint, self.dofs.column_of, self.dofs.factor),
            matrices=np.empty((5, 3, 3)),
            own=J[: self.rows],
            J=J,
            v=np.empty(self.rows + self.custom_rows),
        )

    # -- every tick ---------------------------------------------------------------------------------------------

    def fill(self, q: np.ndarray, max_gain: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian (rows, k) and desired velocity (rows,) at q (nq,); the next call reuses the arrays."""
        arrays = self.packed.record
        if self.rows:
            fill_rows(self.packed.table, q, max_gain, False)
        return arrays.J, arrays.v


class PackedGoals:
    """Goals of tasks for kernels.

    Attributes:
        table: words of the GoalTable of each task (T, 2); records without compilation.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        """Pack the goals.

        Raises:
            ConfigError: if the target of a task was never set.
        """
        self._goals = [Packed(task.goal()) for task in tasks]  # keeps their memory alive
        tables = [GoalTable(goal.table) for goal in self._goals]
        self.table: Any
        if config.DISABLE_JIT:
            self.table = np.empty(len(tables), dtype=object)
            for k, table in enumerate(tables):
                self.table[k] = table
        else:
            self.table = np.array([Packed(each).table for each in tables], dtype=np.int64).reshape(-1, 2)
