"""From a parameter dataclass to declared ROS parameters, with descriptions and ranges, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import ParameterException

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.nodes.parameters import NodeParameters, allowed, check_value, default_of


def declare(node: Any, cls: type[NodeParameters]) -> Any:
    """Declare every field of the dataclass on a node, and read the values that were given; warn of other names.

    Raises:
        ConfigError, UnknownNameError: a given value of the wrong type or out of range.
    """
    values = {}
    for f in dataclasses.fields(cls):
        try:
            given = node.declare_parameter(f.name, default_of(f), descriptor(f)).value
        except ParameterException as e:  # rclpy looks at the ranges itself
            reason, unit = str(e).splitlines()[0], f.metadata["unit"]
            raise ConfigError(f"parameter {f.name} must be in {allowed(f)} {unit}: {reason}") from None
        values[f.name] = check_value(cls, f.name, given)
    for name in strange_names(getattr(node, "_parameter_overrides", ()), values):
        # ROS itself passes them over in silence; a file for several nodes may hold some, so they are no error
        node.get_logger().warning(f"{UnknownNameError('parameter', name, values)} (passed over)")
    return cls(**values)


def strange_names(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names given that neither we nor rclpy know."""
    ours = {*known, "use_sim_time", "start_type_description_service"}
    return sorted(name for name in given if name not in ours and not name.startswith("qos_overrides."))


def descriptor(f: dataclasses.Field) -> ParameterDescriptor:
    """What `ros2 param describe` shows."""
    m, default = f.metadata, default_of(f)
    d = ParameterDescriptor(description=f"{m['meaning']} [{m['unit']}]" if m["unit"] else m["meaning"])
    d.read_only = not m["live"]
    d.dynamic_typing = True  # so that `rate:=100` is understood for a float; checked by us
    if m["choices"]:
        d.additional_constraints = f"one of {', '.join(m['choices'])}"
    low, high = m["low"], m["high"]
    if low is not None and high is not None:
        if isinstance(default, float):
            d.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
        else:
            d.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
    return d
