"""Outputs of the simulator: sensor readings of its states."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from humanoid_control.errors import (
    HumanoidError,
    RobotError,
)
from humanoid_control.nodes.base.clock import ClockPublisher
from humanoid_control.nodes.base.health import Level
from humanoid_control.nodes.base.messages import (
    GROUND_TRUTH,
    LATCHED,
    STREAM_OUT,
    WORLD,
    RisingStamps,
    fill_joint_state,
    joint_state,
    stamp_of,
)
from humanoid_control.nodes.base.transforms import FrameNames, TransformOutput, base_transform, transform
from humanoid_control.nodes.simulating.parameters import SimulatorParameters, imperfection_of
from humanoid_control.robots.tendons import NEEDS_TENDON_FILE
from humanoid_control.simulation import Engine
from humanoid_control.simulation.sensors.sensor_model import Sensor
from humanoid_control.simulation.sensors.tendon_sensor import TendonSensor, parse_faults
from humanoid_control.simulation.settings import WINCHES


class SimulatorOutputs:
    """Publishers of a simulated robot, and its sensors, each a `Sensor`."""

    world_frame = WORLD

    def __init__(self, node: Any, engine: Engine, p: SimulatorParameters) -> None:
        """Create publishers and sensors.

        Raises:
            HumanoidError: if sensor parameters are invalid.
        """
        robot, wrong = engine.robot, imperfection_of(p)
        self.engine, self.slow_every, self.simulated_stamps = engine, p.slow_every, p.stamp == "sim"
        self.world_frame, self._frame = p.world, p.frame
        self.root_frame = p.frame(robot.root_link)
        self.sensor_every, self.publish_base = p.sensor_every or p.slow_every, p.publish_tf
        self._now, self._stamps = node.get_clock().now, RisingStamps()
        self._joint_sensor = Sensor("joint_states", (robot.n,) * 3, wrong, p.seed)
        self._imu_sensor = Sensor("imu", (4, 3, 3), wrong, p.seed)
        feet = robot.feet if robot.base == "floating" else ()
        self._foot_sensors = {f.name: Sensor("wrench", (3, 3), wrong, p.seed, f.name) for f in feet}
        self._joint_message = joint_state(robot.joint_names)
        self._joint_states = node.create_publisher(JointState, "joint_states", STREAM_OUT)
        self._applied_message = joint_state(robot.joint_names)
        self._applied = node.create_publisher(JointState, "applied_commands", STREAM_OUT)
        self._imu = node.create_publisher(Imu, "imu", STREAM_OUT)
        self._odometry = node.create_publisher(Odometry, GROUND_TRUTH, STREAM_OUT)
        self._clock = ClockPublisher(node) if self.simulated_stamps else None
        self._tf, self._names = TransformOutput(node), FrameNames(node, robot, p.frame)
        self._feet = {f.name: node.create_publisher(WrenchStamped, foot_topic(f.name), STREAM_OUT) for f in feet}
        self._tendons = SimulatorTendons(node, engine, p) if p.tendons or p.drives == WINCHES else None
        self._description = None
        if p.publish_description:
            self._description = node.create_publisher(String, "robot_description", LATCHED)
            self._description.publish(String(data=robot.urdf))
        self.restart()

    def restart(self) -> None:
        """Restart the sensors with the same random numbers."""
        self._count = 0
        self._joints: tuple[np.ndarray, ...] | None = None
        for sensor in (self._joint_sensor, self._imu_sensor, *self._foot_sensors.values()):
            sensor.reset()
        if self._tendons is not None:
            self._tendons.restart()

    def publish(self, before: float = 0.0) -> None:
        """Read the sensors and publish due messages.

        Args:
            before: age of the state [s].
        """
        w, slow, sensed = self.engine, self._count % self.slow_every == 0, self._count % self.sensor_every == 0
        self._count += 1
        if self._clock is not None:
            self._clock.publish(self._simulated())
        self._joints = self._joint_sensor.read(w.time, w.joints, w.joint_velocity, w.torque)
        stamp = self._stamp(before)
        self._send_joints(stamp)
        if self._tendons is not None:
            self._tendons.publish(stamp)
        if sensed:
            self._send_imu(stamp)
            self._send_wrenches(stamp)
        if slow:
            self._send_odometry(stamp)

    def repeat(self) -> None:
        """Republish joint states, odometry and clock while paused, for new subscribers."""
        stamp = self._stamp()
        self._send_joints(stamp)
        self._send_odometry(stamp)
        if self._tendons is not None:
            self._tendons.repeat(stamp)
        if self._clock is not None:
            self._clock.publish(self._simulated())

    def _simulated(self) -> Time:
        return stamp_of(round(1e9 * self.engine.time))

    def _stamp(self, before: float = 0.0) -> Time:
        if self.simulated_stamps:
            return self._simulated()
        return stamp_of(self._stamps.next(self._now().nanoseconds - round(1e9 * before)))

    def _send_joints(self, stamp: Time) -> None:
        if self._joints is not None:
            self._joint_states.publish(fill_joint_state(self._joint_message, stamp, *self._joints))
        if self._applied.get_subscription_count():
            d = self.engine.drives
            self._applied.publish(fill_joint_state(self._applied_message, stamp, d.q_ref, d.v_ref, d.effort))

    def _send_imu(self, stamp: Time) -> None:
        truth = self.engine.imu()
        read = self._imu_sensor.read(
            self.engine.time, truth.orientation, truth.angular_velocity, truth.linear_acceleration
        )
        if read is None or not _finite(*read):
            return
        imu = Imu()
        imu.header.stamp, imu.header.frame_id = stamp, self.root_frame
        o = imu.orientation
        o.x, o.y, o.z, o.w = read[0].tolist()
        _fill(imu.angular_velocity, read[1])
        _fill(imu.linear_acceleration, read[2])
        self._imu.publish(imu)

    def _send_odometry(self, stamp: Time) -> None:
        pose, twist = self.engine.base_state()
        m = Odometry(child_frame_id=self.root_frame)
        m.header.stamp, m.header.frame_id = stamp, self.world_frame
        p, o = m.pose.pose.position, m.pose.pose.orientation
        (p.x, p.y, p.z), (o.x, o.y, o.z, o.w) = pose[:3].tolist(), pose[3:].tolist()
        _fill(m.twist.twist.linear, twist[:3])
        _fill(m.twist.twist.angular, twist[3:])
        self._odometry.publish(m)
        if self._tf.sends:
            centers = {f.name: (f.link, f.corners().mean(axis=0)) for f in self.engine.robot.feet if self._feet}
            soles = [
                transform(stamp, self._frame(link), self._frame(sole_frame(name)), pin.SE3(np.eye(3), p))
                for name, (link, p) in centers.items()
            ]
            self._tf.publish(*([base_transform(m)] if self.publish_base else []), *soles)

    def _send_wrenches(self, stamp: Time) -> None:
        truth = self.engine.foot_wrenches() if self._feet else {}
        for name, publisher in self._feet.items():
            read = self._foot_sensors[name].read(self.engine.time, truth[name][:3], truth[name][3:])
            if read is None or not _finite(*read):
                continue
            m = WrenchStamped()
            m.header.stamp, m.header.frame_id = stamp, self._frame(sole_frame(name))
            _fill(m.wrench.force, read[0])
            _fill(m.wrench.torque, read[1])
            publisher.publish(m)


def foot_topic(foot: str) -> str:
    """Return the wrench topic of a foot, in characters of ROS."""
    return f"wrench/{re.sub(r'^(?=[0-9])', '_', re.sub(r'[^A-Za-z0-9_]', '_', foot))}"


def sole_frame(foot: str) -> str:
    """Return the wrench frame of a foot: link axes, origin at the sole centre."""
    return f"{foot}_sole"


def _finite(*values: np.ndarray) -> bool:
    return all(np.isfinite(v).all() for v in values)


def _fill(vector: Any, values: np.ndarray) -> None:
    vector.x, vector.y, vector.z = np.asarray(values, dtype=float).tolist()


class SimulatorTendons:
    """Publisher and sensor of the tendons of a simulated robot.

    Messages are sensor_msgs/JointState: position = length of the whole path [m], effort = tension [N]. With drives
    'winches': position = paid-out wire [m], velocity = its rate [m/s], effort = tension used by the drive [N].
    """

    def __init__(self, node: Any, engine: Engine, p: SimulatorParameters) -> None:
        """Create publisher and sensor.

        Raises:
            HumanoidError: if the robot has no tendons, or a parameter is invalid.
        """
        states = engine.tendon_states()
        if states is None:
            raise RobotError(f"{engine.robot.name} has no tendons: {NEEDS_TENDON_FILE}, or set tendons to false")
        self.node, self.engine, self.every = node, engine, p.tendon_every
        period, wrong = p.tendon_every / p.rate, imperfection_of(p)
        self.winched = p.drives == WINCHES
        stretching = 0.0 if self.winched else p.tendon_stiffness  # the drum encoder measures the wire itself
        self.sensor = TendonSensor(states.names, wrong, p.seed, stretching, p.tendon_drift, p.tendon_spikes, period)
        self._faults = ""
        if not self.winched:
            self.sensor.faults = parse_faults(p.tendon_faults, states.names)
            self._faults = p.tendon_faults
        self._names, self._message = states.names, joint_state(states.names)
        self._publisher = node.create_publisher(JointState, "tendon_states", STREAM_OUT)
        self.restart()

    def restart(self) -> None:
        self._count = 0
        self.sensor.reset()

    def publish(self, stamp: Time) -> None:
        """Measure and publish if due."""
        self._count += 1
        if (self._count - 1) % self.every:
            return
        self._update_faults()
        states = self.engine.tendon_states()
        assert states is not None
        read = self.sensor.read(self.engine.time, states)
        if read is None:
            return
        if read.names != self._names:
            self._names, self._message = read.names, joint_state(read.names)
        self._publisher.publish(fill_joint_state(self._message, stamp, read.lengths, read.rates, read.tensions))

    def repeat(self, stamp: Time) -> None:
        if len(self._message.position):
            self._message.header.stamp = stamp
            self._publisher.publish(self._message)

    def _update_faults(self) -> None:
        """Apply the live fault parameter, if valid."""
        text = self.node.params.tendon_faults
        if self.winched:
            self.sensor.faults = self.node.winches.sensor_faults()
            return
        if text == self._faults:
            return
        self._faults = text
        try:
            self.sensor.faults = parse_faults(text, self.sensor.names)
            self.node.health.clear("tendon_faults")
        except HumanoidError as e:
            self.node.health.report("tendon_faults", Level.WARN, str(e))
