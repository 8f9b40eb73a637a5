"""A group of joints stops alone when one of its joints fails, unless it carries the robot or shares a bus."""

import numpy as np
import pytest

from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.fault_groups import carrying_joints
from humanoid_control.hardware.hardware_file import Bus, DrivenJoint, GearRow, Hardware
from humanoid_control.hardware.loopback import DriveState
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.supervision import WARN
from humanoid_control.hardware.transport import ActuatorSpec, BusSpec
from humanoid_control.robots import load_robot

NAMES = ("l_knee_flexion", "l_elbow_flexion", "r_shoulder_flexion", "r_elbow_flexion")
GROUPS = {"legs": NAMES[:1], "left arm": NAMES[1:2], "right arm": NAMES[2:]}
KNEE, LEFT, RIGHT = 0, 1, 3
OVERHEATED = 0x4310


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


class Rig:
    """A knee and two arms of HRP-2 on loopback buses, cycled at 500 Hz of the test's own time."""

    def __init__(self, robot, clock, buses=(NAMES[:1], NAMES[1:2], NAMES[2:]), groups=None):
        order = [n for n in robot.joint_names if n in NAMES]
        joints, start = [], robot.postures["neutral"]
        for name in order:
            i = robot.index[name]
            joints.append(DrivenJoint(name, robot.lower[i], robot.upper[i], 3.0, 20.0, 30.0))
        made = []
        for k, names in enumerate(buses):
            specs = tuple(
                ActuatorSpec(n, j, effort=50.0, options={"start": float(start[robot.index[n]])})
                for j, n in enumerate(names)
            )
            made.append(Bus("loopback", BusSpec(f"bus{k}", specs, 0.002)))
        values = {"groups": GROUPS if groups is None else groups, "soft_start": 0.2, "guardian": "never"}
        gears = {n: GearRow() for n in order}
        self.driver = d = Driver(Hardware(robot, None, tuple(made), tuple(joints), gears, **values), clock=clock)
        self.clock, self.order = clock, order
        self.buses = list(d.buses.transports.values())
        for bus in self.buses:
            bus.clock = clock
        d.open()
        self.run(0.1)
        assert d.enable() == ""
        self.goal = d.reference.q.copy()
        self.run(1.5)
        assert self.state is PowerState.RUN

    @property
    def state(self):
        return self.driver.machine.state

    def run(self, seconds, moving=True):
        for k in range(round(seconds / 0.002)):
            self.clock.now += 0.002
            if moving and k % 2 == 0 and hasattr(self, "goal"):
                n = len(self.order)
                q = self.goal + 0.1 * np.sin(self.clock.now)
                self.driver.command(JointCommand(q, np.full(n, np.nan), np.full(n, np.nan)), *[self.clock.now] * 2)
            self.driver.cycle()
        return self

    def bus(self, name):
        """Bus of a joint, and its place there."""
        return next((b, b.names.index(name)) for b in self.buses if name in b.names)

    def fail(self, name, code=OVERHEATED):
        self.bus(name)[0].fail(name, code)
        return self

    def drive(self, name):
        bus, k = self.bus(name)
        return DriveState(bus.drive[k])

    def q(self, name):
        return float(self.driver.joints.q[self.order.index(name)])


@pytest.fixture
def rig(robot, clock):
    return lambda **changed: Rig(robot, clock, **changed)


def test_joints_that_carry_are_those_of_the_legs(robot):
    carrying = carrying_joints(robot)
    assert "l_knee_flexion" in carrying and "r_ankle_flexion" in carrying
    assert not {"l_elbow_flexion", "waist_yaw", *NAMES[1:]} & carrying


def test_a_group_stops_and_the_others_go_on(rig):
    r = rig()
    r.run(0.5).fail(NAMES[RIGHT]).run(0.2)
    assert r.state is PowerState.RUN
    assert r.drive(NAMES[2]) is DriveState.QUICK_STOP_ACTIVE, "the other joint of the group"
    assert all(r.drive(n) is DriveState.OPERATION_ENABLED for n in NAMES[:2])
    (finding,) = [f for f in r.driver.findings if f.level >= WARN]
    assert finding.text == "group right arm stopped: r_elbow_flexion drive: excess temperature of the drive"
    r.run(0.8)
    assert (
        r.drive(NAMES[2]) is not DriveState.OPERATION_ENABLED and r.drive(NAMES[2]) is not DriveState.QUICK_STOP_ACTIVE
    )
    before = {n: r.q(n) for n in NAMES}
    r.goal = r.goal + 0.1
    r.run(2.0)
    assert r.state is PowerState.RUN, "commands of stopped joints are no steps"
    assert all(abs(r.q(n) - before[n]) < 1e-3 for n in NAMES[2:]), "stopped joints stay"
    assert all(abs(r.q(n) - before[n]) > 0.03 for n in NAMES[:2]), "the others follow"


@pytest.mark.nightly
def test_a_stopped_group_gets_power_by_nothing_but_clear_and_enable(rig):
    r = rig()
    r.fail(NAMES[LEFT]).run(1.0)
    assert "left arm stopped" in r.driver.clear_faults() and r.state is PowerState.RUN
    r.driver.disable()
    r.run(1.0)
    assert r.state is PowerState.MONITOR
    refused = r.driver.enable()
    assert "group left arm stopped: l_elbow_flexion drive" in refused
    assert r.driver.clear_faults() == ""
    r.run(0.1)
    assert r.driver.refusals() == [] and r.drive(NAMES[LEFT]) is not DriveState.OPERATION_ENABLED
    assert r.driver.enable() == ""
    r.run(1.5)
    assert r.state is PowerState.RUN and r.drive(NAMES[LEFT]) is DriveState.OPERATION_ENABLED
    assert abs(r.q(NAMES[LEFT]) - r.driver.reference.q[r.order.index(NAMES[LEFT])]) < 0.05


@pytest.mark.nightly
def test_two_groups_may_stop(rig):
    r = rig()
    r.fail(NAMES[LEFT]).run(0.3).fail(NAMES[RIGHT]).run(0.3)
    assert r.state is PowerState.RUN and list(r.driver.groups.stopped) == ["left arm", "right arm"]
    assert r.drive(NAMES[KNEE]) is DriveState.OPERATION_ENABLED


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, NAMES[KNEE]),
        ({"groups": {}}, NAMES[LEFT]),
        ({"buses": (NAMES[:2], NAMES[2:])}, NAMES[LEFT]),
        ({"groups": {"all": NAMES}}, NAMES[LEFT]),
    ],
    ids=["a leg", "no group", "a shared bus", "a group with a leg"],
)
def test_all_else_stops_the_robot(rig, changed, name):
    r = rig(**changed)
    r.fail(name).run(0.1)
    assert r.state is PowerState.FAULT and name in r.driver.machine.reason
    assert not any(r.drive(n) is DriveState.OPERATION_ENABLED for n in NAMES)


def test_a_leg_stops_all_also_after_a_group_has_stopped(rig):
    r = rig()
    r.fail(NAMES[LEFT]).run(0.5).fail(NAMES[KNEE]).run(1.0)
    assert r.state is PowerState.FAULT
    assert r.driver.clear_faults() == ""
    r.run(0.5)
    assert r.state is PowerState.MONITOR and r.driver.refusals() == []


def test_what_one_joint_does_wrong_stops_its_group_by_any_check(rig):
    """Not only faults that drives tell: a joint that cannot follow."""
    r = rig()
    bus, k = r.bus(NAMES[LEFT])
    bus.stuck[k] = True
    r.goal = r.goal + 0.25
    r.run(2.0)
    assert r.state is PowerState.RUN and "following error" in r.driver.groups.stopped["left arm"]
