"""Short feasible motions."""

from __future__ import annotations

import numpy as np

from humanoid_control.performing import approach, standing_motion
from humanoid_control.performing.source_motion import rotations_z

OUTWARD, RAISED = 0.2, -0.4  # [rad] of the left foot; of both shoulders


def one_step(robot):
    """HRP-2 raises its arms and turns its left foot out, by a step: about three seconds."""
    posture = robot.q("neutral")
    end = standing_motion(robot, posture, 0.5)
    end.sole_rotation[:, 0] = rotations_z(np.asarray(OUTWARD)) @ end.sole_rotation[:, 0]
    for side in "lr":
        end.q[:, 7 + robot.index[f"{side}_shoulder_flexion"]] += RAISED
    return approach(robot, posture, end)
