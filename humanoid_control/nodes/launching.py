"""Launch descriptions made from the one description of the stacks; needs a ROS installation (launch, launch_ros)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from humanoid_control.nodes.stacks import Stack, find_stack
from humanoid_control.paths import PACKAGE, share_dir

CLIP_NODE, DRIVER_NODE = "trajectory_streamer", "robot_driver"


def stack_launch_description(name: str) -> Any:
    """The LaunchDescription of a stack.

    Arguments: robot, clip (where the stack streams one), port of the viewer, namespace, params_file, rsp (start
    robot_state_publisher, so that rviz has transforms), rviz, hardware (where the stack drives a robot).
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription  # type: ignore[attr-defined]

    stack = find_stack(name)
    arguments = [
        DeclareLaunchArgument("robot", default_value="hrp2", description="robot of the catalogue, or path of a URDF"),
        DeclareLaunchArgument("namespace", default_value="", description="namespace of all nodes"),
        DeclareLaunchArgument("params_file", default_value="", description="parameter file for all nodes"),
        DeclareLaunchArgument(
            "rsp", default_value="true", description="start robot_state_publisher where it is installed"
        ),
        DeclareLaunchArgument(
            "rviz", default_value="false", description="start rviz2 with the configuration of this package"
        ),
    ]
    executables = [n.executable for n in stack.nodes]
    if CLIP_NODE in executables:
        text = "motion clip: dance or gentle_dance (built in), or the path of a C3D, TRC, BVH, AMC or CSV file"
        arguments.append(DeclareLaunchArgument("clip", default_value="dance", description=text))
    if DRIVER_NODE in executables:
        text = "file of the real robot; empty: beside its URDF; simulator or loopback: simulated drives"
        arguments.append(DeclareLaunchArgument("hardware", default_value="", description=text))
    if "viewer" in executables:
        arguments.append(DeclareLaunchArgument("port", default_value="8080", description="port of the browser view"))
    return LaunchDescription([*arguments, OpaqueFunction(function=_actions, kwargs={"stack": stack})])


def _actions(context: Any, stack: Stack) -> list[Any]:
    """The nodes, once the arguments are known."""
    from launch_ros.actions import Node

    given = context.launch_configurations
    robot, namespace, file = (given.get(k, "") for k in ("robot", "namespace", "params_file"))
    rsp = given.get("rsp") == "true" and _installed("robot_state_publisher")
    actions = []
    for spec in stack.nodes:
        own: dict[str, Any] = {"robot": robot}
        if spec.executable == CLIP_NODE:
            own["clip"] = given["clip"]
        if spec.executable == DRIVER_NODE:
            own["hardware"] = given.get("hardware", "")
        if spec.executable == "viewer":
            own["port"] = int(given["port"])
        if spec.executable == "simulator" and rsp:
            own["publish_description"] = False
        settings = stack.settings.get(spec.executable)
        parameters: list[Any] = [*([dict(settings)] if settings else []), *([file] if file else []), own]
        actions.append(
            Node(
                package=PACKAGE,
                executable=spec.executable,
                name=spec.executable,
                namespace=namespace,
                parameters=parameters,
                remappings=list(stack.remaps.get(spec.executable, {}).items()),
                output="screen",
                additional_env={"OMP_NUM_THREADS": "1"},
                respawn=spec.executable != DRIVER_NODE,  # somebody should look before a robot is driven again
                respawn_delay=1.0,
                respawn_max_retries=3,
            )
        )
    if rsp:
        actions.append(_state_publisher(robot, namespace))
    if given.get("rviz") == "true":
        config = str(share_dir() / "config" / "rviz" / "humanoid.rviz")
        actions.append(Node(package="rviz2", executable="rviz2", arguments=["-d", config], output="log"))
    return actions


def _state_publisher(robot: str, namespace: str) -> Any:
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    from humanoid_control.robots.catalogue import urdf_path

    urdf = Path(urdf_path(robot)).read_text()
    return Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        namespace=namespace,
        parameters=[{"robot_description": ParameterValue(urdf, value_type=str)}],
        output="log",
    )


def _installed(package: str) -> bool:
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        get_package_prefix(package)
    except (PackageNotFoundError, LookupError):
        return False
    return True
