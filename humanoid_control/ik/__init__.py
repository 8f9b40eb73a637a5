"""Inverse kinematics of the whole body: tasks are goals, limits are constraints, a solver computes the motion.

    import numpy as np

    from humanoid_control.ik import FrameTask, PostureTask, WholeBodyIk
    from humanoid_control.robots import load_robot

    robot = load_robot("hrp2")
    q = robot.q()
    hand = FrameTask(robot, "r_wrist")
    hand.set_target_from(q)
    hand.X_target.translation += np.array([0.2, 0.0, 0.1])
    posture = PostureTask(robot, weight=0.01)
    solver = WholeBodyIk(robot)
    for _ in range(1000):
        q = solver.step(q, [hand, posture], dt=0.002).q

`TargetFollower` does this for named targets that come and go.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.ik.follower import FollowerSettings as FollowerSettings
    from humanoid_control.ik.follower import TargetFollower as TargetFollower
    from humanoid_control.ik.free_velocities import DofSelection as DofSelection
    from humanoid_control.ik.integrate import AdamsMoulton as AdamsMoulton
    from humanoid_control.ik.integrate import explicit_euler as explicit_euler
    from humanoid_control.ik.limits.idle_joints import IdleJointLimit as IdleJointLimit
    from humanoid_control.ik.limits.limit import AccelerationLimit as AccelerationLimit
    from humanoid_control.ik.limits.limit import ConfigurationLimit as ConfigurationLimit
    from humanoid_control.ik.limits.limit import IkState as IkState
    from humanoid_control.ik.limits.limit import JointSideLimit as JointSideLimit
    from humanoid_control.ik.limits.limit import Limit as Limit
    from humanoid_control.ik.limits.limit import VelocityLimit as VelocityLimit
    from humanoid_control.ik.limits.limit import clamp_bounds as clamp_bounds
    from humanoid_control.ik.limits.self_collision import SelfCollisionLimit as SelfCollisionLimit
    from humanoid_control.ik.limits.self_collision import default_limits as default_limits
    from humanoid_control.ik.solver import IkSettings as IkSettings
    from humanoid_control.ik.solver import IkSolver as IkSolver
    from humanoid_control.ik.solver import StepReport as StepReport
    from humanoid_control.ik.target_filter import SampleVerdict as SampleVerdict
    from humanoid_control.ik.target_filter import TargetFilter as TargetFilter
    from humanoid_control.ik.target_filter import TargetFilterSettings as TargetFilterSettings
    from humanoid_control.ik.tasks.biped import BipedTasks as BipedTasks
    from humanoid_control.ik.tasks.biped import lola_tasks as lola_tasks
    from humanoid_control.ik.tasks.centroidal import AngularMomentumTask as AngularMomentumTask
    from humanoid_control.ik.tasks.centroidal import CenterOfMass as CenterOfMass
    from humanoid_control.ik.tasks.centroidal import CenterOfMassTask as CenterOfMassTask
    from humanoid_control.ik.tasks.centroidal import LimbCenterOfMass as LimbCenterOfMass
    from humanoid_control.ik.tasks.centroidal import LinearMomentumTask as LinearMomentumTask
    from humanoid_control.ik.tasks.frames import FrameTask as FrameTask
    from humanoid_control.ik.tasks.frames import GazeTask as GazeTask
    from humanoid_control.ik.tasks.frames import OrientationTask as OrientationTask
    from humanoid_control.ik.tasks.frames import RelativeFrameTask as RelativeFrameTask
    from humanoid_control.ik.tasks.joints import JointTask as JointTask
    from humanoid_control.ik.tasks.joints import PostureTask as PostureTask
    from humanoid_control.ik.tasks.points import FramePoint as FramePoint
    from humanoid_control.ik.tasks.points import HalfSpaceTask as HalfSpaceTask
    from humanoid_control.ik.tasks.points import LineTask as LineTask
    from humanoid_control.ik.tasks.points import PlaneTask as PlaneTask
    from humanoid_control.ik.tasks.points import Point as Point
    from humanoid_control.ik.tasks.points import PointsTask as PointsTask
    from humanoid_control.ik.tasks.points import PointTask as PointTask
    from humanoid_control.ik.tasks.task import Task as Task
    from humanoid_control.ik.tasks.task import VectorTask as VectorTask
    from humanoid_control.ik.whole_body_ik import IkReport as IkReport
    from humanoid_control.ik.whole_body_ik import IkResult as IkResult
    from humanoid_control.ik.whole_body_ik import IkStatus as IkStatus
    from humanoid_control.ik.whole_body_ik import WholeBodyIk as WholeBodyIk

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "follower": ["FollowerSettings", "TargetFollower"],
        "free_velocities": ["DofSelection"],
        "integrate": ["AdamsMoulton", "explicit_euler"],
        "limits.idle_joints": ["IdleJointLimit"],
        "limits.limit": [
            "AccelerationLimit",
            "ConfigurationLimit",
            "IkState",
            "JointSideLimit",
            "Limit",
            "VelocityLimit",
            "clamp_bounds",
        ],
        "limits.self_collision": ["SelfCollisionLimit", "default_limits"],
        "solver": ["IkSettings", "IkSolver", "StepReport"],
        "target_filter": ["SampleVerdict", "TargetFilter", "TargetFilterSettings"],
        "tasks.biped": ["BipedTasks", "lola_tasks"],
        "tasks.centroidal": [
            "AngularMomentumTask",
            "CenterOfMass",
            "CenterOfMassTask",
            "LimbCenterOfMass",
            "LinearMomentumTask",
        ],
        "tasks.frames": ["FrameTask", "GazeTask", "OrientationTask", "RelativeFrameTask"],
        "tasks.joints": ["JointTask", "PostureTask"],
        "tasks.points": ["FramePoint", "HalfSpaceTask", "LineTask", "PlaneTask", "Point", "PointTask", "PointsTask"],
        "tasks.task": ["Task", "VectorTask"],
        "whole_body_ik": ["IkReport", "IkResult", "IkStatus", "WholeBodyIk"],
    },
    public=[
        "AccelerationLimit",
        "AngularMomentumTask",
        "BipedTasks",
        "CenterOfMassTask",
        "ConfigurationLimit",
        "DofSelection",
        "FollowerSettings",
        "FrameTask",
        "GazeTask",
        "HalfSpaceTask",
        "IdleJointLimit",
        "IkReport",
        "IkResult",
        "IkSettings",
        "IkState",
        "IkStatus",
        "JointSideLimit",
        "JointTask",
        "Limit",
        "LineTask",
        "LinearMomentumTask",
        "OrientationTask",
        "PlaneTask",
        "PointTask",
        "PointsTask",
        "PostureTask",
        "RelativeFrameTask",
        "SampleVerdict",
        "SelfCollisionLimit",
        "TargetFilterSettings",
        "TargetFollower",
        "Task",
        "VectorTask",
        "VelocityLimit",
        "WholeBodyIk",
        "default_limits",
    ],
)
