"""Kinematic model of a person: lengths, joints, marker positions, and inverse kinematics of the legs.

The joints are those of Dube 2012 (Table 5.1), and legs. Zero is upright, arms at the sides, elbows and knees straight.
Axes: x forward, y left, z up. Right joints mirror left ones: equal angles give a symmetric posture.

    name         meaning of positive                     turns about, left / right
    pelvis_x y z middle of the hips [m], world
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
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from humanoid_control.mocap.skeleton import X, Y, Z, forward_kinematics, moving_axes, rotation, turned

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
"""Joint ranges of a person [degrees]. Trunk and arms: Dube 2012, Table 5.1, column Human; legs: usual clinical values
(AAOS)."""

Posture = Mapping[str, np.ndarray]
"""Joint name -> (T,) values [rad], pelvis_x y z in [m]; missing joints are zero."""


@dataclass(frozen=True)
class HumanBody:
    """Lengths of the model [m] for a stature of 1.70 m.

    The upper limb is Dube 2012, Table 2.1, measured on the outside: girdle 465 mm, upper arm 365 mm, forearm 270 mm;
    the shoulder joint is 50 mm below the surface. Heights and legs are Winter 2009 (Fig. 4.1), as shares of the
    stature: hip 0.530, shoulder 0.818, chin 0.870, eyes 0.936, thigh 0.245, shank 0.246, ankle 0.039, foot 0.152.
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


def human_markers(posture: Posture, body: HumanBody | None = None) -> np.ndarray:
    """Return `MARKERS` (T, 17, 3) [m], world, for joint values (T,)."""
    body = body or HumanBody()
    n_frames = max(len(values) for values in posture.values())
    zero = np.zeros(n_frames)

    def angle(joint: str) -> np.ndarray:
        return np.asarray(posture.get(joint, zero))

    segments = _segments(body)
    names = list(segments)
    R = {
        name: moving_axes([(axis, sign * angle(joint)) for joint, axis, sign in turns], n_frames)
        for name, (_, _, turns) in segments.items()
    }
    for side in SIDES:  # arm angles are relative to the chest, but the arm hangs on the clavicle
        R[f"{side}_arm"] = R[f"{side}_clavicle"].swapaxes(1, 2) @ R[f"{side}_arm"]
    p = {name: np.array(offset) for name, (_, offset, _) in segments.items()}
    p["pelvis"] = np.stack([angle(f"pelvis_{axis}") for axis in "xyz"], axis=1)
    parents = [names.index(parent) if parent else -1 for parent, _, _ in segments.values()]
    p_WB, R_WB = forward_kinematics(parents, list(p.values()), list(R.values()))
    markers = _marker_places(body)
    found = []
    for marker in MARKERS:
        segment, place = markers[marker]
        k = names.index(segment)
        found.append(p_WB[k] + turned(R_WB[k], np.array(place)))
    return np.stack(found, axis=1)


_Place = tuple[float, float, float]
_Turns = tuple[tuple[str, int, int], ...]


def _ball(joint: str, s: int) -> _Turns:
    """Return flexion, abduction and inward rotation of a ball joint."""
    return (f"{joint}_flex", Y, -1), (f"{joint}_abd", X, s), (f"{joint}_rot", Z, -s)


def _segments(body: HumanBody) -> dict[str, tuple[str, _Place, _Turns]]:
    """Return segments: parent, place in it [m], joints (name, axis, sign)."""
    pelvis = ("pelvis_yaw", Z, 1), ("pelvis_pitch", Y, 1), ("pelvis_roll", X, 1)
    waist = ("wt_rot", Z, 1), ("wt_flex", Y, 1), ("wt_lat", X, 1)
    out: dict[str, tuple[str, _Place, _Turns]] = {
        "pelvis": ("", (0.0, 0.0, 0.0), pelvis),
        "chest": ("pelvis", (0.0, 0.0, body.waist_height), waist),
    }
    for k, s in SIDES.items():
        shoulder = (-body.sternum_forward, s * body.shoulder_width / 2, body.shoulder_height - body.sternum_height)
        girdle = (f"{k}_sg_prot", Z, -s), (f"{k}_sg_elev", X, s)
        out |= {
            f"{k}_clavicle": ("chest", (body.sternum_forward, 0.0, body.sternum_height), girdle),
            f"{k}_arm": (f"{k}_clavicle", shoulder, _ball(f"{k}_gh", s)),
            f"{k}_forearm": (f"{k}_arm", (0.0, 0.0, -body.upper_arm), ((f"{k}_el_flex", Y, -1),)),
            f"{k}_thigh": ("pelvis", (0.0, s * body.hip_width / 2, 0.0), _ball(f"{k}_hp", s)),
            f"{k}_shank": (f"{k}_thigh", (0.0, 0.0, -body.thigh), ((f"{k}_kn_flex", Y, 1),)),
            f"{k}_foot": (f"{k}_shank", (0.0, 0.0, -body.shank), ((f"{k}_an_flex", Y, -1),)),
        }
    return out


def _marker_places(body: HumanBody) -> dict[str, tuple[str, _Place]]:
    """Return marker -> segment and place in it [m]."""
    origin = (0.0, 0.0, 0.0)
    out: dict[str, tuple[str, _Place]] = {
        "Forehead": ("chest", (body.forehead_forward, 0.0, body.forehead_height)),
        "Chin": ("chest", (body.chin_forward, 0.0, body.chin_height)),
        "Sternum": ("chest", (body.sternum_forward, 0.0, body.sternum_height)),
    }
    starts = {"GH": "arm", "Elbow": "forearm", "Hip": "thigh", "Knee": "shank", "Ankle": "foot"}
    for k in SIDES:
        out |= {f"{marker}_{k.upper()}": (f"{k}_{segment}", origin) for marker, segment in starts.items()}
        out[f"Wrist_{k.upper()}"] = (f"{k}_forearm", (0.0, 0.0, -body.forearm))
        out[f"Foot_{k.upper()}"] = (f"{k}_foot", (body.foot_forward, 0.0, body.foot_height - body.ankle_height))
    return out


def legs_to_feet(
    pelvis: Posture, ankles: Mapping[str, np.ndarray], toes_down: Mapping[str, np.ndarray], body: HumanBody
) -> dict[str, np.ndarray]:
    """Return the leg joints (T,) [rad] in closed form; feet point along world x.

    The knee follows from the distance of hip and ankle. Thigh, shank and foot lie in one plane.

    Args:
        pelvis: pelvis_x ... pelvis_roll, each (T,).
        ankles: "l", "r" -> (T, 3) [m], world; below the hip, within reach.
        toes_down: "l", "r" -> foot slope (T,) [rad]; 0: level.
    """
    zero = np.zeros(len(ankles["l"]))
    yaw, pitch, roll, *p = (np.asarray(pelvis.get(f"pelvis_{name}", zero)) for name in ("yaw", "pitch", "roll", *"xyz"))
    R_WP = moving_axes([(Z, yaw), (Y, pitch), (X, roll)], len(zero))
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
        # The bent knee puts the thigh in front of the line from hip to ankle by this angle.
        ahead = np.arctan2(body.shank * np.sin(knee), body.thigh + body.shank * np.cos(knee))[:, None]
        z = -np.cos(ahead) * down - np.sin(ahead) * np.cross(down, y)
        R_WT = np.stack([np.cross(y, z), y, z], axis=2)
        R_WS = R_WT @ rotation(Y, knee)
        R = R_WP.swapaxes(1, 2) @ R_WT  # turns about y, the new x, the new z
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
