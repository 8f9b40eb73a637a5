"""Table of tasks: rows of many small tasks under each other, weighted, by the free velocities, in one compiled call.

Points, centres of mass, orientations, poses, joints and momentum are blocks of rows. What a task is made of is read
when the table is made; targets, velocities, gains and weights stand in memory of the task, which the rows read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

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
from humanoid_control.jit import config, kernel
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses, joint_poses
from humanoid_control.kinematics.joint_twists import LinkInertias, fill_centroidal_map, fill_twists
from humanoid_control.numerics.array_types import F1, F2, F3, I1, I2
from humanoid_control.numerics.packed import Packed, Table, by_reference, unpack
from humanoid_control.numerics.rotation import rotation_vector
from humanoid_control.robots.robot import Robot

# -------- Kernels

POINT, TURN, JOINT, MOMENTUM = range(4)
NONE = -1


class PointParts(NamedTuple):
    """P points, each a weighted mean of points fixed in joints: a point on a link, or a centre of mass.

    Attributes:
        start: (P + 1,) where the parts of each point begin in the others.
        joint: (T,) joint of each term.
        share: (T,) share of each term.
        lever: (T, 3) point in the joint's frame [m].
    """

    start: I1
    joint: I1
    share: F1
    lever: F2


class PlacedPoints(NamedTuple):
    """P points of N joints in the world.

    Attributes:
        x: (P, 3) where they are [m].
        share: (P, N) share of each point that every joint carries.
        moment: (P, N, 3) this share times its position in the joint's frame.
    """

    x: F2
    share: F2
    moment: F3

    @classmethod
    def of(cls, points: int, joints: int) -> PlacedPoints:
        """Memory for so many."""
        return cls(np.empty((points, 3)), np.empty((points, joints)), np.empty((points, joints, 3)))


class Blocks(NamedTuple):
    """B blocks of rows, each of one kind.

    Attributes:
        kind: (B,) POINT, TURN, JOINT or MOMENTUM.
        first: (B,) first row of the block.
        a: (B,) point of a POINT, joint of a JOINT, row of the centroidal map of a MOMENTUM.
        b: (B,) origin of a POINT, NONE for the origin of the world.
        frame: (B,) joint of the frame of a TURN.
        frame_R: (B, 3, 3) orientation of this frame in the joint's frame.
        base: (B,) joint of the frame that gives the axes of a block, NONE for the world.
        base_R: (B, 3, 3) orientation of this frame in the joint's frame.
        task: (B,) task of the goal.
        at: (B,) index of the goal in the numbers of the task; of a TURN, 1 if its rotation is stored by columns,
            otherwise 0.
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
    """Table of the packed TaskGoal of a task: one step further, as each task has its own."""

    words: Table[TaskGoal]


class Columns(NamedTuple):
    """Columns of the Jacobian.

    Attributes:
        support: (N, nv) which columns move which joint.
        joint: (nv,) the joint of each column.
        free: (nv,) free velocity of each column, or NONE.
        factor: (nv,) its factor.
    """

    support: F2
    joint: I1
    free: I1
    factor: F1


@by_reference
class TableArrays(NamedTuple):
    """Arrays of `fill_rows`; of T tasks, of which one or more may be about momentum. J (m, k) and v (m,) are filled.

    `goals` are the words of the packed GoalTable of each task; `twists` (6, nv) are those of `fill_twists`;
    `matrices` (5, 3, 3) are memory.
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
    J: F2
    v: F1


@kernel
def place_points(world: WorldPoses, parent: np.ndarray, parts: PointParts, out: PlacedPoints) -> None:
    """Positions of weighted points, and the share of each that every joint carries.

    Args:
        world: poses of the joints.
        parent: (N,).
        parts: of the points.
        out: filled.
    """
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
        for j in range(count - 1, 0, -1):
            if out.share[k, j] == 0.0:
                continue
            out.share[k, parent[j]] += out.share[k, j]
            for c in range(3):
                out.moment[k, parent[j], c] += out.moment[k, j, c]


@kernel
def fill_rows(table: Table[TableArrays], q: np.ndarray, max_gain: float, placed: bool) -> None:
    """Jacobian and desired velocity of every block of a table; those of tasks of weight 0 are zero.

    Args:
        table: of the packed TableArrays.
        q: (nq,).
        max_gain: gains above it are taken as it [1/s].
        placed: the joints are where q has them already.
    """
    t = unpack(table, TableArrays)
    if not placed:
        joint_poses(t.tree, q, t.world)
    fill_twists(t.tree, t.world, t.twists)
    if t.with_momentum:
        fill_centroidal_map(t.tree, t.world, t.links)
    place_points(t.world, t.tree.parent, t.parts, t.placed)
    t.J[:, :] = 0.0
    free, factor = t.columns.free, t.columns.factor
    nv, iq, iv = free.shape[0], 7 if t.tree.floating else 0, 6 if t.tree.floating else 0
    for k in range(t.blocks.kind.shape[0]):
        goal = unpack(unpack(t.goals[t.blocks.task[k]], GoalTable).words, TaskGoal)
        row, a, at, kind = t.blocks.first[k], t.blocks.a[k], t.blocks.at[k], t.blocks.kind[k]
        w, gain = goal.numbers[0], min(goal.numbers[1], max_gain)
        if w == 0.0:
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
            _fill_vector(t, goal, k, gain)


@kernel
def _fill_vector(t: TableArrays, goal: TaskGoal, k: int, gain: float) -> None:
    """Rows of block k, a POINT or a TURN of some weight, with its gain [1/s]."""
    R, columns, block, J6 = t.world.R, t.columns, t.blocks, t.twists
    x, carried, moment = t.placed
    A0, A1, own, seen_R, vectors = t.matrices[0], t.matrices[1], t.matrices[2], t.matrices[3], t.matrices[4]
    error, column, d = vectors[0], vectors[1], vectors[2]
    row, w, a, b, base, at = block.first[k], goal.numbers[0], block.a[k], block.b[k], block.base[k], block.at[k]
    turned, turn = base != NONE, block.kind[k] == TURN
    if turned:
        _product(R[base], block.base_R[k], A0)
    if turn:
        w *= goal.numbers[2]
        _product(R[block.frame[k]], block.frame_R[k], A1)
        for i in range(3):
            for j in range(3):
                seen_R[i, j] = goal.R[3 * j + i] if at else goal.R[3 * i + j]
        if turned:
            _product_transposed(A0, A1, own)
            rotation_vector(own, seen_R, error)
        else:
            rotation_vector(A1, seen_R, error)
        for i in range(3):
            t.v[row + i] = w * (goal.turn[i] + gain * error[i])
    else:
        for i in range(3):
            d[i] = x[a, i] - (x[b, i] if b != NONE else 0.0)
        for i in range(3):
            seen = A0[0, i] * d[0] + A0[1, i] * d[1] + A0[2, i] * d[2] if turned else d[i]
            t.v[row + i] = w * (goal.velocity[at + i] + gain * (goal.target[at + i] - seen))
    for c in range(columns.free.shape[0]):
        to = columns.free[c]
        if to == NONE:
            continue
        o0, o1, o2 = J6[3, c], J6[4, c], J6[5, c]
        if turn:
            s = columns.support[block.frame[k], c] - (columns.support[base, c] if turned else 0.0)
            if s == 0.0:
                continue
            column[0], column[1], column[2] = s * o0, s * o1, s * o2
        else:
            j = columns.joint[c]
            s, m0, m1, m2 = carried[a, j], moment[a, j, 0], moment[a, j, 1], moment[a, j, 2]
            if b != NONE:
                s -= carried[b, j]
                m0, m1, m2 = m0 - moment[b, j, 0], m1 - moment[b, j, 1], m2 - moment[b, j, 2]
            if turned and columns.support[base, c] != 0.0:  # the axes turn under the point: - omega x d
                m0, m1, m2 = m0 - d[0], m1 - d[1], m2 - d[2]
            if s == 0.0 and m0 == 0.0 and m1 == 0.0 and m2 == 0.0:
                continue
            column[0] = s * J6[0, c] + o1 * m2 - o2 * m1
            column[1] = s * J6[1, c] + o2 * m0 - o0 * m2
            column[2] = s * J6[2, c] + o0 * m1 - o1 * m0
        f = w * columns.factor[c]
        for i in range(3):
            u = A0[0, i] * column[0] + A0[1, i] * column[1] + A0[2, i] * column[2] if turned else column[i]
            t.J[row + i, to] += f * u


@kernel
def _product(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """out := A B, (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]


@kernel
def _product_transposed(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """out := A^T B, (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = A[0, i] * B[0, j] + A[1, i] * B[1, j] + A[2, i] * B[2, j]


# -------- Table of tasks

TABLED = (PointTask, PointsTask, CenterOfMassTask, OrientationTask, FrameTask, JointTask)
MOMENTA = {LinearMomentumTask: 0, AngularMomentumTask: 3}  # first row of the centroidal map
TABLED_POINTS = (FramePoint, CenterOfMass, LimbCenterOfMass)


def is_tabled(task: Task) -> bool:
    """True for a task that a `TaskTable` knows; a subclass may compute anything, so it is none."""
    if type(task) in MOMENTA:
        return True
    if type(task) not in TABLED:
        return False
    if not isinstance(task, PointTask):
        return True
    return all(p is None or type(p) in TABLED_POINTS for p in (task.point, task.origin))


class TaskTable:
    """The rows of some tasks, all of which `is_tabled` accepts.

    A point is kept as a weighted mean of points fixed in joints, which covers centres of mass too.

    Attributes:
        robot: the robot.
        dofs: free velocities.
        tasks: the tasks.
        rows: how many there are.
        parts: of each task, which rows are its.
        level: (rows,) priority of each.
        packed: what `fill_rows` takes.
    """

    def __init__(
        self, robot: Robot, dofs: DofSelection, tasks: Sequence[Task], world: WorldPoses | None = None
    ) -> None:
        """Read what the tasks are made of.

        Args:
            robot: the robot.
            dofs: free velocities.
            tasks: which.
            world: memory for the poses of the robot's joints; default: of its own.

        Raises:
            ConfigError: the target of a task was never set.
        """
        self.robot, self.dofs, self.tasks = robot, dofs, list(tasks)
        self._points: dict[int, tuple[Point, int]] = {}  # keeping a point keeps its id its own
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
        return TaskTable, (self.robot, self.dofs, self.tasks)

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
        """The joint that carries a frame, and the frame's orientation there."""
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
            J=np.empty((self.rows, self.dofs.k)),
            v=np.empty(self.rows),
        )

    # -- every tick ---------------------------------------------------------------------------------------------

    def fill(self, q: np.ndarray, max_gain: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
        """Jacobian (rows, k) and desired velocity (rows,) at q (nq,); the arrays are used again by the next call.

        Args:
            max_gain: gains above it are taken as it [1/s].
        """
        arrays = self.packed.record
        if self.rows:
            fill_rows(self.packed.table, q, max_gain, False)
        return arrays.J, arrays.v


class PackedGoals:
    """Goals of some tasks for kernels, which read what the tasks have at the time.

    Attributes:
        table: (T, 2) words of the GoalTable of each task; without compilation an array of the records.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        """Pack them.

        Raises:
            ConfigError: the target of a task was never set.
        """
        self._goals = [Packed(task.goal()) for task in tasks]  # keeps their memory
        tables = [GoalTable(goal.table) for goal in self._goals]
        self.table: Any
        if config.DISABLE_JIT:
            self.table = np.empty(len(tables), dtype=object)
            for k, table in enumerate(tables):
                self.table[k] = table
        else:
            self.table = np.array([Packed(each).table for each in tables], dtype=np.int64).reshape(-1, 2)
