"""Driver of a robot: everything between joint commands and buses, one cycle after the other.

A cycle writes the command of the last one, reads, supervises, moves the power state on, and makes the next command:
interpolated, blended, limited. It never raises, and nothing but `enable` gives power.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.buses import Buses, Record
from humanoid_control.hardware.calibration import Homing, Zero, check_change, homing_queues, zeros_at
from humanoid_control.hardware.command_stream import Blend, CommandInterpolator, JointCommand
from humanoid_control.hardware.guardian import LIMIT, PRIORITY, Guardian
from humanoid_control.hardware.hardware_file import Hardware
from humanoid_control.hardware.limiter import Impedance, Reference, limit_effort, limit_step
from humanoid_control.hardware.power import MOVING, POWERED, Event, PowerMachine, PowerState, refusals_of
from humanoid_control.hardware.supervision import FAULT, Finding, JointSamples, JumpFilter, Supervision
from humanoid_control.hardware.transmission import JointReading
from humanoid_control.hardware.transport import HardwareError

STEADY = 0.2  # [s] of commands before they are followed
ENABLE_TIME = 5.0  # [s] for the drives' enable sequence
BRAKE_TIME = 0.2  # [s] that a brake takes
GAIN_RAMP = 0.5  # [s] of the gains of impedance drives, up and down
QUICK_STOP_TIME = 0.5  # [s] for the drives to come to rest
CLEAR_TIME = 2.0  # [s] for faults to go away
STILL_SPEED, STILL_TIME = 0.01, 0.5  # [rad/s], [s] of a joint whose zero may be set
LATE_STOP, LATE_FAULT = 5, 0.05  # periods, and seconds, by which a cycle may be late
BEHIND = 0.002  # [rad] behind its command, and the margin of ranges, that are no clipped command yet
CLIPPED_TIME = 0.2  # [s] after which clipped commands are said


class Driver:
    """A robot on its buses.

    Attributes:
        hardware: of the robot. machine: its power state. buses: its transports.
        joints: measured; `joints.q` only what can be believed. fresh: (n,) measured in this cycle.
        reference: that is sent to the drives, n joints. tau: (n,) feed-forward that is sent [N m].
        commands: taken from outside.
        findings: of supervision in this cycle, the worst first.
        estop: sources of the emergency stop that call now, with the reason.
        homing: joints that look for their zeros; None: none do.
        last_heartbeat: monotonic time of the emergency stop's last sign of life [s]; -inf: none.
        stopped: somebody asked to stop: commands are not followed until somebody enables.
    """

    def __init__(
        self,
        hardware: Hardware,
        zeros: Mapping[str, Zero] | None = None,
        dry_run: bool = False,
        record: Record | None = None,
        late_tolerance: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; no bus is opened.

        Args:
            hardware: of the robot. zeros: its calibration. dry_run, record: see `Buses`.
            late_tolerance: multiple of the usual lateness that a cycle may have, for machines without real time.
            clock: monotonic time [s].

        Raises:
            HumanoidError: as `Buses`; a mechanism that is none.
        """
        n = len(hardware.joints)
        self.hardware, self.clock, self.period = hardware, clock, 1.0 / hardware.rate
        self.zeros: Mapping[str, Zero] = zeros or {}
        self.buses = Buses(hardware, dry_run, record)
        self.transmission = hardware.transmission(self.zeros)
        self.machine = PowerMachine(self._entered)
        self.joints, self.fresh = JointReading(n), np.zeros(n, dtype=bool)
        self.limits = hardware.command_limits()
        self.supervision = Supervision(hardware.names, hardware.supervision_limits(), self.period)
        self.commands = CommandInterpolator(n, hardware.command_timeout)
        self.reference = Reference(np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool))
        self.tau, self.findings, self.estop = np.zeros(n), list[Finding](), dict[str, str]()
        self.stopped, self.homing = False, cast("Homing | None", None)
        self._homes = np.array([name in hardware.homing for name in hardware.names], dtype=bool)
        self.guard: Guardian | None = None
        self._dry, self._tolerance = dry_run, late_tolerance
        self._gains = Impedance(hardware.column("kp"), hardware.column("kd"))
        self._jumps = JumpFilter(
            np.array([hardware.robot.velocity[hardware.robot.index[m]] for m in hardware.names]), self.period
        )
        self._sent, self._q_out, self._target = np.zeros(n), np.zeros(n), np.full(n, np.nan)
        self._still = np.zeros(n)
        self._clipped, self._blend = np.zeros(n), Blend(np.zeros(n), np.zeros(n), 0.0, 1.0, 1.0)
        self._last = self.last_heartbeat = -np.inf
        self._switching_off, self._clear_until = False, -np.inf
        self._powered_since = self._released_at = self._resting_since = np.inf

    # -- requests; each answers why not, or nothing ------------------------------------------------------------------

    def open(self) -> None:
        """Open all buses and begin to monitor.

        Raises:
            HardwareError: a bus or a device that is not as the file says.
        """
        self.buses.open()
        self._load_kernels()
        self._jumps.restart()
        self.machine.handle(Event.CONFIGURE, self.clock())

    def _load_kernels(self) -> None:
        """Load or compile now what a cycle calls: it would come late for it."""
        n = len(self.hardware.joints)
        still = Reference(self.limits.lower.copy(), np.zeros(n), np.zeros(n, dtype=bool))
        limit_step(still.q.copy(), np.zeros(n), still, self.limits, self.period)
        limit_effort(still.q, np.zeros(n), (still.q, still.v), still.v, self._gains, self.limits, np.empty(n))

    def close(self) -> None:
        """Switch off, whatever the state, and close the buses."""
        if self.machine.powered:
            self.machine.handle(Event.FAIL, self.clock(), "driver closed")
        self.buses.close()
        if self.guard is not None:
            self.guard.close()
            self.guard = None
        self.machine.handle(Event.CLOSE, self.clock())

    def enable(self) -> str:
        """Ask for power, or, after `stop`, to follow commands again."""
        if self.machine.powered and self.stopped and not self._switching_off:
            self.stopped = False
            return ""
        if reasons := self.refusals():
            return "; ".join(reasons)
        self.stopped = False
        self.machine.handle(Event.ENABLE, self.clock())
        return ""

    def disable(self) -> str:
        """Stop every joint at its acceleration limit, then switch the drives off."""
        if not self.machine.powered:
            return ""
        self._switching_off = True
        self.machine.handle(Event.STOP, self.clock(), "switching off")
        return ""

    def stop(self) -> str:
        """Stop every joint at its acceleration limit and hold; commands are not followed until `enable`."""
        if not self.machine.powered:
            return f"nothing to stop: {self.machine}"
        self.stopped = True
        self.machine.handle(Event.STOP, self.clock(), "stop was asked for; enable goes on")
        return ""

    def home(self, names: Sequence[str] = ()) -> str:
        """Let drives look for their zeros, in HOLD; `names`: of these joints, else of all that do not know theirs."""
        if self.machine.state is not PowerState.HOLD or self.homing is not None:
            return f"drives look for their zeros in HOLD: state is {self.machine}"
        rows = self.hardware.homing
        if strange := [n for n in names if n not in rows]:
            return f"no homing in the hardware file for {', '.join(strange)}"
        wanted = list(names) or self.unhomed()
        if not wanted:
            return "nothing to do: all joints know their zeros, or have no homing in the hardware file"
        names = self.hardware.names
        self.homing = Homing(names, rows, self.transmission, homing_queues(names, self.hardware.groups, wanted))
        return ""

    def unhomed(self) -> list[str]:
        """Joints whose drives must look for their zeros before they follow commands."""
        return [n for n, bad in zip(self.hardware.names, self._homes & ~self.joints.homed, strict=True) if bad]

    def _unknown(self) -> np.ndarray:
        """(n,) joints whose measured positions mean nothing yet."""
        unknown = self._homes & ~self.joints.homed
        return unknown if self.homing is None else unknown | self.homing.active

    def emergency_stop(self, source: str, on: bool, reason: str = "") -> None:
        """Let a source of the emergency stop call or release it; the state stays until `clear_faults`."""
        if on:
            self.estop[source] = reason or f"emergency stop by {source}"
            self.machine.handle(Event.ESTOP, self.clock(), self.estop[source])
        else:
            self.estop.pop(source, None)

    def heartbeat(self, now: float) -> None:
        """Take a sign of life of the emergency stop."""
        self.last_heartbeat = now
        self.estop.pop("heartbeat", None)

    def clear_faults(self) -> str:
        """Begin to clear faults whose cause is gone; ends in MONITOR, without power."""
        if self.machine.state not in (PowerState.FAULT, PowerState.ESTOP):
            return f"nothing to clear: {self.machine}"
        if self.estop:
            return "; ".join(self.estop.values())
        if self.buses.lost:
            return "; ".join(self.buses.lost.values())
        self._clear_until = self.clock() + CLEAR_TIME
        self.buses.clear_faults()
        self._jumps.restart()
        return ""

    def command(self, command: JointCommand, now: float, stamp: float) -> None:
        """Take a checked command; see `CommandInterpolator.add`."""
        self.commands.add(command, now, stamp)

    def refusals(self) -> list[str]:
        """Reasons why power must not come now; empty: it may."""
        return refusals_of(self)

    def to_guard(self) -> list[str]:
        """Buses that must have a guardian."""
        if self._dry or self.hardware.guardian == "never":
            return []
        return list(self.buses.transports) if self.hardware.guardian == "always" else self.buses.guarded()

    def start_guardian(self, priority: int = PRIORITY) -> None:
        """Start the guardian of the buses that need one, once they are open.

        Args:
            priority: SCHED_FIFO of it; 0: as any process.

        Raises:
            HardwareError: it did not come up.
        """
        needed = self.to_guard()
        guards = [g for g in self.buses.guards() if g.name in needed]
        if guards:
            try:
                self.guard = Guardian(guards, self._tolerance * max(LIMIT, 3 * self.period), priority)
            except OSError as e:
                raise HardwareError(f"guardian: {e}") from None

    # -- the cycle ----------------------------------------------------------------------------------------------------

    def cycle(self) -> None:
        """One cycle, at its deadline. What should never happen stops the drives."""
        now = self.clock()
        try:
            self._cycle(now)
        except Exception as e:
            self.machine.handle(Event.FAIL, now, f"cycle failed: {type(e).__name__}: {e}")

    def _cycle(self, now: float) -> None:
        if self.machine.powered:
            self.buses.write(early=False)
        self.buses.read(now + 0.4 * self.period)
        self._measure(now)
        self._watch(now)
        self._proceed(now)
        self._make_command(now)
        if self.machine.powered:
            self.buses.write(early=True)
        if self.guard is not None:
            powered = self.machine.powered
            self.guard.beat(powered, self.buses.damping_frames(self.guard.buses) if powered else ())

    def _measure(self, now: float) -> None:
        self.transmission.read(self.buses.state, self.joints)
        if (unknown := self._unknown()).any():
            self._jumps.restart(unknown)  # at its home an encoder is set to another reading
        self.joints.q[:] = self._jumps.update(self.joints.q, self.joints.fresh)
        self.fresh = self.joints.fresh & np.isfinite(self.joints.q)
        self._still = np.where(np.abs(self.joints.v) < STILL_SPEED, self._still + self.period, 0.0)
        j, names = self.joints, self.hardware.names
        age = np.where(np.isfinite(j.stamp), now - j.stamp, now - self.machine.since)
        samples = JointSamples(
            np.where(unknown, np.nan, j.q), j.v, j.tau, j.temperature, j.voltage, age, j.failed, self._sent
        )
        follows = self.machine.powered and self.machine.state is not PowerState.ENABLING and not self._dry
        findings = self.supervision.update(samples, follows)
        for k in np.flatnonzero(j.failed).tolist():
            worst = max(self.transmission.actuators_of(k), key=lambda a: int(self.buses.state.code[a]))
            findings.insert(0, Finding(FAULT, k, "drive", f"{names[k]} drive: {self.buses.fault_text(worst)}"))
        for k in np.flatnonzero(self._jumps.failed()).tolist():
            findings.insert(0, Finding(FAULT, k, "encoder", f"{names[k]} encoder jumps"))
        off = self.fresh & ~j.enabled & ~j.failed
        if follows and not self._switching_off and now - self._powered_since > QUICK_STOP_TIME and off.any():
            k = int(off.argmax())
            findings.insert(0, Finding(FAULT, k, "power", f"{names[k]} lost its power"))
        self.findings = findings

    def _watch(self, now: float) -> None:
        """Everything that ends motion: emergency stop, faults of joints and buses, this computer itself."""
        late, self._last = now - self._last - self.period, now
        beat = self.hardware.estop_heartbeat
        if beat and self.last_heartbeat > -np.inf and now - self.last_heartbeat > beat:
            self.emergency_stop("heartbeat", True, f"{self.hardware.estop_topic} silent for {beat:g} s")
        if self.buses.lost:
            self.machine.handle(Event.FAIL, now, "; ".join(self.buses.lost.values()))
            self.buses.reopen(now)
        if not self.machine.powered:
            return
        faults = [f.text for f in self.findings if f.level == FAULT]
        if text := self.buses.trouble():
            faults.append(text)
        if late > LATE_FAULT * self._tolerance:
            faults.append(f"cycle {1000 * late:.0f} ms late")
        if self.guard is not None and not self.guard.alive():
            faults.append("the guardian " + ("stopped the drives" if self.guard.tripped() else "died"))
        if faults:
            self.machine.handle(Event.FAIL, now, "; ".join(faults[:3]))
        elif late > LATE_STOP * self.period * self._tolerance:
            self.machine.handle(Event.STOP, now, f"stopped: cycle {1000 * late:.0f} ms late")

    def _proceed(self, now: float) -> None:
        """Let the power state go on by itself."""
        state, handle = self.machine.state, self.machine.handle
        if state is PowerState.ENABLING:
            self._enable(now)
        elif state is PowerState.HOLD and self.homing is not None:
            self._home(now)
        elif state is PowerState.HOLD and not (self.stopped or self.unhomed()) and self.commands.steady(now, STEADY):
            handle(Event.COMMANDED, now)
        elif state in MOVING and self.commands.silent(now):
            silence = self.hardware.command_timeout
            handle(Event.STOP, now, f"stopped: joint_commands silent for {silence:.2f} s")
        elif state is PowerState.BLEND and self._blend.over(now):
            handle(Event.BLENDED, now)
        elif state is PowerState.STOPPING and not self.reference.v.any():
            if not self._switching_off:
                handle(Event.RESTED, now, self.machine.reason)
            else:
                self._switch_off(now)
        elif state is PowerState.FAULT:
            self._stay_stopped(now, power=True)
        elif state is PowerState.ESTOP:
            self._stay_stopped(now, power=False)

    def _home(self, now: float) -> None:
        """Let drives look for their zeros, until all have or one fails."""
        assert self.homing is not None
        before = self.homing.active.copy()
        over = self.homing.update(now, self.buses.home, self.joints.homed)
        np.copyto(self.reference.q, self.joints.q, where=before & ~self.homing.active)  # by its new zero
        self.machine.reason = str(self.homing)
        if self.homing.failure:
            self.machine.handle(Event.FAIL, now, self.homing.failure)
        elif over:
            self.homing, self.machine.reason = None, "" if not self.unhomed() else "not homed"

    def _enable(self, now: float) -> None:
        if now - self.machine.since > ENABLE_TIME:
            names = [n for n, on in zip(self.hardware.names, self.joints.enabled, strict=True) if not on]
            self.machine.handle(Event.FAIL, now, f"not enabled in {ENABLE_TIME:g} s: {', '.join(names[:4])}")
        elif not self.buses.power(True):
            self._released_at = np.inf
        elif not np.isfinite(self._released_at):
            self._released_at = now + (BRAKE_TIME if self.buses.brakes(release=True) else 0.0)
        elif now >= self._released_at:
            self.machine.handle(Event.ENABLED, now, self.machine.reason)

    def _switch_off(self, now: float) -> None:
        """At rest: brakes, gains down to damping, power off."""
        if not np.isfinite(self._resting_since):
            self._resting_since = now
            braked = self.buses.brakes(release=False)
            self._off_at = now + max(BRAKE_TIME if braked else 0.0, GAIN_RAMP if self._gains.kp.any() else 0.0)
        elif now >= self._off_at and self.buses.power(False):
            self.machine.handle(Event.UNPOWERED, now)

    def _stay_stopped(self, now: float, power: bool) -> None:
        """In FAULT and ESTOP: the drives stop by themselves; then brakes, and no power where that is the state."""
        since = now - self.machine.since
        if since <= QUICK_STOP_TIME:
            self.buses.quick_stop()  # again and again: a frame may be lost
            return
        self.buses.brakes(release=False)
        clearing = now < self._clear_until
        if not power or clearing:
            off = self.buses.power(False)
            faulty = any(f.level == FAULT for f in self.findings) or bool(self.buses.trouble()) or bool(self.estop)
            if clearing and off and not faulty:
                self.machine.handle(Event.CLEAR, now)

    def _entered(self, before: PowerState, after: PowerState) -> None:
        """What a transition does at once."""
        now = self.machine.since
        if self.homing is not None and after is not PowerState.HOLD:
            np.copyto(self.reference.v, self.joints.v, where=self.homing.active & np.isfinite(self.joints.v))
            self.homing.abort(self.buses.home)
            self.homing = None
        if after in (PowerState.FAULT, PowerState.ESTOP):
            self.buses.quick_stop()
            self._clear_until = -np.inf
        if after is PowerState.BLEND:
            q, _ = self.commands.at(now)
            self._blend = Blend(self.reference.q, q, now, self.hardware.soft_start, self.hardware.soft_speed)
        if after is PowerState.HOLD and before is PowerState.ENABLING:
            self._powered_since = now
        if after is PowerState.STOPPING and before is PowerState.ENABLING:
            self._switching_off = True  # not all drives have power yet: there is nothing to hold with
        if after not in POWERED or after is PowerState.ENABLING:
            self._powered_since = self._released_at = self._resting_since = np.inf
            self._switching_off = False
            self.reference.v[:] = 0.0

    # -- the next command ---------------------------------------------------------------------------------------------

    def _make_command(self, now: float) -> None:
        state, ref = self.machine.state, self.reference
        n = len(ref.q)
        self._sent[:] = ref.q
        target, speed, share = np.full(n, np.nan), np.full(n, np.nan), 0.0
        if state not in POWERED or state is PowerState.ENABLING:
            ref.q[:] = np.where(np.isfinite(self.joints.q), self.joints.q, ref.q)
            ref.v[:], ref.clipped[:] = 0.0, False
        elif state in MOVING:
            q, v = self.commands.at(now)
            target, speed, share = self._follow(now, q, v)
        if state in POWERED and state is not PowerState.ENABLING:
            limit_step(target, speed, ref, self.limits, self.period)
        if self.homing is not None:
            np.copyto(ref.q, self.joints.q, where=self.homing.active & np.isfinite(self.joints.q))
        self._target = target
        # Behind by the margin that is kept at the ends of ranges: no limit that a command ran into.
        behind = ref.clipped & (np.abs(target - ref.q) > self.hardware.range_margin + BEHIND)
        self._clipped = np.where(behind, self._clipped + self.period, 0.0)
        self.tau[:] = np.where(np.isfinite(self.commands.tau), share * self.commands.tau, 0.0)
        measured = (self.joints.q, self.joints.v)
        limit_effort(ref.q, self.tau, measured, ref.v, self._gains, self.limits, self._q_out)
        self.transmission.command(self._q_out, ref.v, self.tau, self.buses.command)
        kp, kd = self._gain_shares(now)
        self.transmission.gains(kp * self._gains.kp, kd * self._gains.kd, self.buses.command)

    def _follow(self, now: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Target (n,), its velocity (n,), and the share of feed-forward torques."""
        ref, step = self.reference, self.hardware.max_step
        if self.machine.state is PowerState.RUN:
            if (np.abs(q - ref.q) > step).any():
                self.machine.handle(Event.STEPPED, now, f"command stepped by more than {step:g} rad")
            else:
                return q, v, 1.0
        target = self._blend.at(now, q)
        jumped = np.abs(target - self._target) > step
        if jumped.any():
            self.machine.handle(Event.STEPPED, now, f"command stepped by more than {step:g} rad")
            target = self._blend.at(now, q)
            return target, np.full(len(q), np.nan), 0.0
        return target, (target - self._target) / self.period, self._blend.share(now)

    def _gain_shares(self, now: float) -> tuple[float, float]:
        """Shares of the gains of impedance drives: up after power has come, down to damping before it goes."""
        if not np.isfinite(self._powered_since):
            return 0.0, 0.0
        up = min(max((now - self._powered_since) / GAIN_RAMP, 0.0), 1.0)
        down = 1.0
        if np.isfinite(self._resting_since):
            down = min(max(1.0 - (now - self._resting_since) / GAIN_RAMP, 0.0), 1.0)
        return up * down, up

    # -- live changes -------------------------------------------------------------------------------------------------

    def scale_velocity(self, share: float) -> None:
        """Share of the file's speed limits that commands may use; while commands are followed it may only fall.

        Raises:
            ConfigError: it would rise while commands are followed.
        """
        velocity = share * self.hardware.column("velocity")
        if self.machine.state in MOVING and (velocity > self.limits.velocity).any():
            raise ConfigError(f"limits may only be narrowed in {self.machine.state.name}: stop before")
        self.limits.velocity[:] = velocity

    def set_zeros(self, angles: Mapping[str, float], allow_large: bool = False) -> dict[str, Zero]:
        """Calibrate: the joints named are at these angles now [rad].

        Returns:
            The whole calibration, to be written; it is in use already.

        Raises:
            ConfigError: not in MONITOR, or a joint moves or is not measured. RobotError: a zero would change far.
        """
        if self.machine.state is not PowerState.MONITOR:
            raise ConfigError(f"zeros are set without power: state is {self.machine}")
        settled = dict(zip(self.hardware.names, self.fresh & (self._still >= STILL_TIME), strict=True))
        if moving := [name for name in angles if not settled[name]]:
            raise ConfigError(f"{moving[0]} is not measured, or has not been at rest for {STILL_TIME:g} s")
        q = np.array([angles.get(name, np.nan) for name in self.hardware.names])
        new = zeros_at(q, self.transmission, self.buses.state, self.buses.serials())
        check_change(self.zeros, new, allow_large)
        self.zeros = {**self.zeros, **new}
        self.transmission = self.hardware.transmission(self.zeros)
        self._jumps.restart()
        return dict(self.zeros)

    # -- figures ------------------------------------------------------------------------------------------------------

    def clipped(self) -> list[str]:
        """Joints whose commands have exceeded a limit for a while."""
        return [n for n, t in zip(self.hardware.names, self._clipped, strict=True) if t > CLIPPED_TIME]

    def following_error(self) -> np.ndarray:
        """(n,) between what the drives were told and what is measured [rad]."""
        return np.abs(self._sent - self.joints.q)
