"""Rows of all tasks under each other, weighted, by the free velocities.

Point, orientation, frame and joint tasks are kept in a table that one compiled call turns into rows, so a tick of many
small tasks costs microseconds; any other task (and one of a point of another class) computes its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.tasks.centroidal import CenterOfMass, CenterOfMassTask, LimbCenterOfMass
from humanoid_control.ik.tasks.frames import FrameTask, OrientationTask
from humanoid_control.ik.tasks.joints import JointTask
from humanoid_control.ik.tasks.points import FramePoint, Point, PointTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.jit import kernel
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses, joint_poses
from humanoid_control.numerics.array_types import F1, F2, F3, I1
from humanoid_control.numerics.packed import Packed, unpack
from humanoid_control.numerics.rotation import rotation_vector
from humanoid_control.robots.robot import Robot, joint_columns

# -------- Kernels

POINT, TURN, JOINT = 0, 1, 2
NONE = -1


class PointParts(NamedTuple):
    """P points, each a weighted mean of points fixed in joints: a point on a link, or a centre of mass.

    Attributes:
        start: (P + 1,) where the parts of each point begin in the others.
        joint, share, lever: (T,), (T,), (T, 3) which joint, which share, where in the joint's frame [m].
    """

    start: I1
    joint: I1
    share: F1
    lever: F2


class PlacedPoints(NamedTuple):
    """P points of N joints in the world.

    Attributes:
        x: (P, 3) where they are [m].
        share, moment: (P, N), (P, N, 3) the share of each that every joint carries, and that times its place.
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
        kind, first: (B,) POINT, TURN or JOINT, and the first row.
        a, b: (B,) point and origin of a POINT, NONE for the world's; a the joint of a JOINT.
        frame, frame_R: (B,), (B, 3, 3) joint of a TURN's frame, and its orientation there.
        base, base_R: the same of the frame in whose axes a block is, NONE for the world.
    """

    kind: I1
    first: I1
    a: I1
    b: I1
    frame: I1
    frame_R: F3
    base: I1
    base_R: F3


class Goals(NamedTuple):
    """Weights (B,), gains (B,) [1/s], targets (B, 3, 3) and velocities (B, 3) of the blocks, new at every tick.

    The target of a TURN is a matrix, that of a POINT the first row of one, that of a JOINT its first number.
    """

    scale: F1
    gain: F1
    target: F3
    velocity: F2


class Columns(NamedTuple):
    """Columns of the Jacobian.

    Attributes:
        support: (N, nv) which columns move which joint. joint: (nv,) the joint of each column.
        free, factor: (nv,) the free velocity of each column, or NONE, and its multiplier.
    """

    support: F2
    joint: I1
    free: I1
    factor: F1


class TableArrays(NamedTuple):
    """Arrays of `fill_rows`; J (m, k) and v (m,) are filled."""

    tree: ModelTree
    world: WorldPoses
    parts: PointParts
    placed: PlacedPoints
    blocks: Blocks
    goals: Goals
    columns: Columns
    J: F2
    v: F1


@kernel
def place_points(world: WorldPoses, parent: np.ndarray, parts: PointParts, out: PlacedPoints) -> None:
    """Positions of weighted points, and the share of each that every joint carries.

    Args:
        world: poses of the joints. parent: (N,).
        parts: of the points. out: filled.
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
            out.share[k, parent[j]] += out.share[k, j]
            for c in range(3):
                out.moment[k, parent[j], c] += out.moment[k, j, c]


@kernel
def fill_rows(table: np.ndarray, q: np.ndarray, J6: np.ndarray) -> None:
    """Jacobian and desired velocity of every block of a table.

    Args:
        table: of the packed TableArrays. q: (nq,). J6: (6, nv) twists of the joints at the world origin.
    """
    t = unpack(table, TableArrays)
    joint_poses(t.tree, q, t.world)
    place_points(t.world, t.tree.parent, t.parts, t.placed)
    R, columns, block, goal = t.world.R, t.columns, t.blocks, t.goals
    x, carried, moment = t.placed
    nv, iq, iv = J6.shape[1], 7 if t.tree.floating else 0, 6 if t.tree.floating else 0
    t.J[:, :] = 0.0
    A0, A1, error, column = np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty(3)
    seen_R, d = np.empty((3, 3)), np.empty(3)
    for k in range(block.kind.shape[0]):
        row, w, a, b, base = block.first[k], goal.scale[k], block.a[k], block.b[k], block.base[k]
        if block.kind[k] == JOINT:
            if columns.free[iv + a] != NONE:
                t.J[row, columns.free[iv + a]] += w * columns.factor[iv + a]
            t.v[row] = w * (goal.velocity[k, 0] + goal.gain[k] * (goal.target[k, 0, 0] - q[iq + a]))
            continue
        turned = base != NONE
        if turned:
            _product(R[base], block.base_R[k], A0)
        if block.kind[k] == TURN:
            _product(R[block.frame[k]], block.frame_R[k], A1)
            if turned:
                _product_transposed(A0, A1, seen_R)
                rotation_vector(seen_R, goal.target[k], error)
            else:
                rotation_vector(A1, goal.target[k], error)
        else:
            for i in range(3):
                d[i] = x[a, i] - (x[b, i] if b != NONE else 0.0)
            for i in range(3):
                seen = A0[0, i] * d[0] + A0[1, i] * d[1] + A0[2, i] * d[2] if turned else d[i]
                error[i] = goal.target[k, 0, i] - seen
        for i in range(3):
            t.v[row + i] = w * (goal.velocity[k, i] + goal.gain[k] * error[i])
        for c in range(nv):
            to = columns.free[c]
            if to == NONE:
                continue
            o0, o1, o2 = J6[3, c], J6[4, c], J6[5, c]
            if block.kind[k] == TURN:
                s = columns.support[block.frame[k], c] - (columns.support[base, c] if turned else 0.0)
                column[0], column[1], column[2] = s * o0, s * o1, s * o2
            else:
                j = columns.joint[c]
                s, m0, m1, m2 = carried[a, j], moment[a, j, 0], moment[a, j, 1], moment[a, j, 2]
                if b != NONE:
                    s -= carried[b, j]
                    m0, m1, m2 = m0 - moment[b, j, 0], m1 - moment[b, j, 1], m2 - moment[b, j, 2]
                if turned and columns.support[base, c] != 0.0:  # the axes turn under the point: - omega x d
                    m0, m1, m2 = m0 - d[0], m1 - d[1], m2 - d[2]
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


@dataclass(frozen=True)
class Rows:
    """Weighted rows of the tasks, by the free velocities.

    Attributes:
        J: (m, k). v: (m,) desired rates. level: (m,) priority of each.
        parts: for each task the rows that are its.
    """

    J: np.ndarray
    v: np.ndarray
    level: np.ndarray
    parts: list[slice]


# -------- Table of tasks

TABLED = (PointTask, CenterOfMassTask, OrientationTask, FrameTask, JointTask)
TABLED_POINTS = (FramePoint, CenterOfMass, LimbCenterOfMass)


def is_tabled(task: Task) -> bool:
    """True for a task that a `TaskTable` knows; a subclass may compute anything, so it is none."""
    if type(task) not in TABLED:
        return False
    if not isinstance(task, PointTask):
        return True
    return all(p is None or type(p) in TABLED_POINTS for p in (task.point, task.origin))


class TaskTable:
    """The rows of some tasks, all of which `is_tabled` accepts.

    What a task is made of is read once: its point, frames and joints. Its target, velocity, gain and weight are read
    at every tick. A point is kept as a weighted mean of points fixed in joints, which covers centres of mass too.
    """

    def __init__(self, robot: Robot, dofs: DofSelection, tasks: Sequence[Task]) -> None:
        """Read what the tasks are made of."""
        self.robot, self.dofs, self.tasks = robot, dofs, list(tasks)
        self._points: dict[int, tuple[Point, int]] = {}  # keeping a point keeps its id its own
        self._start, self._parts = [0], []  # type: list[int], list[tuple[int, float, np.ndarray]]
        self._blocks: list[tuple[int, int, int, int, int, np.ndarray, int, np.ndarray]] = []
        self.parts: list[slice] = []
        self._owner: list[tuple[Any, int]] = []  # of each block: its task and, for several, which of its blocks
        self.rows = 0
        for task in self.tasks:
            begin = self.rows
            self._add(task)
            self.parts.append(slice(begin, self.rows))
        self._freeze()

    # -- reading the tasks --------------------------------------------------------------------------------------

    def _add(self, task: Task) -> None:
        if isinstance(task, PointTask):
            a = self._point(task.point)
            b = NONE if task.origin is None else self._point(task.origin)
            self._block(task, 0, POINT, 3, a=a, b=b, base=task.axes)
        elif isinstance(task, OrientationTask):
            self._block(task, 0, TURN, 3, frame=task.frame, base=task.relative_to)
        elif isinstance(task, FrameTask):
            self._block(task, 0, POINT, 3, a=self._point(FramePoint(self.robot, task.frame)))
            self._block(task, 1, TURN, 3, frame=task.frame)
        elif isinstance(task, JointTask):
            for k, j in enumerate(task.joints):
                self._block(task, k, JOINT, 1, a=int(j))

    def _block(
        self,
        task: Task,
        part: int,
        kind: int,
        rows: int,
        a: int = NONE,
        b: int = NONE,
        frame: int | None = None,
        base: int | None = None,
    ) -> None:
        self._blocks.append((kind, self.rows, a, b, *self._frame_in_joint(frame), *self._frame_in_joint(base)))
        self._owner.append((task, part))
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

    def _freeze(self) -> None:
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
        fields = list(zip(*self._blocks, strict=True)) or [()] * 8
        shapes = ((np.int64, ()),) * 5 + ((float, (3, 3)), (np.int64, ()), (float, (3, 3)))
        blocks = Blocks(
            *(np.array(f, dtype=t).reshape(count, *shape) for f, (t, shape) in zip(fields, shapes, strict=True))
        )
        goals = Goals(np.empty(count), np.empty(count), np.zeros((count, 3, 3)), np.zeros((count, 3)))
        columns = Columns(r.ancestor_mask, column_joint, self.dofs.column_of, self.dofs.factor)
        self._table = Packed(
            TableArrays(
                ModelTree.of(model),
                WorldPoses.of(model.njoints, model.njoints),
                parts,
                PlacedPoints.of(len(self._start) - 1, model.njoints),
                blocks,
                goals,
                columns,
                np.empty((self.rows, self.dofs.k)),
                np.empty(self.rows),
            )
        )
        self._goals = goals
        self._weighed, owners = [task for task, _ in self._owner], list(enumerate(self._owner))
        self._joints = [(task, part, k) for k, (task, part) in owners if isinstance(task, JointTask)]
        self._frames = [(task, k) for k, (task, part) in owners if isinstance(task, FrameTask) and part == 0]
        turns = [block[0] == TURN for block in self._blocks]
        self._plain = [
            (task, goals.target[k] if turns[k] else goals.target[k, 0], goals.velocity[k])
            for k, (task, _) in owners
            if isinstance(task, PointTask | OrientationTask)
        ]
        self._level = np.concatenate(
            [np.full(p.stop - p.start, t.level) for t, p in zip(self.tasks, self.parts, strict=True)] or [np.zeros(0)]
        ).astype(int)

    # -- every tick ---------------------------------------------------------------------------------------------

    def _gather(self, max_gain: float) -> None:
        scale, gain, target, velocity = self._goals
        scale[:] = [task.weight for task in self._weighed]
        gain[:] = [task.gain for task in self._weighed]
        np.minimum(gain, max_gain, out=gain)
        for task, x, v in self._plain:
            x[:] = task.target
            v[:] = task.velocity
        for joint, part, k in self._joints:
            target[k, 0, 0], velocity[k, 0] = joint.target[part], joint.velocity[part]
        for pose, k in self._frames:
            X = pose.X_target
            target[k, 0], velocity[k] = X.translation, pose.target_velocity
            target[k + 1], velocity[k + 1] = X.rotation, pose.target_turn
            scale[k + 1] *= pose.orientation_weight

    def fill(self, data: pin.Data, q: np.ndarray, max_gain: float = np.inf) -> Rows:
        """The rows at q; the arrays are used again by the next call.

        Args:
            data: after `pin.computeJointJacobians` at q.
            q: (nq,).
            max_gain: gains above it are taken as it [1/s].
        """
        out = self._table.record
        if self.rows:
            self._gather(max_gain)
            fill_rows(self._table.table, q, joint_columns(data))
        return Rows(out.J, out.v, self._level, self.parts)


# -------- Rows of any tasks


def stacked(
    robot: Robot, data: pin.Data, q: np.ndarray, tasks: Sequence[Task], dofs: DofSelection, max_gain: float = np.inf
) -> Rows:
    """The rows of some tasks, each asked for its own, at what `prepare` has computed; tasks of weight 0 have none.

    Args:
        robot, data, q: where.
        tasks: which.
        dofs: the free velocities.
        max_gain: gains above it are taken as it [1/s].
    """
    Js, vs, levels, parts, start = [], [], [], [], 0
    for task in tasks:
        J, v = task.rows(robot, data, q)
        if task.gain > max_gain:
            v = v - (task.gain - max_gain) * task.error(robot, data, q)
        w = task.weight
        if w == 0.0:
            J, v = J[:0], v[:0]
        elif w != 1.0:
            J, v = w * J, w * v
        Js.append(J)
        vs.append(v)
        levels += [task.level] * len(v)
        parts.append(slice(start, start + len(v)))
        start += len(v)
    if not start:
        return Rows(np.zeros((0, dofs.k)), np.zeros(0), np.zeros(0, dtype=int), parts)
    J = np.ascontiguousarray(dofs.reduce(np.concatenate(Js)))  # what kernels are compiled for
    return Rows(J, np.concatenate(vs), np.array(levels, dtype=int), parts)


class TaskStack:
    """The same rows tick after tick: tables are kept while the set of tasks stays."""

    def __init__(self, robot: Robot, dofs: DofSelection) -> None:
        self.robot, self.dofs = robot, dofs
        self._key: tuple[tuple[int, bool, int], ...] | None = None

    def rows(self, data: pin.Data, q: np.ndarray, tasks: Sequence[Task], max_gain: float = np.inf) -> Rows:
        """As `stacked`; the arrays may be used again by the next call."""
        key = tuple((id(t), t.weight > 0.0, t.level) for t in tasks)
        if key != self._key:
            self._key, self._tasks = key, list(tasks)  # keeping them keeps their ids
            quick = [is_tabled(t) and t.weight > 0.0 for t in tasks]
            self._table = TaskTable(self.robot, self.dofs, [t for t, w in zip(tasks, quick, strict=True) if w])
            self._slow = [t for t, w in zip(tasks, quick, strict=True) if not w]
            self._quick = quick
        table = self._table.fill(data, q, max_gain)
        if not self._slow:
            return table
        others = stacked(self.robot, data, q, self._slow, self.dofs, max_gain)
        m, quick_parts, slow_parts = len(table.v), iter(table.parts), iter(others.parts)
        parts = [next(quick_parts) if w else slice((s := next(slow_parts)).start + m, s.stop + m) for w in self._quick]
        J, v = np.concatenate([table.J, others.J]), np.concatenate([table.v, others.v])
        return Rows(J, v, np.concatenate([table.level, others.level]), parts)
