"""Simulation: the world a robot moves in. Drives, ground contact, sensors, and the step that ties them together."""

from humanoid_control.simulation.engine import ENGINES, Engine, make_engine
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.multibody_world import World

__all__ = ["ENGINES", "Engine", "World", "WorldSettings", "make_engine"]
