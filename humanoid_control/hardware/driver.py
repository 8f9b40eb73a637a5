"""Driver of a robot: control cycle between joint commands and buses.

A cycle never raises, and only `enable` gives power.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.buses import STILL_TIME, Buses, Record, new_zeros
from humanoid_control.hardware.calibration import Encoders, Homing, Zero, check_change
from humanoid_control.hardware.commands.command_stream import Blend, CommandInterpolator, JointCommand
from humanoid_control.hardware.commands.drive_modes import DriveModes
from humanoid_control.hardware.commands.gained_joints import GainedJoints, Gains
from humanoid_control.hardware.commands.limiter import Impedance, SpeedRamp
from humanoid_control.hardware.commands.setpoint import Aim, Setpoint
from humanoid_control.hardware.fault_groups import FaultGroups, device_findings
from humanoid_control.hardware.guardian import LIMIT, PRIORITY, Guardian
from humanoid_control.hardware.hardware_file import Hardware
from humanoid_control.hardware.power import MOVING, POWERED, Event, PowerMachine, PowerState, passed_over, refusals_of
from humanoid_control.hardware.power_requests import PowerRequests
from humanoid_control.hardware.supervision import (
    FAULT,
    JointSamples,
    JumpFilter,
    SampleWatch,
    Supervision,
    WatchFinding,
)
from humanoid_control.hardware.transmission import JointReading
from humanoid_control.hardware.transport import HardwareError

STEADY = 0.2  # [s] commands must have come before they are followed
ENABLE_TIME = 5.0  # [s] for the drives' enable sequence
BY_POSITION = ("following error", "beyond its range by")  # position checks, ignored for joints without a known zero
BRAKE_TIME = 0.2  # [s] to release or engage a brake
GAIN_RAMP = 0.5  # [s] ramp of the gains of impedance drives
QUICK_STOP_TIME = 0.5  # [s] for the drives to come to rest
CLEAR_TIME = 2.0  # [s] in which faults must clear
STILL_SPEED = 0.01  # [rad/s] limit for "at rest" when a zero is set
LATE_STOP, LATE_FAULT = 5, 0.05  # lateness of a cycle: [periods] stops the robot, [s] is a fault
BEHIND = 0.002  # [rad] tolerance beyond the range margin before a command counts as clipped
CLIPPED_TIME = 0.2  # [s] before clipped commands are reported


class Driver(PowerRequests):
    """Driver of n joints.

    Attributes:
        joints: measured; `joints.q` holds plausible values only.
        tau: feed-forward sent (n,) [N m].
        estop: reason by active source of the emergency stop.
        last_heartbeat: monotonic time of the last emergency-stop heartbeat [s]; -inf: none.
        stopped: after a stop request: commands are ignored until `enable`.
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
        """Set up; no bus is opened.

        Args:
            late_tolerance: factor on permitted lateness, for machines without real time.
            clock: monotonic [s].

        Raises:
            HumanoidError: as `Buses`, or if a drive mechanism is invalid.
        """
        n = len(hardware.joints)
        self.hardware, self.clock, self.period = hardware, clock, 1.0 / hardware.rate
        self.zeros: Mapping[str, Zero] = zeros or {}
        self.buses = Buses(hardware, dry_run, record)
        self.transmission = hardware.transmission(self.zeros)
        self.machine = PowerMachine(self._entered)
        self.joints = j = JointReading(n)
        self.limits = hardware.command_limits()
        self.speeds = SpeedRamp(self.limits, self.period)
        self.supervision = Supervision(hardware.names, hardware.supervision_limits(), self.period)
        self.commands = CommandInterpolator(n, hardware.command_timeout)
        self._gains = Impedance(hardware.column("kp"), hardware.column("kd"))
        behind = hardware.range_margin + BEHIND
        self._setpoint = Setpoint(j, self.commands, self.limits, self._gains, hardware.max_step, self.period, behind)
        self.reference, self.tau = self._setpoint.reference, self._setpoint.tau
        self.findings, self.estop = list[WatchFinding](), dict[str, str]()
        self.stopped = False
        self.encoders = Encoders(hardware.names, hardware.homing, hardware.groups, self.transmission)
        self.groups = FaultGroups(hardware, self.buses, self.transmission, QUICK_STOP_TIME)
        self.guard: Guardian | None = None
        self._dry, self._tolerance = dry_run, late_tolerance
        modes = [j.mode for j in hardware.joints]
        self.modes = DriveModes(modes, self.limits, self._gains)
        self.gained = GainedJoints(hardware.names, modes, self._setpoint, j, self.limits.effort, self.period)
        self.jumps = JumpFilter(
            np.array([hardware.robot.velocity[hardware.robot.index[m]] for m in hardware.names]), self.period
        )
        self._seen = SampleWatch(j, STILL_SPEED, self.period)
        self._samples = JointSamples(
            j.q, j.v, j.tau, j.temperature, j.voltage, self._seen.age, j.failed, self._setpoint.sent
        )
        self.fresh = self._seen.believed
        self._blend = Blend(np.zeros(n), np.zeros(n), 0.0, 1.0, 1.0)
        self._last = self.last_heartbeat = -np.inf
        self._switching_off, self._clear_until = False, -np.inf
        self._powered_since = self._released_at = self._resting_since = np.inf

    # -- requests: each returns the reason of a refusal, or an empty string -------------------------------------

    def open(self) -> None:
        """Open all buses and enter MONITOR.

        Raises:
            HardwareError: if a bus or device does not match the file.
        """
        self.buses.open()
        self._load_kernels()
        self.jumps.restart()
        self.machine.handle(Event.CONFIGURE, self.clock())

    def _load_kernels(self) -> None:
        """Load all kernels, so that the first cycle is not late."""
        now, nothing = self.clock(), JointCommand(*np.full((3, len(self.hardware.joints)), np.nan))
        self.commands.add(nothing, now, now)
        self.commands.restart()
        self._setpoint.run(now)
        self._measure(now)
        self._make_command(now)
        self.findings = []

    def close(self) -> None:
        """Switch off in any state, and close the buses."""
        if self.machine.powered:
            self.machine.handle(Event.FAIL, self.clock(), "driver closed")
        self.buses.close()
        if self.guard is not None:
            self.guard.close()
            self.guard = None
        self.machine.handle(Event.CLOSE, self.clock())

    def home(self, names: Sequence[str] = ()) -> str:
        """Home these joints in HOLD, or else all without a zero."""
        if self.machine.state is not PowerState.HOLD or self.encoders.homing is not None:
            return f"homing is possible only in HOLD: state is {self.machine}"
        return self.encoders.begin(names)

    def heartbeat(self, now: float) -> None:
        """Record a heartbeat of the emergency stop."""
        self.last_heartbeat = now
        self.estop.pop("heartbeat", None)

    def clear_faults(self) -> str:
        """Start to reset faults; ends in MONITOR once their causes are gone."""
        alone = self.machine.state is PowerState.MONITOR and self.groups.stopped
        if not alone and self.machine.state not in (PowerState.FAULT, PowerState.ESTOP):
            return "; ".join([*self.groups.reasons(), f"nothing to clear: {self.machine}"])
        if self.estop:
            return "; ".join(self.estop.values())
        if self.buses.lost:
            return "; ".join(self.buses.lost.values())
        self._clear_until = self.clock() + CLEAR_TIME
        self.groups.clear()
        self.buses.clear_faults()
        self.jumps.restart()
        return ""

    def command(self, command: JointCommand, now: float, stamp: float, gains: Gains | None = None) -> None:
        """Add a checked command; discarded if not followed now."""
        if not self.passes_over():
            self.commands.add(self.gained.take(self.groups.commanded(command), gains, now), now, stamp)

    passes_over = passed_over  # reason why commands are ignored

    def refusals(self) -> list[str]:
        """Return reasons against power; empty: the drives may get it."""
        return refusals_of(self)

    def to_guard(self) -> list[str]:
        """Return buses that need a guardian."""
        if self._dry or self.hardware.guardian == "never":
            return []
        return list(self.buses.transports) if self.hardware.guardian == "always" else self.buses.guarded()

    def start_guardian(self, priority: int = PRIORITY) -> None:
        """Start the guardian of the opened buses that need one.

        Args:
            priority: SCHED_FIFO priority; 0: normal scheduling.

        Raises:
            HardwareError: if it does not start.
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
        """Read, supervise, change the power state, compute and write the next command; never raise.

        An unexpected exception stops the drives.
        """
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
        j = self.joints
        self.transmission.read(self.buses.state, j)
        unknown = self.encoders.unknown(self.buses.state)
        if unknown is not None:
            self.jumps.restart(unknown)  # homing sets the encoder to another reading
        self.jumps.update(j.q, j.fresh)
        wrong = self._seen.update(now, self.machine.since)
        follows = self.machine.powered and self.machine.state is not PowerState.ENABLING and not self._dry
        self.findings = self.supervision.update(self._samples, follows)
        if unknown is not None:
            self.findings = [f for f in self.findings if not (unknown[f.joint] and f.check in BY_POSITION)]
        if wrong or self.jumps.failing:
            lasting = follows and not self._switching_off and now - self._powered_since > QUICK_STOP_TIME
            self.findings = device_findings(self, lasting) + self.findings

    def _watch(self, now: float) -> None:
        """Check everything that ends motion."""
        late, self._last = now - self._last - self.period, now
        beat = self.hardware.estop_heartbeat
        if beat and self.last_heartbeat > -np.inf and now - self.last_heartbeat > beat:
            self.emergency_stop("heartbeat", True, f"{self.hardware.estop_topic} silent for {beat:g} s")
        if self.buses.lost:
            self.machine.handle(Event.FAIL, now, "; ".join(self.buses.lost.values()))
            self.buses.reopen(now)
        if not self.machine.powered:
            return
        alone = self.machine.state is not PowerState.ENABLING and self.encoders.homing is None
        faults = [f.text for f in self.findings if f.level == FAULT]
        if faults and alone:
            faults = self.groups.take(self.findings, now)
            self.commands.discard(self.groups.joints)
            self.gained.release(self.groups.joints)
        self.groups.proceed(now)
        self.findings = self.groups.summarise(self.findings)
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
        """Make transitions that need no request: after silence, rest, a blend, enabling and homing."""
        state, handle = self.machine.state, self.machine.handle
        if state is PowerState.ENABLING:
            self._enable(now)
        elif state is PowerState.HOLD and self.encoders.homing is not None:
            self._home(now, self.encoders.homing)
        elif (
            state is PowerState.HOLD and not (self.stopped or self.encoders.waits) and self.commands.steady(now, STEADY)
        ):
            handle(Event.COMMANDED, now)
        elif self.gained.any and self.gained.comes_down(now) and state is PowerState.STOPPING:
            pass
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

    def _home(self, now: float, homing: Homing) -> None:
        over = self.encoders.proceed(now, self.buses.home, self.reference.q, self.joints.q)
        self.machine.reason = str(homing) if not over else "" if not self.encoders.missing() else "not homed"
        if homing.failure:
            self.machine.handle(Event.FAIL, now, homing.failure)

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
        """Engage brakes, ramp gains down to damping, remove power."""
        if not np.isfinite(self._resting_since):
            self._resting_since = now
            braked = self.buses.brakes(release=False)
            self._off_at = now + max(BRAKE_TIME if braked else 0.0, GAIN_RAMP if self._gains.kp.any() else 0.0)
        elif now >= self._off_at and self.buses.power(False):
            self.machine.handle(Event.UNPOWERED, now)

    def _stay_stopped(self, now: float, power: bool) -> None:
        """Keep FAULT or ESTOP: quick stop, then brakes."""
        since = now - self.machine.since
        if since <= QUICK_STOP_TIME:
            self.buses.quick_stop()  # repeated because a frame may be lost
            return
        self.buses.brakes(release=False)
        clearing = now < self._clear_until
        if not power or clearing:
            off = self.buses.power(False)
            faulty = any(f.level == FAULT for f in self.findings) or bool(self.buses.trouble()) or bool(self.estop)
            if clearing and off and not faulty:
                self.machine.handle(Event.CLEAR, now)

    def _entered(self, before: PowerState, after: PowerState) -> None:
        """Apply the immediate effects of a transition."""
        now = self.machine.since
        self.gained.entered(after, now)
        if after not in MOVING:
            self.commands.restart()  # old commands must never move the robot after a stop or without power
        if self.encoders.homing is not None and after is not PowerState.HOLD:
            np.copyto(self.reference.v, self.joints.v, where=self.encoders.homing.active & np.isfinite(self.joints.v))
            self.encoders.abort(self.buses.home)
        if after in (PowerState.FAULT, PowerState.ESTOP):
            self.buses.quick_stop()
            self._clear_until = -np.inf
        if after is PowerState.BLEND:
            q, _ = self.commands.at(now)
            self._blend = Blend(self.reference.q, q, now, self.hardware.soft_start, self.hardware.soft_speed)
        if after is PowerState.HOLD and before is PowerState.ENABLING:
            self._powered_since = now
        if after is PowerState.STOPPING and before is PowerState.ENABLING:
            self._switching_off = True  # not all drives have power yet, so the robot cannot hold
        if after not in POWERED or after is PowerState.ENABLING:
            self._powered_since = self._released_at = self._resting_since = np.inf
            self._switching_off = False
            self.reference.v[:] = 0.0

    # -- the next command ---------------------------------------------------------------------------------------------

    def _make_command(self, now: float) -> None:
        state, setpoint, out = self.machine.state, self._setpoint, self.buses.command
        self.speeds.advance()
        aim, share = Aim.REST, 0.0
        if state not in POWERED or state is PowerState.ENABLING:
            aim = Aim.MEASURED
        elif state in MOVING:
            aim, share = Aim.TARGET, self._follow(now)
        if self.modes.any:
            self._aim_directly(now, share)
        setpoint.advance(aim)
        if (homing := self.encoders.homing) is not None:
            np.copyto(self.reference.q, self.joints.q, where=homing.active & np.isfinite(self.joints.q))
        self.groups.stay(self.reference, self.joints.q)
        if self.modes.any and aim is not Aim.MEASURED:
            self.modes.follow(self.joints.q, self.joints.v, self.reference)
        kp, kd = self._gain_shares(now)
        setpoint.fill(share, kp, kd)
        if self.modes.any:
            measured = (self.joints.q, self.joints.v)
            setpoint.v[:], self.tau[:] = self.modes.outputs(*measured, self.reference, self.tau, (kp, kd))
        self.gained.fill(now, state in MOVING)
        self.transmission.command(setpoint.q, setpoint.v, self.tau, out)
        self.transmission.gains(setpoint.kp, setpoint.kd, out)

    def _aim_directly(self, now: float, share: float) -> None:
        if self.machine.state not in MOVING:
            self.modes.release()
            return
        goal = self._setpoint.goal
        to, v = self.modes.aim(self.commands.direct, now, share, self.reference, self.period)
        goal[0], goal[1] = np.where(np.isfinite(v), to, goal[0]), np.where(np.isfinite(v), v, goal[1])

    def _follow(self, now: float) -> float:
        """Set the goal; return the share of feed-forward torque."""
        stepped = f"command stepped by more than {self._setpoint.max_step:g} rad"
        if self.machine.state is PowerState.RUN:
            if self._setpoint.run(now):
                return 1.0
            self.machine.handle(Event.STEPPED, now, stepped)
        share = self._blend.share(now)
        if self._setpoint.blend(now, self._blend.hold, share):
            return share
        self.machine.handle(Event.STEPPED, now, stepped)
        self._setpoint.aim_at(self._blend.hold)
        return 0.0

    def _gain_shares(self, now: float) -> tuple[float, float]:
        """Return shares of kp and kd: both rise after power-on, kp falls before power-off."""
        if not math.isfinite(self._powered_since):
            return 0.0, 0.0
        up = min(max((now - self._powered_since) / GAIN_RAMP, 0.0), 1.0)
        down = 1.0
        if math.isfinite(self._resting_since):
            down = min(max(1.0 - (now - self._resting_since) / GAIN_RAMP, 0.0), 1.0)
        return up * down, up

    # -- live changes -------------------------------------------------------------------------------------------------

    def scale_velocity(self, share: float) -> None:
        """Limit commands to a share of the file's speed limits.

        Raises:
            ConfigError: if a limit rises while commands are followed.
        """
        velocity = share * self.hardware.column("velocity")
        if self.machine.state in MOVING and (velocity > self.speeds.goal).any():
            raise ConfigError(f"limits can only be narrowed in {self.machine.state.name}: stop first")
        self.speeds.goal[:] = velocity

    def set_zeros(self, angles: Mapping[str, float], allow_large: bool = False) -> dict[str, Zero]:
        """Calibrate: these joints are at these angles now [rad].

        Returns:
            The whole calibration, in use already, to be saved.

        Raises:
            ConfigError: if the drives have power, or as `new_zeros`.
            RobotError: as `check_change`.
        """
        if self.machine.state is not PowerState.MONITOR:
            raise ConfigError(f"zeros can be set only without power: state is {self.machine}")
        still = self.fresh & (self._seen.still >= STILL_TIME)
        new = new_zeros(self.hardware, self.transmission, self.buses, angles, still)
        check_change(self.zeros, new, allow_large)
        self.zeros = {**self.zeros, **new}
        self.transmission = self.hardware.transmission(self.zeros)
        self.jumps.restart()
        return dict(self.zeros)

    # -- figures ------------------------------------------------------------------------------------------------------

    def clipped(self) -> list[str]:
        """Return joints with commands beyond limits for CLIPPED_TIME."""
        return [self.hardware.names[k] for k in np.flatnonzero(self._setpoint.clipped > CLIPPED_TIME).tolist()]

    def following_error(self) -> np.ndarray:
        """Return |sent - measured| (n,) [rad]."""
        return np.abs(self._setpoint.sent - self.joints.q)
