"""Parts of the simulator: frames and names of what is published, and the joint that is farthest from its drive."""

from types import SimpleNamespace

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock
from sensor_msgs.msg import Imu, JointState

from humanoid_control.nodes.base import transforms
from humanoid_control.nodes.base.messages import stamp_of
from humanoid_control.nodes.simulating import outputs as simulator_outputs
from humanoid_control.nodes.simulating.inputs import SimulatorInputs
from humanoid_control.nodes.simulating.parameters import SimulatorParameters
from humanoid_control.robots import load_robot
from humanoid_control.robots.standard_frames import standard_frames
from humanoid_control.simulation import make_engine
from humanoid_control.simulation.drives.command_blend import ReferenceRate

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
    monkeypatch.setattr(transforms, "TFMessage", SimpleNamespace)
    path, sent = tmp_path / "boat.urdf", []
    path.write_text(f'<robot name="boat">{LINK.format("hull")}{LINK.format("arm")}{JOINT}</robot>')
    publisher = SimpleNamespace(publish=sent.append, get_subscription_count=lambda: 0)
    node = SimpleNamespace(create_publisher=lambda *args: publisher, get_clock=Clock)
    engine = make_engine(load_robot(str(path), "fixed"))
    simulator_outputs.SimulatorOutputs(node, engine, SimulatorParameters()).publish()
    odometry = next(m for m in sent if isinstance(m, Odometry))
    (root,) = [t for m in sent if isinstance(m, SimpleNamespace) for t in m.transforms if t.child_frame_id == "hull"]
    assert root.child_frame_id == odometry.child_frame_id == "hull"
    assert root.transform.translation.z == odometry.pose.pose.position.z


def test_odometry_has_every_number_of_the_base_in_its_place():
    sent, pose, twist = [], np.array([0.1, 0.2, 0.3, 0.5, -0.5, 0.5, 0.5]), np.arange(1.0, 7.0)
    outputs = simulator_outputs.SimulatorOutputs.__new__(simulator_outputs.SimulatorOutputs)
    outputs.engine = SimpleNamespace(base_state=lambda: (pose, twist), robot=SimpleNamespace(root_link="hull"))
    outputs._odometry, outputs._tf = SimpleNamespace(publish=sent.append), SimpleNamespace(sends=False)
    outputs.world_frame, outputs.root_frame = "map", "hull"
    outputs._send_odometry(stamp_of(1_500_000_000))
    (m,) = sent
    p, o, v, w = m.pose.pose.position, m.pose.pose.orientation, m.twist.twist.linear, m.twist.twist.angular
    assert (p.x, p.y, p.z, o.x, o.y, o.z, o.w) == tuple(pose)
    assert (v.x, v.y, v.z, w.x, w.y, w.z) == tuple(twist)
    assert (m.header.stamp.sec, m.header.stamp.nanosec) == (1, 500_000_000) and m.child_frame_id == "hull"
    assert m.header.frame_id == "map"


@pytest.mark.parametrize(("every", "expected"), [(0, 2), (1, 10), (2, 5)])
def test_imu_and_wrenches_come_as_often_as_a_walker_needs_and_the_truth_stays_off_tf(monkeypatch, every, expected):
    monkeypatch.setattr(transforms, "TFMessage", SimpleNamespace)
    sent = []
    publisher = SimpleNamespace(publish=sent.append, get_subscription_count=lambda: 0)
    node = SimpleNamespace(create_publisher=lambda *args: publisher, get_clock=Clock)
    engine = make_engine(load_robot("hrp2", "floating"))
    settings = SimulatorParameters(base="floating", slow_every=5, sensor_every=every, publish_tf=False)
    outputs = simulator_outputs.SimulatorOutputs(node, engine, settings)
    for _ in range(10):
        outputs.publish()
    kinds = [type(m) for m in sent]
    assert kinds.count(Imu) == expected and kinds.count(WrenchStamped) == expected * len(engine.robot.feet)
    assert kinds.count(Odometry) == 2 and kinds.count(JointState) == 10
    frames = {t.child_frame_id for m in sent if isinstance(m, SimpleNamespace) for t in m.transforms}
    fixed = {name for name, f in standard_frames(engine.robot).items() if not f.own}
    assert frames == {f"{f.name}_sole" for f in engine.robot.feet} | fixed, (
        "soles and frames of links, but not the root link"
    )


def test_every_sole_has_a_frame_on_its_link_in_the_middle_of_its_corners(monkeypatch):
    monkeypatch.setattr(transforms, "TFMessage", SimpleNamespace)
    robot, sent = load_robot("lola", "floating"), []
    outputs = simulator_outputs.SimulatorOutputs.__new__(simulator_outputs.SimulatorOutputs)
    outputs.engine = SimpleNamespace(base_state=lambda: (np.arange(7.0), np.zeros(6)), robot=robot)
    outputs._odometry = SimpleNamespace(publish=lambda m: None)
    outputs._tf = SimpleNamespace(sends=True, publish=lambda *all_of_them: sent.append(all_of_them))
    outputs._feet, outputs.publish_base = {f.name: None for f in robot.feet}, True
    outputs._frame, outputs.root_frame = SimulatorParameters().frame, robot.root_link
    outputs._send_odometry(stamp_of(1_500_000_000))
    base, *soles = sent[0]
    assert base.child_frame_id == robot.root_link and base.transform.rotation.w == 6.0
    assert [s.child_frame_id for s in soles] == [simulator_outputs.sole_frame(f.name) for f in robot.feet] != []
    for foot, sole in zip(robot.feet, soles, strict=True):
        t = sole.transform.translation
        assert sole.header.frame_id == foot.link and sole.header.stamp == base.header.stamp
        assert [t.x, t.y, t.z] == pytest.approx(foot.corners().mean(axis=0))


def test_the_joint_that_is_farthest_from_its_drives_reference_is_named_until_it_is_said():
    robot = load_robot("hrp2", "fixed")
    inputs = SimulatorInputs.__new__(SimulatorInputs)
    inputs.engine, inputs.robot, inputs.worst = make_engine(robot), robot, ("", 0.0)
    inputs.rate = ReferenceRate(robot.velocity)
    inputs.rate.restart(inputs.engine.drives, inputs.engine.joints)
    inputs.note_errors()
    assert inputs.worst[1] < 0.01
    for name, away in (("l_elbow_flexion", 0.3), ("r_knee_flexion", -0.2)):
        goal = inputs.engine.joints.copy()
        goal[robot.index[name]] += away
        inputs.engine.command(goal)
        inputs.note_errors()
        assert inputs.worst == ("l_elbow_flexion", pytest.approx(0.3, abs=0.01)), "the worst of all since it was said"
    inputs.worst = ("", 0.0)
    inputs.note_errors()
    assert inputs.worst == ("r_knee_flexion", pytest.approx(0.2, abs=0.01))
