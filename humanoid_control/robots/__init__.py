"""Robots: a catalogue name or a URDF path becomes a Robot (model, limits, points, feet, collision shapes)."""

from humanoid_control.robots.catalogue import CATALOGUE, MODELS, REFERENCES, load_robot
from humanoid_control.robots.robot import Robot

__all__ = ["CATALOGUE", "MODELS", "REFERENCES", "Robot", "load_robot"]
