"""MoveIt configurations against the rules of srdfdom and moveit2, and against pinocchio's reader of SRDF."""

import ast
import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin
import pytest
import yaml

from humanoid_control.cli.main import main
from humanoid_control.errors import RobotError
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.joint_groups import controlled_joints
from humanoid_control.robots.moveit.collision_pairs import LinkContacts, analyse_pairs, random_postures
from humanoid_control.robots.moveit.groups import planning_groups
from humanoid_control.robots.moveit.package_files import MoveItConfig, write_moveit_config
from humanoid_control.robots.names import CATALOGUE
from test.robots.moveit_rules import CONTROLLER, KINEMATICS, LIMITS, SrdfModel, Urdf, check_keys
from test.robots_under_test import by_kind

SAMPLES = 2000

GRIPPER = """<robot name="two_arms">
  <link name="base"/>
  {arms}
</robot>
"""
ARM = """
  <link name="{s}_upper"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <link name="{s}_lower">
    <collision><origin xyz="0 0 -0.2"/><geometry><box size="0.1 0.1 0.4"/></geometry></collision></link>
  <link name="{s}_thumb"/><link name="{s}_jaw"/>
  <joint name="{s}_shoulder" type="revolute"><parent link="base"/><child link="{s}_upper"/><origin xyz="0 {y} 1"/>
    <axis xyz="1 0 0"/><limit lower="-1.4" upper="1.4" effort="9" velocity="2"/></joint>
  <joint name="{s}_elbow" type="revolute"><parent link="{s}_upper"/><child link="{s}_lower"/><origin xyz="0 0 -0.3"/>
    <axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="9" velocity="3"/></joint>
  <joint name="{s}_thumb" type="revolute"><parent link="{s}_lower"/><child link="{s}_thumb"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="{s}_jaw" type="revolute"><parent link="{s}_lower"/><child link="{s}_jaw"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="{s}_thumb"/></joint>
"""
POINTS = """schema: humanoid_robot/1
points: {l_wrist: {link: l_lower, xyz: [0, 0, -0.4]}, r_wrist: {link: %s, xyz: [0, 0, 0]}}
"""


def two_arms(folder, apart=1.0, r_wrist="r_lower"):
    arms = "".join(ARM.format(s=s, y=y) for s, y in (("l", apart / 2), ("r", -apart / 2)))
    (folder / "two_arms.urdf").write_text(GRIPPER.format(arms=arms))
    (folder / "two_arms.yaml").write_text(POINTS % r_wrist)
    return folder / "two_arms.urdf"


@pytest.fixture(scope="module", params=by_kind(CATALOGUE))
def package(request, tmp_path_factory):
    robot = load_robot(request.param, "floating")
    config, folder = MoveItConfig.of(robot), tmp_path_factory.mktemp(request.param)
    write_moveit_config(config, folder)
    return robot, config, folder


def read(folder, name):
    return (folder / "config" / name).read_text()


def test_srdfdom_reads_everything_and_no_hand_shares_a_link_with_its_arm(package):
    robot, config, folder = package
    model = SrdfModel(Urdf(read(folder, f"{robot.name}.urdf")), read(folder, f"{robot.name}.srdf"))
    assert set(model.groups) >= {"l_arm", "r_arm", "arms", "upper_body"}
    for group in config.groups:
        assert model.moving(group.name) == set(group.joints)
    assert not model.moving("l_arm") & model.moving("r_arm")
    assert model.moving("arms") == model.moving("l_arm") | model.moving("r_arm")
    for hand in model.end_effectors:
        assert hand["parent_link"] in model.links_of(hand["parent_group"])
        assert not model.links_of(hand["group"]) & model.links_of(hand["parent_group"])
    assert {posture for posture, _ in model.states} == set(robot.postures)


def test_an_arm_ends_behind_its_wrist_and_begins_at_the_chest(package):
    """Joints of a chain are those that pinocchio moves the wrist by, behind those that move both wrists."""
    robot, config, _ = package
    mask = {
        s: robot.ancestor_mask[robot.model.frames[robot.points[f"{s}_wrist"]].parentJoint][robot.iv :] for s in "lr"
    }
    for side, other in ("lr", "rl"):
        own = {robot.joint_names[k] for k in np.flatnonzero(mask[side] * (1 - mask[other]))}
        (arm,) = (g for g in config.groups if g.name == f"{side}_arm")
        assert own <= set(arm.joints) and all(j.startswith(side) for j in arm.joints)


def test_pairs_called_never_do_not_touch_in_other_postures(package):
    """Pinocchio reads URDF and SRDF, with its own parser; postures are others than those of the analysis."""
    robot, config, folder = package
    urdf, srdf = read(folder, f"{robot.name}.urdf"), read(folder, f"{robot.name}.srdf")
    model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
    geometry = pin.buildGeomFromUrdfString(model, urdf, pin.GeometryType.COLLISION)
    geometry.addAllCollisionPairs()
    every = {(p.first, p.second) for p in geometry.collisionPairs}
    pin.removeCollisionPairsFromXML(model, geometry, srdf)
    left = {(p.first, p.second) for p in geometry.collisionPairs}
    links = [model.frames[g.parentFrame].name for g in geometry.geometryObjects]
    named = {tuple(sorted((links[a], links[b]))) for a, b in left if links[a] != links[b]}
    assert named == set(config.pairs.kept)
    never = {(p.link1, p.link2) for p in config.pairs.disabled if p.reason == "Never"}
    geometry.removeAllCollisionPairs()
    for a, b in sorted(every):
        if tuple(sorted((links[a], links[b]))) in never:
            geometry.addCollisionPair(pin.CollisionPair(a, b))
    data, gdata = model.createData(), geometry.createData()
    order = [robot.joint_names.index(n) for n in model.names[2:]]
    for joints in random_postures(robot, SAMPLES, seed=7):
        q = np.concatenate([[0, 0, 0, 0, 0, 0, 1], joints[order]])
        assert not pin.computeCollisions(model, data, geometry, gdata, q, True)


def test_mirrored_pairs_are_judged_alike(package):
    _, config, _ = package
    mirror = {"l_": "r_", "r_": "l_"}
    kept = {frozenset(pair) for pair in config.pairs.kept}
    assert kept and {frozenset(mirror.get(x[:2], x[:2]) + x[2:] for x in pair) for pair in kept} == kept


def test_states_are_the_postures_for_pinocchio_too(package):
    robot, _, folder = package
    model = pin.buildModelFromXML(read(folder, f"{robot.name}.urdf"))
    pin.loadReferenceConfigurationsFromXML(model, read(folder, f"{robot.name}.srdf"), False)
    for name, joints in robot.postures.items():
        q = np.array(model.referenceConfigurations[name])
        moved = {
            j.attrib["name"]
            for j in ET.fromstring(read(folder, f"{robot.name}.srdf")).iter("joint")
            if "value" in j.attrib
        }
        for joint in moved:
            assert q[model.joints[model.getJointId(joint)].idx_q] == pytest.approx(joints[robot.index[joint]], abs=1e-8)


def test_parameters_are_those_that_move_group_declares(package):
    robot, config, folder = package
    solvers = yaml.safe_load(read(folder, "kinematics.yaml"))
    joints = {g.name: g.joints for g in config.groups if g.tip_link}
    assert solvers.keys() == joints.keys()
    for name, row in solvers.items():
        check_keys(row, KINEMATICS)
        assert row.get("position_only_ik", False) == (len(joints[name]) < 6)
    limits = yaml.safe_load(read(folder, "joint_limits.yaml"))
    assert list(limits["joint_limits"]) == controlled_joints(robot)
    for name, row in limits["joint_limits"].items():
        check_keys(row, LIMITS)
        assert row["max_velocity"] == pytest.approx(robot.velocity[robot.index[name]], abs=1e-6)
        assert row["max_acceleration"] == pytest.approx(robot.acceleration_limits[robot.index[name]], abs=1e-6)
    text = read(folder, "moveit_controllers.yaml")
    rows = yaml.safe_load(text)
    assert rows["moveit_controller_manager"] == "moveit_simple_controller_manager/MoveItSimpleControllerManager"
    rows = rows["moveit_simple_controller_manager"]
    (name,) = rows["controller_names"]
    check_keys(rows[name], CONTROLLER)
    # MoveIt joins name and action_ns by a slash; an empty action_ns leaves the name: the action of robot_driver.
    assert (name, rows[name]["action_ns"]) == ("follow_joint_trajectory", "") and "&" not in text and "*" not in text


def test_the_package_is_found_by_the_builder_of_moveit(package):
    """MoveItConfigsBuilder reads .setup_assistant, and one file *_controllers.yaml."""
    robot, config, folder = package
    assistant = yaml.safe_load((folder / ".setup_assistant").read_text())["moveit_setup_assistant_config"]
    assert assistant["urdf"]["package"] == config.package == ET.parse(folder / "package.xml").findtext("name")
    assert all((folder / assistant[kind]["relative_path"]).is_file() for kind in ("urdf", "srdf"))
    assert len(list((folder / "config").glob("*_controllers.yaml"))) == 1
    words = {
        n.value
        for n in ast.walk(ast.parse((folder / "launch/move_group.launch.py").read_text()))
        if isinstance(n, ast.Constant)
    }
    assert {config.package, robot.name, "ompl", False} <= words


def test_the_gradient_leads_to_a_contact_that_random_postures_miss(tmp_path):
    """Two arms 0.9 m apart touch only with both stretched towards each other."""
    robot = load_robot(str(two_arms(tmp_path, 1.25)), "floating")
    pair, contacts = ("l_lower", "r_lower"), LinkContacts(robot)
    postures = random_postures(robot, 300)
    assert pair in contacts.pairs
    middle = [p for p in postures if pair not in contacts.touching(p)]
    assert len(middle) > 250 and contacts.nearest(pair, np.array(middle[:20])) < 0.01
    far = load_robot(str(two_arms(tmp_path, 3.0)), "floating")
    analysis = analyse_pairs(far)
    assert ("l_lower", "r_lower", "Never") in analysis.disabled and (
        "l_lower",
        "l_upper",
        "Adjacent",
    ) in analysis.disabled


def test_the_gradient_of_a_distance_is_that_of_finite_differences():
    robot = load_robot("hrp2", "floating")
    contacts, q, h = LinkContacts(robot), random_postures(robot, 5)[1], 1e-5
    for pair in (("l_hand", "r_shank"), ("head", "l_foot"), ("chest", "l_hand")):
        moving = contacts.joints_between(pair)
        _, row = contacts.measure(pair, q)
        gradient = contacts.gradient(row, moving)
        steps = h * np.eye(robot.n)[moving]
        numeric = [(contacts.measure(pair, q + s)[0] - contacts.measure(pair, q - s)[0]) / (2 * h) for s in steps]
        assert np.abs(gradient).max() > 0.1
        np.testing.assert_allclose(gradient, numeric, atol=1e-7)


def test_a_hand_is_not_part_of_its_arm_and_followers_are_in_no_group(tmp_path):
    groups, ends = planning_groups(load_robot(str(two_arms(tmp_path)), "floating"))
    by_name = {g.name: g for g in groups}
    assert by_name["l_arm"].joints == ("l_shoulder", "l_elbow") and by_name["l_arm"].base_link == "base"
    assert by_name["l_hand"].joints == ("l_thumb",) and by_name["l_hand"].links == ("l_thumb", "l_jaw")
    assert [e.parent_link for e in ends] == ["l_lower", "r_lower"] and "waist" not in by_name


def test_a_robot_without_two_arms_is_refused_in_a_line(tmp_path, capsys):
    with pytest.raises(RobotError, match="moved by the same joints"):
        planning_groups(load_robot(str(two_arms(tmp_path, r_wrist="l_lower")), "floating"))
    path = two_arms(tmp_path)
    (tmp_path / "two_arms.yaml").write_text("schema: humanoid_robot/1\n")
    assert main(["moveit", "--robot", str(path), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip()
    assert "lacks the points l_wrist, r_wrist" in said and not (tmp_path / "out").exists()


def test_the_command_writes_a_package_for_ros2_control_and_replaces_it(tmp_path, capsys):
    path, out = two_arms(tmp_path), tmp_path / "out"
    for _ in range(2):
        assert (
            main(["moveit", "--robot", str(path), "-o", str(out), "--controller", "joint_trajectory_controller"]) == 0
        )
    rows = yaml.safe_load((out / "config/moveit_controllers.yaml").read_text())["moveit_simple_controller_manager"]
    assert rows["joint_trajectory_controller"]["action_ns"] == "follow_joint_trajectory"
    assert rows["joint_trajectory_controller"]["joints"] == [
        "l_shoulder",
        "l_elbow",
        "l_thumb",
        "r_shoulder",
        "r_elbow",
        "r_thumb",
    ]
    assert sorted(p.name for p in out.iterdir()) == [
        ".setup_assistant",
        "CMakeLists.txt",
        "config",
        "launch",
        "package.xml",
    ]
    assert main(["moveit", "--robot", str(path), "-o", str(out), "--controller", "a b"]) == 2
    assert "--controller must be a ROS name" in capsys.readouterr().err
