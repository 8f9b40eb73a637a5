"""Tracked points and joints of an unknown robot, from URDF names and structure.

The elbow is the hinge with long bones on both sides. The shoulder is where the axes before it meet, the wrist lies on
the first axis after the forearm's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots.description.robot_file import RobotFile
from humanoid_control.robots.description.urdf import UrdfTree
from humanoid_control.robots.guess.contact_shapes import ContactFit
from humanoid_control.robots.guess.fitted_shapes import BodyFit
from humanoid_control.robots.guess.limbs import (
    WRITE_BY_HAND,
    GuessedFoot,
    JointAxis,
    LimbPair,
    ball_centre,
    find_limbs,
    joint_axes,
    nearest_on,
)
from humanoid_control.robots.robot import Robot

MEET = 0.05  # [m] distance of axes in one joint group
TRUNK = 0.87  # trunk (hips to shoulders) as a share of the arm's two bones, of a human
FOREARM = 0.78  # forearm as a share of the upper arm, of a human
SHORT_BONE = 0.02  # [m] least bone of an arm
HIPS_BELOW_WAIST = 0.1  # [m] without legs


@dataclass(frozen=True)
class GuessedPoint:
    """Tracked point: link, position in its frame [m], source, and whether it is uncertain."""

    link: str
    xyz: np.ndarray
    how: str
    weak: bool = False

    def rounded(self) -> list[float]:
        """Return the position rounded to 0.1 mm [m]."""
        return [round(float(v), 4) + 0.0 for v in self.xyz]


@dataclass(frozen=True)
class ArmGuess:
    """Arm in the world in the zero posture: joint groups and three points [m]."""

    girdle: list[JointAxis]
    shoulder: list[JointAxis]
    elbow: JointAxis
    forearm: list[JointAxis]
    gh: np.ndarray
    elbow_point: np.ndarray
    wrist: np.ndarray
    wrist_link: str
    wrist_how: str


@dataclass(frozen=True)
class Mapping:
    """Guessed data of a robot.

    Attributes:
        waist: joints between hips and chest.
        feet: soles; may be empty.
        fits: shapes of bodies with meshes.
        contacts: shapes of links that overlap although their meshes do not.
        yaw: rotation that makes the robot face x [rad].
        meanings: anatomical name -> joint.
        neutral: joint -> angle [rad], if arms touch at zero.
    """

    points: dict[str, GuessedPoint]
    waist: list[JointAxis]
    arms: tuple[ArmGuess, ArmGuess]
    legs: LimbPair | None
    yaw: float
    meanings: dict[str, str]
    feet: tuple[GuessedFoot, ...] = ()
    fits: tuple[BodyFit, ...] = ()
    contacts: tuple[ContactFit, ...] = ()
    neutral: dict[str, float] = field(default_factory=dict)

    @property
    def has_legs(self) -> bool:
        """True if it has legs, hence a floating base."""
        return self.legs is not None

    @property
    def imitation_joints(self) -> list[str]:
        """Names of waist and arm joints."""
        joints = [*self.waist, *(j for arm in self.arms for j in [*arm.girdle, *arm.shoulder, arm.elbow, *arm.forearm])]
        return [j.name for j in joints]

    def to_json(self) -> dict[str, Any]:
        """Return the mapping as dictionaries and lists, in m and rad."""
        points = [
            {"point": name, "link": p.link, "xyz": p.rounded(), "found": p.how, "guess": p.weak}
            for name, p in self.points.items()
        ]
        fits = [
            {
                "body": f.link,
                "shapes": len(f.shapes),
                "outside_max_m": round(f.outside_max, 5),
                "outside_mean_m": round(f.outside_mean, 5),
                "inside_max_m": round(f.inside_max, 5),
            }
            for f in self.fits
        ]
        contacts = [
            {
                "links": list(c.links),
                "shapes": len(c.shapes),
                "touched_percent": None if c.touched is None else round(100 * c.touched, 1),
                "shrunk_m": round(c.shrunk, 5),
                "by_distance": c.by_distance,
                "missed_percent": round(100 * c.missed, 1),
                "early_percent": round(100 * c.early, 1),
            }
            for c in self.contacts
        ]
        found: dict[str, Any] = {"points": points, "imitation_joints": self.imitation_joints, "neutral": self.neutral}
        return {**found, "fits": fits, "contacts": contacts}


def guess_mapping(tree: UrdfTree) -> Mapping:
    """Guess points and joints from a URDF alone.

    Raises:
        RobotError: if arms or elbows are missing.
    """
    robot = Robot(tree, RobotFile(), "fixed")
    axes = joint_axes(robot, tree)
    limbs = find_limbs(axes, tree.where)
    poses = robot.link_poses(robot.q("zero"))
    arms = tuple(_arm(way, tree, robot) for way in (limbs.arms.left, limbs.arms.right))
    first = limbs.arms.left[0]
    waist = _ancestors(first)
    sternum = (arms[0].gh + arms[1].gh) / 2
    if limbs.legs is not None:
        # A joint above one leg only is not part of the waist (NAO's left hip moves both: the right one mimics it).
        ways = [_ancestors(leg[0]) for leg in (limbs.legs.left, limbs.legs.right)]
        down = [j for j in ways[0] if any(j is other for other in ways[1])]
        waist = [*_without(down, waist)[::-1], *_without(waist, down)]
        hips = [ball_centre(leg[:3], MEET)[0] for leg in (limbs.legs.left, limbs.legs.right)]
        top = _without([*ways[0], limbs.legs.left[0]], down)[0]
        hip_link, mid_hip, how = top.parent_link, (hips[0] + hips[1]) / 2, "where the hip axes meet"
    else:
        hip_link = waist[0].parent_link if waist else first.parent_link
        mid_hip, how = _hips_without_legs(waist, arms[0], sternum)

    def point(link: str, world: np.ndarray, how: str, weak: bool = False) -> GuessedPoint:
        return GuessedPoint(link, poses[link].inverse().act(np.asarray(world, float)), how, weak)

    points = {
        "mid_hip": point(hip_link, mid_hip, how, limbs.legs is None),
        "sternum": point(first.parent_link, sternum, "between the shoulders"),
    }
    for s, arm in zip("lr", arms, strict=True):
        points[f"{s}_gh"] = point(arm.shoulder[-1].child_link, arm.gh, "where the shoulder axes meet")
        points[f"{s}_elbow"] = point(arm.elbow.child_link, arm.elbow_point, f"on the axis of {arm.elbow.name}")
        points[f"{s}_wrist"] = point(arm.wrist_link, arm.wrist, arm.wrist_how, arm.wrist_how.startswith("no wrist"))
    yaw = float(np.arctan2(limbs.left[0], limbs.left[1]))
    return Mapping(points, waist, (arms[0], arms[1]), limbs.legs, yaw, _meanings(waist, arms, limbs.left))


def _hips_without_legs(waist: list[JointAxis], arm: ArmGuess, sternum: np.ndarray) -> tuple[np.ndarray, str]:
    turning = [j for j in waist if not j.slides]
    if turning:
        return turning[0].point - [0, 0, HIPS_BELOW_WAIST], f"no legs: {HIPS_BELOW_WAIST:g} m below the waist"
    bones = float(np.linalg.norm(arm.gh - arm.elbow_point) + np.linalg.norm(arm.wrist - arm.elbow_point))
    return sternum - [0, 0, TRUNK * bones], "no legs, no waist: as long a trunk as a human has"


def _without(joints: list[JointAxis], others: list[JointAxis]) -> list[JointAxis]:
    return [j for j in joints if all(j is not other for other in others)]


def _ancestors(joint: JointAxis) -> list[JointAxis]:
    out, at = [], joint.above
    while at is not None:
        out.append(at)
        at = at.above
    return out[::-1]


def _arm(way: list[JointAxis], tree: UrdfTree, robot: Robot) -> ArmGuess:
    candidates = [_arm_with_elbow(way, k, tree, robot) for k in range(1, len(way))]
    named = [arm for arm in candidates if "elbow" in arm.elbow.name.lower()]
    best = max(named or candidates, key=_likeness)
    if not _likeness(best) > SHORT_BONE:
        raise RobotError(
            f"{tree.where}: no elbow found among {', '.join(j.name for j in way)}: no hinge with a bone of more than "
            f"{100 * SHORT_BONE:g} cm on either side, across its axis; {WRITE_BY_HAND}"
        )
    return best


def _likeness(arm: ArmGuess) -> float:
    """Return the shorter bone across the hinge [m]."""
    upper, lower = arm.elbow_point - arm.gh, arm.wrist - arm.elbow_point
    across = [float(np.linalg.norm(np.cross(v, arm.elbow.direction))) for v in (upper, lower)]
    return min(across)


def _arm_with_elbow(way: list[JointAxis], k: int, tree: UrdfTree, robot: Robot) -> ArmGuess:
    elbow = way[k]
    gh, group = ball_centre(way[max(k - 3, 0) : k][::-1], MEET)
    shoulder, girdle = group[::-1], way[: k - len(group)]
    at = nearest_on(elbow, way[k - 1])
    # The forearm's own axis passes through the elbow, across its hinge.
    rest = way[k + 1 :]
    own = rest[0] if rest and rest[0].distance(at) < MEET and abs(rest[0].direction @ elbow.direction) < 0.7 else None
    hinges = rest[1:] if own else rest
    link = (own or elbow).child_link
    if hinges:
        wrist = nearest_on(hinges[0], own) if own else hinges[0].point
        used = 1 + (len(hinges) > 1 and hinges[1].distance(wrist) < MEET)
        forearm = [*([own] if own else []), *hinges[:used]]
        return ArmGuess(girdle, shoulder, elbow, forearm, gh, at, wrist, link, f"on the axis of {hinges[0].name}")
    if own and np.linalg.norm(own.point - at) > 2 * MEET:
        return ArmGuess(girdle, shoulder, elbow, [own], gh, at, own.point, link, f"origin of {own.name}")
    joint = robot.model.getJointId((own or elbow).name)
    pin.forwardKinematics(robot.model, robot.data, robot.q("zero"))
    along = robot.data.oMi[joint].act(robot.model.inertias[joint].lever) - at
    length = FOREARM * float(np.linalg.norm(at - gh))
    wrist = at + length * along / max(float(np.linalg.norm(along)), 1e-9)
    how = "no wrist joint: a forearm as long as a human has, toward the centre of mass"
    return ArmGuess(girdle, shoulder, elbow, [own] if own else [], gh, at, wrist, link, how)


def _meanings(waist: list[JointAxis], arms: tuple[ArmGuess, ...], left: np.ndarray) -> dict[str, str]:
    """Return anatomical names of joints with unambiguous axes."""
    forward = np.cross(left, [0.0, 0.0, 1.0])
    out: dict[str, str] = {}
    for name, axis in (("rotation", [0, 0, 1]), ("flexion", left), ("lateral_flexion", forward)):
        found = [j.name for j in waist if not j.slides and abs(j.direction @ axis) > 0.8]
        if len(found) == 1:
            out[f"waist_{name}"] = found[0]
    for s, arm in zip("lr", arms, strict=True):
        if len(arm.shoulder) == 3 and abs(arm.shoulder[0].direction @ left) > 0.7:
            for name, joint in zip(("flexion", "abduction", "rotation"), arm.shoulder, strict=True):
                out[f"{s}_shoulder_{name}"] = joint.name
        out[f"{s}_elbow_flexion"] = arm.elbow.name
    return out
