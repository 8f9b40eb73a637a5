"""Node `state_estimator`: joint positions as measured become joint positions and velocities as believed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from humanoid_control.motion import JointFilter
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.health import Level
from humanoid_control.nodes.messages import fill_joint_state, joint_state, seconds
from humanoid_control.nodes.parameters import NodeParameters, param
from humanoid_control.nodes.qos import STREAM_OUT
from humanoid_control.nodes.run import main_of
from humanoid_control.robots import load_robot


@dataclass(frozen=True)
class StateEstimatorParameters(NodeParameters):
    """Parameters of the state estimator."""

    rate: float = param(250.0, "rate of the estimate", "Hz", 10.0, 1000.0)
    bandwidth: float = param(30.0, "bandwidth of the joint filter", "Hz", 0.5, 200.0, live=True)
    timeout: float = param(0.2, "silence of the sensors after which nothing is published", "s", 0.01, 10.0, live=True)


class StateEstimator(TickNode):
    """Filters and differentiates the joint positions."""

    Parameters = StateEstimatorParameters
    params: StateEstimatorParameters
    node_name = "state_estimator"

    def configure(self) -> float:
        robot = load_robot(self.params.robot)
        self.robot = robot
        self.filter = JointFilter(robot.n, self.params.bandwidth)
        self.message = joint_state(robot.joint_names)
        self.estimates = self.create_publisher(JointState, "estimated_joint_states", STREAM_OUT)
        self.listen(JointState, "joint_states", self.on_joint_states)
        self.create_service(Trigger, "~/reset", self.on_reset)
        self.order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self.measured = np.full(robot.n, np.nan)
        return self.params.rate

    def parameters_changed(self, changed: set[str]) -> None:
        if "bandwidth" in changed:
            self.filter.bandwidth = self.params.bandwidth

    def on_joint_states(self, m: JointState) -> None:
        if m.name != self.order[0]:
            self.order = (list(m.name), *self.robot.order_of(m.name))
            missing = [n for n in self.robot.joint_names if n not in m.name]
            self.health.check("missing", bool(missing), Level.WARN, f"joints not measured: {', '.join(missing[:3])}")
        _, theirs, ours = self.order
        bad_length = len(m.position) != len(m.name)
        if self.health.check("length", bad_length, Level.WARN, "joint states without a position for each name"):
            return
        self.measured[ours] = np.asarray(m.position)[theirs]
        bad = ours[~np.isfinite(self.measured[ours])]
        names = ", ".join(self.robot.joint_names[k] for k in bad[:3])
        self.health.check("nan", bool(len(bad)), Level.ERROR, f"measured position is not a number: {names}")
        self.filter.update(seconds(m.header.stamp), self.measured)

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.filter.reset()
        response.success, response.message = True, "estimate forgotten"
        return response

    def tick(self, now: float) -> None:
        silent = self.silent("joint_states", now, self.params.timeout)
        self.health.check("silent", silent, Level.WARN, "no joint states: nothing estimated")
        if self.age("joint_states", now) > self.params.timeout:
            return
        stamp = self.get_clock().now().to_msg()
        position, velocity = self.filter.at(seconds(stamp))
        known = np.isfinite(position)
        if known.all():
            self.estimates.publish(fill_joint_state(self.message, stamp, position, velocity))
        elif known.any():
            part = joint_state([n for n, k in zip(self.robot.joint_names, known, strict=True) if k])
            self.estimates.publish(fill_joint_state(part, stamp, position[known], velocity[known]))

    def values(self) -> dict[str, Any]:
        return {"joints_known": int(np.isfinite(self.filter.position).sum())}


def main() -> int:
    return main_of(StateEstimator)


if __name__ == "__main__":
    sys.exit(main())
