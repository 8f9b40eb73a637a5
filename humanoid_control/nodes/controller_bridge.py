"""Node `controller_bridge`: joint commands for a ros2_control controller without limits or timeout.

The node blends in commands, limits them, and stops when they cease.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from rcl_interfaces.srv import GetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from humanoid_control.errors import HumanoidError, UnknownNameError
from humanoid_control.hardware.commands.command_stream import CommandReader
from humanoid_control.hardware.commands.limiter import CommandLimits
from humanoid_control.hardware.ros2_control.command_follower import CommandFollower, Following
from humanoid_control.nodes.base.command_messages import read_command
from humanoid_control.nodes.base.command_owner import listen_to_one
from humanoid_control.nodes.base.messages import STREAM_OUT, JointPositions, floats
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import Robot, load_robot

ASK = 1.0  # [s] period of queries to the controller
STALE = 0.5  # [s] age at which joint states are outdated
OUTPUTS = ("forward", "trajectory")


@dataclass(frozen=True)
class ControllerBridgeParameters(NodeParameters):
    """Parameters of the bridge."""

    controller: str = param("forward_position_controller", "controller that receives the commands")
    output: str = param(
        "forward",
        "forward: std_msgs/Float64MultiArray on CONTROLLER/commands; trajectory: JointTrajectory of one "
        "point on CONTROLLER/joint_trajectory",
        choices=OUTPUTS,
    )
    rate: float = param(250.0, "command rate", "Hz", 10.0, 1000.0)
    command_timeout: float = param(
        0.1, "silence of joint_commands after which all joints are brought to rest", "s", 0.01, 10
    )
    soft_start: float = param(2.0, "minimum duration of the blend to the commands", "s", 0.0, 60.0, live=True)
    soft_speed: float = param(0.5, "maximum additional speed of the blend", "rad/s", 0.01, 10.0, live=True)
    max_step: float = param(0.3, "command step that starts a new blend", "rad", 0.001, 10.0, live=True)
    velocity: float = param(0.5, "share of the URDF speed limits", "", 0.01, 1.0)
    acceleration: float = param(
        20.0, "acceleration limit of each joint, in addition to its own", "rad/s^2", 0.1, 1000.0
    )
    range_margin: float = param(0.02, "minimum distance from the ends of the joint ranges", "rad", 0.0, 0.5)


class ControllerBridge(TickNode):
    """Node with a `CommandFollower` between joint_commands and a controller."""

    Parameters = ControllerBridgeParameters
    params: ControllerBridgeParameters
    node_name = "controller_bridge"

    def configure(self) -> float:
        p = self.params
        self.robot = load_robot(p.robot, "fixed")
        self.joints: list[str] = []
        self.rows = np.zeros(0, int)
        self.follower: CommandFollower | None = None
        self.measured = JointPositions(self.robot)
        self.requested_at = -np.inf
        self.answer: Any = None  # future
        self.sent = 0
        forward = p.output == "forward"
        self.topic = f"{p.controller}/{'commands' if forward else 'joint_trajectory'}"
        kind: Any = Float64MultiArray if forward else JointTrajectory
        self.commands = self.create_publisher(kind, self.topic, STREAM_OUT)
        self.client: Any = self.create_client(GetParameters, f"{p.controller}/get_parameters")
        listen_to_one(self, JointState, "joint_commands", self.on_command, p.command_timeout)
        self.listen(JointState, "joint_states", self.measured.take)
        return p.rate

    def deactivate(self) -> None:
        if self.follower is not None:
            self.follower.reset()

    def parameters_changed(self, changed: set[str]) -> None:
        if self.follower is not None:
            self._set_blend(self.follower)

    # -- commands -----------------------------------------------------------------------------------------------------

    def on_command(self, m: JointState) -> None:
        """Accept a command; report and discard faulty ones."""
        if not self.active:
            return  # an old command must not be followed after activation
        if self.follower is not None and (read := read_command(self, self.reader, m)) is not None:
            self.follower.add(read[0], time.monotonic(), read[1])

    # -- the controller -----------------------------------------------------------------------------------------------

    def _there(self, now: float) -> bool:
        """Test whether the controller listens and its joints are known; query them otherwise."""
        name = self.params.controller
        listening = self.commands.get_subscription_count() > 0
        self.health.check(
            "controller", not listening, Level.WARN, f"{self.topic} has no subscriber: no controller is active"
        )
        if not listening:
            if self.follower is not None:
                self.follower.reset()
            self.follower, self.answer = None, None
            return False
        if self.follower is not None:
            return True
        if self.answer is not None and self.answer.done():
            self._take_joints(self.answer.result())
            self.answer = None
        elif now - self.requested_at > ASK and self.client.service_is_ready():
            self.requested_at = now
            self.answer = self.client.call_async(GetParameters.Request(names=["joints"]))
        text = f"controller {name} has not reported its joints"
        self.health.check("unknown", self.follower is None and "joints" not in self.health.open, Level.WARN, text)
        return self.follower is not None

    def _take_joints(self, answer: Any) -> None:
        joints = list(answer.values[0].string_array_value) if answer is not None and answer.values else []
        name = self.params.controller
        try:
            if not joints:
                raise UnknownNameError("parameter", "joints", [], hint=f"(controller {name} has none)")
            for joint in joints:
                if joint not in self.robot.index:
                    hint = f"(of controller {name}: nothing is sent)"
                    raise UnknownNameError("joint", joint, self.robot.index, hint=hint)
        except HumanoidError as e:
            self.health.report("joints", Level.ERROR, str(e))
            return
        self.health.clear("joints")
        self.joints, self.rows = joints, np.array([self.robot.index[j] for j in joints], int)
        self.reader = CommandReader(joints, [n for n in self.robot.joint_names if n not in joints])
        follower = CommandFollower(limits_of(self.robot, self.rows, self.params), 1 / self.params.rate, self._timeout)
        self._set_blend(follower)
        self.follower = follower
        self.message = JointTrajectory(joint_names=joints, points=[JointTrajectoryPoint()])

    @property
    def _timeout(self) -> float:
        return self.params.command_timeout

    def _set_blend(self, follower: CommandFollower) -> None:
        p = self.params
        follower.soft_start, follower.soft_speed, follower.max_step = p.soft_start or 1e-6, p.soft_speed, p.max_step

    # -- the tick -----------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        if not self._there(now):
            return
        assert self.follower is not None
        stale = self.age("joint_states", now) > STALE
        self.health.check("states", stale, Level.WARN, "no joint_states: not started")
        measured = np.full(len(self.rows), np.nan) if stale else self.measured.values[self.rows]
        if self.follower.update(measured, now):
            self._send(self.follower)
        silent = self.follower.state is Following.IDLE and self.sent > 0
        text = f"joint_commands silent for {self.params.command_timeout:g} s: at rest"
        self.health.check("silent", silent, Level.WARN, text)

    def _send(self, follower: CommandFollower) -> None:
        q, v = follower.reference.q, follower.reference.v
        self.sent += 1
        if self.params.output == "forward":
            self.commands.publish(Float64MultiArray(data=floats(q)))
            return
        ahead = 2 * follower.period
        limits = follower.limits
        point = self.message.points[0]
        point.positions = floats(np.clip(q + ahead * v, np.minimum(limits.lower, q), np.maximum(limits.upper, q)))
        point.velocities = floats(v)
        point.time_from_start = Duration(sec=int(ahead), nanosec=round(1e9 * (ahead % 1)))
        self.commands.publish(self.message)

    def values(self) -> dict[str, Any]:
        state = self.follower.state.name if self.follower is not None else "WAITING"
        return {"following": state, "controller": self.params.controller, "joints": len(self.joints), "sent": self.sent}


def limits_of(robot: Robot, rows: np.ndarray, p: ControllerBridgeParameters) -> CommandLimits:
    """Return joint limits narrowed by the parameters."""
    lower, upper = robot.lower[rows].astype(float), robot.upper[rows].astype(float)
    margin = np.minimum(p.range_margin, (upper - lower) / 4)
    velocity = p.velocity * robot.velocity[rows]
    acceleration = robot.accelerations_within(p.acceleration).acceleration[rows]
    return CommandLimits(lower + margin, upper - margin, velocity, acceleration, robot.effort[rows].astype(float))


def main() -> int:
    return main_of(ControllerBridge)


if __name__ == "__main__":
    sys.exit(main())
