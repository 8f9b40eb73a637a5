"""Walks: a gait played by a walker, its momentum measured over one steady cycle, and all methods by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from evidence.studies.schwienbacher2014.momentum_walkers import (
    ConstrainedWalker,
    FreeJointGains,
    MomentumWalker,
    NullSpaceWalker,
    SwingWalker,
    TrackingWalker,
    WeightingWalker,
)
from humanoid_control.errors import ConfigError
from humanoid_control.ik.null_space.momentum_tracking import MU
from humanoid_control.kinematics.centroidal import centroidal_momentum_map
from humanoid_control.robots.robot import Robot
from humanoid_control.walking import GaitPoint, GaitSettings, WalkTask, leg_length

# -------- One walk

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


def replay(robot: Robot, walk: WalkTask, walker: MomentumWalker, cycles: int = CYCLES) -> Replay:
    """Walk from rest.

    Args:
        robot, walk, walker: the walker is used up.
        cycles: gait cycles to play, at least 3; the first starts up.

    Raises:
        numpy.linalg.LinAlgError: a null-space walker met a singular task.
        ConfigError: the legs do not reach the first posture.
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
        L[k] = centroidal_momentum_map(robot.model, data, qs[k]).angular @ vs[k]
        pin.updateFramePlacements(robot.model, data)
        foot[k] = walk.foot_errors(data, points[k]).max()
        clear[k] = distance.all_distances(data).min(initial=np.inf)
    rate = np.asarray(np.gradient(L, walk.dt, axis=0))
    torque, stance = _contact_torque(points, walk.mass, rate[:, GRAVITY_AXIS])
    steady = slice(count - per_cycle - 1, count - 1)  # the very last rate is one-sided
    return Replay(t, qs, vs, L, rate, foot, clear, torque, stance, steady)


def _contact_torque(points: list[GaitPoint], mass: float, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torque of the standing sole: dL/dt less the moment of the horizontal force M c''; and which sole stands."""
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
        arm_speed: root mean square over the arms' joints [rad/s].
        acceleration: largest of any joint [rad/s^2].
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
    arm_speed: float
    acceleration: float


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
        float(np.sqrt(np.mean(run.v[s, robot.iv + walk.groups.arms] ** 2))),
        float(np.abs(np.diff(run.v[s, robot.iv :], axis=0)).max()) / walk.dt,
    )


# -------- Walks by method

PUBLISHED_LEG = 0.96  # [m] from hip to sole of the robot on which the published steps were walked
LONGEST_STEP = 1.2  # [s]
DELTAS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
ALL_AXES = (True, True, True)

MUS = (MU, MU / 16)
POSTURE_WEIGHTS = (0.07, 0.02, 0.005, 0.001)

Factory = Callable[[Robot, WalkTask, FreeJointGains], MomentumWalker]


def _weighting(delta: float) -> Factory:
    return lambda r, w, g: WeightingWalker(r, w, g, delta)


def _damped(mu: float) -> Factory:
    return lambda r, w, g: TrackingWalker(r, w, g, "damped", mu=mu)


def _constrained(weight: float) -> Factory:
    return lambda r, w, g: ConstrainedWalker(r, w, posture_weight=weight)


METHODS: dict[str, Factory] = {
    "still": lambda r, w, g: NullSpaceWalker(r, w, g),
    "method 0": lambda r, w, g: SwingWalker(r, w, g),
    "method 0 x": lambda r, w, g: SwingWalker(r, w, g, axes=(True, False, False)),
    "method 1 thesis": lambda r, w, g: TrackingWalker(r, w, g, "thesis"),
    "method 1 unit": lambda r, w, g: TrackingWalker(r, w, g, "unit"),
    "method 1 damped": lambda r, w, g: TrackingWalker(r, w, g, "damped"),
    **{f"method 2 {d:g}": _weighting(d) for d in DELTAS},
    **{f"method 1 damped, mu {mu:g}": _damped(mu) for mu in MUS},
    "constrained": lambda r, w, g: ConstrainedWalker(r, w),
    **{f"constrained, posture {w:g}": _constrained(w) for w in POSTURE_WEIGHTS},
    "constrained xyz": lambda r, w, g: ConstrainedWalker(r, w, ALL_AXES),
    "method 1 thesis unclamped": lambda r, w, g: TrackingWalker(r, w, g, "thesis", clamp=False),
    "method 1 unit unclamped": lambda r, w, g: TrackingWalker(r, w, g, "unit", clamp=False),
    "method 1 damped unclamped": lambda r, w, g: TrackingWalker(r, w, g, "damped", clamp=False),
}
TRACKING = ("method 1 thesis", "method 1 unit", "method 1 damped")
MAIN = ("still", "method 0", "method 0 x", *TRACKING, *(f"method 2 {d:g}" for d in DELTAS), "constrained")


@dataclass(frozen=True)
class MomentumWalkOutcome:
    """A walk and its numbers.

    Attributes:
        axes: measures of the momentum about x, y and z.
        run: the walk itself.
        walker: with what it recorded.
    """

    axes: tuple[Measures, Measures, Measures]
    run: Replay
    walker: MomentumWalker

    @property
    def z(self) -> Measures:
        """Measures of the vertical momentum."""
        return self.axes[2]


class WalkingLab:
    """Walks of one robot with one step, each played when it is first needed.

    Attributes:
        robot: with floating base.
        gait: default step of the walks.
    """

    def __init__(self, robot: Robot, gait: GaitSettings, dt: float = 0.004) -> None:
        self.robot, self.gait, self.dt = robot, gait, dt
        self._known: dict[object, MomentumWalkOutcome] = {}

    def outcome(
        self,
        method: str,
        free: str = "arms",
        gait: GaitSettings | None = None,
        gains: FreeJointGains | None = None,
        arms_in: float = 0.0,
        cycles: int = CYCLES,
    ) -> MomentumWalkOutcome:
        """The outcome of a walk.

        Args:
            method: one of METHODS.
            free: one of FREE, the joints that may reduce momentum.
            gait: default: the lab's.
            gains: of the costs of free joints, in the published methods.
            arms_in: how far the arms' posture is turned towards the body, at both shoulders [rad].
            cycles: gait cycles to play.
        """
        gait, gains = gait or self.gait, gains or FreeJointGains()
        key = (method, free, gait, gains, arms_in, cycles)
        if key not in self._known:
            robot = self.robot
            walk = WalkTask(robot, gait, free, self.dt)
            for side in "lr" if arms_in else "":
                joint = robot.joint_index(robot.joint_for(f"{side}_shoulder_abduction") or f"{side}_shoulder_abduction")
                walk.posture[joint] = max(walk.posture[joint] - arms_in, robot.lower[joint])
            walker = METHODS[method](robot, walk, gains)
            run = replay(robot, walk, walker, cycles)
            x, y, z = (measure(robot, walk, run, axis) for axis in range(3))
            self._known[key] = MomentumWalkOutcome((x, y, z), run, walker)
        return self._known[key]

    def best_tracking(self) -> str:
        """The mode of method 1 with the least peak-to-peak of L_z on the lab's step, of those that keep every range."""
        found = {m: self.outcome(m).z for m in TRACKING}
        inside = {m: z for m, z in found.items() if z.beyond_limit <= 0} or found
        return min(inside, key=lambda m: inside[m].peak_to_peak)

    def reference(self) -> str:
        """Method 0, in three directions as published, or along x where that drives the arms out of their workspace."""
        return "method 0" if self.outcome("method 0").z.speed_share <= 1 else "method 0 x"


def find_gait(robot: Robot, length: float | None = None, time: float | None = None) -> tuple[GaitSettings, list[str]]:
    """A step that the robot's legs can take, and what had to be changed for it.

    The published step, 0.4 m in 0.8 s, is scaled by the length of the legs. Where the baseline then leaves a joint's
    range, touches itself or is faster than 90 % of a speed limit, the step becomes 10 % shorter and lower, or 0.1 s
    longer, again and again; a step of 1.2 s becomes shorter only.

    Args:
        robot: with floating base.
        length, time: [m], [s]; what is given is not changed.

    Raises:
        ConfigError: no step was found.
    """
    scale, notes = leg_length(robot) / PUBLISHED_LEG, []
    full = 0.4 * scale if length is None else length
    gait = GaitSettings(round(full, 3), 0.8 if time is None else time, lift=round(0.05 * scale, 3))
    for _ in range(25):
        try:
            z = WalkingLab(robot, gait, 0.008).outcome("still", cycles=3).z
            slow, inside = z.speed_share <= 0.9, z.beyond_limit <= 0 and z.clearance > 0
        except (ConfigError, np.linalg.LinAlgError):
            slow, inside = True, False
        if (inside or length is not None) and (slow or time is not None):
            break
        shorter = not inside or gait.step_time >= LONGEST_STEP - 1e-9 or time is not None
        if shorter and length is None:
            gait = replace(gait, step_length=round(0.9 * gait.step_length, 3), lift=round(0.9 * gait.lift, 4))
        else:
            gait = replace(gait, step_time=round(gait.step_time + 0.1, 3))
    else:
        raise ConfigError(f"{robot.name}: no step within the reach of its legs was found")
    if gait.step_length != round(full, 3):
        notes.append(f"step shortened from {full:.3f} m to {gait.step_length:g} m: joint ranges and speeds")
    if time is None and gait.step_time != 0.8:
        notes.append(f"step time lengthened from 0.8 s to {gait.step_time:g} s: joint speeds")
    return gait, notes
