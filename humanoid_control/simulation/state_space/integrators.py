"""Numerical integration of a state-space model dz/dt = f(t, z, u): fixed steps, adaptive steps, split models.

Chosen by name from `INTEGRATORS`. The input u is held over the time asked for, as a controller holds its output until
its next cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from humanoid_control.errors import ConfigError, SimulationError, UnknownNameError
from humanoid_control.simulation.state_space.split_integrators import mixed_mode, multirate, runge_kutta_4
from humanoid_control.simulation.state_space.state_layout import Rates, StateLayout


@dataclass(frozen=True)
class IntegratorSettings:
    """How to integrate.

    Attributes:
        method: a name from `INTEGRATORS`.
        step: longest step of the fixed-step methods, first step of the adaptive ones [s].
        rtol, atol: relative and absolute tolerance of the adaptive methods.
        substeps: of the fast states in each step of 'multirate'.
        extrapolate: in 'multirate' and 'mixed' the fast states see the slow ones moving on at their rate meanwhile,
            else standing still, which is of first order only and acts on a stiff gear like a false damper.
        limit: a state larger than this has diverged.
        most_calls: evaluations of f after which an adaptive method is given up.
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
    """The state after a while, z(t + duration) = z + integral of f (Schwienbacher 2013, eq. (2.4)).

    Fixed-step methods take equal steps no longer than `settings.step`; z is not changed.

    Args:
        f: the model; must not keep the arrays that it gets.
        z: (n,) state at t [s]. duration: [s]. u: input, passed on as it is.

    Raises:
        SimulationError: a state diverged, a solver gave up; names the time and the state.
        ConfigError: a negative duration, a layout of another length, no velocities or fast states where needed.
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


def explicit_euler(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """z + h f. First order; adds energy to what swings without damping."""
    return z + h * f(t, z, u)


def semi_implicit_euler(
    f: Rates, t: float, z: np.ndarray, u: Any, h: float, layout: StateLayout, settings: IntegratorSettings
) -> np.ndarray:
    """Velocities first, then the rest with the new velocities. First order; the energy of what swings stays bounded."""
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
                    f"integrator '{method}' gave up at t = {time:.6g} s after {calls - 1} evaluations"
                )
            rate = np.array(f(time, y, u))
            if np.abs(y).max() <= settings.limit:  # else a trial step that went too far, and will be shortened
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
        except (ValueError, ArithmeticError) as e:  # linear algebra that met infinities
            why = str(e).splitlines()[0]
        if why:
            raise SimulationError(f"integrator '{method}' gave up between t = {t:.6g} s and {t + h:.6g} s: {why}")
        layout.check(float(s.t[-1]), s.y[:, -1], 0.999 * settings.limit)
        return s.y[:, -1]

    return solve


INTEGRATORS: dict[str, tuple[Step, bool]] = {  # name -> (function, whether it finds its own steps)
    "euler": (explicit_euler, False),
    "semi_implicit": (semi_implicit_euler, False),
    "rk4": (runge_kutta_4, False),
    "multirate": (multirate, False),
    "mixed": (mixed_mode, False),
    "rk45": (_adaptive("RK45"), True),
    "lsoda": (_adaptive("LSODA"), True),
    "radau": (_adaptive("Radau"), True),
}
_NEEDS = {"semi_implicit": "velocities", "multirate": "fast", "mixed": "fast"}
