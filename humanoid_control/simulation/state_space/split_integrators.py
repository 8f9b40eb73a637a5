"""Integration of models with a slow and a fast part: the fast states in smaller steps, or implicitly.

Rotors behind stiff gears, motor currents and contact layers are fast; stepping all at their rate would be wasteful.
The slow states must be slow by themselves: a step must be short enough for them while the fast ones stand still.
Both methods are of second order (of first without `settings.extrapolate`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.simulation.state_space.state_layout import Rates, StateLayout

if TYPE_CHECKING:
    from humanoid_control.simulation.state_space.integrators import IntegratorSettings

GAMMA = 1.0 - np.sqrt(0.5)  # makes the Rosenbrock method L-stable


def runge_kutta_4(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """The classical Runge-Kutta method of fourth order."""
    a = np.array(f(t, z, u))
    b = np.array(f(t + h / 2, z + h / 2 * a, u))
    c = np.array(f(t + h / 2, z + h / 2 * b, u))
    return z + h / 6 * (a + 2 * (b + c) + f(t + h, z + h * c, u))


def multirate(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Fast states in `substeps` steps of Runge-Kutta 4, slow ones in one of Heun that sees where the fast ones end."""
    rate, fast_rates = _split(f, t, z, u, layout, settings)
    y, n = z[layout.fast], settings.substeps
    for k in range(n):
        y = runge_kutta_4(fast_rates, t + k * h / n, y, None, h / n, layout, settings)
    return _heun(f, t, z, u, h, layout, rate, y)


def mixed_mode(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Fast states implicitly, slow ones in a step of Heun that sees the fast ones' end.

    The fast part takes one step of a Rosenbrock method of second order (ROS2), stable however stiff it is; its
    Jacobian comes from differences and may be inexact without loss of order.
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
    W = np.linalg.inv(np.eye(len(y)) - GAMMA * h * J)
    moving = GAMMA * (fast_rates(t + h, y, None) - r0)  # where the slow states go meanwhile
    a = W @ (r0 + moving)
    b = W @ (fast_rates(t + h, y + h * a, None) - 2 * a - moving)
    return _heun(f, t, z, u, h, layout, rate, y + h * (1.5 * a + 0.5 * b))


def _split(
    f: Rates, t: float, z: np.ndarray, u: Any, layout: StateLayout, settings: IntegratorSettings
) -> tuple[np.ndarray, Rates]:
    """The rates at z, and those of the fast states alone while the slow ones move on (or stand still)."""
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
    """The state at the end: fast states y, slow ones by the trapezoidal rule."""
    end = z + h * rate
    end[layout.fast] = y
    out = z + h / 2 * (rate + f(t + h, end, u))
    out[layout.fast] = y
    return out
