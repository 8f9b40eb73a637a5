"""Parsing of joint_commands messages."""

from __future__ import annotations

import time

from sensor_msgs.msg import JointState

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.commands.command_stream import CommandReader, JointCommand, check_stamp
from humanoid_control.nodes.base.messages import seconds
from humanoid_control.nodes.base.tick_node import Level, TickNode


def read_command(node: TickNode, reader: CommandReader, m: JointState) -> tuple[JointCommand, float] | None:
    """Return command and stamp [s] (arrival if unstamped); None, with a report, if faulty or empty."""
    try:
        stamp = seconds(m.header.stamp)
        if stamp:
            check_stamp(1e-9 * node.get_clock().now().nanoseconds - stamp)
        command = reader.read(list(m.name), m.position, m.velocity, m.effort)
    except HumanoidError as e:
        node.health.report("command", Level.WARN, str(e))
        return None
    node.health.clear("command")
    return None if command is None else (command, stamp or time.monotonic())
