"""Node `state_estimator`: what sensors measure becomes joint positions and velocities as believed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from humanoid_control.motion import JointFilter
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.health import Level
from humanoid_control.nodes.joint_input import TOPIC, JointInput
from humanoid_control.nodes.messages import fill_joint_state, joint_state, seconds
from humanoid_control.nodes.qos import STREAM_OUT
from humanoid_control.nodes.run import main_of
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots import load_robot

__all__ = ["StateEstimator", "StateEstimatorParameters", "main"]


class StateEstimator(TickNode):
    """Filters and differentiates the joint positions, which encoders give or the lengths of tendons."""

    Parameters = StateEstimatorParameters
    params: StateEstimatorParameters
    node_name = "state_estimator"

    def configure(self) -> float:
        robot = load_robot(self.params.robot)
        self.robot = robot
        self.filter = JointFilter(robot.n, self.params.bandwidth)
        self.message = joint_state(robot.joint_names)
        self.estimates = self.create_publisher(JointState, "estimated_joint_states", STREAM_OUT)
        self.tendons: Any = None
        self.topic, encoders = TOPIC, np.ones(robot.n, dtype=bool)
        if self.params.source == "tendons":  # what they need is loaded for nobody else
            from humanoid_control.nodes.tendon_input import TendonInput

            self.tendons = TendonInput(self, robot, self.filter)
            self.topic, encoders = self.tendons.topic, ~self.tendons.estimated
        if encoders.any():
            self.encoders = JointInput(self, robot, self.filter, encoders)
        self.create_service(Trigger, "~/reset", self.on_reset)
        return self.params.rate

    def parameters_changed(self, changed: set[str]) -> None:
        if "bandwidth" in changed:
            self.filter.bandwidth = self.params.bandwidth

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.filter.reset()
        if self.tendons is not None:
            self.tendons.reset()
        response.success, response.message = True, "estimate forgotten"
        return response

    def tick(self, now: float) -> None:
        silent = self.silent(self.topic, now, self.params.timeout)
        words = self.topic.replace("_", " ")
        self.health.check("silent", silent, Level.WARN, f"no {words}: nothing estimated")
        stamp = self.get_clock().now().to_msg()
        if self.tendons is not None:
            self.tendons.hold(seconds(stamp), now)
        if self.age(self.topic, now) > self.params.timeout:
            return
        position, velocity = self.filter.at(seconds(stamp))
        known = np.isfinite(position)
        if known.all():
            self.estimates.publish(fill_joint_state(self.message, stamp, position, velocity))
        elif known.any():
            part = joint_state([n for n, k in zip(self.robot.joint_names, known, strict=True) if k])
            self.estimates.publish(fill_joint_state(part, stamp, position[known], velocity[known]))

    def spare(self, left: float) -> None:
        if self.tendons is not None:
            self.tendons.spare(left)

    def values(self) -> dict[str, Any]:
        more = self.tendons.values() if self.tendons is not None else {}
        return {"joints_known": int(np.isfinite(self.filter.position).sum()), **more}


def main() -> int:
    return main_of(StateEstimator)


if __name__ == "__main__":
    sys.exit(main())
