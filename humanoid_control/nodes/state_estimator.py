"""Node `state_estimator`: joint positions and velocities from encoders or tendon lengths."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from humanoid_control.estimation import ClockOffsets, ClockSteps, JointFilter, JointPlausibility, named_twice
from humanoid_control.nodes.base.messages import STREAM_OUT, joint_state, message_of, seconds, stamp_of
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots import Robot, load_robot

__all__ = ["StateEstimator", "StateEstimatorParameters", "main"]

TOPIC = "joint_states"
UNMEASURED = 1.0  # [s] after which a joint without measurements is reported


class JointInput:
    """Input of the joint filter from encoders (`joint_states`)."""

    topic = TOPIC

    def __init__(self, node: Any, robot: Robot, joint_filter: JointFilter, encoders: np.ndarray) -> None:
        """Subscribe.

        Args:
            joint_filter: filter of the samples.
            encoders: mask of joints with encoders (n,).
        """
        self.robot, self.filter, self.health, self._encoders = robot, joint_filter, node.health, encoders
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self._measured, self._first_stamp = np.full(robot.n, np.nan), np.nan
        self._received_at = np.full(robot.n, -np.inf)
        self._clock, self.clocks, self._twice = node.clock, ClockOffsets(), ""
        self.plausible = JointPlausibility(robot.joint_names, robot.lower, robot.upper, robot.velocity)
        node.listen(JointState, TOPIC, self.on_joint_states)

    def on_joint_states(self, m: JointState) -> None:
        """Accept a sample of the named joints."""
        if m.name != self._order[0]:
            places, joints = self.robot.order_of(m.name)
            keep = self._encoders[joints]
            self._order = (list(m.name), places[keep], joints[keep])
            self._twice = named_twice(m.name)
        _, places, joints = self._order
        bad_length = len(m.position) != len(m.name)
        if self.health.check("length", bad_length, Level.WARN, "joint states without a position for each name"):
            return
        text = f"joint states name '{self._twice[:60]}' twice: ignored"
        if self.health.check("twice", bool(self._twice), Level.ERROR, text):
            return
        q = np.asarray(m.position, dtype=float)[places]
        bad = joints[~np.isfinite(q)]
        self.health.check("nan", bool(len(bad)), Level.ERROR, f"measured position is not a number: {self._names(bad)}")
        stamp = self.clocks.time(tuple(m.name), seconds(m.header.stamp), self._clock(), time.monotonic())
        use = self.plausible.check(joints, q, stamp)
        self._measured[:] = np.nan  # joints of other messages are not measured again by this one
        self._measured[joints[use]], self._received_at[joints[use]] = q[use], time.monotonic()
        text = self.plausible.problem(stamp)
        self.health.check("implausible", bool(text), Level.WARN, text)
        self._first_stamp = np.fmin(self._first_stamp, stamp)
        for joint, velocity in self.plausible.restarts.items():
            self.filter.restart(joint, stamp, self._measured[joint], velocity)
        self.filter.update(stamp, self._measured)
        missing = joints[:0]
        if len(joints) < np.count_nonzero(self._encoders):
            # for joints never measured: time since the first message
            age = np.fmin(self.filter.age(stamp), stamp - self._first_stamp)
            missing = np.flatnonzero(self._encoders & (age > UNMEASURED))
        self.health.check("missing", bool(len(missing)), Level.WARN, f"joints not measured: {self._names(missing)}")

    def unmeasured(self, now: float, limit: float) -> np.ndarray:
        """Return encoder joints (n,) without plausible data for `limit` [s]."""
        return self._encoders & (now - self._received_at > limit)

    def shift(self, step: float) -> None:
        """Shift all stored times by `step` [s]."""
        self._first_stamp += step
        self.clocks.shift(step)
        self.plausible.shift(step)

    def _names(self, joints: np.ndarray) -> str:
        return ", ".join(self.robot.joint_names[k] for k in joints[:3])


class StateEstimator(TickNode):
    """Node that filters and differentiates joint positions."""

    Parameters = StateEstimatorParameters
    params: StateEstimatorParameters
    node_name = "state_estimator"
    sole = True

    def configure(self) -> float:
        robot = load_robot(self.params.robot)
        self.robot = robot
        self.filter = JointFilter(robot.joint_names, self.params.bandwidth, (robot.lower, robot.upper))
        self.message = joint_state(robot.joint_names)
        self.estimates = self.create_publisher(JointState, "estimated_joint_states", STREAM_OUT)
        self.clock_steps = ClockSteps()
        self.tendons: Any = None  # a TendonInput
        self.encoders: JointInput | None = None
        self.topic, encoders = TOPIC, np.ones(robot.n, dtype=bool)
        if self.params.source == "tendons":  # loads the compiler, which encoders do not need
            from humanoid_control.nodes.estimating.tendon_estimation import TendonInput

            self.tendons = TendonInput(self, robot, self.filter)
            self.topic, encoders = self.tendons.topic, ~self.tendons.estimated
        if encoders.any():
            self.encoders = JointInput(self, robot, self.filter, encoders)
        self.create_service(Trigger, "~/reset", self.on_reset)
        return self.params.rate

    def clock(self) -> float:
        """Return the ROS time [s]; if the clock was set, shift sample times."""
        now = 1e-9 * self.get_clock().now().nanoseconds
        if step := self.clock_steps.detect(now, time.monotonic()):
            for one in (self.filter, self.encoders, self.tendons):
                if one is not None:
                    one.shift(step)
        return now

    def parameters_changed(self, changed: set[str]) -> None:
        if "bandwidth" in changed:
            self.filter.bandwidth = self.params.bandwidth

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.filter.reset()
        if self.encoders is not None:
            self.encoders.plausible.reset()
        if self.tendons is not None:
            self.tendons.reset()
        response.success, response.message = True, "estimate discarded"
        return response

    def tick(self, now: float) -> None:
        silent = self.silent(self.topic, now, self.params.timeout)
        words = self.topic.replace("_", " ")
        self.health.check("silent", silent, Level.WARN, f"no {words}: no estimate")
        self.heartbeat.miss(self.age(self.topic, now) > self.params.timeout)
        stamp, clock = stamp_of(self.present()), self.clock()
        for source in (self.encoders, self.tendons):
            if source is not None:
                problem = "" if self.graph.frozen else source.clocks.problem
                self.health.check(f"clock {source.topic}", bool(problem), Level.WARN, f"{source.topic}: {problem}")
        if self.tendons is not None:
            self.tendons.hold(clock, now)
        if self.age(self.topic, now) > self.params.timeout or self.graph.frozen:
            return  # at time zero every estimate would be a first sample, at rest
        state = self.filter.at(clock)
        if self.encoders is not None:  # an unmeasured joint must not appear at rest
            state.q[self.encoders.unmeasured(now, self.params.timeout)] = np.nan
        message = message_of(state, stamp, self.message)
        if message is not None:
            self.estimates.publish(message)

    def slack_time(self, left: float) -> None:
        if self.tendons is not None:
            self.tendons.slack_time(left)

    def values(self) -> dict[str, Any]:
        more = self.tendons.values() if self.tendons is not None else {}
        return {"joints_known": int(np.isfinite(self.filter.position).sum()), **more}


def main() -> int:
    return main_of(StateEstimator)


if __name__ == "__main__":
    sys.exit(main())
