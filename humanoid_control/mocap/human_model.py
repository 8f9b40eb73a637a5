"""Our own kinematic model of a person: lengths, joints, and where the markers are for given joint angles.

The joints are those Dube 2012 compares robots with (Table 5.1), and legs. Zero is upright standing, arms at the sides,
elbows and knees straight. Axes: x forward, y left, z up. Right-hand joints are the mirror image of the left ones, so
equal angles on both sides give a symmetric posture.

    name         meaning of positive                     turns about, left / right
    pelvis_x y z where the middle of the hips is [m], world
    pelvis_yaw   turn left                               +z
    pelvis_pitch tip forward                             +y
    pelvis_roll  tip to the right                        +x
    wt_rot       chest turns left                        +z        spine, in this order, one joint in the waist
    wt_flex      bend forward                            +y
    wt_lat       bend to the right                       +x
    sg_prot      shoulder forward                        -z / +z   clavicle, about its inner end at the sternum
    sg_elev      shoulder up                             +x / -x
    gh_flex      arm forward and up                      -y        upper arm, in this order, relative to the chest
    gh_abd       arm away from the body                  +x / -x
    gh_rot       inward turn about the upper arm         -z / +z
    el_flex      bend                                    -y
    hp_flex      thigh forward and up                    -y        leg, in this order
    hp_abd       thigh away from the other               +x / -x
    hp_rot       inward turn about the thigh             -z / +z
    kn_flex      bend                                    +y
    an_flex      toes up                                 -y


Also here:

* Legs of the human model: the joint angles that put the feet where they should stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from humanoid_control.mocap.formats.common import X, Y, Z, rotation

# -------- Our own kinematic model of a person: lengths, joints, and where the markers are for given joint angles

SIDES = {"l": 1, "r": -1}

MARKERS = ("Forehead", "Chin", "Sternum", *(
    f"{part}_{side}" for part in ("GH", "Elbow", "Wrist", "Hip", "Knee", "Ankle", "Foot") for side in "LR"
))  # fmt: skip

_TRUNK_RANGES = {"wt_flex": (-30, 90), "wt_lat": (-35, 35), "wt_rot": (-30, 30)}
_SIDE_RANGES = {
    "sg_prot": (-30, 30), "sg_elev": (0, 35), "gh_flex": (-60, 180), "gh_abd": (-75, 180), "gh_rot": (-90, 90),
    "el_flex": (0, 150), "hp_flex": (-20, 120), "hp_abd": (-30, 45), "hp_rot": (-45, 45), "kn_flex": (0, 140),
    "an_flex": (-50, 30),
}  # fmt: skip
JOINT_RANGES: dict[str, tuple[float, float]] = {
    **_TRUNK_RANGES,
    **{f"{side}_{joint}": limits for side in SIDES for joint, limits in _SIDE_RANGES.items()},
}
"""Range of every joint of a person [degrees]. Trunk and arms: Dube 2012, Table 5.1, column Human; legs: usual clinical
values (AAOS)."""

Posture = Mapping[str, np.ndarray]
"""Joint name to (T,) values [rad], pelvis_x y z in [m]; a joint that is not there is zero."""


@dataclass(frozen=True)
class HumanBody:
    """Lengths of the model [m]: a person of 1.70 m.

    The upper limb is that of Dube 2012, Table 2.1, measured on the outside: shoulder girdle 465 mm wide, upper arm
    365 mm, forearm 270 mm. The shoulder joint lies one radius of the upper arm (circumference 316 mm, so 50 mm) under
    the surface: joints 364 mm apart and an upper arm of 315 mm. Heights and legs are Winter 2009 (Fig. 4.1) as
    shares of the stature: hip 0.530, shoulder 0.818, chin 0.870, eyes 0.936, thigh 0.245, shank 0.246, ankle 0.039,
    foot 0.152. The distance of the hips, the height of the waist joint and what lies in front of or behind the trunk's
    axis are ours, within what recordings show.
    """

    hip_width: float = 0.170
    waist_height: float = 0.100  # above the middle of the hips
    sternum_forward: float = 0.070
    sternum_height: float = 0.360  # above the waist
    shoulder_height: float = 0.390  # above the waist: (0.818 - 0.530) 1.70 m less the waist height
    shoulder_width: float = 0.364
    upper_arm: float = 0.315
    forearm: float = 0.270
    chin_forward: float = 0.100
    chin_height: float = 0.478  # above the waist
    forehead_forward: float = 0.105
    forehead_height: float = 0.620
    thigh: float = 0.4165
    shank: float = 0.4182
    ankle_height: float = 0.0663
    foot_forward: float = 0.150  # ankle to the marker on the toes
    foot_height: float = 0.025  # of that marker above the sole


def forward_kinematics(posture: Posture, body: HumanBody | None = None) -> np.ndarray:
    """Where the markers are.

    Args:
        posture: joint values, each (T,).
        body: lengths; by default those of `HumanBody`.

    Returns:
        (T, 17, 3) positions of `MARKERS` [m], world.
    """
    body = body or HumanBody()
    n_frames = max(len(values) for values in posture.values())

    def angle(joint: str, sign: int = 1) -> np.ndarray:
        return sign * np.asarray(posture.get(joint, np.zeros(n_frames)))

    p_hips = np.stack([angle(f"pelvis_{axis}") for axis in "xyz"], axis=1)
    R_pelvis = _chain((Z, angle("pelvis_yaw")), (Y, angle("pelvis_pitch")), (X, angle("pelvis_roll")))
    R_chest = R_pelvis @ _chain((Z, angle("wt_rot")), (Y, angle("wt_flex")), (X, angle("wt_lat")))
    p_waist = p_hips + R_pelvis @ np.array([0.0, 0.0, body.waist_height])
    found = {
        "Forehead": p_waist + R_chest @ np.array([body.forehead_forward, 0.0, body.forehead_height]),
        "Chin": p_waist + R_chest @ np.array([body.chin_forward, 0.0, body.chin_height]),
        "Sternum": p_waist + R_chest @ np.array([body.sternum_forward, 0.0, body.sternum_height]),
    }
    for side, s in SIDES.items():
        clavicle = np.array(
            [-body.sternum_forward, s * body.shoulder_width / 2, body.shoulder_height - body.sternum_height]
        )
        R_clavicle = R_chest @ _chain((Z, angle(f"{side}_sg_prot", -s)), (X, angle(f"{side}_sg_elev", s)))
        R_arm = R_chest @ _ball(angle, f"{side}_gh", s)
        R_forearm = R_arm @ rotation(Y, angle(f"{side}_el_flex", -1))
        R_thigh = R_pelvis @ _ball(angle, f"{side}_hp", s)
        R_shank = R_thigh @ rotation(Y, angle(f"{side}_kn_flex"))
        R_foot = R_shank @ rotation(Y, angle(f"{side}_an_flex", -1))
        up = side.upper()
        found[f"GH_{up}"] = found["Sternum"] + R_clavicle @ clavicle
        found[f"Elbow_{up}"] = found[f"GH_{up}"] - body.upper_arm * R_arm[..., Z]
        found[f"Wrist_{up}"] = found[f"Elbow_{up}"] - body.forearm * R_forearm[..., Z]
        found[f"Hip_{up}"] = p_hips + R_pelvis @ np.array([0.0, s * body.hip_width / 2, 0.0])
        found[f"Knee_{up}"] = found[f"Hip_{up}"] - body.thigh * R_thigh[..., Z]
        found[f"Ankle_{up}"] = found[f"Knee_{up}"] - body.shank * R_shank[..., Z]
        sole_to_marker = np.array([body.foot_forward, 0.0, body.foot_height - body.ankle_height])
        found[f"Foot_{up}"] = found[f"Ankle_{up}"] + R_foot @ sole_to_marker
    return np.stack([found[marker] for marker in MARKERS], axis=1)


def _ball(angle: Callable[..., np.ndarray], joint: str, s: int) -> np.ndarray:
    """(T, 3, 3) of a ball joint: flexion, then abduction, then inward rotation."""
    return _chain((Y, angle(f"{joint}_flex", -1)), (X, angle(f"{joint}_abd", s)), (Z, angle(f"{joint}_rot", -s)))


def _chain(*turns: tuple[int, np.ndarray]) -> np.ndarray:
    """(T, 3, 3) product of rotations about coordinate axes, the first one outermost."""
    R = rotation(*turns[0])
    for axis, values in turns[1:]:
        R = R @ rotation(axis, values)
    return R


# -------- Legs of the human model: the joint angles that put the feet where they should stand


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
