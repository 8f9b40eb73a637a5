"""A simulated robot under control: what its sensors read goes to a cascade of controllers, what they say to its drives.

The loop of `control_loop`, for an engine instead of a state-space model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.engine import Engine
from humanoid_control.simulation.loops.control_loop import ControlLevel, cycle_ratios
from humanoid_control.simulation.sensors.sensor_model import Imperfection, Sensor


@dataclass(frozen=True)
class Reading:
    """What the sensors said last; a lost sample leaves the one before.

    Attributes:
        time: simulated, now [s].
        position [rad], velocity [rad/s], effort [N m]: (n,).
        orientation: quaternion x y z w of the root link. gyro (3,) [rad/s], accel (3,) [m/s^2]: in its axes.
        feet: name -> (6,) force and torque in the sole frame.
    """

    time: float
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    orientation: np.ndarray
    gyro: np.ndarray
    accel: np.ndarray
    feet: dict[str, np.ndarray]


@dataclass(frozen=True)
class Inputs:
    """What the lowest controller gives to the drives; see `Engine.command`."""

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
    """Simulate a robot under cascaded control (Schwienbacher 2014, figure 2.1) until an exit condition holds.

    In a cycle the highest level that is due goes first, so what it decides reaches the drives in the same cycle.

    Args:
        engine: in its initial state; time goes on from where it is.
        levels: outermost first; `act` is given the time, a `Reading` and the output of the level above, and the last
            one returns `Inputs`. Each period is a multiple of the next one, the last one of the engine's step.
        seconds: after which it ends anyway.
        until: further exit condition, looked at before each cycle of the lowest level.
        imperfection: of the sensors; default none. seed: of their random numbers.

    Returns:
        Why it ended: 'time', 'until' or 'diverged'.

    Raises:
        ConfigError: no levels, or periods that do not fit into each other.
    """
    ratios = cycle_ratios([*levels, ControlLevel(engine.settings.step, lambda t, s, above: None)])
    if not levels:
        raise ConfigError("the control loop needs at least one level")
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
    """All sensors of a robot; remembers the last samples."""

    def __init__(self, engine: Engine, imperfection: Imperfection, seed: int) -> None:
        n, self._engine = engine.robot.n, engine
        self._joints = Sensor("joint_states", (n, n, n), imperfection, seed)
        self._imu = Sensor("imu", (4, 3, 3), imperfection, seed)
        self._feet = {name: Sensor("wrench", (3, 3), imperfection, seed, name) for name in engine.foot_wrenches()}
        self._last: dict[str, tuple[np.ndarray, ...]] = {}

    def read(self) -> Reading:
        w = self._engine
        imu, feet = w.imu(), w.foot_wrenches()
        joints = self._held("joints", self._joints, w.joints, w.joint_velocity, w.torque)
        inertial = self._held("imu", self._imu, imu.orientation, imu.angular_velocity, imu.linear_acceleration)
        wrenches = {k: np.concatenate(self._held(k, s, feet[k][:3], feet[k][3:])) for k, s in self._feet.items()}
        return Reading(w.time, joints[0], joints[1], joints[2], inertial[0], inertial[1], inertial[2], wrenches)

    def _held(self, name: str, sensor: Sensor, *truth: np.ndarray) -> tuple[np.ndarray, ...]:
        """What is read, or the last sample; before the first one the true values at the start."""
        read = sensor.read(self._engine.time, *truth)
        if read is not None or name not in self._last:
            self._last[name] = tuple(np.array(v) for v in (truth if read is None else read))
        return self._last[name]
