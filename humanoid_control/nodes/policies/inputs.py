"""Inputs of the node `policy`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState

from humanoid_control.errors import ConfigError, HumanoidError, NotANumberError
from humanoid_control.nodes.base.command_owner import COMMANDS_IN, listen_to_one
from humanoid_control.nodes.base.messages import JointPositions
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.policies.references import LiveReference
from humanoid_control.nodes.walking.requests import FOOTPRINT, VelocityRequest
from humanoid_control.nodes.walking.sensors import IMU, JOINTS, TickClock
from humanoid_control.nodes.walking.serialized_sensors import SerializedSensors
from humanoid_control.policy import Command, MotionReference, Policy, RobotState

ODOMETRY_OLD = 0.2  # [s] age at which odometry is outdated
IMPOSSIBLE = 1e6  # bound of odometry [m], [m/s]
EARLY = 1_000_000  # [ns] tolerance before the due time of a step
JUMP = 1_000_000_000  # [ns] jump that means another sensor clock
NEEDS_ODOMETRY = ("base_lin_vel", "base_height")  # observation terms


class PolicyInputs:
    """All inputs of a policy. Faulty messages are reported and discarded.

    Attributes:
        sensors: joints and IMU.
        references: reference motions of tracking policies.
        body: positions commanded by another controller (n,) [rad]; NaN: none.
    """

    def __init__(self, node: TickNode, policies: list[Policy]) -> None:
        """Subscribe; all policies are of one robot."""
        self.node, self.robot, p = node, policies[0].robot, node.params
        self.sensors = SerializedSensors(self.robot, node.health, p.local_frame)
        self._root = p.frame(self.robot.root_link)
        self.velocity = VelocityRequest(node.health, self._root, p.cmd_vel_timeout, p.frame(FOOTPRINT))
        self.references = {id(q): LiveReference(q) for q in policies if isinstance(q.reference, MotionReference)}
        self.needs_odometry = any(t.kind in NEEDS_ODOMETRY for q in policies for t in q.model.terms)
        self._body = JointPositions(self.robot)
        self._clock = TickClock(policies[0].period)
        self.restart()
        node.listen(JointState, "joint_states", self._sensed(JOINTS), raw=True)
        node.listen(Imu, "imu", self._sensed(IMU), raw=True)
        node.listen(Odometry, "odom", self._named("odom", self._on_odometry))
        twist = Twist if p.cmd_vel_type == "Twist" else TwistStamped
        listen_to_one(node, twist, "cmd_vel", self._on_velocity, p.cmd_vel_timeout)
        listen_to_one(node, JointState, "body_commands", self._named("body", self._on_body), p.body_timeout)
        if self.references:
            for message, topic, name in (
                (JointState, "reference_joint_states", "on_joints"),
                (Odometry, "reference_odometry", "on_odometry"),
            ):
                node.listen(message, topic, self._named(topic, self._for_all(name)), COMMANDS_IN)

    def restart(self) -> None:
        """Discard all inputs."""
        self.sensors.reset()
        self.velocity.reset()
        self._body.reset()
        self._body_received = np.full(self.robot.n, -np.inf)
        self._odometry: tuple[float, np.ndarray, np.ndarray] | None = None
        for reference in self.references.values():
            reference.restart()
        self.start_policy()

    def start_policy(self) -> None:
        """Start a policy with the next sensor instant."""
        self._clock.restart()
        self.due: int | None = None  # sensor stamp of the next step [ns]
        self.late, self.pace, self._last = 0.0, 1.0, (0, 0.0)

    # -- messages ---------------------------------------------------------------------------------------------------

    def _sensed(self, key: str) -> Callable[[bytes], None]:
        """Return a callback that triggers a tick if a step is due."""

        def call(data: bytes) -> None:
            self.sensors.add(key, data)
            if not self.node.active:
                self.sensors.take()
            elif self._is_due(self.sensors.waiting_instant):
                self.sensors.take()
                self.node.wake = self.node.wake or self._is_due(self.sensors.instant)

        return call

    def _named(self, key: str, take: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(message: Any) -> None:
            try:
                take(message)
                self.node.health.clear(key)
            except HumanoidError as e:
                self.node.health.report(key, Level.WARN, str(e))

        return call

    def _for_all(self, name: str) -> Callable[[Any], None]:
        def call(message: Any) -> None:
            for reference in self.references.values():
                getattr(reference, name)(message)

        return call

    def _on_odometry(self, m: Odometry) -> None:
        p, v = m.pose.pose.position, m.twist.twist.linear
        if m.child_frame_id not in ("", self._root):
            raise ConfigError(f"odom of '{m.child_frame_id}': only odom of the root link is supported: ignored")
        numbers = np.array([p.x, p.y, p.z, v.x, v.y, v.z])
        if not (np.abs(numbers) < IMPOSSIBLE).all():
            raise NotANumberError("odom: a value is not a number: ignored")
        self._odometry = time.monotonic(), numbers[:3], numbers[3:]

    def _on_velocity(self, m: Any) -> None:
        self.velocity.take(m, 1e-9 * self.node.get_clock().now().nanoseconds)

    def _on_body(self, m: JointState) -> None:
        joints, q = self._body.take(m)
        if problem := self._body.problem:
            raise ConfigError(f"body_commands: {problem}")
        self._body_received[joints[np.isfinite(q)]] = time.monotonic()

    # -- inputs of a step -----------------------------------------------------------------------------------------

    def instant(self, now: float) -> int | None:
        """Return the sensor instant at `now` [s], in [ns]; None without data."""
        return self._clock.choose(self.sensors.instant, self.sensors.joint_instant, now)

    def _is_due(self, instant: int | None) -> bool:
        return instant is not None and (self.due is None or instant >= self.due - EARLY or instant < self.due - JUMP)

    def waits(self) -> bool:
        """Test whether the messages of a due step wait."""
        return self._is_due(self.sensors.waiting_instant)

    def leaps(self, instant: int | None) -> bool:
        """Test whether the sensor clock has changed."""
        return instant is not None and self.due is not None and abs(instant - self.due) > JUMP

    def step(self, instant: int | None, now: float, period: float) -> bool:
        """Test whether a step is due; set `late`, its delay [s].

        Args:
            instant: sensor instant [ns].
            now: monotonic time [s].
            period: period of the policy [s].
        """
        if not self._is_due(instant):
            return False
        assert instant is not None
        whole = round(1e9 * period)
        due = self.due if self.due is not None else instant
        before, at = self._last
        if before and now > at:
            self.pace += 0.05 * (min(max(1e-9 * (instant - before) / (now - at), 0.02), 1.0) - self.pace)
        self._last = instant, now
        self.late = max(1e-9 * (instant - due), 0.0)
        self.due = due + whole if instant - due < whole // 2 else instant + whole
        return True

    def state(self, now: float) -> RobotState:
        """Return the state; the sensors must be complete."""
        measured = self.sensors.measurement()
        position = velocity = None
        if self._odometry is not None and now - self._odometry[0] <= ODOMETRY_OLD:
            _, position, velocity = self._odometry
        j, imu = measured.joints, measured.imu
        return RobotState(j.q, j.v, imu.orientation, imu.angular_velocity, position, velocity)

    def others(self, now: float) -> np.ndarray:
        """Return positions from another controller (n,) [rad]; NaN: none."""
        fresh = now - self._body_received <= self.node.params.body_timeout
        return np.where(fresh, self._body.values, np.nan)

    def command(self, now: float, policy: Policy) -> Command:
        others, velocity = self.others(now), self.velocity.now(now, self.node.params.cmd_vel_timeout)
        known = np.isfinite(others)
        return Command(velocity, joints=np.where(known, others, policy.rest) if known.any() else None)

    def follow(self, now: float, policies: list[Policy]) -> None:
        """Pass this step's frame to tracking policies."""
        for policy in policies:
            if (reference := self.references.get(id(policy))) is not None:
                reference.advance(now, self.node.params.reference_timeout, policy.period, self.pace)
