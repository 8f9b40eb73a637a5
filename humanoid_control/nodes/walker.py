"""Node `walker`: biped walking from velocities or footsteps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import KeyValue
from geometry_msgs.msg import PoseArray, PoseStamped, Twist, TwistStamped
from nav_msgs.msg import Path
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Joy
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.kinematics.joint_state import Measurement
from humanoid_control.nodes.base.command_owner import TARGETS_IN, TARGETS_TIMEOUT, RequestOwner, listen_to_one
from humanoid_control.nodes.base.messages import (
    EVENTS,
    LATCHED,
    STREAM_OUT,
    stamp_of,
)
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.serialized_markers import IdlePublisher, MarkerReader
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.tick_node import Level
from humanoid_control.nodes.targets.target_frames import TargetFrames
from humanoid_control.nodes.walking.balancing_node import PATIENCE, WAITING, BalancingNode
from humanoid_control.nodes.walking.gamepad import Gamepad
from humanoid_control.nodes.walking.joint_commands import JointCommands
from humanoid_control.nodes.walking.outputs import WalkOutputs, figures_of, plan_markers
from humanoid_control.nodes.walking.parameters import WalkerParameters, step_limits, walk_settings
from humanoid_control.nodes.walking.requests import (
    AXES,
    FOOTPRINT,
    UpperRequest,
    VelocityRequest,
    read_footsteps,
    read_goal,
)
from humanoid_control.nodes.walking.sensors import (
    IMU,
    JOINTS,
    WRENCHES,
    Sensors,
    TickClock,
    rehearse,
    soles_without_force,
    with_forces_of_motion,
)
from humanoid_control.robots import load_robot
from humanoid_control.walking import Walker, WalkReport, WalkState
from humanoid_control.walking.start_check import ShiftCheck, StartCheck

__all__ = ["WalkerNode", "WalkerParameters", "main"]

FOOTSTEP_MESSAGES = {"markers": MarkerArray, "poses": PoseArray, "path": Path}
RECOVERED = 1.0  # [s] of complete sensor data before the robot walks again after an emergency stop


class WalkerNode(BalancingNode):
    """Node of the walker: velocity or footsteps to joint commands."""

    Parameters = WalkerParameters
    params: WalkerParameters
    commands: JointCommands
    node_name = "walker"

    def configure(self) -> float:
        p = self.params
        self.robot = robot = load_robot(p.robot, "floating")
        self.walker = Walker(robot, walk_settings(p))
        self.walker.planner.limits = step_limits(p, self.walker.planner.limits)
        rehearse(self.walker)
        self.soles = tuple(s.name for side in self.walker.feet.soles for s in side)
        self.sensors, self.clock = Sensors(robot, self.soles, self.health, p.local_frame), TickClock(1.0 / p.rate)
        self.check = StartCheck(robot, self.walker.feet, terrain=self.walker.replanner.terrain)
        self.shift = ShiftCheck(robot.mass * 9.81)
        self.commands = JointCommands(self, robot)
        self.commands.configure(p.following_error)
        self.outputs = WalkOutputs(self, robot, p.odom_frame, p.odom_drift)
        self.plan = IdlePublisher(self.create_publisher(MarkerArray, "footsteps/planned", STREAM_OUT))
        self.answers = self.create_publisher(KeyValue, "footsteps/status", LATCHED)
        self.velocity = VelocityRequest(self.health, p.frame(robot.root_link), p.cmd_vel_timeout, p.frame(FOOTPRINT))
        self.upper = UpperRequest(robot, self.health) if p.upper == "imitate" else None
        self.gamepad = Gamepad(p.joy_axes, p.joy_speeds, p.joy_held, p.joy_stop)
        self.every = max(1, round(p.rate / p.odom_rate))
        n = int(p.rate * max(1.0, p.window))
        self.took, self.errors, self.margins = SampleWindow(n), SampleWindow(n), SampleWindow(n)
        self._listen()
        for name in ("stop", "emergency_stop", "stand", "reset"):
            self.create_service(Trigger, f"~/{name}", getattr(self, f"on_{name}"))
        self.create_service(Trigger, "~/resync", self.on_reset)
        return p.rate

    def parameters_changed(self, changed: set[str]) -> None:
        if hasattr(self, "commands"):
            self.commands.configure(self.params.following_error)

    def _listen(self) -> None:
        p = self.params
        self.listen_to_sensors(self.soles)
        twist = Twist if p.cmd_vel_type == "Twist" else TwistStamped
        listen_to_one(self, twist, "cmd_vel", self.on_velocity, p.cmd_vel_timeout)
        if self.upper is not None:
            self.reader, self.frames = (
                MarkerReader(),
                TargetFrames(self, self.robot, p.world, prefix=p.frame_prefix),
            )
            listen_to_one(self, MarkerArray, "targets", self.on_targets, TARGETS_TIMEOUT, TARGETS_IN, raw=True)
        steps = FOOTSTEP_MESSAGES[p.footsteps_type]
        self.asking = RequestOwner(self)  # of footsteps and goals, which share one queue
        self.create_subscription(steps, "footsteps", self.on_footsteps, EVENTS, takes_info=True)
        self.create_subscription(PoseStamped, "goal_pose", self.on_goal, EVENTS, takes_info=True)
        listen_to_one(self, Joy, "joy", self.on_joy, p.cmd_vel_timeout)

    def activate(self) -> None:
        """Wait for the sensors; the robot continues meanwhile."""
        self.sensors.reset()
        self.velocity.reset()
        self.stopped = ""  # reason why the robot does not walk
        self.restart()

    def restart(self) -> None:
        """Restart, and stand once the robot rests on its feet."""
        self.clock.restart()
        self.check.restart()
        self.shift.restart()
        self.commands.restart()
        self.walker.reset()
        if self.upper is not None:
            self.upper.reset()
            self.walker.imitate(self.upper.motion)
        self.outputs.restart()
        self.sensors.elsewhere = ""
        self.running = self.emergency = self.resting = False
        self.report: WalkReport | None = None
        self.asked, self.checked, self.stamped = np.zeros(3), -np.inf, -1
        self.waiting_since, self.good_since = time.monotonic(), time.monotonic()
        self.outputs.publish_state(WAITING)

    # -- callbacks --------------------------------------------------------------------------------------------------

    def on_velocity(self, m: Twist | TwistStamped) -> None:
        self.velocity.take(m, 1e-9 * self.get_clock().now().nanoseconds)

    def on_targets(self, data: bytes) -> None:
        """Let chest and arms track targets while the robot is controlled."""
        if self.upper is not None and self.running:
            names, poses = self.frames.in_world(self.reader.read(data))
            self.health.check("frame", bool(self.frames.problem), Level.WARN, self.frames.problem)
            self.upper.take(names, poses[:, :3], self.walker.t)

    def on_footsteps(self, message: Any, info: Mapping[str, Any]) -> None:
        """Accept a list of footsteps, completely or not at all."""

        def follow() -> str:
            X, frame, feet = self.outputs.X_odom_footprint, self.outputs.frame, self.params.frame(FOOTPRINT)
            steps, append = read_footsteps(message, self.walker.planner.times, X, frame, feet)
            self.walker.follow(steps, append=append)
            return f"{len(steps)} footsteps"

        self._answered(follow, "footsteps", info)

    def on_goal(self, message: PoseStamped, info: Mapping[str, Any]) -> None:
        """Walk until the centre of the feet reaches a pose."""

        def walk_to() -> str:
            X = self.outputs.X_odom_footprint
            X = read_goal(message, X, self.outputs.frame, self.params.frame(FOOTPRINT))
            self.walker.walk_to(X)
            return f"a goal {len(self.walker.planner.queue)} footsteps away"

        self._answered(walk_to, "goal_pose", info)

    def _answered(self, take: Callable[[], str], topic: str, info: Mapping[str, Any]) -> None:
        """Accept footsteps and publish the outcome on footsteps/status."""
        try:
            if not self.running or self.stopped or self.emergency:
                why = self.stopped or ("a sensor was lost" if self.emergency else "it does not stand yet")
                raise ConfigError(f"footsteps are rejected now: {why}")
            self.asking.check(topic, info, bool(self.walker.planner.queue))
            text = take()
            self.asking.take(topic, info)
        except HumanoidError as e:
            self.answers.publish(KeyValue(key="refused", value=str(e)))
            self.health.report("footsteps", Level.WARN, str(e))
            return
        self.answers.publish(KeyValue(key="accepted", value=text))
        self.health.clear("footsteps")

    def on_joy(self, message: Joy) -> None:
        try:
            twist, stops = self.gamepad.take(message)
        except HumanoidError as e:
            self.health.report("joy", Level.WARN, str(e))
            return
        self.health.clear("joy")
        if stops:
            self.on_emergency_stop(Trigger.Request(), Trigger.Response())
        if twist is not None:
            self.velocity.take(twist)

    def on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Come to rest with the next step, and stay at rest until `~/stand`."""
        self.stopped = "stop was called"
        if self.running:
            self.walker.stop()
        response.success, response.message = True, "coming to rest; ~/stand enables walking again"
        return response

    def on_emergency_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Come to rest as fast as possible, and stay at rest until `~/stand`."""
        self.stopped = "emergency stop was called"
        if self.running:
            self.walker.emergency_stop()
        response.success, response.message = True, "stopping; ~/stand enables walking again"
        return response

    def on_stand(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Clear a stop: stand, ready to walk."""
        problem = (
            "the robot has fallen: put it on its feet" if self.fallen else self.shift.problem or self.commands.fault
        )
        response.success = not problem
        response.message = f"{problem}; then call ~/reset" if problem else "ready to walk"
        if not problem:
            self.stopped = ""
        return response

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Restart as after activation, with odometry at zero."""
        self.stopped = ""
        self.velocity.reset()
        self.restart()
        response.success, response.message = True, "waiting until the robot stands at rest on its feet"
        return response

    @property
    def ticks(self) -> int:
        return self.commands.ticks

    # -- the tick ---------------------------------------------------------------------------------------------------

    def show_state(self, state: str) -> None:
        self.outputs.publish_state(state)

    @property
    def fallen(self) -> bool:
        """Whether the robot fell since the last `restart`."""
        return self.report is not None and self.report.state == WalkState.FALLEN

    def check_sources(self, now: float) -> None:
        """Report missing sensors and competing publishers."""
        if self.sensors.missing and not self.running:
            self.commands.owner.may_command(time.monotonic(), ready=False)
        self.report_waiting(not self.running and time.monotonic() - self.waiting_since > PATIENCE)

    def control(self, ticks: int, now: float) -> int:
        for _ in range(ticks):
            if self.running:
                self._control(now)
        return ticks

    def stand_up(self, now: float) -> None:
        """Start if the robot rests and no other node commands it."""
        ready = not self.params.start_check or self.check.ready(self.sensors.measurement(), 1.0 / self.rate)
        if not self.commands.owner.may_command(now, ready):
            return
        self.begin_running()
        self.commands.begin(self.sensors.measurement().joints.q)

    def _control(self, now: float) -> None:
        p, w, s = self.params, self.walker, self.sensors
        if self.fallen:
            self.commands.damp()
            return
        measured = s.measurement()
        if self.commands.supervise(s.joint_instant or 0, measured.joints.q):
            self.stopped = self.commands.fault
            w.emergency_stop()
        late = self._react(now)
        if bool(late) != self.resting:
            self.resting = bool(late)
            if late:  # so that footstep lists end, too
                w.stop()
        velocity = np.zeros(3) if late or self.stopped else self.velocity.now(now, p.cmd_vel_timeout)
        if not np.array_equal(velocity, self.asked):
            w.command(velocity)
            self.asked = velocity.copy()
        if w.raised != p.height and self.report is not None:
            w.raise_center(p.height)
        # Without readings, assume that the root link keeps its orientation.
        if IMU in late:
            still = {"angular_velocity": np.zeros(3), "linear_acceleration": np.zeros(3)}
            measured = measured._replace(imu=measured.imu._replace(**still))
        if self.report is not None and any(key.startswith(WRENCHES) for key in late):
            measured = with_forces_of_motion(w, self.report, measured, late)
        report = w.step(measured)
        if not self.commands.send(w.joints, w.joint_velocity):
            self.health.report(
                "number", Level.ERROR, "a command is not a number: nothing is commanded, restarting from standing"
            )
            self.restart()
        self.report = report
        s.carrying = soles_without_force(w, report, measured)
        if p.start_check and report.state == WalkState.WALK and report.steps == 0:
            self._check_shift(report, measured)
        self._publish_report(report)

    def _check_shift(self, report: WalkReport, measured: Measurement) -> None:
        """Stop before the first step if the weight does not shift."""
        w, ref = self.walker, report.references
        if ref.swinging is not None or self.shift.problem:
            return
        forces = w.feet.wrenches(w.estimator.data, measured.foot_wrenches)[:, 2]
        asked = w.plan.path.omega**2 * (w.center[:2] - ref.zmp)
        self.shift.update(measured, asked, forces, report.balance.wrenches[:, 0], 1.0 / self.rate)
        if self.shift.problem:
            self.stopped = self.shift.problem
            w.emergency_stop()

    def _react(self, now: float) -> list[str]:
        """React to silent sensors with rest or an emergency stop; return the late ones."""
        p, s = self.params, self.sensors
        late = s.quiet(p.sensor_late)
        lost = s.quiet(p.sensor_lost)
        text = f"{', '.join(late)} silent: the robot comes to rest"
        self.health.check("late", bool(late), Level.ERROR, text)
        if late:
            self.good_since = now
        if lost and not self.emergency:
            self.emergency = True
            self.walker.emergency_stop()
        if self.emergency and now - self.good_since > RECOVERED and self.walker.state == WalkState.STAND:
            self.emergency = False
        text = f"{', '.join(lost) or 'a sensor'} was lost: emergency stop"
        self.health.check("lost", self.emergency, Level.ERROR, text)
        return late or ([JOINTS] if self.emergency else [])

    def _publish_report(self, report: WalkReport) -> None:
        self.errors.add(float(np.linalg.norm(report.balance.error)))
        self.margins.add(report.balance.margin)
        fallen = report.state == WalkState.FALLEN
        self.outputs.publish_state(report.state.name)
        self.health.check(
            "fallen", fallen, Level.ERROR, f"fallen: {report.why}; set the robot upright and call ~/reset"
        )
        problem = self.shift.problem
        self.health.check("shift", bool(problem), Level.ERROR, f"{problem}; correct it and call ~/reset")
        refused = report.why if not fallen else ""
        self.health.check("why", bool(refused), Level.WARN, refused)
        limited = any(p.step.limited for p in self.walker.plan.phases)
        self.health.check("limited", limited, Level.WARN, "steps are shorter than commanded: out of reach of the legs")
        unmade = (np.abs(self.walker.planner.command) > 0.0) & ~self.walker.planner.limits.possible
        text = f"cmd_vel {', '.join(np.array(AXES)[unmade])} is not followed: outside the step limits"
        self.health.check("unmade", bool(unmade.any()), Level.WARN, text)
        text = f"the inverse kinematics misses a sole by {1e3 * report.foot_error.max():.0f} mm"
        self.health.check("foot_error", bool(report.foot_error.max() > 0.01), Level.WARN, text)
        instant = self.sensors.joint_instant
        if self.ticks % self.every == 0 and instant is not None and instant != self.stamped:
            self.stamped = instant
            self.outputs.publish(report.estimate, stamp_of(instant), self.walker.estimator.contacts.touching)

    def slack_time(self, left: float) -> None:
        if (r := self.report) is not None:
            frame, stamp = self.outputs.frame, self.sensors.joint_instant or self.present()
            markers = self.params.markers_rate
            self.plan.publish(left, markers, lambda: serialize_message(plan_markers(self.walker, r, stamp, frame)))

    def values(self) -> dict[str, Any]:
        r = self.report
        errors, margins = self.errors.values(), self.margins.values()
        p50, p99 = self.took.percentiles()
        return {
            "walking": self.outputs.state,
            "steps": r.steps if r is not None else 0,
            "way_m": round(self.outputs.way, 3),
            "dcm_error_rms_mm": round(1e3 * float(np.sqrt(np.mean(errors**2))), 2) if len(errors) else float("nan"),
            "zmp_margin_min_mm": round(1e3 * float(margins.min()), 2) if len(margins) else float("nan"),
            **figures_of(r),
            **self.commands.values(),
            "ticks_without_instant": self.clock.held,
            "control_p50_ms": round(1e3 * p50, 3),
            "control_p99_ms": round(1e3 * p99, 3),
            "stopped": self.stopped,
            "targets": self.upper.count if self.upper is not None else 0,
        }


def main() -> int:
    return main_of(WalkerNode)


if __name__ == "__main__":
    sys.exit(main())
