"""Launch files: one description for `ros2 launch` and `humanoid up`, loaded as far as this machine can."""

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from humanoid_control.errors import EnvironmentProblem, HumanoidError
from humanoid_control.paths import share_dir
from humanoid_control.session.stacks import NODES, STACKS
from humanoid_control.warm_up import compiled
from test.places import domain

NAV2 = share_dir() / "launch/nav2.launch.py"
EVERY_FILE = sorted((share_dir() / "launch").glob("*.launch.py"))
FILES = [f for f in EVERY_FILE if f != NAV2]
HAS_LAUNCH = all(importlib.util.find_spec(m) is not None for m in ("launch", "launch_ros"))
needs_launch = pytest.mark.skipif(
    not HAS_LAUNCH,
    reason="needs the packages launch and launch_ros: source a ROS 2 installation, or put them on PYTHONPATH",
)


SERVED = {"planner_server", "controller_server", "behavior_server", "bt_navigator", "velocity_smoother"}


def stack_of(path: Path) -> str:
    return re.search(r'stack_launch_description\("(\w+)"\)', path.read_text()).group(1)


def load(path: Path):
    spec = importlib.util.spec_from_file_location("launch_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_stack_has_a_launch_file_and_the_demo_too():
    assert {p.name.removesuffix(".launch.py") for p in EVERY_FILE} == {*STACKS, "demo", "nav2"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_launch_file_names_a_stack(path):
    """Without ROS the file loads, and what it would start is known."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    module = load(path)
    assert callable(module.generate_launch_description)
    assert stack_of(path) in STACKS
    if path.name != "demo.launch.py":
        assert stack_of(path) == path.name.removesuffix(".launch.py")


def test_every_executable_is_an_entry_point():
    text = (share_dir() / "setup.py").read_text()
    listed = set(re.findall(r'"(\w+)"', re.search(r"NODES = \[(.*?)\]", text, re.S).group(1)))
    assert listed == set(NODES)


@needs_launch
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_description_starts_the_nodes_of_its_stack(path):
    import launch_ros

    import launch

    description = load(path).generate_launch_description()
    context = launch.LaunchContext()
    context.launch_configurations.update(robot="lola", clip="dance", port="8123", rsp="false")
    actions = []
    for entity in description.entities:
        actions += entity.visit(context) or []
    nodes = [a for a in actions if isinstance(a, launch_ros.actions.Node)]
    wanted = [n.executable for n in STACKS[stack_of(path)].nodes]
    assert [n.node_executable for n in nodes] == wanted
    assert all(n.node_package == "humanoid_control" for n in nodes)
    assert [str(n.node_package) for n in nodes].count("rviz2") == 0
    arguments = {a.name for a in description.get_launch_arguments()}
    assert {"robot", "namespace", "params_file", "rsp", "rviz"} <= arguments


@needs_launch
def test_rviz_is_in_the_namespace_of_the_nodes(monkeypatch):
    """Its topics are relative: elsewhere it would listen to another robot, or to none."""
    import launch_ros

    import launch

    monkeypatch.setattr("humanoid_control.session.launching.description.installed", lambda package: True)
    description = load(share_dir() / "launch/demo.launch.py").generate_launch_description()
    context = launch.LaunchContext()
    context.launch_configurations.update(rviz="True", namespace="left", rsp="false")
    actions = [a for entity in description.entities for a in entity.visit(context) or []]
    nodes = {a.node_executable: a for a in actions if isinstance(a, launch_ros.actions.Node)}
    nodes["rviz2"]._perform_substitutions(context)
    assert nodes["rviz2"].expanded_node_namespace == "/left"


@needs_launch
def test_the_frame_prefix_goes_to_every_node_and_to_the_robot_state_publisher(monkeypatch):
    import launch_ros

    import launch

    monkeypatch.setattr("humanoid_control.session.launching.description.installed", lambda package: True)
    description = load(share_dir() / "launch/targets.launch.py").generate_launch_description()
    context = launch.LaunchContext()
    context.launch_configurations.update(frame_prefix="left/", namespace="left", rviz="true", world_frame="odom")
    actions = [a for entity in description.entities for a in entity.visit(context) or []]
    nodes = [a for a in actions if isinstance(a, launch_ros.actions.Node)]
    assert {"robot_state_publisher", *(n.executable for n in STACKS["targets"].nodes)} <= {
        n.node_executable for n in nodes
    }
    for node in nodes:
        node._perform_substitutions(context)
        words = " ".join(
            context.perform_substitution(w) if not isinstance(w, str) else w for w in _texts(node, context)
        )
        if node.node_executable == "rviz2":
            assert "left/odom" in words
        else:
            assert "left/" in words, node.node_executable


def _texts(node, context):
    """Contents of the parameter files, and the arguments, of a node that was expanded."""
    for path, is_file in node._Node__expanded_parameter_arguments or ():
        yield Path(path).read_text() if is_file else str(path)
    for argument in node._Node__arguments or ():
        yield argument if isinstance(argument, str) else context.perform_substitution(argument)


def actions_of_nav2(**configurations):
    import launch

    context = launch.LaunchContext()
    context.launch_configurations.update(robot="hrp2", port="8123", **configurations)
    entities = load(NAV2).generate_launch_description().entities
    return context, [a for entity in entities for a in entity.visit(context) or []]


@needs_launch
def test_navigation_without_nav2_is_refused_in_one_line():
    with pytest.raises(EnvironmentProblem, match=r"needs nav2_planner, nav2_controller, .*: install ros-") as e:
        actions_of_nav2()
    assert "\n" not in str(e.value)


@needs_launch
@pytest.mark.parametrize(("namespace", "prefix"), [("", ""), ("left", "left/")])
def test_navigation_starts_the_servers_between_walker_and_goal(monkeypatch, namespace, prefix):
    """Velocities of controller and behaviours pass the smoother; one manager configures all servers."""
    import launch_ros

    monkeypatch.setattr("humanoid_control.session.launching.description.installed", lambda package: True)
    monkeypatch.setattr("humanoid_control.session.launching.navigation.installed", lambda package: True)
    context, actions = actions_of_nav2(namespace=namespace, frame_prefix=prefix)
    nodes = {a.node_executable: a for a in actions if isinstance(a, launch_ros.actions.Node)}
    for node in nodes.values():
        node._perform_substitutions(context)
    assert {n.executable for n in STACKS["walking"].nodes} <= set(nodes)
    publishes = {name: dict(nodes[name].expanded_remapping_rules or ()) for name in SERVED}
    assert publishes["controller_server"] == publishes["behavior_server"] == {"cmd_vel": "cmd_vel_nav"}
    assert publishes["velocity_smoother"] == {"cmd_vel": "cmd_vel_nav", "cmd_vel_smoothed": "cmd_vel"}
    walker = " ".join(_texts(nodes["walker"], context))
    assert "cmd_vel_type: TwistStamped" in walker and "use_sim_time: true" in walker
    text, time = _texts(nodes["controller_server"], context)
    assert "use_sim_time: true" in time, "of the simulator, whose stamps odometry and transforms have"
    document = yaml.safe_load(text)
    document = document[namespace] if namespace else document
    manager = document["lifecycle_manager_navigation"]["ros__parameters"]
    assert manager["autostart"] and set(manager["node_names"]) == SERVED
    costmap = document["local_costmap"]["local_costmap"]["ros__parameters"]
    assert costmap["global_frame"] == f"{prefix}odom" and costmap["robot_base_frame"] == f"{prefix}base_footprint"
    assert document["bt_navigator"]["ros__parameters"]["global_frame"] == "map", "common to all robots"
    assert document["controller_server"]["ros__parameters"]["enable_stamped_cmd_vel"]
    transform = " ".join(_texts(nodes["static_transform_publisher"], context))
    assert f"--frame-id map --child-frame-id {prefix}odom" in transform
    context, actions = actions_of_nav2(localised="true")
    assert "static_transform_publisher" not in {getattr(a, "node_executable", "") for a in actions}


@needs_launch
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nav2_params": "/nowhere.yaml"}, "nav2_params /nowhere.yaml: No such file"),
        ({"localised": "maybe"}, "localised must be"),
    ],
)
def test_wrong_arguments_of_navigation_are_one_line(monkeypatch, given, words):
    monkeypatch.setattr("humanoid_control.session.launching.description.installed", lambda package: True)
    monkeypatch.setattr("humanoid_control.session.launching.navigation.installed", lambda package: True)
    with pytest.raises(HumanoidError, match=words):
        actions_of_nav2(**given)


@needs_launch
@pytest.mark.ros
@pytest.mark.stack
def test_the_real_launch_system_runs_the_demo(tmp_path):
    """`ros2 launch` without its command line: LaunchService, real nodes, real topics, a clean end."""
    prefix = tmp_path / "prefix"
    (prefix / "lib/humanoid_control").mkdir(parents=True)
    marker = prefix / "share/ament_index/resource_index/packages/humanoid_control"
    marker.parent.mkdir(parents=True)
    marker.touch()
    for node in NODES:
        script = prefix / "lib/humanoid_control" / node
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -u -m humanoid_control.nodes.{node} "$@"\n')
        script.chmod(0o755)
    code = (
        "import sys, launch\n"
        "from launch.launch_description_sources import PythonLaunchDescriptionSource\n"
        "s = launch.LaunchService(argv=['robot:=wabian2', 'port:=9377', 'rsp:=false'])\n"
        "a = [('robot', 'wabian2'), ('port', '9377'), ('rsp', 'false')]\n"
        f"source = PythonLaunchDescriptionSource('{share_dir()}/launch/demo.launch.py')\n"
        "d = launch.actions.IncludeLaunchDescription(source, launch_arguments=a)\n"
        "s.include_launch_description(launch.LaunchDescription([d]))\n"
        "sys.exit(s.run())\n"
    )
    env = {
        **os.environ,
        "AMENT_PREFIX_PATH": os.pathsep.join([str(prefix), os.environ.get("AMENT_PREFIX_PATH", "")]),
        "ROS_DOMAIN_ID": domain("launch"),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(tmp_path / "log"),
    }
    log = tmp_path / "launch.log"
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, "-u", "-c", code], env=env, stdout=out, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + (60 if all(compiled(g) for g in ("retargeting", "simulation")) else 300)
            while time.monotonic() < end and log.read_text().count("READY") < 5 and process.poll() is None:
                time.sleep(0.2)
            assert log.read_text().count("READY") == 5, log.read_text()[-3000:]
            time.sleep(2)
        finally:
            process.send_signal(2)
            code = process.wait(30)
    text = log.read_text()
    assert code == 0, text[-3000:]
    assert "Traceback" not in text and "process has died" not in text, text[-3000:]


def test_rviz_shows_what_the_viewer_shows():
    config = yaml.safe_load((share_dir() / "config/rviz/humanoid.rviz").read_text())
    displays = config["Visualization Manager"]["Displays"]
    topics = {d.get("Topic", d.get("Description Topic", {})).get("Value") for d in displays}
    shown = {"targets", "goals", "ik_markers", "tendon_markers", "dancer", "footsteps/planned"}
    assert {"robot_description", *shown} <= topics
    assert config["Visualization Manager"]["Global Options"]["Fixed Frame"] == "world"
