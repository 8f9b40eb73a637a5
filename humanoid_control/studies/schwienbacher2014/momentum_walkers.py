"""What the free joints do beside momentum: stay inside their ranges, near their posture, off other links.

The gradient alpha (dH/dq)^T of eq. (7.8) in Schwienbacher 2014, as velocities not to have. The source names the three
terms and gives no numbers; the shapes are the simplest smooth ones.


Also here:

* Ways to walk with the same legs and different arms: the source's methods.
* Our way to walk with little momentum: the constrained solver, with momentum as one of its tasks.
* A walk, played through by one walker, and what it came to over one steady gait cycle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from humanoid_control.ik import IkSettings, WholeBodyIk
from humanoid_control.ik.null_space.least_squares import resolved_rate
from humanoid_control.ik.null_space.momentum_tracking import MU, MomentumTracking, weighting_inverse
from humanoid_control.ik.null_space.objectives import band_depth, repulsion
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.momentum import AngularMomentumTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.kinematics.centroidal import centroidal_momentum_map
from humanoid_control.robots.robot import Robot
from humanoid_control.walking import GaitPoint, WalkTask, leg_length

# -------- What the free joints do beside momentum: stay inside their ranges, near their posture, off other links

BAND_SHARE = 0.25  # of a joint's range that a band at either end has at the most


@dataclass(frozen=True)
class FreeJointGains:
    """How strongly.

    Attributes:
        comfort: how fast a joint returns to its posture [1/s].
        limit: how fast a joint leaves the band at the end of its range, for each radian it is inside [1/s].
        band: width of that band [rad].
        separation: how fast touching links separate, where one joint alone would do it with a lever of 1 m [m^2/s].
        activation: distance below which they do [m]; 0: they never do.
        blend: share of the activation distance up to which the law is linear, 0.4 to 0.6 (eq. (5.15)).
    """

    comfort: float = 1.0
    limit: float = 20.0
    band: float = 0.15
    separation: float = 5.0
    activation: float = 0.02
    blend: float = 0.5


class FreeJointCosts:
    """The gradient of the joint costs of some joints of a robot."""

    def __init__(
        self, robot: Robot, free: np.ndarray, posture: np.ndarray, gains: FreeJointGains | None = None
    ) -> None:
        """Prepare.

        Args:
            robot: any.
            free: indices of the joints with comfort and limit cost.
            posture: (n,) where they are comfortable [rad].
            gains: how strongly.
        """
        self.robot, self.free, self.gains = robot, free, gains or FreeJointGains()
        self.posture = np.array(posture, dtype=float)
        self._distance = robot.self_distance() if self.gains.activation > 0 and len(robot.pairs) else None

    def gradient(self, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """The null-space vector (nv,) [rad/s]; `data` after `pin.computeJointJacobians` at q."""
        g, robot, free = self.gains, self.robot, self.free
        y = np.zeros(robot.nv)
        joints = robot.joints(q)[free]
        depth = band_depth(joints, robot.lower[free], robot.upper[free], g.band, BAND_SHARE)
        y[robot.iv + free] = g.comfort * (joints - self.posture[free]) + g.limit * depth
        if self._distance is not None:
            near = self._distance.near(data, g.activation)
            if len(near):
                push = repulsion(near.distance, g.activation, g.separation, g.blend)
                y -= push @ near.gradient(data.J)
        return y


class RangeTask(Task):
    """Slow down before the end of a joint's range, and leave it again: more the deeper a joint is in the band there."""

    def __init__(self, free: np.ndarray, band: float = 0.3, weight: float = 0.5, gain: float = 10.0) -> None:
        """Make the task for some joints, by their indices; band [rad]."""
        super().__init__("range", weight, gain)
        self.free, self.band = free, band

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        deep = -self.error(robot, data, q)
        share = np.minimum(np.abs(deep) / self.band, 1.0)
        J = np.zeros((len(self.free), robot.nv))
        J[np.arange(len(self.free)), robot.iv + self.free] = share
        return J, -self.gain * deep * share

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        free = self.free
        return -band_depth(robot.joints(q)[free], robot.lower[free], robot.upper[free], self.band, BAND_SHARE)


# -------- Ways to walk with the same legs and different arms: the source's methods

VERTICAL = (False, False, True)
RATE_SHARE = 0.8  # of a joint's speed limit up to which the rates of method 1 go


class Walker(ABC):
    """Turns the task of a walk into motion, tick by tick."""

    def __init__(self, robot: Robot, walk: WalkTask) -> None:
        self.robot, self.walk = robot, walk
        self.data = robot.model.createData()

    @abstractmethod
    def step(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The velocity (nv,) at q and the configuration (nq,) a tick later; the walk's time `t` is set before."""


class NullSpaceWalker(Walker):
    """Resolved motion rate control, Euler steps, no limit but those in its null-space costs: arms hang (W = E).

    This is the baseline: without a task for the arms, and with the least norm of the velocities, they are almost still.
    """

    def __init__(self, robot: Robot, walk: WalkTask, gains: FreeJointGains | None = None) -> None:
        super().__init__(robot, walk)
        self.costs = FreeJointCosts(robot, walk.comfortable, walk.posture, gains)
        self._ones = np.ones(robot.nv)

    def step(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pin.computeJointJacobians(self.robot.model, self.data, q)
        pin.updateFramePlacements(self.robot.model, self.data)
        J, xdot = self.walk.rows(self.robot, self.data, q)
        v = self.velocity(q, J, xdot, self.costs.gradient(self.data, q))
        after = pin.integrate(self.robot.model, q, v * self.walk.dt)
        self.robot.follow(after[self.robot.iq :])
        return v, after

    def velocity(self, q: np.ndarray, J: np.ndarray, xdot: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The velocity (nv,) for task rows and null-space vector."""
        return resolved_rate(J, xdot, self._ones, y)


class SwingWalker(NullSpaceWalker):
    """Method 0: the centre of mass of each arm follows that of the opposite leg (section 7.3.1), both from the robot's.

    An arm of three joints is then fully taken, and nothing keeps its velocity finite where it reaches the end of its
    workspace: long steps make it singular.

    Attributes:
        scale: arm travel over leg travel; default: the ratio of their lengths.
        singular: least ratio of the smallest to the largest singular value of the arms' rows that was met.
    """

    def __init__(
        self,
        robot: Robot,
        walk: WalkTask,
        gains: FreeJointGains | None = None,
        scale: float | None = None,
        axes: tuple[bool, bool, bool] = (True, True, True),
    ) -> None:
        super().__init__(robot, walk, gains)
        self._axes = np.tile(np.array(axes, dtype=bool), 2)
        g, at = walk.groups, robot.q("neutral")
        first = [robot.joint_names[k[0]] for k in (g.l_arm, g.r_arm, g.r_leg, g.l_leg)]
        self._trees = [robot.model.getJointId(name) for name in first]
        self.scale = _arm_length(robot) / leg_length(robot) if scale is None else float(scale)
        self.singular = 1.0
        pin.jacobianCenterOfMass(robot.model, self.data, at, True)
        self._rest = self._relative()

    def _relative(self) -> np.ndarray:
        """Centres of mass (4, 3) of left arm, right arm, right leg, left leg, from the robot's, world axes [m]."""
        return np.array([self.data.com[k] - self.data.com[0] for k in self._trees])

    def velocity(self, q: np.ndarray, J: np.ndarray, xdot: np.ndarray, y: np.ndarray) -> np.ndarray:
        model, data = self.robot.model, self.data
        J_com = np.array(pin.jacobianCenterOfMass(model, data, q, True))  # fills data.com, in the world
        J_tree = [np.array(pin.jacobianSubtreeCenterOfMass(model, data, k)) - J_com for k in self._trees]
        moved = self._relative() - self._rest
        # J_arm v = scale J_leg v + gain (scale leg travel - arm travel): the leg's velocity is part of the unknown.
        rows = np.vstack([J_tree[k] - self.scale * J_tree[k + 2] for k in range(2)])[self._axes]
        wanted = self.walk.gain * (self.scale * moved[2:] - moved[:2]).ravel()[self._axes]
        values = np.linalg.svd(np.vstack(J_tree[:2])[self._axes][:, self.robot.iv + self.walk.free], compute_uv=False)
        self.singular = min(self.singular, float(values[-1] / values[0]))
        return resolved_rate(np.vstack([J, rows]), np.concatenate([xdot, wanted]), self._ones, y)


class TrackingWalker(NullSpaceWalker):
    """Method 1: the free joints cancel, in the null space, the momentum of all others (eq. (7.8), (7.9)).

    Attributes:
        tracking: of the free joints; its `reference` may be set.
        rate_demand: largest rate that was asked of a free joint before it was clamped, in shares of its speed limit.
        residual: largest momentum that the clamped rates left [kg m^2/s].
    """

    def __init__(
        self,
        robot: Robot,
        walk: WalkTask,
        gains: FreeJointGains | None = None,
        mode: str = "thesis",
        mu: float = MU,
        axes: tuple[bool, bool, bool] = VERTICAL,
        clamp: bool = True,
    ) -> None:
        super().__init__(robot, walk, gains)
        free = [robot.joint_names[k] for k in walk.free]
        self.tracking = MomentumTracking(robot, free, axes=axes, mode=mode, mu=mu, speed_share=RATE_SHARE, clamp=clamp)
        self.rate_demand = self.residual = 0.0

    def velocity(self, q: np.ndarray, J: np.ndarray, xdot: np.ndarray, y: np.ndarray) -> np.ndarray:
        self.tracking.place(self.data, q)
        v = resolved_rate(J, xdot, self._ones, np.zeros(len(y)))
        rates = self.tracking.rates(v)
        self.rate_demand = max(self.rate_demand, self.tracking.demand)
        self.residual = max(self.residual, float(np.abs(self.tracking.residual(v, rates)).max()))
        return resolved_rate(J, xdot, self._ones, y + rates)


class WeightingWalker(NullSpaceWalker):
    """Method 2: momentum counts in the norm of the velocities (eq. (7.13) to (7.15)).

    The null-space gain is `delta`, so that motion without momentum has the same costs as in the other methods.
    """

    def __init__(
        self,
        robot: Robot,
        walk: WalkTask,
        gains: FreeJointGains | None = None,
        delta: float = 0.5,
        axes: tuple[bool, bool, bool] = VERTICAL,
    ) -> None:
        super().__init__(robot, walk, gains)
        self.delta, self.axes = delta, np.array(axes)

    def velocity(self, q: np.ndarray, J: np.ndarray, xdot: np.ndarray, y: np.ndarray) -> np.ndarray:
        J_L = centroidal_momentum_map(self.robot.model, self.data, q).angular[self.axes]
        return resolved_rate(J, xdot, weighting_inverse(J_L, self.delta), self.delta * y)


def _arm_length(robot: Robot) -> float:
    """From the shoulder to the wrist along the arm [m]."""
    lengths = robot.segment_lengths()
    return lengths["upper_arm"] + lengths["lower_arm"]


# -------- Our way to walk with little momentum: the constrained solver, with momentum as one of its tasks

WAIST_WEIGHT = 3.0  # of its posture against the arms': a pelvis that turns far takes reach from the legs
OURS = IkSettings(damping=0.02, smoothing=0.05, margin=0.01, activation=0.05, barrier_gain=30.0)


class ConstrainedWalker(Walker):
    """Ours: one quadratic program; momentum is a task, and range, speed, acceleration and self-collision constraints.

    Attributes:
        momentum: the task about the vertical, or about one axis alone. tasks: all tasks.
    """

    def __init__(
        self,
        robot: Robot,
        walk: WalkTask,
        axes: tuple[bool, bool, bool] = VERTICAL,
        settings: IkSettings = OURS,
        weight: float = 1.0,
        level_weight: float = 0.15,
    ) -> None:
        """Make it.

        Args:
            robot, walk: who and what.
            axes: of the world, about which there should be no momentum.
            settings: of the solver.
            weight: of the momentum about z.
            level_weight: of that about x and y, which arms cannot cancel: large, it would take them from z.
        """
        super().__init__(robot, walk)
        posture = np.zeros(robot.n)
        posture[walk.comfortable] = 1.0
        posture[walk.groups.waist] *= WAIST_WEIGHT
        self.momentum = AngularMomentumTask(axes=(False, False, axes[2]), weight=weight)
        level = AngularMomentumTask(axes=(axes[0], axes[1], False), weight=level_weight)
        keep = PostureTask(walk.posture, posture, weight=0.07, gain=3.0)
        self.tasks: list[Task] = [walk, self.momentum, keep, RangeTask(walk.free)]
        if axes[0] or axes[1]:
            self.tasks.append(level)
        self.solver = WholeBodyIk(robot, replace(settings, base_velocity=10.0))

    def step(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = self.solver.step(q, self.tasks, self.walk.dt)
        return result.v, result.q


# -------- A walk, played through by one walker, and what it came to over one steady gait cycle

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
        L[k] = centroidal_momentum_map(robot.model, data, qs[k]).angular @ vs[k]
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
