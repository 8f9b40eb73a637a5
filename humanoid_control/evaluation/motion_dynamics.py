"""Dynamics of a whole-body motion: centre of mass over its support, and required torques.

Finite differences and the recursive Newton-Euler algorithm give the wrench w needed at the root, expressed about the
centre of mass [N, N m]. Contact corners produce as much of it as their friction cones allow, with forces f and wrench
map G; joint torques balance the rest:

    tau = ID(q, v, a) - J_c' f,    f = argmin |G f - w|^2 + epsilon^2 |f|^2    over the cones of friction

The remainder is reported as the wrench of a helping hand at the root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.ground_contact import edge_corners
from humanoid_control.performing.clip_dynamics import contact_forces, friction_cone
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.support import convex_hull, nearest_in_polygon

FRICTION = 0.7  # coefficient of the four-sided friction cone
INSIDE = 1e-6  # [m] rounding tolerance at the support edge
CONE = friction_cone(FRICTION)


@dataclass(frozen=True)
class Dynamics:
    """Dynamics of a motion at some frames.

    Attributes:
        frames: (F,) frame indices: all but the first and last, or every n-th.
        outside: (F,) distance of the projected centre of mass from the support [m]: 0 inside, NaN without contact.
        forces: (F, 8, 3) on the corners of EDGES, two per edge, in the world [N].
        missing: (F, 6) force [N] and moment about the centre of mass [N m] that contacts cannot produce.
        torque: (F, n) joint torques, mimic joints added to their leaders [N m].
        effort: (n,) limits [N m]; NaN if unknown, massless or mimic.
    """

    frames: np.ndarray
    outside: np.ndarray
    forces: np.ndarray
    missing: np.ndarray
    torque: np.ndarray
    effort: np.ndarray
    weight: float

    @property
    def effort_share(self) -> np.ndarray:
        """Torques over limits (F, n); NaN without limit."""
        return np.asarray(np.abs(self.torque) / self.effort)

    @property
    def balanced(self) -> float:
        """Share of contact frames with the centre of mass over the support; NaN without contact."""
        held = self.outside[np.isfinite(self.outside)]
        return float(np.mean(held <= INSIDE)) if len(held) else np.nan


def measure_dynamics(robot: Robot, q: np.ndarray, contacts: np.ndarray, rate: float, step: int = 1) -> Dynamics | None:
    """Compute the dynamics of a motion from unsmoothed frame differences.

    Args:
        q: (T, nq) configurations.
        contacts: (T, 4) contact of each of EDGES.

    Returns:
        None if the robot has no mass, or the motion fewer than three frames.

    Raises:
        ConfigError: if the shapes do not match.
        RobotError: if the base is fixed, or soles are missing.
    """
    if q.ndim != 2 or q.shape[1] != robot.nq or contacts.shape != (len(q), 4):
        raise ConfigError(f"expected q (T, {robot.nq}) and contacts (T, 4), got {q.shape} and {contacts.shape}")
    corners = [corner for ends in edge_corners(robot) for corner in ends]
    if not robot.mass > 0 or len(q) < 3:
        return None
    model, data = robot.model, robot.model.createData()
    frames = np.arange(1, len(q) - 1, step)
    carriers = np.array([model.frames[frame].parentJoint for frame, _ in corners])
    outside, torque = np.full(len(frames), np.nan), np.empty((len(frames), robot.n))
    forces, missing = np.zeros((len(frames), 8, 3)), np.empty((len(frames), 6))
    for i, k in enumerate(frames):
        before, after = pin.difference(model, q[k - 1], q[k]), pin.difference(model, q[k], q[k + 1])
        tau = pin.rnea(model, data, q[k], 0.5 * rate * (before + after), rate**2 * (after - before))
        com = np.array(pin.centerOfMass(model, data, q[k], False))
        pin.computeJointJacobians(model, data, q[k])
        pin.updateFramePlacements(model, data)
        held = np.repeat(contacts[k], 2)
        places = np.array([data.oMf[frame].act(place) for frame, place in corners])
        if held.any():
            outside[i] = distance_outside(places[held, :2], com[:2])
        needed = data.oMi[1].act(pin.Force(tau[:6])).vector.copy()  # about the world origin
        needed[3:] -= np.cross(com, needed[:3])
        forces[i, held], missing[i] = contact_forces(places[held] - com, needed, CONE)
        for joint in np.unique(carriers[held]).tolist():
            on = held & (carriers == joint)
            arms = places[on] - data.oMi[joint].translation
            wrench = np.concatenate([forces[i, on].sum(axis=0), np.cross(arms, forces[i, on]).sum(axis=0)])
            tau -= pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED).T @ wrench
        torque[i] = tau[6:]
    return Dynamics(frames, outside, forces, missing, *_driven(robot, torque), robot.mass * GRAVITY)


def distance_outside(corners: np.ndarray, point: np.ndarray) -> float:
    """Return the distance of a point (2,) from the convex hull of corners (m, 2) [m]; 0 inside."""
    hull = convex_hull(np.ascontiguousarray(corners))
    if len(hull) < 3:  # a single edge has no interior
        a, along = hull[0], hull[-1] - hull[0]
        s = np.clip((point - a) @ along / max(along @ along, 1e-18), 0.0, 1.0)
        return float(np.linalg.norm(point - a - s * along))
    return float(np.linalg.norm(point - nearest_in_polygon(hull, np.ascontiguousarray(point))))


def _driven(robot: Robot, torque: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return torques (F, n) with mimic joints added to their leaders, and limits (n,) of the driving joints."""
    effort = np.where(robot.effort_known & (robot.effort > 0), robot.effort, np.nan)
    masses = np.array([inertia.mass for inertia in robot.model.inertias])
    for k in range(robot.n):
        moved = robot.ancestor_mask[:, robot.iv + k] > 0
        if not masses[moved].sum() > 0:
            effort[k] = np.nan  # the torque of a massless link is meaningless
    torque = torque.copy()
    for follower, leader, multiplier, _ in robot.mimic:
        torque[:, leader] += multiplier * torque[:, follower]
        torque[:, follower], effort[follower] = 0.0, np.nan
    return torque, effort
