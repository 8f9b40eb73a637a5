"""Nav2 servers for the stack `walking`, with their lifecycle manager.

Nav2's own bring-up starts further servers (docking, routes) that fail without parameters.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.files import read_yaml, why
from humanoid_control.nodes.base.parameters import NodeParameters
from humanoid_control.paths import share_dir
from humanoid_control.session.launching.arguments import LaunchArgument, launch_arguments, truth
from humanoid_control.session.launching.description import installed, stack_actions
from humanoid_control.session.stacks import Stack, find_stack

UNSMOOTHED = "cmd_vel_nav"  # output of controller and behaviours, before the smoother
FRAMES = ("global_frame", "robot_base_frame", "local_frame", "odom_frame", "base_frame")


class Server(NamedTuple):
    """Managed node of Nav2.

    Attributes:
        name: name of node and executable.
    """

    package: str
    name: str
    remaps: tuple[tuple[str, str], ...] = ()


SERVERS = (
    Server("nav2_planner", "planner_server"),
    Server("nav2_controller", "controller_server", (("cmd_vel", UNSMOOTHED),)),
    Server("nav2_behaviors", "behavior_server", (("cmd_vel", UNSMOOTHED),)),
    Server("nav2_bt_navigator", "bt_navigator"),
    Server("nav2_velocity_smoother", "velocity_smoother", (("cmd_vel", UNSMOOTHED), ("cmd_vel_smoothed", "cmd_vel"))),
)
MANAGER = Server("nav2_lifecycle_manager", "lifecycle_manager")
MANAGER_NODE = "lifecycle_manager_navigation"


def navigation_arguments() -> list[LaunchArgument]:
    """Return the additional launch arguments."""
    return [
        LaunchArgument("nav2_params", str(share_dir() / "config/nav2/humanoid.yaml"), "parameters of Nav2's servers"),
        LaunchArgument("localised", "false", "map -> odom is published by another node; false: by a static transform"),
    ]


def navigation_launch_description() -> Any:
    """Return the LaunchDescription of Nav2 with a simulated walker."""
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription  # type: ignore[attr-defined]

    stack = walking_for_nav2()
    arguments = [
        DeclareLaunchArgument(a.name, default_value=a.default, description=a.meaning)
        for a in (*launch_arguments(stack), *navigation_arguments())
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=_actions, kwargs={"stack": stack})])


def walking_for_nav2() -> Stack:
    """Return the stack `walking` with stamped velocities in simulated time."""
    stack = find_stack("walking")
    own = {**stack.settings.get("walker", {}), "cmd_vel_type": "TwistStamped", "use_sim_time": True}
    return replace(stack, settings={**stack.settings, "walker": own})


def _actions(context: Any, stack: Stack) -> list[Any]:
    """Return Nav2's servers and the stack's nodes, if installed."""
    from launch_ros.actions import Node

    missing = [s.package for s in (*SERVERS, MANAGER) if not installed(s.package)]
    if missing:
        raise EnvironmentProblem(
            f"nav2.launch.py needs {', '.join(missing)}, which are not installed: install "
            "ros-$ROS_DISTRO-navigation2, or launch "
            "walking.launch.py and publish cmd_vel"
        )
    given = context.launch_configurations
    more = navigation_arguments()
    actions = stack_actions(context, stack, [a.name for a in more])
    values = {a.name: given.get(a.name, a.default).strip() for a in more}
    namespace, prefix = given.get("namespace", "").strip(), given.get("frame_prefix", "").strip()
    frame = NodeParameters(frame_prefix=prefix).frame
    localised = truth("localised", values["localised"])
    file = written_parameters(Path(values["nav2_params"]), namespace, prefix)
    for server in SERVERS:
        actions.append(
            Node(
                package=server.package,
                executable=server.name,
                name=server.name,
                namespace=namespace,
                parameters=[file, {"use_sim_time": True}],
                remappings=list(server.remaps),
                output="screen",
            )
        )
    actions.append(
        Node(
            package=MANAGER.package,
            executable=MANAGER.name,
            name=MANAGER_NODE,
            namespace=namespace,
            parameters=[file, {"use_sim_time": True}],
            output="screen",
        )
    )
    if not localised:
        actions.append(
            Node(
                package="tf2_ros",
                executable="static_transform_publisher",
                namespace=namespace,
                arguments=["--frame-id", "map", "--child-frame-id", frame("odom")],
                output="log",
            )
        )
    return actions


def written_parameters(path: Path, namespace: str, prefix: str) -> str:
    """Write a parameter file with namespace and frame prefix; return its path.

    Raises:
        ConfigError: if the input is unreadable or malformed.
    """
    try:
        document = read_yaml(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise ConfigError(f"nav2_params {path}: {why(e)}") from None
    if not isinstance(document, dict) or not all(isinstance(v, dict) for v in document.values()):
        raise ConfigError(f"nav2_params {path}: must hold the parameters of nodes: NODE: {{ros__parameters: ...}}")
    out = with_prefix(document, NodeParameters(frame_prefix=prefix).frame)
    out.setdefault(MANAGER_NODE, {"ros__parameters": {"autostart": True, "node_names": [s.name for s in SERVERS]}})
    for part in reversed([p for p in namespace.split("/") if p]):
        out = {part: out}
    handle, name = tempfile.mkstemp(prefix="humanoid_nav2_", suffix=".yaml")
    with os.fdopen(handle, "w") as f:
        yaml.safe_dump(out, f)
    return name


def with_prefix(document: Mapping[str, Any], frame: Any) -> dict[str, Any]:
    """Return nested parameters with prefixed frames."""
    return {
        key: with_prefix(value, frame)
        if isinstance(value, Mapping)
        else frame(value)
        if key in FRAMES and isinstance(value, str)
        else value
        for key, value in document.items()
    }
