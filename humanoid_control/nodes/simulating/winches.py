"""Winches of the simulated robot: tendon commands and wire faults."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sensor_msgs.msg import JointState

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.nodes.base.command_owner import COMMANDS_IN, CommandArbiter
from humanoid_control.nodes.base.health import Level
from humanoid_control.simulation import Engine
from humanoid_control.simulation.sensors.tendon_sensor import parse_winch_faults
from humanoid_control.simulation.settings import WINCHES
from humanoid_control.simulation.worlds.winch_world import WinchedRobot

SILENCE = 0.1  # [s] of simulated time without commands after which drives hold their wires
TOPIC = "tendon_commands"
OF_SENSORS = ("stuck", "missing")  # sensor faults, which do not affect the drives


class SimulatorWinches:
    """Subscription of tendon_commands, with supervision of the drives.

    Commands are sensor_msgs/JointState: velocity (rate of the wire) and effort (tension), effort alone, or position
    (wire length, with feed-forward effort); see `WinchLoop.take`.
    """

    def __init__(self, node: Any, engine: Engine) -> None:
        """Subscribe, if the engine has winches.

        Raises:
            HumanoidError: if a parameter is invalid.
        """
        self.node = node
        self.robot = engine if isinstance(engine, WinchedRobot) else None
        if self.robot is None:
            return
        p = node.params
        if p.tendon_stiffness:
            w = self.robot.winches
            for unit in (w.record.unit, w.loop.record.unit):
                unit.stiffness[:] *= p.tendon_stiffness / w.loop.record.unit.stiffness
        self._faults: dict[str, tuple[str, float]] = {}
        self._text = ""
        self._holding = True
        self.arbiter = CommandArbiter(node, TOPIC)
        node.listen(JointState, TOPIC, self.on_command, COMMANDS_IN, takes_info=True)
        self.take_faults(parse_winch_faults(p.tendon_faults, self.robot.winches.names))
        self._text = p.tendon_faults

    def on_command(self, m: JointState, info: Mapping[str, Any]) -> None:
        """Apply tendon commands; the filled fields select their kind."""
        assert self.robot is not None
        if not self.arbiter.accepts(info, self.node.params.command_timeout):
            return
        loop, health = self.robot.winches.loop, self.node.health
        try:
            loop.take(m.name, m.position, m.velocity, m.effort)
            health.clear(TOPIC)
        except HumanoidError as e:
            health.report(TOPIC, Level.WARN, str(e))
            return
        self.robot.commanded, self._holding = self.robot.time, False

    def watch(self) -> None:
        """Hold wires without commands, and apply new faults, every period."""
        if self.robot is None:
            return
        health = self.node.health
        self.arbiter.report(time.monotonic())
        if not self._holding and self.robot.time - self.robot.commanded > SILENCE:
            self._holding = True
            self.robot.hold_tendons()
        health.check("wires", self._holding, Level.WARN, f"no {TOPIC}: the winches hold their wires")
        loop = self.robot.winches.loop
        deaf = [name for name, d in zip(loop.names, loop.deaf, strict=True) if d]
        health.check("deaf_sensor", bool(deaf), Level.WARN, f"tension by current, the sensor is silent: {deaf[:5]}")
        self.take_parameter()

    def take_parameter(self) -> None:
        """Apply changed faults, also before a reset: wires repaired later would hang slack."""
        if self.robot is None:
            return
        text, health = self.node.params.tendon_faults, self.node.health
        if text == self._text:
            return
        self._text = text
        try:
            self.take_faults(parse_winch_faults(text, self.robot.winches.names))
            health.clear("tendon_faults")
        except HumanoidError as e:
            health.report("tendon_faults", Level.WARN, str(e))

    def take_faults(self, faults: dict[str, tuple[str, float]]) -> None:
        assert self.robot is not None
        for name in self._faults:
            if faults.get(name) != self._faults[name]:
                self.robot.set_tendon_fault(name, "mended")
        for name, (fault, size) in faults.items():
            if self._faults.get(name) != (fault, size) and fault not in OF_SENSORS:
                self.robot.set_tendon_fault(name, "snapped" if fault == "broken" else fault, size)
        self._faults = faults

    def sensor_faults(self) -> dict[str, str]:
        return {name: fault for name, (fault, _) in self._faults.items() if fault in OF_SENSORS}

    def restart(self) -> None:
        """Hold the wires and repeat the faults."""
        if self.robot is not None:
            faults, self._faults, self._holding = self._faults, {}, True
            self.take_faults(faults)


def check_winch_parameters(p: Any) -> None:
    """Reject winch parameters without winches.

    Raises:
        ConfigError: if there is one.
    """
    if p.drives != WINCHES and (p.path_friction or p.winch_error):
        name = "path_friction" if p.path_friction else "winch_error"
        raise ConfigError(f"{name} applies to drives 'winches', not to '{p.drives}'")
