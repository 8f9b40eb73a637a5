"""Quality of a joint motion: limits, speed, acceleration, jerk, used range, integration drift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.evaluation.tracking_error import LIMIT_MARGIN
from humanoid_control.retargeting.retargeter import Retargeter
from humanoid_control.retargeting.scaling import Targets
from humanoid_control.retargeting.trajectory import JointTrajectory
from humanoid_control.robots.robot import Robot

AT_SPEED_LIMIT = 0.999
PERCENTILE = 99


@dataclass(frozen=True)
class FrameQuality:
    """Speeds and limits of the imitation joints per frame, by backward differences, zero where undefined.

    Attributes:
        at_position_limit: (T,) share of joints within 1 degree of a limit.
        at_speed_limit: (T,) share of joints at 99.9 % of their speed limit or more.
        speed: (T,) largest joint speed [rad/s].
        acceleration: (T,) largest [rad/s^2].
        jerk: (T,) largest [rad/s^3].
    """

    at_position_limit: np.ndarray
    at_speed_limit: np.ndarray
    speed_share: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


@dataclass(frozen=True)
class QualityLevel:
    """Maximum and 99th percentile of a quantity over frames and joints."""

    max: float
    p99: float


@dataclass(frozen=True)
class MotionQuality:
    """Summary of FrameQuality.

    Attributes:
        at_position_limit: mean share of joints at a limit.
        frames_at_speed_limit: share of frames with any joint at its speed limit.
        beyond_position_limit: largest range violation [rad].
        speed_share: largest speed over its limit.
        speed: [rad/s].
        acceleration: [rad/s^2].
        jerk: [rad/s^3].
    """

    at_position_limit: float
    at_speed_limit: float
    frames_at_speed_limit: float
    beyond_position_limit: float
    speed_share: float
    speed: QualityLevel
    acceleration: QualityLevel
    jerk: QualityLevel


def measure_motion(robot: Robot, trajectory: JointTrajectory) -> tuple[MotionQuality, FrameQuality]:
    """Return the quality of a joint trajectory, overall and per frame."""
    moving = robot.imitation_joints
    q, lower, upper = trajectory.positions[:, moving], robot.lower[moving], robot.upper[moving]
    v = _difference(q, trajectory.rate, 1)
    a = _difference(q, trajectory.rate, 2)
    j = _difference(q, trajectory.rate, 3)
    share = np.abs(v) / robot.velocity[moving]
    frames = FrameQuality(
        at_position_limit=np.mean((q - lower < LIMIT_MARGIN) | (upper - q < LIMIT_MARGIN), axis=1),
        at_speed_limit=np.mean(share >= AT_SPEED_LIMIT, axis=1),
        speed_share=share.max(axis=1),
        speed=np.abs(v).max(axis=1),
        acceleration=np.abs(a).max(axis=1),
        jerk=np.abs(j).max(axis=1),
    )
    total = MotionQuality(
        at_position_limit=float(frames.at_position_limit.mean()),
        at_speed_limit=float(frames.at_speed_limit.mean()),
        frames_at_speed_limit=float(np.mean(frames.at_speed_limit > 0)),
        beyond_position_limit=max(0.0, float(np.maximum(lower - q, q - upper).max())),
        speed_share=float(frames.speed_share.max()),
        speed=_level(v[1:]),
        acceleration=_level(a[2:]),
        jerk=_level(j[3:]),
    )
    return total, frames


def _difference(q: np.ndarray, rate: float, order: int) -> np.ndarray:
    """Return the backward difference (T, m) of an order, zero where undefined."""
    out = np.zeros_like(q)
    out[order:] = np.diff(q, order, axis=0) * rate**order
    return out


def _level(values: np.ndarray) -> QualityLevel:
    size = np.abs(values)
    return (
        QualityLevel(float(size.max()), float(np.percentile(size, PERCENTILE))) if size.size else QualityLevel(0.0, 0.0)
    )


# -------- Range used


@dataclass(frozen=True)
class JointUse:
    """Used range of a joint (Dube 2012, section 6.2.1).

    Attributes:
        lower: lower end of the range [rad].
        used_lower: smallest angle [rad].
        share: used over available range, 0 to 1.
        at_lower: share of frames within 1 degree of `lower`.
        at_upper: share of frames within 1 degree of `upper`.
    """

    joint: str
    lower: float
    upper: float
    used_lower: float
    used_upper: float
    share: float
    at_lower: float
    at_upper: float


def joint_use(robot: Robot, joints: np.ndarray) -> tuple[JointUse, ...]:
    """Return the used range of every imitation joint over joint angles (T, n)."""
    rows = []
    for j in robot.imitation_joints:
        q, lower, upper = joints[:, j], float(robot.lower[j]), float(robot.upper[j])
        used = float(q.min()), float(q.max())
        rows.append(
            JointUse(
                joint=robot.joint_names[j],
                lower=lower,
                upper=upper,
                used_lower=used[0],
                used_upper=used[1],
                share=(used[1] - used[0]) / (upper - lower) if upper > lower else 0.0,
                at_lower=float(np.mean(q - lower < LIMIT_MARGIN)),
                at_upper=float(np.mean(upper - q < LIMIT_MARGIN)),
            )
        )
    return tuple(rows)


# -------- Drift

PLACES = 5
INSIDE = 1e-9  # [rad] distance of the start of the fit from the range ends


@dataclass(frozen=True)
class DriftCheck:
    """Error of a trajectory compared with converged solutions at a few frames.

    The bounded least-squares problem is solved to convergence at some frames, without speed limits and collisions, from
    the trajectory's posture, the rest posture and random starts. Errors are RMS over the seven points.

    Attributes:
        frames: (K,) indices, including the last.
        attained: (K,) error of the trajectory [m].
        settled: (K,) converged from the trajectory's posture [m]; attained - settled is the integration lag.
        best: (K,) smallest error from any start [m]; settled - best is the cost of a local minimum.
        drift: attained - best at the last frame [m].
        growth: drift minus its value at the first frame [m].
    """

    frames: np.ndarray
    attained: np.ndarray
    settled: np.ndarray
    best: np.ndarray
    drift: float
    growth: float


def drift_check(robot: Robot, targets: Targets, trajectory: JointTrajectory, places: int = PLACES) -> DriftCheck:
    """Compare a trajectory with converged postures.

    Args:
        robot: fixed base.
    """
    frames = np.unique(np.linspace(0, len(targets) - 1, places).round().astype(int))
    solver = Retargeter(robot)
    rows = np.array([_place(solver, targets.positions[k], trajectory.positions[k]) for k in frames])
    attained, settled, best = rows.T
    lost = attained - best
    return DriftCheck(frames, attained, settled, best, float(lost[-1]), float(lost[-1] - lost[0]))


def _place(solver: Retargeter, goal: np.ndarray, joints: np.ndarray) -> tuple[float, float, float]:
    """Return (attained, settled, best) RMS errors [m] of a posture (n,) for targets (7, 3)."""
    moving = solver.robot.imitation_joints
    solver.joints = joints.copy()
    attained = _rms(solver.points(joints[moving])[0] - goal)
    settled = min(attained, _converged(solver, goal, joints[moving]))
    try:
        anew = _converged(solver, goal, solver.start(goal)[moving])
    except ClipError:  # no posture converges: compare with the trajectory only
        anew = settled
    return attained, settled, min(settled, anew)


def _converged(solver: Retargeter, goal: np.ndarray, start: np.ndarray) -> float:
    from scipy.optimize import least_squares  # slow to import, and seldom needed

    r = solver.robot
    lower, upper = r.lower[r.imitation_joints], r.upper[r.imitation_joints]
    fit = least_squares(
        lambda q: (solver.points(q)[0] - goal).ravel(),
        np.clip(start, lower + INSIDE, upper - INSIDE),
        lambda q: solver.points(q)[1],
        bounds=(lower, upper),
        max_nfev=200,
    )
    return _rms(fit.fun.reshape(-1, 3))


def _rms(difference: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.sum(difference**2, axis=1))))
