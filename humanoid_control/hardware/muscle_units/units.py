"""Muscle units: tendon winches as actuators of any transport.

With ratio r [m/rad] (its sign gives the winding direction), wire, winding speed and force at the wire are

    x = zero - r q,   w = r dq/dt,   F = tau / r

By actuator mode (`transport.Mode`):

    VELOCITY    velocity loop in the drive, admittance and guards here at bus rate: dq/dt = w* / r, feed-forward T r
    IMPEDANCE   as VELOCITY for MIT drives: kd = Kv r^2, tau = T r
    EFFORT      the whole `winch_loop` here, at 1 kHz
    POSITION    lengths only: q = (zero - x_ref) / r, which yields to overload

Without a sensor, tension is estimated from current minus friction: smaller errors are then ignored, and the admittance
is a tenth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, Mode
from humanoid_control.tendons.control.commands import (
    HOLD,
    HYBRID,
    KIND_NAMES,
    LENGTH,
    OFF,
    PAY_OUT,
    TENSION,
    WinchCommand,
    WinchStates,
)
from humanoid_control.tendons.control.winch_loop import (
    OVERLOAD,
    SHARE,
    TURNING,
    LoopGains,
    WinchLoop,
    winding_speeds,
)
from humanoid_control.tendons.unit import MuscleUnit

KINDS = {
    Mode.VELOCITY: (OFF, HYBRID, LENGTH, HOLD, PAY_OUT),
    Mode.IMPEDANCE: (OFF, HYBRID, LENGTH, HOLD, PAY_OUT),
    Mode.EFFORT: (OFF, HYBRID, TENSION, LENGTH, HOLD, PAY_OUT),
    Mode.POSITION: (OFF, LENGTH, HOLD),
}
"""Actuator mode -> kinds of commands. For OFF, only the transport can remove the power."""
WITHOUT_SENSOR = 0.1  # factor on the admittance
LEAD_TIME = 0.05  # [s] at full speed: largest lead of a position target
MARGIN = 0.02  # [m] travel beyond the lengths of the joint ranges


@dataclass(frozen=True)
class UnitRow:
    """Muscle unit of a hardware file.

    Attributes:
        ratio: wire per actuator angle, positive if it winds [m/rad].
        zero: wire that is out at actuator zero [m].
        tension: limit [N].
        speed: limit [m/s].
        sensor: False: estimate tension from current.

    Raises:
        ConfigError: if a value is invalid.
    """

    tendon: str
    ratio: float
    zero: float
    shortest: float = -np.inf
    longest: float = np.inf
    tension: float = np.inf
    speed: float = np.inf
    sensor: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and 1e-5 <= abs(self.ratio) <= 0.5):
            raise ConfigError(f"tendon '{self.tendon}': ratio is {self.ratio:g} m/rad, must be 1e-5 .. 0.5 either way")
        if not np.isfinite(self.zero) or not self.shortest < self.longest:
            raise ConfigError(f"tendon '{self.tendon}': needs a finite zero, and a shortest wire below the longest")
        if not (self.tension > 0 and self.speed > 0):
            raise ConfigError(f"tendon '{self.tendon}': limits of tension and speed must be above 0")


def travel_of(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return shortest and longest wire (M,) [m] of path lengths (N, M) [m]."""
    return lengths.min(axis=0) - MARGIN, lengths.max(axis=0) + MARGIN


class MuscleUnits:
    """Units of one bus, in actuator order.

    Attributes:
        loop: runs here only in EFFORT.
    """

    def __init__(
        self,
        mode: Mode,
        rows: Sequence[UnitRow],
        units: Sequence[MuscleUnit],
        least: np.ndarray,
        period: float,
        gains: LoopGains | None = None,
    ) -> None:
        """Set up.

        Args:
            least: T_min (M,) [N].
            period: cycle time of the bus [s].

        Raises:
            SizeError: if lengths differ.
            ConfigError: if the period is too long for EFFORT.
        """
        self.mode, self.rows, self.period = mode, tuple(rows), period
        names = [row.tendon for row in rows]
        most = np.array([min(row.tension, 1e4) for row in rows])
        self.loop = WinchLoop(names, units, least, most, gains)
        if mode is Mode.EFFORT:
            try:
                self.loop.check_period(period)
            except ConfigError as e:
                raise ConfigError(f"{e}; a drive's own velocity loop (mode velocity) needs no such rate") from None
        self.ratio = np.array([row.ratio for row in rows])
        self.zero = np.array([row.zero for row in rows])
        self._ends = np.array([(row.shortest, row.longest) for row in rows]).T
        self._speed = np.minimum([row.speed for row in rows], [SHARE * u.speed for u in units])
        self._sensor = np.array([row.sensor for row in rows])
        self.loop.record.admittance[~self._sensor] *= WITHOUT_SENSOR
        self.command = ActuatorCommand(len(names))
        self.command.mode[:] = mode

    # -- measurements -----------------------------------------------------------------------------------------------

    def states(self, state: ActuatorState, tensions: np.ndarray | None = None) -> WinchStates:
        """Return wires, winding speeds and tensions (M,) of a sample.

        Args:
            tensions: tensions measured by sensors (M,) [N]; NaN: no sensor.

        Raises:
            SizeError: if the number of tensions is wrong.
        """
        wire, speed = self.zero - self.ratio * state.q, self.ratio * state.v
        by_current = self._by_current(state, speed)
        if tensions is None:
            return WinchStates(wire, speed, by_current)
        if np.shape(tensions) != by_current.shape:
            raise SizeError(f"muscle units: expected {len(by_current)} tensions, got {np.shape(tensions)}")
        return WinchStates(wire, speed, np.where(self._sensor & np.isfinite(tensions), tensions, by_current))

    def _by_current(self, state: ActuatorState, speed: np.ndarray) -> np.ndarray:
        """Estimate tension; at rest, errors within friction are ignored."""
        u, r = self.loop.record.unit, self.loop.record
        force = np.nan_to_num(state.tau, nan=0.0) / self.ratio
        turning = np.abs(speed) > TURNING
        T = force - u.viscous * speed - u.friction * np.sign(speed) * turning
        away = T - r.tension
        within = np.clip(away, -u.friction, u.friction)
        return np.maximum(0.0, np.where(turning, T, T - within))

    # -- commands ----------------------------------------------------------------------------------------------

    def take(self, command: WinchCommand) -> None:
        """Store the commands of all tendons.

        Raises:
            ConfigError: if the drives lack a kind; nothing changes.
        """
        kinds = np.asarray(command.kind)
        for k in np.flatnonzero(~np.isin(kinds, KINDS[self.mode])):
            self.check_kind(int(kinds[k]), self.rows[k].tendon)
        self.loop.command(command)

    def check_kind(self, kind: int, tendon: str) -> None:
        """Check a kind of command.

        Raises:
            ConfigError: if the drives lack it.
        """
        if kind not in KINDS[self.mode]:
            name = KIND_NAMES[kind] if 0 <= kind < len(KIND_NAMES) else str(kind)
            have = ", ".join(KIND_NAMES[i] for i in KINDS[self.mode])
            raise ConfigError(
                f"tendon '{tendon}': drives in mode {self.mode.name.lower()} take no command of kind '{name}'; "
                f"available: {have}"
            )

    def act(self, states: WinchStates) -> ActuatorCommand:
        """Run the loops by one bus period; return the actuator command."""
        c, r = self.command, self.loop.record
        if self.mode is Mode.EFFORT:
            force = self.loop.run(states, self.period).copy()
            force = np.where(states.wire <= self._ends[0], np.minimum(force, states.tension), force)
            force = np.where(states.wire >= self._ends[1], np.maximum(force, states.tension), force)
            c.tau[:] = force * self.ratio
            return c
        wanted = self._within(states, winding_speeds(self.loop, states, self.period))
        if self.mode is Mode.POSITION:
            over = np.maximum(states.tension - OVERLOAD * r.most, 0.0)
            out = self.period * np.minimum(self.loop.gains.guard * over, self._speed)
            to = np.where(over > 0, np.maximum(r.reference, states.wire) + out, r.reference)
            lead = LEAD_TIME * self._speed  # a lead limit, as an immediate return after an overload would oscillate
            r.reference[:] = np.clip(np.clip(to, states.wire - lead, states.wire + lead), *self._ends)
            c.q[:] = (self.zero - np.where(r.kind == OFF, states.wire, r.reference)) / self.ratio
            return c
        powered = r.kind != OFF
        c.v[:] = np.where(powered, wanted / self.ratio, 0.0)
        c.tau[:] = np.where(powered, np.clip(states.tension, 0.0, r.most) * self.ratio, 0.0)
        if self.mode is Mode.IMPEDANCE:
            c.kd[:] = np.where(powered, self.loop.gains.speed * self.ratio**2, 0.0)
        return c

    def _within(self, states: WinchStates, wanted: np.ndarray) -> np.ndarray:
        """Clip speeds; at an end of its travel a wire only returns."""
        wanted = np.clip(wanted, -self._speed, self._speed)
        wanted = np.where(states.wire <= self._ends[0], np.minimum(wanted, 0.0), wanted)
        return np.where(states.wire >= self._ends[1], np.maximum(wanted, 0.0), wanted)
