"""Reference joint states (stack `direct`): the node that has the targets solves for the joints itself."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from humanoid_control.nodes.base.messages import (
    STREAM_OUT,
    JointPositions,
    PeriodicStamps,
    fill_joint_state,
    joint_state,
)
from humanoid_control.nodes.base.statistics import Samples
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.retargeting import POINTS, Retargeter
from humanoid_control.robots import Robot

LOADED_WITHIN = 1.0  # [s] kernels that are on disk are loaded sooner


class ReferenceOutput:
    """Steps a `Retargeter` at a fixed rate and publishes `reference_joint_states`.

    Every message is one step of 1 / rate after the one before, by its stamp too, so that limits on speed and
    acceleration hold between the messages whatever the ticks' lengths are.

    Attributes:
        started: the first posture is known.
    """

    def __init__(self, node: TickNode, robot: Robot, rate: float, blind: bool) -> None:
        """Prepare.

        Args:
            node: whose publisher it is.
            robot: with a fixed base.
            rate: of the messages [Hz].
            blind: begin at the neutral posture; False: wait for joint states and begin there.
        """
        self.node, self.robot, self.rate, self.blind = node, robot, rate, blind
        self.retargeter = Retargeter(robot)
        self._compile()
        self._message = joint_state(robot.joint_names)
        self._estimate = JointPositions(robot)
        self._publisher = node.create_publisher(JointState, "reference_joint_states", STREAM_OUT)
        if not blind:
            node.listen(JointState, "estimated_joint_states", self._on_joint_states)
        self._took = Samples(int(rate * max(5.0, node.params.window)))
        self._stamps = PeriodicStamps(round(1e9 / rate))
        self.restart()

    def restart(self) -> None:
        """Forget the posture: the next one is where the robot is."""
        self.started = False
        self._estimate.forget()
        self._error = float("nan")
        self._stamps.restart()

    def _compile(self) -> None:
        """One step that nobody sees, so that the first real one does not wait for the compiler."""
        begin = time.monotonic()
        still = self.robot.point_positions(self.robot.q("neutral"), POINTS)
        self.retargeter.start_at(self.robot.postures["neutral"])
        self.retargeter.step(still, 1.0 / self.rate)
        self.retargeter.errors(still)
        if time.monotonic() - begin > LOADED_WITHIN:
            self.node.get_logger().info(f"solver compiled in {time.monotonic() - begin:.0f} s")

    def _on_joint_states(self, m: JointState) -> None:
        if not self.started:
            self._estimate.take(m)

    def start(self, now: float) -> np.ndarray | None:
        """Begin, once it is known where the robot is; the seven points (7, 3) there, None while it is not known."""
        if self.blind:
            self._estimate.values = self.robot.postures["neutral"].copy()
        known = self._estimate.known
        missing = not known and self.node.silent("estimated_joint_states", now, 0.0)
        self.node.health.check("start", missing, Level.WARN, "no joint states yet: nothing is commanded")
        if not known:
            return None
        joints = np.clip(self._estimate.values, self.robot.lower, self.robot.upper)
        self.retargeter.joints[:] = joints
        self.retargeter.start_at(joints)
        self.started = True
        return self.robot.point_positions(self.robot.q(self.retargeter.joints), POINTS)

    def step(self, targets: np.ndarray | None) -> None:
        """One step toward the targets (7, 3) [m], and its message; without targets the posture is held."""
        before, begin = self.retargeter.joints.copy(), time.perf_counter()
        goal = np.full((len(POINTS), 3), np.nan) if targets is None else targets
        joints = self.retargeter.step(goal, 1.0 / self.rate)
        self._took.add(time.perf_counter() - begin)
        velocity = (joints - before) * self.rate
        stamp = self._stamps.next(self.node.get_clock().now().nanoseconds)
        self._publisher.publish(fill_joint_state(self._message, stamp, joints, velocity))
        if targets is not None:
            self._error = float(self.retargeter.errors(targets).mean())

    def values(self) -> dict[str, Any]:
        """For diagnostics."""
        p50, p99 = self._took.percentiles()
        clearance = self.retargeter.clearance
        return {
            "reference_error_mm": round(1000 * self._error, 2),
            "reference_clearance_m": f"{clearance:.4f}" if np.isfinite(clearance) else "far",
            "reference_saturated_percent": round(100 * self.retargeter.saturated, 1),
            "reference_step_p50_ms": round(1000 * p50, 4),
            "reference_step_p99_ms": round(1000 * p99, 4),
        }
