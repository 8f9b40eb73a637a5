"""Driver of muscle units: winch commands in, wires and tensions out.

Power states are those of `hardware.power`. A cycle never raises, and only `enable` gives power:

    MONITOR   measured, no power                       HOLD, STOPPING   wires are held
    ENABLING  the drives' own sequence; wires held     RUN              commands are followed inside the limits

Latched faults: silent, failed, unpowered or hot drive, lost bus, late cycle. A wire above 1.3 times its limit for 20 ms
lets all wires of its bus out to least tension until the limit holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import UnknownNameError
from humanoid_control.hardware.buses import Buses, Record
from humanoid_control.hardware.muscle_units.file import TendonHardware
from humanoid_control.hardware.muscle_units.units import KINDS, MuscleUnits
from humanoid_control.hardware.power import LOST_SAMPLES, Event, PowerMachine, PowerState
from humanoid_control.hardware.power_requests import PowerRequests
from humanoid_control.hardware.transport import ActuatorState, Flag, Mode
from humanoid_control.tendons.control.commands import HOLD, OFF, PAY_OUT, TENSION, WinchStates, no_states

ENABLE_TIME, QUICK_STOP_TIME, CLEAR_TIME, BRAKE_TIME = 5.0, 0.5, 2.0, 0.1  # [s]
SILENT = 10  # periods without a sample before a drive counts as lost
LATE_STOP, LATE_FAULT = 5, 0.05  # lateness of a cycle: [periods] stops, [s] is a fault
OVERLOAD, OVERLOAD_TIME = 1.3, 0.02  # share of the largest tension; [s]
SENSOR_SILENT = 0.05  # [s] without a sensor value before the tension is estimated from current
STILL = 2e-3  # [m/s] limit for a wire at rest
MOVING = (PowerState.BLEND, PowerState.RUN)


@dataclass
class _Units:
    """Units of one bus: rows in all arrays; `overloaded` [s]."""

    name: str
    units: MuscleUnits
    rows: slice
    state: ActuatorState
    overloaded: float = 0.0
    pays_out: bool = False


class TendonDriver(PowerRequests):
    """Driver of the M muscle units of a robot.

    Attributes:
        states: wires, winding speeds, tensions (M,); NaN before the first sample.
        stamp: monotonic sample times (M,) [s].
        estop: reason by active source of the emergency stop.
        stopped: after a stop request: commands are ignored until `enable`.
    """

    def __init__(
        self,
        hardware: TendonHardware,
        dry_run: bool = False,
        record: Record | None = None,
        late_tolerance: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up; no bus is opened.

        Args:
            late_tolerance: factor on permitted lateness.
            clock: monotonic [s].

        Raises:
            HumanoidError: as `Buses`, or for torque drives below 1 kHz.
        """
        self.hardware, self.clock, self.period = hardware, clock, 1.0 / hardware.rate
        self.names = hardware.actuators
        m = len(self.names)
        self.machine = PowerMachine(self._entered)
        self.buses = Buses(hardware, dry_run, record)
        self.states, self.fresh = no_states(m), np.zeros(m, dtype=bool)
        for row in self.states:
            row[:] = np.nan
        self.stamp, self.estop, self.stopped = np.full(m, -np.inf), dict[str, str](), False
        self._dry, self._tolerance = dry_run, late_tolerance
        self._units, first = list[_Units](), 0
        for bus, mode in zip(hardware.buses, hardware.modes, strict=True):
            rows = slice(first, first + len(bus.spec.actuators))
            first = rows.stop
            units = MuscleUnits(mode, hardware.rows[rows], hardware.units[rows], hardware.least[rows], self.period)
            self._units.append(_Units(bus.spec.name, units, rows, self.buses.state.part(rows)))
        self.most = np.concatenate([u.units.loop.record.most for u in self._units])
        self._sensors = np.array([row.sensor for row in hardware.rows])
        self._bus_of = {row.tendon: u.name for u in self._units for row in u.units.rows}
        self._tension, self._sensed_at = np.full(m, np.nan), np.full(m, -np.inf)
        self._last = self._commanded = self._clear_until = -np.inf
        self._received_at = np.full(m, -np.inf)  # time of each tendon's last command
        self._released_at = self._off_at = np.inf
        self._switching_off = False

    # -- power --------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open all buses without power.

        Raises:
            HardwareError: if a bus or device is unusable.
        """
        self.buses.open()
        self.machine.handle(Event.CONFIGURE, self.clock())

    def close(self) -> None:
        """Switch off and close all buses."""
        self.machine.handle(Event.FAIL, self.clock(), "driver closed")
        self.buses.close()
        self.machine.handle(Event.CLOSE, self.clock())

    def refusals(self) -> list[str]:
        """Return reasons against power; empty: the winches may get it."""
        out = [] if self.machine.state is PowerState.MONITOR else [f"state is {self.machine}"]
        out += self.estop.values()
        if text := self.buses.trouble():
            out.append(text)
        out += self._faults(self.clock(), powered=False)
        if (worst := float(self.buses.missed.max(initial=0.0))) > LOST_SAMPLES:
            name = self.names[int(self.buses.missed.argmax())]
            out.append(f"{100 * worst:.1f} % of the samples of {name} are lost")
        wire, ends = self.states.wire, self.hardware.rows
        for k, name in enumerate(self.names):
            if not np.isfinite(wire[k]):
                out.append(f"{name} not measured")
            elif not ends[k].shortest <= wire[k] <= ends[k].longest:
                where = f"{ends[k].shortest:.3f} .. {ends[k].longest:.3f} m"
                out.append(f"{name}: {wire[k]:.3f} m of wire is outside its travel {where}: check its zero")
            elif abs(self.states.speed[k]) > STILL:
                out.append(f"{name} moves at {abs(self.states.speed[k]):.3f} m/s")
        return out

    def clear_faults(self) -> str:
        """Start to reset faults; ends in MONITOR once their causes are gone."""
        if self.machine.state not in (PowerState.FAULT, PowerState.ESTOP):
            return f"nothing to clear: {self.machine}"
        if self.estop or self.buses.lost:
            return "; ".join([*self.estop.values(), *self.buses.lost.values()])
        self._clear_until = self.clock() + CLEAR_TIME
        self.buses.clear_faults()
        return ""

    # -- inputs -------------------------------------------------------------------------------------------------------

    @property
    def follows(self) -> bool:
        """True if commands are followed now."""
        return self.machine.state in (PowerState.HOLD, *MOVING) and not self.stopped

    def command(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
        now: float,
    ) -> None:
        """Add a command, see `WinchLoop.take`; discarded without power.

        Raises:
            HumanoidError: if a tendon or number is invalid (nothing changes), or drives lack the kind (tendons hold);
                all accept zero tension (winch stops).
        """
        for name in names:
            if name not in self._bus_of:
                raise UnknownNameError("tendon", name[:60], self.names)
        parts = []
        for u in self._units:
            mine = [i for i, n in enumerate(names) if self._bus_of[n] == u.name]
            if mine:
                whole = (position, velocity, effort)
                fields = [[row[i] for i in mine] if len(row) == len(names) else row for row in whole]
                parts.append((u, [names[i] for i in mine], fields))
        kinds = [u.units.loop.check(some, *fields)[0] for u, some, fields in parts]
        torn = not any(effort)  # zero tension: the winch of a torn tendon stops
        refused = ""
        for (u, some, fields), kind in zip(parts, kinds, strict=True):
            lacks = kind not in KINDS[u.units.mode]
            if lacks and not (torn and kind == TENSION):
                refused = refused or some[0]
            if not self.follows:
                continue
            if lacks:  # must not continue with the last speed
                which = [u.units.loop.names.index(name) for name in some]
                u.units.loop.record.kind[which] = OFF if torn and kind == TENSION else HOLD
            else:
                u.units.loop.take(some, *fields)
            self._received_at[[self.names.index(name) for name in some]] = now
            self._commanded = now
        for (u, some, _), kind in zip(parts, kinds, strict=True):
            if refused in some:
                u.units.check_kind(kind, refused)

    def sense(self, names: Sequence[str], tensions: Sequence[float], now: float) -> None:
        """Store tensions of external sensors.

        Args:
            names: unknown tendons are ignored.
            tensions: [N].
        """
        index = {n: k for k, n in enumerate(self.names)}
        for name, T in zip(names, tensions, strict=True):
            if name in index and np.isfinite(T) and T > -5.0:
                self._tension[index[name]], self._sensed_at[index[name]] = max(0.0, T), now

    # -- the cycle ----------------------------------------------------------------------------------------------------

    def cycle(self) -> None:
        """Run one cycle; an unexpected exception stops the drives."""
        now = self.clock()
        try:
            if self.machine.powered:
                self.buses.write(early=False)
            self.buses.read(now + 0.4 * self.period)
            self._measure(now)
            self._watch(now)
            self._proceed(now)
            if self.machine.powered:
                self._act(now)
                self.buses.write(early=True)
        except Exception as e:
            self.machine.handle(Event.FAIL, now, f"cycle failed: {type(e).__name__}: {e}")

    def _measure(self, now: float) -> None:
        recent = now - self._sensed_at <= SENSOR_SILENT * self._tolerance
        sensed = np.where(recent & self._sensors, self._tension, np.nan)
        for u in self._units:
            fresh = u.state.have(Flag.FRESH) & np.isfinite(u.state.q)
            seen = u.units.states(u.state, sensed[u.rows])
            for to, row in zip(self.states, seen, strict=True):
                to[u.rows][fresh] = np.nan_to_num(row[fresh])
            self.fresh[u.rows] = fresh
            self.stamp[u.rows][fresh] = u.state.stamp[fresh]

    def _faults(self, now: float, powered: bool) -> list[str]:
        state, since = self.buses.state, np.maximum(self.stamp, self.machine.since)
        limit, hottest = SILENT * self.period * self._tolerance, self.hardware.temperature
        silent, failed = now - since > limit, state.have(Flag.FAULT)
        lost = self.fresh & ~state.have(Flag.ENABLED) & (powered and not self._dry)
        hot = state.temperature > hottest
        out = []
        for k in np.flatnonzero(silent | failed | lost | hot):
            name = self.names[k]
            if silent[k]:
                out.append(f"{name} silent for {now - since[k]:.3f} s (limit {limit:.3g})")
            elif failed[k]:
                out.append(f"{name} drive: {self.buses.fault_text(int(k))}")
            elif lost[k]:
                out.append(f"{name} lost its power")
            else:
                out.append(f"{name} {state.temperature[k]:.0f} deg C (limit {hottest:.0f})")
        return out

    def _watch(self, now: float) -> None:
        late, self._last = now - self._last - self.period, now
        if self.buses.lost:
            self.machine.handle(Event.FAIL, now, "; ".join(self.buses.lost.values()))
            self.buses.reopen(now)
        if not self.machine.powered:
            return
        enabled = self.machine.state is not PowerState.ENABLING and not self._switching_off
        faults = self._faults(now, enabled)
        if text := self.buses.trouble():
            faults.append(text)
        if np.isfinite(late) and late > LATE_FAULT * self._tolerance:
            faults.append(f"cycle {1000 * late:.0f} ms late")
        if faults:
            self.machine.handle(Event.FAIL, now, "; ".join(faults[:3]))
        elif np.isfinite(late) and late > LATE_STOP * self.period * self._tolerance:
            self.machine.handle(Event.STOP, now, f"stopped: cycle {1000 * late:.0f} ms late")
        for u in self._units:
            T, most = self.states.tension[u.rows], self.most[u.rows]
            u.overloaded = u.overloaded + self.period if (OVERLOAD * most < T).any() else 0.0
            u.pays_out = u.overloaded >= OVERLOAD_TIME or (u.pays_out and bool((most < T).any()))

    @property
    def overloaded(self) -> list[str]:
        """Buses that let wires out."""
        return [u.name for u in self._units if u.pays_out]

    def _proceed(self, now: float) -> None:
        state, handle = self.machine.state, self.machine.handle
        if state is PowerState.ENABLING:
            self._enable(now)
        elif state is PowerState.HOLD and self.follows and now - self._commanded <= self.period * SILENT:
            handle(Event.COMMANDED, now)
            handle(Event.BLENDED, now)  # the drives' own loops ramp tensions and speeds: no blend
        elif state in MOVING and now - self._commanded > self.hardware.command_timeout:
            silence = self.hardware.command_timeout
            handle(Event.STOP, now, f"stopped: tendon_commands silent for {silence:.2f} s")
        elif state is PowerState.STOPPING and (np.abs(np.nan_to_num(self.states.speed)) < STILL).all():
            if not self._switching_off:
                handle(Event.RESTED, now, self.machine.reason)
            else:
                self._switch_off(now)
        elif state in (PowerState.FAULT, PowerState.ESTOP):
            self._stay_stopped(now)

    def _enable(self, now: float) -> None:
        if now - self.machine.since > ENABLE_TIME:
            on = self.buses.state.have(Flag.ENABLED)
            names = [n for n, e in zip(self.names, on, strict=True) if not e]
            self.machine.handle(Event.FAIL, now, f"not enabled in {ENABLE_TIME:g} s: {', '.join(names[:4])}")
        elif not self.buses.power(True):
            self._released_at = np.inf
        elif not np.isfinite(self._released_at):
            self._released_at = now + (BRAKE_TIME if self.buses.brakes(release=True) else 0.0)
        elif now >= self._released_at:
            self.machine.handle(Event.ENABLED, now, self.machine.reason)

    def _switch_off(self, now: float) -> None:
        if not np.isfinite(self._off_at):
            self._off_at = now + (BRAKE_TIME if self.buses.brakes(release=False) else 0.0)
        elif now >= self._off_at and self.buses.power(False):
            self.machine.handle(Event.UNPOWERED, now)

    def _stay_stopped(self, now: float) -> None:
        if now - self.machine.since <= QUICK_STOP_TIME:
            self.buses.quick_stop()
            return
        self.buses.brakes(release=False)
        clearing = now < self._clear_until
        if self.machine.state is PowerState.ESTOP or clearing:
            off = self.buses.power(False)
            faulty = bool(self._faults(now, powered=False)) or bool(self.buses.trouble()) or bool(self.estop)
            if clearing and off and not faulty:
                self.machine.handle(Event.CLEAR, now)

    def _entered(self, before: PowerState, after: PowerState) -> None:
        if after not in MOVING:
            self._received_at[:] = (
                self._commanded
            ) = -np.inf  # old commands must never move a wire after a stop or without power
        if after is PowerState.ENABLING:
            for u in self._units:
                u.units.loop.record.last[:] = -1  # hold wires at their present lengths
        if after in (PowerState.FAULT, PowerState.ESTOP):
            self.buses.quick_stop()
            self._clear_until = -np.inf
        if after is PowerState.STOPPING and before is PowerState.ENABLING:
            self._switching_off = True  # not all drives have power yet, so wires cannot be held
        if not self.machine.powered or after is PowerState.ENABLING:
            self._released_at = self._off_at = np.inf
            self._switching_off = False

    def _act(self, now: float) -> None:
        silent = now - self._received_at > self.hardware.command_timeout
        for u in self._units:
            r = u.units.loop.record
            if u.pays_out and u.units.mode is not Mode.POSITION:  # position drives give way by themselves
                r.kind[:], r.speed[:], r.tension[:] = PAY_OUT, 0.0, r.least
            elif self.machine.state not in MOVING:
                r.kind[:] = HOLD
            else:
                r.kind[silent[u.rows]] = HOLD
            given = u.units.act(WinchStates(*(np.nan_to_num(row[u.rows]) for row in self.states)))
            to = self.buses.command.part(u.rows)
            for name in ("q", "v", "tau", "kp", "kd"):
                getattr(to, name)[:] = getattr(given, name)
