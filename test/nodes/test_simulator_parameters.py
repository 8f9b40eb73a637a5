"""Parameters of the simulator: the tension, changed while it runs, and names that it does not know."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def test_the_tension_changes_while_the_simulator_runs_and_is_checked(graph):
    """Tendons show the new tension and move the robot; at 0 they show again what holds it; other values are refused."""
    graph.start("simulator", "robot:=kengoro_upper", "tendons:=true", "drives:=tendons")
    tendons, states = graph.listen(JointState, "tendon_states"), graph.listen(JointState, "joint_states")
    graph.until(lambda: tendons and states, "tendons and joints")
    holding, start = np.array(tendons[-1].effort), np.array(states[-1].position)

    def set_tension(value):
        given = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
        request = SetParameters.Request(parameters=[Parameter(name="tension", value=given)])
        return graph.call(SetParameters, "simulator/set_parameters", request).results[0]

    def pulls(expected):
        return lambda: np.allclose(np.array(tendons[-1].effort), expected, rtol=0, atol=1e-9)

    assert set_tension(40.0).successful
    graph.until(pulls(40.0), "the new tension")
    graph.until(lambda: np.abs(np.array(states[-1].position) - start).max() > 0.05, "the robot to give way")
    for wrong in (-1.0, 1e6, float("nan")):
        assert not set_tension(wrong).successful
    assert set_tension(0.0).successful
    graph.until(pulls(holding), "the tensions that hold the neutral posture")


def test_a_parameter_that_there_is_not_is_said_and_passed_over(graph):
    given = ("robot:=wabian2", "real_time_facter:=2.0", "use_sim_time:=false", "qos_overrides./clock.depth:=3")
    process = graph.start("simulator", *given)
    said = [line for line in graph.output(process).splitlines() if "unknown parameter" in line]
    assert len(said) == 1 and "'real_time_facter': did you mean real_time_factor? (ignored)" in said[0]
