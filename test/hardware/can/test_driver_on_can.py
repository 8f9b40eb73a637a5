"""The whole driver, from a hardware file, on CiA 402 drives and MIT actuators: to RUN, a fault, and back."""

import time

import can
import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.commands.limiter import Impedance, LimiterReference, limit_effort, limit_step
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import read_hardware_file
from humanoid_control.hardware.power import PowerState
from test.hardware.can.durand_drives import Drive, Hub
from test.hardware.can.test_mit import Motors
from test.hardware.test_hardware_file import URDF

pytestmark = [pytest.mark.timed, pytest.mark.drives]

# Of a cycle [s]. A drive that is silent for ten of them is lost; next to other tests this process can pause longer.
PERIOD = 0.02
FILE = """schema: humanoid_hardware/1
robot: arm.urdf
rate: 50
command_timeout: 2.0
soft_start: 0.1
soft_speed: 5.0
guardian: never
buses:
  leg: {transport: canopen, interface: virtual, channel: whole driver leg, heartbeat: 0.5, drive_heartbeat: 0.5}
  arm: {transport: mit_can, interface: virtual, channel: whole driver arm, silence: DAMPS}
joints:
  shoulder: {bus: leg, id: 4, ratio: 10, sign: -1, counts: 4096, brake: true, vendor: 0x9A}
  elbow: {bus: leg, id: 5, ratio: 100, offset: 0.5, counts: 4096, limits: {lower: 0.1}}
  wrist: {bus: arm, id: 3, kp: 100, kd: 1, model: AK80-9}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    return tmp_path


def read(folder, text=FILE):
    path = folder / "arm.hardware.yaml"
    path.write_text(text)
    return read_hardware_file(path)


@pytest.fixture
def drives():
    hub = Hub(can.Bus("whole driver leg", "virtual"), PERIOD)
    made = [Drive(hub, 4), Drive(hub, 5)]
    hub.start()
    motors = Motors("whole driver arm", [3], (12.5, 50.0, 500.0, 5.0, 18.0))
    yield [*made, motors]
    hub.stop()
    motors.end()


class Day:
    """A driver in real time, on a machine that may be busy: lateness is no fault here."""

    def __init__(self, hardware):
        self.driver = Driver(hardware, late_tolerance=1000.0)
        self.names = hardware.names
        n, limits = len(self.names), hardware.command_limits()
        zeros, ref = np.zeros((4, n)), LimiterReference(np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool))
        limit_step(zeros[0], zeros[1], ref, limits, PERIOD)  # compiles: the drives' watchdogs would not wait for it
        limit_effort(zeros[0], zeros[1], (zeros[2], zeros[3]), ref.v, Impedance(zeros[0], zeros[0]), limits, ref.q)
        self.target = self.direct = None
        self.driver.open()

    def to(self, state, seconds=10.0, done=lambda: True):
        end = time.monotonic() + seconds
        while self.driver.machine.state is not state or not done():
            begin = time.monotonic()
            assert begin < end, f"{self.driver.machine} in place of {state.name}: {self.driver.refusals()}"
            if self.target is not None:
                nan = np.full(len(self.names), np.nan)
                self.driver.command(JointCommand(self.target, nan, nan), begin, begin)
            if self.direct is not None:
                self.driver.command(self.direct, begin, begin)
            self.driver.cycle()
            time.sleep(max(0.0, begin + PERIOD - time.monotonic()))

    def measured(self):
        return self.driver.joints.q


def test_from_the_file_to_motion_and_back(folder, drives):
    day = Day(read(folder))
    day.to(PowerState.MONITOR, done=lambda: np.isfinite(day.measured()).all() and day.driver.refusals() == [])
    assert drives[0].machine.state == "SWITCH ON DISABLED" and not drives[2].on[3]
    assert day.driver.enable() == ""
    day.to(PowerState.HOLD)
    assert drives[0].machine.state == "OPERATION ENABLED" and drives[2].on[3]
    assert drives[0].od.read(0x60FE, 1) == 0 and drives[0].od.read(0x60FE, 2) == 1, "its brake is released"
    day.target = np.array([0.1, 0.6, 0.2])
    day.to(PowerState.RUN, done=lambda: np.allclose(day.measured(), day.target, atol=2e-3))
    assert drives[0].machine.position == pytest.approx(-0.1 * 10 * 4096 / (2 * np.pi), abs=2)
    drives[1].fail(0x7305)
    day.to(PowerState.FAULT)
    assert day.driver.machine.reason == "elbow drive: incremental encoder 1 fault (0x7305)"
    day.target = None
    day.to(PowerState.FAULT, done=lambda: drives[0].od.read(0x60FE, 1) == 1)
    assert drives[0].machine.state == "QUICK STOP ACTIVE"
    assert day.driver.clear_faults() == ""
    day.to(PowerState.MONITOR)
    assert drives[0].machine.state == "SWITCH ON DISABLED" and not drives[2].on[3]
    day.driver.close()


def test_velocities_and_torques_go_through_the_driver(folder, drives):
    """One drive in the mode cyclic synchronous velocity, one in torque, and an actuator that is given torques."""
    text = FILE.replace("brake: true", "mode: VELOCITY").replace(
        "offset: 0.5", "offset: 0.5, mode: EFFORT, kp: 50, kd: 1"
    )
    text = text.replace("wrist: {bus: arm, id: 3,", "wrist: {bus: arm, id: 3, mode: EFFORT,")
    day = Day(read(folder, text))
    day.to(PowerState.MONITOR, done=lambda: np.isfinite(day.measured()).all() and day.driver.refusals() == [])
    assert day.driver.enable() == ""
    day.to(PowerState.HOLD)
    assert [drives[k].od.read(0x6060, 0) for k in (0, 1)] == [9, 10]
    nan = np.nan
    day.direct = JointCommand(np.full(3, nan), np.array([0.3, nan, nan]), np.array([nan, 20.0, 2.0]))
    day.to(PowerState.RUN, done=lambda: drives[0].machine.position < -1000 and drives[2].tau[3] > 1.9)
    per_mille = 20.0 / 100 / 2.0 * 1000
    assert drives[1].od.read(0x6071, 0) == pytest.approx(per_mille, abs=1), "behind a gear of 100, of 2 N m"
    assert drives[2].tau[3] == pytest.approx(2.0, abs=0.02)
    speed = drives[0].od.read(0x60FF, 0) * 2 * np.pi / 4096 / -10
    assert speed == pytest.approx(0.3, abs=0.1) and day.driver.joints.v[0] == pytest.approx(0.3, abs=0.3)
    day.direct = None
    day.to(PowerState.HOLD, done=lambda: abs(drives[0].od.read(0x60FF, 0)) < 5 and abs(drives[2].tau[3]) < 0.02)
    assert day.driver.disable() == ""
    day.to(PowerState.MONITOR)
    day.driver.close()


def test_a_mistake_in_the_file_names_its_line(folder):
    with pytest.raises(RobotError, match=r"^arm.hardware.yaml:9: unknown key 'chanel': did you mean channel\?$"):
        read(folder, FILE.replace("channel: whole driver leg", "chanel: can0"))
    with pytest.raises(RobotError, match=r"^arm.hardware.yaml:13: counts must be int, got 'many'$"):
        read(folder, FILE.replace("counts: 4096, limits", "counts: many, limits"))
    with pytest.raises(RobotError, match=r"^arm.hardware.yaml:9: bus 'leg' would carry \d+ % of its capacity"):
        read(folder, FILE.replace("heartbeat: 0.5, drive", "load: 0.01, drive"))
