"""The driver of muscle units as a node, on simulated drives: power by request, commands, tensions, stops (TC-28)."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool, Trigger

from humanoid_control.nodes.base.messages import LATCHED

pytestmark = [pytest.mark.ros, pytest.mark.patient]
NAMES, ZERO, STIFF = ["l_biceps", "l_triceps"], 0.30, 2e4  # wires end at a wall: [m] of wire at rest, [N/m]
FILE = """schema: humanoid_hardware/1
robot: kengoro_upper
rate: 100
command_timeout: 2.0
buses:
  left: {transport: loopback, watchdog: 10.0}
tendons:
  l_biceps: {bus: left, id: 1, ratio: 2.0e-3, zero: 0.30, sensor: true, inertia: 0.01}
  l_triceps: {bus: left, id: 2, ratio: -2.0e-3, zero: 0.30, sensor: true, inertia: 0.01}
"""


@pytest.fixture
def winches(graph):
    """The node, and a wall to which its wires pull: a function that tells the tensions, and the newest states."""
    file = graph.folder / "arm.hardware.yaml"
    file.write_text(FILE)
    given = ("robot:=kengoro_upper", f"hardware:={file}", "late_tolerance:=100.0")
    graph.start("tendon_driver", *given)
    states, said = graph.listen(JointState, "tendon_states"), graph.listen(String, "hardware_state", LATCHED)
    sensor = graph.node.create_publisher(JointState, "tendon_tensions", 5)

    def feel():
        wire = np.array(states[-1].position) if states else np.full(2, ZERO)
        sensor.publish(JointState(name=NAMES, effort=np.maximum(0.0, STIFF * (ZERO + 0.002 - wire)).tolist()))

    graph.until(lambda: states and said, "states of the winches", meanwhile=feel)
    return states, said, feel


def test_power_by_request_commands_and_stops(graph, winches):
    states, said, feel = winches
    commands = graph.publisher(JointState, "tendon_commands")

    def pull(*tensions):
        feel()
        commands.publish(JointState(name=NAMES, velocity=[0.0, 0.0], effort=list(tensions)))

    def ask(service, kind=Trigger, **fields):
        return graph.call(kind, f"tendon_driver/{service}", kind.Request(**fields))

    start = np.array(states[-1].position)
    n = len(states)
    graph.until(lambda: len(states) > n + 30, "a while without power", meanwhile=lambda: pull(80.0, 60.0))
    assert np.abs(np.array(states[-1].position) - start).max() < 1e-4
    graph.until(lambda: ask("enable", SetBool, data=True).success, "power", meanwhile=feel)
    near = lambda: np.abs(np.array(states[-1].effort) - [80.0, 60.0]).max() < 4.0  # noqa: E731
    done = lambda: said[-1].data.startswith("RUN") and near()  # noqa: E731
    graph.until(done, "the tensions", meanwhile=lambda: pull(80.0, 60.0))
    wrong = JointState(name=["l_bicep"], effort=[10.0])
    graph.until_said("tendon_driver", "did you mean l_biceps", lambda: (pull(80.0, 60.0), commands.publish(wrong)))
    second = rclpy.create_node("second")
    try:
        other = second.create_publisher(JointState, "tendon_commands", 5)
        away = JointState(name=NAMES, velocity=[0.0, 0.0], effort=[200.0, 200.0])
        both = lambda: (pull(80.0, 60.0), other.publish(away))  # noqa: E731
        graph.until_said("tendon_driver", "/test is followed, /second is ignored", both)
        # where this process was paused, the second one was followed meanwhile
        graph.until(near, "the tensions of the first", meanwhile=both)
    finally:
        second.destroy_node()
    stop = graph.publisher(Bool, "emergency_stop")
    press = lambda: (feel(), stop.publish(Bool(data=True)))  # noqa: E731
    graph.until(lambda: said[-1].data.startswith("ESTOP"), "the stop", meanwhile=press)
    assert not ask("enable", SetBool, data=True).success
    stop.publish(Bool(data=False))
    graph.until(lambda: ask("clear_faults").success, "faults to be cleared", meanwhile=feel)
    graph.until(lambda: said[-1].data.startswith("MONITOR"), "no power", meanwhile=feel)


def test_a_file_of_joints_is_refused(graph):
    file = graph.folder / "joints.hardware.yaml"
    file.write_text(FILE.replace("tendons:", "joints:"))
    process = graph.start("tendon_driver", "robot:=kengoro_upper", f"hardware:={file}", wait=False)
    graph.until(lambda: "it belongs to robot_driver" in graph.output(process), "the refusal")
