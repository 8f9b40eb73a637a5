"""Dynamics filter: shift of the divergent component for the robot's angular momentum.

At constant height, angular momentum L about the CoM moves the ZMP to

    p = c - c''/w^2 + (-L'_y, L'_x) / (m g),

so the pendulum is planned for p_v = p + (L'_y, -L'_x) / (m g) (Nishiwaki 2002; Takenaka 2009). Simulated inverse
kinematics give L, which shifts xi by

    xi_L(t) = w int_t^inf exp(-w (s - t)) (L'_y, -L'_x)(s) / (m g) ds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.jit import kernel
from humanoid_control.ik.whole_body_ik import WholeBodyIk
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

CUTOFF = 12.0  # [Hz] of the low-pass filter
PAST = 8  # past samples that initialise the filter
EDGE = 9  # extrapolated samples at both ends


@kernel(allocates=True)
def anticipated(delta: np.ndarray, fade: float) -> np.ndarray:
    """Return the shift (n, 2) of xi for a shift of p_v (n, 2): the integral above, backward in time.

    Args:
        fade: exp(-w dt).
    """
    # xi = 0 at the end of the horizon; going backward, this error decays by `fade` per sample
    xi = np.zeros_like(delta)
    for i in range(len(xi) - 2, -1, -1):
        for k in range(xi.shape[1]):
            # exact decay over one sample, with the mean of delta as constant input
            xi[i, k] = fade * xi[i + 1, k] + (1 - fade) * 0.5 * (delta[i, k] + delta[i + 1, k])
    return xi


class DynamicsFilter:
    """Simulation of a plan ahead of time, a few samples per call.

    Attributes:
        height: CoM height at a time [m]; None: constant.
        lean: (3,) offset of the commanded CoM from the plan [m].
        turning: vertical momentum reference; None: no reference.
        roll: rolling feet; None: flat feet.
    """

    height: Callable[[float], float] | None = None
    turning: TurnMomentum | None = None
    roll: ToeRoll | None = None

    def __init__(self, robot: Robot, feet: Feet, dt: float = 0.02, arms: str = "still") -> None:
        """Create the simulation."""
        self.robot, self.dt = robot, dt
        self.lean = np.zeros(3)
        self._tasks = BalanceTasks(robot, feet, dt, arms)
        self._ik = WholeBodyIk(robot, walking_settings(dt), limits=walking_limits(robot, False))
        self._data = robot.model.createData()
        self._filter = low_pass(CUTOFF, dt)
        self.reset()

    def reset(self) -> None:
        """Discard the past motion."""
        self._past: list[np.ndarray] = []
        self.done = True

    def remember(self, L: np.ndarray) -> None:
        """Add the angular momentum (3,) of the past motion, once per `dt`."""
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
        """Start the simulation of a plan.

        Args:
            plan: its momentum shift is ignored.
            q: (nq,) commanded configuration in the plan's world.
        """
        self._upper, self._turning = upper, None if self.turning is None else self.turning.copy()
        self._plan, self._t0, self._count = plan, t, int(np.ceil(horizon / self.dt)) + 1
        self._q, self._c = q.copy(), np.array(center, dtype=float)
        self._ik.reset()
        self._ik.v = v.copy()
        self._L, self.done = [self.momentum(q, v)], False

    def advance(self, samples: int) -> None:
        """Compute some samples."""
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
        """Return angular momentum (3,) about the CoM [N m s] at (nq,), (nv,)."""
        return np.array(pin.computeCentroidalMomentum(self.robot.model, self._data, q, v).angular)

    def result(self) -> MomentumShift:
        """Return the shift; requires `done`."""
        past = self._past or [self._L[0]]
        L = np.array([*past, *self._L])
        # filtering in both directions has no delay, since the future samples are known
        rate = filtered_both_ways(np.gradient(L, self.dt, axis=0), self._filter, EDGE)[len(past) :]
        delta = np.column_stack([rate[:, 1], -rate[:, 0]]) / (self.robot.mass * GRAVITY)
        return MomentumShift(self._t0, self.dt, anticipated(delta, float(np.exp(-self._plan.path.omega * self.dt))))
