"""Integrators for models dz/dt = f(t, z, u): fixed steps, adaptive steps, slow and fast parts.

Rotors, motor currents and contact layers are fast: `multirate` takes smaller steps for them, `mixed` implicit ones.
Both are of second order, without `settings.extrapolate` of first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from humanoid_control.errors import ConfigError, SimulationError, UnknownNameError
from humanoid_control.simulation.state_space.model import Rates, StateLayout


@dataclass(frozen=True)
class IntegratorSettings:
    """Method, steps and tolerances.

    Attributes:
        method: a name from `INTEGRATORS`.
        step: longest, of adaptive methods the first [s].
        rtol: relative tolerance of adaptive methods.
        atol: absolute tolerance of adaptive methods.
        substeps: number of substeps of fast states in 'multirate'.
        extrapolate: slow states keep their rate meanwhile; frozen ones would damp stiff gears artificially.
        limit: beyond it a state has diverged.
        most_calls: largest number of calls of f in an adaptive method.
    """

    method: str = "semi_implicit"
    step: float = 1e-3
    rtol: float = 1e-6
    atol: float = 1e-9
    substeps: int = 10
    extrapolate: bool = True
    limit: float = 1e9
    most_calls: int = 1_000_000

    def __post_init__(self) -> None:
        if self.method not in INTEGRATORS:
            raise UnknownNameError("integrator", self.method, INTEGRATORS)
        for name in ("step", "rtol", "atol", "limit"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ConfigError(f"integrator {name} must be a positive number, got {value:g}")
        if self.substeps < 1:
            raise ConfigError(f"integrator substeps must be 1 or more, got {self.substeps}")


Step = Callable[[Rates, float, np.ndarray, Any, float, StateLayout, IntegratorSettings], np.ndarray]


def integrate(
    f: Rates,
    z: np.ndarray,
    duration: float,
    u: Any = None,
    t: float = 0.0,
    settings: IntegratorSettings | None = None,
    layout: StateLayout | None = None,
) -> np.ndarray:
    """Return z(t + duration) = z + integral of f (Schwienbacher 2014, eq. 2.4).

    Args:
        f: must not keep its arguments.
        z: (n,) at t, not changed.
        u: passed on unchanged.

    Raises:
        SimulationError: if a state diverges or a solver fails.
        ConfigError: if duration or layout do not fit.
    """
    settings = settings or IntegratorSettings()
    z = np.array(z, dtype=float)
    layout = layout or StateLayout(len(z))
    if layout.n != len(z):
        raise ConfigError(f"the state has {len(z)} entries, its layout {layout.n}")
    if not (np.isfinite(duration) and duration >= 0):
        raise ConfigError(f"cannot integrate over {duration:g} s: the duration must be 0 or more")
    if settings.method in _NEEDS and not len(getattr(layout, _NEEDS[settings.method])):
        raise ConfigError(f"integrator '{settings.method}' needs a state layout with {_NEEDS[settings.method]} states")
    layout.check(t, z, settings.limit)
    step, adaptive = INTEGRATORS[settings.method]
    n = 1 if adaptive else int(np.ceil(duration / settings.step - 1e-9))
    h = duration / n if n and duration else 0.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for k in range(n if h else 0):
            z = layout.normalise(step(f, t + k * h, z, u, h, layout, settings))
            layout.check(t + (k + 1) * h, z, settings.limit)
    return z


# -------- One step


def explicit_euler_step(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Return z + h f: first order, adds energy to undamped oscillations."""
    return z + h * f(t, z, u)


def semi_implicit_euler(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Advance velocities, then all others with them: first order, bounded energy error."""
    v = layout.velocities
    between = z.copy()
    between[v] += h * f(t, z, u)[v]
    out = z + h * f(t, between, u)
    out[v] = between[v]
    return out


def _adaptive(method: str) -> Step:
    def solve(
        f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
    ) -> np.ndarray:
        calls = 0

        def checked(time: float, y: np.ndarray) -> np.ndarray:
            nonlocal calls
            calls += 1
            if calls > settings.most_calls:
                raise SimulationError(
                    f"integrator '{method}' stopped at t = {time:.6g} s after {calls - 1} evaluations"
                )
            rate = np.array(f(time, y, u))
            if np.abs(y).max() <= settings.limit:  # beyond: a trial step, which the solver rejects
                layout.check(time, rate, np.finfo(float).max, "the rate of")
            return rate

        def too_large(time: float, y: np.ndarray) -> float:
            return settings.limit - float(np.abs(y).max())

        too_large.terminal = True  # type: ignore[attr-defined]
        first = min(settings.step, h)
        tolerances = {"rtol": settings.rtol, "atol": settings.atol}
        try:
            s = solve_ivp(checked, (t, t + h), z, method, events=too_large, first_step=first, **tolerances)
            why = "" if s.success else str(s.message).splitlines()[0]
        except (ValueError, ArithmeticError) as e:  # infinities in the solver's linear algebra
            why = str(e).splitlines()[0]
        if why:
            raise SimulationError(f"integrator '{method}' stopped between t = {t:.6g} s and {t + h:.6g} s: {why}")
        layout.check(float(s.t[-1]), s.y[:, -1], 0.999 * settings.limit)
        return s.y[:, -1]

    return solve


def runge_kutta_4(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Advance by the classical Runge-Kutta method of fourth order."""
    a = np.array(f(t, z, u))
    b = np.array(f(t + h / 2, z + h / 2 * a, u))
    c = np.array(f(t + h / 2, z + h / 2 * b, u))
    return z + h / 6 * (a + 2 * (b + c) + f(t + h, z + h * c, u))


# -------- A slow and a fast part

GAMMA = 1.0 - np.sqrt(0.5)  # makes the Rosenbrock method L-stable


def multirate(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Advance fast states by `substeps` Runge-Kutta 4 steps, slow ones by a Heun step."""
    rate, fast_rates = _split(f, t, z, u, layout, settings)
    y, n = z[layout.fast], settings.substeps
    for k in range(n):
        y = runge_kutta_4(fast_rates, t + k * h / n, y, None, h / n, layout, settings)
    return _heun(f, t, z, u, h, layout, rate, y)


def mixed_mode(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Advance fast states by an L-stable Rosenbrock step (ROS2), slow ones by a Heun step.

    An inexact Jacobian keeps the order.
    """
    rate, fast_rates = _split(f, t, z, u, layout, settings)
    y = z[layout.fast]
    r0 = rate[layout.fast]
    J = np.empty((len(y), len(y)))
    for k in range(len(y)):
        e = 1e-7 * max(1.0, abs(y[k]))
        moved = y.copy()
        moved[k] += e
        J[:, k] = (fast_rates(t, moved, None) - r0) / e
    if not np.isfinite(J).all():
        return np.full_like(z, np.nan)
    # ROS2 (Verwer et al. 1999): (I - gamma h J) k1 = f + gamma h f_t; two stages share the matrix.
    W = np.linalg.inv(np.eye(len(y)) - GAMMA * h * J)
    moving = GAMMA * (fast_rates(t + h, y, None) - r0)  # time derivative of f, from the extrapolated slow states
    a = W @ (r0 + moving)
    b = W @ (fast_rates(t + h, y + h * a, None) - 2 * a - moving)
    return _heun(f, t, z, u, h, layout, rate, y + h * (1.5 * a + 0.5 * b))


def _split(
    f: Rates, t: float, z: np.ndarray, u: Any, layout: StateLayout, settings: IntegratorSettings
) -> tuple[np.ndarray, Rates]:
    """Return the rates at z, and those of the fast states while the slow ones extrapolate or rest."""
    rate = np.array(f(t, z, u))
    drift = rate.copy() if settings.extrapolate else np.zeros_like(rate)

    def fast_rates(time: float, y: np.ndarray, _: None) -> np.ndarray:
        at = z + (time - t) * drift
        at[layout.fast] = y
        return np.array(f(time, at, u))[layout.fast]

    return rate, fast_rates


def _heun(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, rate: np.ndarray, y: np.ndarray
) -> np.ndarray:
    end = z + h * rate
    end[layout.fast] = y
    out = z + h / 2 * (rate + f(t + h, end, u))
    out[layout.fast] = y
    return out


INTEGRATORS: dict[str, tuple[Step, bool]] = {  # name -> (function, adaptive)
    "euler": (explicit_euler_step, False),
    "semi_implicit": (semi_implicit_euler, False),
    "rk4": (runge_kutta_4, False),
    "multirate": (multirate, False),
    "mixed": (mixed_mode, False),
    "rk45": (_adaptive("RK45"), True),
    "lsoda": (_adaptive("LSODA"), True),
    "radau": (_adaptive("Radau"), True),
}
_NEEDS = {"semi_implicit": "velocities", "multirate": "fast", "mixed": "fast"}
