"""A robot file whose joints are Dynamixel servos, through the driver: power, motion, a fault, power again."""

import sys
import time

import numpy as np
import pytest

pytest.importorskip("dynamixel_sdk", reason="needs dynamixel-sdk")

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import read_hardware_file
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import transport_class
from test.forgotten_modules import forget_modules
from test.hardware.dynamixel.servos import Bus, Servo

URDF = """<robot name="arm">
  <link name="base"/><link name="a"/><link name="b"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="4" velocity="4"/></joint>
  <joint name="elbow" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="4" velocity="4"/></joint>
</robot>
"""
FILE = """schema: humanoid_hardware/1
robot: arm.urdf
rate: 50
soft_start: 0.2
soft_speed: 3.0
command_timeout: 1.0
defaults: {{following_error: 0.5}}
buses:
  arm: {{transport: dynamixel, port: {path}, watchdog: 1.0}}
joints:
  shoulder: {{bus: arm, id: 1, model: 1020}}
  elbow: {{bus: arm, id: 2, sign: -1, offset: 0.1}}
"""


# Servos that are silent for 10 of these cycles are a fault, and beside other tests this process can be.
pytestmark = [pytest.mark.timed, pytest.mark.drives]


class Cycles:
    """The driver at 50 Hz of this computer's time, as its node runs it."""

    def __init__(self, driver):
        self.driver = driver

    def until(self, condition, what, q=None, timeout=20.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f"{what}: {self.driver.machine}"
            due = time.monotonic() + 0.02
            if q is not None:
                none = np.full(2, np.nan)
                self.driver.command(JointCommand(np.array(q), none, none), time.monotonic(), time.monotonic())
            self.driver.cycle()
            time.sleep(max(due - time.monotonic(), 0.0))

    def state(self, state, q=None):
        self.until(lambda: self.driver.machine.state is state, state.name, q)


@pytest.fixture
def arm(tmp_path):
    with Bus([Servo(1), Servo(2)]) as bus:
        (tmp_path / "arm.urdf").write_text(URDF)
        file = tmp_path / "arm.hardware.yaml"
        file.write_text(FILE.format(path=bus.path))
        driver = Driver(read_hardware_file(file), late_tolerance=100.0)
        driver.open()
        yield bus, driver, Cycles(driver)
        driver.close()


def test_a_day_of_an_arm(arm):
    bus, driver, cycles = arm
    cycles.until(lambda: not driver.refusals(), "ready")
    assert driver.machine.state is PowerState.MONITOR and not bus[1].on
    assert np.abs(driver.joints.q - (0.0, 0.1)).max() < 1e-3, "the elbow's zero is off by its offset"
    assert driver.enable() == ""
    cycles.state(PowerState.HOLD)
    assert bus[1].on and bus[2].on and bus[1].position == bus[2].position == 2048
    goal = (0.6, -0.4)
    cycles.until(lambda: np.abs(driver.joints.q - goal).max() < 2e-3, "at the goal", goal)
    for servo, angle in ((1, 0.6), (2, 0.5)):  # the second one turned, and moved by its offset; speeds are rounded, too
        assert abs(bus[servo].position - (2048 + angle * 4096 / (2 * np.pi))) < 1.5
    cycles.state(PowerState.HOLD)  # commands ceased

    bus[2].put(70, 0x20, 1)
    bus[2].put(64, 0, 1)
    cycles.state(PowerState.FAULT)
    assert "elbow drive: overload" in driver.machine.reason
    assert bus[1].on, "the other one holds"
    cycles.until(lambda: time.monotonic() - driver.machine.since > 0.6, "rest")
    assert driver.clear_faults() == ""
    cycles.state(PowerState.MONITOR)
    assert bus[2].reboots == 1 and not bus[1].on
    cycles.until(lambda: not driver.refusals(), "ready again")
    assert driver.enable() == ""
    cycles.state(PowerState.HOLD)
    assert driver.disable() == ""
    cycles.state(PowerState.MONITOR)
    assert not bus[1].on and not bus[2].on


def test_velocities_and_torques_go_through_the_driver(tmp_path):
    text = FILE.replace("model: 1020}}", "model: 1020, mode: VELOCITY}}").replace(
        "offset: 0.1}}", "mode: EFFORT, kp: 5, kd: 0.1}}"
    )
    with Bus([Servo(1), Servo(2)]) as bus:
        (tmp_path / "arm.urdf").write_text(URDF)
        file = tmp_path / "arm.hardware.yaml"
        file.write_text(text.format(path=bus.path))
        driver = Driver(read_hardware_file(file), late_tolerance=100.0)
        driver.open()
        cycles = Cycles(driver)
        cycles.until(lambda: not driver.refusals(), "ready")
        assert (bus[1].get(11, 1), bus[2].get(11, 1)) == (1, 0), "velocity, current"
        assert driver.enable() == ""
        cycles.state(PowerState.HOLD)
        nan = np.nan
        command = JointCommand(np.full(2, nan), np.array([0.2, nan]), np.array([nan, 0.5]))

        def followed():
            driver.command(command, time.monotonic(), time.monotonic())
            return driver.machine.state is PowerState.RUN and bus[2].get(102, 2, True) < 0

        cycles.until(followed, "commands")
        assert bus[1].get(104, 4, True) > 0
        current = bus[2].get(102, 2, True)
        cycles.state(PowerState.HOLD)
        cycles.until(lambda: abs(bus[2].get(102, 2, True)) < abs(current) / 5, "no torque when nobody commands")
        assert driver.disable() == ""
        cycles.state(PowerState.MONITOR)
        driver.close()


def test_without_the_package_the_extra_is_named(monkeypatch):
    forget_modules(monkeypatch, lambda name: name.startswith(("humanoid_control.hardware.dynamixel", "serial")))
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'humanoid_control\[dynamixel\]'"):
        transport_class("dynamixel")
