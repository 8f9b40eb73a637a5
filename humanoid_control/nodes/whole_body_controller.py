"""Node `whole_body_controller`: a feasible motion and the sensors in; joint torques out, danced on two feet.

The motion is a file, or a clip that is retargeted and made feasible in a process of its own; so is the way to its first
posture from where the robot stands. Until both are there, and the sensors agree that the robot stands at rest on both
feet, nothing is commanded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.errors import ClipError
from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.nodes.base.messages import LATCHED, PAUSED, STREAM_OUT, stamp_of
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.serialized_markers import IdlePublisher
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.performing.outputs import PerformingOutputs, plan_markers
from humanoid_control.nodes.performing.parameters import WholeBodyControllerParameters
from humanoid_control.nodes.performing.preparation import Preparation
from humanoid_control.nodes.performing.torque_commands import TorqueCommands
from humanoid_control.nodes.simulating.outputs import foot_topic
from humanoid_control.nodes.streaming.clip_source import clip_points
from humanoid_control.nodes.walking.sensors import IMU, JOINTS, Sensors, TickClock
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

WAITING, OFF = "WAITING", "OFF"
JUMP = 0.5  # [s] of the sensors' clock from one instant to the next: another world
CHECK_PERIOD = 0.25  # [s] between looks at what is missing
PATIENCE = 2.0  # [s] after which it is said why nothing is commanded


class WholeBodyControllerNode(TickNode):
    """Ticks when a measurement of one instant is complete, or a little later with what is known then."""

    Parameters = WholeBodyControllerParameters
    params: WholeBodyControllerParameters
    node_name = "whole_body_controller"

    def configure(self) -> float:
        p = self.params
        self.robot = robot = load_robot(p.robot, "floating")
        for text in check_performer(robot):
            self.get_logger().warning(text)
        self.motion: DynamicMotion | None = self._checked_motion()
        self.feet, self.soles = Feet(robot), RigidSoles.of(robot)
        self.names = tuple(s.name for side in self.feet.soles for s in side)
        self.sensors, self.clock = Sensors(robot, self.names, self.health), TickClock(1.0 / p.rate)
        self.check, self.estimator = StartCheck(robot, self.feet), FloatingBaseEstimator(robot, self.feet.frames)
        Stage(robot, standing_motion(robot, robot.q("neutral")))  # what is compiled is loaded now
        self.commands, self.outputs = TorqueCommands(self, robot), PerformingOutputs(self, robot, p.odom_frame)
        self.plan = IdlePublisher(self.create_publisher(MarkerArray, "footsteps/planned", STREAM_OUT))
        self.preparation = Preparation(p)
        self.stage: Stage | None = None
        self.paused, self.every = False, max(1, round(p.rate / p.odom_rate))
        n = int(p.rate * max(1.0, p.window))
        self.took, self.errors = SampleWindow(n), SampleWindow(n)
        self._listen()
        for name in ("start", "stop", "emergency_stop", "reset", "play", "pause", "restart"):
            self.create_service(Trigger, f"~/{name}", getattr(self, f"on_{name}"))
        return p.rate

    def _checked_motion(self) -> DynamicMotion | None:
        """The motion of a file; None where a clip is to become one.

        Raises:
            HumanoidError: a file or clip that cannot be performed.
        """
        p = self.params
        if p.motion:
            return read_motion(p.motion, self.robot)
        body = clip_points(p)
        for text in body.warnings:
            self.get_logger().warning(text)
        if not shows_legs(body):
            raise ClipError(f"{body.name} does not show knees, ankles and toes: it cannot be performed on two feet")
        return None

    def _listen(self) -> None:
        self.listen(JointState, "joint_states", self._sensed(self.sensors.on_joints))
        self.listen(Imu, "imu", self._sensed(self.sensors.on_imu))
        for sole in self.names:
            self.listen(WrenchStamped, foot_topic(sole), self._sensed(partial(self.sensors.on_wrench, sole)))
        self.create_subscription(Bool, PAUSED, self.on_paused, LATCHED)

    def _sensed(self, take: Callable[[Any], bool]) -> Callable[[Any], None]:
        """A callback that wakes the tick when the measurement of an instant is complete."""

        def call(message: Any) -> None:
            if take(message) and self.active and self.sensors.instant is not None:
                self.wake = True

        return call

    def activate(self) -> None:
        """Wait for the sensors and the motion; whatever the robot does goes on meanwhile."""
        self.sensors.forget()
        self.stopped, self.wanted = "", False  # why it does not perform; whether it should
        self.restart()

    def restart(self) -> None:
        """Begin anew: stand, once the robot is found at rest on its feet."""
        self.clock.restart()
        self.check.restart()
        self.commands.restart()
        self.outputs.base.restart()
        self.sensors.elsewhere = ""
        self.stage, self.running, self.lost = None, False, False
        self.wanted = (self.wanted or self.params.begin) and not self.stopped
        self.stamped, self.checked, self.waiting_since = -1, -np.inf, time.monotonic()
        self.health.clear("fallen")
        self.preparation.forget_way()
        if not (self.preparation.has_motion or self.preparation.asked):
            self.preparation.make()
        self.outputs.base.say(WAITING)

    # -- services ---------------------------------------------------------------------------------------------------

    def on_paused(self, message: Bool) -> None:
        """The simulator's time stands still, or goes on: what does not come meanwhile is not missed."""
        self.paused = bool(message.data)
        self._still(time.monotonic())

    def on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Perform, as soon as the robot stands; takes back a stop."""
        response.success = not self._fallen
        response.message = "performing"
        if self._fallen:
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
        """Come to rest on both feet, and stay there until `~/start`."""
        return self._come_to_rest("stop was called", response)

    def on_emergency_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Come to rest with the next posture on both feet, and stay there until `~/start`."""
        return self._come_to_rest("emergency stop was called", response)

    def _come_to_rest(self, why: str, response: Trigger.Response) -> Trigger.Response:
        self.stopped, self.wanted = why, False
        if self.stage is not None:
            self.stage.stop()
        response.success, response.message = True, "coming to rest on both feet; ~/start performs again"
        return response

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Begin anew, as after the start."""
        self.stopped = ""
        self.restart()
        response.success, response.message = True, "waiting until the robot stands at rest on its feet"
        return response

    on_play, on_pause = on_start, on_stop

    # -- the tick ---------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        s, clock = self.sensors, self.clock
        self._prepared()
        instant = clock.choose(s.instant, s.joint_instant, now)
        if self.paused and not clock.newer(instant):
            self._still(now)
            return
        s.look(now, 1.5 / self.rate, clock.pace)
        if now - self.checked > CHECK_PERIOD:
            self.checked = now
            self._look_around(now)
        where = s.elsewhere if self.running and not self._fallen else ""
        if clock.jumped(instant, JUMP) or where:
            self.health.report("jump", Level.WARN, f"{where or 'the clock of the sensors jumped'}: standing anew")
            self.restart()
            return
        if self.running and JOINTS in s.quiet(self.params.sensor_off):
            self._off(f"no {JOINTS} for {self.params.sensor_off:g} s: the joints are only damped")
            return
        ticks = clock.step(instant, now)
        if not ticks or s.missing:
            return
        if not self.running:
            self._stand_up(now)
            return
        if not self.commands.owner.look(now):
            self.restart()
            return
        begin = time.monotonic()
        self._control(ticks / self.params.rate)
        self.took.add(time.monotonic() - begin)

    @property
    def _fallen(self) -> bool:
        return self.stage is not None and self.stage.state == StageState.FALLEN

    def _still(self, now: float) -> None:
        """Nothing is late while time stands still."""
        self.clock.rest(now)
        self.sensors.look(now, 0.0)

    def _look_around(self, now: float) -> None:
        """Report why nothing is commanded."""
        s, busy = self.sensors, self.preparation.progress
        self.health.check("preparing", bool(busy), Level.OK, f"preparing: {busy}")
        if self.running:
            return
        if s.missing:
            self.commands.owner.look(now, ready=False)
        problems = [f"no {name} yet" for name in s.missing[:3]] if s.missing else self.check.problems
        waits = now - self.waiting_since > PATIENCE and not busy
        text = "not standing yet: " + "; ".join(problems or ["not steady"])
        self.health.check("start", waits, Level.WARN, text)

    def _prepared(self) -> None:
        """Take what the other process has made: the motion, then the way to its first posture."""
        asked = self.preparation.asked
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
        """The plan is complete: the way to the first posture, if there is one, and the motion."""
        assert self.motion is not None
        if way is None:
            R, p = (x[0] for x in self.soles.poses(self.robot, self.asked_from[None]))
            plan = placed_on(self.motion, R, p)
        else:
            plan = joined(way, placed_on(self.motion, way.sole_rotation[-1], way.sole_position[-1]))
        if self.stage is None:
            self.stage = Stage(self.robot, plan, ControllerSettings(1.0 / self.params.rate, self.params.friction))
        else:
            self.stage.give(plan)

    def _stand_up(self, now: float) -> None:
        """Control the robot, where it is found at rest, nobody else commands it, and the plan is there."""
        measured = self.sensors.measurement()
        steady = not self.params.start_check or self.check.ready(measured, 1.0 / self.rate)
        if self.stage is None and steady and self.motion is not None and not self.preparation.asked:
            self._ask_way(standing_configuration(self.robot, self.estimator, self.soles, measured))
        if not self.commands.owner.look(now, steady and self.stage is not None) or self.stage is None:
            return
        self.stage.begin(measured)
        self.running = True
        for key in ("start", "jump", "off"):
            self.health.clear(key)

    def _ask_way(self, q: np.ndarray) -> None:
        self.asked_from = q
        self.preparation.find_way(q)

    def _control(self, dt: float) -> None:
        """One tick of the stage, and its command."""
        stage = self.stage
        assert stage is not None
        if self._fallen:
            self.commands.damp()
            return
        measured = self.sensors.measurement()
        late = self._react()
        if IMU in late:
            still = {"angular_velocity": np.zeros(3), "linear_acceleration": np.zeros(3)}
            measured = measured._replace(imu=measured.imu._replace(**still))
        if stage.needs_plan and (self.wanted or self.params.loop) and not self.preparation.asked and not self.stopped:
            self.wanted = True
            self._ask_way(stage.configuration)
        if self.wanted and not late and stage.start():
            self.wanted = False
        torque = stage.step(measured, dt)
        if self._fallen:
            self.commands.damp()
        elif torque is None or not self.commands.send(torque):
            self.health.report("number", Level.ERROR, "a torque is not a number: damped, standing anew")
            self.commands.damp()
            self.restart()
            return
        self._tell()

    def _react(self) -> list[str]:
        """What silent sensors ask for: their last readings, or rest on both feet; returns the late ones."""
        p, s, stage = self.params, self.sensors, self.stage
        assert stage is not None
        late, lost = s.quiet(p.sensor_late), s.quiet(p.sensor_lost)
        self.health.check("late", bool(late), Level.WARN, f"{', '.join(late)} silent: the last readings are used")
        if lost and not self.lost:
            self.stopped = f"{', '.join(lost)} was lost"
            self.wanted = False
            stage.stop()
        self.lost = bool(lost)
        text = f"{self.stopped}: resting on both feet; ~/start performs again"
        self.health.check("lost", self.stopped.endswith("was lost"), Level.ERROR, text)
        return late

    def _off(self, why: str) -> None:
        self.health.report("off", Level.ERROR, why)
        self.stopped = why
        self.commands.damp()
        self.restart()
        self.outputs.base.say(OFF)

    def _tell(self) -> None:
        """Publish what the tick found."""
        stage = self.stage
        assert stage is not None
        c = stage.controller
        self.errors.add(float(np.linalg.norm(c.dcm_error)))
        self.outputs.base.say(stage.state.name)
        self.health.check("fallen", self._fallen, Level.ERROR, f"fallen: {stage.why}; put it up and call ~/reset")
        instant = self.sensors.joint_instant
        if self.commands.ticks % self.every == 0 and instant is not None and instant != self.stamped:
            self.stamped = instant
            self.outputs.publish(c, stamp_of(instant))

    def slack_time(self, left: float) -> None:
        if not self.running or self.stage is None or self.stage.controller.estimate is None:
            return
        c, stamp = self.stage.controller, self.sensors.joint_instant or self.present()
        frame = self.params.odom_frame
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
