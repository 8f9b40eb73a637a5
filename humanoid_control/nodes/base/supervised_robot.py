"""Supervision of the commanded robot from topics: position, tracking, driver power.

Uses `hardware_state` and `simulator/paused`, offers `~/resync`, reports to diagnostics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from humanoid_control.estimation import RobotSupervision, Verdict
from humanoid_control.nodes.base.messages import LATCHED, PAUSED, JointPositions, seconds
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import Robot

HARDWARE_STATE = "hardware_state"
TRIES = 4  # attempts with a simulator that does not receive commands yet: discovery takes seconds on a busy machine
PACE_PERIOD, REST_SPEED = 0.02, 0.3  # [s] period of the joint speed check; [rad/s] speed of a robot at rest
REST_TIMEOUT = 0.6  # [s] limit of the wait until a moving robot rests
FOLLOWED = ("", "RUN")  # driver states in which the robot follows commands; empty: no driver


class ReportedPower:
    """Power state of the robot's driver, if any."""

    def __init__(self, node: TickNode, changed: Callable[[], None]) -> None:
        """Subscribe.

        Args:
            changed: called when the driver starts or stops following commands.
        """
        self._node, self._changed, self._state = node, changed, ""
        node.create_subscription(String, HARDWARE_STATE, self._on_hardware_state, LATCHED)

    @property
    def follows(self) -> bool:
        """Whether the robot should be at its commands: powered, without an active transition."""
        return self._state in FOLLOWED or not self._node.count_publishers(HARDWARE_STATE)

    @property
    def state(self) -> str:
        """Last state of the driver; empty: no driver."""
        return self._state if self._node.count_publishers(HARDWARE_STATE) else ""

    def one_of(self, states: Sequence[str]) -> bool:
        """Test whether the state is one of `states`, to which the empty one (no driver) must belong.

        A driver that has ended then changes nothing, so the graph is asked only if the last state is not one of them.
        """
        return self._state in states or self.state in states

    @property
    def simulated(self) -> bool:
        """Whether no driver ever reported."""
        return not self._state

    def _on_hardware_state(self, m: String) -> None:
        state = m.data.split(":")[0]
        if state != self._state:
            self._state = state
            self._changed()


class SupervisedRobot(RobotSupervision):
    """`RobotSupervision` with its own subscriptions and reports."""

    def __init__(self, node: TickNode, robot: Robot, states: str, restart: Callable[[], None]) -> None:
        """Subscribe to all but the joint states, which `hear` takes.

        Args:
            states: topic of its joint states.
            restart: called to restart from the current posture.
        """
        self.estimate = JointPositions(robot)
        super().__init__(robot.joint_names, robot.velocity, states, (robot.lower, robot.upper))
        self._node, self._states, self._begin_anew = node, states, restart
        self._power = ReportedPower(node, self.restart)
        node.create_subscription(Bool, PAUSED, self._on_paused, LATCHED)
        node.create_service(Trigger, "~/resync", self._on_resync)

    def reset(self) -> None:
        super().reset()
        self.estimate.reset()
        self._known_since, self._pace = np.inf, np.inf  # [s]; speed of the fastest joint [rad/s]
        self._seen = (0.0, self.estimate.values)  # time of the last check, and positions at it

    def hear(self, m: JointState) -> None:
        joints, positions = self.estimate.take(m)
        if not self.supervised:  # used before the first command only
            self._watch_pace(time.monotonic())
        text = self.estimate.problem
        self._node.health.check("estimates", bool(text), Level.WARN, f"{self._states}: {text}")
        self.measure(time.monotonic(), joints, positions, seconds(m.header.stamp) or None)

    def _watch_pace(self, now: float) -> None:
        if not self.estimate.known:
            return
        if self._known_since == np.inf:
            self._known_since = now
        elif now - self._seen[0] >= PACE_PERIOD:
            self._pace = float(np.abs(self.estimate.values - self._seen[1]).max()) / (now - self._seen[0])
        else:
            return
        self._seen = now, self.estimate.values.copy()

    def may_be_commanded(self, now: float) -> bool:
        """Test whether all joints are known and at rest, so that commands cause no jump.

        Robots that keep moving are accepted after `REST_TIMEOUT`.
        """
        return self._pace <= REST_SPEED or now - self._known_since > REST_TIMEOUT

    def is_awaited(self, now: float) -> bool:
        """Test whether joint states are missing, and report it."""
        missing = not self.estimate.known and self._node.silent(self._states, now, 0.0)
        text = "no joint states yet: nothing is commanded"
        self._node.heartbeat.miss(not self.estimate.known)
        return self._node.health.check("start", missing, Level.WARN, text)

    def verdict(self, now: float) -> Verdict:
        """Return the action of a tick at `now` [s], and report faults."""
        self.tries = TRIES if self._power.simulated else 1
        verdict = self.judge(now, self._node.age(self._states, now), self._power.follows)
        health = self._node.health
        self._node.heartbeat.miss(self.gone)
        health.check("robot", bool(self.silence), Level.ERROR if self.gone else Level.WARN, self.silence)
        text = f"{self.fault}: stopped; ~/resync resumes from the present posture"
        health.check("joints", bool(self.fault), Level.ERROR, text)
        return verdict

    def _on_paused(self, m: Bool) -> None:
        self.paused = m.data

    def _on_resync(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._node.active:
            self._begin_anew()
        response.success = self._node.active
        response.message = "resuming from the present posture" if response.success else "the node is not active"
        return response
