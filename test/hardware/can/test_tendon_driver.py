"""The driver of muscle units from a hardware file on emulated CANopen drives: power, commands, faults (TC-27)."""

import time

import can
import numpy as np
import pytest

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.hardware.hardware_file import read_hardware_file
from humanoid_control.hardware.muscle_units.driver import TendonDriver
from humanoid_control.hardware.muscle_units.file import read_tendon_hardware
from humanoid_control.hardware.power import PowerState
from humanoid_control.tendons.control.commands import HOLD, HYBRID, OFF
from test.hardware.can.durand_drives import Drive, Hub

PERIOD, RATIO, ZERO, STIFF = 0.02, 2e-3, 0.30, 2e4  # [s], [m/rad], [m], [N/m] of a wire to a wall
NAMES = ("l_biceps", "l_triceps")
FILE = f"""schema: humanoid_hardware/1
robot: kengoro_upper
rate: 50
command_timeout: 0.4
buses:
  left: {{transport: canopen, interface: virtual, channel: tendon driver, heartbeat: 0.5, drive_heartbeat: 0.5}}
tendons:
  l_biceps: {{bus: left, id: 4, ratio: {RATIO}, zero: {ZERO}, counts: 4096, sensor: true, vendor: 0x9A}}
  l_triceps: {{bus: left, id: 5, ratio: {-RATIO}, zero: {ZERO}, counts: 4096, sensor: true, limits: {{tension: 200}}}}
"""


def read(folder, text=FILE):
    path = folder / "arm.hardware.yaml"
    path.write_text(text)
    return read_tendon_hardware(path)


class Arm:
    """Two winches whose wires end at a wall, 10 mm beyond where they are when the drives read zero."""

    def __init__(self, hardware):
        self.driver = TendonDriver(hardware, late_tolerance=100.0)
        self.tell, self.tensions = None, np.zeros(2)
        self.driver.open()

    def cycle(self):
        begin, d = time.monotonic(), self.driver
        wire = np.nan_to_num(d.states.wire, nan=ZERO)
        self.tensions = np.maximum(0.0, STIFF * (ZERO + 0.002 - wire))
        d.sense(NAMES, self.tensions, begin)
        if self.tell is not None:
            d.command(*self.tell, begin)
        d.cycle()
        time.sleep(max(0.0, begin + PERIOD - time.monotonic()))

    def to(self, state, done=lambda: True, seconds=20.0):
        end = time.monotonic() + seconds
        while self.driver.machine.state is not state or not done():
            assert time.monotonic() < end, f"{self.driver.machine} instead of {state.name}: {self.driver.refusals()}"
            self.cycle()


def hybrid(*tensions):
    return NAMES, (), (0.0, 0.0), tensions


@pytest.fixture
def drives():
    hub = Hub(can.Bus("tendon driver", "virtual"), PERIOD)
    made = [Drive(hub, 4), Drive(hub, 5)]
    hub.start()
    yield made
    hub.stop()


@pytest.mark.timed
@pytest.mark.drives
def test_wires_are_brought_to_their_tension_held_and_switched_off(tmp_path, drives):
    arm = Arm(read(tmp_path))
    d = arm.driver
    arm.tell = hybrid(60.0, 80.0)
    arm.to(PowerState.MONITOR, lambda: not d.refusals())
    assert not d.follows and drives[0].machine.state == "SWITCH ON DISABLED", "a command gives no power"
    assert d.enable() == ""
    arm.to(PowerState.RUN, lambda: np.abs(arm.tensions - [60.0, 80.0]).max() < 3.0)
    assert drives[0].machine.position > 0 > drives[1].machine.position, "the second one winds the other way"
    assert d.stop() == ""
    arm.to(PowerState.HOLD)
    held = d.states.wire.copy()
    arm.tell = hybrid(120.0, 120.0)
    for _ in range(15):
        arm.cycle()
    assert np.abs(d.states.wire - held).max() < 5e-4, "after a stop commands move nothing"
    assert d.enable() == ""
    arm.to(PowerState.RUN, lambda: arm.tensions.min() > 115.0)
    arm.tell = None
    arm.to(PowerState.HOLD)
    assert "tendon_commands silent for 0.40 s" in d.machine.reason
    assert d.disable() == ""
    arm.to(PowerState.MONITOR)
    assert drives[0].machine.state == "SWITCH ON DISABLED"
    d.close()


@pytest.mark.timed
@pytest.mark.drives
def test_faults_latch_and_an_emergency_stop_takes_the_power(tmp_path, drives):
    arm = Arm(read(tmp_path))
    d = arm.driver
    arm.to(PowerState.MONITOR, lambda: not d.refusals())
    d.enable()
    arm.to(PowerState.HOLD)
    drives[1].fail(0x7305)
    arm.to(PowerState.FAULT)
    assert d.machine.reason == "l_triceps drive: incremental encoder 1 fault (0x7305)"
    assert d.enable().startswith("state is FAULT")
    for _ in range(30):
        arm.cycle()
    assert d.clear_faults() == ""
    arm.to(PowerState.MONITOR, lambda: not d.refusals())
    d.enable()
    arm.to(PowerState.HOLD)
    d.emergency_stop("button", True)
    arm.to(PowerState.ESTOP, lambda: drives[0].machine.state == "SWITCH ON DISABLED")
    assert d.clear_faults() == "emergency stop by button"
    d.close()


def test_commands_are_checked_whole(tmp_path):
    d = TendonDriver(read(tmp_path))
    with pytest.raises(UnknownNameError, match="did you mean l_biceps"):
        d.command(("l_bicep",), (), (), (10.0,), 0.0)
    with pytest.raises(ConfigError, match="wires cannot push"):
        d.command(NAMES, (), (0.0, 0.0), (10.0, -1.0), 0.0)
    with pytest.raises(ConfigError, match="drives in mode velocity take no command of kind 'tension'"):
        d.command(NAMES, (), (), (10.0, 10.0), 0.0)
    with pytest.raises(ConfigError, match="is it in mm"):
        d.command(NAMES, (300.0, 300.0), (), (10.0, 10.0), 0.0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("l_biceps:", "l_bicep:", r"arm.hardware.yaml:8: unknown tendon 'l_bicep': did you mean l_biceps"),
        ("ratio: 0.002, ", "", r":8: l_biceps lacks the key 'ratio'"),
        ("ratio: 0.002", "ratio: 2.0", r":8: tendon 'l_biceps': ratio is 2 m/rad"),
        ("id: 5", "id: 4", r":9: id 4 is used twice on bus left \(l_biceps, l_triceps\)"),
        ("tension: 200", "tension: 9000", r":9: tension must be in 0.1 .. "),
        ("tension: 200", "tensio: 200", r"unknown key 'tensio': did you mean tension"),
        ("id: 5,", "id: 5, mode: POSITION,", r":6: drives of bus left have modes POSITION and VELOCITY"),
        ("sensor: true, limits", "sensor: 3, limits", r":9: sensor must be true or false, got 3"),
        ("transport: canopen", "transport: canopne", r"did you mean canopen"),
        ("robot: kengoro_upper", "robot: kengoro", r"did you mean kengoro_upper"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path, old, new, words):
    assert old in FILE
    with pytest.raises(RobotError, match=words):
        read(tmp_path, FILE.replace(old, new))


def test_each_driver_refuses_the_file_of_the_other(tmp_path):
    path = tmp_path / "arm.hardware.yaml"
    path.write_text(FILE)
    with pytest.raises(RobotError, match=r":7: the file describes muscle units: start tendon_driver"):
        read_hardware_file(path)
    path.write_text(FILE.replace("tendons:", "joints:"))
    with pytest.raises(RobotError, match="the file has no tendons: it belongs to robot_driver"):
        read_tendon_hardware(path)


def test_an_overloaded_bus_lets_its_wires_out(tmp_path):
    d = TendonDriver(read(tmp_path))
    u = d._units[0]
    d.states.wire[:], d.states.speed[:], d.states.tension[:] = 0.29, 0.0, [50.0, 300.0]
    d.machine.state = PowerState.RUN
    for _ in range(2):
        d._watch(0.0)
    assert d.overloaded == ["left"]
    d._act(0.0)
    assert d.buses.command.v[1] * u.units.ratio[1] < 0, "it lets wire out"
    d.states.tension[:] = 150.0
    d._watch(0.0)
    assert not d.overloaded


def test_a_wire_that_cannot_follow_its_command_does_not_go_on_with_the_last_one(tmp_path):
    """Torn tendons are commanded no tension, doubted ones other kinds: their winches stop, and so do silent ones."""
    d = TendonDriver(read(tmp_path))
    r, d.machine.state = d._units[0].units.loop.record, PowerState.RUN
    d.states.wire[:], d.states.speed[:], d.states.tension[:] = 0.29, 0.0, 50.0
    wind = NAMES, (), (-0.05, -0.05), (60.0, 60.0)

    def speeds(now):
        d._act(now)
        return d.buses.command.v * d._units[0].units.ratio

    d.command(*wind, 0.0)
    assert (speeds(0.01) > 0.04).all()
    d.command(NAMES[:1], (), (), (0.0,), 0.02)
    assert r.kind.tolist() == [OFF, HYBRID] and speeds(0.02)[0] == 0.0 and speeds(0.02)[1] > 0.04
    d.command(*wind, 0.03)
    with pytest.raises(ConfigError, match="take no command of kind 'tension'"):
        d.command(NAMES[:1], (), (), (30.0,), 0.04)
    assert r.kind.tolist() == [HOLD, HYBRID] and abs(speeds(0.04)[0]) < 1e-9
    d.command(*wind, 0.05)
    d.command(NAMES[1:], (), (-0.05,), (60.0,), 0.5)
    assert r.kind.tolist() == [HYBRID, HYBRID]
    assert abs(speeds(0.5)[0]) < 1e-9 and r.kind.tolist() == [HOLD, HYBRID], "silent for 0.45 s, limit 0.4"
