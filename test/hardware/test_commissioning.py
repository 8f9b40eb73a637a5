"""Drafts are files that the reader takes; a joint moves only while the key is held, slowly, and the others hold."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.hardware.commissioning import HELD, Jog, bus_rows, draft_file, scan_rows
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import read_hardware_file
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import TRANSPORTS
from humanoid_control.robots import load_robot

JOINT = "l_elbow_flexion"


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


@pytest.fixture
def hardware(robot, tmp_path):
    path = tmp_path / "hrp2.hardware.yaml"
    path.write_text(draft_file(robot, "hrp2", "loopback"))
    return read_hardware_file(path)


@pytest.mark.parametrize("transport", ["loopback", "simulator"])
def test_a_draft_is_a_file_with_every_joint_and_marks_where_somebody_must_look(robot, tmp_path, transport):
    path = tmp_path / "hrp2.hardware.yaml"
    text = draft_file(robot, "hrp2", transport)
    path.write_text(text)
    hardware = read_hardware_file(path)
    assert set(hardware.names) == set(robot.joint_names) - {robot.joint_names[f] for f, *_ in robot.mimic}
    assert text.count("# GUESS id, ratio, sign") == len(hardware.names)


def test_an_unknown_transport_is_told(robot):
    assert "loopback" in TRANSPORTS
    with pytest.raises(UnknownNameError, match="loopback"):
        draft_file(robot, "hrp2", "loopbak")


def test_buses_are_told_with_what_their_drives_do_in_silence(hardware):
    ((name, transport, count, load, silence),) = bus_rows(hardware)
    assert (name, transport, count, load) == ("bus", "loopback", len(hardware.names), 0.0) and "stop" in silence
    ((_, found, expected),) = scan_rows(hardware)
    assert "no bus to scan" in found and f": {JOINT}" in expected


class Bench:
    def __init__(self, hardware, clock, angle):
        self.clock = clock
        self.driver = Driver(hardware, clock=clock)
        for bus in self.driver.buses.transports.values():
            bus.clock = clock
        self.jog = Jog(self.driver, JOINT, angle)
        self.driver.open()

    def run(self, seconds, held=False, until=None):
        for k in range(round(seconds / 0.002)):
            self.clock.now += 0.002
            if held and k % 50 == 0:
                self.jog.press()
            self.jog.cycle()
            if self.driver.machine.state is until:
                return self
        assert until is None, self.driver.machine
        return self


def test_a_joint_moves_while_the_key_is_held_and_stops_when_it_is_let_go(hardware, robot, clock):
    start = robot.postures["neutral"][robot.index[JOINT]]
    b = Bench(hardware, clock, start + 0.3)
    b.run(0.2)
    assert b.driver.enable() == ""
    b.run(5.0, until=PowerState.RUN)
    others = b.driver.joints.q.copy()
    b.run(2.0)
    assert b.jog.position() == pytest.approx(start, abs=1e-4), "nobody holds the key"
    b.run(0.5, held=True)
    moved = b.jog.position() - start
    assert 0.05 < moved < 0.2 * 0.5 + 0.01
    b.run(HELD + 0.2)
    at = b.jog.position()
    b.run(1.0)
    assert b.jog.position() == pytest.approx(at, abs=1e-4) and not b.jog.arrived()
    assert at - start <= 0.2 * (0.5 + HELD) + 0.01
    b.run(2.0, held=True)
    assert b.jog.arrived() and b.jog.position() == pytest.approx(start + 0.3, abs=1e-3)
    others[b.jog.joint] = b.driver.joints.q[b.jog.joint]
    assert np.abs(b.driver.joints.q - others).max() < 1e-4
    b.driver.disable()
    b.run(1.0, until=PowerState.MONITOR)


def test_what_cannot_be_moved_is_told(hardware, clock):
    with pytest.raises(UnknownNameError, match=JOINT):
        Jog(Driver(hardware, clock=clock), "l_elbow_flexon", 0.0)
    with pytest.raises(ConfigError, match="got 9"):
        Jog(Driver(hardware, clock=clock), JOINT, 9.0)
