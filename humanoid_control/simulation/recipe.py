"""A simulated robot by its few numbers: what parameters, studies and worker processes pass around."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.law import ContactSettings
from humanoid_control.simulation.drives.gains import DriveGains, default_gains, driven_gains
from humanoid_control.simulation.engine import Engine, make_engine
from humanoid_control.simulation.settings import IDEAL, TENDONS, WorldSettings


@dataclass(frozen=True)
class Recipe:
    """What is simulated, and how.

    Attributes:
        robot: of the catalogue, or path of a URDF. base: 'fixed' or 'floating'. engine: see `make_engine`.
        drives: 'ideal', 'rigid', 'elastic' or 'tendons'; tension: of the tendons then [N]; moment_arm_error: of the
            tendons, drawn with seed; see `WorldSettings`.
        step: of the integration [s]. gravity: [m/s^2].
        friction, slope: of the ground, a plane that rises forward [rad].
        stiffness: of each drive as a multiple of its effort limit [1/rad]. damping_ratio: of each drive.
    """

    robot: str = "lola"
    base: str = "floating"
    engine: str = "multibody"
    drives: str = IDEAL
    tension: float = 0.0
    moment_arm_error: float = 0.0
    seed: int = 0
    step: float = 0.001
    gravity: float = 9.81
    friction: float = 0.8
    slope: float = 0.0
    stiffness: float = 60.0
    damping_ratio: float = 1.0

    def changed(self, values: Mapping[str, Any]) -> Recipe:
        """A copy with other numbers.

        Raises:
            UnknownNameError: of a number that there is not.
        """
        for name in values:
            if name not in VARIABLES:
                raise UnknownNameError("variable", name, VARIABLES)
        return replace(self, **values)

    def build(self, robot: Robot | None = None) -> Engine:
        """The engine, at rest in the neutral posture; `robot` where it is loaded already.

        Raises:
            HumanoidError: as `load_robot` and `make_engine`; a number out of range.
        """
        for name in ("stiffness", "damping_ratio"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name):g}")
        robot = robot or load_robot(self.robot, self.base)
        ground, contact = Ground.plane(slope=self.slope), ContactSettings(friction=self.friction)
        same = {f.name: getattr(self, f.name) for f in fields(WorldSettings) if hasattr(self, f.name)}
        settings = WorldSettings(ground=ground, contact=contact, **same)
        settings.check()
        return make_engine(robot, self.engine, settings, self._gains(robot))

    def _gains(self, robot: Robot) -> DriveGains:
        make = default_gains if self.drives == IDEAL else driven_gains
        if self.drives == TENDONS:
            from humanoid_control.simulation.worlds.tension_world import tension_gains

            make = tension_gains
        return make(robot, self.stiffness, self.damping_ratio)


VARIABLES = tuple(f.name for f in fields(Recipe) if f.type == "float")
