"""Parameters of a node: a frozen dataclass defines types, defaults, ranges, units and meaning."""

from __future__ import annotations

import array
import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, TypeVar

from humanoid_control.errors import ConfigError, UnknownNameError

P = TypeVar("P", bound="NodeParameters")
COMMON_FRAMES = ("", "world", "map")  # shared by all robots, so they never have a prefix
PREFIX = re.compile(r"(?:[A-Za-z0-9_~.-][A-Za-z0-9_~./-]*)?")  # tf2 rejects a leading slash


def param(
    default: Any,
    meaning: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    live: bool = False,
) -> Any:
    """Return a field of a parameter dataclass.

    Args:
        default: default value (bool, int, float, str, or a list of one of them), which sets the type.
        meaning: one sentence for the docs.
        unit: SI unit, or empty.
        low: inclusive minimum.
        high: inclusive maximum.
        choices: allowed strings.
        live: may change at run time.
    """
    info = {"meaning": meaning, "unit": unit, "low": low, "high": high, "choices": choices, "live": live}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=info)
    return field(default=default, metadata=info)


@dataclass(frozen=True)
class NodeParameters:
    """Parameters of every node."""

    robot: str = param("hrp2", "robot name of the catalogue, or path of a URDF")
    frame_prefix: str = param(
        "",
        "prefix of all frame names except world and map, as in robot_state_publisher: left/ gives left/torso",
    )
    autostart: bool = param(True, "configure and activate at startup; false: wait for lifecycle transitions")
    priority: int = param(
        50, "real-time priority (SCHED_FIFO) where permitted; 0: normal scheduling, negative: nice value", "", -19, 98
    )
    cpu: str = param("", "CPUs to run on, such as 2 or 2,3 or 2-3; empty: all")
    window: float = param(5.0, "time window of the period and execution time statistics", "s", 1.0, 600.0)
    missed_warn: float = param(1.0, "share of missed ticks above which diagnostics warn", "%", 0.0, 100.0, live=True)
    missed_error: float = param(
        10.0, "share of missed ticks above which diagnostics report an error", "%", 0, 100, live=True
    )

    def frame(self, name: str) -> str:
        """Return the name of a robot frame on the graph."""
        return name if name in COMMON_FRAMES else f"{self.frame_prefix}{name}"

    def local_frame(self, frame: str) -> str:
        """Return the robot's own name of a frame.

        Raises:
            ConfigError: if the frame lacks the prefix of this robot.
        """
        if frame in COMMON_FRAMES or frame.startswith(self.frame_prefix):
            return frame if frame in COMMON_FRAMES else frame.removeprefix(self.frame_prefix)
        raise ConfigError(
            f"frame '{frame[:60]}' does not belong to this robot, whose frames begin with '{self.frame_prefix}'"
        )


@dataclass(frozen=True)
class WorldParameters(NodeParameters):
    """Parameters of a node with poses in the world."""

    world_frame: str = param("world", "name of the world frame in headers and on /tf", choices=("world", "odom", "map"))

    @property
    def world(self) -> str:
        return self.frame(self.world_frame)


def check_value(cls: type[NodeParameters], name: str, value: Any) -> Any:
    """Return the value in the type of the field.

    Raises:
        UnknownNameError: if the parameter does not exist, or the value is not a choice.
        ConfigError: if type or range are wrong.
    """
    fields = {f.name: f for f in dataclasses.fields(cls)}
    if name not in fields:
        raise UnknownNameError("parameter", name, fields, hint=f"(of {cls.__name__})")
    f = fields[name]
    value = converted(f, value)
    kind = type(default_of(f))
    if type(value) is not kind:
        raise ConfigError(f"parameter {name} must be {kind.__name__}, got {value!r}")
    low, high, choices = f.metadata["low"], f.metadata["high"], f.metadata["choices"]
    if kind in (int, float):
        number = float(value)
        if not (low is None or number >= low) or not (high is None or number <= high):
            unit = f" {f.metadata['unit']}" if f.metadata["unit"] else ""
            raise ConfigError(f"parameter {name} must be in {allowed(f)}{unit}, got {value:g}")
    if choices and value not in choices:
        raise UnknownNameError(f"value of parameter {name}", str(value), choices)
    return value


def converted(f: dataclasses.Field, value: Any) -> Any:
    """Convert compatible values such as 100 for a float."""
    kind, number = type(default_of(f)), isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float and number:
        return float(value)
    if kind is str and number:
        return str(value)  # `delay:=0.01` arrives as a number
    return list(value) if kind is list and isinstance(value, (tuple, array.array)) else value


def parse_value(cls: type[NodeParameters], name: str, text: str) -> Any:
    """Parse a value of a command line.

    Raises:
        UnknownNameError: see `check_value`.
        ConfigError: see `check_value`, or if the text cannot be parsed.
    """
    fields = {f.name: f for f in dataclasses.fields(cls)}
    if name not in fields:
        raise UnknownNameError("parameter", name, fields, hint=f"(of {cls.__name__})")
    default = default_of(fields[name])
    try:
        if isinstance(default, bool):
            value: Any = {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        elif isinstance(default, (int, float)):
            value = type(default)(text)
        elif isinstance(default, list):
            value = [t.strip() for t in text.split(",") if t.strip()]
        else:
            value = text
    except (ValueError, KeyError):
        raise ConfigError(f"parameter {name} must be {type(default).__name__}, got '{text}'") from None
    return check_value(cls, name, value)


def default_of(f: dataclasses.Field) -> Any:
    return f.default_factory() if callable(f.default_factory) else f.default


def check_frame_prefix(prefix: str) -> None:
    """Check a frame prefix.

    Raises:
        ConfigError: if they are not.
    """
    if not PREFIX.fullmatch(prefix):
        raise ConfigError(
            f"parameter frame_prefix: '{prefix[:60]}' must consist of letters, digits and _ ~ . - /, without a "
            "leading slash"
        )


def with_value(params: P, name: str, value: Any) -> P:
    """Return a copy with one checked value changed."""
    return dataclasses.replace(params, **{name: check_value(type(params), name, value)})


def default_yaml(node: str, cls: type[NodeParameters]) -> str:
    """Return a node's default parameter file."""
    lines = [f"# Default parameters of {node}. Generated by `humanoid docs` from {cls.__module__}."]
    lines += ["/**:", f"  {node}:", "    ros__parameters:"]
    for f in dataclasses.fields(cls):
        m = f.metadata
        extra = [t for t in (m["unit"] and f"[{m['unit']}]", allowed(f), "live" if m["live"] else "") if t]
        lines.append(f"      # {m['meaning']}" + (f" ({', '.join(extra)})" if extra else ""))
        lines.append(f"      {f.name}: {_yaml(default_of(f))}")
    return "\n".join(lines) + "\n"


def docs_table(cls: type[NodeParameters]) -> str:
    """Return a Markdown table of the parameters."""
    rows = ["| parameter | type | default | range | live | meaning |", "|---|---|---|---|---|---|"]
    for f in dataclasses.fields(cls):
        m, d = f.metadata, default_of(f)
        unit = f" {m['unit']}" if m["unit"] else ""
        rows.append(
            f"| `{f.name}` | {type(d).__name__} | `{_yaml(d)}`{unit} | {allowed(f)} | {'yes' if m['live'] else ''} "
            f"| {m['meaning']} |"
        )
    return "\n".join(rows)


def allowed(f: dataclasses.Field) -> str:
    """Return range or choices as text, or empty."""
    m = f.metadata
    if m["choices"]:
        return ", ".join(m["choices"])
    if m["low"] is None and m["high"] is None:
        return ""
    low, high = ("" if v is None else str(v) if isinstance(v, int) else f"{v:g}" for v in (m["low"], m["high"]))
    return f"{low} .. {high}"


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(_yaml(v) for v in value) + "]"
    text = repr(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML reads 4e-05 as a string
    return text
