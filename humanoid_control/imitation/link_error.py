"""Position error of every link: how far each tracked point is from where it should be."""

from __future__ import annotations

import numpy as np

from humanoid_control.imitation.scaling import POINTS, Targets
from humanoid_control.robots import Robot

MEAN = "mean"
LINKS = (*POINTS, MEAN)


def reached_points(robot: Robot, joints: np.ndarray) -> np.ndarray:
    """Positions (T, 7, 3) of the tracked points for joint angles (T, n), world frame [m]."""
    frames = [robot.point_frame(p) for p in POINTS]
    return np.array([robot.frame_positions(robot.q(row), frames) for row in joints])


def link_errors(reached: np.ndarray, targets: Targets) -> dict[str, np.ndarray]:
    """Error of each link frame by frame (Dube 2012, section 6.1).

    The error of a link is the distance between the desired and the actual position of its end point: spine at the
    sternum, clavicles at the glenohumeral centres, upper arms at the elbows, lower arms at the wrists. "mean" is the
    mean of the seven in each frame.

    Args:
        reached: (T, 7, 3) positions of the tracked points, in the frame of the targets [m].
        targets: of the same robot and length.

    Returns:
        Name of LINKS -> (T,) [m].
    """
    distance = np.linalg.norm(reached - targets.positions, axis=2)
    errors = {name: distance[:, k] for k, name in enumerate(POINTS)}
    return errors | {MEAN: distance.mean(axis=1)}
