"""Reference of the vertical angular momentum: a cubic per step (Schwienbacher 2014, section 7.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.walking.planning.plan import WalkPlan, mean_heading

REST = 0.5  # [s] time in which the momentum of a turn decays when no step follows


@dataclass(frozen=True)
class CubicStep:
    """Reference of a step, eq. (7.10): L(t) = a0 + a1 s + a2 s^2 + a3 s^3 with s = t - begin.

    Attributes:
        coefficients: (4,) a0 to a3.
    """

    begin: float
    duration: float
    coefficients: np.ndarray

    @classmethod
    def between(
        cls, begin: float, duration: float, start: float, start_rate: float, end: float, end_rate: float = 0.0
    ) -> CubicStep:
        """Return the cubic with given values and rates at both ends.

        Raises:
            ConfigError: if `duration` is not positive.
        """
        if not duration > 0:
            raise ConfigError(f"a step must take more than 0 s, got {duration:g} s")
        T, rise = duration, end - start
        a2 = 3 * rise / T**2 - (2 * start_rate + end_rate) / T
        a3 = -2 * rise / T**3 + (start_rate + end_rate) / T**2
        return cls(begin, duration, np.array([start, start_rate, a2, a3]))

    def value(self, t: float) -> float:
        """Return L at time t [kg m^2/s], constant before and after the step."""
        a0, a1, a2, a3 = self.coefficients
        s = min(max(t - self.begin, 0.0), self.duration)
        return float(a0 + s * (a1 + s * (a2 + s * a3)))

    def rate(self, t: float) -> float:
        """Return dL/dt [N m]; outside the step, its end value."""
        _, a1, a2, a3 = self.coefficients
        s = min(max(t - self.begin, 0.0), self.duration)
        return float(a1 + s * (2 * a2 + s * 3 * a3))


class MomentumReference:
    """Vertical momentum of a robot that turns by a given angle in each step.

    At the end of a step, the robot is treated as rigid and turning evenly: L = I_zz dphi / T with rate zero, eq.
    (7.11), (7.12). Value and rate are continuous.

    Attributes:
        inertia: constant I_zz about the CoM [kg m^2].
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
        """Return the reference at time t [kg m^2/s]; zero before the first step."""
        return self.step.value(t) if self.step is not None else 0.0


class TurnMomentum:
    """Vertical momentum along a plan: `MomentumReference` with a cubic from lift-off to lift-off."""

    def __init__(self, inertia: float) -> None:
        """Start at zero.

        Args:
            inertia: about the vertical through the CoM [kg m^2].
        """
        self._reference, self._lift = MomentumReference(inertia), float("-inf")

    def copy(self) -> TurnMomentum:
        """Return an independent copy."""
        out = TurnMomentum(self._reference.inertia)
        out._reference.step, out._lift = self._reference.step, self._lift
        return out

    def at(self, plan: WalkPlan, t: float) -> float:
        """Return the reference [N m s]; successive times must not decrease."""
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
