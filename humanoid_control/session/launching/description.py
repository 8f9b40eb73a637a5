"""Launch descriptions of the stacks; needs launch and launch_ros.

Crashed nodes restart up to three times. After rejected input or repeated crashes, the launch ends with a non-zero exit
code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from humanoid_control.errors import EnvironmentProblem, HumanoidError, missing_extra
from humanoid_control.nodes.base.parameters import NodeParameters, WorldParameters
from humanoid_control.paths import PACKAGE, share_dir
from humanoid_control.session.launching.arguments import (
    CLIP_NODES,
    DRIVER,
    VIEWER,
    LaunchOptions,
    check_names,
    launch_arguments,
    launch_options,
)
from humanoid_control.session.stacks import NodeSpec, Stack, find_stack
from humanoid_control.warm_up import compiled

EXIT_BAD_INPUT = 2
RESPAWNS, RESPAWN_DELAY = 3, 1.0  # times, [s]
LAST_WORDS = 0.2  # [s] in which launch forwards the last output of a node


class LaunchEnded(HumanoidError):
    """An essential node rejected its input or kept crashing."""


def stack_launch_description(name: str) -> Any:
    """Return the LaunchDescription of a stack."""
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    from launch import LaunchDescription  # type: ignore[attr-defined]

    stack = find_stack(name)
    arguments = [
        DeclareLaunchArgument(a.name, default_value=a.default, description=a.meaning) for a in launch_arguments(stack)
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=stack_actions, kwargs={"stack": stack})])


def stack_actions(context: Any, stack: Stack, more: Sequence[str] = ()) -> list[Any]:
    """Return the nodes, after checking the arguments.

    Args:
        more: additional argument names of the launch file.
    """
    from launch.actions import LogInfo
    from launch_ros.actions import Node

    if _is_outermost(context):
        check_names(stack, context.argv, more)
    actions = []
    if VIEWER in stack and (problem := missing_extra("viewer")):
        actions.append(LogInfo(msg=f"without the viewer: {problem}"))
        stack = stack.without(VIEWER)
    options = launch_options(stack, context.launch_configurations)
    if options.rviz and not installed("rviz2"):  # launch would detect it only after starting the nodes
        raise EnvironmentProblem("rviz:=true needs rviz2, which is not installed: install ros-$ROS_DISTRO-rviz2")
    if cold := [g for g in stack.kernel_groups({}) if not compiled(g)]:
        text = (
            "nodes are compiling their kernels, for minutes, only the first time; to compile in advance: humanoid warm"
        )
        actions.append(LogInfo(msg=f"{text} {' '.join(cold)}"))
    rsp = options.state_publisher and installed("robot_state_publisher")
    for spec in stack.nodes:
        actions += LaunchedNode(spec, stack, options, rsp).actions()
    if rsp:
        actions.append(_state_publisher(options))
        if not {"/tf"} & {topic for spec in stack.nodes for topic in spec.publishes} and installed("tf2_ros"):
            actions.append(_root_transform(options))
    if options.rviz:
        config = str(share_dir() / "config" / "rviz" / "humanoid.rviz")
        fixed = NodeParameters(frame_prefix=options.frame_prefix).frame(options.world_frame)
        actions.append(
            Node(
                package="rviz2",
                executable="rviz2",
                namespace=options.namespace,
                arguments=["-d", config, "-f", fixed],
                output="log",
            )
        )
    return actions


class LaunchedNode:
    """Launched node that restarts after a crash, but not after rejected input."""

    def __init__(self, spec: NodeSpec, stack: Stack, options: LaunchOptions, described: bool) -> None:
        """Create a node; `described`: robot_description exists already."""
        self.spec, self.stack, self.options, self.described = spec, stack, options, described
        self.crashes, self.last_line = 0, ""

    def actions(self) -> list[Any]:
        from launch.actions import RegisterEventHandler
        from launch.event_handlers import OnProcessIO
        from launch_ros.actions import Node

        spec, options = self.spec, self.options
        own: dict[str, Any] = {"robot": options.robot}
        if options.frame_prefix:
            own["frame_prefix"] = options.frame_prefix
        if issubclass(spec.parameter_class(), WorldParameters):
            own["world_frame"] = options.world_frame
        if spec.executable in CLIP_NODES:
            own["clip"] = options.clip
        if spec.executable == DRIVER:
            own["hardware"] = options.hardware
        if spec.executable == VIEWER:
            own["port"] = options.port
        if spec.executable == "simulator" and self.described:
            own["publish_description"] = False
        settings = self.stack.settings.get(spec.executable)
        file = [options.params_file] if options.params_file else []
        node = Node(
            package=PACKAGE,
            executable=spec.executable,
            name=spec.executable,
            namespace=options.namespace,
            parameters=[*([dict(settings)] if settings else []), *file, own],
            remappings=list(self.stack.remaps.get(spec.executable, {}).items()),
            output="screen",
            additional_env={"OMP_NUM_THREADS": "1"},
            on_exit=self.on_exit,
        )
        return [
            node,
            RegisterEventHandler(OnProcessIO(target_action=node, on_stdout=self.on_output, on_stderr=self.on_output)),
        ]

    def on_output(self, event: Any) -> None:
        """Keep the last output line, the reason of rejected input."""
        lines = [line for line in event.text.decode(errors="replace").splitlines() if line.strip()]
        self.last_line = lines[-1].strip() if lines else self.last_line

    def on_exit(self, event: Any, context: Any) -> list[Any] | None:
        """Restart the node after a crash, or end the launch after rejected input.

        Raises:
            LaunchEnded: if an essential node keeps crashing.
        """
        from launch.actions import LogInfo, OpaqueFunction, TimerAction

        code, name = event.returncode, self.spec.executable
        if context.is_shutdown or code == 0:
            return None
        if code == EXIT_BAD_INPUT and (self.spec.essential or not self.crashes):
            return [TimerAction(period=LAST_WORDS, actions=[OpaqueFunction(function=self._end_launch)])]
        self.crashes += 1
        if self.crashes <= RESPAWNS and name != DRIVER:  # a person should check the robot before its driver restarts
            return [TimerAction(period=RESPAWN_DELAY, actions=self.actions())]
        if self.spec.essential:
            again = "is not restarted automatically" if name == DRIVER else f"failed after {RESPAWNS} restarts"
            raise LaunchEnded(f"{name} ended with code {code} and {again}")
        return [LogInfo(msg=f"{name} is not restarted; the other nodes continue: {self.last_line}")]

    def _end_launch(self, _: Any) -> None:
        raise LaunchEnded(self.last_line or f"{self.spec.executable} rejected its input")


def _is_outermost(context: Any) -> bool:
    """Test whether this launch file is the one of the command line."""
    path = getattr(context.locals, "current_launch_file_path", "")
    return bool(path) and any(Path(word).name == Path(path).name for word in sys.argv)


def _state_publisher(options: LaunchOptions) -> Any:
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    from humanoid_control.robots.catalogue import urdf_path
    from humanoid_control.robots.description.mjcf import is_mjcf, read_mjcf
    from humanoid_control.robots.description.tree_changes import plain_urdf

    path = Path(urdf_path(options.robot))
    urdf = path.read_text()
    if is_mjcf(urdf):
        urdf = plain_urdf(read_mjcf(path)).text()
    return Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        namespace=options.namespace,
        parameters=[
            {
                "robot_description": ParameterValue(urdf, value_type=str),
                "frame_prefix": ParameterValue(options.frame_prefix, value_type=str),
            }
        ],
        output="log",
    )


def _root_transform(options: LaunchOptions) -> Any:
    """Return a static transform of the root, for stacks without a node that knows it."""
    from launch_ros.actions import Node

    return Node(
        package="tf2_ros",
        executable="static_transform_publisher",
        namespace=options.namespace,
        arguments=root_transform_arguments(options.robot, options.world_frame, options.frame_prefix),
        output="log",
    )


def root_transform_arguments(robot_name: str, world: str = "world", prefix: str = "") -> list[str]:
    """Return static_transform_publisher arguments from the world to the root link."""
    import pinocchio as pin

    from humanoid_control.robots.catalogue import load_robot

    robot = load_robot(robot_name, "fixed")
    values = pin.SE3ToXYZQUAT(robot.X_world_root).tolist()
    words = [w for name, x in zip(("x", "y", "z", "qx", "qy", "qz", "qw"), values, strict=True) for w in (name, x)]
    flags = [f"--{w}" if isinstance(w, str) else f"{w:.9g}" for w in words]
    frame = NodeParameters(frame_prefix=prefix).frame
    return [*flags, "--frame-id", frame(world), "--child-frame-id", frame(robot.root_link)]


def installed(package: str) -> bool:
    """Test whether ROS finds a package."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        get_package_prefix(package)
    except (PackageNotFoundError, LookupError, OSError):  # OSError: no workspace is sourced
        return False
    return True
