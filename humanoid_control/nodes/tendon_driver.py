"""Node `tendon_driver`: winches of a tendon-driven robot on their buses. Only a request switches power on."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.hardware.hardware_file import hardware_path
from humanoid_control.hardware.muscle_units.driver import TendonDriver
from humanoid_control.hardware.muscle_units.file import read_tendon_hardware
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.realtime import become_real_time
from humanoid_control.hardware.transport import Silence
from humanoid_control.nodes.base.command_owner import COMMANDS_IN, CommandArbiter
from humanoid_control.nodes.base.messages import LATCHED, STREAM_OUT, fill_joint_state, joint_state, stamp_of
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import Level
from humanoid_control.nodes.driving.requests import END_TIME, DriverNode, EmergencyStopTopic, answered
from humanoid_control.robots import load_robot

COMMANDS, STATES, TENSIONS = "tendon_commands", "tendon_states", "tendon_tensions"
HOLDING = (Silence.STOPS, Silence.HOLDS)
STOPPED = (PowerState.FAULT, PowerState.ESTOP)


@dataclass(frozen=True)
class TendonDriverParameters(NodeParameters):
    """Parameters of the driver of muscle units."""

    hardware: str = param("", "file of the muscle units and their buses; empty: the one next to the URDF")
    rate: float = param(0.0, "cycle rate; 0: from the file", "Hz", 0.0, 1000.0)
    dry_run: bool = param(False, "do everything except bus writes and power switching")
    late_tolerance: float = param(
        1.0,
        "tolerance factor of the cycle lateness that holds the wires (5 periods) or causes a fault (50 ms)",
        "",
        1.0,
        100.0,
    )


class TendonDriverNode(DriverNode):
    """Node around a `TendonDriver`: topics and services."""

    Parameters = TendonDriverParameters
    params: TendonDriverParameters
    node_name = "tendon_driver"
    sole = True
    punctual = True

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, "fixed")
        path = Path(p.hardware).expanduser() if p.hardware else hardware_path(robot)
        if path is None:
            raise ConfigError(f"{robot.name} has no hardware file next to its URDF: set the parameter hardware")
        hardware = read_tendon_hardware(path, robot, p.rate)
        self.driver = d = TendonDriver(hardware, p.dry_run, None, p.late_tolerance)
        become_real_time(p.priority)
        try:
            d.open()
        except HumanoidError:
            d.close()
            raise
        loose = [name for name, t in d.buses.transports.items() if t.silence not in HOLDING]
        text = f"drives of bus {', '.join(loose)} do not hold their wires if this computer fails: install brakes"
        self.health.check("silence", bool(loose), Level.WARN, text)
        self.message = joint_state(d.names)
        self.states = self.create_publisher(JointState, STATES, STREAM_OUT)
        self.power_state = self.create_publisher(String, "hardware_state", LATCHED)
        self.owner = CommandArbiter(self, COMMANDS)
        self.reports.append(self.owner.report)
        self.listen(JointState, COMMANDS, self.on_commands, COMMANDS_IN, takes_info=True)
        self.listen(JointState, TENSIONS, self.on_tensions)
        self.stop_topic = EmergencyStopTopic(
            self, hardware.estop_topic, lambda on: d.emergency_stop("topic", on, f"stop on {hardware.estop_topic}")
        )
        self.create_service(SetBool, "~/enable", answered(lambda on: d.enable() if on else d.disable()))
        self.create_service(SetBool, "~/emergency_stop", answered(lambda on: d.emergency_stop("~/emergency_stop", on)))
        self.create_service(Trigger, "~/stop", answered(lambda _: d.stop()))
        self.create_service(Trigger, "~/clear_faults", answered(lambda _: d.clear_faults()))
        self.said, self.end_at = "", float("nan")
        return hardware.rate

    # -- inputs -------------------------------------------------------------------------------------------------------

    def on_commands(self, m: JointState, info: Mapping[str, Any]) -> None:
        """Accept commands of the followed publisher; report and discard faulty ones."""
        if not self.owner.accepts(info, self.driver.hardware.command_timeout):
            return
        try:
            self.driver.command(m.name, m.position, m.velocity, m.effort, time.monotonic())
            self.health.clear(COMMANDS)
        except HumanoidError as e:
            self.health.report(COMMANDS, Level.WARN, str(e))

    def on_tensions(self, m: JointState) -> None:
        """Accept tensions of sensors with their own amplifier."""
        bad = len(m.effort) != len(m.name)
        text = f"{TENSIONS}: {len(m.effort)} numbers of effort for {len(m.name)} tendons: ignored"
        if not self.health.check(TENSIONS, bad, Level.WARN, text):
            self.driver.sense(m.name, m.effort, time.monotonic())

    # -- the tick -----------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        d = self.driver
        d.cycle()
        self.report_state()
        fresh = d.fresh
        if not fresh.any():
            return
        age = d.clock() - float(d.stamp[fresh].max())
        stamp = stamp_of(self.stamps.next(self.get_clock().now().nanoseconds - int(1e9 * age)))
        s, message = d.states, self.message
        if not fresh.all():
            message = joint_state([n for n, f in zip(d.names, fresh, strict=True) if f])
        self.states.publish(fill_joint_state(message, stamp, s.wire[fresh], -s.speed[fresh], s.tension[fresh]))

    def report_state(self) -> None:
        d, h = self.driver, self.health
        text = str(d.machine)
        if text != self.said:
            self.said = text
            self.power_state.publish(String(data=text))
            self.get_logger().info(text)
        h.check("state", d.machine.state in STOPPED, Level.ERROR, text)
        held = d.machine.state in (PowerState.STOPPING, PowerState.HOLD) and bool(d.machine.reason)
        h.check("held", held, Level.WARN, d.machine.reason)
        over = d.overloaded
        h.check("overload", bool(over), Level.ERROR, f"wires of bus {', '.join(over)} are released: overload")

    def values(self) -> dict[str, Any]:
        d = self.driver
        T, names = np.nan_to_num(d.states.tension), d.names
        return {
            "power_state": d.machine.state.name,
            "reason": d.machine.reason,
            "refusals": "; ".join(d.refusals()[:3]) if d.machine.state is PowerState.MONITOR else "",
            "tendons_fresh": int(d.fresh.sum()),
            "tension_peak": f"{T.max():.1f} {names[int(T.argmax())]}",
            **d.buses.figures(),
        }

    # -- the end ------------------------------------------------------------------------------------------------------

    def ending(self) -> bool:
        """Hold the wires, engage brakes and switch off before the process ends."""
        now = time.monotonic()
        if np.isnan(self.end_at):
            self.end_at = now + END_TIME
            self.driver.disable()
        return self.driver.machine.powered and now < self.end_at


def main() -> int:
    return main_of(TendonDriverNode)


if __name__ == "__main__":
    sys.exit(main())
