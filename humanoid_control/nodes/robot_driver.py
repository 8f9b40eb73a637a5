"""Node `robot_driver`: a real robot on its buses, or its simulated twin.

Only the service `~/enable` switches power on.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import BatteryState, Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.files import check_file
from humanoid_control.hardware.calibration import named_calibration, read_calibration, write_calibration
from humanoid_control.hardware.commands.command_stream import CommandReader
from humanoid_control.hardware.commands.gained_command import GainsReader
from humanoid_control.hardware.commands.sources import CommandSources
from humanoid_control.hardware.commands.trajectory_goal import GoalFollower
from humanoid_control.hardware.driver import QUICK_STOP_TIME, Driver
from humanoid_control.hardware.guardian import PRIORITY
from humanoid_control.hardware.hardware_file import Hardware, hardware_path, read_hardware_file, without_file
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.realtime import become_real_time, real_time_advice, real_time_report
from humanoid_control.hardware.supervision import WARN
from humanoid_control.kinematics.joint_state import NodeStatus
from humanoid_control.nodes.base.command_messages import read_command
from humanoid_control.nodes.base.command_owner import COMMANDS_IN, CommandArbiter, gid_of
from humanoid_control.nodes.base.joint_gains import GainedCommands, gains_of
from humanoid_control.nodes.base.messages import (
    EVENTS,
    LATCHED,
    STREAM_OUT,
    age_of,
    fill_joint_state,
    joint_state,
    stamp_of,
)
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import Level
from humanoid_control.nodes.base.transforms import FrameNames
from humanoid_control.nodes.driving.driver_reports import BusRates, battery_message, fill_imu, parts_of
from humanoid_control.nodes.driving.requests import END_TIME, DriverNode, EmergencyStopTopic, answered
from humanoid_control.nodes.driving.torque_gate import install_gate
from humanoid_control.nodes.driving.trajectory_action import TrajectoryAction, points_of
from humanoid_control.robots import Robot, load_robot

TWINS = ("simulator", "loopback")
ECHO = 0.3  # [s] window in which two signals belong to the same Ctrl-C
AFTER = 0.2  # [s] time after a quick stop in which the drives lose power
SUPPLY_PERIOD = 1.0  # [s] period of battery messages
WATCHDOG = 0.1  # [s] silence after which simulated drives stop
STOPPED = (PowerState.FAULT, PowerState.ESTOP)


@dataclass(frozen=True)
class RobotDriverParameters(NodeParameters):
    """Parameters of the driver."""

    hardware: str = param(
        "",
        "hardware file; empty: the one next to the URDF; simulator or loopback: simulated drives with the "
        "limits of that file, if it exists",
    )
    calibration: str = param("", "file of the zeros, written by ~/set_zero; empty: the one next to the hardware file")
    rate: float = param(0.0, "cycle rate; 0: from the hardware file, or 500 without one", "Hz", 0.0, 1000.0)
    dry_run: bool = param(False, "do everything except bus writes and power switching")
    dry_run_file: str = param("", "log file of the frames that a dry run would send")
    states_every: int = param(1, "number of cycles per joint_states message", "", 1, 100)
    late_tolerance: float = param(
        1.0,
        "tolerance factor of the cycle lateness that stops the robot (5 periods) or causes a fault (50 ms)",
        "",
        1.0,
        100.0,
    )
    velocity_scale: float = param(
        1.0,
        "share of the speed limits of the hardware file; it can only be reduced while commands are followed",
        "",
        0.01,
        1.0,
        live=True,
    )
    zero_posture: str = param("zero", "posture of the robot during ~/set_zero", live=True)
    zero_joints: str = param(
        "", "joints calibrated by ~/set_zero, such as 'l_knee, r_knee'; empty: all driven joints", live=True
    )
    home_joints: str = param(
        "", "joints homed by ~/home, such as 'l_knee, r_knee'; empty: all joints without a known zero", live=True
    )
    allow_large_zero: bool = param(False, "allow ~/set_zero to change a zero by more than 0.2 rad", live=True)
    path_tolerance: float = param(
        0.2, "path tolerance of each joint for the trajectory action, unless the goal sets it; 0: unlimited",
        "rad", 0.0, 10.0, live=True,
    )  # fmt: skip
    goal_tolerance: float = param(
        0.02, "goal tolerance of each joint for the trajectory action, unless the goal sets it; 0: unlimited",
        "rad", 0.0, 10.0, live=True,
    )  # fmt: skip
    goal_time: float = param(
        0.5, "time to reach the goal after the end of the trajectory; 0: unlimited", "s", 0.0, 1000.0,
        live=True,
    )  # fmt: skip
    gate: bool = param(True, "apply the torque gate to joints that are commanded with gains")
    may_touch: str = param(
        "", "pairs of links that the gate allows to touch, such as 'l_hand/r_hand, l_hand/torso'; empty: none"
    )
    brake_joint: str = param("", "joint whose brake ~/release_brake releases, without power", live=True)


def hardware_of(p: RobotDriverParameters, robot: Robot) -> Hardware:
    """Return the hardware that the parameters select.

    Raises:
        HumanoidError: if the hardware file is missing or faulty.
    """
    path = hardware_path(robot)
    # Simulated drives get the tolerance of the driver: on a busy machine its late cycles would trip their watchdogs.
    patience = {"watchdog": WATCHDOG * p.late_tolerance}
    options = {"robot": p.robot} if p.hardware == "simulator" else patience
    if p.hardware in TWINS:
        twin = read_hardware_file(path, robot, p.rate).on_one_bus(p.hardware, options) if path else None
        return twin or without_file(robot, p.hardware, options, p.rate or 500.0)
    if p.hardware:
        path = Path(p.hardware)
    if path is None:
        raise ConfigError(
            f"{robot.name} has no hardware file next to its URDF: set the parameter hardware, or use hardware=simulator"
        )
    return read_hardware_file(path, robot, p.rate)


class RobotDriver(DriverNode):
    """Node around a `Driver`: topics and services."""

    Parameters = RobotDriverParameters
    params: RobotDriverParameters
    node_name = "robot_driver"
    sole = True
    punctual = True

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, "fixed")
        hardware = hardware_of(p, robot)
        self.calibration: Path | None = None
        if hardware.path and p.hardware not in TWINS:
            self.calibration = named_calibration(hardware.path, p.calibration)
        zeros = read_calibration(self.calibration, hardware.actuators) if self.calibration else {}
        self.frames = FrameFile(Path(p.dry_run_file)) if p.dry_run and p.dry_run_file else None
        record = self.frames.write if self.frames else None
        self.driver = Driver(hardware, zeros, p.dry_run, record, p.late_tolerance)
        self.driver.scale_velocity(p.velocity_scale)
        problem = install_gate(self.driver, p.robot, robot.from_mapping(hardware.fixed), p.gate, p.may_touch)
        self.health.check("gate", bool(problem), Level.WARN, problem)
        become_real_time(p.priority)
        for k, text in enumerate(real_time_advice()):
            self.health.report(f"real time {k}", Level.WARN, text)
        try:
            self.driver.open()
            self.driver.start_guardian(PRIORITY if p.priority > 0 else 0)
        except HumanoidError:
            self.driver.close()
            raise
        lonely = self.driver.buses.guarded() if hardware.guardian == "never" else []
        text = f"no guardian: if this computer fails, the drives of bus {', '.join(lonely)} do not stop"
        self.health.check("guardian", bool(lonely), Level.WARN, text)
        self.robot, self.sources = robot, CommandSources(self.driver)
        self.rows = np.array([robot.index[n] for n in hardware.names], dtype=int)
        self.others = np.setdiff1d(np.arange(robot.n), self.rows)
        others, modes = [robot.joint_names[k] for k in self.others], [j.mode for j in hardware.joints]
        self.reader = CommandReader(hardware.names, others, modes)
        self.posture = robot.from_mapping(hardware.fixed)
        self.end_at, self.quick = float("nan"), False
        self._make_endpoints(hardware)
        return hardware.rate

    def _make_endpoints(self, hardware: Hardware) -> None:
        self.states_message, self.applied_message = joint_state(self.robot.joint_names), joint_state(hardware.names)
        self.states = self.create_publisher(JointState, "joint_states", STREAM_OUT)
        self.applied = self.create_publisher(JointState, "applied_commands", STREAM_OUT)
        self.power_state = self.create_publisher(String, "hardware_state", LATCHED)
        self.imu = self.create_publisher(Imu, "imu", STREAM_OUT)
        self.imu_message = Imu()
        self.imu_message.header.frame_id = self.params.frame(self.robot.root_link)
        self.names = FrameNames(self, self.robot, self.params.frame)
        self.battery = self.create_publisher(BatteryState, "battery", EVENTS)
        self.said, self.ticks, self.rates, self.supplies_due = "", 0, BusRates(), 0.0
        self.owner = CommandArbiter(self, "joint_commands")
        self.planner = CommandArbiter(self, "joint_trajectory", "owner of trajectories")
        self.reports += [self.owner.report, self.planner.report]
        self.pairs = GainedCommands(self, self.take)
        self.gains = GainsReader(hardware.names, [self.robot.joint_names[k] for k in self.others])
        self.listen(JointState, "joint_commands", self.on_command, COMMANDS_IN, takes_info=True)
        take = self.on_trajectory
        self.create_subscription(JointTrajectory, "joint_trajectory", take, EVENTS, takes_info=True)
        lower, upper = hardware.column("lower"), hardware.column("upper")
        follower = GoalFollower(self.sources.player, hardware.names, lower, upper, hardware.column("acceleration"))
        self.action = TrajectoryAction(self, self.driver, follower)
        self.stop_topic = EmergencyStopTopic(self, hardware.estop_topic, self.on_emergency_stop_topic)
        d = self.driver
        self.create_service(SetBool, "~/enable", answered(lambda on: d.enable() if on else d.disable()))
        self.create_service(SetBool, "~/emergency_stop", answered(lambda on: d.emergency_stop("~/emergency_stop", on)))
        self.create_service(Trigger, "~/stop", answered(lambda _: d.stop()))
        self.create_service(Trigger, "~/clear_faults", answered(lambda _: d.clear_faults()))
        self.create_service(Trigger, "~/home", answered(lambda _: d.home(listed(self.params.home_joints))))
        self.create_service(Trigger, "~/set_zero", answered(lambda _: self.set_zero()))
        self.create_service(SetBool, "~/release_brake", answered(self.release_brake))

    # -- commands -----------------------------------------------------------------------------------------------------

    def on_command(self, m: JointState, info: Mapping[str, Any]) -> None:
        """Accept a command; report and discard faulty ones."""
        now = time.monotonic()
        text = "a trajectory is active: joint_commands ignored"
        if self.health.check("ignored", self.sources.running(now), Level.WARN, text):
            return
        if self.owner.accepts(info, self.driver.hardware.command_timeout):
            self.pairs.command(m, gid_of(info))

    def take(self, m: JointState, gains: JointState | None) -> None:
        """Pass a command, with gains if the drives accept them."""
        try:
            given = self.gains.read(*gains_of(gains)) if gains is not None else None
            if given is not None:
                self.driver.gained.check(given)
            self.health.clear("joint_gains")
        except HumanoidError as e:
            self.health.report("joint_gains", Level.WARN, str(e))
            return
        if (read := read_command(self, self.reader, m)) is not None:
            self.sources.command(read[0], time.monotonic(), read[1], given)

    def on_trajectory(self, m: JointTrajectory, info: Mapping[str, Any]) -> None:
        """Execute a trajectory from the current reference; an empty one stops.

        Other publishers are rejected meanwhile. A new trajectory replaces a goal of the action.
        """
        now = time.monotonic()
        unused = any(len(p.effort) for p in m.points)
        self.health.check("efforts", unused, Level.WARN, "joint_trajectory: efforts of its points are not used")
        try:
            if not m.points and not m.joint_names:
                self.sources.stop()
            else:
                if self.action.busy:
                    self.planner.release()
                if not self.planner.accepts(info, math.inf if self.sources.running(now) else 0.0):
                    return
                if reason := self.commanded_by(now):
                    raise ConfigError(f"trajectory rejected: {reason}")
                age = age_of(m.header.stamp, self.get_clock())
                self.sources.start(list(m.joint_names), points_of(m), age, now)
            self.health.clear("trajectory")
        except HumanoidError as e:
            self.health.report("trajectory", Level.WARN, str(e))

    def commanded_by(self, now: float) -> str:
        """Describe the followed publisher of joint_commands; empty: none."""
        if self.sources.running(now) or not self.owner.active(now, self.driver.hardware.command_timeout):
            return ""
        return f"joint_commands of {self.owner.owner_name} are followed"

    def on_emergency_stop_topic(self, on: bool) -> None:
        """Apply the emergency stop; every message is also a heartbeat."""
        self.driver.heartbeat(time.monotonic())
        self.driver.emergency_stop("topic", on, f"emergency stop on {self.driver.hardware.estop_topic}")

    # -- services -----------------------------------------------------------------------------------------------------

    def set_zero(self) -> str:
        """Calibrate at the current posture."""
        p = self.params
        if self.calibration is None:
            raise ConfigError("nothing to calibrate: the drives are simulated")
        joints = listed(p.zero_joints) or list(self.driver.hardware.names)
        posture = self.robot.joints(self.robot.q(p.zero_posture))
        angles = {}
        for name in joints:
            if name not in self.driver.hardware.names:
                raise ConfigError(f"zero_joints: {name} is not driven")
            angles[name] = float(posture[self.robot.index[name]])
        write_calibration(self.calibration, self.driver.set_zeros(angles, p.allow_large_zero))
        return ""

    def release_brake(self, release: bool) -> str:
        """Release or engage a joint's brakes, without power."""
        driver, name = self.driver, self.params.brake_joint
        if driver.machine.state is not PowerState.MONITOR:
            return f"brakes can be released only without power: state is {driver.machine}"
        if name not in driver.hardware.names:
            return f"first set the parameter brake_joint to a driven joint, it is '{name}'"
        actuators = driver.transmission.actuators_of(driver.hardware.names.index(name))
        answers = [driver.buses.brake(a, release) for a in actuators]
        return "" if all(answers) else f"{name} has no brake"

    # -- the tick -----------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        d = self.driver
        self.sources.advance(now)
        d.cycle()
        self.action.update(now)
        self.report_state()
        self.ticks += 1
        if self.ticks % self.params.states_every == 0:
            self._publish_states()
        if now >= self.supplies_due:
            self.supplies_due = now + SUPPLY_PERIOD
            self._publish_supplies()
        if d.machine.powered:
            ref = d.reference
            stamp = stamp_of(self.present())
            self.applied.publish(fill_joint_state(self.applied_message, stamp, ref.q, ref.v, d.tau))

    def report_state(self) -> None:
        d, h = self.driver, self.health
        text = str(d.machine)
        if text != self.said:
            self.said = text
            self.power_state.publish(String(data=text))
            self.get_logger().info(text)
        h.check("state", d.machine.state in STOPPED, Level.ERROR, text)
        stopped = d.machine.state in (PowerState.STOPPING, PowerState.HOLD) and bool(d.machine.reason)
        h.check("stopped", stopped, Level.WARN, d.machine.reason)
        unhomed = d.encoders.missing() if d.machine.powered and d.encoders.homing is None else []
        text = f"not homed: {', '.join(unhomed[:3])}: commands are ignored until ~/home"
        h.check("homing", bool(unhomed), Level.WARN, text)
        worst = [f.text for f in d.findings if f.level == WARN]
        h.check("joints", bool(worst), Level.WARN, "; ".join(worst[:3]))
        clipped = d.clipped()
        h.check("clipped", bool(clipped), Level.WARN, f"commands exceed limits: {', '.join(clipped[:3])}")

    def _publish_states(self) -> None:
        d, j = self.driver, self.driver.joints
        q, (v, tau) = self.posture.copy(), np.zeros((2, self.robot.n))
        q[self.rows], v[self.rows], tau[self.rows] = j.q, j.v, j.tau
        v[~np.isfinite(v)], tau[~np.isfinite(tau)] = 0.0, 0.0
        known = np.ones(self.robot.n, dtype=bool)
        known[self.rows] = d.fresh
        for follower, leader, multiplier, offset in self.robot.mimic:
            q[follower], v[follower] = multiplier * q[leader] + offset, multiplier * v[leader]
            known[follower] = known[leader]
        if not d.fresh.any():
            return
        age = d.clock() - float(j.stamp[d.fresh].max())
        stamp = stamp_of(self.stamps.next(self.get_clock().now().nanoseconds - int(1e9 * age)))
        message = self.states_message
        if not known.all():
            message = joint_state([n for n, k in zip(self.robot.joint_names, known, strict=True) if k])
        self.states.publish(fill_joint_state(message, stamp, q[known], v[known], tau[known]))
        for transport in d.buses.transports.values():
            if (reading := transport.imu()) is not None:
                self.imu.publish(fill_imu(self.imu_message, reading[1], stamp))

    def _publish_supplies(self) -> None:
        stamp = stamp_of(self.get_clock().now().nanoseconds)
        for report in self.driver.buses.reports():
            if report.battery is not None:
                self.battery.publish(battery_message(report.name, report.battery, stamp))

    def parameters_changed(self, changed: set[str]) -> None:
        if "velocity_scale" in changed and self.configured:
            self.driver.scale_velocity(self.params.velocity_scale)

    def values(self) -> dict[str, Any]:
        d = self.driver
        temperature = d.joints.temperature
        error = d.following_error()
        hottest = int(np.nanargmax(temperature)) if np.isfinite(temperature).any() else None
        worst = int(np.nanargmax(error)) if np.isfinite(error).any() else None
        names = d.hardware.names
        return {
            "power_state": d.machine.state.name,
            "reason": d.machine.reason,
            "refusals": "; ".join(d.refusals()) if d.machine.state is PowerState.MONITOR else "",
            "joints_fresh": int(d.fresh.sum()),
            "temperature_max": f"{temperature[hottest]:.1f} {names[hottest]}" if hottest is not None else "",
            "following_error_max": f"{error[worst]:.4f} {names[worst]}" if worst is not None else "",
            "joints_with_gains": int(d.gained.command.which.sum()),
            "gate_active_percent": round(100.0 * d.gained.acted / max(d.gained.cycles, 1), 2),
            "guardian": "alive" if d.guard is not None and d.guard.alive() else "none",
            **real_time_report(),
            **d.buses.figures(),
        }

    def parts(self) -> dict[str, NodeStatus]:
        return parts_of(self.driver, self.rates, time.monotonic())

    # -- the end ------------------------------------------------------------------------------------------------------

    def ending(self) -> bool:
        """Decelerate and power off before the process ends."""
        now = time.monotonic()
        if math.isnan(self.end_at):
            self.end_at = now + END_TIME
            self.driver.disable()
            for s in (signal.SIGINT, signal.SIGTERM):
                signal.signal(s, lambda *_: self._on_second_signal(now))
        return (self.driver.machine.powered or self.quick) and now < self.end_at

    def _on_second_signal(self, first: float) -> None:
        """Stop at once, except for the echo of one Ctrl-C under `ros2 launch`."""
        if time.monotonic() - first > ECHO:
            self.driver.emergency_stop("signal", True, "interrupted twice")
            # cycles continue until the stop is complete
            self.quick, self.end_at = True, time.monotonic() + QUICK_STOP_TIME + AFTER

    def deactivate(self) -> None:
        self.action.interrupt()
        super().deactivate()

    def close(self) -> None:
        if self.configured:
            self.action.close()
        super().close()
        if self.configured and self.frames is not None:
            self.frames.close()


class FrameFile:
    """File of the frames that a dry run would send, one per line."""

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            ConfigError: if it cannot be written.
        """
        check_file(path, "file of frames")
        self._stream = path.open("w", encoding="utf-8")

    def write(self, line: str) -> None:
        self._stream.write(line + "\n")

    def close(self) -> None:
        self._stream.close()


def listed(text: str) -> list[str]:
    """Return the names in a comma-separated parameter."""
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> int:
    return main_of(RobotDriver)


if __name__ == "__main__":
    sys.exit(main())
