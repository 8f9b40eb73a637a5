"""Head and hands: which joints of a robot turn them, and where a person's point.

They are followed by direction alone, wherever they are: where the head looks, and along the hand from the wrist to the
knuckles. What is tracked is a vector of the body that turns, as long as `LEVER`.
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
LEVER = 0.15  # [m] by which an error of direction counts like one of place
WEIGHTS = {HEAD: 0.5, "l_hand": 0.5, "r_hand": 0.5}
AT_WRIST = 0.12  # [m] from the wrist's point to the farthest joint that turns the hand
ASKEW = 0.8  # cosine above which an axis lies along the forearm: it turns the hand about itself
LEAST_HAND = 0.02  # [m] from wrist to knuckles: nearer they show no direction
AHEAD = 0.3  # cosine between the head's mean direction and that of the chest below which it is no gaze
_HEAD = re.compile(r"head|neck|skull", re.IGNORECASE)
_FACE = re.compile(r"eye|jaw|lid|mouth|brow|_ear", re.IGNORECASE)
_FINGER = re.compile(r"finger|thumb|index|middle|ring|pinky|little|grip|palm|knuckle", re.IGNORECASE)


# -------- a robot's


@dataclass(frozen=True)
class Extremity:
    """A head, or a hand, that joints of its own turn.

    Attributes:
        name: HEAD or one of HANDS.
        joint: id of the pinocchio joint that carries it.
        axis: (3,) unit vector in the frame of that joint: where the head looks, or along the hand.
        moving: indices of the joints that turn it.
    """

    name: str
    joint: int
    axis: np.ndarray
    moving: np.ndarray

    def followed(self) -> Followed:
        """What the solver tracks."""
        return Followed(self.joint, LEVER * self.axis, free=True)


def extremities(robot: Robot) -> dict[str, Extremity]:
    """Head and hands that a robot can turn, by name.

    Args:
        robot: with a floating base and two legs.
    """
    found = {e.name: e for e in (_head(robot), *(_hand(robot, side) for side in "lr")) if e is not None}
    return found if {*HANDS} <= set(found) else {n: e for n, e in found.items() if n == HEAD}


def _head(robot: Robot) -> Extremity | None:
    """The longest chain of joints called head or neck that move neither chest nor limbs; it looks ahead at rest."""
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
    """The last of the joints at a wrist; None where none bends it. With all joints at zero it continues the forearm."""
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
    """Axis of a joint in the world, its frame turned by R (3, 3)."""
    from humanoid_control.kinematics.forward_kinematics import joint_axis

    return np.asarray(R @ joint_axis(model, joint)[0])


# -------- a person's


def gaze_turn(body: BodyPoints) -> np.ndarray | None:
    """Turn (3, 3), in the axes of the chest, of where the points of a person's head lie to where the head looks.

    The points say how the head turns, not how high it looks: over the most upright frames people look level with
    their chest. None where the clip does not show the head, or points that lie elsewhere than before it.
    """
    at = {name: body.point(name) for name in body.names}
    if not {"head", "head_front"} <= set(at):
        return None
    R, local = _head_in_chest(at)
    upright = R[:, 2, 2] >= np.quantile(R[:, 2, 2], 1 - UPRIGHT_SHARE)
    mean = np.median(local[upright], axis=0) * [1.0, 0.0, 1.0]  # points may look up or down at rest, not to a side
    size = float(np.linalg.norm(mean))
    return rotation_between(mean, np.array([1.0, 0.0, 0.0])) if mean[0] > AHEAD * size > 0 else None


def shown_directions(body: BodyPoints, turn: np.ndarray | None) -> dict[str, np.ndarray]:
    """Where a person's head looks, and hands point: unit vectors (T, 3) in the world, of those that the clip shows.

    Hands count only together.

    Args:
        turn: from `gaze_turn` of the person; None: the head is not shown.
    """
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
    """Axes of the chest (T, 3, 3), and in them the unit vector (T, 3) from the head to its front."""
    spine = at["l_shoulder"] + at["r_shoulder"] - at["l_hip"] - at["r_hip"]
    spine /= np.linalg.norm(spine, axis=1, keepdims=True)
    R = torso_axes(spine, at["l_shoulder"] - at["r_shoulder"])
    u = at["head_front"] - at["head"]
    u /= np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1e-6)
    return R, np.einsum("tji,tj->ti", R, u)


def _along_hand(at: dict[str, np.ndarray], side: str) -> np.ndarray | None:
    """From the wrist to the knuckles (T, 3); None where they are too near to each other."""
    along = at[f"{side}_hand"] - at[f"{side}_wrist"]
    length = np.linalg.norm(along, axis=1, keepdims=True)
    return along / length if (length > LEAST_HAND).all() else None
