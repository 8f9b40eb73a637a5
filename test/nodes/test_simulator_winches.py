"""The simulator with winches: tendon_commands in, wires, rates and tensions out, faults while it runs (TC-22)."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def set_faults(graph, text):
    given = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=text)
    request = SetParameters.Request(parameters=[Parameter(name="tendon_faults", value=given)])
    assert graph.call(SetParameters, "simulator/set_parameters", request).results[0].successful


def test_tendon_commands_move_the_winches_and_faults_are_physical(graph):
    graph.start("simulator", "robot:=kengoro_upper", "drives:=winches", "command_timeout:=0.2")
    tendons, joints = graph.listen(JointState, "tendon_states"), graph.listen(JointState, "joint_states")
    graph.until(lambda: tendons and joints, "tendons and joints")
    names = list(tendons[-1].name)
    k, elbow = names.index("l_biceps"), list(joints[-1].name).index("l_elbow_pitch")
    assert len(names) == len(tendons[-1].velocity) == 46 and max(tendons[-1].effort) < 320
    start, wire, tensions = joints[-1].position[elbow], tendons[-1].position[k], list(tendons[-1].effort)
    commands = graph.node.create_publisher(JointState, "tendon_commands", 10)

    def wind():
        rates = [0.0] * len(names)
        rates[k] = -0.02
        commands.publish(JointState(name=names, velocity=rates, effort=tensions))
        return tendons[-1].position[k] < wire - 2e-3

    graph.until(wind, "the biceps to be wound in")
    graph.until(lambda: abs(joints[-1].position[elbow] - start) > 0.02, "the elbow to follow")
    graph.until_said("simulator", "no tendon_commands: the winches hold their wires")
    graph.until(lambda: abs(tendons[-1].velocity[k]) < 1e-3, "the wires to be held")
    push = JointState(name=["l_biceps"], effort=[-10.0])
    commands.publish(JointState(name=["l_bicep"], effort=[10.0]))
    graph.until_said("simulator", "wires cannot push", lambda: commands.publish(push))
    set_faults(graph, "l_biceps=snapped")
    graph.until(lambda: tendons[-1].effort[k] == 0.0, "the torn wire")
    set_faults(graph, "l_biceps=slippd")
    graph.until_said("simulator", "did you mean slipped")
    set_faults(graph, "")
    assert graph.call(Trigger, "simulator/reset", Trigger.Request()).success
    graph.until(lambda: np.allclose(tendons[-1].effort, tensions, atol=5.0), "the wires as at the start")
    graph.until(lambda: joints[-1].position[elbow] == pytest.approx(start, abs=1e-3), "the posture as at the start")


def test_parameters_of_winches_are_refused_without_them(graph):
    process = graph.start("simulator", "robot:=kengoro_upper", "path_friction:=0.1", wait=False)
    graph.until(
        lambda: "path_friction applies to drives 'winches', not to 'ideal'" in graph.output(process), "the refusal"
    )
