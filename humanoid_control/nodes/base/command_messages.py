"""Messages of joint_commands read for whoever follows them: the driver of a robot, the bridge to a controller."""

from __future__ import annotations

import time

from sensor_msgs.msg import JointState

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.commands.command_stream import CommandReader, JointCommand, check_stamp
from humanoid_control.nodes.base.messages import seconds
from humanoid_control.nodes.base.tick_node import Level, TickNode


def read_command(node: TickNode, reader: CommandReader, m: JointState) -> tuple[JointCommand, float] | None:
    """The command in a message and its stamp, of its arrival where it has none [s].

    None where it commands no joint, or has a mistake: that is dropped, and named in the node's diagnostics.
    """
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
