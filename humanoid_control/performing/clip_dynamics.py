"""Dynamics of a clip: speeds, momentum, contact forces, and the torques that go with them.

Forces of the standing corners give the wrench that the centre of mass and the angular momentum ask for, as evenly as
the cones of friction allow,

    f = argmin |G f - w|^2 + epsilon^2 |f|^2,    tau = M a + h - J' f

with the rotors of the drives in M. Accelerations of the base are those of the six equations of the base themselves, so
that q, v, a, f and tau agree to round-off; a wrench that no contact gives is left as `missing`.
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

EVEN = 1e-3  # epsilon: forces are spread evenly where the wrench leaves a choice
SPEED_CUTOFF, ACCELERATION_CUTOFF = 20.0, 15.0  # [Hz]


def friction_cone(friction: float) -> np.ndarray:
    """Edges (3, 4) of a cone of four sides, upward."""
    mu = friction
    return np.array([[mu, 0, 1], [-mu, 0, 1], [0, mu, 1], [0, -mu, 1]]).T


def skew(arms: np.ndarray) -> np.ndarray:
    """Matrices (m, 3, 3) whose products with a vector are cross products of arms (m, 3) with it."""
    out = np.zeros((len(arms), 3, 3))
    x, y, z = arms.T
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -z, y, -x
    out[:, 1, 0], out[:, 2, 0], out[:, 2, 1] = z, -y, x
    return out


def contact_forces(arms: np.ndarray, needed: np.ndarray, cone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forces of points in contact with a level floor that come nearest to a wrench, the most even of them.

    Args:
        arms: (m, 3) places of the points from the centre of mass [m].
        needed: (6,) force [N] and moment about the centre of mass [N m], which count alike.
        cone: (3, s) edges of the cone of friction, of `friction_cone`.

    Returns:
        (m, 3) forces on the robot [N], each within the cone; (6,) what they leave of the wrench.
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
    """Velocities and accelerations (T, nv) of configurations (T, nq): central differences, low-passed."""
    steps = np.array([pin.difference(robot.model, a, b) for a, b in pairwise(q)])
    steps = np.vstack([steps[:1] * 0.0, steps, steps[-1:] * 0.0])  # at rest before and after
    v = smoothed(0.5 * rate * (steps[1:] + steps[:-1]), SPEED_CUTOFF, rate)
    return v, smoothed(np.gradient(v, 1.0 / rate, axis=0), ACCELERATION_CUTOFF, rate)


def center_and_momentum(robot: Robot, q: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass (T, 3) [m], and angular momentum about it (T, 3) [N m s]."""
    v, _ = velocities(robot, q, rate)
    c, L = np.empty((len(q), 3)), np.empty((len(q), 3))
    for k in range(len(q)):
        L[k] = pin.computeCentroidalMomentum(robot.model, robot.data, q[k], v[k]).angular
        c[k] = robot.data.com[0]
    return c, L


@dataclass(frozen=True)
class Loads:
    """Forces and torques of a motion at some of its frames.

    Attributes:
        frames: (F,) which. forces: (F, 8, 3) of the corners, in the world [N].
        missing: (F, 6) force [N] and moment about the centre of mass [N m] that no contact gives.
        torque: (F, n) of the drives [N m]; what moves a mimicking joint is its leader's.
        acceleration: (F, nv), whose base fulfils the equations of the base with forces and missing wrench.
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
    """Forces and torques of a motion.

    Args:
        robot, soles, plan: who stands where.
        center: of mass, whose acceleration and momentum rate the forces give.
        motion: q (T, nq), v, a (T, nv).
        friction: of the floor.
        step: every n-th frame.
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
        # The wrench of the contacts and of what is missing, and the base's acceleration that goes with it.
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
    """A wrench about the origin of a joint at X, from the axes of the world to those of the joint."""
    return pin.Force(X.rotation.T @ force, X.rotation.T @ moment)


def torque_limits(robot: Robot) -> np.ndarray:
    """Torque limits (n,) [N m] of the joints that are driven and carry mass; infinite where none is known."""
    limits = np.where(robot.effort_known & (robot.effort > 0), robot.effort, np.inf)
    masses = np.array([inertia.mass for inertia in robot.model.inertias])
    for k in range(robot.n):
        if not masses[robot.ancestor_mask[:, robot.iv + k] > 0].sum() > 0:
            limits[k] = np.inf
    for follower, *_ in robot.mimic:
        limits[follower] = np.inf
    return limits
