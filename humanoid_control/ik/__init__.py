"""Whole-body inverse kinematics: tasks, limits, self-collision rows, and one solver tick."""

from humanoid_control.ik.follower import FollowerSettings, TargetFollower
from humanoid_control.ik.momentum_map import MomentumMap, momentum_map
from humanoid_control.ik.momentum_tasks import AngularMomentumTask, LinearMomentumTask
from humanoid_control.ik.target_filter import FilterSettings, TargetFilter, Verdict
from humanoid_control.ik.tasks import (
    BipedTasks,
    CenterOfMass,
    FramePoint,
    FrameTask,
    GazeTask,
    HalfSpaceTask,
    JointTask,
    LimbCenterOfMass,
    LineTask,
    OrientationTask,
    PlaneTask,
    Point,
    PointsTask,
    PointTask,
    PostureTask,
    RelativeFrameTask,
    Task,
    VectorTask,
    lola_tasks,
)
from humanoid_control.ik.velocity_ik import IkResult, IkSettings, VelocityIk

__all__ = [
    "AngularMomentumTask",
    "BipedTasks",
    "CenterOfMass",
    "FilterSettings",
    "FollowerSettings",
    "FramePoint",
    "FrameTask",
    "GazeTask",
    "HalfSpaceTask",
    "IkResult",
    "IkSettings",
    "JointTask",
    "LimbCenterOfMass",
    "LineTask",
    "LinearMomentumTask",
    "MomentumMap",
    "OrientationTask",
    "PlaneTask",
    "Point",
    "PointTask",
    "PointsTask",
    "PostureTask",
    "RelativeFrameTask",
    "TargetFilter",
    "TargetFollower",
    "Task",
    "VectorTask",
    "VelocityIk",
    "Verdict",
    "lola_tasks",
    "momentum_map",
]
