"""Outputs of the simulator: frames and names of what is published."""

from types import SimpleNamespace

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from nav_msgs.msg import Odometry
from rclpy.clock import Clock

from humanoid_control.nodes import simulator_io
from humanoid_control.nodes.simulator_parameters import SimulatorParameters
from humanoid_control.robots import load_robot
from humanoid_control.simulation import make_engine

pytestmark = pytest.mark.ros
LINK = (
    '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    "</inertial></link>"
)
JOINT = (
    '<joint name="shoulder" type="revolute"><parent link="hull"/><child link="arm"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="1" effort="10" velocity="3"/></joint>'
)


def test_transforms_place_the_root_link_of_any_urdf_as_the_odometry_does(monkeypatch, tmp_path):
    """Not every root is called base_link. The wheels of ROS lack tf2_msgs: a message of that form stands in."""
    monkeypatch.setattr(simulator_io, "TFMessage", SimpleNamespace)
    path, sent = tmp_path / "boat.urdf", []
    path.write_text(f'<robot name="boat">{LINK.format("hull")}{LINK.format("arm")}{JOINT}</robot>')
    publisher = SimpleNamespace(publish=sent.append)
    node = SimpleNamespace(create_publisher=lambda *args: publisher, get_clock=Clock)
    engine = make_engine(load_robot(str(path), "fixed"))
    simulator_io.SimulatorOutputs(node, engine, SimulatorParameters()).publish()
    odometry = next(m for m in sent if isinstance(m, Odometry))
    (root,) = next(m.transforms for m in sent if isinstance(m, SimpleNamespace))
    assert root.child_frame_id == odometry.child_frame_id == "hull"
    assert root.transform.translation.z == odometry.pose.pose.position.z
