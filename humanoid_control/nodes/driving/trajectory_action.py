"""Action `follow_joint_trajectory` of a robot driver, available with control_msgs.

Goals run like trajectories on `joint_trajectory`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from humanoid_control.hardware.commands.trajectory import TrajectoryPoint
from humanoid_control.hardware.commands.trajectory_goal import (
    DefaultTolerances,
    GoalCode,
    GoalFollower,
    Outcome,
    Tolerance,
    TrajectoryGoal,
)
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.power import PowerState
from humanoid_control.nodes.base.health import Level
from humanoid_control.nodes.base.messages import age_of, floats, seconds, stamp_of

try:  # not in the ROS wheels; there, trajectories use their topic only
    from control_msgs.action import FollowJointTrajectory
except ImportError:
    FollowJointTrajectory = None

NAME = "follow_joint_trajectory"
FEEDBACK_PERIOD = 0.05  # [s]
CANCELLED = Outcome(GoalCode.SUCCESSFUL, "cancelled: the robot comes to rest")


def points_of(m: JointTrajectory) -> list[TrajectoryPoint]:
    return [TrajectoryPoint(seconds(p.time_from_start), p.positions, p.velocities, p.accelerations) for p in m.points]


class LaterServer(ActionServer):
    """Action server that sends results later, without a coroutine for the executor."""

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        """Leave the goal in the executing state."""

    def end(self, goal_handle: Any, result: Callable[[Any], Any]) -> None:
        """End a goal; `result` takes the handle and returns the message."""
        super().notify_execute(goal_handle, result)


class TrajectoryAction:
    """Goals of the action; a new goal replaces the current one.

    Rejected goals are accepted and aborted, so that clients receive the reason.
    """

    def __init__(self, node: Any, driver: Driver, follower: GoalFollower) -> None:
        """Create the action server, if control_msgs is available.

        Args:
            node: node of the driver, with tolerances as parameters.
        """
        self._node, self._driver, self._follower = node, driver, follower
        self._goal: Any = None
        self._feedback_due = 0.0
        self._server: Any = None
        if FollowJointTrajectory is not None:
            self._server = LaterServer(
                node,
                FollowJointTrajectory,
                NAME,
                execute_callback=lambda _: None,
                handle_accepted_callback=self._on_goal,
                cancel_callback=lambda _: CancelResponse.ACCEPT,
            )

    @property
    def busy(self) -> bool:
        """Whether a goal is executing."""
        return self._goal is not None

    def close(self) -> None:
        if self._server is not None:
            self._server.destroy()
            self._server = None

    def _on_goal(self, handle: Any) -> None:
        handle.execute()
        try:
            refused = self._refused(self._node.commanded_by(time.monotonic())) or self._begin(handle.request)
        except Exception as e:  # external input must not end the driver
            refused = Outcome(GoalCode.INVALID_GOAL, f"goal failed: {type(e).__name__}: {e}")
        if refused is not None:
            self._end(handle, refused)
            return
        if self._goal is not None:
            self._end(self._goal, Outcome(GoalCode.INVALID_GOAL, "replaced by another goal"))
        self._goal = handle
        self._node.health.clear("trajectory")

    def _begin(self, request: Any) -> Outcome | None:
        if request.multi_dof_trajectory.points:
            return Outcome(GoalCode.INVALID_GOAL, "joints of several degrees of freedom are not supported")
        if request.component_path_tolerance or request.component_goal_tolerance:
            return Outcome(GoalCode.INVALID_GOAL, "tolerances of components are not supported")
        t, p, ref = request.trajectory, self._node.params, self._driver.reference
        goal = TrajectoryGoal(
            list(t.joint_names),
            points_of(t),
            tolerances_of(request.path_tolerance),
            tolerances_of(request.goal_tolerance),
            seconds(request.goal_time_tolerance),
            age_of(t.header.stamp, self._node.get_clock()),
        )
        defaults = DefaultTolerances(p.path_tolerance, p.goal_tolerance, p.goal_time)
        return self._follower.begin(goal, ref.q, ref.v, defaults, time.monotonic())

    def _refused(self, other: str = "") -> Outcome | None:
        """Return why trajectories are not followed; `other`: a competing commander."""
        reason = self._driver.passes_over() if self._node.active else f"state is {self._driver.machine}"
        reason = reason or other
        return Outcome(GoalCode.INVALID_GOAL, reason) if reason else None

    def update(self, now: float) -> None:
        """Check the goal after a driver cycle."""
        if (handle := self._goal) is None:
            return
        d, measured = self._driver, (self._driver.joints.q, self._driver.joints.v)
        outcome = CANCELLED if handle.is_cancel_requested else self._refused()
        outcome = outcome or self._follower.update(now, *measured)
        if outcome is None:
            if now >= self._feedback_due:
                self._feedback_due = now + FEEDBACK_PERIOD
                handle.publish_feedback(self._feedback(now))
            return
        self._goal = None
        if outcome.code is not GoalCode.SUCCESSFUL or outcome is CANCELLED:
            if d.machine.state is PowerState.RUN:
                self._follower.halt(d.reference.q, d.reference.v)
            else:
                self._follower.give_up()
        self._end(handle, outcome)

    def interrupt(self) -> None:
        """Abort the goal; no tick follows."""
        if self._goal is not None:
            self._end(self._goal, Outcome(GoalCode.INVALID_GOAL, f"the driver stops: {self._driver.machine}"))
            self._goal = None
            self._follower.give_up()

    def _feedback(self, now: float) -> Any:
        f = self._follower.feedback(now, self._driver.joints.q, self._driver.joints.v)
        m = FollowJointTrajectory.Feedback(joint_names=list(f.names))
        m.header.stamp = stamp_of(self._node.get_clock().now().nanoseconds)
        m.desired, m.actual, m.error = (_point(f.time, *x) for x in (f.desired, f.actual, f.desired - f.actual))
        return m

    def _end(self, handle: Any, outcome: Outcome) -> None:
        failed = outcome.code is not GoalCode.SUCCESSFUL
        if failed:
            self._node.health.report("trajectory", Level.WARN, f"trajectory: {outcome.text}")

        def result(handle: Any) -> Any:
            (handle.abort if failed else handle.canceled if outcome is CANCELLED else handle.succeed)()
            return FollowJointTrajectory.Result(error_code=int(outcome.code), error_string=outcome.text)

        self._server.end(handle, result)


def tolerances_of(given: Sequence[Any]) -> list[Tolerance]:
    """Return position and velocity tolerances of a message."""
    return [Tolerance(t.name, t.position, t.velocity) for t in given]


def _point(at: float, q: Any, v: Any) -> JointTrajectoryPoint:
    p = JointTrajectoryPoint(positions=floats(q), velocities=floats(v))
    p.time_from_start.sec, p.time_from_start.nanosec = int(at), int(1e9 * (at % 1.0))
    return p
