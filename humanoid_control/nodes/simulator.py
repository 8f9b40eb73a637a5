"""Node `simulator`: the robot in a simulated world. Commands in; joint states, imu, odometry and the clock out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.health import Level
from humanoid_control.nodes.messages import WORLD, fill_joint_state, joint_state
from humanoid_control.nodes.parameters import NodeParameters, param
from humanoid_control.nodes.qos import EVENTS, LATCHED, STREAM_OUT
from humanoid_control.nodes.run import main_of
from humanoid_control.robots import load_robot
from humanoid_control.robots.urdf_writer import BASE_LINK
from humanoid_control.simulation import World, WorldSettings
from humanoid_control.simulation.drives import default_gains
from humanoid_control.simulation.sensors import base_state, read_imu

try:  # not among the ROS wheels; there, nothing needs transforms
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage
except ImportError:
    TFMessage = None


@dataclass(frozen=True)
class SimulatorParameters(NodeParameters):
    """Parameters of the simulator."""

    rate: float = param(500.0, "rate of the joint states", "Hz", 10.0, 1000.0)
    base: str = param(
        "fixed", "fixed: the anchor link is held; floating: the robot stands on its feet", choices=("fixed", "floating")
    )
    step: float = param(0.001, "length of an integration step", "s", 0.0001, 0.01)
    stiffness: float = param(
        60.0, "position gain of each drive, as a multiple of its effort limit", "1/rad", 1.0, 1000.0
    )
    damping_ratio: float = param(1.0, "damping of each drive, 1 is critical", "", 0.05, 10.0)
    slow_every: int = param(5, "publish imu, odometry and clock every so many joint states", "", 1, 500)
    command_timeout: float = param(
        0.5, "silence of the commands after which the last position is held at rest", "s", 0.01, 60.0, live=True
    )
    publish_description: bool = param(True, "publish robot_description; false where robot_state_publisher does")


class Simulator(TickNode):
    """One robot, its drives and the ground, in real time."""

    Parameters = SimulatorParameters
    params: SimulatorParameters
    node_name = "simulator"

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, p.base)
        self.robot = robot
        self.world = World(robot, WorldSettings(step=p.step), default_gains(robot, p.stiffness, p.damping_ratio))
        self.steps = max(1, round(1.0 / (p.rate * p.step)))
        self.state_msg = joint_state(robot.joint_names)
        self.states = self.create_publisher(JointState, "joint_states", STREAM_OUT)
        self.imu = self.create_publisher(Imu, "imu", STREAM_OUT)
        self.odometry = self.create_publisher(Odometry, "odometry", STREAM_OUT)
        self.clock = self.create_publisher(Clock, "/clock", STREAM_OUT)
        self.tf = self.create_publisher(TFMessage, "/tf", EVENTS) if TFMessage is not None else None
        if p.publish_description:
            self.description = self.create_publisher(String, "robot_description", LATCHED)
            self.description.publish(String(data=robot.urdf))
        self.listen(JointState, "joint_commands", self.on_command)
        self.create_service(Trigger, "~/reset", self.on_reset)
        self.order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self.command_position = np.full(robot.n, np.nan)
        self.command_velocity = np.zeros(robot.n)
        self.count = 0
        return 1.0 / (self.steps * p.step)

    def on_command(self, m: JointState) -> None:
        if m.name != self.order[0]:
            theirs, ours = self.robot.order_of(m.name)
            self.order = (list(m.name), theirs, ours)
            unknown = [n for n in m.name if n not in self.robot.index]
            self.health.check(
                "names", bool(unknown), Level.WARN, f"unknown joints in command: {', '.join(unknown[:3])}"
            )
        _, theirs, ours = self.order
        if len(m.position) != len(m.name):
            self.health.report("command", Level.WARN, "command without a position for each name: passed over")
            return
        position = np.asarray(m.position)[theirs]
        velocity = np.asarray(m.velocity)[theirs] if len(m.velocity) == len(m.name) else np.zeros(len(theirs))
        bad = not (np.isfinite(position).all() and np.isfinite(velocity).all())
        if self.health.check("command", bad, Level.ERROR, "command is not a number: held"):
            return
        self.command_position[ours], self.command_velocity[ours] = position, velocity
        self.world.command(self.command_position, self.command_velocity)

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.world.reset()
        self.command_position[:] = np.nan
        response.success, response.message = True, "standing in the neutral posture"
        return response

    def tick(self, now: float) -> None:
        w, age = self.world, self.age("joint_commands", now)
        silent = self.params.command_timeout < age < float("inf")
        self.health.check("silent", silent, Level.WARN, "no commands: last position held")
        w.step(self.steps)
        self.health.check("diverged", w.diverged, Level.ERROR, "the simulation diverged: last state held, call ~/reset")
        stamp = self.get_clock().now().to_msg()
        self.states.publish(fill_joint_state(self.state_msg, stamp, w.joints, w.joint_velocity, w.torque))
        self.count += 1
        if self.count % self.params.slow_every == 0:
            self.publish_slow(stamp)

    def publish_slow(self, stamp: Any) -> None:
        """Imu, odometry and the clock, which nobody needs at the full rate."""
        reading = read_imu(self.world)
        imu = Imu()
        imu.header.stamp, imu.header.frame_id = stamp, self.robot.root_link
        o, w, a = imu.orientation, imu.angular_velocity, imu.linear_acceleration
        o.x, o.y, o.z, o.w = reading.orientation.tolist()
        w.x, w.y, w.z = reading.angular_velocity.tolist()
        a.x, a.y, a.z = reading.linear_acceleration.tolist()
        self.imu.publish(imu)
        pose, twist = base_state(self.world)
        odometry = Odometry(child_frame_id=self.robot.root_link)
        odometry.header.stamp, odometry.header.frame_id = stamp, WORLD
        p, o, t = odometry.pose.pose.position, odometry.pose.pose.orientation, odometry.twist.twist
        (p.x, p.y, p.z), (o.x, o.y, o.z, o.w) = pose[:3].tolist(), pose[3:].tolist()
        t.linear.x, t.linear.y, t.linear.z = twist[:3].tolist()
        t.angular.x, t.angular.y, t.angular.z = twist[3:].tolist()
        self.odometry.publish(odometry)
        if self.tf is not None:
            moved = TransformStamped(header=odometry.header, child_frame_id=BASE_LINK)
            moved.transform.translation.x, moved.transform.translation.y, moved.transform.translation.z = p.x, p.y, p.z
            moved.transform.rotation = o
            self.tf.publish(TFMessage(transforms=[moved]))
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = int(self.world.time), int(1e9 * (self.world.time % 1.0))
        self.clock.publish(clock)

    def values(self) -> dict[str, Any]:
        return {"simulated_s": round(self.world.time, 3), "steps_per_tick": self.steps}


def main() -> int:
    return main_of(Simulator)


if __name__ == "__main__":
    sys.exit(main())
