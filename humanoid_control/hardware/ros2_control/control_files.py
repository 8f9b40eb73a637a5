"""ros2_control files of a robot: URDF tag, controllers, launch file.

The plugin JointStateTopicSystem determines the files:

* It publishes only if command and state differ by a threshold, which would trip a watchdog at rest. Threshold -1:
  always.
* It publishes only if command and state differ by a threshold; -1: always.
* All joints of its tag need the same interfaces; mimic joints are left to the URDF.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import yaml

from humanoid_control.errors import RobotError
from humanoid_control.files import whole_files
from humanoid_control.paths import PACKAGE
from humanoid_control.robots import Robot
from humanoid_control.robots.joint_groups import controlled_joints

PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"
GAINS_PLUGIN = "mujoco_ros2_control/MujocoSystem"
GAINED = ("position", "velocity", "effort", "stiffness", "damping")  # tau = effort + stiffness dq + damping dv
COMMANDS_TOPIC, STATES_TOPIC = "/hardware/joint_commands", "/hardware/joint_states"
BROADCASTER, TRAJECTORY, FORWARD = (
    "joint_state_broadcaster", "joint_trajectory_controller", "forward_position_controller",
)  # fmt: skip
TYPES = {
    BROADCASTER: "joint_state_broadcaster/JointStateBroadcaster",
    TRAJECTORY: "joint_trajectory_controller/JointTrajectoryController",
    FORWARD: "forward_command_controller/ForwardCommandController",
}
GOAL_TIME, PATH_TOLERANCE, GOAL_TOLERANCE = 0.5, 0.2, 0.02  # [s], [rad], [rad]
END = "</robot>"


def ros2_control_tag(robot: Robot, plugin: str = "") -> str:
    """Return the `ros2_control` element of a robot.

    Args:
        plugin: hardware with gains, five command interfaces a joint; empty: topics with positions.
    """
    params = (
        {}
        if plugin
        else {
            "joint_commands_topic": COMMANDS_TOPIC,
            "joint_states_topic": STATES_TOPIC,
            "trigger_joint_command_threshold": "-1",
            "sum_wrapped_joint_states": "false",
        }
    )
    lines = [f'  <ros2_control name={quoteattr(robot.name + "_system")} type="system">', "    <hardware>"]
    lines.append(f"      <plugin>{plugin or PLUGIN}</plugin>")
    lines += [f'      <param name="{name}">{value}</param>' for name, value in params.items()]
    lines.append("    </hardware>")
    neutral = robot.postures["neutral"]
    for name in controlled_joints(robot):
        k = robot.index[name]
        lines += [f"    <joint name={quoteattr(name)}>", '      <command_interface name="position">']
        for key, value in (("min", robot.lower[k]), ("max", robot.upper[k])):
            if np.isfinite(value):
                lines.append(f'        <param name="{key}">{float(value)!r}</param>')
        lines.append("      </command_interface>")
        lines += [f'      <command_interface name="{kind}"/>' for kind in GAINED[1:]] if plugin else []
        lines += [
            '      <state_interface name="position">',
            f'        <param name="initial_value">{float(neutral[k])!r}</param>',
            "      </state_interface>",
            '      <state_interface name="velocity"/>',
            '      <state_interface name="effort"/>',
            "    </joint>",
        ]
    return "\n".join([*lines, "  </ros2_control>"]) + "\n"


def ros2_control_urdf(robot: Robot, plugin: str = "") -> str:
    """Return the URDF with the tag appended.

    Raises:
        RobotError: if it already has such a tag.
    """
    if "<ros2_control" in robot.urdf:
        raise RobotError(f"{robot.name}: its URDF has a ros2_control tag already: remove it, or use it unchanged")
    head, _, tail = robot.urdf.rpartition(END)
    return f"{head}{ros2_control_tag(robot, plugin)}{END}{tail}"


def controllers_yaml(robot: Robot, rate: int, gains: bool = False) -> str:
    """Return the parameters of the controllers and their manager at `rate` [Hz].

    Args:
        gains: a forward controller for each of five interfaces instead of position only.
    """
    joints = controlled_joints(robot)
    forward = {f"forward_{kind}_controller": kind for kind in (GAINED if gains else GAINED[:1])}
    types = {**TYPES, **dict.fromkeys(forward, TYPES[FORWARD])}
    tolerances = {name: {"trajectory": PATH_TOLERANCE, "goal": GOAL_TOLERANCE} for name in joints}
    manager = {"update_rate": rate, **{name: {"type": kind} for name, kind in types.items()}}
    trajectory = {
        "joints": joints,
        "command_interfaces": ["position"],
        "state_interfaces": ["position", "velocity"],
        "allow_partial_joints_goal": True,
        "interpolate_from_desired_state": True,
        # each of a stream of short trajectories ends with the velocity of the motion
        "allow_nonzero_velocity_at_trajectory_end": True,
        "constraints": {"goal_time": GOAL_TIME, **tolerances},
    }
    rows = {
        "controller_manager": manager,
        TRAJECTORY: trajectory,
        **{name: {"joints": joints, "interface_name": kind} for name, kind in forward.items()},
    }
    text = f"# Controllers of {robot.name}; generated by `humanoid ros2_control`.\n"
    return text + yaml.safe_dump({name: {"ros__parameters": row} for name, row in rows.items()}, sort_keys=False)


LAUNCH = '''"""{name} under ros2_control, its hardware by topics. Made by `humanoid ros2_control`.

ros2 launch ./{name}.ros2_control.launch.py simulate:=true
"""

from pathlib import Path

from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription

HERE = Path(__file__).resolve().parent
URDF, CONTROLLERS = HERE / "{name}.ros2_control.urdf", HERE / "{name}.controllers.yaml"


def spawner(*arguments):
    return Node(package="controller_manager", executable="spawner", arguments=[*arguments], output="screen")


def generate_launch_description():
    description = {{"robot_description": ParameterValue(URDF.read_text(), value_type=str)}}
    return LaunchDescription(
        [
            DeclareLaunchArgument("simulate", default_value="false", description="start the simulator as hardware"),
            Node(
                package="{package}",
                executable="simulator",
                parameters=[{{"robot": {robot!r}, "base": "fixed", "publish_description": False}}],
                remappings=[("joint_commands", "{commands}"), ("joint_states", "{states}")],
                condition=IfCondition(LaunchConfiguration("simulate")),
                output="screen",
            ),
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                parameters=[description],
                output="log",
            ),
            Node(
                package="controller_manager",
                executable="ros2_control_node",
                parameters=[str(CONTROLLERS)],
                remappings=[("~/robot_description", "/robot_description")],
                output="screen",
            ),
            spawner("{broadcaster}", "{trajectory}"),
            spawner("--inactive", {forward}),
        ]
    )
'''


def launch_text(robot: Robot, source: str, gains: bool = False) -> str:
    """Return the launch file; `source`: robot name or path for our nodes."""
    forward = ", ".join(f'"forward_{kind}_controller"' for kind in (GAINED if gains else GAINED[:1]))
    return LAUNCH.format(
        name=robot.name, package=PACKAGE, robot=source, commands=COMMANDS_TOPIC, states=STATES_TOPIC,
        broadcaster=BROADCASTER, trajectory=TRAJECTORY, forward=forward,
    )  # fmt: skip


def write_ros2_control(robot: Robot, source: str, folder: Path, rate: int, plugin: str = "") -> list[Path]:
    """Write the three files of a robot; return their paths.

    Args:
        robot: fixed base.
        source: catalogue name or URDF path.
        rate: [Hz].

    Raises:
        RobotError: if the URDF already has a tag.
        ConfigError: if they cannot be written.
    """
    texts = {
        f"{robot.name}.ros2_control.urdf": ros2_control_urdf(robot, plugin),
        f"{robot.name}.controllers.yaml": controllers_yaml(robot, rate, bool(plugin)),
        f"{robot.name}.ros2_control.launch.py": launch_text(robot, source, bool(plugin)),
    }
    with whole_files(folder) as place:
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
