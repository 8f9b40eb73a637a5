"""Rows of all tasks under each other, weighted, by the free velocities.

Point, orientation, frame and joint tasks are kept in a table that one compiled call turns into rows, so a tick of many
small tasks costs microseconds; any other task computes its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.tasks.frames import FrameTask, OrientationTask
from humanoid_control.ik.tasks.joints import JointTask
from humanoid_control.ik.tasks.points import CenterOfMass, FramePoint, LimbCenterOfMass, Point, PointTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.jit import kernel
from humanoid_control.kinematics.forward_kinematics import JointPoses
from humanoid_control.numerics.rotation import rotation_vector
from humanoid_control.robots.robot import Robot

# -------- Kernels

POINT, TURN, JOINT = 0, 1, 2
NONE = -1


@kernel
def place_points(
    R: np.ndarray,
    p: np.ndarray,
    parent: np.ndarray,
    start: np.ndarray,
    joint: np.ndarray,
    share: np.ndarray,
    lever: np.ndarray,
    out_x: np.ndarray,
    out_share: np.ndarray,
    out_moment: np.ndarray,
) -> None:
    """Positions of weighted points, and the share of each that every joint carries.

    A point on a link, the centre of mass, or that of a limb: each is a weighted mean of points fixed in joints.

    Args:
        R, p: (N, 3, 3), (N, 3) poses of the joints. parent: (N,).
        start: (P + 1,) where the parts of each point begin in the next three.
        joint, share, lever: (T,), (T,), (T, 3) which joint, which share, where in the joint's frame [m].
        out_x: (P, 3) filled: the points in the world.
        out_share, out_moment: (P, N), (P, N, 3) filled: the share each joint carries, and that times its place.
    """
    count = parent.shape[0]
    for k in range(start.shape[0] - 1):
        for j in range(count):
            out_share[k, j] = 0.0
            for c in range(3):
                out_moment[k, j, c] = 0.0
        for c in range(3):
            out_x[k, c] = 0.0
        for t in range(start[k], start[k + 1]):
            j = joint[t]
            out_share[k, j] += share[t]
            for c in range(3):
                at = p[j, c] + R[j, c, 0] * lever[t, 0] + R[j, c, 1] * lever[t, 1] + R[j, c, 2] * lever[t, 2]
                out_moment[k, j, c] += share[t] * at
                out_x[k, c] += share[t] * at
        for j in range(count - 1, 0, -1):
            out_share[k, parent[j]] += out_share[k, j]
            for c in range(3):
                out_moment[k, parent[j], c] += out_moment[k, j, c]


@kernel
def fill_rows(
    R: np.ndarray,
    J6: np.ndarray,
    joints: np.ndarray,
    support: np.ndarray,
    column_joint: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    x: np.ndarray,
    carried: np.ndarray,
    moment: np.ndarray,
    kind: np.ndarray,
    first: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    frame: np.ndarray,
    frame_R: np.ndarray,
    base: np.ndarray,
    base_R: np.ndarray,
    scale: np.ndarray,
    gain: np.ndarray,
    target: np.ndarray,
    velocity: np.ndarray,
    out_J: np.ndarray,
    out_v: np.ndarray,
) -> None:
    """Jacobian and wanted velocity of every block of a table; see TaskTable for what the arrays hold.

    Args:
        R: (N, 3, 3) orientations of the joints. J6: (6, nv) their twists at the world origin. joints: (n,) angles.
        support: (N, nv) which columns move which joint. column_joint: (nv,) the joint of each column.
        column_of, factor: (nv,) the free velocity of each column, or NONE, and its multiplier.
        x, carried, moment: from `place_points`.
        kind, first: (B,) kind of each block and its first row.
        a, b: (B,) point and origin of a POINT; a the joint of a JOINT.
        frame, frame_R: (B,), (B, 3, 3) joint of a TURN's frame, and its orientation there.
        base, base_R: the same of the frame in whose axes a block is, NONE for the world.
        scale, gain: (B,). target: (B, 3, 3). velocity: (B, 3).
        out_J, out_v: (m, k), (m,) filled.
    """
    nv = J6.shape[1]
    out_J[:, :] = 0.0
    A0, A1, error, column = np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty(3)
    seen_R, d = np.empty((3, 3)), np.empty(3)
    for k in range(kind.shape[0]):
        row, w = first[k], scale[k]
        if kind[k] == JOINT:
            c = nv - joints.shape[0] + a[k]
            if column_of[c] != NONE:
                out_J[row, column_of[c]] += w * factor[c]
            out_v[row] = w * (velocity[k, 0] + gain[k] * (target[k, 0, 0] - joints[a[k]]))
            continue
        turned = base[k] != NONE
        if turned:
            _product(R[base[k]], base_R[k], A0)
        if kind[k] == TURN:
            _product(R[frame[k]], frame_R[k], A1)
            if turned:
                _product_transposed(A0, A1, seen_R)
                rotation_vector(seen_R, target[k], error)
            else:
                rotation_vector(A1, target[k], error)
        else:
            for i in range(3):
                d[i] = x[a[k], i] - (x[b[k], i] if b[k] != NONE else 0.0)
            for i in range(3):
                seen = A0[0, i] * d[0] + A0[1, i] * d[1] + A0[2, i] * d[2] if turned else d[i]
                error[i] = target[k, 0, i] - seen
        for i in range(3):
            out_v[row + i] = w * (velocity[k, i] + gain[k] * error[i])
        for c in range(nv):
            to = column_of[c]
            if to == NONE:
                continue
            o0, o1, o2 = J6[3, c], J6[4, c], J6[5, c]
            if kind[k] == TURN:
                s = support[frame[k], c] - (support[base[k], c] if turned else 0.0)
                column[0], column[1], column[2] = s * o0, s * o1, s * o2
            else:
                j = column_joint[c]
                s, m0, m1, m2 = carried[a[k], j], moment[a[k], j, 0], moment[a[k], j, 1], moment[a[k], j, 2]
                if b[k] != NONE:
                    s -= carried[b[k], j]
                    m0, m1, m2 = m0 - moment[b[k], j, 0], m1 - moment[b[k], j, 1], m2 - moment[b[k], j, 2]
                if turned and support[base[k], c] != 0.0:  # the axes turn under the point: - omega x d
                    m0, m1, m2 = m0 - d[0], m1 - d[1], m2 - d[2]
                column[0] = s * J6[0, c] + o1 * m2 - o2 * m1
                column[1] = s * J6[1, c] + o2 * m0 - o0 * m2
                column[2] = s * J6[2, c] + o0 * m1 - o1 * m0
            f = w * factor[c]
            for i in range(3):
                u = A0[0, i] * column[0] + A0[1, i] * column[1] + A0[2, i] * column[2] if turned else column[i]
                out_J[row + i, to] += f * u


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

TABLED = (PointTask, OrientationTask, FrameTask, JointTask)


class TaskTable:
    """The rows of some tasks, of the kinds in `TABLED` and no subclasses of them.

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
        self._blocks.append((kind, self.rows, a, b, *self._held(frame), *self._held(base)))
        self._owner.append((task, part))
        self.rows += rows

    def _held(self, frame: int | None) -> tuple[int, np.ndarray]:
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
            joints = range(model.njoints) if isinstance(point, CenterOfMass) else _limb(point).joints
            total = sum(model.inertias[j].mass for j in joints)
            parts = [(j, model.inertias[j].mass / total, np.array(model.inertias[j].lever)) for j in joints]
        self._parts += parts
        self._start.append(len(self._parts))
        self._points[id(point)] = point, len(self._start) - 2
        return len(self._start) - 2

    def _freeze(self) -> None:
        r, model, count = self.robot, self.robot.model, len(self._blocks)
        self._poses = JointPoses(model)
        self._parent = np.array(model.parents.tolist(), dtype=np.int64)
        column_joint = np.zeros(r.nv, dtype=np.int64)
        for j in range(1, model.njoints):
            column_joint[model.joints[j].idx_v : model.joints[j].idx_v + model.joints[j].nv] = j
        self._column_joint = column_joint
        P, N = len(self._start) - 1, model.njoints
        self._table = (
            np.array(self._start, dtype=np.int64),
            np.array([j for j, _, _ in self._parts], dtype=np.int64),
            np.array([s for _, s, _ in self._parts], dtype=float),
            np.array([x for _, _, x in self._parts], dtype=float).reshape(-1, 3),
        )
        self._placed = np.empty((P, 3)), np.empty((P, N)), np.empty((P, N, 3))
        columns = list(zip(*self._blocks, strict=True)) or [()] * 8
        shapes = ((np.int64, ()),) * 5 + ((float, (3, 3)), (np.int64, ()), (float, (3, 3)))
        self._frozen = tuple(
            np.array(c, dtype=t).reshape(count, *shape) for c, (t, shape) in zip(columns, shapes, strict=True)
        )
        self._scale, self._gain = np.empty(count), np.empty(count)
        self._target, self._velocity = np.zeros((count, 3, 3)), np.zeros((count, 3))
        self._weighed, owners = [task for task, _ in self._owner], list(enumerate(self._owner))
        self._joints = [(task, part, k) for k, (task, part) in owners if isinstance(task, JointTask)]
        self._frames = [(task, part, k) for k, (task, part) in owners if isinstance(task, FrameTask)]
        turns = [block[0] == TURN for block in self._blocks]
        self._plain = [
            (task, self._target[k] if turns[k] else self._target[k, 0], self._velocity[k])
            for k, (task, _) in owners
            if isinstance(task, PointTask | OrientationTask)
        ]
        self._J, self._v = np.empty((self.rows, self.dofs.k)), np.empty(self.rows)
        self._level = np.concatenate(
            [np.full(p.stop - p.start, t.level) for t, p in zip(self.tasks, self.parts, strict=True)] or [np.zeros(0)]
        ).astype(int)

    # -- every tick ---------------------------------------------------------------------------------------------

    def _gather(self, max_gain: float) -> None:
        target, velocity, scale, gain = self._target, self._velocity, self._scale, self._gain
        scale[:] = [task.weight for task in self._weighed]
        gain[:] = [task.gain for task in self._weighed]
        np.minimum(gain, max_gain, out=gain)
        for task, x, v in self._plain:
            x[:] = task.target
            v[:] = task.velocity
        for joint, part, k in self._joints:
            target[k, 0, 0], velocity[k, 0] = joint.target[part], joint.velocity[part]
        for pose, part, k in self._frames:
            if part == 0:
                target[k, 0], velocity[k] = pose.X_target.translation, pose.target_velocity
            else:
                target[k], velocity[k] = pose.X_target.rotation, pose.target_turn
                scale[k] *= pose.orientation_weight

    def fill(self, data: pin.Data, q: np.ndarray, max_gain: float = np.inf) -> Rows:
        """The rows at q; the arrays are used again by the next call.

        Args:
            data: after `pin.computeJointJacobians` at q.
            q: (nq,).
            max_gain: gains above it are taken as it [1/s].
        """
        self._gather(max_gain)
        poses, m = self._poses, self.dofs
        poses.update(q)
        place_points(poses.R, poses.p, self._parent, *self._table, *self._placed)
        fill_rows(
            poses.R,
            data.J,
            q[self.robot.iq :],
            self.robot.ancestor_mask,
            self._column_joint,
            m.column_of,
            m.factor,
            *(*self._placed, *self._frozen, self._scale, self._gain, self._target, self._velocity, self._J, self._v),
        )
        return Rows(self._J, self._v, self._level, self.parts)


def _limb(point: Point) -> LimbCenterOfMass:
    if not isinstance(point, LimbCenterOfMass):
        raise TypeError(f"no table for points of type {type(point).__name__}")
    return point


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
            quick = [type(t) in TABLED and t.weight > 0.0 for t in tasks]
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
