"""Reach with one hand: the whole-body inverse kinematics in ten lines, every limit of the robot kept."""

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

reached = robot.point_positions(q, ["r_wrist"])[0]
distance = np.linalg.norm(reached - hand.X_target.translation)
print(f"the wrist is {1e6 * distance:.1f} um from its target")
assert distance < 1e-4
