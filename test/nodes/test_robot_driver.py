"""The driver over DDS: power by request, blend, run, timeouts, stops, faults; on loopback drives and the twin."""

import contextlib
import math
import os
import re
import signal
import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import BatteryState, JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from humanoid_control.nodes.base.messages import LATCHED, seconds, stamp_of
from humanoid_control.robots import load_robot
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros, pytest.mark.patient]
QUIET = ("missed_warn:=100.0", "missed_error:=100.0")  # the machine may be busy
ELBOWS = ("l_elbow_flexion", "r_elbow_flexion")


FILE = """schema: humanoid_hardware/1
robot: hrp2
rate: 200
command_timeout: 2.0
buses: {{both: {{transport: loopback, watchdog: 10.0}}}}
joints:
"""


def hardware_text(robot, driven):
    """A hardware file of loopback drives: some joints driven, all others fixed, in the neutral posture."""
    q, text = robot.postures["neutral"], FILE.format()
    for k, name in enumerate(robot.joint_names):
        row = f"bus: both, id: {k}, start: {q[k]:.6f}, serial: A{k}" if name in driven else f"fixed: {q[k]:.6f}"
        text += f"  {name}: {{{row}}}\n"
    return text


class Desk:
    """A driver process, and what a person at a desk has: commands, states, buttons.

    Unless other hardware is given, its loopback drives bear two seconds of silence: where others compute, the test
    sends nothing for longer than the usual 0.1 s at times, and the driver rightly holds.
    """

    def __init__(self, graph, *parameters, robot="hrp2", wait=True, fresh=False):
        self.graph, self.robot = graph, load_robot(robot, "fixed")
        if not any(p.startswith("hardware:=") for p in parameters):
            path = graph.folder / "desk.hardware.yaml"
            path.write_text(hardware_text(self.robot, self.robot.joint_names))
            parameters = (f"hardware:={path}", *parameters)
        given = (f"robot:={robot}", "late_tolerance:=100.0", "rate:=200.0", *QUIET, *parameters)
        self.process = graph.start("robot_driver", *given, wait=wait, fresh=fresh)
        self.states = graph.listen(JointState, "joint_states")
        self.applied = graph.listen(JointState, "applied_commands")
        self.said = graph.listen(String, "hardware_state", LATCHED)
        self.commands = graph.publisher(JointState, "joint_commands")
        graph.until(lambda: self.states and self.said, "states of the driver")

    @property
    def q(self):
        """Measured positions by joint."""
        m = self.states[-1]
        return dict(zip(m.name, m.position, strict=True))

    def ask(self, service, on=None):
        """Call a service of the driver: whether it did it, and its answer."""
        request = None if on is None else SetBool.Request(data=on)
        a = self.graph.call(Trigger if on is None else SetBool, f"robot_driver/{service}", request)
        return a.success, a.message

    def command(self, stamp=None, **joints):
        """A function that publishes a command for these joints."""

        def send():
            m = JointState(name=list(joints), position=[float(x) for x in joints.values()])
            m.header.stamp = stamp or self.graph.node.get_clock().now().to_msg()
            self.commands.publish(m)

        return send

    def until(self, word, meanwhile=None):
        """Wait for a state, or for words of its reason."""
        self.graph.until(lambda: word in self.said[-1].data, f"'{word}' on hardware_state", meanwhile=meanwhile)
        return self

    def run(self, **joints):
        """Enable and follow a command; the driver rightly refuses where a busy machine has just lost samples."""
        end = time.monotonic() + 30.0
        while (answer := self.ask("enable", True)) != (True, "") and "of the samples of" in answer[1]:
            assert time.monotonic() < end, answer
            self.graph.spin(0.2)
        assert answer == (True, "")
        return self.until("HOLD").until("RUN", self.command(**joints))


def test_a_day_at_the_desk(graph):
    """Enable, blend, run; silence; e-stop; clear; disable; the end. Loopback drives."""
    desk = Desk(graph)
    assert desk.said[-1].data == "MONITOR" and set(desk.q) == set(desk.robot.joint_names)
    neutral = dict(zip(desk.robot.joint_names, desk.robot.postures["neutral"], strict=True))
    assert max(abs(desk.q[n] - neutral[n]) for n in desk.q) < 1e-6
    send = desk.command(l_elbow_flexion=neutral["l_elbow_flexion"] + 0.4)
    graph.until(lambda: len(desk.states) > 30, "more states", meanwhile=send)
    assert desk.said[-1].data == "MONITOR" and not desk.applied, "commands alone give no power"
    refused = desk.ask("stop")
    assert not refused[0] and "nothing to stop" in refused[1]

    desk.run(l_elbow_flexion=neutral["l_elbow_flexion"] + 0.4)
    graph.until(
        lambda: abs(desk.q["l_elbow_flexion"] - neutral["l_elbow_flexion"] - 0.4) < 0.01, "there", meanwhile=send
    )
    others = [n for n in desk.q if n != "l_elbow_flexion"]
    assert max(abs(desk.q[n] - neutral[n]) for n in others) < 1e-3
    rows = [(seconds(m.header.stamp), m.position[list(m.name).index("l_elbow_flexion")]) for m in desk.applied]
    time_between, steps = np.abs(np.diff(rows, axis=0)).T  # a busy test loses messages
    assert (steps < 0.02 * np.maximum(np.round(200 * time_between), 1)).all(), "no step went to the drives"
    way = [s.data.split(":")[0] for s in desk.said]
    # The topic keeps the last state: a listener that gets no processor misses one that lasts a few cycles.
    assert way == [s for s in ("MONITOR", "ENABLING", "HOLD", "BLEND", "RUN") if s in way]
    assert way[0] == "MONITOR" and way[-1] == "RUN" and len(way) >= 3

    desk.until("HOLD: stopped: joint_commands silent for 2.00 s")  # nobody commands any more
    assert graph.until_said("robot_driver", "silent for 2.00 s")["level"] == 1

    assert desk.ask("emergency_stop", True) == (True, "")
    desk.until("ESTOP")
    assert graph.until_said("robot_driver", "ESTOP")["level"] == 2
    done, why = desk.ask("clear_faults")
    assert not done and "emergency stop by ~/emergency_stop" in why
    desk.ask("emergency_stop", False)
    graph.until(lambda: desk.ask("clear_faults")[0], "cleared")
    desk.until("MONITOR")

    desk.run(l_elbow_flexion=neutral["l_elbow_flexion"])
    assert desk.ask("enable", False) == (True, "")
    desk.until("MONITOR", send)
    assert desk.ask("emergency_stop", True)[0]
    desk.until("ESTOP")
    done, why = desk.ask("enable", True)
    assert not done and "state is ESTOP" in why
    assert graph.stop(desk.process)[0] == 0


def test_bad_commands_are_dropped_and_named(graph):
    desk = Desk(graph)
    start = desk.q["l_elbow_flexion"]
    desk.run(l_elbow_flexion=start)
    good = desk.command(l_elbow_flexion=start)
    old = graph.node.get_clock().now().to_msg()
    old.sec -= 100

    def bad(send):
        def both():
            good()
            send()

        return both

    for send, says in (
        (desk.command(l_elbw=1.0), "did you mean"),
        (desk.command(l_elbow_flexion=start + 1.0, stamp=old), "s old: dropped"),
        (lambda: desk.commands.publish(JointState(name=["l_elbow_flexion"])), "needs positions"),
    ):
        graph.until_said("robot_driver", says, meanwhile=bad(send))
    for _ in range(3):
        bad(desk.command(l_elbow_flexion=math.nan, r_elbow_flexion=math.inf))()
    graph.until_said("robot_driver", "ok", meanwhile=good)
    desk.until("RUN", good)
    assert abs(desk.q["l_elbow_flexion"] - start) < 0.01
    desk.until("HOLD: stopped", desk.command(l_elbow_flexion=math.nan))  # nothing but NaN is no command


@pytest.mark.parametrize("kept", [True, nightly(False)], ids=["kept", "volatile"])
def test_the_emergency_stop_topic_stops_whoever_publishes(graph, kept):
    desk = Desk(graph)
    desk.run(l_elbow_flexion=desk.q["l_elbow_flexion"])
    button = graph.publisher(Bool, "emergency_stop", LATCHED if kept else 10)
    button.publish(Bool(data=True))
    desk.until("ESTOP: emergency stop on emergency_stop", desk.command(l_elbow_flexion=0.5))
    button.publish(Bool(data=False))
    graph.until(lambda: desk.ask("clear_faults")[0], "cleared")
    desk.until("MONITOR")


def test_one_emergency_stop_is_not_released_by_another(graph):
    """A box whose button is up says so ten times a second; that is no word about the button of another."""
    desk, second = Desk(graph), rclpy.create_node("second")
    pressed, other = graph.publisher(Bool, "emergency_stop", 10), second.create_publisher(Bool, "emergency_stop", 10)
    try:
        for p in (pressed, other):
            graph.until(lambda p=p: p.get_subscription_count() > 0, "the driver")
        # said until it is heard: the driver may not have discovered the button yet
        desk.until("ESTOP", lambda: (pressed.publish(Bool(data=True)), other.publish(Bool(data=False))))
        for _ in range(3):
            other.publish(Bool(data=False))
            graph.spin(0.1)
            done, why = desk.ask("clear_faults")
            assert not done and "emergency stop on emergency_stop" in why
        pressed.publish(Bool(data=False))
        graph.until(lambda: desk.ask("clear_faults")[0], "cleared")
        desk.until("MONITOR")
        desk.until("ESTOP", lambda: other.publish(Bool(data=True)))
        second.destroy_publisher(other)
        graph.until(
            lambda: desk.ask("clear_faults")[0], "who is gone", meanwhile=lambda: pressed.publish(Bool(data=False))
        )
    finally:
        second.destroy_node()


@pytest.mark.nightly
def test_a_trajectory_is_executed_from_where_the_robot_is(graph):
    desk = Desk(graph)
    start = desk.q["l_elbow_flexion"]
    trajectory = graph.publisher(JointTrajectory, "joint_trajectory")
    assert desk.ask("enable", True)[0]
    desk.until("HOLD")
    m = JointTrajectory(joint_names=["l_elbow_flexion"])
    for time_s, angle in ((0.5, start + 0.1), (1, start + 0.2)):
        p = JointTrajectoryPoint(positions=[angle], velocities=[0.2 if time_s < 1 else 0.0])
        p.time_from_start.sec, p.time_from_start.nanosec = int(time_s), int(1e9 * (time_s % 1))
        m.points.append(p)
    trajectory.publish(m)
    desk.until("RUN")
    graph.until(lambda: abs(desk.q["l_elbow_flexion"] - start - 0.2) < 1e-3, "the end of the trajectory")
    graph.until(lambda: abs(desk.states[-1].velocity[0]) < 1e-3, "rest")
    desk.until("RUN")
    trajectory.publish(JointTrajectory(joint_names=["l_elbw"], points=m.points))
    graph.until_said("robot_driver", "trajectory rejected")
    m.points[0].effort = [3.0]
    trajectory.publish(m)
    graph.until_said("robot_driver", "joint_trajectory: efforts of its points are not used")
    trajectory.publish(JointTrajectory())
    desk.until("HOLD: stopped: joint_commands silent")


def test_a_robot_without_a_file_has_a_twin(graph):
    desk = Desk(graph, "hardware:=simulator")
    assert set(desk.q) == set(desk.robot.joint_names)
    assert desk.ask("enable", True) == (True, "")
    desk.until("HOLD")


def test_the_twin_is_driven_through_the_same_states(graph, tmp_path):
    """The engine in process; a stop that was asked for holds although commands go on."""
    robot, path = load_robot("hrp2", "fixed"), tmp_path / "twin.hardware.yaml"
    text = hardware_text(robot, robot.joint_names).replace("loopback, watchdog: 10.0", "simulator, robot: hrp2")
    path.write_text(re.sub(r", start: .*, serial: \w+", "", text))
    desk = Desk(graph, f"hardware:={path}")
    start = desk.q["l_elbow_flexion"]
    desk.run(l_elbow_flexion=start + 0.3, r_elbow_flexion=desk.q["r_elbow_flexion"])
    send = desk.command(l_elbow_flexion=start + 0.3)
    graph.until(lambda: abs(desk.q["l_elbow_flexion"] - start - 0.3) < 0.05, "there", meanwhile=send)
    assert desk.ask("stop") == (True, "")
    desk.until("HOLD: stop was requested", send)
    n = len(desk.states)
    graph.until(lambda: len(desk.states) > n + 100, "half a second", meanwhile=send)
    assert "HOLD" in desk.said[-1].data
    assert desk.ask("enable", True) == (True, "")
    desk.until("RUN", send)
    code, took = graph.stop(desk.process, signal.SIGTERM)
    assert code == 0 and took < 5.0
    text = graph.output(desk.process)
    assert text.index("STOPPING: switching off") < text.rindex("MONITOR"), "at rest and without power at the end"


def test_deactivate_switches_off_and_activate_gives_no_power(graph):
    from lifecycle_msgs.srv import ChangeState

    desk = Desk(graph)
    desk.run(l_elbow_flexion=desk.q["l_elbow_flexion"])

    def change(transition):
        request = ChangeState.Request()
        request.transition.id = transition
        assert graph.call(ChangeState, "robot_driver/change_state", request).success

    change(4)  # deactivate
    desk.until("MONITOR")
    n = len(desk.states)
    change(3)  # activate
    send = desk.command(l_elbow_flexion=1.0)
    graph.until(lambda: len(desk.states) > n + 50, "states again", meanwhile=send)
    assert desk.said[-1].data == "MONITOR"


def test_a_dry_run_writes_its_frames_to_a_file(graph, tmp_path):
    frames = tmp_path / "frames.txt"
    desk = Desk(graph, "dry_run:=true", f"dry_run_file:={frames}")
    start = desk.q["l_elbow_flexion"]
    desk.run(l_elbow_flexion=start + 0.2)
    assert desk.q["l_elbow_flexion"] == start, "nothing moved"
    assert graph.stop(desk.process)[0] == 0
    lines = frames.read_text().splitlines()
    assert len(lines) > 100 and lines[0].startswith("both {") and '"kp"' in lines[-1]


@pytest.fixture
def hardware_file(tmp_path):
    """HRP-2 with its elbows driven and all else fixed."""
    path = tmp_path / "hrp2.hardware.yaml"
    path.write_text(hardware_text(load_robot("hrp2", "fixed"), ELBOWS))
    return path


def test_a_file_is_driven_and_calibrated(graph, hardware_file):
    desk = Desk(graph, f"hardware:={hardware_file}", "zero_posture:=neutral", "zero_joints:=l_elbow_flexion")
    assert set(desk.q) == set(desk.robot.joint_names), "fixed joints have their states too"
    calibration = hardware_file.with_name("hrp2.calibration.yaml")
    graph.until(lambda: desk.ask("set_zero")[0], "half a second at rest")
    text = calibration.read_text()
    serial = f"A{desk.robot.index['l_elbow_flexion']}"
    assert "l_elbow_flexion" in text and "r_elbow_flexion" not in text and serial in text
    desk.run(l_elbow_flexion=desk.q["l_elbow_flexion"])
    done, why = desk.ask("set_zero")
    assert not done and "without power" in why


@pytest.mark.nightly
def test_a_calibration_of_another_place_is_read_and_written(graph, hardware_file, tmp_path):
    other = tmp_path / "elsewhere.yaml"
    other.write_text("schema: humanoid_calibration/1\nactuators:\n  l_elbow_flexion: {zero: 0.1}\n")
    desk = Desk(graph, f"hardware:={hardware_file}", f"calibration:={other}", "zero_posture:=neutral")
    neutral = desk.robot.postures["neutral"][desk.robot.index["l_elbow_flexion"]]
    graph.until(lambda: abs(desk.q.get("l_elbow_flexion", 9.0) - neutral - 0.1) < 1e-5, "the zero of the file")
    graph.until(lambda: desk.ask("set_zero")[0], "half a second at rest")
    assert "r_elbow_flexion" in other.read_text() and not hardware_file.with_name("hrp2.calibration.yaml").exists()
    graph.until(lambda: abs(desk.q.get("l_elbow_flexion", 9.0) - neutral) < 1e-5, "the new zero")
    graph.stop(desk.process)
    other.unlink()
    given = (f"hardware:={hardware_file}", f"calibration:={other}")
    process = graph.start("robot_driver", "robot:=hrp2", *given, wait=False)
    assert process.wait(60) == 2 and "elsewhere.yaml: calibration not found" in graph.output(process)


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("rate: 200", "rat: 200", "hrp2.hardware.yaml:3: unknown key 'rat': did you mean rate"),
        ("l_elbow_flexion: {bus: both", "l_elbow_flexion: {bus: bth", "unknown bus 'bth': did you mean both"),
    ],
)
def test_a_file_with_a_mistake_ends_the_process_with_its_line(graph, hardware_file, right, wrong, says):
    hardware_file.write_text(hardware_file.read_text().replace(right, wrong))
    process = graph.start("robot_driver", "robot:=hrp2", f"hardware:={hardware_file}", wait=False)
    assert process.wait(60) == 2
    assert says in graph.output(process)


def test_a_robot_without_a_file_is_told_so(graph):
    process = graph.start("robot_driver", "robot:=hrp2", wait=False)
    assert process.wait(60) == 2 and "no hardware file next to its URDF" in graph.output(process)


@pytest.mark.nightly
def test_a_second_interrupt_stops_at_once(graph):
    desk = Desk(graph)
    start = desk.q["l_elbow_flexion"]
    desk.run(l_elbow_flexion=start)
    before = len(desk.said)
    desk.process.send_signal(signal.SIGINT)
    stopping = lambda: any("STOPPING" in m.data for m in desk.said[before:])  # noqa: E731  it may last for a moment only
    graph.until(stopping, "the driver to stop", meanwhile=desk.command(l_elbow_flexion=start))
    with contextlib.suppress(ProcessLookupError):
        desk.process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    assert desk.process.wait(20) == 0 and time.monotonic() - begin < 5.0


def test_a_person_without_ros_tools_calls_the_services(graph):
    desk = Desk(graph, "hardware:=loopback")

    def call(word):
        done = graph.warm.run(["hardware", "call", word], dict(os.environ), graph.folder, 60)
        return done.returncode, done.stdout.strip()

    assert call("enable") == (0, "done")
    desk.until("HOLD")
    assert call("disable") == (0, "done")
    desk.until("MONITOR")
    code, words = call("clear")
    assert code == 1 and words == "nothing to clear: MONITOR"


@pytest.mark.nightly
def test_a_shutdown_of_the_node_switches_off(graph):
    from lifecycle_msgs.srv import ChangeState

    desk = Desk(graph)
    desk.run(l_elbow_flexion=desk.q["l_elbow_flexion"])
    request = ChangeState.Request()
    request.transition.id = 7  # shutdown, while active
    assert graph.call(ChangeState, "robot_driver/change_state", request).success
    text = graph.output(desk.process)
    assert text.index("STOPPING: switching off") < text.rindex("MONITOR")


def test_supplies_buses_and_joints_are_reported(graph, hardware_file):
    """`battery`, and a status for each bus and for the joints; a bus without samples says so."""
    hardware_file.write_text(hardware_file.read_text().replace("loopback,", "loopback, voltage: 47.5, loss: 0.1,"))
    desk = Desk(graph, f"hardware:={hardware_file}")
    batteries = graph.listen(BatteryState, "battery", 10)
    graph.until(lambda: len(batteries) > 1, "supplies")
    m = batteries[-1]
    assert m.location == "both" and m.voltage == 47.5 and m.present and math.isnan(m.percentage)
    assert m.header.stamp.sec > 0 and m.current == 0.0, "nothing moves"
    graph.until(lambda: float(graph.diagnostics("robot_driver: bus both")["received_hz"]) > 0, "rates")
    bus = graph.diagnostics("robot_driver: bus both")
    assert bus["level"] == 1 and "% of the samples are lost" in bus["message"]
    assert int(bus["lost_samples"]) > 0 and int(bus["errors"]) > 0 and bus["load_percent"] == "0.0"
    # Two drives at 200 Hz, a tenth of the samples is lost; the machine may be slow, and catches up afterwards.
    assert 30 < float(bus["received_hz"]) < 600 and float(bus["sent_hz"]) == 0.0
    joints = graph.diagnostics("robot_driver: joints")
    assert joints["temperature l_elbow_flexion"] == "25.0" and "temperature l_knee_flexion" not in joints
    assert float(joints["following_error r_elbow_flexion"]) < 0.01
    assert "MONITOR" in desk.said[-1].data


@pytest.mark.nightly
def test_joints_are_homed_by_a_service_before_commands_are_followed(graph, hardware_file):
    """Refused without power; `humanoid hardware call home`; commands wait for it."""
    text, robot = hardware_file.read_text(), load_robot("hrp2", "fixed")
    k = robot.index["l_elbow_flexion"]
    row = f"id: {k}, absolute: false, switch: -0.2, homing: {{method: 17, angle: 0.3, speed: 1.0}}"
    hardware_file.write_text(text.replace(f"id: {k}, start", f"{row}, start"))
    desk = Desk(graph, f"hardware:={hardware_file}")
    assert desk.ask("home") == (False, "homing is possible only in HOLD: state is MONITOR")
    assert desk.ask("enable", True) == (True, "")
    desk.until("HOLD")
    send = desk.command(r_elbow_flexion=desk.q["r_elbow_flexion"])
    said = graph.until_said("robot_driver", "not homed: l_elbow_flexion", meanwhile=send)
    assert said["level"] == 1 and "HOLD" in desk.said[-1].data, "commands are not followed"
    done = graph.warm.run(["hardware", "call", "home"], dict(os.environ), graph.folder, 60)
    assert (done.returncode, done.stdout.strip()) == (0, "done")
    desk.until("RUN", send)
    assert "HOLD: homing l_elbow_flexion; 0 of 1 done" in graph.output(desk.process)
    assert abs(desk.q["l_elbow_flexion"] - 0.3) < 0.1, "it is where its switch is"


@pytest.mark.nightly
def test_a_trajectory_without_power_or_after_a_stop_or_out_of_date_is_refused_and_never_moves_the_robot(graph):
    desk = Desk(graph)
    start = desk.q["l_elbow_flexion"]
    trajectories = graph.publisher(JointTrajectory, "joint_trajectory")
    graph.until(lambda: trajectories.get_subscription_count() > 0, "the driver")

    def send(age=0.0):
        m = JointTrajectory(joint_names=["l_elbow_flexion"])
        m.points.append(JointTrajectoryPoint(positions=[start + 0.4]))
        m.points[0].time_from_start.nanosec = 500_000_000
        if age:
            m.header.stamp = stamp_of(time.time_ns() - int(1e9 * age))
        trajectories.publish(m)

    def rests():
        n = len(desk.states)
        graph.until(lambda: len(desk.states) > n + 200, "a second of states")
        assert abs(desk.q["l_elbow_flexion"] - start) < 1e-3 and "HOLD" in desk.said[-1].data

    graph.until_said("robot_driver", "trajectory rejected: state is MONITOR", meanwhile=send)
    assert desk.ask("enable", True)[0]
    desk.until("HOLD")
    rests()
    graph.until_said("robot_driver", "trajectory rejected: it ended 3599", meanwhile=lambda: send(3600.0))
    rests()
    assert desk.ask("stop")[0]
    desk.until("HOLD")
    graph.until_said("robot_driver", "trajectory rejected: stop was requested", meanwhile=send)
    assert desk.ask("enable", True)[0]
    rests()
    send(-1.0)
    desk.until("RUN")
    graph.until(lambda: abs(desk.q["l_elbow_flexion"] - start - 0.4) < 1e-3, "the end of one that begins in a second")
