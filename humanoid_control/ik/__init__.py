"""Whole-body inverse kinematics: tasks, limits, self-collision rows, and one solver tick."""

from humanoid_control.ik.tasks import FrameTask, PointTask, PostureTask, Task
from humanoid_control.ik.velocity_ik import IkResult, IkSettings, VelocityIk

__all__ = ["FrameTask", "IkResult", "IkSettings", "PointTask", "PostureTask", "Task", "VelocityIk"]
