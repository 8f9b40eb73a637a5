"""The simulation loop: state, sensors, controllers, input, integration until the next control cycle, and again.

After Schwienbacher 2013, figure 2.1. Controllers may be cascaded: the output of a slow one is what a fast one is told
to do, and the integration between two cycles of the slow one holds several cycles of the fast one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.state_space.integrators import IntegratorSettings, integrate
from humanoid_control.simulation.state_space.state_layout import Rates, StateLayout


@dataclass(frozen=True)
class ControlLevel:
    """One controller of a cascade.

    Attributes:
        period: time between its cycles [s].
        act: (t, sensor values, output of the level above) -> its output, held until its next cycle. The level above
            the first one is None; the output of the last one is the input u of the model.
    """

    period: float
    act: Callable[[float, Any, Any], Any]


def run_loop(
    f: Rates,
    z: np.ndarray,
    levels: Sequence[ControlLevel],
    duration: float = float("inf"),
    sense: Callable[[float, np.ndarray], Any] = lambda t, z: z.copy(),
    stop: Callable[[float, np.ndarray], bool] = lambda t, z: False,
    settings: IntegratorSettings | None = None,
    layout: StateLayout | None = None,
) -> Iterator[tuple[float, np.ndarray, Any]]:
    """Simulate under control, one cycle of the fastest controller at a time.

    Args:
        f: the model dz/dt = f(t, z, u). z: (n,) its state at t = 0.
        levels: outermost and slowest first; each period is a whole multiple of the next one.
        duration: [s]. stop: ends the run when true, asked at the start of each cycle.
        sense: sensor values from time and state, sampled once a cycle.

    Yields:
        Time [s], state (n,) and input at the start of each cycle, and once more at the end.

    Raises:
        ConfigError: no level, a period that is not positive or no multiple of the next one.
        SimulationError: the model diverged.
    """
    ratios = cycle_ratios(levels)
    outputs: list[Any] = [None] * len(levels)
    period, cycle, z = levels[-1].period, 0, np.array(z, dtype=float)
    last = duration / period - 1e-9
    while True:
        t = cycle * period
        ended = cycle > last or stop(t, z)
        if not ended:
            values = sense(t, z)
            for k, level in enumerate(levels):
                if cycle % ratios[k] == 0:
                    outputs[k] = level.act(t, values, outputs[k - 1] if k else None)
        yield t, z, outputs[-1]
        if ended:
            return
        z = integrate(f, z, period, outputs[-1], t, settings, layout)
        cycle += 1


def cycle_ratios(levels: Sequence[ControlLevel]) -> list[int]:
    """How many cycles of the fastest level one of each level takes."""
    if not levels:
        raise ConfigError("the control loop needs at least one level")
    for level in levels:
        if not (np.isfinite(level.period) and level.period > 0):
            raise ConfigError(f"the period of a control level must be a positive number, got {level.period:g}")
    for slow, fast in pairwise(levels):
        ratio = slow.period / fast.period
        if ratio < 1 - 1e-9 or abs(ratio - round(ratio)) > 1e-6 * ratio:
            raise ConfigError(
                f"a control level of {slow.period:g} s cannot hold one of {fast.period:g} s: not a whole multiple"
            )
    return [round(level.period / levels[-1].period) for level in levels]
