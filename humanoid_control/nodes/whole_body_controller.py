"""Node `whole_body_controller`: tracks a feasible motion on two feet with joint torques.

Another process makes a clip feasible and plans the transition from standing.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.errors import ClipError
from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.nodes.base.messages import STREAM_OUT, stamp_of
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.serialized_markers import IdlePublisher
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.tick_node import Level
from humanoid_control.nodes.performing.outputs import PerformingOutputs, plan_markers
from humanoid_control.nodes.performing.parameters import WholeBodyControllerParameters
from humanoid_control.nodes.performing.preparation import Preparation
from humanoid_control.nodes.performing.torque_commands import TorqueCommands
from humanoid_control.nodes.streaming.clip_source import clip_points
from humanoid_control.nodes.walking.balancing_node import PATIENCE, WAITING, BalancingNode
from humanoid_control.nodes.walking.sensors import IMU, Sensors, TickClock
from humanoid_control.performing import (
    ControllerSettings,
    DynamicMotion,
    Stage,
    StageState,
    check_performer,
    joined,
    placed_on,
    read_motion,
    standing_configuration,
    standing_motion,
)
from humanoid_control.performing.preparation import MOTION
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.retargeting.whole_body.scaling import shows_legs
from humanoid_control.robots import load_robot
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.start_check import StartCheck

__all__ = ["WholeBodyControllerNode", "WholeBodyControllerParameters", "main"]


class WholeBodyControllerNode(BalancingNode):
    """Node of the whole-body controller: a feasible motion to joint torques."""

    Parameters = WholeBodyControllerParameters
    params: WholeBodyControllerParameters
    commands: TorqueCommands
    node_name = "whole_body_controller"

    def configure(self) -> float:
        p = self.params
        self.robot = robot = load_robot(p.robot, "floating")
        check_performer(robot)
        self.motion: DynamicMotion | None = self._checked_motion()
        self.feet, self.soles = Feet(robot), RigidSoles.of(robot)
        self.names = tuple(s.name for side in self.feet.soles for s in side)
        self.sensors, self.clock = Sensors(robot, self.names, self.health, p.local_frame), TickClock(1.0 / p.rate)
        self.check, self.estimator = StartCheck(robot, self.feet), FloatingBaseEstimator(robot, self.feet.frames)
        Stage(robot, standing_motion(robot, robot.q("neutral")))  # loads compiled code
        self.commands, self.outputs = TorqueCommands(self, robot), PerformingOutputs(self, robot, p.odom_frame)
        self.plan = IdlePublisher(self.create_publisher(MarkerArray, "footsteps/planned", STREAM_OUT))
        self.preparation = Preparation(p)
        self.stage: Stage | None = None
        self.every = max(1, round(p.rate / p.odom_rate))
        n = int(p.rate * max(1.0, p.window))
        self.took, self.errors = SampleWindow(n), SampleWindow(n)
        self.listen_to_sensors(self.names)
        for name in ("start", "stop", "emergency_stop", "reset", "play", "pause", "restart"):
            self.create_service(Trigger, f"~/{name}", getattr(self, f"on_{name}"))
        return p.rate

    def _checked_motion(self) -> DynamicMotion | None:
        """Return the motion of a file; None for a clip."""
        p = self.params
        if p.motion:
            return read_motion(p.motion, self.robot)
        body = clip_points(p)
        for text in body.warnings:
            self.get_logger().warning(text)
        if not shows_legs(body):
            raise ClipError(f"{body.name} has no knees, ankles and toes: it cannot be performed on two feet")
        return None

    def activate(self) -> None:
        """Wait for sensors and motion; the robot continues meanwhile."""
        self.sensors.reset()
        self.stopped, self.wanted = "", False  # reason why it does not perform; whether it should
        self.restart()

    def restart(self) -> None:
        """Restart, and stand once the robot rests on its feet."""
        self.clock.restart()
        self.check.restart()
        self.commands.restart()
        self.outputs.base.restart()
        self.sensors.elsewhere = ""
        self.stage, self.running, self.lost = None, False, False
        self.wanted = (self.wanted or self.params.begin) and not self.stopped
        self.stamped, self.checked, self.waiting_since = -1, -np.inf, time.monotonic()
        self.health.clear("fallen")
        self.preparation.discard_transition()
        if not (self.preparation.has_motion or self.preparation.pending):
            self.preparation.make()
        self.outputs.base.publish_state(WAITING)

    # -- services ---------------------------------------------------------------------------------------------------

    def on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Clear a stop, and perform as soon as the robot stands."""
        response.success = not self.fallen
        response.message = "performing"
        if self.fallen:
            response.message = "the robot has fallen: put it on its feet; then call ~/reset"
        elif self.stage is None or self.stage.state != StageState.PERFORM:
            self.stopped, self.wanted = "", True
        return response

    def on_restart(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Come to rest on both feet, and perform from the beginning."""
        if self.stage is not None:
            self.stage.stop()
        return self.on_start(request, response)

    def on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Come to rest on both feet until `~/start`."""
        return self._come_to_rest("stop was called", response)

    def on_emergency_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Come to rest with the next posture on both feet, until `~/start`."""
        return self._come_to_rest("emergency stop was called", response)

    def _come_to_rest(self, why: str, response: Trigger.Response) -> Trigger.Response:
        self.stopped, self.wanted = why, False
        if self.stage is not None:
            self.stage.stop()
        response.success, response.message = True, "coming to rest on both feet; ~/start performs again"
        return response

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Restart as after activation."""
        self.stopped = ""
        self.restart()
        response.success, response.message = True, "waiting until the robot stands at rest on its feet"
        return response

    on_play, on_pause = on_start, on_stop

    # -- the tick ---------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        self._prepared()
        super().tick(now)

    def show_state(self, state: str) -> None:
        self.outputs.base.publish_state(state)

    @property
    def fallen(self) -> bool:
        """Whether the robot fell since the last `restart`."""
        return self.stage is not None and self.stage.state == StageState.FALLEN

    def check_sources(self, now: float) -> None:
        """Report preparation, missing sensors and competing command publishers."""
        busy = self.preparation.progress
        self.health.check("preparing", bool(busy), Level.OK, f"preparing: {busy}")
        if self.running:
            return
        if self.sensors.missing:
            self.commands.owner.may_command(now, ready=False)
        self.report_waiting(now - self.waiting_since > PATIENCE and not busy)

    def _prepared(self) -> None:
        """Accept the motion, then the transition to it."""
        asked = self.preparation.pending
        answer = self.preparation.take()
        if answer is None:
            return
        if self.health.check("prepare", "error" in answer, Level.ERROR, str(answer.get("error"))):
            return
        self.heartbeat.beat()
        made = DynamicMotion.read(answer["file"]) if answer["file"] else None
        if asked != MOTION:
            self._take_way(made)
        elif made is not None:
            self._take_motion(made)

    def _take_motion(self, motion: DynamicMotion) -> None:
        self.motion = motion
        self.outputs.begin(float(motion.clock[-1]))
        if motion.fallback:
            self.get_logger().warning(f"the motion is not feasible: {motion.fallback}")

    def _take_way(self, way: DynamicMotion | None) -> None:
        assert self.motion is not None
        if way is None:
            R, p = (x[0] for x in self.soles.poses(self.robot, self.requested_from[None]))
            plan = placed_on(self.motion, R, p)
        else:
            plan = joined(way, placed_on(self.motion, way.sole_rotation[-1], way.sole_position[-1]))
        if self.stage is None:
            self.stage = Stage(self.robot, plan, ControllerSettings(1.0 / self.params.rate, self.params.friction))
        else:
            self.stage.give(plan)

    def stand_up(self, now: float) -> None:
        """Start if the robot rests, no other node commands it, and the plan is complete."""
        measured = self.sensors.measurement()
        steady = not self.params.start_check or self.check.ready(measured, 1.0 / self.rate)
        if self.stage is None and steady and self.motion is not None and not self.preparation.pending:
            self._request_transition(standing_configuration(self.robot, self.estimator, self.soles, measured))
        if not self.commands.owner.may_command(now, steady and self.stage is not None) or self.stage is None:
            return
        self.stage.begin(measured)
        self.begin_running()

    def _request_transition(self, q: np.ndarray) -> None:
        self.requested_from = q
        self.preparation.find_transition(q)

    def control(self, ticks: int, now: float) -> int:
        """Run the controller once for the time of `ticks`."""
        self._control(ticks / self.params.rate)
        return 1

    def _control(self, dt: float) -> None:
        stage = self.stage
        assert stage is not None
        if self.fallen:
            self.commands.damp()
            return
        measured = self.sensors.measurement()
        late = self._react()
        if IMU in late:
            still = {"angular_velocity": np.zeros(3), "linear_acceleration": np.zeros(3)}
            measured = measured._replace(imu=measured.imu._replace(**still))
        if stage.needs_plan and (self.wanted or self.params.loop) and not self.preparation.pending and not self.stopped:
            self.wanted = True
            self._request_transition(stage.configuration)
        if self.wanted and not late and stage.start():
            self.wanted = False
        torque = stage.step(measured, dt)
        if self.fallen:
            self.commands.damp()
        elif torque is None or not self.commands.send(torque, measured.joints.q, measured.joints.v):
            self.health.report("number", Level.ERROR, "a torque is not a number: damped, restarting from standing")
            self.commands.damp()
            self.restart()
            return
        self._publish_report()

    def _react(self) -> list[str]:
        """Keep the last readings of silent sensors, or rest; return the late ones."""
        p, s, stage = self.params, self.sensors, self.stage
        assert stage is not None
        late, lost = s.quiet(p.sensor_late), s.quiet(p.sensor_lost)
        self.health.check("late", bool(late), Level.WARN, f"{', '.join(late)} silent: the last readings are used")
        if lost and not self.lost:
            self.stopped = f"{', '.join(lost)} lost"
            self.wanted = False
            stage.stop()
        self.lost = bool(lost)
        text = f"{self.stopped}: resting on both feet; ~/start performs again"
        self.health.check("lost", self.stopped.endswith(" lost"), Level.ERROR, text)
        return late

    def switch_off(self, why: str) -> None:
        self.stopped = why  # before the restart, which would otherwise perform again
        super().switch_off(why)

    def _publish_report(self) -> None:
        stage = self.stage
        assert stage is not None
        c = stage.controller
        self.errors.add(float(np.linalg.norm(c.dcm_error)))
        self.outputs.base.publish_state(stage.state.name)
        self.health.check("fallen", self.fallen, Level.ERROR, f"fallen: {stage.why}; set it upright and call ~/reset")
        instant = self.sensors.joint_instant
        if self.commands.ticks % self.every == 0 and instant is not None and instant != self.stamped:
            self.stamped = instant
            self.outputs.publish(c, stamp_of(instant))

    def slack_time(self, left: float) -> None:
        if not self.running or self.stage is None or self.stage.controller.estimate is None:
            return
        c, stamp = self.stage.controller, self.sensors.joint_instant or self.present()
        frame = self.outputs.frame
        self.plan.publish(left, self.params.markers_rate, lambda: serialize_message(plan_markers(c, stamp, frame)))

    def close(self) -> None:
        if (preparation := self.__dict__.get("preparation")) is not None:
            preparation.close()

    def values(self) -> dict[str, Any]:
        stage, errors = self.stage, self.errors.values()
        c = stage.controller if stage is not None else None
        p50, p99 = self.took.percentiles()
        return {
            "performing": self.outputs.base.state,
            "preparing": self.preparation.progress,
            "clip_s": round(float(c.motion.clock[min(int(c.clock * c.motion.rate), len(c.motion) - 1)]), 3) if c else 0,
            "clip_duration_s": round(float(c.motion.clock[-1]), 3) if c else 0,
            "performed": stage.performed if stage is not None else 0,
            "dcm_error_rms_mm": round(1e3 * float(np.sqrt(np.mean(errors**2))), 2) if len(errors) else float("nan"),
            "early_contacts": c.early if c else 0,
            "late_contacts": c.late if c else 0,
            "failed_programs": c.failed if c else 0,
            **self.commands.values(),
            "ticks_without_instant": self.clock.held,
            "control_p50_ms": round(1e3 * p50, 3),
            "control_p99_ms": round(1e3 * p99, 3),
            "stopped": self.stopped,
        }


def main() -> int:
    return main_of(WholeBodyControllerNode)


if __name__ == "__main__":
    sys.exit(main())
