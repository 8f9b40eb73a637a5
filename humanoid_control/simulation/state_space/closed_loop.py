"""Models and engines under cascaded control (Schwienbacher 2014, figure 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.kinematics.joint_state import ImuReading, JointState, Measurement
from humanoid_control.simulation.engine import Engine
from humanoid_control.simulation.sensors.sensor_model import Imperfection, Sensor
from humanoid_control.simulation.state_space.integrators import IntegratorSettings, integrate
from humanoid_control.simulation.state_space.model import Rates, StateLayout


@dataclass(frozen=True)
class ControlLevel:
    """One controller of a cascade.

    Attributes:
        period: [s].
        act: (t, sensor values, output of the level above, or None) -> output, held until its next cycle.
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
    """Simulate a model f under control; the output of the last level is its input u.

    Args:
        z: (n,) at t = 0.
        levels: slowest first; each period is a multiple of the next one.
        sense: sensor values from time and state.
        stop: checked each cycle.

    Yields:
        Time [s], state (n,) and input at the start of each cycle, and at the end.

    Raises:
        ConfigError: if the levels do not fit.
        SimulationError: if the model diverges.
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
    """Return the cycles of the fastest level per cycle of each level.

    Raises:
        ConfigError: if periods do not fit.
    """
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


# -------- Around a simulated robot


@dataclass(frozen=True)
class DriveInputs:
    """Output of the lowest controller; see `Engine.command`."""

    positions: np.ndarray | None = None
    velocities: np.ndarray | None = None
    efforts: np.ndarray | None = None


def run_robot(
    engine: Engine,
    levels: Sequence[ControlLevel],
    seconds: float,
    until: Callable[[Engine], bool] | None = None,
    imperfection: Imperfection | None = None,
    seed: int = 0,
) -> str:
    """Simulate a robot under cascaded control; the engine's time continues.

    Levels act slowest first, so outputs reach the drives in the same cycle.

    Args:
        levels: slowest first; `act` receives a `Measurement`, the last level returns `DriveInputs`. Each period is a
            multiple of the next one, the last one of the engine's step.
        until: exit condition, checked each cycle.

    Returns:
        Reason of the end: 'time', 'until' or 'diverged'.

    Raises:
        ConfigError: if the levels do not fit.
    """
    cycle_ratios(levels)
    ratios = cycle_ratios([*levels, ControlLevel(engine.settings.step, lambda t, s, above: None)])
    stride = ratios[-2]  # integration steps in a cycle of the last level
    sensors = _Sensors(engine, imperfection or Imperfection.from_texts(), seed)
    outputs: list[Any] = [None] * len(levels)
    for cycle in range(max(1, round(seconds / (stride * engine.settings.step)))):
        if engine.diverged:
            return "diverged"
        if until is not None and until(engine):
            return "until"
        reading = sensors.read()
        for k, level in enumerate(levels):
            if cycle * stride % ratios[k] == 0:
                outputs[k] = level.act(engine.time, reading, outputs[k - 1] if k else None)
        inputs = outputs[-1]
        engine.command(inputs.positions, inputs.velocities, inputs.efforts)
        engine.step(stride)
    return "diverged" if engine.diverged else "until" if until is not None and until(engine) else "time"


class _Sensors:
    """All sensors of a robot; a lost sample repeats the previous one."""

    def __init__(self, engine: Engine, imperfection: Imperfection, seed: int) -> None:
        n, self._engine = engine.robot.n, engine
        self._joints = Sensor("joint_states", (n, n, n), imperfection, seed)
        self._imu = Sensor("imu", (4, 3, 3), imperfection, seed)
        self._feet = {name: Sensor("wrench", (3, 3), imperfection, seed, name) for name in engine.foot_wrenches()}
        self._last: dict[str, tuple[np.ndarray, ...]] = {}

    def read(self) -> Measurement:
        truth = self._engine.read()
        j, imu, feet = truth.joints, truth.imu, truth.foot_wrenches
        q, v, effort = self._held("joints", self._joints, j.q, j.v, j.effort)
        wrenches = {k: np.concatenate(self._held(k, s, feet[k][:3], feet[k][3:])) for k, s in self._feet.items()}
        joints = JointState(j.names, q, v, effort, j.stamp)
        return Measurement(joints, ImuReading(*self._held("imu", self._imu, *imu)), wrenches)

    def _held(self, name: str, sensor: Sensor, *truth: np.ndarray) -> tuple[np.ndarray, ...]:
        read = sensor.read(self._engine.time, *truth)
        if read is not None or name not in self._last:
            self._last[name] = tuple(np.array(v) for v in (truth if read is None else read))
        return self._last[name]
