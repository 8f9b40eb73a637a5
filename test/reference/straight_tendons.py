"""Straight tendons over a small arm in plain numpy, written without the package; and tendons on round pulleys."""

from __future__ import annotations

import functools

import numpy as np

from humanoid_control.tendons import GeometryMapping, JointMuscleMapping
from humanoid_control.tendons.mappings.mapping import FitTarget

# A point is (body, x, y, z); body 0 is the scapula, 1 the humerus, 2 the forearm.
ARM = {
    "deltoid_front": [(0, 0.035, 0, 0.035), (1, 0.02, 0.02, -0.12)],
    "deltoid_middle": [(0, 0, 0.045, 0.045), (1, 0, 0.025, -0.12)],
    "deltoid_rear": [(0, -0.04, 0, 0.035), (1, -0.02, 0.02, -0.12)],
    "pectoralis_major": [(0, 0.06, -0.16, -0.06), (1, 0.022, 0, -0.06)],
    "latissimus_dorsi": [(0, -0.06, -0.16, -0.22), (1, 0.018, -0.012, -0.05)],
    "infraspinatus": [(0, -0.06, -0.09, -0.03), (1, -0.02, 0.018, -0.005)],
    "subscapularis": [(0, -0.02, -0.10, -0.05), (1, 0.02, -0.010, -0.005)],
    "biceps": [(0, 0.03, -0.005, 0.02), (1, 0.032, 0, -0.03), (2, 0.025, 0, -0.045)],
    "triceps": [(0, -0.035, -0.01, -0.02), (1, -0.022, 0, -0.22), (2, -0.025, 0, 0.012)],
    "brachialis": [(1, 0.022, 0, -0.18), (2, 0.018, 0, -0.03)],
}
JOINTS = ("gh_roll", "gh_pitch", "gh_yaw", "elbow_pitch")
MUSCLES = tuple(ARM)
LIMITS = np.deg2rad([[-20, 90], [-60, 40], [-60, 60], [-110, -5]])
_AXES = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])
_ELBOW = np.array([0, 0, -0.30])


def rotation(axis, angle):
    """(S, 3, 3) turns by the angles (S,) about a unit axis (Rodrigues)."""
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.eye(3) + s * k + (1 - c) * (k @ k)


@functools.cache
def polylines(muscles):
    """All points (P, 4); which steps (P - 1,) from one to the next are in one muscle; whose (M, S) those are."""
    points = np.array([point for muscle in muscles for point in muscle])
    owner = np.repeat(np.arange(len(muscles)), [len(muscle) for muscle in muscles])
    inner = owner[1:] == owner[:-1]
    return points, inner, (owner[1:][inner] == np.arange(len(muscles))[:, None]).astype(float)


def chain(q, muscles, axes, origins, body_after):
    """Lengths (S, M) and Jacobians (S, M, D) of polylines over a serial chain of turning joints.

    Args:
        origins: (D, 3) where each joint sits in the frame before it. body_after: body b moves with the first
            body_after[b] joints.
    """
    n, d = q.shape
    R, p = [np.broadcast_to(np.eye(3), (n, 3, 3))], [np.zeros((n, 3))]
    world_axes, centres = np.zeros((n, d, 3)), np.zeros((n, d, 3))
    for j in range(d):
        centre = p[-1] + R[-1] @ origins[j]
        world_axes[:, j], centres[:, j] = R[-1] @ axes[j], centre
        R.append(R[-1] @ rotation(axes[j], q[:, j]))
        p.append(centre)
    points, inner, whose = polylines(tuple(map(tuple, muscles)))
    places, speeds = np.zeros((n, len(points), 3)), np.zeros((n, len(points), d, 3))
    for body, k in enumerate(body_after):
        of_body = points[:, 0] == body
        if not of_body.any():
            continue
        at = p[k][:, None] + points[of_body, 1:] @ R[k].transpose(0, 2, 1)
        places[:, of_body] = at
        ax, ay, az = world_axes[:, None, :k].transpose(3, 0, 1, 2)
        rx, ry, rz = (at[:, :, None] - centres[:, None, :k]).transpose(3, 0, 1, 2)
        speeds[:, of_body, :k] = np.stack([ay * rz - az * ry, az * rx - ax * rz, ax * ry - ay * rx], axis=-1)
    segments = np.diff(places, axis=1)[:, inner]
    long = np.linalg.norm(segments, axis=2)
    stretching = np.einsum("sac,sadc->sad", segments / long[..., None], np.diff(speeds, axis=1)[:, inner])
    return long @ whose.T, whose @ stretching


def arm(q):
    """The arm of four joints and ten muscles."""
    origins = np.zeros((4, 3))
    origins[3] = _ELBOW
    return chain(np.asarray(q, float), ARM.values(), _AXES, origins, (0, 3, 4))


GIRDLE_JOINTS = ("sc_roll", "sc_pitch", "ac_roll", "ac_yaw", *JOINTS)
GIRDLE_LIMITS = np.vstack([np.deg2rad([[-8, 25], [-20, 20], [-10, 30], [-10, 10]]), LIMITS])


def random_walk(limits, start, steps, sigma, seed):
    """(steps, D) angles: velocity v <- 0.9 v + sqrt(0.19) sigma xi, reflected at the limits [rad]."""
    rng = np.random.default_rng(seed)
    q, v, out = np.array(start, float), np.zeros(len(start)), []
    for _ in range(steps):
        v = 0.9 * v + np.sqrt(1 - 0.81) * sigma * rng.standard_normal(len(v))
        q = q + v
        for j, (lo, hi) in enumerate(limits):
            if not lo <= q[j] <= hi:
                q[j] = 2 * (lo if q[j] < lo else hi) - q[j]
                v[j] = -v[j]
        out.append(q.copy())
    return np.array(out)


SCAPULA = {
    "trapezius_middle": [(3, -0.04, 0.0, 0.02), (0, -0.035, -0.02, -0.007)],
    "trapezius_lower": [(3, -0.06, 0.03, -0.19), (0, -0.043, -0.049, 0.007)],
    "levator_scapulae": [(3, -0.02, 0.0, 0.10), (0, -0.057, -0.03, -0.027)],
    "serratus_anterior": [(3, 0.06, 0.17, -0.09), (0, -0.047, -0.067, -0.10)],
    "rhomboid": [(3, -0.06, 0.0, 0.0), (0, -0.066, -0.052, -0.088)],
    "pectoralis_minor": [(3, 0.08, 0.10, -0.11), (0, 0.044, -0.041, -0.018)],
    "pectoralis_abdominal": [(3, 0.06, 0.03, -0.15), (1, 0.03, 0.0, -0.07)],
    "latissimus_upper": [(3, -0.08, 0.0, -0.13), (1, 0.02, -0.03, -0.05)],
}
SHOULDER = {
    **ARM,
    "pectoralis_major": [(3, 0.06, -0.01, -0.06), (1, 0.022, 0, -0.06)],
    "latissimus_dorsi": [(3, -0.06, -0.01, -0.22), (1, 0.018, -0.012, -0.05)],
}
GIRDLE_MUSCLES = (*SCAPULA, *SHOULDER)


def girdle(q, muscles=GIRDLE_MUSCLES):
    """The arm behind a clavicle and a scapula: eight joints; all eighteen tendons or those named."""
    axes = np.vstack([[[1.0, 0, 0], [0, 0, -1.0], [1, 0, 0], [0, 1, 0]], _AXES])
    origins = np.zeros((8, 3))
    origins[2], origins[7] = [0, 0.15, 0], _ELBOW
    routes = SCAPULA | SHOULDER
    return chain(np.asarray(q, float), [routes[m] for m in muscles], axes, origins, (4, 7, 8, 0))


ARM_LENGTHS = FitTarget(arm, JOINTS, MUSCLES, LIMITS)
EXACT = GeometryMapping(arm, JOINTS, MUSCLES, LIMITS)


class Pulleys(JointMuscleMapping):
    """Ten tendons on pulleys over four joints: moment arms that never change."""

    arms = np.random.default_rng(0).uniform(-0.03, 0.03, (10, 4))

    def evaluate_into(self, theta, lengths, jacobian):
        lengths[:] = self.arms @ theta
        jacobian[:] = self.arms

    def directional_into(self, theta, v, out):
        out[:] = 0.0
