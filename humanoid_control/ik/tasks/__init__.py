"""Tasks: what the robot is asked to do, each as rows of J v = v_desired."""

from humanoid_control.ik.tasks.biped import BipedTasks, lola_tasks
from humanoid_control.ik.tasks.frames import FrameTask, GazeTask, OrientationTask, RelativeFrameTask
from humanoid_control.ik.tasks.geometric import HalfSpaceTask, LineTask, PlaneTask
from humanoid_control.ik.tasks.joints import JointTask, PostureTask
from humanoid_control.ik.tasks.points import CenterOfMass, FramePoint, LimbCenterOfMass, Point, PointsTask, PointTask
from humanoid_control.ik.tasks.task import Task, VectorTask, prepare, prepare_second_order

__all__ = [
    "BipedTasks",
    "CenterOfMass",
    "FramePoint",
    "FrameTask",
    "GazeTask",
    "HalfSpaceTask",
    "JointTask",
    "LimbCenterOfMass",
    "LineTask",
    "OrientationTask",
    "PlaneTask",
    "Point",
    "PointTask",
    "PointsTask",
    "PostureTask",
    "RelativeFrameTask",
    "Task",
    "VectorTask",
    "lola_tasks",
    "prepare",
    "prepare_second_order",
]
