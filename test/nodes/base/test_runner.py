"""Node processes: bad parameters end in one line and exit code 2; signals end them quickly and cleanly."""

import dataclasses
import signal
import time
from pathlib import Path

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from humanoid_control.nodes import NODES as NODES_BY_NAME
from test.places import port
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros, pytest.mark.patient]


@pytest.mark.parametrize(
    ("node", "parameters", "words"),
    [
        ("simulator", ["robot:=hpr2"], "did you mean hrp2"),
        ("simulator", ["rate:=-5.0"], "must be in 10 .. 1000"),
        ("simulator", ["rate:=fast"], "must be float"),
        ("simulator", ["base:=flaoting"], "did you mean floating"),
        ("simulator", ["engine:=mujocco"], "did you mean mujoco"),
        ("simulator", ["noise:=postion=0.1"], "did you mean position"),
        ("whole_body_ik", ["margin:=3.0"], "must be in 0 .. 0.2"),
        ("trajectory_streamer", ["clip:=nowhere.trc"], "nowhere.trc"),
        ("state_estimator", ["robot:=/etc/hostname"], "XML"),
        ("state_estimator", ["cpu:=fast"], "cpu must be CPU numbers"),
    ],
)
def test_bad_parameters_end_in_one_line_and_code_2(graph, node, parameters, words):
    process = graph.start(node, *parameters, wait=False)
    assert process.wait(60) == 2
    text = graph.output(process)
    assert words in text
    assert "Traceback" not in text
    assert any(line.startswith(f"{node}: ") and words in line for line in text.splitlines())


def test_a_robot_that_cannot_be_simulated_ends_in_one_line_and_code_2(graph, tmp_path):
    path = tmp_path / "ghost.urdf"
    path.write_text(
        '<robot name="ghost"><link name="base"/><link name="arm"/><joint name="j" type="continuous">'
        '<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>'
    )
    process = graph.start("simulator", f"robot:={path}", wait=False)
    assert process.wait(60) == 2
    text = graph.output(process)
    assert "simulator: ghost: link 'arm' moves and has no mass" in text and "Traceback" not in text


def test_an_occupied_port_is_said(graph):
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        taken = s.getsockname()[1]
        process = graph.start("viewer", f"port:={taken}", wait=False)
        assert process.wait(60) == 2
    assert f"port {taken} is in use" in graph.output(process)


@pytest.mark.timed
@pytest.mark.parametrize(
    ("node", "number", "fresh"),
    [
        *(nightly(node, signal.SIGINT, False) for node in ("state_estimator", "trajectory_streamer")),
        *((node, signal.SIGINT, False) for node in ("whole_body_ik", "viewer")),
        nightly("viewer", signal.SIGTERM, False),
        nightly("simulator", signal.SIGINT, True),
        ("simulator", signal.SIGTERM, True),
    ],
)
def test_signals_end_a_node_within_two_seconds(graph, node, number, fresh):
    extra = [f"port:={port(9)}"] if node == "viewer" else []
    process = graph.start(node, *extra, fresh=fresh)
    graph.spin(0.3)
    code, took = graph.stop(process, number)
    assert code == 0, graph.output(process)
    assert took < 2.0
    assert "Traceback" not in graph.output(process)


STUCK = """
import ctypes
from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import TickNode

class Stuck(TickNode):
    node_name = "stuck"

    def configure(self):
        if self.get_name() == "refused":
            raise ConfigError("no")
        return 50.0

    def destroy_node(self):
        ctypes.PyDLL(None).sleep(30)  # no thread of Python runs meanwhile

if __name__ == "__main__":
    main_of(Stuck)
"""


@pytest.mark.parametrize(("name", "code"), [nightly("refused", 2), ("good", 0)])
def test_a_node_that_cannot_leave_the_network_ends_with_its_exit_code(graph, tmp_path, name, code):
    script = tmp_path / "stuck.py"
    script.write_text(STUCK)
    process, begin = graph.start(str(script), args=("-r", f"__node:={name}"), wait=code == 0), time.monotonic()
    found = process.wait(60) if code else graph.stop(process)[0]
    assert found == code and time.monotonic() - begin < 20.0


@pytest.mark.nightly
def test_two_interrupts_are_one(graph):
    process = graph.start("simulator", fresh=True)
    process.send_signal(signal.SIGINT)
    time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0


def test_a_namespace_puts_two_robots_side_by_side(graph):
    graph.start("simulator", "robot:=hrp2", "rate:=100.0", args=("-r", "__ns:=/left"))
    graph.start("simulator", "robot:=lola", "rate:=100.0", args=("-r", "__ns:=/right"))
    left, right = graph.listen(JointState, "/left/joint_states"), graph.listen(JointState, "/right/joint_states")
    graph.until(lambda: left and right, "both robots")
    assert "l_hand_grip" in left[0].name and "l_toe_flexion" in right[0].name


def test_the_parameter_file_of_the_repository_is_accepted(graph):
    file = Path(__file__).resolve().parents[3] / "config" / "simulator.yaml"
    process = graph.start("simulator", args=("--params-file", str(file)))
    assert process.poll() is None and "READY" in graph.output(process)


def test_the_single_threaded_executor_serves_as_well(graph, monkeypatch):
    monkeypatch.setenv("HUMANOID_EXECUTOR", "single")
    process = graph.start("simulator", "rate:=100.0")
    states = graph.listen(JointState, "joint_states")
    graph.until(lambda: len(states) > 50, "joint states")
    assert graph.stop(process)[0] == 0


PICKY = """
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import TickNode
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

class Picky(TickNode):
    node_name = "picky"

    def configure(self):
        self.taken = 0
        self.listen(JointState, "numbers", self.on_numbers, wakes=True)
        self.create_service(Trigger, "~/divide", lambda request, response: 1 / 0)
        return 50.0

    def on_numbers(self, message):
        message.position[0]
        self.taken += 1

    def values(self):
        return {"taken": self.taken}

if __name__ == "__main__":
    main_of(Picky)
"""


def test_a_callback_that_raises_is_reported_and_the_node_goes_on(graph, tmp_path):
    """Of a subscription and of a service; the next good message ends the complaint."""
    script = tmp_path / "picky.py"
    script.write_text(PICKY)
    process = graph.start(str(script), "missed_warn:=100.0")
    numbers = graph.publisher(JointState, "numbers")
    said = graph.until_said("picky", "message on numbers failed", lambda: numbers.publish(JointState()))
    assert said["level"] == 2 and "IndexError" in said["message"] and said["state"] == "active"
    graph.until_said("picky", "ok", lambda: numbers.publish(JointState(position=[1.0])))
    assert int(graph.diagnostics("picky")["taken"]) > 0
    answer = graph.call(Trigger, "/picky/divide")
    assert not answer.success and "ZeroDivisionError" in answer.message
    assert "service ~/divide failed" in graph.diagnostics("picky")["message"]
    assert process.poll() is None and graph.stop(process)[0] == 0


def test_parameters_keep_their_types_whatever_was_set_or_refused(graph):
    """Whole numbers are understood where a float is declared; what is shown is what is declared."""
    from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
    from rclpy.parameter import Parameter

    from humanoid_control.nodes.base.parameters import default_of

    fields = {f.name: f for f in dataclasses.fields(NODES_BY_NAME["state_estimator"].parameter_class())}
    declared = {n: Parameter.Type.from_parameter_value(default_of(f)).value for n, f in fields.items()}
    graph.start("state_estimator", "rate:=100", "bandwidth:=90")

    def types():
        request = DescribeParameters.Request(names=list(fields))
        return {
            d.name: d.type
            for d in graph.call(DescribeParameters, "state_estimator/describe_parameters", request).descriptors
        }

    def set_to(name, value):
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        return graph.call(SetParameters, "state_estimator/set_parameters", request).results[0]

    def bandwidth():
        request = GetParameters.Request(names=["bandwidth"])
        return graph.call(GetParameters, "state_estimator/get_parameters", request).values[0]

    assert types() == declared
    assert bandwidth().type == declared["bandwidth"] and bandwidth().double_value == 90.0
    assert set_to("bandwidth", 80).successful
    assert bandwidth().type == declared["bandwidth"] and bandwidth().double_value == 80.0
    for wrong in ("much", True, [1.0, 2.0]):
        refused = set_to("bandwidth", wrong)
        assert not refused.successful and "type" in refused.reason
    assert not set_to("rate", 200).successful
    assert types() == declared and bandwidth().double_value == 80.0
