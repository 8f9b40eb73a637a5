"""Simulation: the world a robot moves in. Drives, ground contact, sensors, and the step that ties them together."""

from humanoid_control.simulation.world import World, WorldSettings

__all__ = ["World", "WorldSettings"]
