"""Launch arguments, checked before any node starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.files import read_yaml, why
from humanoid_control.nodes.base.parameters import (
    WorldParameters,
    check_frame_prefix,
    check_value,
    parse_value,
)
from humanoid_control.nodes.base.ros_env import check_namespace
from humanoid_control.session.stacks import PERFORMER, Stack

CLIP_NODES, VIEWER, DRIVER = ("trajectory_streamer", PERFORMER), "viewer", "robot_driver"


@dataclass(frozen=True)
class LaunchArgument:
    """Launch argument: name, default text, meaning."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True)
class LaunchOptions:
    """Checked values of the launch arguments.

    Attributes:
        robot: catalogue name, or path of a URDF.
        params_file: parameter file, or empty.
        clip: clip; None if the stack plays none.
        port: port of the page; None without the viewer.
        hardware: hardware file, or simulated drives; None without drives.
        frame_prefix: prefix of all frames but the world.
    """

    robot: str
    namespace: str
    params_file: str
    clip: str | None
    port: int | None
    state_publisher: bool
    rviz: bool
    hardware: str | None = None
    world_frame: str = "world"
    frame_prefix: str = ""


def clip_node(stack: Stack) -> str | None:
    return next((name for name in CLIP_NODES if name in stack), None)


def launch_arguments(stack: Stack) -> list[LaunchArgument]:
    arguments = [
        LaunchArgument("robot", "hrp2", "robot of the catalogue, or path of a URDF"),
        LaunchArgument("namespace", "", "namespace of all nodes"),
        LaunchArgument("params_file", "", "parameter file for all nodes"),
        LaunchArgument("world_frame", "world", "name of the world's frame, in headers and on /tf: world, odom or map"),
        LaunchArgument("frame_prefix", "", "prefix of all frames but world and map, for several robots: left/"),
        LaunchArgument("rsp", "true", "start robot_state_publisher where it is installed"),
        LaunchArgument("rviz", "false", "start rviz2 with the configuration of this package"),
    ]
    if (player := clip_node(stack)) is not None:
        text = "motion clip: dance or gentle_dance (built in), or the path of a C3D, TRC, BVH, AMC or CSV file"
        own = str(stack.settings.get(player, {}).get("clip", "dance"))
        arguments += [
            LaunchArgument("clip", own, text),
            LaunchArgument("motion", "", "same as clip, the name in other launch files"),
        ]
    if DRIVER in stack:
        text = "hardware file of the real robot; empty: next to its URDF; simulator or loopback: simulated drives"
        arguments.append(LaunchArgument("hardware", "", text))
    if VIEWER in stack:
        arguments.append(LaunchArgument("port", "8080", "port of the browser view"))
    return arguments


def check_names(stack: Stack, typed: Iterable[str], more: Iterable[str] = ()) -> None:
    """Reject `name:=value` texts with unknown names.

    Raises:
        UnknownNameError: if a name is unknown.
    """
    known = [*(a.name for a in launch_arguments(stack)), *more]
    for text in typed:
        name, assigned, _ = text.partition(":=")
        if assigned and name not in known:
            raise UnknownNameError("launch argument", name, known, hint=f"(of stack {stack.name})")


def launch_options(stack: Stack, given: Mapping[str, str]) -> LaunchOptions:
    """Return the launch options, after reading robot, clip and parameter file.

    Args:
        given: launch configurations by name, possibly of other launch files too.

    Raises:
        HumanoidError: if an argument is invalid.
    """
    from humanoid_control.robots.catalogue import load_robot

    values = {a.name: given.get(a.name, a.default).strip() for a in launch_arguments(stack)}
    check_namespace("namespace", values["namespace"])
    check_frame_prefix(values["frame_prefix"])
    switches = {name: truth(name, values[name]) for name in ("rsp", "rviz")}
    specs = {spec.executable: spec for spec in stack.nodes}
    port = parse_value(specs[VIEWER].parameter_class(), "port", values["port"]) if VIEWER in specs else None
    file = Path(values["params_file"]).expanduser() if values["params_file"] else None
    parameters = read_parameters(stack, file, values["namespace"]) if file is not None else {}
    robot = load_robot(values["robot"])
    clip = None
    if (player := clip_node(stack)) is not None:
        robot.require_imitation_points()
        clip = _clip(values, stack)
        own = {**stack.settings.get(player, {}), **parameters.get(player, {}), "clip": clip}
        _read_clip(specs[player].parameter_class(), own)
    return LaunchOptions(
        values["robot"],
        values["namespace"],
        str(file or ""),
        clip,
        port,
        switches["rsp"],
        switches["rviz"],
        values.get("hardware"),
        str(parse_value(WorldParameters, "world_frame", values["world_frame"])),
        values["frame_prefix"],
    )


def truth(name: str, text: str) -> bool:
    """Parse a switch, in any YAML spelling of a truth value.

    Raises:
        ConfigError: if the text is not a truth value.
    """
    value: Any = {"1": True, "0": False}.get(text)
    if value is None:
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = None
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, got '{text}'")
    return value


def read_parameters(stack: Stack, path: Path, namespace: str = "") -> dict[str, dict[str, Any]]:
    """Read a ROS parameter file; return node -> parameter -> checked value.

    Raises:
        ConfigError: if the file is unreadable, or a value invalid.
    """
    try:
        content = read_yaml(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise ConfigError(f"params_file {path}: {why(e)}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"params_file {path}: must hold the parameters of nodes: NODE: {{ros__parameters: ...}}")
    prefix = f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
    found: dict[str, dict[str, Any]] = {}
    for spec in stack.nodes:
        cls, values = spec.parameter_class(), {}
        names = {f.name for f in dataclasses.fields(cls)}
        for section in _sections(content, spec.executable, prefix):
            parameters = section.get("ros__parameters") if isinstance(section, dict) else None
            for name, value in (parameters if isinstance(parameters, dict) else {}).items():
                if name in names:  # the node itself warns of others
                    try:
                        values[name] = check_value(cls, name, value)
                    except HumanoidError as e:
                        raise ConfigError(f"params_file {path}: {spec.executable}: {e}") from None
        found[spec.executable] = values
    return found


def _sections(content: dict[str, Any], node: str, prefix: str) -> list[Any]:
    """Return the file sections of a node, in increasing priority."""
    everybody, within = content.get("/**"), content.get(prefix.rstrip("/")) if prefix != "/" else None
    parts = [everybody]
    parts += [part.get(node) for part in (everybody, within) if isinstance(part, dict)]
    return [*parts, content.get(f"/**/{node}"), content.get(node), content.get(f"{prefix}{node}")]


def _clip(values: Mapping[str, str], stack: Stack) -> str:
    """Return the clip from either of its two arguments."""
    clip, motion = values["clip"], values["motion"]
    default = next(a.default for a in launch_arguments(stack) if a.name == "clip")
    if motion and clip not in (default, motion):
        raise ConfigError(f"clip:={clip} contradicts motion:={motion}: give one")
    return motion or clip


def _read_clip(cls: Any, values: Mapping[str, Any]) -> None:
    from humanoid_control.nodes.trajectory_streamer import clip_points

    p = cls(**values)
    if getattr(p, "source", "clip") == "clip":
        clip_points(p)
