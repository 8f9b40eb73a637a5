"""Homing on loopback drives with switches and hard stops: one joint of a group at a time, and what ends it."""

import itertools

import numpy as np
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import read_hardware_file
from humanoid_control.hardware.power import PowerState
from humanoid_control.robots import load_robot

MONITOR, HOLD, RUN, FAULT, ESTOP = (PowerState[n] for n in ("MONITOR", "HOLD", "RUN", "FAULT", "ESTOP"))
JOINTS = ("l_elbow_flexion", "r_elbow_flexion", "l_shoulder_flexion")
ROWS = {  # where each joint truly is at the start, where its switch or stop is, and the angle that this is
    "l_elbow_flexion": "start: 0.3, switch: -0.1, homing: {method: 17, angle: 0.05, speed: 1.0, slow: 0.2}",
    "r_elbow_flexion": "start: 0.2, upper_stop: 0.6, homing: {method: -2, angle: 2.0, speed: 0.8, effort: 9}",
    "l_shoulder_flexion": "start: 0.0, switch: 0.2, homing: {method: 18, angle: 0.5, speed: 1.0, slow: 0.2}",
}
GROUPS = "groups: {arms: [l_elbow_flexion, r_elbow_flexion], shoulders: [l_shoulder_flexion]}\n"
FILE = """schema: humanoid_hardware/1
robot: hrp2
rate: 500
soft_start: 0.2
soft_speed: 2.0
buses: {{one: {{transport: loopback, {bus}}}}}
{groups}joints:
"""


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


class Rig:
    """The three joints on drives that do not know their zeros, cycled at 500 Hz of the test's own time."""

    def __init__(self, robot, clock, folder, bus="delay: 0.004", groups=GROUPS, **rows):
        text = FILE.format(bus=bus, groups=groups)
        neutral = robot.postures["neutral"]
        for k, name in enumerate(robot.joint_names):
            own = {**ROWS, **rows}.get(name)
            driven = f"bus: one, id: {k}, absolute: false, {own}"
            text += f"  {name}: {{{driven if own else f'fixed: {neutral[k]:.6f}'}}}\n"
        path = folder / "hrp2.hardware.yaml"
        path.write_text(text)
        self.clock = clock
        self.driver = Driver(read_hardware_file(path, robot), clock=clock)
        (self.bus,) = self.driver.buses.transports.values()
        self.bus.clock = clock
        self.names = self.driver.hardware.names
        self.homing, self.told = [], []
        self.driver.open()

    @property
    def state(self):
        return self.driver.machine.state

    def run(self, seconds, command=None, until=None):
        for _ in range(round(seconds / 0.002)):
            self.clock.now += 0.002
            if command is not None:
                q, nothing = np.array(command, dtype=float), np.full(len(command), np.nan)
                self.driver.command(JointCommand(q, np.zeros(len(q)), nothing), self.clock.now, self.clock.now)
            self.driver.cycle()
            if self.driver.encoders.homing is not None:
                active = tuple(self.names[k] for k in np.flatnonzero(self.driver.encoders.homing.active))
                if active and active not in self.homing[-1:]:
                    self.homing.append(active)
            self.told.append(self.bus.q.copy())
            if until is not None and until():
                return self
        assert until is None, f"not so in {seconds} s: {self.driver.machine}"
        return self

    def to(self, state, seconds=5.0, command=None):
        return self.run(seconds, command, until=lambda: self.state is state)

    def hold(self):
        self.run(0.05)
        assert self.driver.enable() == ""
        return self.to(HOLD)

    def begin(self, *names):
        assert self.hold().driver.home(names) == ""
        return self

    def over(self):
        return self.run(20.0, until=lambda: self.driver.encoders.homing is None)

    def speeds(self):
        return np.abs(np.diff(self.told, axis=0)).max(axis=0) / 0.002


@pytest.fixture
def rig(robot, clock, tmp_path):
    return lambda *given, **more: Rig(robot, clock, tmp_path, *given, **more)


def test_joints_find_their_zeros_one_of_a_group_at_a_time(rig):
    r = rig().begin()
    assert "homing" in str(r.run(0.1).driver.machine)
    r.over()
    assert r.state is HOLD and r.driver.encoders.missing() == [] and r.driver.machine.reason == ""
    for a, b in itertools.pairwise(r.homing):
        assert set(a) != set(b)
    assert r.homing[0] == tuple(n for n in r.names if n != "r_elbow_flexion"), "both groups begin at once"
    assert not any({"l_elbow_flexion", "r_elbow_flexion"} <= set(active) for active in r.homing)
    true, read = dict(zip(r.names, r.bus.q, strict=True)), dict(zip(r.names, r.driver.joints.q, strict=True))
    for name, place, angle in (("l_elbow_flexion", -0.1, 0.05), ("l_shoulder_flexion", 0.2, 0.5)):
        assert abs((read[name] - true[name]) - (angle - place)) < 0.002, f"{name} is read by its switch"
        assert abs(true[name] - place) < 0.02, "and came back from it slowly"
    # At a hard stop the drive has pressed itself against it.
    assert abs((read["r_elbow_flexion"] - true["r_elbow_flexion"]) - (2.0 - 0.6)) < 0.002
    assert (np.abs(r.bus.tau) < 9.5).all()
    r.run(0.5)
    assert (r.speeds() < 1.2).all(), "no joint jumped when its zero changed"
    there = [0.3, 1.8, 0.3]
    order = [there[JOINTS.index(n)] for n in r.names]
    r.to(RUN, command=order).run(1.0, order)
    np.testing.assert_allclose(r.driver.joints.q, order, atol=1e-3)


def test_without_groups_one_joint_at_all_is_homed_at_a_time(rig):
    r = rig("", "").begin().over()
    assert [len(active) for active in r.homing] == [1, 1, 1]
    assert sorted(n for (n,) in r.homing) == sorted(JOINTS)


def test_commands_are_not_followed_before_the_joints_know_their_zeros(rig):
    r = rig().hold()
    r.run(1.0, command=[0.3, 0.3, 0.3])
    assert r.state is HOLD and set(r.driver.encoders.missing()) == set(JOINTS)
    assert r.driver.home(["l_elbow_flexion"]) == ""
    r.over()
    r.run(1.0, command=[0.3, 0.3, 0.3])
    assert r.state is HOLD and "l_elbow_flexion" not in r.driver.encoders.missing(), "of the others nothing is known"


def test_a_joint_that_reads_nonsense_before_it_is_homed_gets_power_all_the_same(rig):
    r = rig()
    r.bus.zero[:] = 40.0  # far outside of every range
    r.hold().run(0.1)
    assert r.state is HOLD and r.driver.joints.q.min() > 35
    assert r.driver.home() == ""
    r.over()
    assert (np.abs(r.driver.joints.q) < 3).all() and r.state is HOLD


def test_homing_is_for_hold_alone(rig):
    r = rig()
    assert "in HOLD: state is MONITOR" in r.run(0.1).driver.home()
    r.begin()
    assert "in HOLD: state is HOLD: homing" in r.run(0.1).driver.home(), "it goes on already"
    r.over()
    assert "nothing to do" in r.driver.home()
    assert "no homing in the hardware file for waist_rotation" in r.driver.home(["waist_rotation"])
    assert r.driver.home(["l_elbow_flexion"]) == "", "again, because somebody asked for this one"
    r.run(0.02)
    assert r.driver.encoders.missing() == ["l_elbow_flexion"]
    r.over()
    r.to(RUN, command=r.driver.reference.q.tolist())
    assert "state is RUN" in r.driver.home(["l_elbow_flexion"])


@pytest.mark.parametrize("way", ["stop", "disable", "estop", "fault"])
def test_what_stops_the_robot_ends_homing(rig, way):
    r = rig().begin().run(0.1)
    driver = r.driver
    assert np.abs(r.driver.joints.v).max() > 0.5
    if way == "estop":
        driver.emergency_stop("test", True)
    elif way == "fault":
        r.bus.fail("l_elbow_flexion", 0x4310)
    else:
        assert getattr(driver, way)() == ""
    state = {"stop": HOLD, "disable": MONITOR, "estop": ESTOP, "fault": FAULT}[way]
    r.to(state).run(0.5)
    coasting = 0.1 if way == "disable" else 1e-3  # these drives hardly have friction once they have no power
    assert driver.encoders.homing is None and np.abs(r.bus.v).max() < coasting
    assert set(driver.encoders.missing()) == set(JOINTS)
    at = r.bus.q.copy()
    r.run(1.0)
    np.testing.assert_allclose(r.bus.q, at, atol=max(coasting, 1e-4))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("start: 0.3, homing: {method: 17, angle: 0.05, timeout: 0.7}", "not finished after 0.7 s"),
        ("start: 0.3, homing: {method: 21, angle: 0.05}", "the drive did not find its zero"),
    ],
)
def test_a_joint_that_does_not_find_its_zero_is_a_fault(rig, row, words):
    r = rig(l_elbow_flexion=row).begin().to(FAULT)
    assert f"homing of l_elbow_flexion failed: {words}" in r.driver.machine.reason
    r.run(0.3)
    assert np.abs(r.bus.v).max() < 1e-3 and r.driver.encoders.homing is None


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"l_elbow_flexion": "start: 0.3, homing: {method: 0, angle: 0}"}, "method must be a CiA 402 homing method"),
        ({"l_elbow_flexion": "start: 0.3, homing: {method: 17}"}, "lacks the key 'angle'"),
        ({"l_elbow_flexion": "start: 0.3, homing: {method: 17, angle: 0, sped: 1}"}, "did you mean speed"),
        ({"l_elbow_flexion": "start: 0.3, homing: {method: 17, angle: 0, speed: 99}"}, "speed"),
        ({"l_elbow_flexion": "start: 0.3, homing: {method: 17, angle: 9}"}, "angle"),
        ({"groups": "groups: {a: [l_elbow_flexion], b: [l_elbow_flexion]}\n"}, "l_elbow_flexion is in two groups"),
        ({"groups": "groups: {a: [l_elbw_flexion]}\n"}, "did you mean l_elbow_flexion"),
        ({"groups": "groups: {a: l_elbow_flexion}\n"}, "must be a list of names"),
    ],
)
def test_mistakes_in_the_file_are_said_with_their_line(rig, rows, words):
    with pytest.raises(HumanoidError, match=r"hrp2.hardware.yaml:\d+: ") as refused:
        rig(**rows)
    assert words in str(refused.value)
