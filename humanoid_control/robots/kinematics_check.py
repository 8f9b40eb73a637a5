"""A Denavit-Hartenberg table held against the kinematics of the URDF as pinocchio computes them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.robots.denavit_hartenberg import DenavitHartenberg
from humanoid_control.robots.robot import Robot


def difference_from_urdf(
    robot: Robot, table: DenavitHartenberg, postures: int = 100, seed: int = 0
) -> tuple[float, float, float]:
    """The largest differences between a table and the robot's model, over random postures within the limits.

    Args:
        robot: the one that the table was derived from.
        table: one of its chains.
        postures: how many; seed: of the random numbers.

    Returns:
        Of the tip's position [m], of its rotation matrix, and of the Jacobian (m per rad, and 1), each the largest
        absolute difference of any entry.
    """
    rng = np.random.default_rng(seed)
    model, data = robot.model, robot.model.createData()
    columns = [robot.joint_index(name) for name in table.joint_names]
    tip = robot.points[table.tip] if table.tip in robot.points else model.getFrameId(table.tip)
    base = model.getFrameId(table.base)
    lower, upper = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
    worst = np.zeros(3)
    for _ in range(postures):
        joints = rng.uniform(lower, upper)
        pin.computeJointJacobians(model, data, robot.q(joints))
        pin.updateFramePlacements(model, data)
        X = data.oMf[base].inverse() * data.oMf[tip]
        J = pin.getFrameJacobian(model, data, tip, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[
            :, robot.iv + np.array(columns)
        ]
        R = data.oMf[base].rotation.T
        pose = table.pose(joints[columns])
        theirs = table.jacobian(joints[columns])
        worst = np.maximum(
            worst,
            [
                np.abs(pose[:3, 3] - X.translation).max(),
                np.abs(pose[:3, :3] - X.rotation).max(),
                np.abs(theirs - np.vstack([R @ J[:3], R @ J[3:]])).max(),
            ],
        )
    return float(worst[0]), float(worst[1]), float(worst[2])
