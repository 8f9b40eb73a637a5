"""Files for ros2_control against its grammar, its parameters, and the rules of the plugin that they name."""

import ast
import math
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
import yaml

from humanoid_control.cli.main import main
from humanoid_control.errors import RobotError
from humanoid_control.hardware.commands.command_stream import CommandReader
from humanoid_control.hardware.ros2_control.control_files import ros2_control_urdf, write_ros2_control
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.joint_groups import controlled_joints
from humanoid_control.robots.names import CATALOGUE
from test.hardware.ros2_control_rules import CONTROLLER_KEYS, TopicSystem, check_element, check_joints, check_keys

MIMIC = """<robot name="gripper">
  <link name="base"/><link name="a"/><link name="b"/><link name="c"/>
  <joint name="turn" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
    <limit effort="5" velocity="2"/></joint>
  <joint name="finger" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
    <limit lower="-0.5" upper="1.25" effort="5" velocity="2"/></joint>
  <joint name="thumb" type="revolute"><parent link="a"/><child link="c"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="5" velocity="2"/><mimic joint="finger" multiplier="-1"/></joint>
</robot>
"""


@pytest.fixture(scope="module", params=CATALOGUE)
def files(request, tmp_path_factory):
    robot = load_robot(request.param, "fixed")
    paths = write_ros2_control(robot, request.param, tmp_path_factory.mktemp(request.param), 500)
    return robot, *(p.read_text() for p in paths)


def tag_of(urdf):
    return ET.fromstring(urdf).find("ros2_control")


def test_the_tag_is_what_the_component_parser_reads(files):
    robot, urdf, _, _ = files
    root = ET.fromstring(urdf)
    (tag,) = root.findall("ros2_control")
    check_element(tag)
    check_joints(tag, root)
    assert [j.attrib["name"] for j in tag.findall("joint")] == controlled_joints(robot)
    for joint in tag.findall("joint"):
        k = robot.index[joint.attrib["name"]]
        low, high = (float(joint.find(f"command_interface/param[@name='{end}']").text) for end in ("min", "max"))
        assert (low, high) == (robot.lower[k], robot.upper[k])


def test_the_urdf_is_the_same_robot(files):
    robot, urdf, _, _ = files
    model = pin.buildModelFromXML(urdf)
    plain = pin.buildModelFromXML(robot.urdf)
    assert list(model.names) == list(plain.names) and (model.upperPositionLimit == plain.upperPositionLimit).all()
    start = urdf.index("  <ros2_control")
    end = urdf.index("</ros2_control>\n") + len("</ros2_control>\n")
    assert urdf[:start] + urdf[end:] == robot.urdf


def test_parameters_are_those_of_the_controllers(files):
    robot, _, text, _ = files
    rows = {name: row["ros__parameters"] for name, row in yaml.safe_load(text).items()}
    assert rows.keys() == CONTROLLER_KEYS.keys()
    for name, row in rows.items():
        check_keys(row, CONTROLLER_KEYS[name], controlled_joints(robot), f"{name}: ")
    assert rows["joint_trajectory_controller"]["joints"] == controlled_joints(robot)
    assert set(rows["controller_manager"]) - {"update_rate"} == {
        "joint_state_broadcaster",
        "joint_trajectory_controller",
        "forward_position_controller",
    }
    with pytest.raises(AssertionError):
        check_keys({"jonits": ["a"]}, CONTROLLER_KEYS["forward_position_controller"], [])


def test_the_plugin_publishes_what_our_nodes_take(files):
    """Also at rest; not finite while no controller is active, which commands no joint."""
    robot, urdf, _, _ = files
    plugin, reader = TopicSystem(tag_of(urdf)), CommandReader(robot.joint_names)
    assert plugin.commands_topic.startswith("/hardware/") and plugin.states_topic.startswith("/hardware/")
    message = plugin.write()
    assert message is not None and all(math.isnan(p) for p in message.position)
    assert reader.read(message.name, message.position, message.velocity, message.effort) is None
    q = robot.postures["neutral"].copy()
    zeros = np.zeros(robot.n)
    plugin.read(SimpleNamespace(name=list(robot.joint_names), position=q, velocity=zeros, effort=zeros))
    for name in controlled_joints(robot):
        plugin.commands[f"{name}/position"] = plugin.states[f"{name}/position"]
    message = plugin.write()
    assert message is not None, "at rest it publishes too"
    command = reader.read(message.name, message.position, message.velocity, message.effort)
    led = [follower for follower, *_ in robot.mimic]
    q[led] = np.nan  # joints that mimic have no interface
    assert np.array_equal(command.q, q, equal_nan=True)


def test_the_replica_has_the_plugins_traps():
    """Without our threshold a robot at rest sends nothing; with mixed interfaces lengths differ."""
    robot = load_robot("hrp2", "fixed")
    text = ros2_control_urdf(robot)
    silent = TopicSystem(tag_of(text.replace('threshold">-1<', 'threshold">1e-5<')))
    for name, _ in silent.joints:
        silent.commands[f"{name}/position"] = silent.states[f"{name}/position"]
    assert silent.write() is None
    mixed = tag_of(text)
    mixed.findall("joint")[0].remove(mixed.findall("joint")[0].find("command_interface"))
    message = TopicSystem(mixed).write()
    assert len(message.position) == len(message.name) - 1


def test_the_launch_file_is_python_that_starts_controllers(files):
    robot, _, _, text = files
    tree = ast.parse(text)
    strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    assert {"ros2_control_node", "spawner", "joint_trajectory_controller", "/hardware/joint_commands"} <= strings
    assert f"{robot.name}.controllers.yaml" in strings and f"{robot.name}.ros2_control.urdf" in strings


def test_any_urdf_with_a_joint_that_mimics_and_one_without_range(tmp_path, capsys):
    source = tmp_path / "gripper.urdf"
    source.write_text(MIMIC)
    out = tmp_path / "out"
    assert main(["ros2_control", "--robot", str(source), "-o", str(out), "--rate", "250"]) == 0
    assert sorted(p.name for p in out.iterdir()) == [
        "gripper.controllers.yaml",
        "gripper.ros2_control.launch.py",
        "gripper.ros2_control.urdf",
    ]
    root = ET.fromstring((out / "gripper.ros2_control.urdf").read_text())
    tag = root.find("ros2_control")
    check_element(tag)
    check_joints(tag, root)
    message = TopicSystem(tag).write()
    assert message.name == ["turn", "finger"] and len(message.position) == 2
    assert (
        yaml.safe_load((out / "gripper.controllers.yaml").read_text())["controller_manager"]["ros__parameters"][
            "update_rate"
        ]
        == 250
    )
    assert str(source) in (out / "gripper.ros2_control.launch.py").read_text()


def test_a_tag_that_is_there_already_and_bad_input_are_said(tmp_path, capsys):
    robot = load_robot("hrp2", "fixed")
    robot.urdf = ros2_control_urdf(robot)
    with pytest.raises(RobotError, match="has a ros2_control tag already"):
        ros2_control_urdf(robot)
    assert main(["ros2_control", "--robot", "hrp3", "-o", str(tmp_path)]) == 2
    assert main(["ros2_control", "--robot", "hrp2", "-o", str(tmp_path), "--rate", "3"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "did you mean hrp2" in said[0] and "--rate must be between" in said[1]


def test_robots_whose_drives_take_gains_have_five_command_interfaces_a_joint(tmp_path, capsys):
    assert main(["ros2_control", "--robot", "hrp2", "-o", str(tmp_path), "--gains"]) == 0
    robot = load_robot("hrp2", "fixed")
    root = ET.parse(tmp_path / "hrp2.ros2_control.urdf").getroot()
    tag = root.find("ros2_control")
    check_element(tag)
    check_joints(tag, root)
    assert tag.find("hardware/plugin").text == "mujoco_ros2_control/MujocoSystem" and not tag.findall("hardware/param")
    kinds = ["position", "velocity", "effort", "stiffness", "damping"]
    assert all([c.get("name") for c in j.findall("command_interface")] == kinds for j in tag.findall("joint"))
    rows = yaml.safe_load((tmp_path / "hrp2.controllers.yaml").read_text())
    for kind in kinds:
        name = f"forward_{kind}_controller"
        row = rows[name]["ros__parameters"]
        assert row == {"joints": controlled_joints(robot), "interface_name": kind}
        assert rows["controller_manager"]["ros__parameters"][name]["type"].endswith("ForwardCommandController")
    launch = (tmp_path / "hrp2.ros2_control.launch.py").read_text()
    ast.parse(launch)
    assert '"forward_damping_controller"' in launch
    assert main(["ros2_control", "--robot", "hrp2", "-o", str(tmp_path), "--plugin", "my/System"]) == 2
    assert "--plugin needs --gains" in capsys.readouterr().err
