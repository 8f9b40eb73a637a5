"""The joints that move, as plain arrays for compiled kernels: forward kinematics, points, Jacobian columns.

Also here:

* Where all joints of a model are, as plain arrays for the distance kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.jit import kernel

# -------- The joints that move, as plain arrays for compiled kernels: forward kinematics, points, Jacobian columns


class MovingTree(NamedTuple):
    """M joints of one degree of freedom in a tree, driven by D coordinates; every other joint is held.

    Body 0 is the world with all that is held to it, body k + 1 is what joint k carries.

    Attributes:
        parent: (M,) body that carries joint k.
        R, p: (M, 3, 3), (M, 3) pose of joint k's frame at angle 0 in its parent body.
        axis: (M, 3) unit vector in the joint's frame. slides: (M,) True for a prismatic joint.
        coordinate: (M,) which coordinate drives joint k; gain, offset: (M,) joint = gain * coordinate + offset.
        moves: (M + 1, M) 1 where joint j moves body b.
    """

    parent: np.ndarray
    R: np.ndarray
    p: np.ndarray
    axis: np.ndarray
    slides: np.ndarray
    coordinate: np.ndarray
    gain: np.ndarray
    offset: np.ndarray
    moves: np.ndarray

    @classmethod
    def of(
        cls,
        model: pin.Model,
        q_held: np.ndarray,
        joints: Sequence[int] | np.ndarray,
        mimic: Sequence[tuple[int, int, float, float]] = (),
    ) -> tuple[MovingTree, Body]:
        """The tree of some joints of a model with a fixed base.

        Args:
            model: joints of one degree of freedom, no free base.
            q_held: (nq,) where the joints that do not move are held.
            joints: indices of the driving joints (pinocchio's, less one), in the order of the coordinates.
            mimic: (follower, leader, multiplier, offset); followers of a driving joint move along.

        Returns:
            The tree, and where each joint of the model is in it.

        Raises:
            RobotError: the base floats.
        """
        if model.nq != model.njoints - 1:
            raise RobotError(f"{model.name}: a moving tree needs a fixed base and joints of one degree of freedom")
        coordinate = {int(j): (k, 1.0, 0.0) for k, j in enumerate(joints)}
        for follower, leader, multiplier, offset in mimic:
            if leader in coordinate and follower not in coordinate:
                coordinate[follower] = (coordinate[leader][0], multiplier, offset)
        body = Body(np.zeros(model.njoints, dtype=np.int64), [pin.SE3.Identity() for _ in range(model.njoints)])
        rows: list[tuple] = []
        data = model.createData()
        pin.forwardKinematics(model, data, q_held)
        for j in range(1, model.njoints):
            up = int(model.parents[j])
            X = body.pose[up] * model.jointPlacements[j]
            if j - 1 in coordinate:
                axis, slides = joint_axis(model, j)
                rows.append((body.index[up], X, axis, slides, *coordinate[j - 1]))
                body.index[j], body.pose[j] = len(rows), pin.SE3.Identity()
            else:
                held = data.oMi[up].inverse() * data.oMi[j]
                body.index[j], body.pose[j] = body.index[up], body.pose[up] * held
        return cls._from(rows), body

    @classmethod
    def _from(cls, rows: list[tuple]) -> MovingTree:
        m = len(rows)
        parent = np.array([r[0] for r in rows], dtype=np.int64)
        moves = np.zeros((m + 1, m))
        for k in range(m):
            moves[k + 1] = moves[parent[k]]
            moves[k + 1, k] = 1.0
        return cls(
            parent,
            np.array([r[1].rotation for r in rows]).reshape(-1, 3, 3),
            np.array([r[1].translation for r in rows]).reshape(-1, 3),
            np.array([r[2] for r in rows]).reshape(-1, 3),
            np.array([r[3] for r in rows], dtype=np.bool_),
            np.array([r[4] for r in rows], dtype=np.int64),
            np.array([r[5] for r in rows], dtype=float),
            np.array([r[6] for r in rows], dtype=float),
            moves,
        )


@dataclass(frozen=True)
class Body:
    """Where the joints of a robot's model are in a moving tree.

    Attributes:
        index: (njoints,) body of the tree that carries pinocchio joint j.
        pose: pose of that joint's frame in the body's frame.
    """

    index: np.ndarray
    pose: list[pin.SE3]

    def place(self, joint: int, X: pin.SE3) -> tuple[int, pin.SE3]:
        """What is placed at X in a joint's frame: its body, and its pose there."""
        return int(self.index[joint]), self.pose[joint] * X


def joint_axis(model: pin.Model, j: int) -> tuple[np.ndarray, bool]:
    """Axis of a joint of one degree of freedom in its own frame, and whether it slides."""
    data = model.createData()
    v = np.zeros(model.nv)
    v[model.joints[j].idx_v] = 1.0
    pin.forwardKinematics(model, data, pin.neutral(model), v)
    motion = data.v[j]
    slides = bool(np.linalg.norm(motion.angular) < 0.5)
    return (motion.linear if slides else motion.angular).copy(), slides


@kernel
def body_poses(tree: MovingTree, x: np.ndarray, out_R: np.ndarray, out_p: np.ndarray, out_axis: np.ndarray) -> None:
    """Poses of all bodies in the world, and the joints' axes.

    Args:
        tree: M joints.
        x: (D,) coordinates.
        out_R, out_p: (M + 1, 3, 3), (M + 1, 3), filled; body 0 is the world.
        out_axis: (M, 3) axes in the world, filled.
    """
    R0, p0 = tree.R, tree.p
    for i in range(3):
        out_p[0, i] = 0.0
        for k in range(3):
            out_R[0, i, k] = 1.0 if i == k else 0.0
    for j in range(tree.parent.shape[0]):
        b = tree.parent[j]
        angle = tree.gain[j] * x[tree.coordinate[j]] + tree.offset[j]
        ux, uy, uz = tree.axis[j, 0], tree.axis[j, 1], tree.axis[j, 2]
        if tree.slides[j]:
            c, s, slide = 1.0, 0.0, angle
        else:
            c, s, slide = np.cos(angle), np.sin(angle), 0.0
        t = 1.0 - c
        # Rodrigues' formula for the turn about the axis.
        e00, e01, e02 = c + ux * ux * t, ux * uy * t - uz * s, ux * uz * t + uy * s
        e10, e11, e12 = uy * ux * t + uz * s, c + uy * uy * t, uy * uz * t - ux * s
        e20, e21, e22 = uz * ux * t - uy * s, uz * uy * t + ux * s, c + uz * uz * t
        for i in range(3):
            a0 = out_R[b, i, 0] * R0[j, 0, 0] + out_R[b, i, 1] * R0[j, 1, 0] + out_R[b, i, 2] * R0[j, 2, 0]
            a1 = out_R[b, i, 0] * R0[j, 0, 1] + out_R[b, i, 1] * R0[j, 1, 1] + out_R[b, i, 2] * R0[j, 2, 1]
            a2 = out_R[b, i, 0] * R0[j, 0, 2] + out_R[b, i, 1] * R0[j, 1, 2] + out_R[b, i, 2] * R0[j, 2, 2]
            w = a0 * ux + a1 * uy + a2 * uz
            out_axis[j, i] = w
            out_R[j + 1, i, 0] = a0 * e00 + a1 * e10 + a2 * e20
            out_R[j + 1, i, 1] = a0 * e01 + a1 * e11 + a2 * e21
            out_R[j + 1, i, 2] = a0 * e02 + a1 * e12 + a2 * e22
            at = out_p[b, i] + out_R[b, i, 0] * p0[j, 0] + out_R[b, i, 1] * p0[j, 1] + out_R[b, i, 2] * p0[j, 2]
            out_p[j + 1, i] = at + slide * w


@kernel
def add_point_row(
    tree: MovingTree,
    body: int,
    point: tuple[float, float, float],
    n: tuple[float, float, float],
    scale: float,
    body_p: np.ndarray,
    axes: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add scale * n . (velocity of a point that moves with a body) to a row of the Jacobian.

    Args:
        tree: whose coordinates the row is for.
        body: that carries the point.
        point, n: position [m] and direction in the world.
        body_p, axes: from `body_poses`.
        out: (D,) the row.
    """
    for j in range(axes.shape[0]):
        if tree.moves[body, j] == 0.0:
            continue
        ax, ay, az = axes[j, 0], axes[j, 1], axes[j, 2]
        if tree.slides[j]:
            v = ax * n[0] + ay * n[1] + az * n[2]
        else:
            x, y, z = point[0] - body_p[j + 1, 0], point[1] - body_p[j + 1, 1], point[2] - body_p[j + 1, 2]
            v = (ay * z - az * y) * n[0] + (az * x - ax * z) * n[1] + (ax * y - ay * x) * n[2]
        out[tree.coordinate[j]] += scale * tree.gain[j] * v


# -------- Where all joints of a model are, as plain arrays for the distance kernels


class JointPoses:
    """Forward kinematics of a whole model, with a fixed or a floating base, into arrays that are used again.

    Reading the same numbers out of pinocchio's data, one joint after the other, takes ten times longer.

    Attributes:
        R, p: (njoints, 3, 3), (njoints, 3) poses in the world, joint 0 being the world itself.
        arrays: the first arguments of `joint_poses`. floating: whether the base floats.
    """

    def __init__(self, model: pin.Model) -> None:
        """Prepare for a model whose joints have one degree of freedom, but for a floating base."""
        n = model.njoints
        self.floating = n > 1 and model.joints[1].nq == 7
        self._parent = np.array(model.parents.tolist(), dtype=np.int64)
        self._R0 = np.array([X.rotation for X in model.jointPlacements])
        self._p0 = np.array([X.translation for X in model.jointPlacements])
        self._axis, self._slides = np.zeros((n, 3)), np.zeros(n, dtype=np.bool_)
        self._index = np.array([j.idx_q for j in model.joints], dtype=np.int64)
        for j in range(2 if self.floating else 1, n):
            self._axis[j], self._slides[j] = joint_axis(model, j)
        self.R, self.p = np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3))
        self.arrays = (self._parent, self._R0, self._p0, self._axis, self._slides, self._index)

    def update(self, q: np.ndarray) -> None:
        """Fill R and p for the configuration q (nq,)."""
        joint_poses(*self.arrays, self.floating, q, self.R, self.p)


@kernel
def joint_poses(
    parent: np.ndarray,
    R0: np.ndarray,
    p0: np.ndarray,
    axis: np.ndarray,
    slides: np.ndarray,
    index: np.ndarray,
    floating: bool,
    q: np.ndarray,
    out_R: np.ndarray,
    out_p: np.ndarray,
) -> None:
    """Poses of the joints 1 .. N - 1 in the world; see JointPoses for what the arrays hold."""
    for j in range(1, parent.shape[0]):
        b = parent[j]
        if floating and j == 1:
            x, y, z, w = q[3], q[4], q[5], q[6]
            e00, e01, e02 = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
            e10, e11, e12 = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
            e20, e21, e22 = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
            t0, t1, t2 = q[0], q[1], q[2]
        else:
            value = q[index[j]]
            ux, uy, uz = axis[j, 0], axis[j, 1], axis[j, 2]
            if slides[j]:
                c, s = 1.0, 0.0
                t0, t1, t2 = value * ux, value * uy, value * uz
            else:
                c, s = np.cos(value), np.sin(value)
                t0, t1, t2 = 0.0, 0.0, 0.0
            t = 1.0 - c
            e00, e01, e02 = c + ux * ux * t, ux * uy * t - uz * s, ux * uz * t + uy * s
            e10, e11, e12 = uy * ux * t + uz * s, c + uy * uy * t, uy * uz * t - ux * s
            e20, e21, e22 = uz * ux * t - uy * s, uz * uy * t + ux * s, c + uz * uz * t
        for i in range(3):
            a0 = out_R[b, i, 0] * R0[j, 0, 0] + out_R[b, i, 1] * R0[j, 1, 0] + out_R[b, i, 2] * R0[j, 2, 0]
            a1 = out_R[b, i, 0] * R0[j, 0, 1] + out_R[b, i, 1] * R0[j, 1, 1] + out_R[b, i, 2] * R0[j, 2, 1]
            a2 = out_R[b, i, 0] * R0[j, 0, 2] + out_R[b, i, 1] * R0[j, 1, 2] + out_R[b, i, 2] * R0[j, 2, 2]
            out_R[j, i, 0] = a0 * e00 + a1 * e10 + a2 * e20
            out_R[j, i, 1] = a0 * e01 + a1 * e11 + a2 * e21
            out_R[j, i, 2] = a0 * e02 + a1 * e12 + a2 * e22
            at = out_p[b, i] + out_R[b, i, 0] * p0[j, 0] + out_R[b, i, 1] * p0[j, 1] + out_R[b, i, 2] * p0[j, 2]
            out_p[j, i] = at + a0 * t0 + a1 * t1 + a2 * t2
