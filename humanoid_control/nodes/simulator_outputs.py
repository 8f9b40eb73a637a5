"""What the simulator publishes: the engine's state, read through its sensors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from humanoid_control.nodes.messages import WORLD, fill_joint_state, joint_state
from humanoid_control.nodes.qos import EVENTS, LATCHED, STREAM_OUT
from humanoid_control.nodes.simulator_parameters import SimulatorParameters, imperfection_of
from humanoid_control.robots.urdf_tree import BASE_LINK  # not by way of its writer, which loads scipy
from humanoid_control.simulation import Engine
from humanoid_control.simulation.sensors.sensor_model import Sensor

try:  # not among the ROS wheels; there, nothing needs transforms
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage
except ImportError:
    TFMessage = None


class SimulatorOutputs:
    """Publishers and sensors of one simulated robot."""

    def __init__(self, node: Any, engine: Engine, p: SimulatorParameters) -> None:
        """Make them.

        Raises:
            HumanoidError: parameters of the sensors that make no sense.
        """
        robot, wrong = engine.robot, imperfection_of(p)
        self.engine, self.slow_every, self.simulated_stamps = engine, p.slow_every, p.stamp == "sim"
        self._now = node.get_clock().now
        self._joint_sensor = Sensor("joint_states", (robot.n,) * 3, wrong, p.seed)
        self._imu_sensor = Sensor("imu", (4, 3, 3), wrong, p.seed)
        feet = robot.feet if robot.base == "floating" else ()
        self._foot_sensors = {f.name: Sensor("wrench", (3, 3), wrong, p.seed, f.name) for f in feet}
        self._joint_message = joint_state(robot.joint_names)
        self._joint_states = node.create_publisher(JointState, "joint_states", STREAM_OUT)
        self._imu = node.create_publisher(Imu, "imu", STREAM_OUT)
        self._odometry = node.create_publisher(Odometry, "odometry", STREAM_OUT)
        self._clock = node.create_publisher(Clock, "/clock", STREAM_OUT)
        self._tf = node.create_publisher(TFMessage, "/tf", EVENTS) if TFMessage is not None else None
        self._feet = {f.name: node.create_publisher(WrenchStamped, foot_topic(f.name), STREAM_OUT) for f in feet}
        self._tendons: Any = None
        if p.tendons:  # what they need is loaded for nobody else
            from humanoid_control.nodes.simulator_tendons import SimulatorTendons

            self._tendons = SimulatorTendons(node, engine, p)
        self._description = None
        if p.publish_description:
            self._description = node.create_publisher(String, "robot_description", LATCHED)
            self._description.publish(String(data=robot.urdf))
        self.restart()

    def restart(self) -> None:
        """Read everything anew, with the same random numbers."""
        self._count = 0
        self._joints: tuple[np.ndarray, ...] | None = None
        for sensor in (self._joint_sensor, self._imu_sensor, *self._foot_sensors.values()):
            sensor.reset()
        if self._tendons is not None:
            self._tendons.restart()

    def publish(self, before: float = 0.0) -> None:
        """Read the sensors and publish; what is not at every period, where it is due.

        Args:
            before: how long ago on this computer's clock the state was due [s].
        """
        w, slow = self.engine, self._count % self.slow_every == 0
        self._count += 1
        if slow or self.simulated_stamps:
            self._clock.publish(Clock(clock=self._simulated()))
        self._joints = self._joint_sensor.read(w.time, w.joints, w.joint_velocity, w.torque)
        stamp = self._stamp(before)
        self._send_joints(stamp)
        if self._tendons is not None:
            self._tendons.publish(stamp)
        if slow:
            self._send_imu(stamp)
            self._send_odometry(stamp)
            self._send_wrenches(stamp)

    def repeat(self) -> None:
        """The last joint states, the odometry and the clock again, for those who come while time stands still."""
        stamp = self._stamp()
        self._send_joints(stamp)
        self._send_odometry(stamp)
        if self._tendons is not None:
            self._tendons.repeat(stamp)
        self._clock.publish(Clock(clock=self._simulated()))

    def _simulated(self) -> Time:
        nanoseconds = round(1e9 * self.engine.time)
        return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)

    def _stamp(self, before: float = 0.0) -> Time:
        if self.simulated_stamps:
            return self._simulated()
        nanoseconds = self._now().nanoseconds - round(1e9 * before)
        return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)

    def _send_joints(self, stamp: Time) -> None:
        if self._joints is not None:
            self._joint_states.publish(fill_joint_state(self._joint_message, stamp, *self._joints))

    def _send_imu(self, stamp: Time) -> None:
        truth = self.engine.imu()
        read = self._imu_sensor.read(
            self.engine.time, truth.orientation, truth.angular_velocity, truth.linear_acceleration
        )
        if read is None:
            return
        imu = Imu()
        imu.header.stamp, imu.header.frame_id = stamp, self.engine.robot.root_link
        o = imu.orientation
        o.x, o.y, o.z, o.w = read[0].tolist()
        _fill(imu.angular_velocity, read[1])
        _fill(imu.linear_acceleration, read[2])
        self._imu.publish(imu)

    def _send_odometry(self, stamp: Time) -> None:
        pose, twist = self.engine.base_state()
        m = Odometry(child_frame_id=self.engine.robot.root_link)
        m.header.stamp, m.header.frame_id = stamp, WORLD
        p, o = m.pose.pose.position, m.pose.pose.orientation
        (p.x, p.y, p.z), (o.x, o.y, o.z, o.w) = pose[:3].tolist(), pose[3:].tolist()
        _fill(m.twist.twist.linear, twist[:3])
        _fill(m.twist.twist.angular, twist[3:])
        self._odometry.publish(m)
        if self._tf is not None:
            base = TransformStamped(header=m.header, child_frame_id=BASE_LINK)
            base.transform.rotation = o
            _fill(base.transform.translation, pose[:3])
            soles = []
            for foot in self.engine.robot.feet if self._feet else ():
                sole = TransformStamped(child_frame_id=sole_frame(foot.name))
                sole.header.stamp, sole.header.frame_id = stamp, foot.link
                _fill(sole.transform.translation, foot.corners().mean(axis=0))
                soles.append(sole)
            self._tf.publish(TFMessage(transforms=[base, *soles]))

    def _send_wrenches(self, stamp: Time) -> None:
        truth = self.engine.foot_wrenches() if self._feet else {}
        for name, publisher in self._feet.items():
            read = self._foot_sensors[name].read(self.engine.time, truth[name][:3], truth[name][3:])
            if read is None:
                continue
            m = WrenchStamped()
            m.header.stamp, m.header.frame_id = stamp, sole_frame(name)
            _fill(m.wrench.force, read[0])
            _fill(m.wrench.torque, read[1])
            publisher.publish(m)


def foot_topic(foot: str) -> str:
    """Topic of a foot's wrench: its name, as a name in ROS may be."""
    return f"wrench/{re.sub(r'^(?=[0-9])', '_', re.sub(r'[^A-Za-z0-9_]', '_', foot))}"


def sole_frame(foot: str) -> str:
    """Frame of a foot's wrench: the axes of its link, the origin in the middle of the sole."""
    return f"{foot}_sole"


def _fill(vector: Any, values: np.ndarray) -> None:
    vector.x, vector.y, vector.z = np.asarray(values, dtype=float).tolist()
