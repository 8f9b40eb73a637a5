"""The part of the divergent component that a robot's angular momentum asks for, found by walking ahead in thought.

The zero-moment point of a robot with angular momentum L about its centre of mass is, at constant height,

    p = c - c''/w^2 + (-L'_y, L'_x) / (m g),

so the pendulum must be planned for the virtual point p_v = p + (L'_y, -L'_x) / (m g) (Nishiwaki 2002; Takenaka 2009).
L comes from the same inverse kinematics, run along the plan; what it adds to p_v adds to xi

    xi_L(t) = w int_t^inf exp(-w (s - t)) (L'_y, -L'_x)(s) / (m g) ds.

Without it a robot whose legs are heavy falls within a dozen steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from humanoid_control.ik.whole_body_ik import WholeBodyIk
from humanoid_control.jit import kernel
from humanoid_control.numerics.butterworth import filtered_both_ways, low_pass
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.balance_tasks import BalanceTasks, walking_limits, walking_settings
from humanoid_control.walking.dancing.upper_body import UpperMotion
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.momentum_reference import TurnMomentum
from humanoid_control.walking.planning.lipm import follow_dcm
from humanoid_control.walking.planning.plan import MomentumShift, WalkPlan
from humanoid_control.walking.planning.toe_roll import ToeRoll

CUTOFF = 12.0  # [Hz]
PAST = 8  # samples of the motion so far that lead the filter in
EDGE = 9  # samples by which both ends are continued


@kernel
def anticipated(delta: np.ndarray, fade: float) -> np.ndarray:
    """The shift (n, 2) of xi by that of p_v (n, 2), both at even times: the integral above, from its end backward.

    Args:
        fade: exp(-w dt).
    """
    xi = np.zeros_like(delta)
    for i in range(len(xi) - 2, -1, -1):
        for k in range(xi.shape[1]):
            xi[i, k] = fade * xi[i + 1, k] + (1 - fade) * 0.5 * (delta[i, k] + delta[i + 1, k])
    return xi


class DynamicsFilter:
    """Walks along a plan in thought, a few samples at a call.

    Attributes:
        dt: between samples [s]. done: all samples of the plan are there.
        height: of the centre of mass at a time [m]; None: it stays.
        lean: (3,) of the commanded centre of mass off the plan [m].
        turning: reference of the momentum about the vertical, of now; None: there is none.
        roll: of feet with toes; None: they stay flat.
    """

    height: Callable[[float], float] | None = None
    turning: TurnMomentum | None = None
    roll: ToeRoll | None = None

    def __init__(self, robot: Robot, feet: Feet, dt: float = 0.02, arms: str = "still") -> None:
        """Make it.

        Args:
            robot, feet: that walk. dt: between samples [s]. arms: as of `BalanceTasks`.
        """
        self.robot, self.dt = robot, dt
        self.lean = np.zeros(3)
        self._tasks = BalanceTasks(robot, feet, dt, arms)
        self._ik = WholeBodyIk(robot, walking_settings(dt), limits=walking_limits(robot, False))
        self._data = robot.model.createData()
        self._filter = low_pass(CUTOFF, dt)
        self.reset()

    def reset(self) -> None:
        """Forget the motion so far."""
        self._past: list[np.ndarray] = []
        self.done = True

    def remember(self, L: np.ndarray) -> None:
        """Take the angular momentum (3,) of the motion so far, once each dt."""
        self._past = [*self._past[1 - PAST :], np.array(L)]

    def start(
        self,
        plan: WalkPlan,
        t: float,
        horizon: float,
        q: np.ndarray,
        v: np.ndarray,
        center: np.ndarray,
        upper: UpperMotion | None = None,
    ) -> None:
        """Begin to walk along a plan.

        Args:
            plan: whose momentum is not read. t: now [s]. horizon: how far [s].
            q, v: (nq,), (nv,) of the robot as it is commanded, in the world of the plan.
            center: (3,) of mass, planned for t. upper: what the upper body does.
        """
        self._upper, self._turning = upper, None if self.turning is None else self.turning.copy()
        self._plan, self._t0, self._count = plan, t, int(np.ceil(horizon / self.dt)) + 1
        self._q, self._c = q.copy(), np.array(center, dtype=float)
        self._ik.reset()
        self._ik.v = v.copy()
        self._L, self.done = [self.momentum(q, v)], False

    def advance(self, samples: int) -> None:
        """Take some more samples."""
        plan, dt = self._plan, self.dt
        for _ in range(samples):
            k = len(self._L)
            if k >= self._count:
                self.done = True
                return
            t = self._t0 + k * dt
            before, now = plan.path.dcm(t - dt), plan.path.dcm(t)
            self._c[:2] = follow_dcm(self._c[:2], before, now, plan.path.omega, dt)
            if self.height is not None:
                self._c[2] = self.height(t)
            ref = plan.at(t)
            upper = None if self._upper is None else self._upper.at(t)
            spin = 0.0 if self._turning is None else self._turning.at(plan, t)
            soles = ref.soles if self.roll is None else self.roll.rolled(ref.soles, self.roll.planned(plan, t))
            self._tasks.set(soles, self._c + self.lean, ref.heading, ref.swinging, upper)
            self._tasks.hold_pelvis(self._q)
            self._tasks.swing_arms(self._q, self._ik.v, spin, ref.heading)
            result = self._ik.step(self._q, self._tasks.tasks, dt)
            self._q = result.q
            self._L.append(self.momentum(result.q, result.v))

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular momentum (3,) about the centre of mass [N m s], at (nq,), (nv,)."""
        return np.array(pin.computeCentroidalMomentum(self.robot.model, self._data, q, v).angular)

    def result(self) -> MomentumShift:
        """The shift, after `done`."""
        past = self._past or [self._L[0]]
        L = np.array([*past, *self._L])
        rate = filtered_both_ways(np.gradient(L, self.dt, axis=0), self._filter, EDGE)[len(past) :]
        delta = np.column_stack([rate[:, 1], -rate[:, 0]]) / (self.robot.mass * GRAVITY)
        return MomentumShift(self._t0, self.dt, anticipated(delta, float(np.exp(-self._plan.path.omega * self.dt))))
