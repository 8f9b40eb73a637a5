"""Walkers: the same legs with arms that reduce angular momentum by different methods.

The published methods 0 to 2 (Schwienbacher 2014, chapter 7) work in the null space of the walk, next to joint costs
(eq. 7.8; their shapes are the simplest smooth ones, for no numbers are given). `ConstrainedWalker` has momentum as a
task of the whole-body solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from humanoid_control.ik import IkSettings, WholeBodyIk
from humanoid_control.ik.null_space.momentum_tracking import MU, MomentumTracking, weighting_inverse
from humanoid_control.ik.null_space.objectives import band_depth, repulsion
from humanoid_control.ik.null_space.weighted_step import resolved_rate
from humanoid_control.ik.tasks.centroidal import AngularMomentumTask
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.kinematics.centroidal import centroidal_momentum_map
from humanoid_control.robots.robot import Robot, joint_columns
from humanoid_control.walking import WalkTask, leg_length

# -------- Costs of the free joints

BAND_SHARE = 0.25  # of a joint's range that a band at either end has at most


@dataclass(frozen=True)
class FreeJointGains:
    """Gains of the joint costs.

    Attributes:
        comfort: how fast a joint returns to its posture [1/s].
        limit: how fast a joint leaves the band at the end of its range, for each radian it is inside [1/s].
        band: width of that band [rad].
        separation: speed at which touching links separate, by one joint with a moment arm of 1 m [m^2/s].
        activation: distance below which they do [m]; 0: never.
        blend: share of the activation distance up to which the law is linear, 0.4 to 0.6 (eq. (5.15)).
    """

    comfort: float = 1.0
    limit: float = 20.0
    band: float = 0.15
    separation: float = 5.0
    activation: float = 0.02
    blend: float = 0.5


class FreeJointCosts:
    """The gradient alpha (dH/dq)^T of eq. (7.8) for some joints: ranges, posture, distances between links."""

    def __init__(
        self, robot: Robot, free: np.ndarray, posture: np.ndarray, gains: FreeJointGains | None = None
    ) -> None:
        """Create the free joint costs.

        Args:
            robot: any.
            free: indices of the joints with comfort and limit cost.
            posture: (n,) their comfortable posture [rad].
            gains: of the costs.
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
                y -= push @ near.gradient(joint_columns(data))
        return y


class RangeTask(Task):
    """Slow down before the end of a joint's range, and leave it again: the more, the deeper a joint is in its band."""

    def __init__(self, free: np.ndarray, band: float = 0.3, weight: float = 0.5, gain: float = 10.0) -> None:
        """Make the task for some joints, by their indices; band [rad]."""
        super().__init__("range", weight, gain)
        self.free, self.band = free, band

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        depth = -self.error(robot, data, q)
        share = np.minimum(np.abs(depth) / self.band, 1.0)
        J = np.zeros((len(self.free), robot.nv))
        J[np.arange(len(self.free)), robot.iv + self.free] = share
        return J, -self.gain * depth * share

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        free = self.free
        return -band_depth(robot.joints(q)[free], robot.lower[free], robot.upper[free], self.band, BAND_SHARE)


# -------- Published methods

VERTICAL = (False, False, True)
RATE_SHARE = 0.8  # of a joint's speed limit up to which the rates of method 1 go


class MomentumWalker(ABC):
    """Turns the task of a walk into motion, tick by tick."""

    def __init__(self, robot: Robot, walk: WalkTask) -> None:
        self.robot, self.walk = robot, walk
        self.data = robot.model.createData()

    @abstractmethod
    def step(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The velocity (nv,) at q and the configuration (nq,) a tick later; the walk's time `t` is set before."""


class NullSpaceWalker(MomentumWalker):
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
        scale: arm travel over leg travel; default: ratio of their lengths.
        singular: least ratio of the smallest to the largest singular value of the arms' rows.
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
        travel = self._relative() - self._rest
        # J_arm v = scale J_leg v + gain (scale leg travel - arm travel): the leg's velocity is part of the unknown.
        rows = np.vstack([J_tree[k] - self.scale * J_tree[k + 2] for k in range(2)])[self._axes]
        desired = self.walk.gain * (self.scale * travel[2:] - travel[:2]).ravel()[self._axes]
        values = np.linalg.svd(np.vstack(J_tree[:2])[self._axes][:, self.robot.iv + self.walk.free], compute_uv=False)
        self.singular = min(self.singular, float(values[-1] / values[0]))
        return resolved_rate(np.vstack([J, rows]), np.concatenate([xdot, desired]), self._ones, y)


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
        self.tracking.place(q)
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


# -------- Momentum as a task of the constrained solver

WAIST_WEIGHT = 3.0  # of its posture against the arms': a pelvis that turns far takes reach from the legs
CONSTRAINED = IkSettings(
    damping=0.02,
    smoothing=0.05,
    acceleration_scale=np.inf,
    range_ease=0.0,
    margin=0.01,
    activation=0.05,
    barrier_gain=30.0,
)


class ConstrainedWalker(MomentumWalker):
    """One quadratic program: momentum is a task; range, speed, acceleration and self-collision are constraints.

    Attributes:
        momentum: the task about the vertical, or about one axis alone. tasks: all tasks.
    """

    def __init__(
        self,
        robot: Robot,
        walk: WalkTask,
        axes: tuple[bool, bool, bool] = VERTICAL,
        settings: IkSettings = CONSTRAINED,
        weight: float = 1.0,
        level_weight: float = 0.15,
        posture_weight: float = 0.07,
    ) -> None:
        """Create the constrained walker.

        Args:
            robot, walk: the robot and its task.
            axes: of the world, about which there should be no momentum.
            settings: of the solver.
            weight: of the momentum about z.
            level_weight: of that about x and y, which arms cannot cancel.
            posture_weight: of the arms' posture.
        """
        super().__init__(robot, walk)
        posture = np.zeros(robot.n)
        posture[walk.comfortable] = 1.0
        posture[walk.groups.waist] *= WAIST_WEIGHT
        self.momentum = AngularMomentumTask(axes=(False, False, axes[2]), weight=weight)
        level = AngularMomentumTask(axes=(axes[0], axes[1], False), weight=level_weight)
        keep = PostureTask(robot, walk.posture, posture, weight=posture_weight, gain=3.0)
        self.tasks: list[Task] = [walk, self.momentum, keep, RangeTask(walk.free)]
        if axes[0] or axes[1]:
            self.tasks.append(level)
        self.solver = WholeBodyIk(robot, replace(settings, base_velocity=10.0))

    def step(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = self.solver.step(q, self.tasks, self.walk.dt)
        return result.v, result.q
