"""A walk, played through by one walker, and what it came to over one steady gait cycle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.ik.momentum_gait import GaitPoint
from humanoid_control.ik.momentum_map import momentum_map
from humanoid_control.ik.momentum_walk import WalkTask
from humanoid_control.ik.momentum_walkers import Walker
from humanoid_control.robots import Robot

CYCLES = 6  # played; the last one is measured
GRAVITY_AXIS = 2


@dataclass(frozen=True)
class Replay:
    """One walk, N ticks; arrays are over all of it, `steady` is the last gait cycle.

    Attributes:
        t: (N,) [s]. q: (N, nq). v: (N, nv), from each q to the next.
        momentum: (N, 3) about the centre of mass [kg m^2/s]. rate: (N, 3) its change, central differences [N m].
        foot_error: (N,) the worse of the two [m].
        clearance: (N,) distance of the nearest two shapes that must not touch [m].
        torque: (N,) vertical contact torque about the sole that stands; NaN while both stand [N m].
        stance: (N,) -1 right, +1 left, 0 both.
        steady: the ticks of the last cycle.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    momentum: np.ndarray
    rate: np.ndarray
    foot_error: np.ndarray
    clearance: np.ndarray
    torque: np.ndarray
    stance: np.ndarray
    steady: slice


def replay(robot: Robot, walk: WalkTask, walker: Walker, cycles: int = CYCLES) -> Replay:
    """Walk from rest.

    Args:
        robot, walk, walker: who, what and how; the walker is used up.
        cycles: gait cycles to play, at least 3; the first starts up.

    Raises:
        numpy.linalg.LinAlgError: a null-space walker met a singular task. ConfigError: the first posture cannot be had.
    """
    per_cycle = round(walk.gait.cycle / walk.dt)
    count = cycles * per_cycle
    distance, data = robot.self_distance(), robot.model.createData()
    q = walk.start(robot)
    t = np.arange(count) * walk.dt
    qs, vs, L = np.empty((count, robot.nq)), np.empty((count, robot.nv)), np.empty((count, 3))
    foot, clear = np.empty(count), np.empty(count)
    points = [walk.gait.at(walk.clock(now)) for now in t]
    for k in range(count):
        walk.t = t[k]
        qs[k] = q
        vs[k], q = walker.step(q)
        L[k] = momentum_map(robot, qs[k], data).angular @ vs[k]
        pin.updateFramePlacements(robot.model, data)
        foot[k] = walk.foot_errors(data, points[k]).max()
        clear[k] = distance.all_distances(data).min(initial=np.inf)
    rate = np.asarray(np.gradient(L, walk.dt, axis=0))
    torque, stance = _contact_torque(points, walk.mass, rate[:, GRAVITY_AXIS])
    steady = slice(count - per_cycle - 1, count - 1)  # the very last rate is one-sided
    return Replay(t, qs, vs, L, rate, foot, clear, torque, stance, steady)


def _contact_torque(points: list[GaitPoint], mass: float, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the standing sole must give: dL/dt less the moment of the horizontal force M c'', and which sole stands."""
    torque, stance = np.full(len(points), np.nan), np.zeros(len(points), dtype=int)
    for k, p in enumerate(points):
        if p.support != "both":
            foot = 0 if p.support == "left" else 1
            arm, force = p.soles[foot] - p.center, mass * p.acceleration
            torque[k] = rate[k] - (arm[0] * force[1] - arm[1] * force[0])
            stance[k] = 1 if foot == 0 else -1
    return torque, stance


@dataclass(frozen=True)
class Measures:
    """A steady gait cycle in numbers, of one axis.

    Attributes:
        peak_to_peak, rms: of the momentum [kg m^2/s]. rate_peak_to_peak, rate_rms: of its rate [N m].
        torque_left, torque_right: peak-to-peak of the vertical contact torque while that foot stands alone [N m].
        foot_error: largest [m]. clearance: least [m].
        beyond_limit: farthest that a joint is outside its range [rad], negative: it stays that far inside.
        speed_share: largest joint speed over its limit.
        repeats: largest difference of the momentum to the cycle before [kg m^2/s].
        arm_swing: travel of the arm joint that moves most [rad].
    """

    peak_to_peak: float
    rms: float
    rate_peak_to_peak: float
    rate_rms: float
    torque_left: float
    torque_right: float
    foot_error: float
    clearance: float
    beyond_limit: float
    speed_share: float
    repeats: float
    arm_swing: float


def measure(robot: Robot, walk: WalkTask, run: Replay, axis: int = GRAVITY_AXIS) -> Measures:
    """The numbers of a replay's last cycle, of momentum about one axis of the world (0 to 2)."""
    s = run.steady
    before = slice(s.start - (s.stop - s.start), s.start)
    L, rate, joints = run.momentum[s, axis], run.rate[s, axis], run.q[s, robot.iq :]
    torque, stance = run.torque[s], run.stance[s]
    left, right = (float(np.ptp(torque[stance == side])) if axis == GRAVITY_AXIS else np.nan for side in (1, -1))
    return Measures(
        float(np.ptp(L)),
        float(np.sqrt(np.mean(L**2))),
        float(np.ptp(rate)),
        float(np.sqrt(np.mean(rate**2))),
        left,
        right,
        float(run.foot_error[s].max()),
        float(run.clearance[s].min()),
        float(np.maximum(joints - robot.upper, robot.lower - joints).max()),
        float((np.abs(run.v[s, robot.iv :]) / robot.velocity).max()),
        float(np.abs(L - run.momentum[before, axis]).max()),
        float(np.ptp(joints[:, walk.groups.arms], axis=0).max()),
    )
