"""The robot that a node commands, as the node hears it: where it is, whether it follows, whether its driver has power.

Topics `hardware_state` and `simulator/paused`, service `~/resync`, and reports in the node's diagnostics.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from humanoid_control.estimation import RobotSupervision, Verdict
from humanoid_control.nodes.base.messages import LATCHED, PAUSED, JointPositions, seconds
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import Robot

HARDWARE_STATE = "hardware_state"
TRIES = 4  # begins with a simulator that does not hear its commands yet: the graph of a busy machine takes seconds
PACE_PERIOD, REST_SPEED = 0.02, 0.3  # [s] over which it is seen how fast joints move; [rad/s] of those that rest
REST_TIMEOUT = 0.6  # [s] for which a robot that is known and moves by itself is given time to come to rest
FOLLOWED = ("", "RUN")  # power states of a driver in which its robot is where the commands are; empty: no driver spoke


class ReportedPower:
    """The power state of the robot's driver, where there is one."""

    def __init__(self, node: TickNode, changed: Callable[[], None]) -> None:
        """Listen.

        Args:
            node: that commands the robot.
            changed: called where the driver begins or ends to follow commands.
        """
        self._node, self._changed, self._state = node, changed, ""
        node.create_subscription(String, HARDWARE_STATE, self._hear, LATCHED)

    @property
    def follows(self) -> bool:
        """The robot is where the commands are, or should be: not without power, nor on its way to the commands."""
        return self._state in FOLLOWED or not self._node.count_publishers(HARDWARE_STATE)

    @property
    def state(self) -> str:
        """What the driver said last; empty: none spoke, or it is gone."""
        return self._state if self._node.count_publishers(HARDWARE_STATE) else ""

    @property
    def simulated(self) -> bool:
        """No driver ever spoke."""
        return not self._state

    def _hear(self, m: String) -> None:
        state = m.data.split(":")[0]
        if state != self._state:
            self._state = state
            self._changed()


class SupervisedRobot(RobotSupervision):
    """A `RobotSupervision` that hears of its robot by itself, and reports.

    Attributes:
        estimate: the newest position of each joint.
    """

    def __init__(self, node: TickNode, robot: Robot, states: str, begin_anew: Callable[[], None]) -> None:
        """Listen to all but the joint states, which `hear` takes.

        Args:
            node: that commands the robot. robot: it.
            states: topic of its joint states.
            begin_anew: called where the node should go on from where the robot is.
        """
        self.estimate = JointPositions(robot)
        super().__init__(robot.joint_names, robot.velocity, states, (robot.lower, robot.upper))
        self._node, self._states, self._begin_anew = node, states, begin_anew
        self._power = ReportedPower(node, self.restart)
        node.create_subscription(Bool, PAUSED, self._on_paused, LATCHED)
        node.create_service(Trigger, "~/resync", self._on_resync)

    def forget(self) -> None:
        """Nothing is commanded any more, and nothing known of where the robot is."""
        super().forget()
        self.estimate.forget()
        self._known_since, self._pace = np.inf, np.inf  # [s]; fastest joint [rad/s]
        self._seen = (0.0, self.estimate.values)  # when it was looked, and where they were

    def hear(self, m: JointState) -> None:
        """Take joint states."""
        joints, positions = self.estimate.take(m)
        if not self.supervised:  # it is asked for before the first command only
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
        """Test whether a command of where the joints are is one still when it arrives: all are known, and rest.

        A robot that is led to the last words of somebody else comes to rest; one that goes on moving, or whose
        estimates are rough, is taken as it is after `REST_TIMEOUT`.
        """
        return self._pace <= REST_SPEED or now - self._known_since > REST_TIMEOUT

    def is_awaited(self, now: float) -> bool:
        """Test whether nothing can be commanded yet because nothing was heard of the robot, and report it."""
        missing = not self.estimate.known and self._node.silent(self._states, now, 0.0)
        text = "no joint states yet: nothing is commanded"
        self._node.heartbeat.miss(not self.estimate.known)
        return self._node.health.check("start", missing, Level.WARN, text)

    def verdict(self, now: float) -> Verdict:
        """What the commands of a tick at `now` [s] should do, and reports of what is wrong."""
        self.tries = TRIES if self._power.simulated else 1
        verdict = self.judge(now, self._node.age(self._states, now), self._power.follows)
        health = self._node.health
        self._node.heartbeat.miss(self.gone)
        health.check("robot", bool(self.silence), Level.ERROR if self.gone else Level.WARN, self.silence)
        text = f"{self.fault}: stopped; ~/resync goes on from where the robot is"
        health.check("joints", bool(self.fault), Level.ERROR, text)
        return verdict

    def _on_paused(self, m: Bool) -> None:
        """The simulator's time stands still, or goes on."""
        self.paused = m.data

    def _on_resync(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Go on from where the robot is, after a fault of a joint."""
        if self._node.active:
            self._begin_anew()
        response.success = self._node.active
        response.message = "going on from where the robot is" if response.success else "the node is not active"
        return response
