"""Step limits of a robot, computed by its inverse kinematics from the URDF.

A trial simulates a few equal steps with `WholeBodyIk` and the walking tasks; a missed sole means failure. Bisection
finds each limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.whole_body_ik import WholeBodyIk
from humanoid_control.numerics.bisection import bisect
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.balance_tasks import BalanceTasks, walking_limits, walking_settings
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.footsteps import VelocityPlanner
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.plane_geometry import planar
from humanoid_control.walking.planning.lipm import ZmpPath, follow_dcm
from humanoid_control.walking.planning.plan import WalkPlan, schedule, zmp_corners
from humanoid_control.walking.planning.step import BRISK, CALM, EVEN, Footstep, StepLimits, StepStyle, StepTimes
from humanoid_control.walking.planning.toe_roll import RollSettings, ToeRoll

MISS = 1.9e-3  # [m] accepted sole error of a trial
MOST_IN_PLACE = 0.01  # [m] accepted sole error in place, for legs with collision distances
ARM = 0.1  # [m] sole middle to edge: error of a rotation by 1 rad
SHARE = 0.98  # usable share of the limit: momentum and feedback need the rest
HALVINGS = 7
MOST = (0.6, 0.5, 0.3, 0.5)  # upper bounds for legs of 1 m: ahead, back, aside [m], turn [rad]
ROOM = 0.06  # [m] between passing legs: feet farther apart are moved closer for less sway
STANDS = 0.005  # [m] accepted error of the centre of mass
LOWEST = 0.02  # [m] least useful lift, even if joints are too slow
LANDING = 0.9  # swing phase at which a late foot must be on its path again
REST = 0.6  # [s] before the first and after the last step of a trial
FASTEST = 0.25  # of sqrt(g z), the speed of a walk with still arms: above it, soles slip in yaw and robots fall
WORTH = 1.15  # required speed gain of a style that loads the drives more
Height = Callable[[float], float]
StyledHeight = Callable[[float, StepStyle], float]


@dataclass
class _Settled:
    q: np.ndarray
    v: np.ndarray
    center: np.ndarray
    height: float


class TrialWalk:
    """Simulated walk that checks the reach of the legs."""

    def __init__(
        self,
        robot: Robot,
        feet: Feet,
        height: Height,
        self_collision: bool = False,
        dt: float = 0.04,
        roll: RollSettings | None = None,
    ) -> None:
        """Settle into the walking posture.

        Args:
            height: CoM height above the soles as a function of step length [m].
            self_collision: whether shapes keep their distance.
            roll: None: flat feet.
        """
        self.roll = ToeRoll.of(robot, feet, roll)
        self.robot, self.feet, self.height, self.dt = robot, feet, height, dt
        self._tasks = BalanceTasks(robot, feet, dt)
        self._ik = WholeBodyIk(robot, walking_settings(dt), limits=walking_limits(robot, self_collision))
        self._data = robot.model.createData()
        pin.framesForwardKinematics(robot.model, self._data, robot.q("neutral"))
        self.soles = [planar(self._data.oMf[f]) for f in feet.frames]
        self._begin = self._settle(height(0.0))

    def _settle(self, height: float) -> _Settled:
        q, soles = self.robot.q("neutral"), self.soles
        points = [X.act(np.array([*m, 0.0])) for X, m in zip(soles, self.feet.middle, strict=True)]
        center = 0.5 * (points[0] + points[1]) + [0.0, 0.0, height]
        self._ik.reset()
        for _ in range(40):
            self._tasks.set(soles, center, np.eye(3), None)
            q = self._ik.step(q, self._tasks.tasks, self.dt).q
        return _Settled(q, self._ik.v.copy(), center, height)

    def stands(self) -> bool:
        """Return whether the legs reach the height."""
        reached = self.robot.center_of_mass(self._begin.q)
        return bool(np.linalg.norm(reached - self._begin.center) < STANDS)

    def miss(self, steps: Sequence[Footstep], length: float = 0.0, enough: float = np.inf) -> float:
        """Return the greatest velocity-level sole error [m]; rotations count at the sole edge.

        It excludes discretisation errors, and the lag that a step's style allows in the air.

        Args:
            length: step length, for the height [m].
            enough: early exit above this [m].
        """
        height = self.height(length)
        if abs(height - self._begin.height) > 1e-4:
            self._begin = self._settle(height)
        b, omega, dt = self._begin, float(np.sqrt(GRAVITY / height)), self.dt
        phases = schedule(self.soles, steps, REST)
        times, corners = zmp_corners(self.feet, self.soles, phases, 0.0, b.center[:2], REST)
        plan = WalkPlan(self.soles, phases, ZmpPath.of(times, corners, omega))
        self._ik.reset()
        self._ik.v = b.v.copy()
        q, c, worst = b.q, b.center.copy(), 0.0
        for k in range(1, int(np.ceil(plan.end / dt)) + 1):
            t = k * dt
            ref = plan.at(t)
            soles = ref.soles if self.roll is None else self.roll.rolled(ref.soles, self.roll.planned(plan, t))
            c[:2] = follow_dcm(c[:2], plan.path.dcm(t - dt), ref.dcm, omega, dt)
            self._tasks.set(soles, c, ref.heading, ref.swinging)
            result, data = self._ik.step(q, self._tasks.tasks, dt), self._ik.data
            late = 0.0
            if ref.swinging is not None and ref.u < LANDING:
                late = plan.phases[plan.index(t)].step.style.late
            for foot, (f, X) in enumerate(zip(self.feet.frames, soles, strict=True)):
                moved = dt * (pin.getFrameJacobian(self.robot.model, data, f, pin.LOCAL_WORLD_ALIGNED) @ result.v)
                away = X.translation - data.oMf[f].translation - moved[:3]
                turned = pin.log3(X.rotation @ data.oMf[f].rotation.T) - moved[3:]
                allowed = late if foot == ref.swinging else 0.0
                worst = max(worst, float(np.linalg.norm(away)) - allowed, ARM * float(np.linalg.norm(turned)) - allowed)
            q = result.q
            if worst > enough:
                break
        return worst


def step_limits_of(
    robot: Robot,
    feet: Feet,
    height: Height,
    times: StepTimes | None = None,
    styled: StyledHeight | None = None,
    roll: RollSettings | None = None,
) -> StepLimits:
    """Return the step limits of a robot, cached.

    Args:
        height: CoM height above the soles as a function of step displacement [m].
        styled: likewise for other styles; default: `height`.
        roll: toe roll of feet with toes; None: flat feet.

    Raises:
        ConfigError: if the robot cannot stand at that height.
    """
    t = times or StepTimes()
    own: StyledHeight = styled or (lambda length, _: height(length))
    lengths = [0.1 * k for k in range(5)]
    heights = [height(d) for d in lengths] + [own(d, style) for style in (BRISK, EVEN) for d in lengths]
    key = (robot.urdf, tuple(round(h, 4) for h in heights), t, roll)
    if key not in _KNOWN:
        _KNOWN[key] = _search(robot, feet, height, t, roll)
        _KNOWN[key] = replace(_KNOWN[key], faster=_faster(robot, feet, own, _KNOWN[key], t, roll))
    return _KNOWN[key]


_KNOWN: dict[tuple[str, tuple[float, ...], StepTimes, RollSettings | None], StepLimits] = {}  # a search takes a second


def _search(robot: Robot, feet: Feet, height: Height, t: StepTimes, roll: RollSettings | None) -> StepLimits:
    outlines = (feet.outlines[0], feet.outlines[1])
    gap = max(float(np.ptp(o[:, 1])) for o in outlines) + StepLimits.clearance
    raw = StepLimits(nominal=t.nominal, shortest=t.shortest, width=feet.width, gap=gap, outlines=outlines)
    guarded = TrialWalk(robot, feet, height, True, roll=roll)  # with collision distances: slow, needed for close feet
    free, tall = TrialWalk(robot, feet, height, roll=roll), height(0.0)

    def lifts(height: float) -> bool:
        in_place = _steps(replace(raw, lift=height), t, free.soles, np.zeros(3), t.nominal, 0)
        return free.miss(in_place, 0.0, MISS) <= 0.5 * MISS

    if not free.stands():
        raise ConfigError(f"{robot.name} cannot stand with its centre of mass {tall:.2f} m above the soles")
    raw = replace(raw, lift=max(LOWEST, t.lift if lifts(t.lift) else bisect(lifts, t.lift, HALVINGS)))
    raw = replace(raw, gap=_gap(guarded, raw, t))
    raw = replace(raw, width=min(raw.width, raw.gap + ROOM))

    # Thick thighs already cause an error above MISS in place. The robot makes these steps, so a turn may add MISS.
    in_place = guarded.miss(_steps(raw, t, guarded.soles, np.zeros(3), t.nominal, 0), 0.0, MOST_IN_PLACE)
    turning = MISS if in_place <= MISS else MISS + min(in_place, MOST_IN_PLACE)

    def greatest(direction: np.ndarray, first: int, most: float, T: float) -> float:
        def passes(size: float) -> bool:
            length = size * float(np.hypot(direction[0], direction[1]))
            trial, enough = (guarded, turning) if direction[2] else (free, MISS)
            return trial.miss(_steps(raw, t, trial.soles, size * direction, T, first), length, enough) <= enough

        return SHARE * bisect(passes, most, HALVINGS)

    x, y, a = np.eye(3)
    directions = [(x, 0), (-x, 0), (y, 0), (a, 0), (a, 1)]  # turning left, the left foot turns out, the right one in
    most = [MOST[0] * tall, MOST[1] * tall, MOST[2] * tall, MOST[3], MOST[3]]
    slow = [greatest(*d, m, t.nominal) for d, m in zip(directions, most, strict=True)]
    quick = [1.0] * 4
    if t.shortest < t.nominal:
        quick = [greatest(*d, m / SHARE, t.shortest) / max(m, 1e-9) for d, m in zip(directions[:4], slow, strict=False)]
    return replace(
        raw,
        forward=slow[0],
        backward=slow[1],
        sideways=slow[2],
        turn_out=slow[3],
        turn_in=slow[4],
        quick=(quick[0], quick[1], quick[2], quick[3]),
    )


def _faster(
    robot: Robot, feet: Feet, height: StyledHeight, calm: StepLimits, t: StepTimes, roll: RollSettings | None
) -> tuple[StepLimits, ...]:
    found: list[StepLimits] = []
    fastest, reached = FASTEST * float(np.sqrt(GRAVITY * height(0.0, CALM))), 0.0
    for style in (BRISK, EVEN):
        trial = TrialWalk(robot, feet, partial(_height_of, height, style), roll=roll)
        own = replace(calm, style=style, lift=max(LOWEST, style.lift * calm.lift))
        of_style = replace(calm, faster=(own,))

        def greatest(T: float, trial: TrialWalk = trial, limits: StepLimits = of_style, s: StepStyle = style) -> float:
            def passes(length: float) -> bool:
                steps = _steps(limits, t, trial.soles, np.array([length, 0.0, 0.0]), T, 0, s)
                return trial.miss(steps, length, MISS) <= MISS

            return min(SHARE * bisect(passes, MOST[0] * trial.height(0.0), HALVINGS), fastest * T)

        slow, quick = greatest(t.nominal), greatest(t.shortest)
        best = max(slow / t.nominal, quick / t.shortest)
        if slow > LOWEST and best > WORTH * reached:
            found.append(replace(own, forward=slow, quick=(min(quick / slow, 1.0), *calm.quick[1:])))
            reached = best
    return tuple(found)


def _height_of(height: StyledHeight, style: StepStyle, length: float) -> float:
    return height(length, style)


def _steps(
    limits: StepLimits,
    times: StepTimes,
    soles: Sequence[pin.SE3],
    d: np.ndarray,
    T: float,
    first: int,
    style: StepStyle = CALM,
) -> list[Footstep]:
    planner = VelocityPlanner(limits, times)
    out, stance = [], Footstep(1 - first, soles[1 - first], 0.0, 0.0, 0.0)
    for k in range(4):
        turning = abs(d[2]) > 0 and k % 2
        stance = planner.make(stance, np.zeros(3) if k == 3 or turning else d, T, style)
        out.append(stance)
    return out


def _gap(trial: TrialWalk, limits: StepLimits, times: StepTimes) -> float:
    """Return the least distance of the sole centre lines for passing legs [m]."""

    def passes(narrower: float) -> bool:
        near = replace(limits, width=limits.width - narrower, gap=limits.width - narrower)
        planner = VelocityPlanner(near, times)
        steps, stance = [], Footstep(1, trial.soles[1], 0.0, 0.0, 0.0)
        length = 0.15 * trial.height(0.0)
        for d in ([0.0, 0.0, 0.0], [length, 0.0, 0.0], [length, 0.0, 0.0]):
            stance = planner.make(stance, np.array(d), times.nominal)
            steps.append(stance)
        return trial.miss(steps, length, MISS) <= MISS

    room = limits.width - limits.gap
    return limits.width if room <= 0 else limits.width - bisect(passes, room, HALVINGS)
