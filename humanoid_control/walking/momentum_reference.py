"""Momentum reference: the desired vertical momentum of a walk, a cubic for each step.

Schwienbacher 2014, section 7.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.walking.planning.plan import WalkPlan, mean_heading

REST = 0.5  # [s] in which the momentum of a turn goes when no step follows


@dataclass(frozen=True)
class CubicStep:
    """One step's reference, eq. (7.10): L(t) = a0 + a1 s + a2 s^2 + a3 s^3 with s = t - begin.

    Attributes:
        begin: time at which the step begins [s].
        duration: of the step [s].
        coefficients: (4,) a0 to a3.
    """

    begin: float
    duration: float
    coefficients: np.ndarray

    @classmethod
    def between(
        cls, begin: float, duration: float, start: float, start_rate: float, end: float, end_rate: float = 0.0
    ) -> CubicStep:
        """The cubic with given values and rates at both ends.

        Raises:
            ConfigError: a duration that is not positive.
        """
        if not duration > 0:
            raise ConfigError(f"a step must take more than 0 s, got {duration:g} s")
        T, rise = duration, end - start
        a2 = 3 * rise / T**2 - (2 * start_rate + end_rate) / T
        a3 = -2 * rise / T**3 + (start_rate + end_rate) / T**2
        return cls(begin, duration, np.array([start, start_rate, a2, a3]))

    def value(self, t: float) -> float:
        """L at time t; constant before and after the step [kg m^2/s]."""
        a0, a1, a2, a3 = self.coefficients
        s = min(max(t - self.begin, 0.0), self.duration)
        return float(a0 + s * (a1 + s * (a2 + s * a3)))

    def rate(self, t: float) -> float:
        """dL/dt at time t, continued beyond the ends like the value at that end [N m]."""
        _, a1, a2, a3 = self.coefficients
        s = min(max(t - self.begin, 0.0), self.duration)
        return float(a1 + s * (2 * a2 + s * 3 * a3))


class MomentumReference:
    """The vertical momentum of a robot that turns by a given angle in each step.

    At the end of a step the robot is taken for rigid and turning evenly: L = I_zz dphi / T with rate zero (eq. (7.11),
    (7.12)); straight on this is zero. Value and rate are continuous from step to step.

    Attributes:
        inertia: I_zz about the centre of mass, constant [kg m^2].
        step: the cubic of the current step; None before the first.
    """

    def __init__(self, inertia: float) -> None:
        if not inertia > 0:
            raise ConfigError(f"the inertia must be positive, got {inertia:g} kg m^2")
        self.inertia = float(inertia)
        self.step: CubicStep | None = None

    def begin_step(self, t: float, duration: float, turn: float = 0.0) -> CubicStep:
        """Begin a step at time t [s] that turns the upper body by `turn` [rad] in `duration` [s]."""
        L, rate = (self.step.value(t), self.step.rate(t)) if self.step is not None else (0.0, 0.0)
        self.step = CubicStep.between(t, duration, L, rate, self.inertia * turn / duration)
        return self.step

    def value(self, t: float) -> float:
        """The reference at time t [kg m^2/s]; zero before the first step."""
        return self.step.value(t) if self.step is not None else 0.0


class TurnMomentum:
    """The vertical momentum along a plan: that of `MomentumReference`, a cubic from lift-off to lift-off."""

    def __init__(self, inertia: float) -> None:
        """Make it; inertia about the vertical through the centre of mass [kg m^2]."""
        self._reference, self._lift = MomentumReference(inertia), float("-inf")

    def copy(self) -> TurnMomentum:
        """One that goes on from here on its own."""
        out = TurnMomentum(self._reference.inertia)
        out._reference.step, out._lift = self._reference.step, self._lift
        return out

    def at(self, plan: WalkPlan, t: float) -> float:
        """The reference at a time, which must not go back [N m s]."""
        k = plan.index(t)
        step = self._reference.step
        if k >= 0 and plan.phases[k].lift > self._lift + 1e-6 and t < plan.phases[k].end:
            phase = plan.phases[k]
            self._lift = phase.lift
            before, after = (mean_heading(plan.soles(when)) for when in (phase.lift, phase.land))
            turn = before.T @ after
            self._reference.begin_step(t, max(phase.end - t, 0.1), float(np.arctan2(turn[1, 0], turn[0, 0])))
        elif step is not None and t > step.begin + step.duration and step.value(t) != 0.0:
            self._reference.begin_step(t, REST)
        return self._reference.value(t)
