"""Transport `loopback`: simulated CiA 402 drives with injectable faults.

Each drive moves one joint with constant inertia and load.
"""

from __future__ import annotations

import enum
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ConfigError
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorState,
    BatteryReading,
    BusSpec,
    BusTraffic,
    Flag,
    GuardSpec,
    HardwareError,
    HomingProgress,
    HomingSpec,
    Mode,
    Silence,
    Transport,
)

STEP = 0.001  # [s] integration step
MOST = 0.1  # [s] longest time to catch up after a pause
RAMP = 20.0  # [1/s] decay rate of the velocity in a quick stop
DAMPING = 0.05  # [s] time constant of a damping drive
NEAR = 0.02  # [rad] distance at which a command counts as using the new zero
PRESSED = 0.05  # [s] of pressing against a hard stop before it counts as found
VISCOUS = 0.2  # [1/s] viscous friction of a joint
HOLDS, DAMPS = (list(Silence).index(s) for s in (Silence.HOLDS, Silence.DAMPS))
HOMED, ENABLED, FAULT = (np.uint8(f) for f in (Flag.HOMED, Flag.ENABLED, Flag.FAULT))
TEXTS = {
    0x2310: "continuous over current",
    0x3210: "DC link over-voltage",
    0x3220: "DC link under-voltage",
    0x4310: "excess temperature of the drive",
    0x5113: "24 V supply low",
    0x7305: "incremental encoder fault",
    0x8130: "heartbeat of the controller is missing",
    0x8611: "following error",
}


class DriveState(enum.IntEnum):
    """CiA 402 states of a drive, without transient ones."""

    SWITCH_ON_DISABLED = 0
    READY_TO_SWITCH_ON = 1
    SWITCHED_ON = 2
    OPERATION_ENABLED = 3
    QUICK_STOP_ACTIVE = 4
    FAULT = 5


OPERATION_ENABLED, QUICK_STOP_ACTIVE, DRIVE_FAULT = 3, 4, 5  # for kernels


class LoopbackTransport(Transport):
    """Simulated drives in this process, on any clock.

    True state (n,): q [rad], v [rad/s], temperature [deg C].

    Attributes:
        clock: monotonic time [s]; settable.
        load: external torque (n,) [N m].
        stuck: joint cannot move (n,).
        mute: drive sends no samples (n,).
        frozen: samples repeat old values (n,).
        encoder: error (n,) [rad].
        cut: nothing passes in either direction.
        gone: the bus is lost.
        zero: added by the drive to its angle (n,) [rad].
        homed: zero is known (n,).
        switch: position of the limit switch (n,) [rad]; infinite: none.
        commands: commands that reached the drives.
    """

    bus_keys: ClassVar[Mapping[str, Any]] = {
        "delay": 0.0,
        "loss": 0.0,
        "seed": 0,
        "silence": "STOPS",
        "watchdog": 0.1,
        "ambient": 25.0,
        "voltage": 48.0,
        "listener": "",
    }
    actuator_keys: ClassVar[Mapping[str, Any]] = {
        "bandwidth": 15.0,
        "inertia": 0.1,
        "load": 0.0,
        "start": 0.0,
        "encoder_offset": 0.0,
        "heating": 0.0,
        "cooling": 60.0,
        "brake": False,
        "serial": "",
        "absolute": True,
        "lower_stop": -np.inf,
        "upper_stop": np.inf,
        "switch": np.inf,
    }
    homes = True

    def __init__(self, bus: BusSpec) -> None:
        """Create the drives of a bus.

        Raises:
            ConfigError: if `silence` is unknown.
        """
        given = {**self.bus_keys, **bus.options}
        if given["silence"] not in Silence.__members__:
            raise ConfigError(f"{bus.where or bus.name}: silence must be one of {', '.join(Silence.__members__)}")
        self.names = tuple(a.name for a in bus.actuators)
        self.silence = Silence[given["silence"]]
        self.modes = frozenset(Mode)
        self.clock: Callable[[], float] = time.monotonic
        self.cut = self.gone = self.opened = False
        self.busy, self.written, self.commands = "", 0, 0
        self._bus, self._delay, self._loss = bus, float(given["delay"]), float(given["loss"])
        self._watchdog = float(given["watchdog"])
        self._supply, self._listener = float(given["voltage"]), str(given["listener"])
        self._random = np.random.default_rng(int(given["seed"]))
        rows = [{**self.actuator_keys, **a.options} for a in bus.actuators]

        def column(key: str) -> np.ndarray:
            return np.array([float(r[key]) for r in rows])

        n = len(rows)
        self.load, self.encoder = column("load"), column("encoder_offset")
        effort, ambient = np.array([a.effort for a in bus.actuators]), np.full(n, float(given["ambient"]))
        self._model = LoopbackModel(
            2 * np.pi * column("bandwidth"), column("inertia"), effort, column("heating"), column("cooling"), ambient,
            column("lower_stop"), column("upper_stop"),
        )  # fmt: skip
        self._serials = tuple(str(r["serial"]) for r in rows)
        self._has_brake = np.array([bool(r["brake"]) for r in rows], dtype=bool)
        self.braked = self._has_brake.copy()
        self.zero = np.zeros(n)
        self.homed = np.array([bool(r["absolute"]) for r in rows], dtype=bool)
        self.switch = column("switch")
        self._homings: dict[int, LoopbackHoming] = {}
        self.q: np.ndarray = column("start")
        self.v, self.tau, self.temperature = np.zeros(n), np.zeros(n), ambient.copy()
        self.drive = np.full(n, DriveState.SWITCH_ON_DISABLED, dtype=int)
        self._code, self._cause = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        self.stuck, self.mute, self.frozen = np.zeros((3, n), dtype=bool)
        self.dropped = self.arrived = 0
        self._active = ActuatorCommand(n)
        self._active.q[:] = self.q
        self._waiting: deque[tuple[float, ActuatorCommand]] = deque()
        self._samples: deque[tuple[float, ActuatorState]] = deque(maxlen=1000)
        self._newest: ActuatorState | None = None
        self._time = self._received_at = 0.0

    # -- the interface ----------------------------------------------------------------------------------------------

    def open(self) -> None:
        if self.gone:
            raise HardwareError(f"bus {self._bus.name}: gone")
        self._time = self._received_at = self.clock() - STEP
        self.opened = True
        self.advance()  # loads compiled kernels before the first cycle

    def read(self, state: ActuatorState, until: float) -> None:
        if self.gone:
            raise HardwareError(f"bus {self._bus.name}: gone")
        self.advance()
        state.flags &= ~np.uint8(Flag.FRESH)
        newest = None
        while self._samples and self._samples[0][0] <= self.clock() - self._delay:
            newest = self._samples.popleft()[1]
        if newest is None or self.cut:
            return
        came = ~self.mute & (self._random.random(len(self.names)) >= self._loss)
        self.dropped += len(came) - int(came.sum())
        self.arrived += int(came.sum())
        for name in ActuatorState.FIELDS:
            getattr(state, name)[came] = getattr(newest, name)[came]
        state.flags[came] |= np.uint8(Flag.FRESH)

    def write(self, command: ActuatorCommand) -> None:
        if self.gone:
            raise HardwareError(f"bus {self._bus.name}: gone")
        self.written += 1
        if self.cut or self._random.random() < self._loss:
            self.dropped += 1
            return
        self._waiting.append((self.clock() + self._delay, _copy(command)))

    def power(self, on: bool) -> bool:
        if self.cut or self.gone:
            return False
        self.advance()
        d, s = self.drive, DriveState
        if on:
            rises = (d < s.OPERATION_ENABLED).astype(int)
            entered = (d + rises == s.OPERATION_ENABLED) & (rises > 0)
            self._active.q[entered], self._active.v[entered] = (self.q + self.zero)[entered], 0.0
            self._active.mode[entered] = Mode.POSITION
            self._received_at = self._time
            self.drive = d + rises
            return bool((self.drive == s.OPERATION_ENABLED).all())
        falls = (d > s.SWITCH_ON_DISABLED) & (d <= s.OPERATION_ENABLED)
        self.drive = np.where(d == s.QUICK_STOP_ACTIVE, s.SWITCH_ON_DISABLED, d - falls)
        return bool(((self.drive == s.SWITCH_ON_DISABLED) | (self.drive == s.FAULT)).all())

    def quick_stop(self) -> None:
        if not self.cut:
            self.drive[self.drive == DriveState.OPERATION_ENABLED] = DriveState.QUICK_STOP_ACTIVE

    def clear_faults(self) -> None:
        if not self.cut:
            mended = (self.drive == DriveState.FAULT) & (self._cause == 0)
            self._code[mended], self.drive[mended] = 0, DriveState.SWITCH_ON_DISABLED

    def close(self) -> None:
        self.drive[self.drive != DriveState.FAULT] = DriveState.SWITCH_ON_DISABLED
        self.braked |= self._has_brake
        self.opened = False

    def trouble(self) -> str:
        return self.busy

    def fault_text(self, code: int) -> str:
        return TEXTS.get(code, f"fault 0x{code:04X}")

    def serials(self) -> tuple[str, ...]:
        return self._serials

    def figures(self) -> dict[str, Any]:
        return {"written": self.written, "arrived": self.commands}

    def home(self, actuator: int, on: bool) -> HomingProgress:
        run = self._homings.get(actuator)
        if not on or self.cut:
            self._homings.pop(actuator, None)
            return HomingProgress.FAILED
        if run is None:
            spec = self._bus.actuators[actuator].homing
            if spec is None or self.drive[actuator] != OPERATION_ENABLED:
                return HomingProgress.FAILED
            self.homed[actuator] = False
            run = self._homings[actuator] = LoopbackHoming(self, actuator, spec)
        return run.progress

    def traffic(self) -> BusTraffic:
        return BusTraffic(self.written, self.arrived, self.dropped)

    def battery(self, state: ActuatorState) -> BatteryReading | None:
        return mechanical_supply(self._supply, self.tau, self.v)

    def brake(self, actuator: int, release: bool) -> bool:
        if self._has_brake[actuator]:
            self.braked[actuator] = not release
        return bool(self._has_brake[actuator])

    def guard(self) -> GuardSpec | None:
        if not self._listener:
            return None
        return GuardSpec("humanoid_control.hardware.guardian:DatagramGuard", (self._listener,))

    def damping_frame(self, state: ActuatorState) -> bytes:
        return state.q.tobytes()

    @classmethod
    def scan(cls, options: Mapping[str, Any]) -> list[str]:
        return ["loopback drives are created from the file: there is no bus to scan"]

    # -- for tests --------------------------------------------------------------------------------------------------

    def fail(self, name: str, code: int, stays: bool = False) -> None:
        """Inject a fault; `stays`: its cause remains until `clear_fault`."""
        k = self.names.index(name)
        self._code[k], self._cause[k] = code, code if stays else 0
        self.drive[k] = DriveState.FAULT

    def clear_fault(self, name: str) -> None:
        """Remove the cause of a fault."""
        self._cause[self.names.index(name)] = 0

    # -- the drives -------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Integrate to the present time."""
        now = self.clock()
        self._time = max(self._time, now - MOST)
        if self._time >= now - 1e-9:
            return
        while self._time < now - 1e-9:
            h = min(STEP, now - self._time)
            while self._waiting and self._waiting[0][0] <= self._time + h:
                self._active = self._waiting.popleft()[1]
                self.commands += 1
                self._received_at = self._time + h
            silent = self._time - self._received_at >= self._watchdog
            if silent:
                self._fall_silent()
            c = self._active
            if self._homings:  # homing drives use their own targets
                c = _copy(self._active)
                for k in [k for k, run in self._homings.items() if run.step(c, h)]:
                    del self._homings[k]
            held = self.braked | self.stuck
            moving = LoopbackMotion(self.q, self.v, self.tau, self.temperature, self.drive, held, self.load)
            behaviour = list(Silence).index(self.silence) if silent else -1
            step_drives(
                moving, self._model, LoopbackCommand(c.q - self.zero, c.v, c.tau, c.kp, c.kd, c.mode), behaviour, h
            )
            self._time += h
        self._sample()

    def _fall_silent(self) -> None:
        """Apply the behaviour of drives without frames."""
        on = self.drive == OPERATION_ENABLED
        if self.silence is Silence.STOPS:
            self.drive[on], self._code[on] = DriveState.FAULT, 0x8130
        elif self.silence is Silence.LIMP:
            self.drive[on] = DriveState.SWITCH_ON_DISABLED

    def _sample(self) -> None:
        s = ActuatorState(len(self.names))
        last = self._newest
        s.q[:], s.v[:], s.tau[:] = self.q + self.zero + self.encoder, self.v, self.tau
        if last is not None:
            s.q[self.frozen], s.v[self.frozen] = last.q[self.frozen], last.v[self.frozen]
        s.temperature[:], s.voltage[:], s.stamp[:], s.code[:] = self.temperature, self._supply, self._time, self._code
        s.flags[:] = (
            HOMED * self.homed + ENABLED * (self.drive == OPERATION_ENABLED) + FAULT * (self.drive == DRIVE_FAULT)
        )
        self._newest = s
        self._samples.append((self._time, s))


def _copy(command: ActuatorCommand) -> ActuatorCommand:
    out = ActuatorCommand(len(command.q))
    for name in ActuatorCommand.FIELDS:
        getattr(out, name)[:] = getattr(command, name)
    return out


class LoopbackHoming:
    """Homing of a loopback drive: 17, 18 at its switch, -1, -2 at hard stops."""

    def __init__(self, bus: LoopbackTransport, k: int, spec: HomingSpec) -> None:
        self._bus, self._k, self._spec = bus, k, spec
        self.progress = HomingProgress.RUNNING if spec.method in (17, 18, -1, -2, 35, 37) else HomingProgress.FAILED
        self._side = 1.0 if spec.method in (18, -2) else -1.0
        self._target, self._back, self._pressed = bus.q[k], False, 0.0

    def step(self, command: ActuatorCommand, h: float) -> bool:
        """Advance by h [s] with an own target; True once the command uses the new zero."""
        bus, k, spec = self._bus, self._k, self._spec
        # commands that still use the old zero may be under way: ignore them
        if self.progress is HomingProgress.DONE and abs(command.q[k] - bus.zero[k] - self._target) < NEAR:
            return True
        if self.progress is HomingProgress.RUNNING and spec.method < 30:
            # search at `speed`; after a switch has closed, return at `slow`
            self._target += (-spec.slow if self._back else spec.speed) * self._side * h
            closed = np.isfinite(bus.switch[k]) and self._side * (bus.q[k] - bus.switch[k]) >= 0
            self._pressed = self._pressed + h if abs(bus.tau[k]) >= spec.effort else 0.0
            # found: pressed against a hard stop long enough, or back at the edge of the switch
            found = self._pressed >= PRESSED if spec.method < 0 else self._back and not closed
            self._back = self._back or (bool(closed) and spec.method > 0)
        else:
            found = True
        if found and self.progress is HomingProgress.RUNNING:
            self._target = bus.q[k]
            bus.zero[k] = -bus.q[k]
            bus.homed[k], self.progress = True, HomingProgress.DONE
        command.q[k], command.v[k], command.mode[k] = self._target + bus.zero[k], 0.0, Mode.POSITION
        return False


def mechanical_supply(voltage: float, tau: np.ndarray, v: np.ndarray) -> BatteryReading | None:
    """Return a supply for lossless motors without regeneration; None if voltage <= 0."""
    if voltage <= 0:
        return None
    return BatteryReading(voltage, -float(np.maximum(np.nan_to_num(tau * v), 0.0).sum()) / voltage)


class LoopbackModel(NamedTuple):
    """Constants of n drives.

    Attributes:
        w: position loop (n,) [rad/s].
        inertia: (n,) [kg m^2].
        heating: heating rate at full effort (n,) [K/s].
        cooling: time constant (n,) [s].
    """

    w: F1
    inertia: F1
    effort: F1
    heating: F1
    cooling: F1
    ambient: F1
    lower: F1
    upper: F1


class LoopbackMotion(NamedTuple):
    """State of n drives, changed in place: q [rad], v [rad/s], tau [N m], temperature [deg C].

    Attributes:
        drive: `DriveState`.
        held: braked or stuck.
        load: external torque [N m].
    """

    q: F1
    v: F1
    tau: F1
    temperature: F1
    drive: I1
    held: B1
    load: F1


class LoopbackCommand(NamedTuple):
    """Command of n drives: q [rad], v [rad/s], tau [N m], kp [N m/rad], kd [N m s/rad]."""

    q: F1
    v: F1
    tau: F1
    kp: F1
    kd: F1
    mode: np.ndarray


@kernel
def step_drives(x: LoopbackMotion, model: LoopbackModel, told: LoopbackCommand, behaviour: int, h: float) -> None:
    """Integrate all drives over h [s]; `behaviour`: index in `Silence` without frames, else -1."""
    for i in range(x.q.shape[0]):
        inertia, w = model.inertia[i], model.w[i]
        tau = 0.0
        if x.drive[i] == OPERATION_ENABLED:
            v_ref = 0.0 if behaviour == HOLDS else told.v[i]
            if behaviour == DAMPS:
                # the velocity decays with the time constant DAMPING
                tau = -inertia * x.v[i] / DAMPING
            # mode: 0 position, 1 velocity, 2 effort, 3 impedance (`Mode`)
            elif told.mode[i] == 0:
                # critically damped position loop: tau = I (w^2 e + 2 w e_dot), load compensated
                tau = inertia * (w * w * (told.q[i] - x.q[i]) + 2 * w * (v_ref - x.v[i])) - x.load[i]
            elif told.mode[i] == 1:
                tau = inertia * 2 * w * (v_ref - x.v[i]) - x.load[i]
            elif told.mode[i] == 2:
                tau = told.tau[i]
            else:
                tau = told.tau[i] + told.kp[i] * (told.q[i] - x.q[i]) + told.kd[i] * (v_ref - x.v[i])
            tau = min(max(tau, -model.effort[i]), model.effort[i])
        # a brake overrides all torques; a quick stop or fault decays the velocity
        if x.held[i]:
            v = 0.0
        elif x.drive[i] >= QUICK_STOP_ACTIVE:
            v = x.v[i] * max(0.0, 1.0 - RAMP * h)
        else:
            # v' = (tau + load) / I - VISCOUS v
            v = x.v[i] + h * ((tau + x.load[i]) / inertia - VISCOUS * x.v[i])
        # semi-implicit Euler; hard stops absorb all velocity
        q = x.q[i] + h * v
        if q < model.lower[i] or q > model.upper[i]:
            q = min(max(q, model.lower[i]), model.upper[i])
            v = 0.0
        x.q[i] = q
        x.v[i], x.tau[i] = v, tau
        share = abs(tau) / model.effort[i]  # 0 if the effort is unlimited
        # winding heat grows with torque squared; first-order cooling to ambient
        cooled = (x.temperature[i] - model.ambient[i]) / model.cooling[i]
        x.temperature[i] += h * (model.heating[i] * share * share - cooled)
