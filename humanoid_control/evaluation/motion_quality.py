"""Quality of a joint motion: limits, speed, acceleration and jerk, range used, and drift of the integration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.evaluation.tracking_error import LIMIT_MARGIN
from humanoid_control.retargeting.retargeter import JointTrajectory, Retargeter
from humanoid_control.retargeting.scaling import Targets
from humanoid_control.robots.robot import Robot

AT_SPEED_LIMIT = 0.999
PERCENTILE = 99


@dataclass(frozen=True)
class FrameQuality:
    """Speeds and limits of the imitation joints in every frame.

    Attributes:
        at_position_limit: (T,) share of the joints within 1 degree of a limit.
        at_speed_limit: (T,) share of the joints at 99.9 % of their speed limit or beyond.
        speed_share: (T,) largest joint speed over its limit.
        speed: (T,) largest joint speed [rad/s]; acceleration [rad/s^2]; jerk [rad/s^3]. They are differences of
            the positions: backward, zero where too few frames lie before.
    """

    at_position_limit: np.ndarray
    at_speed_limit: np.ndarray
    speed_share: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray


@dataclass(frozen=True)
class QualityLevel:
    """A quantity over a motion: its largest value and its 99th percentile over frames and joints."""

    max: float
    p99: float


@dataclass(frozen=True)
class MotionQuality:
    """The frames in one row.

    Attributes:
        at_position_limit, at_speed_limit: mean share of the imitation joints, over all frames.
        frames_at_speed_limit: share of the frames in which some joint is at its speed limit.
        beyond_position_limit: how far a joint is outside its range at the worst [rad]; 0 is right.
        speed [rad/s], acceleration [rad/s^2], jerk [rad/s^3]
        speed_share: of the speed limit.
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
    """Quality of a joint trajectory of a robot, over all and frame by frame."""
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
    """Backward difference of an order (T, m), with zeros where it is not defined."""
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
    """The range of one joint that a motion used (Dube 2012, section 6.2.1).

    Attributes:
        joint: its name.
        lower, upper: the range it has [rad].
        used_lower, used_upper: smallest and largest angle [rad].
        share: used over available range, 0 to 1.
        at_lower, at_upper: share of the frames within 1 degree of that limit.
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
    """Range used by every imitation joint over joint angles (T, n)."""
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
INSIDE = 1e-9  # [rad] a start of the fit must lie strictly inside the range


@dataclass(frozen=True)
class DriftCheck:
    """Error attained by a trajectory next to the error of a converged solution, at a few places of the clip.

    Dube 2012 (section 4.2.2) integrates joint speeds by Euler's rule without drift compensation and takes the drift
    for negligible, without a check. Here, at places spread evenly from the first to the last frame, the bounded
    least-squares problem that the trajectory follows is solved to convergence, without speed limits and collisions:
    from the trajectory's own posture, and again from the rest posture and random starts. Both errors are root mean
    squares over the seven points.

    Attributes:
        frames: (K,) the places; the last one is the last frame.
        attained: (K,) error of the trajectory [m].
        settled: (K,) error after converging from the trajectory's own posture [m]; attained - settled is the lag of
            the integration.
        best: (K,) smallest error found from any start [m]; settled - best is what being held in another minimum
            costs.
        drift: attained - best at the end of the clip [m].
        growth: drift at the end minus that at the beginning [m].
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
        robot: with a fixed base.
        targets: of that robot.
        trajectory: solved for them.
        places: how many frames to look at.
    """
    frames = np.unique(np.linspace(0, len(targets) - 1, places).round().astype(int))
    solver = Retargeter(robot)
    rows = np.array([_place(solver, targets.positions[k], trajectory.positions[k]) for k in frames])
    attained, settled, best = rows.T
    lost = attained - best
    return DriftCheck(frames, attained, settled, best, float(lost[-1]), float(lost[-1] - lost[0]))


def _place(solver: Retargeter, goal: np.ndarray, joints: np.ndarray) -> tuple[float, float, float]:
    """(attained, settled, best) root mean square errors [m] of a posture (n,) for targets (7, 3)."""
    moving = solver.robot.imitation_joints
    solver.joints = joints.copy()
    attained = _rms(solver.points(joints[moving])[0] - goal)
    settled = min(attained, _converged(solver, goal, joints[moving]))
    try:
        anew = _converged(solver, goal, solver.start(goal)[moving])
    except ClipError:  # no posture comes near: nothing to compare with but the trajectory itself
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
