"""A simulated robot by its few numbers: what parameters, studies and worker processes pass around."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.simulation.engine import Engine, make_engine


@dataclass(frozen=True)
class Recipe:
    """What is simulated, and how.

    Attributes:
        robot: of the catalogue, or path of a URDF. base: 'fixed' or 'floating'. engine: see `make_engine`.
        step: of the integration [s]. gravity: [m/s^2]. friction: of the ground.
        stiffness: of each drive as a multiple of its effort limit [1/rad]. damping_ratio: of each drive.
    """

    robot: str = "lola"
    base: str = "floating"
    engine: str = "multibody"
    step: float = 0.001
    gravity: float = 9.81
    friction: float = 0.8
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
        from humanoid_control.simulation.contact import GroundSettings
        from humanoid_control.simulation.drives import default_gains
        from humanoid_control.simulation.world import WorldSettings

        for name, least in (("stiffness", 0.0), ("damping_ratio", 0.0), ("friction", 0.0), ("gravity", 0.0)):
            if not least <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be {least:g} or more, got {getattr(self, name):g}")
        robot = robot or load_robot(self.robot, self.base)
        settings = WorldSettings(step=self.step, gravity=self.gravity, ground=GroundSettings(friction=self.friction))
        return make_engine(robot, self.engine, settings, default_gains(robot, self.stiffness, self.damping_ratio))


VARIABLES = tuple(f.name for f in fields(Recipe) if f.type == "float")
