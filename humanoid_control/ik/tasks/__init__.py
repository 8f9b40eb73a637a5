"""Tasks: what the robot is asked to do, each as rows of J v = v_desired."""

from humanoid_control.ik.tasks.base import Task, VectorTask, prepare, prepare_second_order
from humanoid_control.ik.tasks.biped import BipedTasks, lola_tasks
from humanoid_control.ik.tasks.frame import FrameTask, RelativeFrameTask
from humanoid_control.ik.tasks.gaze import GazeTask
from humanoid_control.ik.tasks.goals import HalfSpaceTask, LineTask, PlaneTask
from humanoid_control.ik.tasks.joint import JointTask
from humanoid_control.ik.tasks.orientation_task import OrientationTask
from humanoid_control.ik.tasks.point import CenterOfMass, FramePoint, LimbCenterOfMass, Point
from humanoid_control.ik.tasks.point_task import PointTask
from humanoid_control.ik.tasks.points import PointsTask
from humanoid_control.ik.tasks.posture import PostureTask

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
