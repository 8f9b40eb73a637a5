"""Legs of the human model: the joint angles that put the feet where they should stand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from humanoid_control.capture.human import SIDES, HumanBody, Posture
from humanoid_control.capture.rotations import X, Y, Z, rotation


def legs_to_feet(
    pelvis: Posture, ankles: Mapping[str, np.ndarray], toes_down: Mapping[str, np.ndarray], body: HumanBody
) -> dict[str, np.ndarray]:
    """Inverse kinematics of both legs, in closed form. The feet keep pointing along world x.

    The knee follows from the distance of hip and ankle by the law of cosines. Thigh, shank and foot lie in one plane,
    which the line from hip to ankle and the direction of the foot span; it gives the orientation of the thigh.

    Args:
        pelvis: at least pelvis_x ... pelvis_roll, each (T,).
        ankles: wanted ankle (T, 3) by side "l", "r" [m], world; below the hip and nearer than the length of the leg.
        toes_down: wanted slope of the foot (T,) by side [rad]; 0 is level.
        body: lengths.

    Returns:
        The leg joints of a posture, each (T,) [rad].
    """
    zero = np.zeros(len(ankles["l"]))
    yaw, pitch, roll, *p = (np.asarray(pelvis.get(f"pelvis_{name}", zero)) for name in ("yaw", "pitch", "roll", *"xyz"))
    R_WP = rotation(Z, yaw) @ rotation(Y, pitch) @ rotation(X, roll)
    joints: dict[str, np.ndarray] = {}
    for side, s in SIDES.items():
        leg = ankles[side] - np.stack(p, axis=1) - R_WP @ np.array([0.0, s * body.hip_width / 2, 0.0])
        length = np.linalg.norm(leg, axis=1)
        cosine = (length**2 - body.thigh**2 - body.shank**2) / (2 * body.thigh * body.shank)
        knee = np.arccos(np.clip(cosine, -1.0, 1.0))
        foot = np.stack([np.cos(toes_down[side]), zero, -np.sin(toes_down[side])], axis=1)
        down = leg / length[:, None]
        y = np.cross(foot, down)
        y /= np.linalg.norm(y, axis=1, keepdims=True)
        # The bent knee puts the thigh in front of the line from hip to ankle by this angle, within the plane.
        ahead = np.arctan2(body.shank * np.sin(knee), body.thigh + body.shank * np.cos(knee))[:, None]
        z = -np.cos(ahead) * down - np.sin(ahead) * np.cross(down, y)
        R_WT = np.stack([np.cross(y, z), y, z], axis=2)
        R_WS = R_WT @ rotation(Y, knee)
        R = R_WP.swapaxes(1, 2) @ R_WT  # turns about y, then the new x, then the new z
        flexion, turn = np.arctan2(R[:, 0, 2], R[:, 2, 2]), np.arctan2(R[:, 1, 0], R[:, 1, 1])
        abduction = -np.arcsin(np.clip(R[:, 1, 2], -1.0, 1.0))
        joints |= {
            f"{side}_hp_flex": -flexion,
            f"{side}_hp_abd": s * abduction,
            f"{side}_hp_rot": -s * turn,
            f"{side}_kn_flex": knee,
            f"{side}_an_flex": np.arctan2((foot * R_WS[..., Z]).sum(axis=1), (foot * R_WS[..., X]).sum(axis=1)),
        }
    return joints
