"""The file of a real robot: what it says becomes numbers in SI units; every mistake names its line."""

import dataclasses

import numpy as np
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware import loopback
from humanoid_control.hardware.hardware_file import hardware_path, read_hardware_file, without_file
from humanoid_control.hardware.transport import Mode
from humanoid_control.robots import load_robot

INERTIA = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
URDF = '<robot name="arm"><link name="base"/>'
for link, parent, joint, low, high, speed, effort in (
    ("upper", "base", "shoulder", -1, 2, 4, 50),
    ("lower", "upper", "elbow", 0, 2.5, 6, 30),
    ("hand", "lower", "wrist", -1.5, 1.5, 8, 5),
):
    URDF += f'''<link name="{link}"><inertial><mass value="1"/>{INERTIA}</inertial></link>
<joint name="{joint}" type="revolute"><parent link="{parent}"/><child link="{link}"/><axis xyz="0 1 0"/>
<limit lower="{low}" upper="{high}" velocity="{speed}" effort="{effort}"/></joint>'''
URDF += "</robot>"
FILE = """schema: humanoid_hardware/1
robot: arm.urdf
rate: 250
command_timeout: 0.2
defaults: {velocity: 0.5, acceleration: 10, effort: 0.8, temperature: [60, 75]}
buses:
  left: {transport: loopback, delay: 0.002, silence: DAMPS}
  right: {transport: loopback}
joints:
  elbow: {bus: right, id: 7, ratio: 100, sign: -1, offset: 0.5, bandwidth: 8}
  shoulder:
    bus: left
    id: 4
    kp: 400
    kd: 9
    ratio: 10
    following_error: 0.3
    limits: {velocity: 3.0, effort: 40, upper: 1.5}
  wrist: {fixed: 0.25}
estop: {heartbeat: 0.5}
guardian: never
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    return tmp_path


def read(folder, text=FILE):
    path = folder / "arm.hardware.yaml"
    path.write_text(text)
    return read_hardware_file(path)


def test_everything_the_file_says_is_taken(folder):
    hw = read(folder)
    assert hw.robot.name == "arm" and hw.robot.base == "fixed" and hw.path.name == "arm.hardware.yaml"
    assert (hw.rate, hw.command_timeout, hw.estop_heartbeat, hw.guardian) == (250.0, 0.2, 0.5, "never")
    assert hw.names == ("shoulder", "elbow"), "in the order of the robot"
    assert hw.actuators == ("shoulder", "elbow") and hw.fixed == {"wrist": 0.25}
    left, right = hw.buses
    assert left.spec.options == {"delay": 0.002, "silence": "DAMPS"} and left.spec.period == 0.004
    assert right.spec.actuators[0].options == {"bandwidth": 8.0} and right.spec.actuators[0].id == 7
    limits = hw.command_limits()
    np.testing.assert_allclose(limits.velocity, [3.0, 0.5 * 6])
    np.testing.assert_allclose(limits.effort, [40.0, 0.8 * 30])
    np.testing.assert_allclose(limits.acceleration, [10.0, 10.0])
    np.testing.assert_allclose([limits.lower, limits.upper], [[-0.98, 0.02], [1.48, 2.48]])
    wide = read(folder, FILE.replace("acceleration: 10", "acceleration: 1000")).command_limits().acceleration
    own = hw.robot.acceleration_limits[:2]
    assert (own < 1000).all()
    np.testing.assert_allclose(wide, own)  # no default is above what a joint's drive can give
    said = FILE.replace("velocity: 3.0", "velocity: 3.0, acceleration: 900").replace("effort: 40", "effort: 40.0")
    np.testing.assert_allclose(read(folder, said).command_limits().acceleration, [900.0, 10.0])
    watched = hw.supervision_limits()
    np.testing.assert_allclose(watched.following_error, [0.3, 0.15])
    np.testing.assert_allclose([watched.warm, watched.hot], [[60, 60], [75, 75]])
    np.testing.assert_allclose(watched.velocity, [3.0, 6.0])  # what is measured may have the joint's whole speed
    np.testing.assert_allclose(watched.effort, [40.0, 30.0])
    np.testing.assert_allclose([watched.lower, watched.upper], [[-1.0, 0.0], [1.5, 2.5]])
    assert np.isinf(watched.continuous).all()


def test_actuators_are_in_their_own_units(folder):
    shoulder, elbow = (b.spec.actuators[0] for b in read(folder).buses)
    assert shoulder.mode is Mode.IMPEDANCE and elbow.mode is Mode.POSITION
    assert (shoulder.kp, shoulder.kd) == pytest.approx((4.0, 0.09))
    assert (shoulder.velocity, shoulder.effort) == pytest.approx((30.0, 4.0))
    assert (elbow.velocity, elbow.effort) == pytest.approx((300.0, 0.24))
    assert (elbow.lower, elbow.upper) == pytest.approx((-200.0, 50.0)), "turned over, and counted from its zero"
    assert "arm.hardware.yaml:11" in shoulder.where


MISTAKES = [
    ("rate: 250", "rat: 250", ":3: unknown key 'rat': did you mean rate"),
    ("rate: 250", "rate: 5000", ":3: rate must be in 50 .. 1000"),
    ("schema: humanoid_hardware/1", "schema: hw", "must be 'schema: humanoid_hardware/1'"),
    ("velocity: 0.5,", "velocity: 1.5,", ":5: velocity must be in 0 .. 1, got 1.5"),
    ("transport: loopback, delay", "transport: lopback, delay", ":7: unknown transport 'lopback': did you mean loop"),
    ("delay: 0.002", "dely: 0.002", ":7: unknown key 'dely': did you mean delay"),
    ("delay: 0.002", "delay: soon", ":7: delay must be float, got 'soon'"),
    (
        "right: {transport: loopback}",
        "right: {transport: loopback}\n  spare: {transport: loopback}",
        "no actuator",
    ),
    ("  elbow: {bus: right", "  elbw: {bus: right", ":10: unknown joint 'elbw': did you mean elbow"),
    ("  elbow: {bus: right", "  shoulder: {bus: right", "the key 'shoulder' appears twice (line 11)"),
    ("bus: right, id: 7", "bus: rigt, id: 7", ":10: unknown bus 'rigt': did you mean right"),
    ("bus: right, id: 7", "bus: right", ":10: elbow lacks the key 'id'"),
    ("bus: right, id: 7", "bus: left, id: 4", ":13: id 4 is used twice on bus left (elbow, shoulder)"),
    ("bus: right, id: 7", "bus: right, id: x", ":10: id must be a whole number"),
    ("sign: -1", "sign: 2", ":10: sign of elbow must be 1 or -1, got 2"),
    ("ratio: 100", "ratio: 0", ":10: ratio of elbow must be above zero"),
    ("ratio: 100", "ratio: .nan", ":10: ratio must be a number"),
    ("velocity: 3.0", "velocity: 4.5", ":18: velocity 4.5 of shoulder is wider than the URDF's 4"),
    ("upper: 1.5}", "upper: 2.1}", ":18: upper 2.1 of shoulder is wider than the URDF's 2"),
    ("upper: 1.5}", "upper: -1}", ":18: shoulder has no range"),
    ("  wrist: {fixed: 0.25}\n", "", ":9: neither driven nor fixed: wrist"),
    ("fixed: 0.25", "fixed: 7", ":19: fixed must be in -1.5 .. 1.5, got 7"),
    ("fixed: 0.25", "fixed: 0.25, id: 3", ":19: unknown key 'id'"),
    ("guardian: never", "guardian: nevr", ":21: unknown guardian 'nevr': did you mean never"),
    ("temperature: [60, 75]", "temperature: [80, 75]", ":5: temperature must be [a, b] with a <= b"),
    ("following_error: 0.3", "mode: TORQUE", ":17: unknown mode 'TORQUE'"),
    ("offset: 0.5, bandwidth", "mode: EFFORT, bandwidth", ":10: elbow is torque-controlled: it needs kp and kd"),
    ("robot: arm.urdf", "robot: hpr2", ":2: unknown robot 'hpr2'"),
    ("estop: {heartbeat: 0.5}", "estop: 3", ":20: estop must be a mapping"),
]


@pytest.mark.parametrize(("right", "wrong", "says"), MISTAKES, ids=[m[1][:24].strip() for m in MISTAKES])
def test_a_mistake_names_its_line_and_the_nearest_right_word(folder, right, wrong, says):
    assert right in FILE
    with pytest.raises(HumanoidError) as e:
        read(folder, FILE.replace(right, wrong, 1))
    assert says in str(e.value) and len(str(e.value).splitlines()) == 1
    assert "arm.hardware.yaml" in str(e.value)


def test_a_bus_that_would_be_too_full_is_refused_with_a_rate_that_fits(folder, monkeypatch):
    monkeypatch.setattr(loopback.LoopbackTransport, "bus_load", classmethod(lambda cls, bus: 0.0037 / bus.period))
    with pytest.raises(
        HumanoidError, match=r"'left' would carry 92 % of its capacity at 250 Hz \(limit 70 %\): lower .* 180 Hz, or"
    ):
        read(folder)
    read(folder, FILE.replace("{transport: loopback", "{transport: loopback, load: 0.95"))


def test_a_file_of_another_robot_is_refused_and_its_rate_may_be_another(folder):
    read(folder)
    path = folder / "arm.hardware.yaml"
    robot = load_robot(folder / "arm.urdf", "fixed")
    assert read_hardware_file(path, robot, 400.0).buses[0].spec.period == 1 / 400
    path.write_text(FILE.replace("robot: arm.urdf", "robot: hrp2"))
    with pytest.raises(HumanoidError, match=r"arm\.hardware\.yaml:2: the file describes hrp2, the robot is arm"):
        read_hardware_file(path, robot)


def test_the_file_lies_beside_the_urdf(folder):
    robot = load_robot(folder / "arm.urdf", "fixed")
    assert hardware_path(robot) is None
    hw = read(folder)
    assert hardware_path(hw.robot) == hw.path


def test_without_a_file_every_joint_is_driven_gently():
    robot = load_robot("hrp2", "fixed")
    hw = without_file(robot, "loopback", {"delay": 0.001})
    assert set(hw.names) == set(robot.joint_names) - {robot.joint_names[f] for f, *_ in robot.mimic}
    (bus,) = hw.buses
    assert bus.spec.options == {"delay": 0.001} and bus.spec.period == 0.002
    rows = [robot.index[n] for n in hw.names]
    np.testing.assert_allclose(hw.command_limits().velocity, 0.5 * robot.velocity[rows])
    starts = [a.options["start"] for a in bus.spec.actuators]
    np.testing.assert_allclose(starts, robot.postures["neutral"][rows])


def test_the_simulated_twin_has_the_same_joints_and_limits_and_no_gears(folder):
    hw = read(folder)
    hw = dataclasses.replace(hw, guardian="always")  # in this process there is nothing to guard
    twin = hw.on_one_bus("loopback")
    assert twin.guardian == "auto"
    assert twin.names == hw.names and len(twin.buses) == 1 and twin.fixed == hw.fixed
    np.testing.assert_array_equal(twin.command_limits().velocity, hw.command_limits().velocity)
    assert {g.ratio for g in twin.gears.values()} == {1.0}
    assert {a.mode for a in twin.buses[0].spec.actuators} == {Mode.POSITION}
