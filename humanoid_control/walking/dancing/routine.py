"""Preparation of a recorded dance for a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from scipy.ndimage import minimum_filter1d, uniform_filter1d

from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.dancing.dance_steps import (
    Choreography,
    DanceLimits,
    DancerStep,
    choreography,
    dancer_steps,
    leg_length_of,
)
from humanoid_control.walking.dancing.upper_body import LEAD, ClipMotion, UpperBody
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.footsteps import planar
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.planning.dynamics_filter import DynamicsFilter
from humanoid_control.walking.planning.lipm import ZmpPath
from humanoid_control.walking.planning.plan import WalkPlan
from humanoid_control.walking.walk_task import leg_length
from humanoid_control.walking.walker import Walker, WalkState

SAMPLE = 0.02  # [s] of the simulated path
ROOM = 0.4  # share of the distance from the sole middle to its end available to centre-of-mass sway
SLOWEST = 0.25  # share of the clip's pace
AROUND = 0.4  # [s] slowed before and after a moment that is too fast
QUIET = 1.0  # [s] at rest before the motion begins


@dataclass
class Routine:
    """Dance of a robot.

    Attributes:
        motion: upper-body motion, in walker time.
        steps: the dancer's steps, in time of the paced clip [s].
        when: walker time to send the footsteps [s]; infinite without steps.
        scale: leg length of robot over dancer.
        made: None until the footsteps are sent.
    """

    motion: ClipMotion
    steps: list[DancerStep]
    when: float
    found: int
    told: list[str]
    scale: float = 1.0
    limits: DanceLimits = field(default_factory=DanceLimits)
    made: Choreography | None = None

    def tick(self, walker: Walker) -> None:
        """Send due footsteps to the walker; call before each walker step.

        Raises:
            ConfigError: if the footsteps are not possible.
        """
        if walker.t < self.when or not self.steps or walker.state != WalkState.STAND:
            return
        soles = walker.plan.soles(walker.t)
        self.made = _made(self.steps, soles, walker, self.scale, self.limits)
        self.when = np.inf
        walker.follow(self.made.steps)


def routine(
    walker: Walker,
    positions: np.ndarray,
    rate: float,
    body: BodyPoints | None = None,
    begin: float = 1.2,
    limits: DanceLimits | None = None,
) -> Routine:
    """Prepare a clip for a walker.

    Args:
        positions: (T, 7, 3) upper-body targets with the pelvis fixed [m].
        body: dancer, for the steps; None: the robot stands.
        begin: walker time of the start [s].

    Raises:
        ClipError: if foot points are missing, or the first step comes too early.
    """
    robot, limits = walker.robot, limits or DanceLimits()
    upper = UpperBody(robot)
    rows = upper.rows(positions)
    told: list[str] = []
    t, s = balance_clock(robot, walker.feet, walker.replanner.height, upper, rows, rate)
    slow = float((s[-1] - s[0]) / (t[-1] - t[0]))
    if slow < 0.999:
        told.append(f"danced at {100 * slow:.0f} % of its pace, {_least_pace(t, s):.0f} % at the fastest moves")
    found = dancer_steps(body) if body is not None else []
    paced = [x._replace(lift=float(np.interp(x.lift, s, t)), land=float(np.interp(x.land, s, t))) for x in found]
    if not paced:
        return Routine(ClipMotion(upper.rest, rows, rate, begin, (t, s)), [], np.inf, len(found), told)
    legs = leg_length_of(body) if body is not None else 0.0
    scale = leg_length(robot) / legs if legs > 0.2 else 1.0
    soles = [planar(X) for X in _neutral_soles(robot, walker.feet)]
    made = _made(paced, soles, walker, scale, limits)
    told += made.told
    # Robot's time since the clip began -> time of the paced clip -> time of the clip.
    first = paced[0].lift
    robot_t = np.concatenate([[0.0], first + made.clock[0]])
    paced_t = np.concatenate([[0.0], made.clock[1]])
    if paced_t[-1] < t[-1]:
        robot_t, paced_t = np.append(robot_t, robot_t[-1] + t[-1] - paced_t[-1]), np.append(paced_t, t[-1])
    at = np.unique(np.concatenate([robot_t, np.interp(t, paced_t, robot_t)]))
    clip_t = np.interp(np.interp(at, robot_t, paced_t), t, s)
    motion = ClipMotion(upper.rest, rows, rate, begin, (at, clip_t))
    when = motion.first + first - walker.settings.start
    if when < begin - LEAD:
        raise ClipError("the first step comes too early")
    return Routine(motion, paced, when, len(found), told, scale, limits)


def _made(
    steps: Sequence[DancerStep], soles: Sequence[pin.SE3], walker: Walker, scale: float, limits: DanceLimits
) -> Choreography:
    planner = walker.planner
    try:
        return choreography(steps, soles, planner.limits, planner.times, scale, limits)
    except ConfigError as e:
        raise ClipError(f"the dancer's steps: {e}") from None


def _neutral_soles(robot: Robot, feet: Feet) -> list[pin.SE3]:
    pin.framesForwardKinematics(robot.model, robot.data, robot.q("neutral"))
    return [robot.data.oMf[f].copy() for f in feet.frames]


def _least_pace(t: np.ndarray, s: np.ndarray) -> float:
    return 100 * float((np.diff(s) / np.diff(t)).min())


def balance_clock(
    robot: Robot, feet: Feet, height: float, upper: UpperBody, rows: np.ndarray, rate: float, room: float = ROOM
) -> tuple[np.ndarray, np.ndarray]:
    """Return a clip clock, slowed where the motion needs more CoM sway than the feet allow.

    Sway grows with the square of the pace.

    Args:
        height: CoM height above the soles [m].
        rows: (T, 21), see `UpperBody`.
        room: usable share of the distance from sole middle to end.

    Returns:
        Times since the clip began (k,) and in the clip (k,) [s].
    """
    duration = (len(rows) - 1) / rate
    motion = ClipMotion(upper.rest, rows, rate, QUIET)
    sway = np.linalg.norm(_sway(robot, feet, height, motion), axis=1)
    most = room * float(0.5 * (feet.upper - feet.lower)[:, 0].min())
    k0 = round(motion.first / SAMPLE)
    sway = sway[k0 : k0 + round(duration / SAMPLE) + 1]
    s = np.linspace(0.0, duration, len(sway))
    pace = np.clip(np.sqrt(most / np.maximum(sway, 1e-9)), SLOWEST, 1.0)
    if pace.min() >= 1.0:
        return np.array([0.0, duration]), np.array([0.0, duration])
    n = round(AROUND / SAMPLE)
    pace = uniform_filter1d(minimum_filter1d(pace, 2 * n + 1, mode="nearest"), n, mode="nearest")
    step = s[1] - s[0]
    t = np.concatenate([[0.0], np.cumsum(step / (0.5 * (pace[1:] + pace[:-1])))])
    return t, s


def _sway(robot: Robot, feet: Feet, height: float, motion: ClipMotion) -> np.ndarray:
    """Return shift (k, 2) of the DCM every SAMPLE [m]."""
    soles = [planar(X) for X in _neutral_soles(robot, feet)]
    q = robot.q("neutral")
    center = robot.center_of_mass(q)
    middle = 0.5 * sum(X.act(np.array([*m, 0.0])) for X, m in zip(soles, feet.middle, strict=True))
    center[2] = middle[2] + height
    omega = float(np.sqrt(GRAVITY / height))
    path = ZmpPath.of(np.array([0.0, 1.0]), np.array([middle[:2], middle[:2]]), omega)
    ahead = DynamicsFilter(robot, feet, SAMPLE)
    ahead.start(WalkPlan(soles, [], path), 0.0, motion.end, q, np.zeros(robot.nv), center, motion)
    while not ahead.done:
        ahead.advance(200)
    return ahead.result().shift
