"""Online replanning of a walk: at each step, after pushes, and for emergency stops.

New plans continue the CoM and its velocity; the ZMP absorbs the difference. Only an adjustment after a push starts at
the measured xi.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

import numpy as np
import pinocchio as pin

from humanoid_control.errors import UnknownNameError
from humanoid_control.estimation.floating_base import BaseEstimate
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.dancing.upper_body import GUESS, UpperMotion
from humanoid_control.walking.disturbance import ObserverSettings
from humanoid_control.walking.feet import Feet, LegReach
from humanoid_control.walking.footsteps import VelocityPlanner
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.ground.center_height import CenterHeight, support_heights
from humanoid_control.walking.ground.terrain import FeltGround, HeightMap, Terrain
from humanoid_control.walking.planning.dynamics_filter import DynamicsFilter
from humanoid_control.walking.planning.lipm import ZmpPath
from humanoid_control.walking.planning.model_predictive import ModelPredictive
from humanoid_control.walking.planning.plan import (
    CenterPlanner,
    CenterRequest,
    MomentumShift,
    Phase,
    WalkPlan,
    continued,
    schedule,
    zmp_corners,
)
from humanoid_control.walking.planning.preview_control import PreviewControl
from humanoid_control.walking.planning.step import Footstep, StepLimits, StepStyle, StepTimes
from humanoid_control.walking.planning.toe_roll import RollSettings
from humanoid_control.walking.stabilizer import StabilizerGains
from humanoid_control.walking.step_adjustment import AdjustmentSettings, SwingChoice, adjust, falling_time
from humanoid_control.walking.step_limits import step_limits_of
from humanoid_control.walking.support import nearest_in_polygon
from humanoid_control.walking.swing_foot import SwingPath

PLANS = ("dcm", "preview", "mpc")
AHEAD = 4  # planned steps
READY = 0.8  # [s] settling time into the walking posture
RAISED = 0.04  # [m] change of the requested height per step
TURNS = 0.12  # [rad] turn above which a step does not lower the centre of mass: hands would meet the thighs
ASKEW = 0.05  # [m] placement error after which another closing step follows
RAISING = 0.1  # [m/s] speed of height changes while standing


@dataclass(frozen=True)
class WalkSettings:
    """Settings of a walk; the defaults suit an adult-size robot.

    Attributes:
        crouch: CoM height below that of the neutral posture [m].
        inward: inward shift of the ZMP from the sole centre line [m].
        start: weight shift before the first step [s].
        settle: weight shift after the last step [s].
        arms: one of ARM_SWINGS.
        filter_dt: sample time of the dynamics filter [s].
        horizon: horizon of the dynamics filter [s]; 0: off.
        limits: step limits; default: computed from the robot.
        plan: one of PLANS: closed form, preview control, or predictive with free footholds.
        adjustment: step adjustment after pushes; None: off.
        observer: observer of unmodelled disturbances; None: off.
        roll: toe roll of feet with toe joints; None: flat feet.
        ground: heights in the walker's world, with its origin below the initial root link; None: assumed level.
    """

    dt: float = 0.004
    times: StepTimes = field(default_factory=StepTimes)
    crouch: float = 0.03
    inward: float = 0.005
    start: float = 1.0
    settle: float = 0.6
    arms: str = "still"
    filter_dt: float = 0.02
    horizon: float = 1.8
    limits: StepLimits | None = None
    plan: str = "dcm"
    gains: StabilizerGains = field(default_factory=StabilizerGains)
    adjustment: AdjustmentSettings | None = field(default_factory=AdjustmentSettings)
    observer: ObserverSettings | None = field(default_factory=ObserverSettings)
    roll: RollSettings | None = field(default_factory=RollSettings)
    ground: HeightMap | None = None


class Commanded(NamedTuple):
    """Commanded state that a plan continues.

    Attributes:
        center: (3,) planned CoM [m].
        upper: upper-body motion; None: at rest.
    """

    t: float
    q: np.ndarray
    v: np.ndarray
    center: np.ndarray
    upper: UpperMotion | None = None


class NextPlan(NamedTuple):
    """Prepared plan.

    Attributes:
        displacement: displacement of the first step (3,): forward, sideways [m], turn [rad].
        closing: the step closes the feet.
    """

    phases: list[Phase]
    displacement: np.ndarray
    closing: bool


class Replanner:
    """Owner of the current plan.

    Attributes:
        omega: pendulum rate sqrt(g / z) of the next plan [1/s].
        height: standing CoM height above the soles [m].
        raised: requested height offset of the next steps [m].
    """

    def __init__(self, robot: Robot, feet: Feet, settings: WalkSettings) -> None:
        self.settings, self.feet = settings, feet
        s = settings
        self.filter = DynamicsFilter(robot, feet, s.filter_dt, s.arms)
        self.reach = LegReach(robot, feet, s.crouch)
        self.height = self.reach.height(0.0)
        times = s.times.on(feet.sole_width)
        limits = s.limits or step_limits_of(robot, feet, self.reach.height, times, self.height_of, s.roll)
        ground: HeightMap = s.ground or FeltGround()
        self.felt = ground if isinstance(ground, FeltGround) else None
        self.terrain = Terrain(ground, feet.outlines, self.felt is None)
        self.footsteps = VelocityPlanner(limits, times, self.terrain)
        if s.plan not in PLANS:
            raise UnknownNameError("plan of the centre of mass", s.plan, PLANS)
        self.center_planner: CenterPlanner | None = None
        if s.plan != "dcm":
            self.center_planner = PreviewControl() if s.plan == "preview" else ModelPredictive(limits)

    coming: NextPlan | None

    def stand(self, t: float, soles: Sequence[pin.SE3], center: np.ndarray) -> None:
        """Plan to stand on both soles, from a CoM (3,) [m] at a time [s]."""
        middle = 0.5 * sum(X.act(np.array([*m, 0.0])) for X, m in zip(soles, self.feet.middle, strict=True))
        self.omega, self._above = float(np.sqrt(GRAVITY / self.height)), self.height
        self.raised = self._raised = 0.0
        self.heights = CenterHeight(float(center[2]))
        self.heights.change(float(middle[2]) + self.height - float(center[2]), t, t + READY)
        self.filter.height = self.heights.at
        path = ZmpPath.of(np.array([t, t + READY]), np.array([middle[:2], middle[:2]]), self.omega)
        self.plan = WalkPlan(soles, [], path)
        self._before, self.coming, self._swaying, self._closing = np.zeros(3), None, False, False

    def rest(self, t: float) -> None:
        """End the last step: plan to stand in place."""
        self.plan = WalkPlan(self.plan.soles(t), [], self.plan.path, self.plan.momentum)
        self._before = np.zeros(3)

    def raise_center(self, t: float) -> None:
        """Move the CoM to the height `raised` from time t on [s], while standing."""
        if self._raised == self.raised:
            return
        self._raised = self.raised
        self.heights.truncate(t)
        above = self.reach.height(0.0, 0.0, self.raised)
        self.heights.change(above - self._above, t, t + READY + abs(above - self._above) / RAISING)
        self._above, self.omega = above, float(np.sqrt(GRAVITY / above))

    @property
    def wanted(self) -> bool:
        """Whether a motion is requested."""
        return self.footsteps.moving

    @property
    def askew(self) -> bool:
        """Whether a push has moved the last step off the other foot's side."""
        phases = self.plan.phases
        return len(phases) == 1 and math.dist(phases[0].step.X.translation[:2], self._planned.translation[:2]) > ASKEW

    @property
    def speed(self) -> float:
        """Speed of the current step [m/s]."""
        if not self.plan.phases:
            return 0.0
        first = self.plan.phases[0].step
        return float(np.hypot(*self._before[:2])) / (first.swing + first.double)

    def height_of(self, step: float, style: StepStyle) -> float:
        """Return the CoM height above the soles for a step length and style [m]."""
        return self.reach.height(step, 0.0, (1.0 - style.crouch) * self.settings.crouch)

    def height_at(self, t: float) -> float:
        """Return the planned CoM height in the world [m]."""
        return self.heights.at(t)

    def prepare(self, now: Commanded, lift: float, foot: int, ending: bool = False) -> None:
        """Begin to plan the steps after the current one; continue with `work`, activate with `take`.

        Args:
            lift: lift-off of the first step [s].
            ending: whether the step closes the feet.
        """
        soles = self.plan.soles(now.t)
        stance = self._stand_on(1 - foot, soles[1 - foot])
        closing = ending or not (self.wanted or np.abs(self._before).max() > 1e-3)
        if closing:
            steps, before = self.footsteps.closing_steps(stance, 1), np.zeros(3)
        else:
            steps, before = self.footsteps.next_steps(stance, self._before, AHEAD)
            if self.footsteps.arrives():  # side by side at the goal: another step in place could move away from it
                steps, before, closing = steps[:1], np.zeros(3), True
        phases, self._swaying = schedule(soles, steps, lift, self.terrain), False
        self.coming = NextPlan(phases, before, closing)
        self._climb(now.t, soles, phases)
        horizon = self.settings.horizon
        if horizon > 0:
            self.filter.start(self._plan_of(now.t, soles, phases), now.t, horizon, *now[1:])

    def sway(self, now: Commanded, samples: int) -> None:
        """Compensate the upper-body momentum by the CoM, in double support.

        A known motion is simulated repeatedly, `samples` per call. A live motion's momentum L is assumed to last for
        GUESS: the filter integral is -w exp(-w GUESS) L.
        """
        if self.settings.horizon <= 0 or now.upper is None:
            return
        t, plan = now.t, self.plan
        if not now.upper.known:
            L, w = self.filter.momentum(now.q, now.v), plan.path.omega
            shift = -w * np.exp(-w * GUESS) * np.array([L[1], -L[0]]) / (self.filter.robot.mass * GRAVITY)
            plan.momentum = MomentumShift(t, 1.0, shift[None])
            return
        standing = not plan.phases or t >= plan.end
        feet, phases = (plan.soles(t), []) if standing else (plan.feet, plan.phases)
        if self._swaying and self.filter.done:
            until = t + self.settings.settle
            if not standing:
                until = min(until, plan.phases[0].end)
            self._continue_with(now, self._plan_of(t, feet, phases), self.filter.result(), until)
            self._swaying = False
        if not self._swaying:
            self._swaying = True
            going_on = WalkPlan(feet, phases, self.plan.path)
            self.filter.start(going_on, t, self.settings.horizon, *now[1:])
        self.filter.advance(samples)

    def work(self, samples: int) -> bool:
        """Continue the preparation; return whether it is complete."""
        if self.settings.horizon > 0 and not self.filter.done:
            self.filter.advance(samples)
        return self.settings.horizon <= 0 or self.filter.done

    def take(self, now: Commanded) -> bool:
        """Activate the prepared plan from the current references; return whether its step closes the feet."""
        assert self.coming is not None
        (phases, self._before, closing), self.coming = self.coming, None
        self._closing = closing
        while not self.work(50):
            pass
        shift = self.filter.result() if self.settings.horizon > 0 else MomentumShift.none()
        self._set_height(now.t, phases)
        plan = self._plan_of(now.t, self.plan.soles(now.t), phases)
        if self.center_planner is None:
            self._continue_with(now, plan, shift, phases[0].end)
        else:
            self._plan_center(now, self.center_planner, plan, shift)
        first = self.plan.phases[0]
        self._planned, self._lands = first.step.X, first.land
        self._offset = self.plan.at(first.land).dcm - self._planned.translation[:2]
        return closing

    def adjust(self, t: float, now: BaseEstimate, polygon: np.ndarray, a: AdjustmentSettings) -> None:
        """Move the coming foothold and landing time so that the motion is captured.

        Args:
            polygon: (k, 2) support polygon.
        """
        s, plan = self.settings, self.plan
        phase = plan.phases[0]
        if phase.swing.phase(t) > a.latest_phase:
            return
        foot, limits = phase.step.foot, self.footsteps.limits
        stance = plan.feet[1 - foot]
        R = stance.rotation[:2, :2].T
        origin = stance.translation[:2]
        w = plan.path.omega
        xi = now.center[:2] + now.center_velocity[:2] / w
        at = R @ (phase.step.X.translation[:2] - origin)
        remaining = phase.land - t
        # Constant zero-moment point that ends the step as planned, clipped to the support.
        grown = float(np.exp(w * max(remaining, 2 * s.dt)))
        goal = self._planned.translation[:2] + self._offset
        zmp = nearest_in_polygon(polygon, (xi * grown - goal) / (grown - 1.0))
        side = 1.0 if foot == 0 else -1.0
        wide = sorted((side * limits.gap, side * (limits.gap + limits.sideways + 0.1)))
        choice = SwingChoice(
            xi=R @ (xi - origin),
            zmp=R @ (zmp - origin),
            omega=w,
            foothold=R @ (self._planned.translation[:2] - origin),
            offset=R @ self._offset,
            remaining=remaining,
            soonest=min(max(phase.lift + a.earliest - t, falling_time(phase, t, a), 2 * s.dt), remaining),
            latest=max(self._lands + a.stretch * (self._lands - phase.lift) - t, remaining),
            lower=np.array([-limits.backward - 0.1, wide[0]]),
            upper=np.array([limits.forward + 0.1, wide[1]]),
        )
        u, later = adjust(choice, a)
        move = u - at
        far = float(np.hypot(*move))
        if far < 1e-3 and abs(later - remaining) < 0.5 * s.dt:
            return
        u = at + move * min(1.0, a.speed * s.dt / max(far, 1e-9))
        land = t + float(np.clip(later, remaining - 4 * s.dt, remaining + 4 * s.dt))
        X = pin.SE3(
            phase.step.X.rotation, np.array([*(stance.rotation[:2, :2] @ u + origin), phase.step.X.translation[2]])
        )
        X, why = self.terrain.foothold(X, foot)
        if why:
            return
        step = replace(phase.step, X=X)
        swing = phase.swing.changed(t, X, land)
        first = Phase(step, phase.lift, swing.land, swing.land + step.double, swing)
        feet = [stance, stance]
        feet[foot] = X
        # Keep the number of steps of the plan: another number would move the final weight shift.
        if not self._closing:
            steps = self.footsteps.next_steps(step, self._before, AHEAD - 1)[0]
        else:
            steps = self.footsteps.closing_steps(step, 1) if len(plan.phases) > 1 else []
        rest = schedule(feet, steps, first.end, self.terrain)
        new = self._plan_of(t, plan.feet, [first, *rest], stand=zmp)
        later_shift = replace(plan.momentum, t0=plan.momentum.t0 + swing.land - phase.land)
        self.plan = WalkPlan(new.feet, new.phases, new.path, later_shift)

    def land(self, now: Commanded) -> tuple[int, float]:
        """End a swing at early ground contact; the weight shift follows the original times.

        Returns:
            The foot, and its height above the plan [m].
        """
        t, plan = now.t, self.plan
        phase, foot = plan.phases[0], plan.phases[0].step.foot
        X = phase.swing.at(t)
        ground = pin.SE3(phase.step.X.rotation, np.array([*X.translation[:2], phase.step.X.translation[2]]))
        landed = SwingPath.between(phase.swing.start, ground, phase.lift, t, 0.0)
        first = Phase(replace(phase.step, X=ground), phase.lift, t, phase.end, landed)
        feet = list(plan.feet)
        feet[foot] = ground
        later = schedule(feet, [p.step for p in plan.phases[1:]], first.end, self.terrain)
        new = self._plan_of(t, plan.feet, [first, *later], phase.land)
        self._continue_with(now, new, plan.momentum, first.end)
        return foot, float(X.translation[2] - ground.translation[2])

    def stop_now(self, now: Commanded) -> None:
        """Come to rest as soon as possible: the swing foot lands at the capture point, the other foot closes."""
        t, self._before, self.coming, self._closing = now.t, np.zeros(3), None, True
        k = self.plan.index(t)
        soles = list(self.plan.soles(t))
        if k < 0:  # the first step has not begun: return to the middle
            self._continue_with(now, self._plan_of(t, soles, []), MomentumShift.none(), t + self.settings.settle)
            return
        phase = self.plan.phases[k]
        foot = phase.step.foot if (swinging := t < phase.land - 1e-9) else 1 - phase.step.foot
        if swinging:
            soles[foot] = phase.swing.start
            lift, land = phase.lift, phase.land
        else:
            lift = phase.end
            land = lift + phase.step.swing
        stance = self._stand_on(1 - foot, soles[1 - foot])
        base = self.footsteps.closing_steps(stance, 1)[0]
        xi = self.plan.at(t).dcm

        def plan_for(ahead: float) -> WalkPlan:
            X = self.footsteps.placed(base.X * pin.SE3(np.eye(3), np.array([ahead, 0.0, 0.0])), foot)
            step = replace(base, X=X)
            if swinging:
                swing = phase.swing.changed(t, X, land)
                first = Phase(step, lift, land, land + step.double, swing)
            else:
                first = schedule(soles, [step], lift, self.terrain)[0]
            feet = list(soles)
            feet[foot] = X
            last = self.footsteps.closing_steps(Footstep(foot, X, 0.0, 0.0, 0.0), 1)
            return self._plan_of(t, soles, [first, *schedule(feet, last, first.end, self.terrain)])

        forward = soles[1 - foot].rotation[:2, 0]
        # The divergent component is linear in the foothold: two trial plans give the foothold that captures it.
        zero, one = (float(plan_for(x).path.dcm(t) @ forward) for x in (0.0, 0.1))
        shift = self.plan.momentum
        wanted = float((xi - shift.at(t)) @ forward)
        most = self.footsteps.limits
        ahead = float(np.clip((wanted - zero) / (one - zero) * 0.1, -most.backward, most.forward))
        plan = plan_for(ahead)
        self._climb(t, soles, plan.phases)
        self._continue_with(now, plan, MomentumShift.none(), plan.phases[0].end)

    def settle(self, now: Commanded, height: float) -> None:
        """Continue the plan with a landed foot at another height [m]."""
        phase, plan = self.plan.phases[0], self.plan
        foot, old = phase.step.foot, phase.step.X
        X = pin.SE3(old.rotation, np.array([*old.translation[:2], height]))
        landed = SwingPath.between(phase.swing.start, X, phase.lift, phase.land, 0.0)
        first = Phase(replace(phase.step, X=X), phase.lift, phase.land, phase.end, landed)
        feet = list(plan.feet)
        feet[foot] = X
        later = [replace(p.step, X=_raised(p.step.X, height - old.translation[2])) for p in plan.phases[1:]]
        phases = [first, *schedule(feet, later, first.end, self.terrain)]
        self.plan = WalkPlan(plan.feet, phases, plan.path, plan.momentum)
        self._climb(now.t, plan.feet, phases)

    def _stand_on(self, foot: int, X: pin.SE3) -> Footstep:
        if self.felt is not None:
            self.felt.place = X.translation.copy()
        return Footstep(foot, X, 0.0, 0.0, 0.0)

    # -- plans -------------------------------------------------------------------------------------------------

    def _plan_of(
        self,
        t: float,
        soles: Sequence[pin.SE3],
        phases: Sequence[Phase],
        carried: float = 0.0,
        stand: np.ndarray | None = None,
    ) -> WalkPlan:
        now = self.plan.path.zmp(t)
        timed = list(phases)
        if phases and carried > phases[0].land:
            timed[0] = phases[0]._replace(land=carried)
        times, corners = zmp_corners(self.feet, soles, timed, t, now, self.settings.settle)
        if phases and phases[0].lift <= t + 1e-9 < timed[0].land:
            if stand is not None:
                corners[1] = stand
            corners[0] = corners[1]  # the swing has begun: the stance foot carries
        return WalkPlan(soles, phases, ZmpPath.of(times, corners, self.omega))

    def _plan_center(self, now: Commanded, planner: CenterPlanner, plan: WalkPlan, shift: MomentumShift) -> None:
        old = self.plan
        velocity = old.path.omega * (old.at(now.t).dcm - now.center[:2])
        xi = now.center[:2] + velocity / self.omega - shift.at(now.t)
        state = (now.t, self.omega, now.center[:2].copy(), xi, old.path.zmp(now.t))
        path, phases = planner.plan(CenterRequest(*state, self.feet, plan.feet, plan.phases, self.settings.settle))
        self.plan = WalkPlan(plan.feet, phases, path, shift)

    def _continue_with(self, now: Commanded, plan: WalkPlan, shift: MomentumShift, until: float) -> None:
        """Set a plan with continuous references: the ZMP absorbs the difference until a time [s]."""
        old = self.plan.at(now.t)
        velocity = self.plan.path.omega * (old.dcm - now.center[:2])
        xi = now.center[:2] + velocity / self.omega
        made = cast("ZmpPath", plan.path)  # by `_plan_of`
        path = continued(made, xi - shift.at(now.t), until)
        self.plan = WalkPlan(plan.feet, plan.phases, path, shift)

    def _set_height(self, t: float, phases: Sequence[Phase]) -> None:
        """Lower the CoM for longer and steeper steps, during the first swing."""
        d, feet = self._before, self.plan.soles(t)
        heights = [X.translation[2] for X in (feet[1 - phases[0].step.foot], *(p.step.X for p in phases))]
        rise = float(np.abs(np.diff(heights)).max())
        step = float(np.hypot(d[0], d[1]))
        goal = self.raised if abs(d[2]) < TURNS else max(self.raised, 0.0)
        goal += (1.0 - phases[0].step.style.crouch) * self.settings.crouch
        self._raised += float(np.clip(goal - self._raised, -RAISED, RAISED))
        above = self.reach.height(step, rise, self._raised)
        if abs(above - self._above) > 1e-4:
            self.heights.change(above - self._above, max(phases[0].lift, t), max(phases[0].land, t + 0.2))
            self._above = above
            self.omega = float(np.sqrt(GRAVITY / above))

    def _climb(self, t: float, soles: Sequence[pin.SE3], phases: Sequence[Phase]) -> None:
        self.heights.truncate(t)
        for floor, begin, end in support_heights([float(X.translation[2]) for X in soles], phases):
            self.heights.change(floor + self._above - self.heights.goal, max(begin, t), max(end, t + 0.1))


def _raised(X: pin.SE3, height: float) -> pin.SE3:
    return pin.SE3(X.rotation, X.translation + [0.0, 0.0, height])
