"""Node `trajectory_streamer`: robot targets from a motion clip or live markers.

In the stack `direct` it also solves for joint positions and publishes reference joint states.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from humanoid_control.estimation import Verdict
from humanoid_control.ik.follower import OUTSIDE
from humanoid_control.mocap import BodyPoints
from humanoid_control.nodes.base.command_owner import CommandOwner
from humanoid_control.nodes.base.messages import (
    STREAM_OUT,
    PeriodicStamps,
    RisingStamps,
    fill_joint_state,
    joint_state,
    points_of,
    segments_marker,
    stamp_of,
    target_markers,
)
from humanoid_control.nodes.base.parameters import param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.serialized_markers import SerializedMarkers
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.supervised_robot import SupervisedRobot
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.nodes.streaming.clip_source import ClipParameters, ClipSource, clip_points, serve_playback
from humanoid_control.nodes.streaming.live_source import LiveParameters, LiveSource
from humanoid_control.retargeting import POINTS, Retargeter
from humanoid_control.robots import Robot, load_robot
from humanoid_control.simulation.drives.command_blend import CommandBlend

RETURN_SPEED = 1.0  # [rad/s] speed of joints that return into their range
STATES = "estimated_joint_states"
LOADED_WITHIN = 1.0  # [s] longer loading times mean compilation


class ReferenceOutput:
    """Publisher of `reference_joint_states` from a `Retargeter` stepped at a fixed rate.

    Each message advances state and stamp by 1 / rate, so limits hold between messages. Joints outside their range first
    return into it.

    Attributes:
        started: the first posture is known.
        supervised: monitor of the following robot.
    """

    def __init__(self, node: TickNode, robot: Robot, rate: float, blind: bool, restart: Callable[[], None]) -> None:
        """Load the solver and create the topics.

        Args:
            robot: fixed base.
            rate: rate of the messages [Hz].
            blind: start at the neutral posture; False: at the joint states.
            restart: called to restart from the current posture.
        """
        self.node, self.robot, self.rate, self.blind = node, robot, rate, blind
        self.retargeter = Retargeter(robot)
        self._compile()
        self._message = joint_state(robot.joint_names)
        self._publisher = CommandOwner(node, "reference_joint_states")
        self.supervised = SupervisedRobot(node, robot, STATES, restart)
        if not blind:
            node.listen(JointState, STATES, self.supervised.hear)
        self._return = CommandBlend(np.minimum(robot.velocity, RETURN_SPEED))
        self._took = SampleWindow(int(rate * max(5.0, node.params.window)))
        self._stamps = PeriodicStamps(round(1e9 / rate))
        self.restart()

    def restart(self) -> None:
        """Discard the posture."""
        self.started = False
        self.supervised.reset()
        self._publisher.pause()
        self._error = float("nan")
        self._stamps.restart()

    def _compile(self) -> None:
        begin = time.monotonic()
        still = self.robot.point_positions(self.robot.q("neutral"), POINTS)
        self.retargeter.start_at(self.robot.postures["neutral"])
        self.retargeter.step(still, 1.0 / self.rate)
        self.retargeter.errors(still)
        if time.monotonic() - begin > LOADED_WITHIN:
            self.node.get_logger().info(f"solver compiled in {time.monotonic() - begin:.0f} s")

    def start(self, now: float) -> np.ndarray | None:
        """Start once the posture is known; return its seven points (7, 3), or None."""
        estimate = self.supervised.estimate
        if self.blind:
            estimate.values = self.robot.postures["neutral"].copy()
        self.supervised.is_awaited(now)
        if not self._publisher.may_command(now, estimate.known):
            return None
        joints = estimate.values
        inside = np.clip(joints, self.robot.lower, self.robot.upper)
        # a larger deviation is a measurement error
        joints = np.where(np.abs(joints - inside) > OUTSIDE, inside, joints)
        self._return.begin(joints, inside)
        self.retargeter.joints[:] = inside
        self.retargeter.start_at(inside)
        self._last = joints
        self.supervised.begin(not self.blind)
        self.started = True
        return self.robot.point_positions(self.robot.q(inside), POINTS)

    def yield_commands(self) -> None:
        self._publisher.restart()
        self.restart()

    def verdict(self, now: float) -> Verdict:
        """Return the action of a tick; BEGIN also for a competing node."""
        if not self._publisher.may_command(now):
            return Verdict.BEGIN
        verdict = self.supervised.verdict(now)
        return Verdict.HOLD if verdict is Verdict.MOVE and self._return.active else verdict

    def hold(self) -> None:
        """Publish without motion, except of joints outside their range."""
        held = self.supervised.away or self.supervised.stopped or not self._return.active
        self._send(self._last if held else self._return.step(self.retargeter.joints, 1.0 / self.rate).copy())

    def step(self, targets: np.ndarray | None) -> None:
        """Publish one step towards the targets (7, 3) [m]; None holds the posture."""
        begin = time.perf_counter()
        goal = np.full((len(POINTS), 3), np.nan) if targets is None else targets
        joints = self.retargeter.step(goal, 1.0 / self.rate)
        self._took.add(time.perf_counter() - begin)
        self._send(joints)
        if targets is not None:
            self._error = float(self.retargeter.errors(targets).mean())

    def _send(self, joints: np.ndarray) -> None:
        velocity = (joints - self._last) * self.rate
        self._last = joints
        stamp = self._stamps.next(self.node.get_clock().now().nanoseconds)
        self.supervised.command(time.monotonic(), joints)
        self._publisher.publish(fill_joint_state(self._message, stamp, joints, velocity))

    def values(self) -> dict[str, Any]:
        p50, p99 = self._took.percentiles()
        clearance, worst = self.retargeter.clearance, self.supervised.take_worst()
        return {
            "following_error_rad": round(worst[1], 4),
            "following_error_joint": worst[0],
            "reference_error_mm": round(1000 * self._error, 2),
            "reference_clearance_m": f"{clearance:.4f}" if np.isfinite(clearance) else "far",
            "reference_saturated_percent": round(100 * self.retargeter.saturated, 1),
            "reference_step_p50_ms": round(1000 * p50, 4),
            "reference_step_p99_ms": round(1000 * p99, 4),
        }


# -------- The node


@dataclass(frozen=True)
class TrajectoryStreamerParameters(LiveParameters, ClipParameters):
    """Parameters of the trajectory streamer."""

    source: str = param("clip", "clip: plays a file; live: follows the topic `markers`", choices=("clip", "live"))
    lead_in: float = param(1.5, "time to move from the present posture to the first frame", "s", 0.0, 10.0)
    dancer_every: int = param(2, "number of target messages per message of the dancer figure", "", 1, 100)
    dancer_offset: float = param(
        1.1, "lateral offset of the displayed dancer, to the left of the robot", "m", -10.0, 10.0
    )
    solve: bool = param(False, "also solve for joint positions and publish them as reference_joint_states")
    start_blind: bool = param(
        False, "start solving at the neutral posture; false: wait for joint states and start there"
    )
    following_error: float = param(
        0.15,
        "maximum tracking error per joint; exceeding it for 50 ms stops the reference of the joint, as do "
        "jumping, frozen or non-finite states; 0: disabled. Needs `solve` and joint states",
        "rad",
        0.0,
        10.0,
        live=True,
    )
    robot_timeout: float = param(
        0.5,
        "joint state silence after which the robot is stopped until they return; with `solve`",
        "s",
        0.05,
        60.0,
        live=True,
    )


class TrajectoryStreamer(TickNode):
    """Node that streams targets from a clip or live markers."""

    Parameters = TrajectoryStreamerParameters
    params: TrajectoryStreamerParameters
    node_name = "trajectory_streamer"
    source: ClipSource | LiveSource
    scheduled = True  # this tick belongs to the fixed rate
    held = False  # the robot must not be moved further

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, "fixed")
        robot.require_imitation_points()
        if p.source == "live":
            self.source = LiveSource(self, robot, p, p.marker_set, p.lead_in, p.dancer_offset)
        else:
            self.source = ClipSource(self, robot, self.read_clip(), p.lead_in, p.dancer_offset)
            self.source.change(p)
        if p.paused:
            self.source.serve("pause")
        self.reference: ReferenceOutput | None = None
        if p.solve:
            self.reference = ReferenceOutput(self, robot, self.source.rate, p.start_blind, self.restart)
            self.reference.supervised.configure(p.following_error, p.robot_timeout)
        self.markers = SerializedMarkers(target_markers(POINTS, p.world))
        self.dancer_message = MarkerArray(markers=[segments_marker("dancer", (0.2, 0.5, 0.9), 0.03, p.world)])
        self.targets = self.create_publisher(MarkerArray, "targets", STREAM_OUT)
        self.dancer = self.create_publisher(MarkerArray, "dancer", STREAM_OUT)
        serve_playback(self, self.source.serve)
        self.count, self.frame_stamps = 0, RisingStamps()
        return self.source.rate

    def read_clip(self) -> BodyPoints:
        """Return the body points of the clip; log its assumptions."""
        body = clip_points(self.params)
        for text in body.warnings:
            self.get_logger().warning(text)
        return body

    def parameters_changed(self, changed: set[str]) -> None:
        if (source := getattr(self, "source", None)) is not None:
            source.change(self.params)
        if (reference := getattr(self, "reference", None)) is not None:
            reference.supervised.configure(self.params.following_error, self.params.robot_timeout)

    def activate(self) -> None:
        self.restart()
        if self.reference is not None:
            self.reference.yield_commands()

    def restart(self) -> None:
        """Restart from the current posture."""
        self.held = False
        if isinstance(self.source, ClipSource):
            self.source.stop()
        if self.reference is not None:
            self.reference.restart()

    def run_extra_tick(self) -> None:
        self.scheduled = False
        super().run_extra_tick()
        self.scheduled = True

    def tick(self, now: float) -> None:
        if self.reference is not None and not self.reference.started:
            start = self.reference.start(now)
            if start is None:
                return
            self.source.begin_at(start)
        if self.reference is not None and self.scheduled:
            verdict = self.reference.verdict(now)
            if verdict is Verdict.BEGIN:
                self.restart()
                return
            self.held = verdict is Verdict.HOLD
            if self.held:
                self.reference.hold()
        if self.held and isinstance(self.source, ClipSource):
            self.source.stop()  # the clip waits as well
            return
        points, stamp = self.source.advance(now)
        if points is not None:
            self.publish(points, stamp)
        if self.reference is not None and self.scheduled and not self.held:
            self.reference.step(self.source.current)

    def publish(self, points: np.ndarray, stamp: float | None) -> None:
        """Publish targets (7, 3), and periodically the figure."""
        ns = self.get_clock().now().nanoseconds if stamp is None else round(1e9 * stamp)
        time = stamp_of(self.frame_stamps.next(ns))
        self.markers.set_stamp(time)
        self.markers.set_positions(points)
        self.targets.publish(self.markers.bytes())
        self.count += 1
        if self.count % self.params.dancer_every == 0 and (segments := self.source.segments()) is not None:
            marker = self.dancer_message.markers[0]
            marker.header.stamp = time
            marker.points = points_of(segments)
            self.dancer.publish(self.dancer_message)

    def values(self) -> dict[str, Any]:
        return {**self.source.values(), **(self.reference.values() if self.reference is not None else {})}


def main() -> int:
    return main_of(TrajectoryStreamer)


if __name__ == "__main__":
    sys.exit(main())
