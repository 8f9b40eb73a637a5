"""The transport over real DDS, with a robot in another process."""

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="needs cyclonedds, the DDS binding of Unitree's robots")

from dataclasses import replace

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.transport import ActuatorSpec, BusSpec, Flag, HardwareError, Mode, Silence
from humanoid_control.hardware.unitree import link
from humanoid_control.hardware.unitree.frames import BUTTONS
from humanoid_control.hardware.unitree.link import LinkPhase, UnitreeTransport
from test.hardware.unitree.conftest import DOMAIN, Drive, process, row, wait_for

pytestmark = pytest.mark.drives


def test_nothing_is_sent_without_power(robot, drive):
    d = drive()
    robot.tell("forget")
    for _ in range(50):
        d.cycle()
    d.bus.quick_stop()
    assert d.bus.power(False) and d.bus.sent == 0 and robot.report()["received"] == 0
    assert d.until(lambda: d.state.have(Flag.FRESH).all())
    assert d.bus.silence is Silence.LAST_COMMAND and not d.state.have(Flag.ENABLED).any()


def test_power_commands_and_power_off(robot, drive):
    d = drive(mode=Mode.IMPEDANCE)
    robot.tell("forget")
    d.command.q[:], d.command.tau[:] = np.linspace(-0.5, 0.5, 29), np.arange(29)
    d.enable()
    assert d.state.have(Flag.ENABLED).all() and d.bus.trouble() == ""
    assert d.until(lambda: np.abs(d.state.q - d.command.q).max() < 1e-3), d.state.q
    report = robot.report()
    assert report["wrong"] == 0 < report["received"] and report["mode_pr"] == 0
    assert report["seen"] == [[5, [1] * 29 + [0] * 6]], "mode_machine is echoed, motors of this robot are on"
    assert report["last"]["kp"][:29] == [30.0] * 29 and report["last"]["kd"][:29] == [1.5] * 29
    assert report["last"]["tau"][:29] == list(range(29)) and d.state.tau.tolist() == list(range(29))
    assert (d.state.temperature == 40).all() and (d.state.voltage == 50).all()
    assert d.until(lambda: d.bus.power(False)), d.bus.figures()
    sent = d.bus.sent
    for _ in range(20):
        d.cycle()
    assert d.bus.sent == sent, "nothing more is sent"
    assert wait_for(lambda: robot.report()["last"]["tau"][:29] == [0.0] * 29)
    assert robot.report()["seen"][-1] == [5, [0] * 35] and not d.state.have(Flag.ENABLED).any()


def test_gains_of_the_model_come_slowly(robot, drive, monkeypatch):
    """At a thousandth of the speed, so that a pause of this test is none of the gains."""
    monkeypatch.setattr(link, "GAIN_RAMP", 1000 * link.GAIN_RAMP)
    d = drive(gains=0.5).enable()

    def stiffness():
        return robot.report()["last"]["kp"][3]

    assert d.until(lambda: 0.0 < stiffness() < 10.0)
    for _ in range(2):
        d.bus._since -= 0.4 * link.GAIN_RAMP
        before = stiffness()
        assert d.until(lambda before=before: stiffness() > before + 19.0)
        assert stiffness() < before + 29.0
    d.bus._since -= 0.4 * link.GAIN_RAMP
    assert d.until(lambda: stiffness() == 50.0) and robot.report()["last"]["kd"][3] == 1.0
    assert robot.report()["last"]["kp"][:3] == [30.0] * 3


def test_a_motor_that_does_not_switch_on_keeps_power_from_being_there(robot, drive):
    robot.tell(modes=False)
    d = drive()
    for _ in range(100):
        assert not d.bus.power(True)
        d.cycle()
    assert d.bus.sent >= 99 and not d.state.have(Flag.ENABLED).any()


def test_the_simulator_of_the_vendor_is_believed_without_modes(robot, drive):
    robot.tell(modes=False)
    d = drive(simulated=True).enable()
    assert d.until(lambda: d.state.have(Flag.ENABLED).all())
    assert d.until(lambda: d.bus.power(False))


@pytest.mark.parametrize(("fault", "counter"), [({"spoil": True}, "corrupt"), ({"step": 0}, "frozen")])
def test_states_that_are_wrong_are_dropped_and_counted(robot, drive, fault, counter):
    d = drive()
    assert d.until(lambda: d.state.have(Flag.FRESH).all()) and d.bus.figures()[counter] == 0
    robot.tell(**fault)
    assert d.until(lambda: d.bus.figures()[counter] > 10)
    assert not d.state.have(Flag.FRESH).any() and d.bus.read(d.state, time.monotonic()) is None
    stamp = d.state.stamp.copy()
    robot.tell("reset")
    assert d.until(lambda: d.state.have(Flag.FRESH).all() and (d.state.stamp > stamp).all())


def test_samples_without_data_are_skipped(robot, drive):
    d = drive()
    assert d.until(lambda: d.state.have(Flag.FRESH).all())
    robot.tell(publish=False)  # DDS keeps no word of a writer that left once the next one has written
    robot.tell("leave")
    assert d.until(lambda: d.bus.figures()["without_data"] > 0)
    assert d.until(lambda: not d.state.have(Flag.FRESH).any()), "a sample without data is no state"
    robot.tell(publish=True)
    assert d.until(lambda: d.state.have(Flag.FRESH).all())


def test_silence_is_no_error_and_no_sample_is_waited_for_too_long(robot, drive):
    d = drive()
    robot.tell(publish=False)
    assert d.until(lambda: not d.state.have(Flag.FRESH).any())
    d.cycle()
    took = []
    for _ in range(10):
        begin = time.monotonic()
        d.bus.read(d.state, begin + 0.01)
        took.append(time.monotonic() - begin)
    assert 0.009 < min(took) < 0.5 and not d.state.have(Flag.FRESH).any()
    d.bus.read(d.state, time.monotonic() - 1.0)


def test_a_state_is_fresh_for_two_cycles_of_the_slower_clock(robot, drive, monkeypatch):
    """Robot and driver have clocks of their own: a cycle in between without a state is no lost one.

    States of the robot, replayed at 200 Hz to a driver at 500 Hz, on a clock of the test's own.
    """
    d, states = drive(), []
    assert wait_for(lambda: states.extend(d.bus._ends.take()) or len(states) > 80)
    now, queue = [time.monotonic()], []
    monkeypatch.setattr(d.bus._ends, "take", lambda: [queue.pop(0)[1] for _ in queue[:16] if queue[0][0] <= now[0]])
    monkeypatch.setattr(d.bus._ends, "wait", lambda seconds: None)
    monkeypatch.setattr(link, "time", SimpleNamespace(monotonic=lambda: now[0]))
    queue.extend((now[0] + 0.005 * k, frame) for k, frame in enumerate(states))
    fresh = []
    while queue:
        now[0] += 0.002
        d.bus.read(d.state, now[0])
        fresh.append(d.state.have(Flag.FRESH).all())
    assert len(fresh) > 2.4 * len(states) and all(fresh[len(fresh) // 2 :])
    for silence, seen in ((0.008, True), (0.003, False)):
        now[0] += silence
        d.bus.read(d.state, now[0])
        assert d.state.have(Flag.FRESH).all() == seen


def test_another_writer_of_commands_keeps_power_away(robot, drive):
    d = drive()
    assert d.bus.trouble() == ""
    robot.tell("rival")
    assert d.until(d.bus.trouble)
    assert d.bus.trouble() == ("another program commands this robot: 1 writer on rt/lowcmd; press L2+R2 for debug mode")
    assert not d.bus.power(True) and d.bus.phase is LinkPhase.OFF and d.bus.figures()["other_writers"] == 1
    robot.tell("forget")
    assert d.until(lambda: not d.bus.trouble())
    d.enable()


def test_a_quick_stop_damps_until_power_is_off(robot, drive):
    d = drive(damping=2.5).enable()
    d.command.q[:] = 0.3
    d.bus.quick_stop()
    sent = d.bus.sent
    d.cycle()
    d.bus.quick_stop()
    assert d.bus.sent == sent + 2
    assert wait_for(lambda: robot.report()["last"]["kp"] == [0.0] * 35)
    report = robot.report()
    assert report["last"]["kd"][:29] == [2.5] * 29 and report["seen"][-1] == [5, [1] * 29 + [0] * 6]
    assert d.until(lambda: d.bus.power(False))
    assert wait_for(lambda: robot.report()["seen"][-1] == [5, [0] * 35])


def test_closing_takes_the_power_away(robot, drive):
    d = drive().enable()
    d.bus.close()
    d.bus.close()
    assert wait_for(lambda: robot.report()["seen"][-1] == [5, [0] * 35])
    assert d.bus.trouble() == "" and not d.bus.power(True)
    d.bus.open()
    d.enable()


def test_buttons_on_the_remote_control_stop_the_robot(robot, drive):
    d = drive().enable()
    robot.tell(buttons=BUTTONS["L2"])
    d.until(lambda: d.bus._reader.buttons)
    assert d.bus.trouble() == ""
    robot.tell(buttons=BUTTONS["L2"] | BUTTONS["B"])
    assert d.until(d.bus.trouble) and d.bus.trouble() == "L2+B on the remote control"


def test_a_robot_that_becomes_another_one_is_trouble(robot, drive):
    d = drive()
    robot.tell(machine=6)
    assert d.until(d.bus.trouble) and "mode_machine changed from 5 to 6" in d.bus.trouble()


def test_faults_of_motors(robot, drive):
    d = drive()
    robot.tell(faults={"3": 0x200})
    assert d.until(lambda: d.state.have(Flag.FAULT).any())
    assert d.state.have(Flag.FAULT).nonzero()[0].tolist() == [3]
    assert d.bus.fault_text(int(d.state.code[3])) == "winding too hot"


def test_the_inertial_measurement_unit(robot, drive):
    d = drive()
    stamp, reading = d.bus.imu()
    assert reading.orientation.tolist() == [0, 0, 0, 1] and reading.linear_acceleration.tolist() == [0, 0, 9.8125]
    assert 0 <= time.monotonic() - stamp < 5


# -------- The guardian


GUARD = """
import importlib, json, sys
spec = json.loads(sys.argv[1])
module, _, factory = spec["factory"].partition(":")
guard = getattr(importlib.import_module(module), factory)(*spec["arguments"])
print(json.dumps(sorted(sys.modules)), flush=True)
while (frame := bytes.fromhex(sys.stdin.readline())):
    guard.damp(frame)
    print("damped", flush=True)
guard.off()
guard.close()
print("off", flush=True)
"""


def test_a_guardian_damps_a_robot_whose_driver_is_silent(robot, drive):
    d = drive(damping=4.0).enable()
    spec = d.bus.guard()
    text = json.dumps(spec._asdict())
    guard = process("-c", GUARD, text, stdin=-1)
    try:
        loaded = json.loads(guard.stdout.readline())
        assert not {"numba", "rclpy", "scipy"} & set(loaded), "it starts at once"
        assert d.until(d.bus._ends._watcher.get_matched_publications), "its writer is seen"
        assert d.bus.trouble() == "", "the guardian is no other program"
        frame = d.bus.damping_frame(d.state)
        assert len(frame) <= spec.size

        def damped():
            """Frames are lost until the guardian has discovered the robot."""
            guard.stdin.write(frame.hex() + "\n")
            guard.stdin.flush()
            assert guard.stdout.readline() == "damped\n"
            return robot.report()["last"]["kd"][:29] == [4.0] * 29

        assert wait_for(damped)
        assert robot.report()["last"]["kp"] == [0.0] * 35 and robot.report()["wrong"] == 0
        guard.stdin.write("\n")
        guard.stdin.flush()
        assert guard.stdout.readline() == "off\n"
        assert wait_for(lambda: robot.report()["seen"][-1] == [5, [0] * 35]), robot.report()["seen"]
    finally:
        guard.kill()
        guard.wait()


# -------- What is refused


def test_a_robot_that_is_not_the_one_of_the_file(robot, drive):
    with pytest.raises(HardwareError, match=r"the robot is a g1 \(mode_machine 5\), the file states g1_23"):
        drive("g1_23")
    robot.tell(machine=4)
    assert wait_for(lambda: not _refused(drive)), "a G1 with 23 motors"


def _refused(drive, model="g1_23"):
    try:
        drive(model).bus.close()
    except HardwareError as e:
        return str(e)
    return ""


def test_no_robot_no_network(robot, drive, monkeypatch):
    monkeypatch.setattr(link, "OPEN_TIME", 0.3)
    robot.tell(publish=False)
    with pytest.raises(HardwareError, match=rf"^bus body: no rt/lowstate on lo, domain {DOMAIN} in 0.3 s"):
        for _ in range(3):  # a state may have been on its way
            drive().bus.close()
    robot.tell(publish=True, spoil=True)
    monkeypatch.setattr(link, "OPEN_TIME", 1.0)  # on a busy machine the first state may take longer
    assert wait_for(lambda: "wrong CRC" in _refused(drive, "g1"))
    with pytest.raises(HardwareError, match=r"^eth77: network interface not found; available: .*lo"):
        drive(interface="eth77")
    with pytest.raises(HardwareError, match=f"domain {DOMAIN} is used on lo, not on any interface"):
        UnitreeTransport(row("g1", interface="")).open()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "g2"}, "unknown Unitree model 'g2': did you mean g1"),
        ({"model": "", "family": "gh"}, "unknown family"),
        ({"family": "go"}, "g1 uses the hg messages, not go"),
        ({"motors": 23}, "g1 has 29 motors, not 23"),
        ({"model": "", "motors": 20}, "must be in 0 .. 19, got 20"),
        ({"model": ""}, "left_hip_pitch has no gains: give kp and kd, or the bus a model"),
        ({"mode_pr": "BA"}, "mode_pr must be PR or AB, got BA"),
        ({"remote_stop": "L2+Z"}, "unknown button Z of the remote control"),
    ],
)
def test_a_bus_row_that_fits_no_robot(options, words):
    with pytest.raises(ConfigError) as e:
        UnitreeTransport(replace(row("g1", **options), where="robot.hardware.yaml:7"))
    assert words in str(e.value) and str(e.value).startswith("robot.hardware.yaml:7")


def test_a_joint_at_a_wrong_place():
    spec = BusSpec("body", (ActuatorSpec("left_knee_joint", 4),), 0.002, {"model": "g1"})
    with pytest.raises(ConfigError, match="body: left_knee_joint is motor 3 of g1, not 4"):
        UnitreeTransport(spec)


def test_a_dry_run_shows_what_would_be_sent():
    d = Drive(row("g1", Mode.IMPEDANCE))
    d.command.q[3] = 0.25
    (line,) = d.bus.frames(d.command)
    shown = json.loads(line)
    assert shown["topic"] == "rt/lowcmd" and len(shown["motor_cmd"]) == 29
    assert shown["motor_cmd"][3] == {"id": 3, "mode": 1, "q": 0.25, "dq": 0, "tau": 0, "kp": 30, "kd": 1.5}
    assert d.bus.sent == 0


def test_a_scan_finds_the_robot(robot, monkeypatch):
    monkeypatch.setattr(link, "OPEN_TIME", 1.0)

    def alone():
        """What is found once the writer of the test before has been forgotten."""
        lines = UnitreeTransport.scan({"interface": "lo", "domain": DOMAIN})
        return lines if any("0 writers" in line for line in lines) else None

    lines = wait_for(alone)
    assert len(lines) == 1 and lines[0].startswith("rt/lowstate (hg): ")
    assert "mode_machine 5 (g1)" in lines[0] and "0 writers on rt/lowcmd" in lines[0]


WITHOUT = """
import sys
sys.modules["cyclonedds"] = None
from humanoid_control.cli.main import main
sys.exit(main(["hardware", "check", sys.argv[1]]))
"""


def test_without_the_binding_the_extra_is_named(tmp_path):
    (tmp_path / "arm.urdf").write_text(
        '<robot name="arm"><link name="a"/><link name="b"/><joint name="j" type="revolute"><parent link="a"/>'
        '<child link="b"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    file = tmp_path / "arm.hardware.yaml"
    file.write_text(
        "schema: humanoid_hardware/1\nrobot: arm.urdf\nbuses: {b: {transport: unitree}}\njoints: {j: {bus: b, id: 0}}\n"
    )
    run = process("-c", WITHOUT, str(file), stderr=-1)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 2 and len(errors.strip().splitlines()) == 1
    assert "cyclonedds is not installed: pip install 'humanoid_control[unitree]'" in errors
