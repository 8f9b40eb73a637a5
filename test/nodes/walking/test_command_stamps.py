"""Header stamps of the walker's commands: no two closer than a period, so speeds by them are those of the joints."""

from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.base.messages import seconds
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.nodes.walking.joint_commands import JointCommands
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros]


@dataclass(frozen=True)
class Parameters(NodeParameters):
    rate: float = param(250.0, "rate of the commands", "Hz", 50.0, 1000.0)


class Commanding(TickNode):
    Parameters, node_name = Parameters, "commanding"

    def configure(self):
        return self.params.rate


def test_a_leap_is_made_at_the_speed_limit(graph):
    node, robot = Commanding(), load_robot("hrp2", "floating")
    try:
        node.trigger_configure()
        commands, sent = JointCommands(node, robot), []
        commands.owner.publish = lambda m: sent.append(np.array(m.position))
        q = robot.postures["neutral"]
        commands.begin(q)
        goal = np.clip(q + 0.04, robot.lower, robot.upper)
        for _ in range(3):
            assert commands.send(goal, np.zeros(robot.n))
        steps = np.abs(np.diff([q, *sent], axis=0))
        assert (steps <= robot.velocity / 250.0 * (1 + 1e-9)).all() and steps[2].max() > 0.0
        assert commands.values()["commands_limited"] == 3
    finally:
        node.destroy_node()


def test_commands_of_ticks_that_are_made_up_for_are_a_period_apart(graph):
    node, robot = Commanding(), load_robot("hrp2", "floating")
    try:
        node.trigger_configure()
        commands, sent = JointCommands(node, robot), []
        commands.owner.publish = lambda m: sent.append((seconds(m.header.stamp), np.array(m.position)))
        q = robot.postures["neutral"]
        commands.begin(q)
        step = 0.9 * robot.velocity / 250.0
        for k in range(1, 6):  # five at once, as after lost instants
            assert commands.send(np.clip(q + k * step, robot.lower, robot.upper), np.zeros(robot.n))
        t, positions = np.array([at for at, _ in sent]), np.array([x for _, x in sent])
        assert np.diff(t).min() > 0.00399
        speeds = np.abs(np.diff(positions, axis=0)) / np.diff(t)[:, None]
        assert (speeds / robot.velocity).max() < 0.95
    finally:
        node.destroy_node()
