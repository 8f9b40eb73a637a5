"""The driver on loopback drives: a day's work, and every fault; time is the test's own."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.hardware.calibration import Zero
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import Bus, DrivenJoint, GearRow, Hardware
from humanoid_control.hardware.loopback import DriveState, LoopbackTransport
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import ActuatorSpec, ActuatorState, BusSpec, Mode, Transport
from humanoid_control.robots import load_robot

OFFLINE, MONITOR, ENABLING, HOLD, BLEND, RUN, STOPPING, FAULT, ESTOP = PowerState


class Rig:
    """The two elbows of HRP-2 on a loopback bus each, cycled at 500 Hz of the test's own time."""

    names = ("l_elbow_flexion", "r_elbow_flexion")

    def __init__(self, robot, clock, options=None, actuator=None, joint=None, driver=None, **hardware):
        self.clock = clock
        names = [n for n in robot.joint_names if n in self.names]
        start = robot.postures["neutral"]
        joints, buses = [], []
        for k, name in enumerate(names):
            i = robot.index[name]
            values = {"velocity": 3.0, "acceleration": 20.0, "effort": 30.0, **(joint or {})}
            joints.append(DrivenJoint(name, robot.lower[i], robot.upper[i], **values))
            own = {"start": float(start[i]), **(actuator or {})}
            spec = ActuatorSpec(name, k, joints[-1].mode, effort=50.0, options=own)
            buses.append(Bus("loopback", BusSpec(f"bus{k}", (spec,), 0.002, options or {})))
        values = {"guardian": "never", "soft_start": 0.2, "soft_speed": 2.0, **hardware}
        self.hardware = Hardware(robot, None, tuple(buses), tuple(joints), {n: GearRow() for n in names}, **values)
        self.driver = Driver(self.hardware, clock=clock, **(driver or {}))
        self.left, self.right = self.driver.buses.transports.values()
        for bus in (self.left, self.right):
            bus.clock = clock
        self.states = [OFFLINE]
        self.trace = []
        self.driver.open()

    @property
    def state(self):
        return self.driver.machine.state

    @property
    def reason(self):
        return self.driver.machine.reason

    def run(self, seconds, command=None, until=None):
        """Cycles; `command(t)` gives (q, v) every 4 ms. Ends early in a state."""
        for k in range(round(seconds / 0.002)):
            self.clock.now += 0.002
            if command is not None and k % 2 == 0:
                q, v = command(self.clock.now)
                n = len(self.names)
                self.driver.command(
                    JointCommand(np.broadcast_to(np.asarray(q, float), (n,)).copy(),
                                 np.broadcast_to(np.asarray(v, float), (n,)).copy(), np.full(n, np.nan)),
                    self.clock.now, self.clock.now,
                )  # fmt: skip
            self.driver.cycle()
            if self.state is not self.states[-1]:
                self.states.append(self.state)
            self.trace.append((self.clock.now, *self.driver.reference.q, self.left.q[0], self.right.q[0]))
            if until is not None and self.state is until:
                return self
        assert until is None, f"{self.driver.machine} in place of {until.name}"
        return self

    def to(self, state, command=None, seconds=8.0):
        return self.run(seconds, command, until=state)

    def enabled(self):
        self.run(0.05)
        assert self.driver.enable() == ""
        return self.to(HOLD)

    def running(self, command=None):
        self.command = command or self.still
        return self.enabled().to(RUN, self.command)

    def still(self, _):
        return self.hold_at, 0.0

    @property
    def hold_at(self):
        return self.driver.reference.q.copy()

    def powered(self):
        return [bool(b.drive[0] == DriveState.OPERATION_ENABLED) for b in (self.left, self.right)]

    def speeds(self):
        """Of the references [rad/s] over all cycles."""
        t = np.array(self.trace)
        return np.diff(t[:, 1:3], axis=0) / 0.002


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


@pytest.fixture
def rig(robot, clock):
    return lambda **changed: Rig(robot, clock, **changed)


def sine(rig, amplitude=0.2, w=2.0):
    q0, t0 = rig.hold_at, rig.clock.now
    return lambda t: (q0 + amplitude * np.sin(w * (t - t0)), amplitude * w * np.cos(w * (t - t0)))


def test_a_working_day(rig):
    r = rig()
    r.run(0.1)
    assert r.state is MONITOR and r.powered() == [False, False] and r.left.written == 0
    start = r.left.q.copy()
    r.enabled()
    assert r.powered() == [True, True] and abs(r.left.q - start).max() < 1e-6
    follow = sine(r)
    r.run(1.5, follow)
    assert r.state is RUN
    q = follow(r.clock.now - 0.008)[0]
    assert abs(r.left.q[0] - q[0]) < 0.02 and abs(r.right.q[0] - q[1]) < 0.02
    assert r.driver.disable() == ""
    r.to(MONITOR, follow)
    assert r.powered() == [False, False]
    r.run(1.0, follow)
    assert r.state is MONITOR, "commands alone give no power"
    assert r.states == [OFFLINE, MONITOR, ENABLING, HOLD, BLEND, RUN, STOPPING, MONITOR]
    r.driver.close()
    assert r.state is OFFLINE


def test_the_blend_begins_where_the_robot_is_and_adds_no_more_than_its_speed(rig):
    r = rig(soft_start=0.2, soft_speed=0.5).enabled()
    goal = r.hold_at + [0.6, -0.0]
    r.to(RUN, lambda t: (goal, 0.0))
    assert np.abs(r.speeds()).max() < 0.51 and abs(r.hold_at - goal).max() < 1e-3
    seconds = r.clock.now - next(t[0] for t in r.trace if abs(t[1] - r.trace[0][1]) > 1e-6)
    assert seconds == pytest.approx(1.875 * 0.6 / 0.5, rel=0.1)


def test_silence_of_commands_stops_and_holds_and_their_return_is_blended(rig):
    r = rig()
    r.enabled().run(1.0, sine(r, 0.3, 3.0))
    assert r.state is RUN
    begin = r.clock.now
    r.to(STOPPING)
    assert 0.1 - 1e-9 <= r.clock.now - begin <= 0.11 and r.reason == "stopped: joint_commands silent for 0.10 s"
    r.to(HOLD)
    held = r.hold_at
    assert np.abs(np.diff(r.speeds(), axis=0)).max() <= 20 * 0.002 + 1e-9
    r.run(0.5)
    assert (r.hold_at == held).all() and r.state is HOLD and "silent" in r.reason
    r.run(0.19, lambda t: (held + 0.5, 0.0))
    assert r.state is HOLD
    r.to(RUN, lambda t: (held + 0.5, 0.0))
    assert r.states[-4:] == [STOPPING, HOLD, BLEND, RUN] and np.abs(r.speeds()).max() <= 3.0 + 1e-9


def test_after_a_stop_that_was_asked_for_commands_are_not_followed_until_enable(rig):
    r = rig().running()
    follow = sine(r)
    assert r.driver.stop() == ""
    r.to(HOLD, follow)
    r.run(1.0, follow)
    assert r.state is HOLD and "enable resumes" in r.reason
    assert r.driver.enable() == ""
    r.to(RUN, follow)


def test_a_step_of_the_commands_is_blended_to(rig):
    r = rig().running()
    goal = r.hold_at + 0.5
    r.to(BLEND, lambda t: (goal, 0.0), seconds=0.1)
    assert "stepped by more than 0.3 rad" in r.reason
    r.to(RUN, lambda t: (goal, 0.0))
    assert np.abs(r.speeds()).max() <= 2.0 + 0.1
    small = r.hold_at + 0.2
    r.run(0.5, lambda t: (small, 0.0))
    assert r.state is RUN and np.abs(r.hold_at - small).max() < 1e-6


def test_commands_beyond_the_limits_are_followed_inside_them_and_said(rig):
    r = rig(max_step=10.0).running()
    r.run(1.5, sine(r, 0.9, 8.0))
    v = r.speeds()
    assert np.abs(v).max() <= 3.0 + 1e-9 and np.abs(np.diff(v, axis=0)).max() <= 20 * 0.002 + 1e-7
    assert r.driver.clipped()
    r.run(2.0, lambda t: (99.0, 0.0))
    assert (r.hold_at <= r.driver.limits.upper).all() and (r.hold_at >= r.driver.limits.lower).all()


def test_joints_that_a_command_leaves_out_hold(rig):
    r = rig().enabled()
    q = r.hold_at
    r.to(RUN, lambda t: ([q[0] + 0.2, np.nan], [0.0, np.nan]))
    r.run(0.3, lambda t: ([q[0] + 0.2, np.nan], [0.0, np.nan]))
    assert r.hold_at == pytest.approx([q[0] + 0.2, q[1]])


def test_feed_forward_comes_with_the_blend_and_goes_with_the_commands(rig):
    r = rig().enabled()
    q, tau = r.hold_at, []

    def pushed(t):
        command = JointCommand(q.copy(), np.zeros(2), np.array([5.0, 999.0]))
        r.driver.command(command, t, t)
        return q, 0.0

    for _ in range(500):
        pushed(r.clock.now)
        r.run(0.002)
        tau.append((r.state, *r.driver.tau))
    blended = [t for s, t, _ in tau if s is BLEND]
    assert blended[0] < 0.1 and all(np.diff(blended) >= 0) and tau[-1] == (RUN, 5.0, 30.0)
    r.to(HOLD)
    assert r.driver.tau.tolist() == [0.0, 0.0]


# -- what refuses power

REFUSED = {
    "drive fault": (lambda r: r.left.fail(r.names[0], 0x4310, stays=True), "excess temperature of the drive"),
    "silent": (lambda r: r.left.mute.__setitem__(0, True), "silent for"),
    "jumped": (lambda r: r.left.q.__setitem__(0, 9.0), "encoder jumps"),
    "moving": (lambda r: r.left.v.__setitem__(0, 0.3), "moves at"),
    "foreign": (lambda r: setattr(r.right, "busy", "another program commands this robot"), "another program"),
    "powered": (lambda r: [r.left.power(True) for _ in range(3)], "by another program"),
    "estop": (lambda r: r.driver.estop.update(button="emergency stop by button"), "emergency stop by button"),
    "hot": (lambda r: r.left.temperature.__setitem__(0, 90.0), "temperature"),
    "gone": (lambda r: setattr(r.left, "gone", True), "gone"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_power_is_refused_with_its_reason(rig, what):
    spoil, says = REFUSED[what]
    r = rig(options={"watchdog": 9.0})
    r.run(0.1)
    spoil(r)
    r.run(0.15)
    assert says in r.driver.enable() and not r.driver.machine.powered
    r.run(0.1)
    assert r.state in (MONITOR, FAULT) and r.left.written == r.right.written == 0


def test_a_joint_outside_its_range_gets_no_power(rig):
    r = rig(actuator={"start": 2.9})
    r.run(0.1)
    beyond = 2.9 - r.hardware.joints[0].upper
    assert r.driver.enable().startswith(f"l_elbow_flexion {beyond:.2f} rad outside its range; r_elbow")


def test_lost_samples_refuse_power(rig):
    r = rig(options={"loss": 0.05, "seed": 3})
    r.run(3.0)
    assert "% of the samples of" in r.driver.enable()


def test_an_actuator_that_was_not_calibrated_is_named(rig):
    r = rig(needs_calibration=("r_elbow_flexion",), actuator={"serial": "B3"})
    r.run(0.1)
    assert r.driver.enable() == "r_elbow_flexion not calibrated"
    r.driver.zeros = {"r_elbow_flexion": Zero(0.0, serial="B2")}
    assert "its drive is B3, but B2 was calibrated" in r.driver.enable()
    r.driver.zeros = {"r_elbow_flexion": Zero(0.0, serial="B3")}
    assert r.driver.enable() == ""


def test_zeros_are_set_at_rest_and_without_power(rig):
    r = rig(actuator={"serial": "A1"})
    r.run(0.1)
    with pytest.raises(ConfigError, match=r"not been at rest for 0\.5 s"):
        r.driver.set_zeros({"l_elbow_flexion": 0.0})
    r.run(0.6)
    was = r.driver.joints.q.copy()
    zeros = r.driver.set_zeros({"l_elbow_flexion": was[0] + 0.15})
    assert zeros["l_elbow_flexion"].zero == pytest.approx(0.15) and zeros["l_elbow_flexion"].serial == "A1"
    r.run(0.01)
    assert r.driver.joints.q == pytest.approx([was[0] + 0.15, was[1]])
    with pytest.raises(RobotError, match=r"would change by 0\.25 rad"):
        r.driver.set_zeros({"l_elbow_flexion": was[0] - 0.1})
    assert set(r.driver.set_zeros({"r_elbow_flexion": was[1]}, allow_large=True)) == set(r.names)
    r.running()
    with pytest.raises(ConfigError, match="without power"):
        r.driver.set_zeros({"l_elbow_flexion": 0.0})


def test_speed_limits_only_fall_while_commands_are_followed(rig):
    r = rig()
    r.driver.scale_velocity(0.5)
    r.running()
    with pytest.raises(ConfigError, match="narrowed"):
        r.driver.scale_velocity(0.8)
    r.driver.scale_velocity(0.2)
    r.run(0.2, r.still)
    assert r.driver.limits.velocity.tolist() == pytest.approx([0.6, 0.6])
    r.to(HOLD)
    r.driver.scale_velocity(1.0)


def test_drives_that_do_not_stop_by_themselves_need_a_guardian(rig):
    r = rig(guardian="auto", options={"silence": "LAST_COMMAND"})
    r.run(0.1)
    assert r.driver.enable() == "no guardian for bus bus0, bus1"


# -- what ends motion

FAULTS = {
    "drive": (lambda r: r.left.fail(r.names[0], 0x8611), "following error", 0.01),
    "stuck": (lambda r: r.left.stuck.__setitem__(0, True), "following error", 1.0),
    "mute": (lambda r: r.right.mute.__setitem__(0, True), "silent for", 0.03),
    "cut": (lambda r: setattr(r.left, "cut", True), "silent for", 0.03),
    "gone": (lambda r: setattr(r.left, "gone", True), "bus bus0: gone", 0.005),
    "hot": (lambda r: r.left.temperature.__setitem__(0, 85.0), "l_elbow_flexion temperature", 0.2),
    "encoder": (lambda r: r.left.encoder.__setitem__(0, 0.7), "encoder jumps", 0.01),
    "foreign": (lambda r: setattr(r.right, "busy", "another program commands"), "another program", 0.005),
    "dropped": (lambda r: r.left.drive.__setitem__(0, 0), "lost its power", 0.01),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_stops_all_drives_and_is_latched(rig, what):
    spoil, says, within = FAULTS[what]
    r = rig().enabled()
    follow = sine(r, 0.5, 3.0)
    r.to(RUN, follow).run(0.1, follow)
    spoil(r)
    begin = r.clock.now
    r.to(FAULT, follow, seconds=within)
    assert says in r.reason, r.reason
    assert r.clock.now - begin <= within
    assert r.right.drive[0] in (DriveState.QUICK_STOP_ACTIVE, DriveState.FAULT), "the other one stops as well"
    r.run(0.8, follow)
    assert r.state is FAULT and not any(r.powered()) and r.driver.enable().startswith("state is FAULT")


def test_a_fault_is_cleared_once_its_cause_is_gone_and_power_does_not_come_back(rig):
    r = rig().running()
    r.left.fail(r.names[0], 0x4310, stays=True)
    r.to(FAULT)
    r.run(1.0)
    assert r.driver.clear_faults() == ""
    r.run(2.1, r.still)
    assert r.state is FAULT, "the cause is still there"
    r.left.clear_fault(r.names[0])
    assert r.driver.clear_faults() == ""
    r.to(MONITOR, r.still)
    r.run(1.0, r.still)
    assert r.state is MONITOR and r.powered() == [False, False]
    assert r.driver.clear_faults().startswith("nothing to clear")
    assert r.driver.enable() == ""
    r.to(RUN, r.still)


def test_a_bus_that_comes_back_is_opened_again_without_power(rig):
    r = rig().running()
    r.left.gone = True
    r.to(FAULT)
    r.run(2.5)
    assert r.driver.clear_faults() == "bus bus0: gone"
    r.left.gone = False
    r.run(1.1)
    assert not r.driver.buses.lost and r.state is FAULT and r.powered() == [False, False]
    assert r.driver.clear_faults() == ""
    r.to(MONITOR)


def test_an_emergency_stop_is_on_the_bus_in_two_cycles_and_power_goes(rig):
    r = rig().enabled()
    follow = sine(r, 0.5, 3.0)
    r.to(RUN, follow).run(0.1, follow)
    r.driver.emergency_stop("button", True)
    r.run(0.004, follow)
    assert r.state is ESTOP and all(b.drive[0] == DriveState.QUICK_STOP_ACTIVE for b in (r.left, r.right))
    r.driver.emergency_stop("person", True)
    r.run(1.0, follow)
    assert all(b.drive[0] == DriveState.SWITCH_ON_DISABLED for b in (r.left, r.right))
    assert "button" in r.driver.clear_faults() and "person" in r.driver.clear_faults()
    r.driver.emergency_stop("button", False)
    assert "button" not in r.driver.clear_faults() and "person" in r.driver.clear_faults()
    r.driver.emergency_stop("person", False)
    r.run(1.0, follow)
    assert r.state is ESTOP, "released is not cleared"
    assert r.driver.clear_faults() == ""
    r.to(MONITOR, follow)
    r.run(0.5, follow)
    assert r.state is MONITOR


def test_a_quick_stop_that_is_lost_on_the_bus_is_sent_again(rig):
    r = rig().running()
    r.left.cut = True
    r.driver.emergency_stop("button", True)
    r.run(0.01)
    assert r.left.drive[0] == DriveState.OPERATION_ENABLED and r.right.drive[0] == DriveState.QUICK_STOP_ACTIVE
    r.left.cut = False
    r.run(0.004)
    assert r.left.drive[0] == DriveState.QUICK_STOP_ACTIVE


def test_a_heartbeat_that_ceases_is_an_emergency_stop(rig):
    r = rig(estop_heartbeat=0.2)
    r.run(0.1)
    assert r.driver.enable() == "no heartbeat on emergency_stop"
    r.driver.heartbeat(r.clock.now)
    assert r.driver.enable() == ""
    for _ in range(10):
        r.driver.heartbeat(r.clock.now)
        r.run(0.1)
    assert r.state is HOLD
    r.to(ESTOP, seconds=0.21)
    assert r.reason == "emergency_stop silent for 0.2 s"


def test_a_cycle_that_comes_late_stops_and_one_that_comes_much_too_late_is_a_fault(rig):
    r = rig().running()
    r.run(0.2, r.still)
    r.clock.now += 0.02
    r.run(0.002, r.still)
    assert r.state is HOLD and "20 ms late" in r.reason, "it was at rest already"
    r.to(RUN, r.still)
    r.clock.now += 0.06
    r.run(0.002, r.still)
    assert r.state is FAULT and "60 ms late" in r.reason


def test_a_mistake_in_the_program_stops_the_drives(rig, monkeypatch):
    r = rig().running()
    monkeypatch.setattr(r.driver.transmission, "read", lambda *_: 1 / 0)
    r.run(0.002, r.still)
    assert r.state is FAULT and r.reason == "cycle failed: ZeroDivisionError: division by zero"
    assert all(b.drive[0] == DriveState.QUICK_STOP_ACTIVE for b in (r.left, r.right))
    r.run(0.1, r.still)
    assert r.state is FAULT


def test_a_machine_without_real_time_may_be_late(rig):
    r = rig(driver={"late_tolerance": 10.0}, command_timeout=0.5).running()
    r.clock.now += 0.09
    r.run(0.2, r.still)
    assert r.state is RUN


def test_drives_that_do_not_enable_are_named(rig):
    r = rig()
    r.run(0.1)
    assert r.driver.enable() == ""
    r.right.power = lambda on: False
    r.to(FAULT, seconds=6.0)
    assert r.reason == "not enabled in 5 s: r_elbow_flexion"


def test_disable_while_enabling_switches_off(rig):
    for ask in ("disable", "stop"):
        r = rig()
        r.run(0.1)
        r.driver.enable()
        r.run(0.002)
        assert r.state is ENABLING and getattr(r.driver, ask)() == ""
        r.to(MONITOR)
        assert r.powered() == [False, False] and HOLD not in r.states


def test_brakes_are_released_last_and_engaged_first(rig):
    r = rig(actuator={"brake": True, "load": 4.0})
    r.run(0.1)
    r.driver.enable()
    released = None
    while r.state is not HOLD:
        r.run(0.002)
        if released is None and not r.left.braked[0]:
            released = r.clock.now
            assert r.powered() == [True, True]
    assert r.clock.now - released >= 0.19
    at = r.left.q.copy()
    r.driver.disable()
    engaged = None
    while r.state is not MONITOR:
        r.run(0.002)
        if engaged is None and r.left.braked[0]:
            engaged = r.clock.now
            assert r.powered() == [True, True]
    assert r.clock.now - engaged >= 0.19 and abs(r.left.q - at).max() < 1e-3


def test_gains_of_impedance_drives_rise_after_enable_and_end_in_damping(rig):
    r = rig(joint={"mode": Mode.IMPEDANCE, "kp": 200.0, "kd": 8.0})
    r.run(0.1)
    r.driver.enable()
    r.to(HOLD)
    kp = []
    for _ in range(300):
        r.run(0.002)
        kp.append(r.driver.buses.command.kp[0])
    assert kp[0] < 2.0 and kp[-1] == 200.0 and max(np.diff(kp)) < 1.0
    r.to(RUN, r.still)
    r.driver.disable()
    seen = []
    while r.state is not MONITOR:
        r.run(0.002, r.still)
        seen.append((r.driver.buses.command.kp[0], r.driver.buses.command.kd[0]))
    assert min(kp for kp, _ in seen[:-2]) < 2.0 and {kd for _, kd in seen[:-2]} == {8.0}


def test_an_impedance_drive_is_not_asked_for_more_than_its_effort(rig):
    r = rig(
        joint={"mode": Mode.IMPEDANCE, "kp": 500.0, "kd": 2.0, "effort": 10.0, "following_error": 9.0}, max_step=9.0
    )
    r.running()
    r.left.stuck[0] = True
    q = r.hold_at + 0.3
    r.run(1.0, lambda t: (q, 0.0))
    c, s = r.driver.buses.command, r.driver.buses.state
    assert 500.0 * abs(c.q[0] - s.q[0]) <= 10.0 + 1e-6 and r.state is RUN


def test_a_dry_run_does_everything_but_write_and_power(rig):
    lines = []
    r = rig(driver={"dry_run": True, "record": lines.append})
    follow = None
    r.enabled()
    follow = sine(r)
    r.to(RUN, follow)
    r.run(1.0, follow)
    assert r.state is RUN and r.left.written == r.right.written == 0 and r.powered() == [False, False]
    assert len(lines) == r.driver.buses.sent > 1000
    assert lines[-1].startswith("bus1 {") and '"names": ["r_elbow_flexion"]' in lines[-1]
    r.driver.emergency_stop("button", True)
    r.run(1.0)
    assert r.state is ESTOP


def test_a_file_asking_for_a_mode_that_the_drives_do_not_have_is_refused(rig, monkeypatch):
    from humanoid_control.hardware import loopback
    from humanoid_control.hardware.transport import HardwareError

    original = loopback.LoopbackTransport.__init__

    def without(self, bus):
        original(self, bus)
        self.modes = frozenset({Mode.POSITION})

    monkeypatch.setattr(loopback.LoopbackTransport, "__init__", without)
    with pytest.raises(HardwareError, match="do not support mode IMPEDANCE"):
        rig(joint={"mode": Mode.IMPEDANCE, "kp": 1.0})


def test_each_bus_reports_what_it_loses_carries_and_is_fed_with(rig):
    r = rig(options={"voltage": 36.0})
    r.run(0.1)
    left, right = r.driver.buses.reports()
    assert (left.name, left.problem, left.load, left.lost, left.missed) == ("bus0", "", 0.0, 0, 0.0)
    assert left.traffic.received == 50 and left.battery.voltage == 36.0
    r.left.mute[:] = True
    r.run(0.1)
    left, right = r.driver.buses.reports()
    assert left.lost == 50 and left.missed > 0.09 and left.traffic.received == 50 and right.lost == 0
    r.left.gone, r.right.busy = True, "another program commands"
    r.run(0.01)
    left, right = r.driver.buses.reports()
    assert "gone" in left.problem and left.battery is None and right.problem == "another program commands"


def test_a_bus_knows_its_supply_by_what_its_drives_measure():
    """What a transport has without doing anything: the median of the drives, none where none measures."""
    state = ActuatorState(3)
    bus = LoopbackTransport(BusSpec("b", (), options={}))
    assert Transport.battery(bus, state) is None and Transport.traffic(bus) == (0, 0, 0)
    state.voltage[:2] = 24.0, 23.0
    assert Transport.battery(bus, state).voltage == 23.5


def test_a_lower_speed_limit_in_motion_is_reached_inside_the_acceleration_limit(rig):
    r = rig().running()
    q0, t0 = r.hold_at, r.clock.now
    r.run(0.4, lambda t: (q0 + 1.5 * (t - t0), 1.5))
    assert r.state is RUN and r.driver.reference.v.max() == pytest.approx(1.5, abs=0.02)
    begin = len(r.trace)
    r.driver.scale_velocity(0.05)
    r.run(0.3, lambda t: (q0 + 1.5 * (t - t0), 1.5))
    change = np.abs(np.diff(r.speeds()[begin - 2 :], axis=0)).max() / 0.002
    assert change <= 20.0 + 1e-6, f"{change:.0f} rad/s^2"
    assert np.abs(r.driver.reference.v).max() <= 0.15 + 1e-9, "and then it holds"
