"""Inputs and outputs of the simulator: commands checked before they reach the engine; states read through sensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from humanoid_control.errors import (
    ConfigError,
    HumanoidError,
    NotANumberError,
    RobotError,
    UnknownNameError,
    nearest_names,
)
from humanoid_control.estimation import JointPlausibility, named_twice
from humanoid_control.nodes.base.clock import ClockPublisher
from humanoid_control.nodes.base.command_owner import COMMANDS_IN, CommandArbiter
from humanoid_control.nodes.base.messages import (
    EVENTS,
    GROUND_TRUTH,
    LATCHED,
    STREAM_OUT,
    WORLD,
    RisingStamps,
    fill_joint_state,
    joint_state,
    stamp_of,
)
from humanoid_control.nodes.base.tick_node import Level
from humanoid_control.nodes.simulator_parameters import SimulatorParameters, imperfection_of
from humanoid_control.robots.tendons import NEEDS_TENDON_FILE
from humanoid_control.simulation import Engine
from humanoid_control.simulation.drives.command_blend import CommandBlend, ReferenceRate
from humanoid_control.simulation.drives.position_control import POSITION
from humanoid_control.simulation.sensors.sensor_model import Sensor
from humanoid_control.simulation.sensors.tendon_sensor import TendonSensor, parse_faults

try:  # not among the ROS wheels; there, nothing needs transforms
    from geometry_msgs.msg import TransformStamped
    from tf2_msgs.msg import TFMessage
except ImportError:
    TFMessage = None


FARTHEST = 1e6  # [m] from the world's origin: more is no place
STRONGEST = 1e15  # [N], [N m] of a push: a world that diverges under less is stopped and says so
MOST_TIMES = 10.0  # its limit: more than that a joint's commanded velocity or effort cannot mean
RETURNS = 0.1  # [s] of simulated time without commands after which the next one is blended in
HELD = "no commands: last position held"
LATE = 0.2  # [s] of simulated time without commands after which their silence is reported


class SimulatorInputs:
    """Subscriptions of the simulator. Diagnostics report a faulty message, and it changes nothing.

    Positions that come after a break, the first ones among them, do not step the references of the drives: they are
    led there at the joints' speed limits. No other positions move them faster.
    """

    def __init__(self, node: Any, engine: Engine) -> None:
        self.node, self.engine, self.robot, self.health = node, engine, engine.robot, node.health
        self._tension = node.params.tension
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        r = self.robot
        self.arbiter = CommandArbiter(node, "joint_commands")
        self.blend, self.rate = CommandBlend(r.velocity), ReferenceRate(r.velocity)
        self._plausible = JointPlausibility(r.joint_names, r.lower, r.upper, r.velocity)
        self._most = {"velocity": MOST_TIMES * r.velocity, "effort": MOST_TIMES * np.maximum(r.effort, 1.0)}
        self.restart()
        take = self._guarded("command", self.on_command)
        node.listen(JointState, "joint_commands", take, COMMANDS_IN, takes_info=True)
        for message, topic, callback in (
            (JointState, "set_state", self.on_set_state),
            (PoseStamped, "set_base", self.on_set_base),
            (WrenchStamped, "push", self.on_push),
        ):
            node.create_subscription(message, f"~/{topic}", self._guarded(topic, callback), EVENTS)

    def restart(self) -> None:
        """Forget what was commanded."""
        self._last = float("inf")  # simulated time of the last command [s]
        self._heard = np.full(self.robot.n, -np.inf)  # the same of each joint
        self._plausible.forget()
        self._changes = -1  # of the owner of the commands, at the last one
        self._given: tuple[np.ndarray | None, ...] = (None, None, None)  # the last command, for the blend
        self.worst = ("", 0.0)
        self.blend.end()
        self.rate.restart(self.engine.drives, self.engine.joints)
        self._commanded = np.zeros(self.robot.n, dtype=bool)  # since the last period
        self._without_position = np.zeros(self.robot.n, dtype=bool)

    def _guarded(self, key: str, callback: Callable[..., None]) -> Callable[..., None]:
        def call(*given: Any) -> None:
            try:
                callback(*given)
                self.health.clear(key)
            except HumanoidError as e:
                self.health.report(key, Level.ERROR if isinstance(e, NotANumberError) else Level.WARN, str(e))

        return call

    # -- commands ---------------------------------------------------------------------------------------------------

    def on_command(self, m: JointState, info: Mapping[str, Any]) -> None:
        """Positions, velocities, efforts, each for all names or left empty; they choose the kind of drive.

        A joint whose number is not finite is not commanded; a message that commands none is no command.
        """
        if not self.arbiter.accepts(info, self.node.params.command_timeout):
            return
        if m.name != self._order[0]:
            self._order = (list(m.name), *self.robot.order_of(m.name))
            unknown = [n for n in m.name if n not in self.robot.index]
            text = ", ".join(_with_suggestion(n, self.robot.index) for n in unknown[:3])
            self.health.check("names", bool(unknown), Level.WARN, f"unknown joints in command: {text}")
            deaf = [self.robot.joint_names[k] for k in self._order[2] if k in self.engine.uncommanded]
            text = f"tendons at constant tensions move {', '.join(deaf[:3])}: commands for them are passed over"
            self.health.check("deaf", bool(deaf), Level.WARN, text)
        if not (len(m.position) or len(m.velocity) or len(m.effort)):
            raise ConfigError("command without a position, velocity or effort: passed over")
        if twice := named_twice(m.name):
            raise ConfigError(f"command names joint '{twice[:60]}' twice: passed over")
        position, velocity, effort = (
            self._in_order(kind, values, "command") if len(values) else None
            for kind, values in (("position", m.position), ("velocity", m.velocity), ("effort", m.effort))
        )
        self._drop_implausible(self._order[2], position, velocity=velocity, effort=effort)
        if position is not None:  # a velocity that is left alone would be followed by itself
            for values in (velocity, effort):
                if values is not None:
                    values[np.isnan(position)] = np.nan
        given = [x for x in (position, velocity, effort) if x is not None]
        commanded = np.isfinite(given).any(axis=0)
        if not commanded.any():
            return
        self._begin_blend(position)
        self._given = (position, velocity, effort)
        if position is None:
            self.blend.end()
        if not self.blend.active:
            self.engine.command(position, velocity, effort)
        self._commanded |= commanded
        self._without_position[commanded] = position is None
        self._heard[commanded] = self._last = self.engine.time
        self._changes = self.arbiter.changes

    def _begin_blend(self, position: np.ndarray | None) -> None:
        """Blend in the joints (n,) that are commanded again after a break, or by another one."""
        new = self.engine.time - self._heard > RETURNS
        if self.engine.time - self._last > RETURNS or self.arbiter.changes != self._changes:
            self.blend.end()
            new[:] = True
        if position is not None and (np.isfinite(position) & new).any():
            held = np.where(self._without_position, self.engine.joints, self.engine.drives.q_ref)
            self.blend.begin(held, np.clip(position, self.robot.lower, self.robot.upper), new)

    def lead(self, dt: float) -> None:
        """Lead the references on by a period of length dt [s]: where commands come back, and nowhere too fast."""
        if self.blend.active:
            self._lead_back(dt)
        self.rate.limit(self.engine.drives, self._commanded, self.engine.time, dt)
        self._commanded[:] = False

    def _lead_back(self, dt: float) -> None:
        position, velocity, effort = self._given
        assert position is not None
        before = self.blend.reference
        reference = self.blend.step(np.clip(position, self.robot.lower, self.robot.upper), dt)
        self._commanded[:] = True
        if not self.blend.active:
            self.engine.command(position, velocity, effort)
            return
        commanded = np.isfinite(position)  # the drives move on with the speed, until the end of the period
        self.engine.command(
            np.where(commanded, before, np.nan), np.where(commanded, (reference - before) / dt, np.nan), effort
        )

    def note_errors(self) -> None:
        """Take note of the references at the end of a period, and of the joint that is farthest from its own."""
        drives = self.engine.drives
        self.rate.note(drives, self.engine.joints)
        error = np.where(drives.mode == POSITION, np.abs(drives.q_ref - self.engine.joints), 0.0)
        k = int(np.argmax(error))
        if error[k] > self.worst[1]:
            self.worst = (self.robot.joint_names[k], float(error[k]))

    def _drop_implausible(self, own: np.ndarray, position: np.ndarray | None, **others: np.ndarray | None) -> None:
        """Take numbers that no joint can follow out of a command; own: joints that it names."""
        texts, now = [], self.engine.time
        for kind, values in others.items():
            if values is None:
                continue
            most = self._most[kind]
            for k in own[np.abs(values[own]) > most[own]]:
                name = self.robot.joint_names[k]
                texts.append(f"{kind} of {name} is {values[k]:.4g}, more than {most[k]:.4g}: refused")
                values[k] = np.nan
            values[~np.isfinite(values)] = np.nan
        if position is not None:
            position[own[~self._plausible.check(own, position[own], now)]] = np.nan
        if text := self._plausible.problem(now):
            texts.insert(0, text)
        self.health.check("implausible", bool(texts), Level.WARN, f"command: {'; '.join(texts[:4])}")

    def _in_order(self, kind: str, values: Any, what: str) -> np.ndarray:
        names, places, own = self._order
        if len(values) != len(names):
            raise ConfigError(f"{what} without a {kind} for each name: passed over")
        out = np.full(self.robot.n, np.nan)
        out[own] = np.asarray(values)[places]
        bad = own[~np.isfinite(out[own])]
        if len(bad) and what != "command":  # there, by the convention of ros2_control, such a joint is not commanded
            raise NotANumberError(f"{what}: {kind} of {self.robot.joint_names[bad[0]]} is not a number: held")
        return out

    def hold_when_silent(self, timeout: float) -> None:
        """Joints under velocity or effort command are held where they are once the commands cease."""
        silence = self.engine.time - self._last
        silent, moves = silence > timeout, bool(self._without_position.any())
        text = f"no commands: what they began goes on for {timeout:g} s" if moves and not silent else HELD
        self.health.check("silent", silent or silence > LATE, Level.WARN, text)
        if silent:
            self.blend.end()
        alone = self._without_position & (self.engine.time - self._heard > timeout)
        if alone.any():
            self.engine.drives.hold(alone, self.engine.joints)
            self._commanded |= alone
            self._without_position[alone] = False

    def pull(self, tension: float) -> None:
        """Let the tendons pull with this tension [N], where it has changed."""
        if tension != self._tension:
            self._tension = tension
            self.engine.set_tension(tension)

    # -- states and pushes ---------------------------------------------------------------------------------------------

    def on_set_state(self, m: JointState) -> None:
        """Joints, by name, put to positions and velocities; the others stay where they are, at rest."""
        unknown = [n for n in m.name if n not in self.robot.index]
        if unknown:
            raise UnknownNameError("joint", unknown[0], self.robot.index, hint="(set_state: nothing was changed)")
        self._order = (list(m.name), *self.robot.order_of(m.name))
        joints, velocities = self.engine.joints.copy(), np.zeros(self.robot.n)
        for kind, values, out in (("position", m.position, joints), ("velocity", m.velocity, velocities)):
            if len(values) or kind == "position":
                new = self._in_order(kind, values, "set_state")
                out[np.isfinite(new)] = new[np.isfinite(new)]
        pose, twist = self._base()
        self.engine.set_state(joints, velocities, pose, twist)
        self.restart()

    def on_set_base(self, m: PoseStamped) -> None:
        """The root link put to a pose in the world, at rest; the joints stay as they are."""
        world = self.node.params.world_frame
        if m.header.frame_id not in ("", world):
            raise ConfigError(f"set_base takes poses in the frame '{world}', not '{m.header.frame_id}'")
        p, o = m.pose.position, m.pose.orientation
        numbers = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])
        if not (np.abs(numbers) < FARTHEST).all() or np.linalg.norm(numbers[3:]) < 0.1:
            raise NotANumberError("set_base: the pose is not a number, or its quaternion is zero: nothing was changed")
        numbers[3:] /= np.linalg.norm(numbers[3:])
        self.engine.set_state(X_world_root=pin.XYZQUATToSE3(numbers))
        self.restart()

    def _base(self) -> tuple[pin.SE3 | None, np.ndarray | None]:
        if self.robot.base == "fixed":
            return None, None
        pose, twist = self.engine.base_state()
        return pin.XYZQUATToSE3(pose), twist

    def on_push(self, m: WrenchStamped) -> None:
        """A wrench at the origin of the link in `frame_id`, in its axes now; their direction is kept while it acts."""
        R = self.engine.link_pose(m.header.frame_id).rotation
        f, t = m.wrench.force, m.wrench.torque
        if not (np.abs([f.x, f.y, f.z, t.x, t.y, t.z]) < STRONGEST).all():
            raise NotANumberError("push: the wrench is not a number, or greater than any: nothing is pushed")
        wrench = np.concatenate([R @ (f.x, f.y, f.z), R @ (t.x, t.y, t.z)])
        self.engine.push(m.header.frame_id, wrench, self.node.params.push_duration)


def _with_suggestion(name: str, known: Any) -> str:
    name = name[:60]  # looking for names like it takes a time that grows with its length
    near = nearest_names(name, known, 1)
    return f"{name} (did you mean {near[0]}?)" if near else name


class SimulatorOutputs:
    """Publishers and sensors of one simulated robot."""

    world_frame = WORLD

    def __init__(self, node: Any, engine: Engine, p: SimulatorParameters) -> None:
        """Make them.

        Raises:
            HumanoidError: parameters of the sensors that make no sense.
        """
        robot, wrong = engine.robot, imperfection_of(p)
        self.engine, self.slow_every, self.simulated_stamps = engine, p.slow_every, p.stamp == "sim"
        self.world_frame = p.world_frame
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
        self._tf = node.create_publisher(TFMessage, "/tf", EVENTS) if TFMessage is not None else None
        self._feet = {f.name: node.create_publisher(WrenchStamped, foot_topic(f.name), STREAM_OUT) for f in feet}
        self._tendons = SimulatorTendons(node, engine, p) if p.tendons else None
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
        """Read the sensors and publish; imu, wrenches, odometry and clock only where they are due.

        Args:
            before: how long ago on this computer's clock the state was due, in whole periods [s].
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
        """The last joint states, the odometry and the clock again, for those who come while time stands still."""
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
        """Later than the last one; simulated time only where it has passed."""
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
        imu.header.stamp, imu.header.frame_id = stamp, self.engine.robot.root_link
        o = imu.orientation
        o.x, o.y, o.z, o.w = read[0].tolist()
        _fill(imu.angular_velocity, read[1])
        _fill(imu.linear_acceleration, read[2])
        self._imu.publish(imu)

    def _send_odometry(self, stamp: Time) -> None:
        pose, twist = self.engine.base_state()
        m = Odometry(child_frame_id=self.engine.robot.root_link)
        m.header.stamp, m.header.frame_id = stamp, self.world_frame
        p, o = m.pose.pose.position, m.pose.pose.orientation
        (p.x, p.y, p.z), (o.x, o.y, o.z, o.w) = pose[:3].tolist(), pose[3:].tolist()
        _fill(m.twist.twist.linear, twist[:3])
        _fill(m.twist.twist.angular, twist[3:])
        self._odometry.publish(m)
        if self._tf is not None:
            base = TransformStamped(header=m.header, child_frame_id=m.child_frame_id)
            base.transform.rotation = o
            _fill(base.transform.translation, pose[:3])
            soles = []
            for foot in self.engine.robot.feet if self._feet else ():
                sole = TransformStamped(child_frame_id=sole_frame(foot.name))
                sole.header.stamp, sole.header.frame_id = stamp, foot.link
                _fill(sole.transform.translation, foot.corners().mean(axis=0))
                soles.append(sole)
            if transforms := [*([base] if self.publish_base else []), *soles]:
                self._tf.publish(TFMessage(transforms=transforms))

    def _send_wrenches(self, stamp: Time) -> None:
        truth = self.engine.foot_wrenches() if self._feet else {}
        for name, publisher in self._feet.items():
            read = self._foot_sensors[name].read(self.engine.time, truth[name][:3], truth[name][3:])
            if read is None or not _finite(*read):
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


def _finite(*values: np.ndarray) -> bool:
    """True where all readings are numbers: those of a world that diverged are not."""
    return all(np.isfinite(v).all() for v in values)


def _fill(vector: Any, values: np.ndarray) -> None:
    vector.x, vector.y, vector.z = np.asarray(values, dtype=float).tolist()


class SimulatorTendons:
    """Publisher and sensor of a simulated robot's tendons.

    Messages are sensor_msgs/JointState: name, position = length of the whole path [m], effort = tension [N].
    """

    def __init__(self, node: Any, engine: Engine, p: SimulatorParameters) -> None:
        """Make them, and load what they need.

        Raises:
            HumanoidError: the robot has no tendons, or a parameter makes no sense.
        """
        states = engine.tendon_states()
        if states is None:
            raise RobotError(f"{engine.robot.name} has no tendons: {NEEDS_TENDON_FILE}, or set tendons to false")
        self.node, self.engine, self.every = node, engine, p.tendon_every
        period, wrong = p.tendon_every / p.rate, imperfection_of(p)
        self.sensor = TendonSensor(
            states.names, wrong, p.seed, p.tendon_stiffness, p.tendon_drift, p.tendon_spikes, period
        )
        self.sensor.faults = parse_faults(p.tendon_faults, states.names)
        self._faults = p.tendon_faults
        self._names, self._message = states.names, joint_state(states.names)
        self._publisher = node.create_publisher(JointState, "tendon_states", STREAM_OUT)
        self.restart()

    def restart(self) -> None:
        """Measure everything anew, with the same random numbers."""
        self._count = 0
        self.sensor.reset()

    def publish(self, stamp: Time) -> None:
        """Measure and publish, where it is due; called at every joint state."""
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
        self._publisher.publish(fill_joint_state(self._message, stamp, read.lengths, effort=read.tensions))

    def repeat(self, stamp: Time) -> None:
        """The last measurement again, while time stands still."""
        if len(self._message.position):
            self._message.header.stamp = stamp
            self._publisher.publish(self._message)

    def _update_faults(self) -> None:
        """Take the live parameter's new faults; an error in it is reported, and changes nothing."""
        text = self.node.params.tendon_faults
        if text == self._faults:
            return
        self._faults = text
        try:
            self.sensor.faults = parse_faults(text, self.sensor.names)
            self.node.health.clear("tendon_faults")
        except HumanoidError as e:
            self.node.health.report("tendon_faults", Level.WARN, str(e))
