"""All solvers, and the robots and tasks they are tried with."""

from functools import cache

from humanoid_control.ik import DofSelection, PointTask, WholeBodyIk, lola_tasks
from humanoid_control.ik.null_space import (
    BoundedNorm,
    DampedLeastSquares,
    Hierarchy,
    ResolvedAcceleration,
    ResolvedRate,
    TruncatedSvd,
)
from humanoid_control.ik.position import LevenbergMarquardt, NewtonRaphson
from humanoid_control.robots import load_robot

EXACT = [ResolvedRate, DampedLeastSquares, TruncatedSvd, BoundedNorm, Hierarchy, ResolvedAcceleration]


@cache
def robot_of(name="lola", base="floating"):
    return load_robot(name, base)


def biped(name="lola"):
    robot = robot_of(name)
    tasks = lola_tasks(robot)
    return robot, tasks, DofSelection(robot, tasks.held)


def made(cls, robot, dofs, settings=None, objectives=()):
    if cls in (NewtonRaphson, LevenbergMarquardt, WholeBodyIk):
        return cls(robot, dofs=dofs)
    return cls(robot, objectives, settings, dofs)


def arm_of(robot):
    start = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    task = PointTask(robot, "l_wrist", name="hand")
    task.set_target((0.0, 0.0, 0.0))
    return task, start
