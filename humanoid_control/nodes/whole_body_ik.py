"""Node `whole_body_ik`: targets in, joint commands out, every limit kept."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from humanoid_control.ik import FollowerSettings, IkSettings, TargetFilterSettings, TargetFollower
from humanoid_control.nodes.base.messages import STREAM_OUT, JointPositions, fill_joint_state, joint_state, stamp_of
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.serialized_markers import MarkerReader
from humanoid_control.nodes.base.statistics import Samples
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.ik_markers import IkMarkers
from humanoid_control.robots import load_robot

LOST_AFTER = 0.2  # [s] without an estimate after which a robot under feedback stands still
NO_POSITIONS = np.zeros(0)
DISCOVERY = 0.3  # [s] before the first command: a node that finds this one later would jump into its midst
SHORTEST_STEP = 100_000  # [ns]
MAX_TARGET_RATE = 120.0  # [Hz]


@dataclass(frozen=True)
class WholeBodyIkParameters(NodeParameters):
    """Parameters of the inverse kinematics."""

    rate: float = param(250.0, "rate of the commands", "Hz", 10.0, 1000.0)
    point_gain: float = param(40.0, "how fast the error of a target decays", "1/s", 0.1, 200.0, live=True)
    posture_weight: float = param(0.06, "pull to the neutral posture, against 1 for a target", "", 0.0, 10.0, live=True)
    hold_idle_joints: bool = param(
        True, "joints that move no target stay in the neutral posture, or return to it; false: all are free", live=True
    )
    damping: float = param(0.02, "cost of joint speed", "s/rad", 0.001, 10.0, live=True)
    smoothing: float = param(0.05, "cost of a change of joint speed", "s/rad", 0.0, 10.0, live=True)
    velocity_scale: float = param(1.0, "share of the joint speed limits that may be used", "", 0.01, 1.0, live=True)
    acceleration: float = param(200.0, "limit on the acceleration of a joint", "rad/s^2", 1.0, 1e6, live=True)
    self_collision: bool = param(True, "keep the robot's own shapes apart")
    margin: float = param(
        0.02, "distance that shapes keep; less where they are nearer at rest", "m", 0.0, 0.2, live=True
    )
    activation: float = param(0.12, "distance below which a pair of shapes is a constraint", "m", 0.0, 0.5, live=True)
    approach: float = param(
        8.0, "share of its distance above the margin that a pair may lose in a second", "1/s", 0.1, 50.0, live=True
    )
    bandwidth: float = param(10.0, "bandwidth of the target smoothing", "Hz", 0.5, 50.0, live=True)
    max_speed: float = param(
        3.0, "speed of a target above which it is not followed faster", "m/s", 0.01, 20.0, live=True
    )
    max_jump: float = param(
        0.4, "jump of a target beyond which a sample is rejected at first", "m", 0.01, 10.0, live=True
    )
    target_timeout: float = param(0.25, "silence of a target after which it is held", "s", 0.02, 10.0, live=True)
    markers_rate: float = param(20.0, "rate of ik_markers while somebody listens; 0: none", "Hz", 0.0, 100.0, live=True)
    feedback: float = param(
        0.0,
        "0: command positions; above: command velocities, corrected by so much of the error of the estimated positions",
        "1/s",
        0.0,
        50.0,
    )
    start_blind: bool = param(
        False, "start from the neutral posture when there are no joint states; false: wait for them"
    )


class WholeBodyIkNode(TickNode):
    """Follows targets; a message with targets makes an extra tick at once, so latency is not the tick's period."""

    Parameters = WholeBodyIkParameters
    params: WholeBodyIkParameters
    node_name = "whole_body_ik"
    stamp: float | None  # of the newest targets, until a command has used them
    last_command: int | None  # its time [ns]

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, "fixed")
        self.robot = robot
        self.follower = TargetFollower(robot, self.settings(), p.self_collision)
        self.message = joint_state(robot.joint_names)
        self.commands = self.create_publisher(JointState, "joint_commands", STREAM_OUT)
        self.markers = IkMarkers(self, robot)
        self.listen(MarkerArray, "targets", self.on_targets, raw=True, wakes=True)
        self.reader = MarkerReader()
        self.listen(JointState, "estimated_joint_states", self.on_joint_states)
        self.estimate = JointPositions(robot)
        self.latency = Samples(int(MAX_TARGET_RATE * max(10.0, p.window)))
        self.waiting, self.sent = False, 0
        return p.rate

    def settings(self) -> FollowerSettings:
        """The algorithm's settings as the parameters say now."""
        p = self.params
        ik = IkSettings(
            p.damping,
            p.smoothing,
            p.velocity_scale,
            p.acceleration,
            p.margin,
            max(p.activation, p.margin + 0.005),
            p.approach,
        )
        target = TargetFilterSettings(p.bandwidth, p.max_speed, p.max_jump, timeout=p.target_timeout)
        return FollowerSettings(
            point_gain=p.point_gain,
            posture_weight=p.posture_weight,
            hold_idle_joints=p.hold_idle_joints,
            ik=ik,
            filter=target,
        )

    def parameters_changed(self, changed: set[str]) -> None:
        if hasattr(self, "follower"):
            self.follower.configure(self.settings())

    def activate(self) -> None:
        """Start where the robot is: the first command waits for its joint states."""
        self.waiting, self.stamp, self.last_command = True, None, None
        self.known_since = time.monotonic()
        self.estimate.forget()
        self.follower.start(self.robot.postures["neutral"])

    def on_joint_states(self, m: JointState) -> None:
        if self.waiting or self.params.feedback > 0:
            self.estimate.take(m)

    def on_targets(self, data: bytes) -> None:
        if not self.active or self.waiting:
            return
        m = self.reader.read(data)
        at = self.now_like(m.stamp)
        self.follower.update_many(m.names, m.poses, at)
        self.stamp = at if m.names else None

    def clock(self) -> float:
        """ROS time [s]."""
        return 1e-9 * self.get_clock().now().nanoseconds

    def now_like(self, stamp: float) -> float:
        """A target's time: its stamp, or the present where it has none or comes from another clock."""
        now = self.clock()
        return stamp if abs(now - stamp) < 1.0 else now

    def tick(self, now: float) -> None:
        if self.waiting:
            known = self.estimate.known
            missing = self.silent("estimated_joint_states", now, 0.0) and not known
            self.health.check("start", missing, Level.WARN, "no joint states yet: nothing is commanded")
            if not known and not self.params.start_blind:
                self.known_since = now
                return
            if now - self.known_since < DISCOVERY:  # meanwhile the estimate goes on being read
                return
            self.health.clear("start")
            self.follower.start(self.estimate.values)
            self.waiting = False
        lost = self.params.feedback > 0 and self.age("estimated_joint_states", now) > LOST_AFTER
        if self.health.check("lost", lost, Level.WARN, "no estimates of the joints: standing still"):
            self.commands.publish(
                fill_joint_state(self.message, stamp_of(self.present()), NO_POSITIONS, np.zeros(self.robot.n))
            )
            return
        self.command()

    def command(self) -> None:
        """Solve for the time that passed since the last command, and publish with the tick's own time."""
        now, period = self.get_clock().now().nanoseconds, round(1e9 / self.rate)
        before = now - period if self.last_command is None else self.last_command
        if now - before < SHORTEST_STEP:  # a target just behind a tick, or a clock set back: the next tick takes it
            self.last_command = min(now, before)
            return
        self.last_command = now
        result = self.follower.step(1e-9 * now, 1e-9 * min(now - before, 2 * period))
        v = result.v[self.robot.iv :]
        joints, gain = self.robot.joints(result.q), self.params.feedback
        if gain > 0:
            most = self.params.velocity_scale * self.robot.velocity
            v = np.clip(v + gain * np.nan_to_num(joints - self.estimate.values), -most, most)
            joints = NO_POSITIONS
        self.commands.publish(fill_joint_state(self.message, stamp_of(self.stamps.next(now)), joints, v))
        self.sent += 1
        if self.stamp is not None:
            self.latency.add(self.clock() - self.stamp)
            self.stamp = None
        self.report(result.ok)

    def slack_time(self, left: float) -> None:
        if (result := self.follower.last) is not None:
            ik = self.follower.settings.ik
            self.markers.publish(left, self.params.markers_rate, result, ik.margin, ik.activation)

    def report(self, solved: bool) -> None:
        """Report a tick without a solution, and what is wrong with targets."""
        self.health.check("solver", not solved, Level.ERROR, "the solver found no solution: standing still")
        problems = self.follower.problems
        self.health.check("targets", bool(problems), Level.WARN, "; ".join(sorted(problems.values())[:4]))

    def values(self) -> dict[str, Any]:
        near = self.follower.last.near if self.follower.last else None
        p50, p99 = self.latency.percentiles()
        closest = f"{near.distance.min():.4f}" if near is not None and len(near) else "far"
        return {
            "commands": self.sent,
            "targets": len(self.follower.targets),
            "latency_p50_ms": round(1000 * p50, 3),
            "latency_p99_ms": round(1000 * p99, 3),
            "closest_pair_m": closest,
            "markers_p50_ms": round(1000 * self.markers.idle_publisher.took.percentiles()[0], 3),
        }


def main() -> int:
    return main_of(WholeBodyIkNode)


if __name__ == "__main__":
    sys.exit(main())
