"""One tick of inverse kinematics: the joint velocity that serves all tasks best and breaks no limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import daqp
import numpy as np
import pinocchio as pin

from humanoid_control.collision import NearPairs
from humanoid_control.ik.limits import velocity_bounds
from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot
from humanoid_control.robots.near_pairs import RobotPairs

SOFT = 8  # daqp: a row that may be violated when nothing else is possible, at a steep price
FREE = 1e30


@dataclass(frozen=True)
class IkSettings:
    """How the solver weighs things.

    Attributes:
        damping: cost of every joint velocity, keeps the problem well posed at singularities [s/rad].
        smoothing: cost of a change of joint velocity against the previous tick [s/rad].
        velocity_scale: share of the joint speed limits that may be used, 0..1.
        acceleration: limit on the acceleration of a joint [rad/s^2]; range and speed come before it.
        margin: distance that shapes of the robot keep from each other [m].
        activation: distance below which a pair becomes a row of the problem [m].
        approach: a pair may lose this share of its distance above the margin each second [1/s].
        recovery_speed: how fast a pair that is too close, or inside, must separate at the most [m/s].
        recovery: how fast a joint outside its range returns [rad/s].
        base_velocity: bound on the velocity of a floating base [m/s, rad/s].
    """

    damping: float = 0.02
    smoothing: float = 0.05
    velocity_scale: float = 1.0
    acceleration: float = 200.0
    margin: float = 0.02
    activation: float = 0.12
    approach: float = 8.0
    recovery_speed: float = 0.2
    recovery: float = 0.5
    base_velocity: float = 2.0


@dataclass(frozen=True)
class IkResult:
    """What one tick gave.

    Attributes:
        q: (nq,) the configuration after the step.
        v: (nv,) the velocity that leads there.
        near: pairs of shapes that were rows of the problem.
        ok: the solver found the optimum; if not, the robot was told to stand still.
    """

    q: np.ndarray
    v: np.ndarray
    near: NearPairs
    ok: bool


class VelocityIk:
    """Weighted least squares over all tasks, with joint range, joint speed and self-collision as constraints.

    minimise  sum_i w_i^2 |J_i v - v_i|^2 + damping^2 |v|^2 + smoothing^2 |v - v_previous|^2
    subject to  velocity bounds that keep range and speed limits (hard), and for each near pair
        n . J v >= -approach (d - margin)   outside the margin, or a bounded separating speed inside it (soft).

    The result is clipped to the velocity bounds, so range and speed hold whatever the solver's tolerance is.
    """

    def __init__(self, robot: Robot, settings: IkSettings | None = None, collisions: bool = True) -> None:
        self.robot, self.settings = robot, settings or IkSettings()
        self.model, self.data = robot.model, robot.model.createData()
        self.pairs = RobotPairs(robot) if collisions and len(robot.pairs) else None
        self.v = np.zeros(robot.nv)
        self._diagonal = np.arange(robot.nv)
        self._still = np.zeros(robot.nv)
        self._compile()

    def _compile(self) -> None:
        """Run every kernel once, so that no tick waits for the compiler."""
        q = self.robot.q()
        pin.computeJointJacobians(self.model, self.data, q)
        self._bounds(q, 0.01)
        self._collision_rows(q)

    def reset(self) -> None:
        """Forget the velocity of the previous tick."""
        self.v = np.zeros(self.robot.nv)

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> IkResult:
        """The next configuration.

        Args:
            q: (nq,) where the robot is (the previous command).
            tasks: what to do.
            dt: [s] > 0.
        """
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        H, g = self._cost(q, tasks)
        low, high = self._bounds(q, dt)
        near, G, b = self._collision_rows(q)
        A = np.ascontiguousarray(G) if len(near) else np.zeros((0, self.robot.nv))
        sense = np.zeros(len(low) + len(near), dtype=np.int32)
        sense[len(low) :] = SOFT
        upper = np.concatenate([high, np.full(len(near), FREE)])
        v, _, flag, _ = daqp.solve(H, g, A, upper, np.concatenate([low, b]), sense)
        ok = flag > 0 and bool(np.isfinite(v).all())
        self.v = np.clip(v if ok else self._still, low, high)
        return IkResult(self._integrate(q, dt), self.v, near, ok)

    def _integrate(self, q: np.ndarray, dt: float) -> np.ndarray:
        q_next = pin.integrate(self.model, q, self.v * dt)
        # Rounding must not leave the range by the last bit; a joint that started outside may still be outside.
        joints = q[self.robot.iq :]
        low = np.minimum(self.robot.lower, joints)
        high = np.maximum(self.robot.upper, joints)
        q_next[self.robot.iq :] = np.clip(q_next[self.robot.iq :], low, high)
        self.robot.follow(q_next[self.robot.iq :])
        return q_next

    def _cost(self, q: np.ndarray, tasks: Sequence[Task]) -> tuple[np.ndarray, np.ndarray]:
        s = self.settings
        H, g = np.zeros((self.robot.nv, self.robot.nv)), -(s.smoothing**2) * self.v
        H[self._diagonal, self._diagonal] = s.damping**2 + s.smoothing**2
        for task in tasks:
            task.add_to(self.robot, self.data, q, H, g)
        return H, g

    def _bounds(self, q: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
        r, s = self.robot, self.settings
        low = np.full(r.nv, -s.base_velocity)
        high = np.full(r.nv, s.base_velocity)
        low[r.iv :], high[r.iv :] = velocity_bounds(
            q[r.iq :], r.lower, r.upper, s.velocity_scale * r.velocity, dt, s.recovery, self.v[r.iv :], s.acceleration
        )
        return low, high

    def _collision_rows(self, q: np.ndarray) -> tuple[NearPairs, np.ndarray, np.ndarray]:
        s = self.settings
        if self.pairs is None:
            none = np.zeros((0, 3))
            return NearPairs(np.zeros(0, dtype=int), np.zeros(0), none, none, none), none, np.zeros(0)
        near = self.pairs.near(q, s.activation)
        if not len(near):
            return near, np.zeros((0, self.robot.nv)), np.zeros(0)
        b = np.minimum(-s.approach * (near.distance - s.margin), s.recovery_speed)
        return near, self.pairs.gradient(self.data.J, near), b
