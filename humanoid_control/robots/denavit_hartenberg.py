"""Denavit-Hartenberg tables of a robot's chains from its URDF: independent kinematics.

Standard (distal) convention (Dube 2012, section 4.1): z_i is the axis of joint i + 1, x_i is perpendicular to z_{i-1}
and z_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.description.tree_changes import JointChain, serial_chain
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.robot import Robot

# Axes that differ by a smaller angle [rad] count as parallel. Farther apart, their common normal lies up to 1 /
# PARALLEL times their distance away and costs as many digits; the two errors are then both about 1e-8.
PARALLEL = 1e-8


@dataclass(frozen=True)
class DenavitHartenberg:
    """Table of a serial chain of n revolute joints.

    Attributes:
        base: first link.
        tip: last link or point.
        a: (n,) along x_i [m].
        alpha: (n,) about x_i [rad].
        d: (n,) along z_{i-1} [m].
        theta: (n,) about z_{i-1} [rad], added to the angle.
        X_base_0: (4, 4) before the first frame.
        X_n_tip: (4, 4) after the last frame.
    """

    base: str
    tip: str
    joint_names: tuple[str, ...]
    a: np.ndarray
    alpha: np.ndarray
    d: np.ndarray
    theta: np.ndarray
    X_base_0: np.ndarray
    X_n_tip: np.ndarray

    def frames(self, angles: np.ndarray) -> np.ndarray:
        """Return poses (n + 1, 4, 4) of frames 0 .. n in the base link, eqs. (4.4) and (4.5), for angles (n,) [rad]."""
        out = [self.X_base_0]
        for a, alpha, d, theta in zip(self.a, self.alpha, self.d, self.theta + angles, strict=True):
            out.append(out[-1] @ dh_transform(a, alpha, d, theta))
        return np.array(out)

    def pose(self, angles: np.ndarray) -> np.ndarray:
        """Return the tip pose (4, 4) in the base link for angles (n,) [rad]."""
        return self.frames(angles)[-1] @ self.X_n_tip

    def jacobian(self, angles: np.ndarray) -> np.ndarray:
        """Return the geometric Jacobian (6, n) of the tip p_n in the base link, eq. (4.8).

        J_Pi = z_{i-1} x (p_n - p_{i-1}), then J_Oi = z_{i-1}.
        """
        frames = self.frames(angles)
        tip = (frames[-1] @ self.X_n_tip)[:3, 3]
        z, p = frames[:-1, :3, 2], frames[:-1, :3, 3]
        return np.vstack([np.cross(z, tip - p).T, z.T])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per joint: joint, a_m, alpha_deg, d_m, theta_deg."""
        columns = (self.a, np.degrees(self.alpha), self.d, np.degrees(self.theta))
        numbers = np.column_stack(columns).round(12).tolist()
        keys = ("joint", "a_m", "alpha_deg", "d_m", "theta_deg")
        return [dict(zip(keys, (name, *row), strict=True)) for name, row in zip(self.joint_names, numbers, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """Return the table as dictionaries and lists; transforms as rows [m]."""
        return {
            "base": self.base,
            "tip": self.tip,
            "rows": self.rows(),
            "base_to_frame_0": self.X_base_0.tolist(),
            "frame_n_to_tip": self.X_n_tip.tolist(),
        }


def dh_transform(a: float, alpha: float, d: float, theta: float) -> np.ndarray:
    """Return the matrix of eq. (4.4), (4, 4): Rot_z(theta) Trans_z(d) Trans_x(a) Rot_x(alpha)."""
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [0.0, sa, ca, d],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def dh_of(robot: Robot, tip: str, base: str | None = None) -> DenavitHartenberg:
    """Return the table of a robot's chain.

    Args:
        tip: tracked point, else link.
        base: first link; default: anchor.

    Raises:
        UnknownNameError: if point or link is unknown.
        RobotError: if no joint lies between, or one is not revolute.
    """
    tree = parse_urdf(robot.urdf, robot.name)
    link, offset = robot.file.points.get(tip, (tip, (0.0, 0.0, 0.0)))
    if link not in tree.links:
        raise UnknownNameError("point or link", tip, {*robot.points, *tree.links}, hint=f"(robot {robot.name})")
    chain = serial_chain(tree, base or robot.anchor, link)
    X = np.eye(4)
    X[:3, 3] = offset
    return dh_of_chain(JointChain(chain.base, tip, chain.joints, chain.X_tip @ X))


def dh_of_chain(chain: JointChain) -> DenavitHartenberg:
    """Return the table of a chain; frame n is at the tip, its z parallel to the last axis.

    Raises:
        RobotError: if there is no joint, or if one is not revolute.
    """
    if not chain.joints:
        raise RobotError(f"no joint moves '{chain.tip}' relative to '{chain.base}': no Denavit-Hartenberg table")
    sliding = [j.name for j in chain.joints if j.kind != "revolute"]
    if sliding:
        raise RobotError(
            f"joint '{sliding[0]}' is not revolute: Denavit-Hartenberg tables need chains of revolute joints"
        )
    X, axes = np.eye(4), []  # all joints at 0; each axis as a point and a direction in the base
    for joint in chain.joints:
        X = X @ joint.X
        axes.append((X[:3, 3], X[:3, :3] @ joint.axis))
    X_base_tip = X @ chain.X_tip
    axes.append((X_base_tip[:3, 3], axes[-1][1]))

    frames = [_first_frame(*axes[0])]
    for point, direction in axes[1:]:
        frames.append(_next_frame(frames[-1], point, direction))
    rows = np.array([_parameters(before, after) for before, after in pairwise(frames)])
    rows += 0.0  # no -0
    return DenavitHartenberg(
        base=chain.base,
        tip=chain.tip,
        joint_names=tuple(j.name for j in chain.joints),
        a=rows[:, 0],
        alpha=rows[:, 1],
        d=rows[:, 2],
        theta=rows[:, 3],
        X_base_0=frames[0],
        X_n_tip=np.linalg.solve(frames[-1], X_base_tip),
    )


def _first_frame(point: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return frame 0 on the first joint, x nearest to the base's x (else y)."""
    start = np.eye(3)[0] if abs(z[0]) < 0.9 else np.eye(3)[1]
    return _frame(point, start - (start @ z) * z, z)


def _next_frame(before: np.ndarray, point: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return frame i from frame i - 1 and the axis of joint i + 1 (point, direction), at zero angles."""
    x0, z0, p0 = before[:3, 0], before[:3, 2], before[:3, 3]
    normal = np.cross(z0, z)
    sine = float(np.linalg.norm(normal))
    if sine < PARALLEL:
        # Parallel axes: of all common normals the one through the joint's own origin.
        across = (point - p0) - ((point - p0) @ z0) * z0
        return _frame(point, across if np.linalg.norm(across) > 1e-12 else x0, np.sign(z0 @ z) * z0)
    # The common normal meets the new axis at point + t z; where they intersect it is that point.
    t = float((point - p0) @ np.cross(z0, normal)) / sine**2
    foot = point + t * z
    x = normal / sine
    a = float((foot - p0) @ x)
    return _frame(foot, x if a >= -1e-12 else -x, z)  # a >= 0


def _frame(origin: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    X = np.eye(4)
    x = x - (x @ z) * z
    x = x / np.linalg.norm(x)
    X[:3, 0], X[:3, 1], X[:3, 2], X[:3, 3] = x, np.cross(z, x), z, origin
    return X


def _parameters(before: np.ndarray, after: np.ndarray) -> tuple[float, float, float, float]:
    """Return (a, alpha, d, theta) between two frames."""
    X = np.linalg.solve(before, after)
    theta = float(np.arctan2(X[1, 0], X[0, 0]))
    a = float(X[0, 3] * np.cos(theta) + X[1, 3] * np.sin(theta))
    return a, float(np.arctan2(X[2, 1], X[2, 2])), float(X[2, 3]), theta


def difference_from_urdf(
    robot: Robot, table: DenavitHartenberg, postures: int = 100, seed: int = 0
) -> tuple[float, float, float]:
    """Return the largest differences between table and model over random postures.

    Returns:
        Largest absolute entry: tip position [m], rotation matrix, Jacobian (m per rad, and 1).
    """
    rng = np.random.default_rng(seed)
    model, data = robot.model, robot.model.createData()
    columns = np.array([robot.joint_index(name) for name in table.joint_names])
    tip = robot.points[table.tip] if table.tip in robot.points else model.getFrameId(table.tip, pin.FrameType.BODY)
    base = model.getFrameId(table.base, pin.FrameType.BODY)
    lower, upper = robot.range_within(np.pi)
    worst = np.zeros(3)
    for _ in range(postures):
        joints = rng.uniform(lower, upper)
        pin.computeJointJacobians(model, data, robot.q(joints))
        pin.updateFramePlacements(model, data)
        X = data.oMf[base].inverse() * data.oMf[tip]
        J = pin.getFrameJacobian(model, data, tip, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[:, robot.iv + columns]
        R = data.oMf[base].rotation.T
        pose, J_table = table.pose(joints[columns]), table.jacobian(joints[columns])
        worst = np.maximum(
            worst,
            [
                np.abs(pose[:3, 3] - X.translation).max(),
                np.abs(pose[:3, :3] - X.rotation).max(),
                np.abs(J_table - np.vstack([R @ J[:3], R @ J[3:]])).max(),
            ],
        )
    return float(worst[0]), float(worst[1]), float(worst[2])
