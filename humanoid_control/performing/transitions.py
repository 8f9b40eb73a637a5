"""Transitions into and out of feasible motions, feasible themselves."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.feasible_motion import ERRORS, feasible_source
from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.performing.source_motion import RigidSoles, SourceMotion, rotations_z, wrapped, yaw_of
from humanoid_control.robots import Robot

SAME_PLACE, SAME_YAW, SAME_JOINT = (
    0.004,
    np.radians(0.5),
    0.01,
)  # [m], [rad], [rad] differences that need no motion
SPEED_SHARE, QUICKEST = 0.3, 1.0  # of the joints' speed limits; [s] shortest duration
STILL, SWING, BETWEEN, RISE = 0.5, 0.7, 0.5, 0.05  # [s] at both ends, of a step, between steps; [m] step height
STOPPING, CENTERING, STOOD = 0.4, 1.2, 0.3  # [s] until joints rest, until the weight is centred, and after
WORLD_VECTORS = ("center_velocity", "center_acceleration", "momentum", "momentum_rate", "forces")


def placed(motion: DynamicMotion, yaw: float, shift: np.ndarray) -> DynamicMotion:
    """Rotate a motion about the vertical, then shift it.

    Args:
        yaw: [rad].
        shift: (2,) [m].
    """
    R = rotations_z(np.asarray(yaw))
    out: dict[str, Any] = {name: getattr(motion, name) @ R.T for name in WORLD_VECTORS}
    at = np.array([shift[0], shift[1], 0.0])
    q = motion.q.copy()
    q[:, :3] = q[:, :3] @ R.T + at
    q[:, 3:7] = (Rotation.from_matrix(R) * Rotation.from_quat(q[:, 3:7])).as_quat()
    for name in ("sole_twist", "sole_acceleration", "missing"):
        x = getattr(motion, name)
        out[name] = np.concatenate([x[..., :3] @ R.T, x[..., 3:] @ R.T], axis=-1)
    return replace(
        motion,
        q=q,
        center=motion.center @ R.T + at,
        zmp=motion.zmp @ R[:2, :2].T + at[:2],
        sole_position=motion.sole_position @ R.T + at,
        sole_rotation=R @ motion.sole_rotation,
        **out,
    )


def placed_on(motion: DynamicMotion, R: np.ndarray, p: np.ndarray) -> DynamicMotion:
    """Place a motion with its first soles over the given ones.

    Args:
        R: (2, 3, 3).
        p: (2, 3).
    """
    own_R, own_p = motion.sole_rotation[0], motion.sole_position[0]
    yaw = _heading(R, p) - _heading(own_R, own_p)
    own = rotations_z(np.asarray(yaw))[:2, :2] @ own_p[:, :2].mean(axis=0)
    return placed(motion, yaw, p[:, :2].mean(axis=0) - own)


def _heading(R: np.ndarray, p: np.ndarray) -> float:
    yaw = yaw_of(R)
    return float(yaw[0] + 0.5 * wrapped(yaw[1] - yaw[0]))


def joined(first: DynamicMotion, second: DynamicMotion) -> DynamicMotion:
    """Concatenate two motions; the first ends at rest where the second begins."""
    arrays: dict[str, Any] = {}
    for f in fields(DynamicMotion):
        a, b = getattr(first, f.name), getattr(second, f.name)
        if isinstance(a, np.ndarray):
            arrays[f.name] = np.concatenate([a, b[1:]])
    arrays["clock"] = np.concatenate([np.full(len(first), second.clock[0]), second.clock[1:]])
    begin = (len(first) - 1) / first.rate
    changes = tuple(c._replace(time=c.time + begin) for c in second.changes)
    return replace(second, changes=changes, **arrays)


def approach(robot: Robot, q: np.ndarray, motion: DynamicMotion) -> DynamicMotion:
    """Return a motion from a stance to the start of `motion`, followed by `motion`.

    Feet that differ step one after the other. The motion is placed at the robot.

    Args:
        q: standing configuration (nq,).

    Raises:
        ClipError: as `make_feasible`.
        RobotError: as `make_feasible`.
    """
    soles = RigidSoles.of(robot)
    R, p = (x[0] for x in soles.poses(robot, q[None]))
    motion = placed_on(motion, R, p)
    lead = way_to(robot, soles, q, motion)
    return motion if lead is None else joined(lead, placed_on(motion, lead.sole_rotation[-1], lead.sole_position[-1]))


def way_to(robot: Robot, soles: RigidSoles, q: np.ndarray, motion: DynamicMotion) -> DynamicMotion | None:
    """Return the transition to the first posture; None if already there.

    Args:
        motion: placed at the robot's soles.
    """
    iq, end = robot.iq, motion.q[0]
    R, p = (x[0] for x in soles.poses(robot, q[None]))
    goal_R, goal_p = motion.sole_rotation[0], motion.sole_position[0]
    off = np.linalg.norm(goal_p[:, :2] - p[:, :2], axis=1)
    turned = np.abs(wrapped(yaw_of(goal_R) - yaw_of(R)))
    steps = [f for f in (0, 1) if off[f] > SAME_PLACE or turned[f] > SAME_YAW]
    apart = np.abs(end[iq:] - q[iq:])
    if not steps and apart.max() < SAME_JOINT:
        return None
    # peak speed of a minimum jerk relative to its mean
    slow = float((apart / (SPEED_SHARE * robot.velocity)).max()) * 1.875
    seconds = max(QUICKEST, slow, len(steps) * SWING + (len(steps) + 1) * BETWEEN if steps else 0.0)
    rate, settings = motion.rate, FeasibilitySettings(rate=motion.rate, pace=1.0)
    still, n = round(STILL * rate), round(seconds * rate)
    u = np.concatenate([np.zeros(still), np.linspace(0.0, 1.0, n + 1), np.ones(still)])
    share = minimum_jerk(u)
    way = pin.difference(robot.model, q, end)
    Q = np.array([pin.integrate(robot.model, q, s * way) for s in share])
    edges, sole_R, sole_p = np.ones((len(u), 4), dtype=bool), np.empty((len(u), 2, 3, 3)), np.zeros((len(u), 2, 3))
    gap = (seconds - len(steps) * SWING) / (len(steps) + 1)
    for f in (0, 1):
        begin = still / rate + gap + (gap + SWING) * (steps.index(f) if f in steps else 0)
        a = round(begin * rate)
        b = a + round(SWING * rate)
        w = np.clip((np.arange(len(u)) - a) / (b - a), 0.0, 1.0) if f in steps else np.zeros(len(u))
        s = minimum_jerk(w)
        yaw = yaw_of(R[f]) + s * float(wrapped(yaw_of(goal_R[f]) - yaw_of(R[f])))
        sole_R[:, f] = rotations_z(yaw)
        sole_p[:, f, :2] = p[f, :2] + s[:, None] * (goal_p[f, :2] - p[f, :2])
        sole_p[:, f, 2] = RISE * 16 * w**2 * (1 - w) ** 2
        if f in steps:
            edges[a + 1 : b, 2 * f : 2 * f + 2] = False
    source = SourceMotion(robot, soles, rate, np.arange(len(u)) / rate, Q, edges, sole_R, sole_p, 0.0, np.ones(len(u)))
    return feasible_source(source, settings)


def standing_motion(robot: Robot, q: np.ndarray, seconds: float = 1.0, rate: float = 100.0) -> DynamicMotion:
    """Return the motion of a robot standing still.

    Args:
        q: soles on the floor (nq,).
        seconds: [s].
        rate: [Hz].
    """
    soles, n, nv = RigidSoles.of(robot), max(2, round(seconds * rate)), robot.nv
    R, p = (x[0] for x in soles.poses(robot, q[None]))
    center = robot.center_of_mass(q)
    zeros = {"v": nv, "a": nv, "center_velocity": 3, "center_acceleration": 3, "momentum": 3, "momentum_rate": 3}
    zeros |= {"missing": 6, "moved": 2, "torque": robot.n, "errors": ERRORS}
    still: dict[str, Any] = {name: np.zeros((n, columns)) for name, columns in zeros.items()}
    still |= {name: np.zeros(n) for name in ("clock", "infeasible", "clearance", "speed_share", "torque_share")}
    return DynamicMotion(
        robot=robot.name,
        joint_names=tuple(robot.joint_names),
        rate=rate,
        q=np.tile(q, (n, 1)),
        center=np.tile(center, (n, 1)),
        zmp=np.tile(center[:2], (n, 1)),
        stands=np.ones((n, 2), dtype=bool),
        toe_only=np.zeros((n, 2), dtype=bool),
        sole_rotation=np.tile(R, (n, 1, 1, 1)),
        sole_position=np.tile(p, (n, 1, 1)),
        sole_twist=np.zeros((n, 2, 6)),
        sole_acceleration=np.zeros((n, 2, 6)),
        forces=np.zeros((n, 8, 3)),
        changes=(),
        way=1.0,
        filled=0.0,
        center_error=0.0,
        **still,
    )


def stopping_frame(motion: DynamicMotion, time: float) -> int:
    """Return the first frame from `time` [s] with lasting flat double support, or the last."""
    first = int(np.clip(np.ceil(time * motion.rate), 0, len(motion) - 1))
    flat = (motion.stands & ~motion.toe_only).all(axis=1)
    enough = max(1, round(0.05 * motion.rate))
    for k in range(first, len(motion) - enough):
        if flat[k : k + enough].all():
            return k
    return len(motion) - 1


def coming_to_rest(robot: Robot, motion: DynamicMotion, frame: int) -> DynamicMotion:
    """Return a motion from a frame of `stopping_frame` to rest, with the weight in the middle."""
    rate, dt = motion.rate, 1.0 / motion.rate
    n = round((CENTERING + STOOD) * rate) + 1
    t = np.arange(n) * dt
    # joint speeds fall to zero as a cubic, level at both ends
    u = np.clip(t / STOPPING, 0.0, 1.0)
    speed, slowing = 1 - u**2 * (3 - 2 * u), -6 * u * (1 - u) / STOPPING
    passed = STOPPING * (u - u**3 + 0.5 * u**4)
    v = motion.v[frame]
    q = np.array([pin.integrate(robot.model, motion.q[frame], s * v) for s in passed])
    q[:, robot.iq :] = np.clip(q[:, robot.iq :], robot.lower, robot.upper)
    center, velocity, acceleration = _to_rest(motion, frame, t)
    names = [f.name for f in fields(motion) if isinstance(getattr(motion, f.name), np.ndarray)]
    still: dict[str, Any] = {name: np.repeat(getattr(motion, name)[frame : frame + 1], n, axis=0) for name in names}
    lever = center[:, 2:] / np.clip(9.81 + acceleration[:, 2:], 4.0, 20.0)
    still |= {
        "q": q,
        "v": speed[:, None] * v,
        "a": slowing[:, None] * v,
        "center": center,
        "center_velocity": velocity,
        "center_acceleration": acceleration,
        "momentum": speed[:, None] * motion.momentum[frame],
        "momentum_rate": slowing[:, None] * motion.momentum[frame],
        "zmp": center[:, :2] - lever * acceleration[:, :2],
        "stands": np.ones((n, 2), dtype=bool),
        "toe_only": np.zeros((n, 2), dtype=bool),
        "sole_twist": np.zeros((n, 2, 6)),
        "sole_acceleration": np.zeros((n, 2, 6)),
    }
    return replace(motion, changes=(), **still)


def _to_rest(motion: DynamicMotion, frame: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return centre of mass (T, 3), velocity and acceleration of a quintic to rest."""
    c, v, a = (x[frame] for x in (motion.center, motion.center_velocity, motion.center_acceleration))
    goal = np.array([*motion.sole_position[frame, :, :2].mean(axis=0), c[2] + 0.3 * STOPPING * v[2]])
    T, u = CENTERING, np.minimum(t, CENTERING)[:, None]
    start, missing = np.array([c, v, a]), np.array([goal - c - v * T - 0.5 * a * T**2, -v - a * T, -a])
    rows = np.array([[T**3, T**4, T**5], [3 * T**2, 4 * T**3, 5 * T**4], [6 * T, 12 * T**2, 20 * T**3]])
    k = np.linalg.solve(rows, missing)
    out = start[0] + start[1] * u + 0.5 * start[2] * u**2 + k[0] * u**3 + k[1] * u**4 + k[2] * u**5
    velocity = start[1] + start[2] * u + 3 * k[0] * u**2 + 4 * k[1] * u**3 + 5 * k[2] * u**4
    acceleration = start[2] + 6 * k[0] * u + 12 * k[1] * u**2 + 20 * k[2] * u**3
    return out, velocity, acceleration
