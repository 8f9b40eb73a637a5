"""Dynamics of a clip: velocities, momentum, contact forces and joint torques.

Forces at standing corners give the required wrench w as evenly as friction cones allow:

    f = argmin |G f - w|^2 + epsilon^2 |f|^2,    tau = M a + h - J' f

M includes drive rotors. Base accelerations solve the base equations exactly. The rest of the wrench is `missing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pinocchio as pin
from scipy.optimize import nnls

from humanoid_control.performing.center_program import CenterMotion, standing_corners
from humanoid_control.performing.contact_plan import ContactPlan
from humanoid_control.performing.source_motion import RigidSoles, smoothed
from humanoid_control.robots import Robot
from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT
from humanoid_control.walking.gait import GRAVITY

EVEN = 1e-3  # epsilon: even forces where the wrench leaves a choice
SPEED_CUTOFF, ACCELERATION_CUTOFF = 20.0, 15.0  # [Hz]


def friction_cone(friction: float) -> np.ndarray:
    """Return the four upward edges (3, 4) of a friction pyramid."""
    mu = friction
    return np.array([[mu, 0, 1], [-mu, 0, 1], [0, mu, 1], [0, -mu, 1]]).T


def skew(arms: np.ndarray) -> np.ndarray:
    """Return cross-product matrices (m, 3, 3) of arms (m, 3)."""
    out = np.zeros((len(arms), 3, 3))
    x, y, z = arms.T
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -z, y, -x
    out[:, 1, 0], out[:, 2, 0], out[:, 2, 1] = z, -y, x
    return out


def contact_forces(arms: np.ndarray, needed: np.ndarray, cone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most even contact forces that best match a wrench.

    Args:
        arms: lever arms from the centre of mass (m, 3) [m].
        needed: force [N] and moment about the centre of mass [N m] (6,).
        cone: edges (3, s).

    Returns:
        Forces on the robot (m, 3) [N]; remaining wrench (6,).
    """
    if not len(arms):
        return np.zeros((0, 3)), needed.copy()
    sides = cone.shape[1]
    G = np.empty((6, len(arms), sides))
    G[:3], G[3:] = cone[:, None, :], (skew(arms) @ cone).transpose(1, 0, 2)
    A = np.vstack([G.reshape(6, -1), EVEN * np.eye(sides * len(arms))])
    share, _ = nnls(A, np.concatenate([needed, np.zeros(A.shape[1])]))
    return share.reshape(len(arms), sides) @ cone.T, needed - A[:6] @ share


def velocities(robot: Robot, q: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return velocities and accelerations (T, nv): low-passed central differences."""
    steps = np.array([pin.difference(robot.model, a, b) for a, b in pairwise(q)])
    steps = np.vstack([steps[:1] * 0.0, steps, steps[-1:] * 0.0])  # at rest before and after
    v = smoothed(0.5 * rate * (steps[1:] + steps[:-1]), SPEED_CUTOFF, rate)
    return v, smoothed(np.gradient(v, 1.0 / rate, axis=0), ACCELERATION_CUTOFF, rate)


def center_and_momentum(robot: Robot, q: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centre of mass (T, 3) [m] and angular momentum about it, world axes (T, 3) [N m s]."""
    v, _ = velocities(robot, q, rate)
    c, L = np.empty((len(q), 3)), np.empty((len(q), 3))
    for k in range(len(q)):
        L[k] = pin.computeCentroidalMomentum(robot.model, robot.data, q[k], v[k]).angular
        c[k] = robot.data.com[0]
    return c, L


@dataclass(frozen=True)
class Loads:
    """Forces and torques at F frames.

    Attributes:
        forces: contact forces on the corners, world frame (F, 8, 3) [N].
        missing: force [N] and moment about the centre of mass [N m] beyond the contacts (F, 6).
        torque: drive torque, with mimic joints added to their leaders (F, n) [N m].
        acceleration: consistent with both (F, nv).
    """

    frames: np.ndarray
    forces: np.ndarray
    missing: np.ndarray
    torque: np.ndarray
    acceleration: np.ndarray


def loads_of(
    robot: Robot,
    soles: RigidSoles,
    plan: ContactPlan,
    center: CenterMotion,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    friction: float,
    step: int = 1,
) -> Loads:
    """Compute forces and torques of a motion.

    Args:
        center: acceleration and momentum rate to produce.
        motion: q (T, nq), v, a (T, nv).
    """
    q, v, a = motion
    model, data = robot.model, robot.model.createData()
    model_rotors = np.concatenate(
        [np.zeros(robot.iv), ROTOR_PER_EFFORT * np.where(robot.effort_known, robot.effort, 0)]
    )
    frames, on, cone = np.arange(0, len(q), step), standing_corners(plan), friction_cone(friction)
    forces, missing = np.zeros((len(frames), 8, 3)), np.empty((len(frames), 6))
    torque, acceleration = np.empty((len(frames), robot.n)), np.empty((len(frames), robot.nv))
    mass, weight = robot.mass, np.array([0.0, 0.0, GRAVITY])
    carriers = soles.carriers.reshape(-1)
    carried = [(int(joint), carriers == joint) for joint in np.unique(carriers)]
    outside = pin.StdVec_Force()
    outside.extend([pin.Force.Zero()] * model.njoints)
    for i, k in enumerate(frames):
        c = np.array(pin.centerOfMass(model, data, q[k], False))
        X = [data.oMi[soles.joints[f]] * soles.X_joint_sole[f] for f in (0, 1)]
        places = np.concatenate([soles.corners[f] @ X[f].rotation.T + X[f].translation for f in (0, 1)])
        needed = np.concatenate([mass * (center.acceleration[k] + weight), center.momentum_rate[k]])
        forces[i, on[k]], missing[i] = contact_forces(places[on[k]] - c, needed, cone)
        # contact wrenches, missing wrench, and the base acceleration consistent with them
        for joint, own in carried:
            arms, f = places[own] - data.oMi[joint].translation, forces[i, own]
            moment = np.einsum("kij,kj->i", skew(arms), f)
            outside[joint] = _local(data.oMi[joint], f.sum(axis=0), moment)
        helper = missing[i, 3:] + pin.skew(c - data.oMi[1].translation) @ missing[i, :3]
        outside[1] = _local(data.oMi[1], missing[i, :3], helper)
        tau = pin.rnea(model, data, q[k], v[k], a[k], outside)
        M = pin.crba(model, data, q[k])
        shift = np.linalg.solve(M[:6, :6], -tau[:6])
        acceleration[i] = a[k]
        acceleration[i, :6] += shift
        torque[i] = (tau + M[:, :6] @ shift + model_rotors * a[k])[robot.iv :]
    for follower, leader, multiplier, _ in robot.mimic:
        torque[:, leader] += multiplier * torque[:, follower]
        torque[:, follower] = 0.0
    return Loads(frames, forces, missing, torque, acceleration)


def _local(X: pin.SE3, force: np.ndarray, moment: np.ndarray) -> pin.Force:
    """Express a wrench about a joint's origin in its axes."""
    return pin.Force(X.rotation.T @ force, X.rotation.T @ moment)


def torque_limits(robot: Robot) -> np.ndarray:
    """Return torque limits (n,) [N m] of driven joints with mass; else infinite."""
    limits = np.where(robot.effort_known & (robot.effort > 0), robot.effort, np.inf)
    masses = np.array([inertia.mass for inertia in robot.model.inertias])
    for k in range(robot.n):
        if not masses[robot.ancestor_mask[:, robot.iv + k] > 0].sum() > 0:
            limits[k] = np.inf
    for follower, *_ in robot.mimic:
        limits[follower] = np.inf
    return limits
