"""Scaling of a whole person to a legged robot: targets of points and soles, with the floor at z = 0.

The clip's floor is levelled (`contacts.find_floor`), the hip path is scaled by leg length, and each segment has the
person's direction and the robot's length. Soles have the scaled height and the pitch of the person's feet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.mocap import BodyPoints
from humanoid_control.retargeting.problem import Followed
from humanoid_control.retargeting.scaling import POINTS, MotionTargets, Scaler
from humanoid_control.retargeting.whole_body.contacts import (
    LEG_POINTS,
    ContactMemory,
    ContactRules,
    ContactSoles,
    feet_points,
    find_contacts,
    find_floor,
    level,
)
from humanoid_control.retargeting.whole_body.extremities import gaze_turn, shown_directions
from humanoid_control.retargeting.whole_body.hands import HandSurfaces, keep_hands, person_size
from humanoid_control.robots import Robot
from humanoid_control.robots.joint_groups import NEEDED, JointGroups
from humanoid_control.robots.robot import FLOATING

BODY_POINTS = (*POINTS, "l_hip", "r_hip", "pelvis_top", "l_knee", "r_knee")
SOLE_POINTS = tuple(f"{s}_{e}_{side}" for s in "lr" for e in ("heel", "toe") for side in ("left", "right"))
WHOLE_BODY_POINTS = (*BODY_POINTS, *SOLE_POINTS)
PELVIS_TOP = 0.2  # [m] above mid-hip: lever of the pelvis lean
PELVIS_SHARE = 0.5  # share of the spine lean taken by the pelvis
PITCH = 0.6  # sine of the sole pitch limit
# [m] minimum clearance of a moving foot, and speeds [m/s] at which it begins and is full: robot soles are longer and
# stiffer than feet, and would scuff.
CLEARS, ON_ITS_WAY = 0.02, (0.6, 1.2)
ROUND_GAP, ROUND_PITCH = 0.01, 0.05  # [m], and sine, rounding of the heel-toe transition
BEND = 0.03  # share of the leg length by which hips are lowered, against stretched legs


# -------- the robot's legs


@dataclass(frozen=True)
class Legs:
    """Legs of a robot in its neutral posture with flat soles.

    Attributes:
        hips: (2, 3) left and right, in the world [m].
        knees: (2, 3) likewise [m].
        joints: pinocchio joint ids that carry pelvis, both shanks, both feet.
        ankle_height: above the sole [m].
        corners: (8, 3) of the soles in the world, in the order of SOLE_POINTS [m].
        yaw: (2, 2) yaw range of each foot by its leg joints [rad].
        moving: joint indices (legs and waist).
    """

    hips: np.ndarray
    knees: np.ndarray
    joints: tuple[int, int, int, int, int]
    thigh: float
    shank: float
    ankle_height: float
    soles: ContactSoles
    corners: np.ndarray
    yaw: np.ndarray
    moving: np.ndarray

    @classmethod
    def of(cls, robot: Robot) -> Legs:
        """Measure the legs.

        Raises:
            RobotError: if the base is fixed, or the robot file lacks legs, soles or their points.
        """
        missing = [p for p in NEEDED if p not in robot.points]
        if robot.base != FLOATING or missing or len(robot.feet) < 2:
            what = (
                f"lacks the points {', '.join(missing)}" if missing else "has no soles under `feet` in its robot file"
            )
            what = "has a fixed base" if robot.base != FLOATING else what
            if {"l_foot_tcp", "r_foot_tcp"} <= {*missing}:
                raise RobotError(f"{robot.name} has no feet: retarget its upper body, without --whole-body")
            raise RobotError(f"{robot.name} {what}: retargeting the whole body needs a floating base, legs and soles")
        groups = JointGroups.of(robot)
        model, data = robot.model, robot.data
        pin.framesForwardKinematics(model, data, robot.q("neutral"))
        joint = _flexion_joints(robot, "l", groups.l_leg) | _flexion_joints(robot, "r", groups.r_leg)
        place = {p: data.oMi[j].translation.copy() for p, j in joint.items()}
        middle = data.oMf[robot.points["mid_hip"]].translation.copy()
        width = 0.5 * (place["l_hip_flexion"] - place["r_hip_flexion"])[1]
        hips = middle + np.array([[0.0, width, 0.0], [0.0, -width, 0.0]])
        knees = np.array([place[f"{s}_knee_flexion"] for s in "lr"])
        ankles = np.array([place[f"{s}_ankle_flexion"] for s in "lr"])
        corners, length, ankle, side = np.empty((8, 3)), np.empty(2), np.empty((2, 2)), np.empty((2, 4))
        for f in (0, 1):
            low, high = _sole_rectangle(robot, 1 if f == 0 else -1)
            left, right = high[1] - ankles[f, 1], low[1] - ankles[f, 1]
            length[f], side[f] = high[0] - low[0], (left, right, left, right)
            ankle[f] = ankles[f, 0] - low[0], ankles[f, 2] - low[2]
            for k, x in enumerate((low[0], low[0], high[0], high[0])):
                corners[4 * f + k] = x, (high[1], low[1])[k % 2], low[2]
        feet = [int(model.frames[robot.points[f"{s}_foot_tcp"]].parentJoint) for s in "lr"]
        carriers = (int(model.frames[robot.points["mid_hip"]].parentJoint),)
        return cls(
            hips,
            knees,
            (*carriers, joint["l_knee_flexion"], joint["r_knee_flexion"], feet[0], feet[1]),
            float(np.linalg.norm(hips - knees, axis=1).mean()),
            float(np.linalg.norm(knees - ankles, axis=1).mean()),
            float(ankle[:, 1].mean()),
            ContactSoles(length, ankle, side),
            corners,
            np.array([_yaw_range(robot, group) for group in (groups.l_leg, groups.r_leg)]),
            np.concatenate([groups.l_leg, groups.r_leg, groups.waist]),
        )

    def points(self, robot: Robot) -> list[Followed]:
        """Return hips, pelvis top, knees and sole corners as tracked points."""
        pin.forwardKinematics(robot.model, robot.data, robot.q("neutral"))
        pelvis, l_knee, r_knee, l_foot, r_foot = self.joints
        top = self.hips.mean(axis=0) + [0.0, 0.0, PELVIS_TOP]
        places = [(pelvis, self.hips[0]), (pelvis, self.hips[1]), (pelvis, top)]
        places += [(l_knee, self.knees[0]), (r_knee, self.knees[1])]
        places += [(l_foot if k < 4 else r_foot, corner) for k, corner in enumerate(self.corners)]
        return [Followed(joint, robot.data.oMi[joint].actInv(p)) for joint, p in places]


def _flexion_joints(robot: Robot, side: str, leg: np.ndarray) -> dict[str, int]:
    """Return the pinocchio joints of hip, knee and ankle flexion, by the meanings in the robot file.

    Without meanings: the first, middle and last lateral axis of the leg.
    """
    across = [
        k for k in leg.tolist() if abs((robot.data.oMi[k + 2].rotation @ joint_axis(robot.model, k + 2)[0])[1]) > 0.7
    ]
    found = {}
    for place, name in ((0, "hip"), (len(across) // 2, "knee"), (-1, "ankle")):
        meaning = f"{side}_{name}_flexion"
        known = robot.joint_for(meaning)
        if known is None and len(across) < 3:
            raise RobotError(
                f"{robot.name}: no joint is known as {meaning}, and the axes of its leg do not identify it"
            )
        found[meaning] = int(robot.model.getJointId(known)) if known is not None else across[place] + 2
    return found


def _yaw_range(robot: Robot, leg: np.ndarray) -> np.ndarray:
    """Return the lowest and highest yaw (2,) of a foot by the vertical leg joints; `robot.data` is neutral."""
    total = np.zeros(2)
    for k in leg:
        joint = int(k) + 2  # after the world and the base
        z = float((robot.data.oMi[joint].rotation @ joint_axis(robot.model, joint)[0])[2])
        if abs(z) > 0.7:
            turn = np.array([end[k] for end in robot.range_within(np.pi)]) - robot.postures["neutral"][k]
            total += np.sort(np.sign(z) * turn)
    return total


def _sole_rectangle(robot: Robot, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest corner (3,) of the left (+1) or right (-1) soles, in the neutral posture."""
    corners = []
    for foot in robot.feet:
        X = robot.data.oMf[robot.model.getFrameId(foot.link, pin.FrameType.BODY)]
        at = np.array([X.act(c) for c in foot.corners()])
        if at[:, 1].mean() * sign > 0:
            corners.append(at)
    if not corners:
        raise RobotError(f"{robot.name}: a leg has no sole under `feet` in its robot file")
    both = np.vstack(corners)
    return both.min(axis=0), both.max(axis=0)


# -------- scaling


@dataclass(frozen=True)
class WholeBodyTargets(MotionTargets):
    """Targets of a floating robot: positions of BODY_POINTS, with the floor at z = 0.

    Attributes:
        forearms: (T, 2, 3) as in Targets; None: not shown.
        soles: (T, 2, 5) free sole poses, as in `contacts.FootMemory`.
        contacts: (T, 4) of the person, in the order of `contacts.EDGES`.
        heading: (T,) yaw of the person's pelvis [rad].
        directions: (T, 3) unit vectors of shown head and hands, by name.
        notes: messages about the floor.
    """

    forearms: np.ndarray | None
    soles: np.ndarray
    contacts: np.ndarray
    heading: np.ndarray
    directions: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class WholeBodyScaler:
    """Scaling from one person to one legged robot, calibrated by a clip.

    Attributes:
        scale: leg length of robot over person; also of the root path.
        size: of the person, 1 is 0.5 m from hips to shoulders.
        surfaces: of the robot's body for its hands; None: not kept.
    """

    def __init__(self, body: BodyPoints, robot: Robot, rules: ContactRules | None = None, hands: bool = True) -> None:
        """Calibrate.

        Args:
            body: person with legs that sometimes stands.
            hands: keep hands at touched surfaces; needs 0.2 s of look-ahead.

        Raises:
            ClipError: if the clip lacks legs on a floor.
            RobotError: if legs or soles are missing.
        """
        self.rules = rules or ContactRules()
        self.legs = Legs.of(robot)
        self.floor = find_floor(body)
        upright = level(body, self.floor)
        self.upper = Scaler(upright, robot)
        self._gaze_turn = gaze_turn(upright)
        self.size = person_size(upright)
        self.surfaces = HandSurfaces.of(robot, self.legs.hips, self.legs.knees) if hands else None
        hip, knee, ankle = ([upright.point(f"{s}_{p}") for s in "lr"] for p in ("hip", "knee", "ankle"))
        person = np.mean(
            [np.median(_length(hip[f] - knee[f])) + np.median(_length(knee[f] - ankle[f])) for f in (0, 1)]
        )
        self.scale = float((self.legs.thigh + self.legs.shank) / person)

    def targets(self, body: BodyPoints) -> WholeBodyTargets:
        """Return the targets of consecutive frames.

        Raises:
            ClipError: if a segment has length zero.
        """
        body = level(body, self.floor)
        upper = self.upper.targets(body)
        s, legs, psi = self.scale, self.legs, body.heading
        at = {name: body.point(name) for name in body.names}
        middle = s * body.mid_hip
        ankle_level = float(np.mean(self.floor.level[4:]))
        leg = legs.thigh + legs.shank
        middle[:, 2] = legs.ankle_height - BEND * leg + s * (body.mid_hip[:, 2] - ankle_level)
        c, n = np.cos(psi), np.sin(psi)
        turn = np.zeros((len(psi), 3, 3))
        turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1], turn[:, 2, 2] = c, -n, n, c, 1.0
        out = np.empty((len(psi), len(BODY_POINTS), 3))
        seven = np.einsum("tij,tkj->tki", turn, upper.positions - self.upper.origin)
        out[:, :7] = seven + middle[:, None]
        across = _unit(at["l_hip"] - at["r_hip"])
        half = 0.5 * float(np.linalg.norm(legs.hips[0] - legs.hips[1]))
        out[:, 7], out[:, 8] = middle + half * across, middle - half * across
        top = PELVIS_SHARE * _unit(seven[:, 0]) + (1 - PELVIS_SHARE) * np.array([0.0, 0.0, 1.0])
        out[:, 9] = middle + PELVIS_TOP * _unit(top - np.sum(top * across, axis=1, keepdims=True) * across)
        for f, side in enumerate("lr"):
            out[:, 10 + f] = out[:, 7 + f] + legs.thigh * _unit(at[f"{side}_knee"] - at[f"{side}_hip"])
        forearms = None if upper.forearms is None else np.einsum("tij,tkj->tki", turn, upper.forearms)
        soles = self._soles(body, out)
        contacts = detect_contacts(self.rules, feet_points(body)[:, :4], self.floor.level[:4], body.rate)
        directions = shown_directions(body, self._gaze_turn)
        if self.surfaces is not None:
            low = np.array([0.0, 0.0, float(np.min(self.floor.level[:4]))])
            grounded = replace(body, positions=body.positions - low, missing=body.missing.copy())
            out = keep_hands(grounded, self.size, self.surfaces, out, BODY_POINTS, self.rules)
        return WholeBodyTargets(body.name, body.rate, out, forearms, soles, contacts, psi, directions, self.floor.notes)

    def _soles(self, body: BodyPoints, out: np.ndarray) -> np.ndarray:
        """Return sole poses (T, 2, 5) with the scaled height of the lower edge and the pitch of the person."""
        feet = feet_points(body)
        poses = np.empty((len(feet), 2, 5))
        left = np.stack([-np.sin(body.heading), np.cos(body.heading)], axis=1)
        for f, side in enumerate("lr"):
            rise = np.maximum(feet[:, [2 * f, 2 * f + 1], 2] - self.floor.level[[2 * f, 2 * f + 1]], 0.0)
            span = feet[:, 2 * f + 1] - feet[:, 2 * f]
            length = float(np.median(_length(span)))
            # Lateral foot axis: normal to foot and shank, so that pointing the foot past vertical does not reverse it.
            # If both are in line, the pelvis yaw counts.
            shank = _unit(body.point(f"{side}_knee") - body.point(f"{side}_ankle"))
            across = np.cross(shank, body.point(f"{side}_toe") - body.point(f"{side}_ankle"))[:, :2] / length
            across += np.maximum(0.5 - _length(across), 0.0)[:, None] * left
            yaw = np.arctan2(-across[:, 0], across[:, 1]) - body.heading
            yaw = np.clip((yaw + np.pi) % (2 * np.pi) - np.pi, *self.legs.yaw[f]) + body.heading
            sine = PITCH * np.tanh((rise[:, 1] - rise[:, 0]) / (PITCH * length))
            # Height of the lower edge, as a smooth minimum of heel and toe height.
            gap = rise[:, 1] - rise[:, 0]
            low = self.scale * 0.5 * (rise.sum(axis=1) - np.sqrt(gap**2 + ROUND_GAP**2) + ROUND_GAP)
            speed = _length(np.gradient(feet[:, 2 * f : 2 * f + 2, :2].mean(axis=1), axis=0)) * body.rate
            share = np.clip((speed - ON_ITS_WAY[0]) / (ON_ITS_WAY[1] - ON_ITS_WAY[0]), 0.0, 1.0)
            low += CLEARS * share**2 * (3.0 - 2.0 * share) * np.exp(-low / CLEARS)
            L, lifted = self.legs.soles.length[f], np.sqrt(sine**2 + ROUND_PITCH**2) - ROUND_PITCH
            poses[:, f, 3] = np.maximum(low + 0.5 * L * (lifted - sine), 0.0)
            poses[:, f, 4] = np.maximum(low + 0.5 * L * (lifted + sine), 0.0)
            ankle = out[:, 7 + f] + self.scale * (body.point(f"{side}_ankle") - body.point(f"{side}_hip"))
            forward, above = self.legs.soles.ankle[f]
            back = forward * np.sqrt(1 - sine**2) - above * sine
            poses[:, f, 0] = ankle[:, 0] - back * np.cos(yaw)
            poses[:, f, 1] = ankle[:, 1] - back * np.sin(yaw)
            poses[:, f, 2] = yaw
        return poses


def shows_legs(body: BodyPoints) -> bool:
    """Return True if the clip shows knees, ankles and toes of both sides."""
    return all(name in body.names for name in LEG_POINTS)


def detect_contacts(rules: ContactRules, points: np.ndarray, floor: np.ndarray, rate: float) -> np.ndarray:
    """Return causal contacts (T, 4) of points (T, 4, 3), in the order of `contacts.EDGES`, and levels (4,) [m]."""
    memory, out = ContactMemory.new(), np.zeros((len(points), 4), dtype=bool)
    above = np.array(points)
    above[:, :, 2] -= floor
    for t in range(len(points)):
        find_contacts(rules, above[t], 1.0 / rate, memory)
        out[t] = memory.contact
    return out


def _length(v: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(v, axis=1))


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=1, keepdims=True)
