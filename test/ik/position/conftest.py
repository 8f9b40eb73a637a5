"""Problems for solvers by position, and the same ones solved by scipy."""

from functools import cache

import numpy as np
import pinocchio as pin

from humanoid_control.ik import FrameTask
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import load_robot


@cache
def robot_of(name, base):
    return load_robot(name, base)


def random_joints(robot, rng, share=0.5):
    middle, half = 0.5 * (robot.lower + robot.upper), 0.5 * (robot.upper - robot.lower)
    return middle + share * half * rng.uniform(-1, 1, robot.n)


def hand_problem(rng, name="wabian2", reachable=True, orientation=1.0):
    """A pose of the left hand, from a random posture, and another random posture to start from."""
    robot = robot_of(name, "fixed")
    task = FrameTask(robot, "l_hand", orientation_weight=orientation, name="hand")
    goal = robot.q(random_joints(robot, rng))
    prepare(robot, robot.data, goal)
    X = robot.data.oMf[task.frame]
    task.X_target = pin.SE3(X.rotation, X.translation + (0 if reachable else 1.0) * np.array([0.5, 1.0, 0.2]))
    return robot, [task], robot.q(random_joints(robot, rng, 0.3))
