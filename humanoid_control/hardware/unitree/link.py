"""Transport `unitree`: low-level control of a Unitree humanoid over DDS.

Without frames the robot continues its last command, so it needs a guardian. Its own controller must be released first
(debug mode).
"""

from __future__ import annotations

import contextlib
import enum
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorState,
    BatteryReading,
    BusSpec,
    BusTraffic,
    Flag,
    GuardSpec,
    HardwareError,
    Mode,
    Silence,
    Transport,
)
from humanoid_control.hardware.unitree.dds import COMMAND, OFF_FRAMES, OFF_PAUSE, STATE, Ends
from humanoid_control.hardware.unitree.frames import (
    BUTTONS,
    CORRUPT,
    FRESH,
    CommandFrame,
    StateReader,
    fault_words,
)
from humanoid_control.hardware.unitree.layout import family_of
from humanoid_control.hardware.unitree.models import ENABLED, MODELS, UnitreeModel, misplaced, model_of
from humanoid_control.kinematics.joint_state import ImuReading

OPEN_TIME = 3.0  # [s] for the first state and a command reader
GAIN_RAMP = 0.5  # [s] gain ramp outside IMPEDANCE
SLOWEST = 0.01  # [s] longest period of states
UNCONFIRMED = 10  # frames after which a robot that reports no modes counts as switched
ANKLES = {"PR": 0, "AB": 1}


class LinkPhase(enum.Enum):
    """Content of sent frames."""

    OFF = "none: nothing is sent"
    ON = "commands"
    STOPPED = "damping, whatever is commanded"
    LEAVING = "motors off"


class UnitreeTransport(Transport):
    """Unitree robot; actuator ids are motor places in frames.

    Attributes:
        corrupt: states with wrong CRC.
        frozen: states with unchanged tick.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {
        "interface": "",
        "domain": 0,
        "model": "",
        "family": "",
        "motors": 0,
        "gains": 1.0,
        "damping": 3.0,
        "mode_pr": "PR",
        "remote_stop": "L2+B",
        "simulated": False,
    }
    early = True

    def __init__(self, bus: BusSpec) -> None:
        """Check the bus row.

        Args:
            bus: options `gains`: factor on the model's; `damping`: of a quick stop, at least a motor's gain [N m
                s/rad]; `mode_pr`: ankles by pitch and roll (PR) or motors (AB); `remote_stop`: buttons; `simulated`:
                the vendor's simulator, without CRC, tick and motor modes.

        Raises:
            ConfigError: if the row does not fit a robot.
        """
        given = {**self.bus_keys, **bus.options}
        self._where, self._name = bus.where or bus.name, bus.name
        self.names = tuple(a.name for a in bus.actuators)
        self.silence, self.modes = Silence.LAST_COMMAND, frozenset(Mode)
        self._simulated = bool(given["simulated"])
        try:
            self._model = model_of(given["model"]) if given["model"] else None
            self._family = family_of(given["family"] or (self._model.family if self._model else "hg"))
        except HumanoidError as e:
            raise ConfigError(f"{self._where}: {e}") from None
        self._check(bus, given)
        self._stop = [BUTTONS[name] for name in given["remote_stop"].split("+") if name]
        self._stop_name = given["remote_stop"]
        places, rows = [a.id for a in bus.actuators], [self._motor(place) for place in range(self._family.motors)]
        factor = float(given["gains"])
        gains = np.array([[factor * rows[p][0], factor * rows[p][1]] for p in places]).reshape(-1, 2)
        damping = np.maximum([max(a.kd, given["damping"]) for a in bus.actuators], gains[:, 1])
        ankles = ANKLES[given["mode_pr"]] if self._family.humanoid else 0
        self._frame = CommandFrame(self._family, [(p, rows[p][2]) for p in places], gains, ankles)
        self._frame.damping.kd[:] = damping
        self._reader = StateReader(self._family, places, self._simulated)
        self._places = places
        self._token = f"humanoid_control {secrets.token_hex(8)}"
        self._ends = Ends(given["interface"], given["domain"], self._family, self._token)
        self._interface, self._domain = given["interface"], given["domain"]
        self.phase, self._since, self._count = LinkPhase.OFF, 0.0, 0
        self.sent = self.samples = self.corrupt = self.frozen = 0
        self._machine, self._stamp, self._opened = 0, -np.inf, False
        self._period, self._interval = bus.period, bus.period  # of the driver's cycle, of the robot's states
        self._confirmed = self._dark = False

    def _check(self, bus: BusSpec, given: Mapping[str, Any]) -> None:
        model, where = self._model, self._where
        if model is not None and self._family.name != model.family:
            raise ConfigError(f"{where}: {model.name} uses the {model.family} messages, not {self._family.name}")
        motors = given["motors"] or (len(model.motors) if model else self._family.motors)
        if model is not None and motors != len(model.motors):
            raise ConfigError(f"{where}: {model.name} has {len(model.motors)} motors, not {motors}")
        last = max(m.id for m in model.motors) + 1 if model else motors
        for a in bus.actuators:
            if not 0 <= a.id < min(last, self._family.motors):
                raise ConfigError(f"{a.where or where}: id of {a.name} must be in 0 .. {last - 1}, got {a.id}")
        for a in bus.actuators:
            if model is None and a.mode in (Mode.POSITION, Mode.VELOCITY):
                raise ConfigError(f"{a.where or where}: {a.name} has no gains: give kp and kd, or the bus a model")
        if model is not None and (text := misplaced(model, [(a.name, a.id) for a in bus.actuators])):
            raise ConfigError(f"{where}: {text}")
        if given["mode_pr"] not in ANKLES:
            raise ConfigError(f"{where}: mode_pr must be PR or AB, got {given['mode_pr']}")
        for name in filter(None, given["remote_stop"].split("+")):
            if name not in BUTTONS:
                raise ConfigError(
                    f"{where}: unknown button {name} of the remote control; available: {', '.join(BUTTONS)}"
                )

    def _motor(self, place: int) -> tuple[float, float, int]:
        motor = self._model.at(place) if self._model else None
        return (motor.kp, motor.kd, motor.on) if motor else (0.0, 0.0, ENABLED)

    # -- the interface ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self._ends.open()
        self._opened = True
        self._reader.reset()
        self.phase, self._stamp = LinkPhase.OFF, -np.inf
        self._frame.switch_off()  # loads compiled kernels
        scratch = ActuatorState(len(self.names))
        end = time.monotonic() + OPEN_TIME
        while not (np.isfinite(self._stamp) and self._ends.robots()):
            if time.monotonic() > end:
                text = self._missing()
                self.close()
                raise HardwareError(f"bus {self._name}: {text}")
            self.read(scratch, time.monotonic() + 0.05)
        self._machine = self._reader.machine
        self._frame.echo(self._machine)
        known = {m.name: m.machines for m in MODELS.values() if self._machine in m.machines}
        if self._model is not None and self._model.machines and known and self._model.name not in known:
            self.close()
            raise HardwareError(
                f"bus {self._name}: the robot is a {' or '.join(known)} (mode_machine {self._machine}), the file "
                f"states {self._model.name}"
            )

    def _missing(self) -> str:
        """Return why no robot is reachable."""
        place = f"{self._interface or 'any interface'}, domain {self._domain}"
        if np.isfinite(self._stamp):
            return f"{COMMAND} has no subscriber on {place}"
        if self.corrupt + self.frozen:
            return f"{STATE} is received on {place}, but with a wrong CRC or of another kind than {self._family.name}"
        return f"no {STATE} on {place} in {OPEN_TIME:g} s: is the robot on, and this computer in its network?"

    def read(self, state: ActuatorState, until: float) -> None:
        frames = self._ends.take()
        if not frames:
            self._ends.wait(until - time.monotonic())
            frames = self._ends.take()
        now, fresh = time.monotonic(), 0
        for frame in frames:
            self.samples += 1
            verdict = self._reader.read(frame, state, now)
            if verdict == FRESH:
                fresh += 1
            elif verdict == CORRUPT:
                self.corrupt += 1
            else:
                self.frozen += 1
        if not fresh:
            # clocks differ: some cycles get no state, the next one two
            if now - self._stamp > 2 * max(self._period, self._interval):
                state.flags &= ~np.uint8(Flag.FRESH)
            return
        if np.isfinite(self._stamp):
            self._interval += 0.05 * (min((now - self._stamp) / fresh, SLOWEST) - self._interval)
        self._stamp = now
        if self._simulated:
            state.flags |= np.uint8(Flag.ENABLED) if self.phase in (LinkPhase.ON, LinkPhase.STOPPED) else np.uint8(0)
        on = state.have(Flag.ENABLED)
        self._confirmed, self._dark = bool(on.all()), not on.any()

    def write(self, command: ActuatorCommand) -> None:
        if self.phase is LinkPhase.ON:
            share = min(1.0, (time.monotonic() - self._since) / GAIN_RAMP)
            self._send(self._frame.pack(command, share))
        elif self.phase is LinkPhase.STOPPED:
            self._send(self._frame.damp())

    def _send(self, frame: bytes) -> None:
        self._ends.write(frame)
        self.sent += 1
        self._count += 1

    def power(self, on: bool) -> bool:
        if not self._opened:
            return False
        if on:
            if self.trouble():
                return False
            if self.phase is not LinkPhase.ON:
                self.phase, self._since, self._count = LinkPhase.ON, time.monotonic(), 0
            return self._confirmed and self._count >= (UNCONFIRMED if self._simulated else 1)
        if self.phase is LinkPhase.OFF:
            return True
        if self.phase is not LinkPhase.LEAVING:
            self.phase, self._count = LinkPhase.LEAVING, 0
        self._send(self._frame.switch_off())
        if self._count >= OFF_FRAMES and (self._dark or (self._simulated and self._count >= UNCONFIRMED)):
            self.phase = LinkPhase.OFF
        return self.phase is LinkPhase.OFF

    def quick_stop(self) -> None:
        if not self._opened or self.phase not in (LinkPhase.ON, LinkPhase.STOPPED):
            return
        self.phase = LinkPhase.STOPPED
        with contextlib.suppress(HardwareError):  # `write` reports it in the next cycle
            self._send(self._frame.damp())

    def clear_faults(self) -> None:
        """Do nothing: motor faults vanish with their causes."""

    def close(self) -> None:
        if self._opened and self.phase is not LinkPhase.OFF:
            with contextlib.suppress(HardwareError):  # no receiver left
                for _ in range(OFF_FRAMES):
                    self._send(self._frame.switch_off())
                    time.sleep(OFF_PAUSE)
        self.phase, self._opened = LinkPhase.OFF, False
        self._ends.close()

    # -- optional parts ---------------------------------------------------------------------------------------------

    def trouble(self) -> str:
        if not self._opened:
            return ""
        if n := self._ends.others():
            writers = "1 writer" if n == 1 else f"{n} writers"
            return f"another program commands this robot: {writers} on {COMMAND}; press L2+R2 for debug mode"
        buttons = self._reader.buttons
        if self._stop and all(buttons & bit for bit in self._stop):
            return f"{self._stop_name} on the remote control"
        if self._reader.machine != self._machine and np.isfinite(self._stamp):
            return f"mode_machine changed from {self._machine} to {self._reader.machine}: another robot?"
        return ""

    def fault_text(self, code: int) -> str:
        return fault_words(code)

    def figures(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "sent": self.sent,
            "late": self._ends.late,
            "samples": self.samples,
            "corrupt": self.corrupt,
        }
        out |= {"frozen": self.frozen, "without_data": self._ends.invalid, "tick": self._reader.tick}
        out |= {"mode_machine": self._reader.machine, "phase": self.phase.name.lower()}
        if self._opened:
            out |= {"other_writers": self._ends.others(), "readers": self._ends.robots()}
        return out

    def traffic(self) -> BusTraffic:
        return BusTraffic(self.sent, self.samples, self.corrupt + self.frozen + self._ends.invalid)

    def battery(self, state: ActuatorState) -> BatteryReading | None:
        return self._reader.battery() or super().battery(state)

    def imu(self) -> tuple[float, ImuReading] | None:
        reading = self._reader.imu()
        return (self._stamp, ImuReading(*reading)) if reading is not None else None

    def guard(self) -> GuardSpec | None:
        off = self._frame.switch_off().hex()
        arguments = (self._interface, self._domain, self._family.name, self._token, off)
        return GuardSpec("humanoid_control.hardware.unitree.dds:DampingGuard", arguments)

    def damping_frame(self, state: ActuatorState) -> bytes:
        return self._frame.damp()

    def frames(self, command: ActuatorCommand) -> list[str]:
        self._frame.pack(command)
        rows = [{"id": place, **row} for place, row in zip(self._places, self._frame.rows(), strict=True)]
        return [json.dumps({"topic": COMMAND, "mode_machine": self._machine, "motor_cmd": rows})]

    @classmethod
    def scan(cls, options: Mapping[str, Any]) -> list[str]:
        given = {**cls.bus_keys, **options}
        lines = []
        for name in ("hg", "go"):
            family = family_of(name)
            ends, reader = Ends(given["interface"], given["domain"], family, ""), StateReader(family, (), lenient=True)
            state, end, count = ActuatorState(0), time.monotonic() + OPEN_TIME / 2, 0
            ends.open()
            try:
                while time.monotonic() < end:
                    ends.wait(0.1)
                    count += sum(reader.read(frame, state, 0.0) == FRESH for frame in ends.take())
                if count:
                    lines.append(f"{STATE} ({name}): {_seen(count, reader)}, {ends.others()} writers on {COMMAND}")
            finally:
                ends.close()
        return lines


def _seen(count: int, reader: StateReader) -> str:
    """Describe the states received in a scan."""
    models: list[UnitreeModel] = [m for m in MODELS.values() if reader.machine and reader.machine in m.machines]
    name = f" ({' or '.join(m.name for m in models)})" if models else ""
    return f"{count / (OPEN_TIME / 2):.0f} a second, mode_machine {reader.machine}{name}, tick {reader.tick}"
