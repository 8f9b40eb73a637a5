"""Drift of a trajectory: what it lost against a posture solved anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.imitation.retarget import JointTrajectory, Retargeter
from humanoid_control.imitation.scaling import Targets
from humanoid_control.robots import Robot

PLACES = 5
INSIDE = 1e-9  # [rad] a start of the fit must lie strictly inside the range


@dataclass(frozen=True)
class DriftCheck:
    """Error attained by a trajectory beside the error of a converged solution, at a few places of the clip.

    The source integrates joint speeds by Euler's rule without any drift compensation (section 4.2.2) and takes the
    drift for negligible, without a check. Here, at places spread evenly from the first to the last frame, the bounded
    least-squares problem that the trajectory follows is solved to convergence, without speed limits and collisions:
    from the trajectory's own posture, and anew from the rest posture and random starts. Both errors are root mean
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
        robot: with a fixed base. targets: of that robot. trajectory: solved for them.
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
