"""Ways to walk with the same legs and different arms: the source's methods."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from humanoid_control.ik.momentum_costs import FreeJointCosts, FreeJointGains
from humanoid_control.ik.momentum_map import momentum_map
from humanoid_control.ik.momentum_methods import MU, clamped, reducing_rates, rmrc, weighting_inverse
from humanoid_control.ik.momentum_walk import WalkTask, leg_length
from humanoid_control.robots import Robot

VERTICAL = (False, False, True)
RATE_SHARE = 0.8  # of a joint's speed limit that method 1 may ask for


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

    Attributes:
        asked: the largest share of a joint's speed limit that was asked of the reducing joints, before clamping.
    """

    def __init__(self, robot: Robot, walk: WalkTask, gains: FreeJointGains | None = None) -> None:
        super().__init__(robot, walk)
        self.costs = FreeJointCosts(robot, walk.comfortable, walk.posture, gains)
        self.asked = 0.0
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
        return rmrc(J, xdot, self._ones, y)


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
        return rmrc(np.vstack([J, rows]), np.concatenate([xdot, wanted]), self._ones, y)


class TrackingWalker(NullSpaceWalker):
    """Method 1: the free joints cancel, in the null space, what all others produce (eq. (7.8), (7.9)).

    What the others produce is taken from the particular solution J# xdot of the same tick.

    Attributes:
        reference: (3,) the momentum to have [kg m^2/s].
        missing: largest momentum that the clamped rates left uncancelled [kg m^2/s].
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
        self.mode, self.mu, self.axes, self.clamp = mode, mu, np.array(axes), clamp
        self.reference, self.missing = np.zeros(3), 0.0
        self._limit = RATE_SHARE * robot.velocity[walk.free]

    def velocity(self, q: np.ndarray, J: np.ndarray, xdot: np.ndarray, y: np.ndarray) -> np.ndarray:
        J_L = momentum_map(self.robot, q, self.data).angular[self.axes]
        reducing = self.robot.iv + self.walk.free
        producing = rmrc(J, xdot, self._ones, np.zeros(len(y)))
        producing[reducing] = 0.0
        surplus = J_L @ producing - self.reference[self.axes]
        rates = reducing_rates(J_L[:, reducing], surplus, self.mode, self.mu)
        self.asked = max(self.asked, float(np.max(np.abs(rates) / self._limit)) * RATE_SHARE)
        if self.clamp:
            rates = clamped(rates, self._limit)
        self.missing = max(self.missing, float(np.abs(surplus - J_L[:, reducing] @ rates).max()))
        y[reducing] += rates
        return rmrc(J, xdot, self._ones, y)


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
        J_L = momentum_map(self.robot, q, self.data).angular[self.axes]
        return rmrc(J, xdot, weighting_inverse(J_L, self.delta), self.delta * y)


def _arm_length(robot: Robot) -> float:
    """From the shoulder to the wrist along the arm [m]."""
    lengths = robot.segment_lengths()
    return lengths["upper_arm"] + lengths["lower_arm"]
