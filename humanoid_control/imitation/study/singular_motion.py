"""A motion made to pass the singular posture of the shoulder."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from humanoid_control.imitation.scaling import Targets
from humanoid_control.robots import Robot

RATE = 50.0  # [Hz] of the source's recordings
PIECE = 6.0  # [s] each: raise the arms, swing them forward and back, raise them further
ABDUCTION = (20.0, 90.0, 90.0, 130.0)  # [deg] at the ends of the pieces
SWING = 40.0  # [deg] forward, in the middle of the second piece
ELBOW = 60.0  # [deg] flexion


def singular_motion(robot: Robot) -> Targets:
    """Both arms rise sideways to 90 degrees, swing forward and back there, and rise on, at 12 degrees a second.

    The trunk stands still. With the arms straight out to the sides the axes of flexion and rotation line up, and the
    forward swing that follows is about the direction that is lost there (Dube 2012, section 3.1.1).

    Args:
        robot: whose segment lengths the targets have; with a fixed base.
    """
    n = round(PIECE * RATE)
    s = np.linspace(0.0, 1.0, n, endpoint=False)
    ease = s**3 * (10 - 15 * s + 6 * s**2)
    abduction = np.radians(np.concatenate([a + (b - a) * ease for a, b in pairwise(ABDUCTION)]))
    swing = np.zeros(3 * n)
    swing[n : 2 * n] = np.radians(SWING) * (1 - np.cos(2 * np.pi * s)) / 2

    sternum, left, right = robot.point_positions(robot.q("zero"), ["sternum", "l_gh", "r_gh"])
    length = robot.segment_lengths()
    out = np.empty((3 * n, 7, 3))
    out[:, 0], out[:, 1], out[:, 2] = sternum, left, right
    for k, side in enumerate((1.0, -1.0)):
        upper = np.stack(
            [np.sin(abduction) * np.sin(swing), side * np.sin(abduction) * np.cos(swing), -np.cos(abduction)], axis=1
        )
        forward = np.stack([np.cos(swing), -side * np.sin(swing), np.zeros(3 * n)], axis=1)
        lower = np.cos(np.radians(ELBOW)) * upper + np.sin(np.radians(ELBOW)) * forward
        out[:, 3 + k] = out[:, 1 + k] + length["upper_arm"] * upper
        out[:, 5 + k] = out[:, 3 + k] + length["lower_arm"] * lower
    return Targets("arms through 90 degrees abduction", RATE, out, out, ())
