"""Compiled forward kinematics of one-degree-of-freedom joints, and Jacobian rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import B1, F1, F2, F3, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.errors import RobotError


class JointFrames(NamedTuple):
    """Frames and axes of J one-degree-of-freedom joints.

    Attributes:
        R: (J, 3, 3) at value 0, parent body frame.
        p: (J, 3) origin, parent body frame [m].
        axis: (J, 3) unit vector, joint frame.
        slides: (J,) True: prismatic.
    """

    R: F3
    p: F2
    axis: F2
    slides: B1


def joint_axis(model: pin.Model, j: int) -> tuple[np.ndarray, bool]:
    """Return the axis (3,) in the joint frame, and True if prismatic."""
    # model.createData() is avoided: its memory grows with the cube of the number of joints.
    joint = model.joints[j]
    data = joint.createData()
    joint.calc(data, pin.neutral(model))
    S = np.array(data.S, dtype=float).ravel()  # motion subspace: linear, then angular
    slides = bool(np.linalg.norm(S[3:]) < 0.5)
    return (S[:3] if slides else S[3:]).copy(), slides


@inlined
def place_joint(
    joints: JointFrames,
    j: int,
    value: float,
    parent: int,
    body: int,
    R: np.ndarray,
    p: np.ndarray,
    axes: np.ndarray,
) -> None:
    """Fill the pose of the body moved by joint j: X_world_body = X_world_parent X_j Exp(value axis_j).

    Args:
        value: [rad], prismatic [m].
        parent: row of the parent.
        body: row of the body.
        R: (B, 3, 3) world.
        p: (B, 3) world [m].
        axes: (J, 3) world.
    """
    R0, p0, b = joints.R, joints.p, parent
    ux, uy, uz = joints.axis[j, 0], joints.axis[j, 1], joints.axis[j, 2]
    if joints.slides[j]:
        c, s, slide = 1.0, 0.0, value
    else:
        c, s, slide = np.cos(value), np.sin(value), 0.0
    t = 1.0 - c
    # Rodrigues' formula: E = cos(value) I + (1 - cos(value)) u u^T + sin(value) [u]_x.
    e00, e01, e02 = c + ux * ux * t, ux * uy * t - uz * s, ux * uz * t + uy * s
    e10, e11, e12 = uy * ux * t + uz * s, c + uy * uy * t, uy * uz * t - ux * s
    e20, e21, e22 = uz * ux * t - uy * s, uz * uy * t + ux * s, c + uz * uz * t
    for i in range(3):
        # Row i of R_parent R_j; the axis is invariant under E, so it needs only this product.
        r0, r1, r2 = R[b, i, 0], R[b, i, 1], R[b, i, 2]
        a0 = r0 * R0[j, 0, 0] + r1 * R0[j, 1, 0] + r2 * R0[j, 2, 0]
        a1 = r0 * R0[j, 0, 1] + r1 * R0[j, 1, 1] + r2 * R0[j, 2, 1]
        a2 = r0 * R0[j, 0, 2] + r1 * R0[j, 1, 2] + r2 * R0[j, 2, 2]
        w = a0 * ux + a1 * uy + a2 * uz
        axes[j, i] = w
        R[body, i, 0] = a0 * e00 + a1 * e10 + a2 * e20
        R[body, i, 1] = a0 * e01 + a1 * e11 + a2 * e21
        R[body, i, 2] = a0 * e02 + a1 * e12 + a2 * e22
        p[body, i] = p[b, i] + r0 * p0[j, 0] + r1 * p0[j, 1] + r2 * p0[j, 2] + slide * w


# -------- A whole pinocchio model


class ModelTree(NamedTuple):
    """Joints of a pinocchio model; row 0 is the world.

    Attributes:
        parent: (njoints,).
        idx_q: (njoints,) index in q.
        floating: joint 1 is a floating base.
    """

    joints: JointFrames
    parent: I1
    idx_q: I1
    floating: bool

    @classmethod
    def of(cls, model: pin.Model) -> ModelTree:
        """Return the tree of a model.

        Raises:
            RobotError: if a joint other than a floating base has several values in q.
        """
        n = model.njoints
        floating = n > 1 and model.joints[1].nq == 7
        axis, slides = np.zeros((n, 3)), np.zeros(n, dtype=np.bool_)
        for j in range(2 if floating else 1, n):
            if model.joints[j].nq != 1:
                kind = model.joints[j].shortname().removeprefix("JointModel")
                raise RobotError(
                    f"model '{model.name}': joint '{model.names[j]}' is of the kind {kind}: only a base may have "
                    "several degrees of freedom; give an unlimited joint wide limits"
                )
            axis[j], slides[j] = joint_axis(model, j)
        R = np.array([X.rotation for X in model.jointPlacements])
        p = np.array([X.translation for X in model.jointPlacements])
        parent = np.array(model.parents.tolist(), dtype=np.int64)
        idx_q = np.array([joint.idx_q for joint in model.joints], dtype=np.int64)
        return cls(JointFrames(R, p, axis, slides), parent, idx_q, floating)


class Followers(NamedTuple):
    """Mimic joints.

    Attributes:
        pairs: (M, 2) follower and leader.
        law: (M, 2) multiplier and offset.
    """

    pairs: I2
    law: F2

    @classmethod
    def of(cls, mimic: Sequence[tuple[int, int, float, float]]) -> Followers:
        """Return the followers of `Robot.mimic`."""
        pairs = np.array([m[:2] for m in mimic], dtype=np.int64).reshape(-1, 2)
        return cls(pairs, np.array([m[2:] for m in mimic], dtype=float).reshape(-1, 2))


@inlined
def set_followers(followers: Followers, joints: np.ndarray, first: int) -> None:
    """Set followers from leaders; joints begin at `first`."""
    pairs, law = followers.pairs, followers.law
    for k in range(pairs.shape[0]):
        joints[first + pairs[k, 0]] = law[k, 0] * joints[first + pairs[k, 1]] + law[k, 1]


class WorldPoses(NamedTuple):
    """World poses of joints or bodies; row 0 is the world.

    Attributes:
        R: (B, 3, 3) rotations.
        p: (B, 3) origins [m].
        axes: (J, 3) joint axes.
    """

    R: F3
    p: F2
    axes: F2

    @classmethod
    def of(cls, bodies: int, joints: int) -> WorldPoses:
        """Return identity poses."""
        return cls(np.tile(np.eye(3), (bodies, 1, 1)), np.zeros((bodies, 3)), np.zeros((joints, 3)))


@kernel
def joint_poses(tree: ModelTree, q: np.ndarray, poses: WorldPoses) -> None:
    """Fill the world poses of all joints."""
    R, p, axes = poses.R, poses.p, poses.axes
    first = 1
    if tree.floating:
        place_base(tree.joints.R[1], tree.joints.p[1], q, R, p)
        first = 2
    # Parents precede children in pinocchio, so each parent is already placed.
    for j in range(first, tree.parent.shape[0]):
        place_joint(tree.joints, j, q[tree.idx_q[j]], tree.parent[j], j, R, p, axes)


@kernel
def joint_twists(tree: ModelTree, poses: WorldPoses, v: np.ndarray, out: np.ndarray) -> None:
    """Fill the joint twists relative to a base at rest.

    Args:
        v: (nv,).
        out: (njoints, 6) linear at the world origin [m/s], angular [rad/s], world axes.
    """
    base = 1 if tree.floating else 0  # idx_v = idx_q - 1 behind a floating base (quaternion)
    out[: base + 1] = 0.0
    for j in range(base + 1, tree.parent.shape[0]):
        # Twist of the parent plus the joint's own: (a, 0) if it slides, (p x a, a) if it turns.
        b, speed = tree.parent[j], v[tree.idx_q[j] - base]
        ax, ay, az = poses.axes[j, 0], poses.axes[j, 1], poses.axes[j, 2]
        x, y, z = poses.p[j, 0], poses.p[j, 1], poses.p[j, 2]
        if tree.joints.slides[j]:
            out[j, 0], out[j, 1], out[j, 2] = out[b, 0] + speed * ax, out[b, 1] + speed * ay, out[b, 2] + speed * az
            out[j, 3], out[j, 4], out[j, 5] = out[b, 3], out[b, 4], out[b, 5]
        else:
            out[j, 0] = out[b, 0] + speed * (y * az - z * ay)
            out[j, 1] = out[b, 1] + speed * (z * ax - x * az)
            out[j, 2] = out[b, 2] + speed * (x * ay - y * ax)
            out[j, 3], out[j, 4], out[j, 5] = out[b, 3] + speed * ax, out[b, 4] + speed * ay, out[b, 5] + speed * az


@inlined
def place_base(R0: np.ndarray, p0: np.ndarray, q: np.ndarray, R: np.ndarray, p: np.ndarray) -> None:
    """Fill row 1 with a floating base at R0, p0; q = (x, y, z, quaternion x, y, z, w, ...)."""
    x, y, z, w = q[3], q[4], q[5], q[6]
    # Rotation matrix of the unit quaternion.
    e00, e01, e02 = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
    e10, e11, e12 = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    e20, e21, e22 = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
    for i in range(3):
        R[1, i, 0] = R0[i, 0] * e00 + R0[i, 1] * e10 + R0[i, 2] * e20
        R[1, i, 1] = R0[i, 0] * e01 + R0[i, 1] * e11 + R0[i, 2] * e21
        R[1, i, 2] = R0[i, 0] * e02 + R0[i, 1] * e12 + R0[i, 2] * e22
        p[1, i] = p0[i] + R0[i, 0] * q[0] + R0[i, 1] * q[1] + R0[i, 2] * q[2]


class JointPoses:
    """Forward kinematics of a model into reused arrays.

    Attributes:
        R: (njoints, 3, 3) world; row 0 is the world.
        p: (njoints, 3) world [m].
    """

    def __init__(self, model: pin.Model) -> None:
        """Raise RobotError as `ModelTree.of`."""
        self.tree, self.world = ModelTree.of(model), WorldPoses.of(model.njoints, model.njoints)
        self.R, self.p = self.world.R, self.world.p

    def update(self, q: np.ndarray) -> None:
        """Fill R and p at q (nq,)."""
        joint_poses(self.tree, q, self.world)


# -------- Some joints of a model; the others are held


BASE_AXES = np.vstack([np.eye(3), np.eye(3)[[2, 0, 1]]])  # base: slides x, y, z, then turns z, x, y


class KinematicTree(NamedTuple):
    """Tree of M joints, driven by D coordinates; other joints are held.

    Body 0 is the world. Joint k moves body k + 1.

    Attributes:
        parent: (M,) body that carries joint k.
        coordinate: (M,) that drives joint k.
        gain: (M,) joint = gain * coordinate + offset.
        offset: (M,).
        moves: (M + 1, M) 1 where joint j moves body b.
    """

    joints: JointFrames
    parent: I1
    coordinate: I1
    gain: F1
    offset: F1
    moves: F2

    @classmethod
    def of(
        cls,
        model: pin.Model,
        q_held: np.ndarray,
        joints: Sequence[int] | np.ndarray,
        mimic: Sequence[tuple[int, int, float, float]] = (),
    ) -> tuple[KinematicTree, BodyOfJoint]:
        """Return the tree of the given joints of a model, and the places of all joints in it.

        A floating base becomes joints 0 to 5: slides along x, y, z, turns about z, x, y (`BASE_AXES`), at row 0 of
        `joints.R` and `joints.p`. Move this row to the base pose at every step to avoid the singularity.

        Args:
            q_held: (nq,) configuration of the held joints.
            joints: robot joint indices, in coordinate order.
            mimic: (follower, leader, multiplier, offset).

        Raises:
            RobotError: if another joint has more degrees of freedom.
        """
        floating = model.njoints > 1 and model.joints[1].nq == 7
        if model.nq != model.njoints - 1 + 6 * floating:
            raise RobotError(
                f"{model.name}: a kinematic tree needs joints of one degree of freedom, except for its base"
            )
        first, base = (2, 6) if floating else (1, 0)
        coordinate = {int(j): (base + k, 1.0, 0.0) for k, j in enumerate(joints)}
        for follower, leader, multiplier, offset in mimic:
            if leader in coordinate and follower not in coordinate:
                coordinate[follower] = (coordinate[leader][0], multiplier, offset)
        body = BodyOfJoint(np.zeros(model.njoints, dtype=np.int64), [pin.SE3.Identity() for _ in range(model.njoints)])
        rows: list[tuple] = []
        data = model.createData()
        pin.forwardKinematics(model, data, q_held)
        if floating:
            X = model.jointPlacements[1]
            for k, axis in enumerate(BASE_AXES):
                rows.append((k, X if k == 0 else pin.SE3.Identity(), axis, k < 3, k, 1.0, 0.0))
            body.index[1] = base
        for j in range(first, model.njoints):
            up = int(model.parents[j])
            X = body.pose[up] * model.jointPlacements[j]
            if j - first in coordinate:
                axis, slides = joint_axis(model, j)
                rows.append((body.index[up], X, axis, slides, *coordinate[j - first]))
                body.index[j], body.pose[j] = len(rows), pin.SE3.Identity()
            else:
                # A held joint extends the body of its parent by a constant pose.
                held = data.oMi[up].inverse() * data.oMi[j]
                body.index[j], body.pose[j] = body.index[up], body.pose[up] * held
        return cls._from(rows), body

    @classmethod
    def _from(cls, rows: list[tuple]) -> KinematicTree:
        m = len(rows)
        parent = np.array([r[0] for r in rows], dtype=np.int64)
        moves = np.zeros((m + 1, m))
        for k in range(m):
            moves[k + 1] = moves[parent[k]]
            moves[k + 1, k] = 1.0
        frames = JointFrames(
            np.array([r[1].rotation for r in rows]).reshape(-1, 3, 3),
            np.array([r[1].translation for r in rows]).reshape(-1, 3),
            np.array([r[2] for r in rows]).reshape(-1, 3),
            np.array([r[3] for r in rows], dtype=np.bool_),
        )
        return cls(
            frames,
            parent,
            np.array([r[4] for r in rows], dtype=np.int64),
            np.array([r[5] for r in rows], dtype=float),
            np.array([r[6] for r in rows], dtype=float),
            moves,
        )


@dataclass(frozen=True)
class BodyOfJoint:
    """Places of the joints of a model in a kinematic tree.

    Attributes:
        index: (njoints,) body of each joint.
        pose: of the joint frame in this body.
    """

    index: np.ndarray
    pose: list[pin.SE3]

    def place(self, joint: int, X: pin.SE3) -> tuple[int, pin.SE3]:
        """Return body, and pose in it, of a frame at X in a joint frame."""
        return int(self.index[joint]), self.pose[joint] * X


@kernel
def body_poses(tree: KinematicTree, x: np.ndarray, poses: WorldPoses) -> None:
    """Fill the world poses of bodies and axes at x (D,)."""
    R, p, axes = poses.R, poses.p, poses.axes
    # Row 0 is the world: identity, whatever the memory held before.
    for i in range(3):
        p[0, i] = 0.0
        for k in range(3):
            R[0, i, k] = 1.0 if i == k else 0.0
    for j in range(tree.parent.shape[0]):
        # Mimic joints share a coordinate with another gain and offset.
        value = tree.gain[j] * x[tree.coordinate[j]] + tree.offset[j]
        place_joint(tree.joints, j, value, tree.parent[j], j + 1, R, p, axes)


@kernel
def add_point_row(
    tree: KinematicTree,
    poses: WorldPoses,
    body: int,
    point: tuple[float, float, float],
    n: tuple[float, float, float],
    scale: float,
    out: np.ndarray,
) -> None:
    """Add scale * n . (point Jacobian) to a row.

    Args:
        body: that carries the point.
        point: world [m].
        n: direction, world.
    """
    axes, body_p = poses.axes, poses.p
    for j in range(axes.shape[0]):
        if tree.moves[body, j] == 0.0:
            # Joints outside the path from the body to the world do not move the point.
            continue
        ax, ay, az = axes[j, 0], axes[j, 1], axes[j, 2]
        # Point velocity at unit joint speed: a if the joint slides, a x (point - p_joint) if it turns.
        if tree.joints.slides[j]:
            v = ax * n[0] + ay * n[1] + az * n[2]
        else:
            x, y, z = point[0] - body_p[j + 1, 0], point[1] - body_p[j + 1, 1], point[2] - body_p[j + 1, 2]
            v = (ay * z - az * y) * n[0] + (az * x - ax * z) * n[1] + (ax * y - ay * x) * n[2]
        out[tree.coordinate[j]] += scale * tree.gain[j] * v
