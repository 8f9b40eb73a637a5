"""Head and hands: their joints on a robot, and their directions on a person.

Only directions are tracked: the gaze, and the hand from wrist to knuckles, as vectors of length `LEVER` on the rotating
body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.mocap import BodyPoints, torso_axes
from humanoid_control.retargeting.problem import Followed
from humanoid_control.retargeting.scaling import UPRIGHT_SHARE, rotation_between
from humanoid_control.robots import Robot
from humanoid_control.robots.joint_groups import JointGroups

HEAD, HANDS = "head", ("l_hand", "r_hand")
LEVER = 0.15  # [m] converts direction errors to position errors
WEIGHTS = {HEAD: 0.5, "l_hand": 0.5, "r_hand": 0.5}
AT_WRIST = 0.12  # [m] distance from the wrist of joints that turn the hand
ASKEW = 0.8  # cosine above which an axis is along the forearm and does not bend the hand
LEAST_HAND = 0.02  # [m] least wrist-knuckle distance that defines a direction
AHEAD = 0.3  # least cosine between mean head and chest direction for a valid gaze
_HEAD = re.compile(r"head|neck|skull", re.IGNORECASE)
_FACE = re.compile(r"eye|jaw|lid|mouth|brow|_ear", re.IGNORECASE)
_FINGER = re.compile(r"finger|thumb|index|middle|ring|pinky|little|grip|palm|knuckle", re.IGNORECASE)


# -------- a robot's


@dataclass(frozen=True)
class Extremity:
    """Head or hand with its own joints.

    Attributes:
        axis: (3,) unit vector in the joint frame: gaze, or along the hand.
        moving: indices of the joints that turn it.
    """

    name: str
    joint: int
    axis: np.ndarray
    moving: np.ndarray

    def followed(self) -> Followed:
        """Return the tracked vector."""
        return Followed(self.joint, LEVER * self.axis, free=True)


def extremities(robot: Robot) -> dict[str, Extremity]:
    """Return head and hands that a robot can turn, by name; hands only as a pair."""
    found = {e.name: e for e in (_head(robot), *(_hand(robot, side) for side in "lr")) if e is not None}
    return found if {*HANDS} <= set(found) else {n: e for n, e in found.items() if n == HEAD}


def _head(robot: Robot) -> Extremity | None:
    """Return the longest chain of head or neck joints that move neither chest nor limbs; at rest it looks ahead."""
    model, data = robot.model, robot.data
    free = {int(k) + 2 for k in JointGroups.of(robot).rest}
    chains = []
    for j in sorted(free):
        if not _is_head(model.names[j]):
            continue
        chains.append([k for k in model.supports[j] if k in free and _is_head(model.names[k])])
    if not chains:
        return None
    chain = max(chains, key=len)
    pin.forwardKinematics(model, data, robot.q("neutral"))
    return Extremity(HEAD, int(chain[-1]), data.oMi[chain[-1]].rotation[0].copy(), np.array(chain) - 2)


def _is_head(name: str) -> bool:
    return bool(_HEAD.search(name)) and not _FACE.search(name)


def _hand(robot: Robot, side: str) -> Extremity | None:
    """Return the last wrist joint, or None if none bends the hand; at zero, the hand continues the forearm."""
    model, data = robot.model, robot.data
    pin.forwardKinematics(model, data, robot.q("zero"))
    elbow, wrist = robot.point_positions(robot.q("zero"), [f"{side}_elbow", f"{side}_wrist"])
    along = (wrist - elbow) / np.linalg.norm(wrist - elbow)
    last = int(model.frames[robot.point_frame(f"{side}_wrist")].parentJoint)
    followers = {follower + 2 for follower, *_ in robot.mimic}
    while True:
        below = [
            int(c)
            for c in model.children[last]
            if c not in followers
            and not _FINGER.search(model.names[c])
            and np.linalg.norm(data.oMi[c].translation - wrist) < AT_WRIST
        ]
        if len(below) != 1:
            break
        last = below[0]
    near = [
        j
        for j in model.supports[last]
        if j > 1 and np.linalg.norm(data.oMi[j].translation - wrist) < AT_WRIST and j not in followers
    ]
    bends = [j for j in near if abs(float(_axis(data.oMi[j].rotation, model, j) @ along)) < ASKEW]
    if not bends:
        return None
    return Extremity(f"{side}_hand", last, data.oMi[last].rotation.T @ along, np.array(near) - 2)


def _axis(R: np.ndarray, model: pin.Model, joint: int) -> np.ndarray:
    from humanoid_control.kinematics.forward_kinematics import joint_axis

    return np.asarray(R @ joint_axis(model, joint)[0])


# -------- a person's


def gaze_turn(body: BodyPoints) -> np.ndarray | None:
    """Return the rotation (3, 3), in chest axes, from a person's head points to the gaze.

    Head points show rotation, not elevation: the mean gaze of upright frames is taken as level with the chest. None if
    the head is not shown, or its points are not in front of it.
    """
    at = {name: body.point(name) for name in body.names}
    if not {"head", "head_front"} <= set(at):
        return None
    R, local = _head_in_chest(at)
    upright = R[:, 2, 2] >= np.quantile(R[:, 2, 2], 1 - UPRIGHT_SHARE)
    mean = np.median(local[upright], axis=0) * [1.0, 0.0, 1.0]  # at rest, points may be above or below, not sideways
    size = float(np.linalg.norm(mean))
    return rotation_between(mean, np.array([1.0, 0.0, 0.0])) if mean[0] > AHEAD * size > 0 else None


def shown_directions(body: BodyPoints, turn: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the shown directions of head and hands: unit vectors (T, 3) in the world; hands only as a pair."""
    out = {}
    at = {name: body.point(name) for name in body.names}
    if turn is not None:
        R, local = _head_in_chest(at)
        out[HEAD] = np.einsum("tij,jk,tk->ti", R, turn, local)
    if {"l_hand", "r_hand"} <= set(at):
        hands = {f"{s}_hand": u for s in "lr" if (u := _along_hand(at, s)) is not None}
        out |= hands if len(hands) == 2 else {}
    return out


def _head_in_chest(at: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return chest axes (T, 3, 3), and the unit vector (T, 3) from head to its front in them."""
    spine = at["l_shoulder"] + at["r_shoulder"] - at["l_hip"] - at["r_hip"]
    spine /= np.linalg.norm(spine, axis=1, keepdims=True)
    R = torso_axes(spine, at["l_shoulder"] - at["r_shoulder"])
    u = at["head_front"] - at["head"]
    u /= np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1e-6)
    return R, np.einsum("tji,tj->ti", R, u)


def _along_hand(at: dict[str, np.ndarray], side: str) -> np.ndarray | None:
    along = at[f"{side}_hand"] - at[f"{side}_wrist"]
    length = np.linalg.norm(along, axis=1, keepdims=True)
    return along / length if (length > LEAST_HAND).all() else None
