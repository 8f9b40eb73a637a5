"""CiA 402 homing (mode 6) on the wire: objects, course, end, failure, and the way back to the mode before."""

import numpy as np
import pytest

from humanoid_control.hardware.can import homing as course
from humanoid_control.hardware.can.homing import ATTEMPTS, DriveHoming
from humanoid_control.hardware.transport import Flag, HardwareError, HomingProgress, HomingSpec
from test.hardware.can.durand_drives import COUNTS

pytestmark = pytest.mark.drives

RUNNING, DONE, FAILED = HomingProgress
SWITCH = HomingSpec(17, 3.0, 1.0)
PER_RAD = COUNTS / (2 * np.pi)


def ready(rig, homing=SWITCH, **drive):
    """Two drives with power that do not know their zeros."""
    options = {"homing": homing, "options": {"absolute": False}}
    r = rig(2, actuator=options, drive=drive, heartbeat=1.5)  # a paused test would stop the drives on their way
    for d in r.drives:
        d.machine.switch, d.machine.stop = -500.0, -700.0
    r.open().enable()
    r.until(lambda: r.state.have(Flag.ENABLED).all(), write=True)
    return r


def home(r, k=0):
    """Cycle until the drive is no more on its way; what became of it."""
    found = []
    r.until(
        lambda: found and found[-1] is not RUNNING, write=True, each=lambda: found.append(r.transport.home(k, True))
    )
    return found[-1]


def follow(r):
    """As the driver does: the target of a drive is where it is."""
    r.command.q[:] = r.state.q


def test_a_drive_finds_its_switch_and_follows_again(rig):
    r = ready(rig, start=1000)
    od = r.drives[0].od
    speeds = [round(3.0 * PER_RAD), round(1.0 * PER_RAD)]
    assert od.read(0x6098, 0) == 17 and [od.read(0x6099, k) for k in (1, 2)] == speeds and od.read(0x607C, 0) == 0
    assert not r.state.have(Flag.HOMED).any()
    modes, places = set(), []
    found = []

    def each():
        follow(r)
        found.append(r.transport.home(0, True))
        modes.add(od.read(0x6060, 0))
        places.append(r.state.q.copy())

    r.until(lambda: found and found[-1] is not RUNNING, write=True, each=each)
    assert found[-1] is DONE and modes >= {6, 8} and od.read(0x6060, 0) == 8
    r.until(lambda: r.state.have(Flag.HOMED).tolist() == [True, False], write=True, each=lambda: follow(r))
    assert -500 <= r.drives[0].machine.shift < -450, "the edge of the switch, on the way back"
    assert abs(r.state.q[0]) < 0.03 and np.ptp([q[1] for q in places]) == 0.0, "the other one rests"
    r.command.q[:] = 0.5, r.state.q[1]
    r.until(lambda: abs(r.state.q[0] - 0.5) < 0.01, write=True)


def test_a_hard_stop_is_felt_with_little_torque(rig):
    r = ready(rig, HomingSpec(-4, 3.0, 1.0, effort=0.5))
    machine = r.drives[0].machine
    assert home(r) is DONE
    assert machine.pressed == 250, "0.5 N m of 2 per mille" and machine.shift == -700.0
    r.wait(lambda: r.drives[0].od.read(0x6072, 0) == 2500)


def test_targets_of_a_drive_without_zero_are_where_it_is(rig):
    """Its software range means nothing yet: a target clipped to it would be a jump."""
    far = round(10 * PER_RAD)
    r = ready(rig, start=far)
    follow(r)
    for _ in range(5):
        r.cycle()
    assert r.drives[0].od.read(0x607A, 0) == far
    for d in r.drives:
        d.machine.switch = far - 400.0
    assert home(r) is DONE
    r.until(lambda: r.state.have(Flag.HOMED)[0], write=True, each=lambda: follow(r))
    r.command.q[:] = 99.0
    for _ in range(5):
        r.cycle()
    assert r.drives[0].od.read(0x607A, 0) == int(2.0 * PER_RAD), "now the range holds"


def test_a_drive_that_gives_up_says_so_and_is_back_in_its_mode(rig):
    r = ready(rig)
    r.drives[0].machine.switch = None
    assert home(r) is FAILED
    assert r.drives[0].od.read(0x6060, 0) == 8 and not r.state.have(Flag.HOMED)[0]
    r.drives[0].machine.switch = -100.0
    assert home(r) is DONE, "it may try again"


def test_a_drive_that_stops_meanwhile_does_not_look_on(rig):
    r = ready(rig, start=30000)
    r.until(lambda: r.drives[0].machine.homing, write=True, each=lambda: r.transport.home(0, True))
    r.transport.quick_stop()
    assert home(r) is FAILED
    assert r.drives[0].machine.state == "QUICK STOP ACTIVE" and r.drives[0].machine.position > 0


def test_an_end_from_outside_stops_the_drive_and_gives_its_mode_back(rig):
    r = ready(rig, start=3000)
    places = []

    def each():
        follow(r)
        places.append(r.drives[0].machine.position)
        r.transport.home(0, True)

    r.until(lambda: places and places[-1] < 2900, write=True, each=each)
    r.transport.home(0, False)
    r.until(lambda: r.drives[0].od.read(0x6060, 0) == 8, write=True, each=lambda: follow(r))
    at = r.drives[0].machine.position
    for _ in range(20):
        r.cycle()
    assert abs(r.drives[0].machine.position - at) < 20 and at > 2000 and not r.state.have(Flag.HOMED)[0]


def test_no_homing_without_power_or_a_row_for_it(rig):
    r = rig(1, actuator={"homing": SWITCH, "options": {"absolute": False}}).open()
    assert r.transport.home(0, True) is FAILED
    other = rig(1).open().enable()
    assert other.transport.home(0, True) is FAILED


def test_a_drive_that_cannot_home_is_refused(rig, monkeypatch):
    r = rig(1, actuator={"homing": SWITCH})
    r.drives[0].od.write(0x6502, 0, 0x380)
    with pytest.raises(HardwareError, match=r"^j1 \(leg 1\): its drive does not support homing \(0x6502 is 0x380\)$"):
        r.open()


def test_a_drive_that_restarts_has_forgotten_its_zero(rig):
    r = ready(rig, start=200)
    assert home(r) is DONE
    r.until(lambda: r.state.have(Flag.HOMED)[0], write=True, each=lambda: follow(r))
    r.drives[0].restart()
    r.until(lambda: "restarted" in r.transport.trouble())
    r.transport.clear_faults()
    assert r.transport.trouble() == ""
    r.cycle()
    assert not r.state.have(Flag.HOMED)[0]


def test_answers_that_do_not_come_are_asked_for_again_and_then_given_up():
    run, now, sent = DriveHoming(5, 8), 0.0, []
    while not run.over:
        now += 0.01
        sent += run.step(0x1637, now)
        assert now < 10 * course.ANSWER * ATTEMPTS
    assert run.progress is FAILED and not run.start
    assert {bytes(f.data)[:5] for f in sent} == {b"\x2f\x60\x60\x00\x06", b"\x2f\x60\x60\x00\x08"}
    assert len(sent) == 2 * ATTEMPTS
