"""Transport `simulator`: a simulation engine in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.loopback import mechanical_supply
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorState,
    BatteryReading,
    BusSpec,
    BusTraffic,
    Flag,
    HardwareError,
    Mode,
    Silence,
    Transport,
)
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.simulation import Engine, SimulationConfig

MOST = 0.05  # [s] longest simulated time to catch up after a pause
COOLING = 60.0  # [s] thermal time constant of motors
POWER_CYCLES = 3  # cycles that drives take to switch on


class SimulatorTransport(Transport):
    """Simulated robot in real time, without gears.

    Without power its brakes hold; with `limp` it falls. Motors heat with torque squared, by `heating` at full effort
    [K/s], from `ambient` [deg C].

    Attributes:
        temperature: motor temperature (n,) [deg C].
        clock: monotonic [s]; settable.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {
        "robot": str,
        "engine": "multibody",
        "base": "fixed",
        "drives": "ideal",
        "step": 0.001,
        "limp": False,
        "voltage": 48.0,
        "ambient": 25.0,
        "heating": 0.5,
    }

    def __init__(self, bus: BusSpec) -> None:
        given = {**self.bus_keys, **bus.options}
        self._limp = bool(given.pop("limp"))
        self._supply, self._ambient, self._heating = (float(given.pop(k)) for k in ("voltage", "ambient", "heating"))
        self._config = SimulationConfig(**given)
        self._bus = bus  # if this computer stops, its simulated robot stops too: Silence.STOPS
        self.names = tuple(a.name for a in bus.actuators)
        self.silence, self.modes = Silence.STOPS, frozenset((Mode.POSITION, Mode.VELOCITY, Mode.EFFORT))
        self.clock: Callable[[], float] = time.monotonic
        self.engine: Engine
        self._begin = 0.0
        self._on, self._switching = False, 0
        self.temperature = np.full(len(self.names), self._ambient)
        self._written = self._read = 0

    def open(self) -> None:
        try:
            self.engine = self._config.build()
            robot = self.engine.robot
            self._rows = np.array([robot.joint_index(name) for name in self.names], dtype=int)
            effort = robot.effort[self._rows]
            self._effort = np.where(effort > 0, effort, np.inf)
        except HumanoidError as e:
            raise HardwareError(f"bus {self._bus.name}: {e}") from None
        self.engine.step()  # loads compiled kernels
        self.engine.reset()
        self._on, self._switching = False, 0
        self._restart()
        self._release()

    def _restart(self) -> None:
        self._begin = self.clock() - self.engine.time

    def _release(self) -> None:
        """Hold the present position, or fall if `limp`."""
        n = self.engine.robot.n
        if self._limp:
            self.engine.command(efforts=np.zeros(n))
        else:
            self.engine.command(self.engine.joints.copy(), np.zeros(n))

    def read(self, state: ActuatorState, until: float) -> None:
        e = self.engine
        state.flags[:] = 0
        if e.diverged:
            return
        due = self.clock() - self._begin - e.time
        if due > MOST:
            self._begin += due - MOST
            due = MOST
        steps = max(0, int(due / self._config.step + 1e-6))
        e.step(steps)
        state.q[:], state.v[:], state.tau[:] = e.joints[self._rows], e.joint_velocity[self._rows], e.torque[self._rows]
        self._warm(state.tau, steps * self._config.step)
        state.temperature[:], state.voltage[:] = self.temperature, self._supply
        self._read += 1
        state.stamp[:] = self._begin + e.time
        state.flags[:] = Flag.FRESH | Flag.HOMED | (Flag.ENABLED if self._on else 0)

    def _warm(self, tau: np.ndarray, dt: float) -> None:
        share = tau / self._effort if self._on else np.zeros(len(tau))
        cooled = (self.temperature - self._ambient) / COOLING
        self.temperature += dt * (self._heating * np.minimum(share * share, 1.0) - cooled)

    def write(self, command: ActuatorCommand) -> None:
        self._written += 1
        if not self._on:
            return
        q, v, tau = np.full((3, self.engine.robot.n), np.nan)
        q[self._rows] = np.where(command.mode == Mode.POSITION, command.q, np.nan)
        v[self._rows] = np.where(command.mode == Mode.EFFORT, np.nan, command.v)
        tau[self._rows] = command.tau
        self.engine.command(q, v, tau)

    def power(self, on: bool) -> bool:
        self._switching = self._switching + 1 if on != self._on else 0
        if self._switching >= (POWER_CYCLES if on else 1):
            self._on, self._switching = on, 0
            self._release()
        return self._on == on

    def quick_stop(self) -> None:
        self.engine.command(self.engine.joints.copy(), np.zeros(self.engine.robot.n))
        self._on, self._switching = False, 0

    def clear_faults(self) -> None:
        if self.engine.diverged:
            self.engine.reset()
            self._restart()

    def close(self) -> None:
        self._on = False

    def trouble(self) -> str:
        return f"the simulation {self.engine.failure}" if self.engine.diverged else ""

    def traffic(self) -> BusTraffic:
        return BusTraffic(self._written, self._read)

    def battery(self, state: ActuatorState) -> BatteryReading | None:
        return mechanical_supply(self._supply, state.tau, state.v) if self._on else BatteryReading(self._supply, 0.0)

    def imu(self) -> tuple[float, ImuReading] | None:
        return self._begin + self.engine.time, self.engine.imu()
