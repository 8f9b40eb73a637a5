"""Pairs of links that gates let touch, as parameters of simulator and driver (P43)."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import numpy as np

from humanoid_control.hardware.hardware_file import without_file
from humanoid_control.nodes.driving.torque_gate import DriverGate
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def test_the_drivers_gate_leaves_these_pairs_alone():
    robot = load_robot("hrp2", "floating")
    names = without_file(load_robot("hrp2", "fixed"), "loopback").names
    gate = DriverGate(robot, names, robot.postures["neutral"], "l_hand/r_hand").gate
    assert gate.settings.exempt == (frozenset({"l_hand", "r_hand"}),)
    links = {s.name: s.link for s in robot.shapes}
    pairs = [frozenset(links[n] for n in gate._monitor.name(k)) for k in range(gate._monitor.count)]
    left = np.array([pair == {"l_hand", "r_hand"} for pair in pairs])
    assert left.any() and (gate._exempt == left).all()


@pytest.mark.parametrize("node", ["simulator", "robot_driver"])
def test_a_typo_is_refused_in_one_line(graph, node):
    more = ("hardware:=loopback",) if node == "robot_driver" else ()
    process = graph.start(node, "robot:=hrp2", "may_touch:=l_hnd/r_hand", *more, wait=False)
    graph.until(lambda: process.poll() is not None or "did you mean" in graph.output(process), "the refusal")
    assert "unknown link with shapes in may_touch 'l_hnd': did you mean l_hand" in graph.output(process)
