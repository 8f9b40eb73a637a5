"""Tasks as a table that one compiled call turns into rows: a tick of many small tasks costs microseconds, not a
millisecond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.solvers.row_kernels import JOINT, NONE, POINT, TURN, fill_rows, place_points
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.ik.tasks import (
    CenterOfMass,
    FramePoint,
    FrameTask,
    JointTask,
    LimbCenterOfMass,
    OrientationTask,
    Point,
    PointTask,
    Task,
)
from humanoid_control.robots import Robot
from humanoid_control.robots.joint_poses import JointPoses

TABLED = (PointTask, OrientationTask, FrameTask, JointTask)


class TaskTable:
    """The rows of some tasks, of the kinds in `TABLED` and no subclasses of them.

    What a task is made of is read once: its point, frames and joints. Its target, velocity, gain and weight are read
    at every tick. A point is kept as a weighted mean of points fixed in joints, which covers centres of mass too.
    """

    def __init__(self, robot: Robot, moving: Moving, tasks: Sequence[Task]) -> None:
        """Read what the tasks are made of."""
        self.robot, self.moving, self.tasks = robot, moving, list(tasks)
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
        self._J, self._v = np.empty((self.rows, self.moving.k)), np.empty(self.rows)
        self._level = np.concatenate(
            [np.full(p.stop - p.start, t.level) for t, p in zip(self.tasks, self.parts, strict=True)] or [np.zeros(0)]
        ).astype(int)

    # -- every tick ---------------------------------------------------------------------------------------------

    def _gather(self, most_gain: float) -> None:
        target, velocity, scale, gain = self._target, self._velocity, self._scale, self._gain
        scale[:] = [task.weight for task in self._weighed]
        gain[:] = [task.gain for task in self._weighed]
        np.minimum(gain, most_gain, out=gain)
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

    def fill(self, data: pin.Data, q: np.ndarray, most_gain: float = np.inf) -> Rows:
        """The rows at q; the arrays are used again by the next call.

        Args:
            data: after `pin.computeJointJacobians` at q.
            q: (nq,).
            most_gain: gains above it are taken as it [1/s].
        """
        self._gather(most_gain)
        poses, m = self._poses, self.moving
        poses.update(q)
        place_points(poses.R, poses.p, self._parent, *self._table, *self._placed)
        fill_rows(
            poses.R,
            data.J,
            q[self.robot.iq :],
            self.robot.support,
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
