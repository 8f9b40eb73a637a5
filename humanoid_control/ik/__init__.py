"""Whole-body inverse kinematics: tasks, limits, self-collision rows, and one solver tick."""

from humanoid_control.ik.follower import FollowerSettings, TargetFollower
from humanoid_control.ik.target_filter import FilterSettings, TargetFilter, Verdict
from humanoid_control.ik.tasks import FrameTask, PointsTask, PostureTask, Task
from humanoid_control.ik.velocity_ik import IkResult, IkSettings, VelocityIk

__all__ = [
    "FilterSettings",
    "FollowerSettings",
    "FrameTask",
    "IkResult",
    "IkSettings",
    "PointsTask",
    "PostureTask",
    "TargetFilter",
    "TargetFollower",
    "Task",
    "VelocityIk",
    "Verdict",
]
