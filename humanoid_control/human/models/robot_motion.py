"""Fit of a robot to a person's markers.

Markers are mapped from the person's to the robot's line between two joints. Absent segments have no markers, or use the
next one. One factor scales the robot, marker places are calibrated, all frames are fitted within ranges (Simonidis et
al. 2011, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ClipError
from humanoid_control.human.analysis import Analysis, upright
from humanoid_control.human.calibration import CalibrationSettings, calibrate
from humanoid_control.human.elements import (
    GROUND,
    AnatomicalJoint,
    Coordinate,
    CoordinateAxis,
    Coupling,
    Marker,
    OffsetFrame,
    PersonBody,
)
from humanoid_control.human.functions import Function
from humanoid_control.human.marker_fit import Fit, fit
from humanoid_control.human.model import Person
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.robots import Robot

BASE = "base"
LINE = Function((0.0, 1.0))
TO_ROBOT = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # x forward, y up, z right -> x forward, y left, z up
NEAR_LIMIT = np.deg2rad(0.5)
ALIKE = {"knee_angle": "knee_flexion", "hip_flexion": "hip_flexion", "elbow_flex": "elbow_flexion",
         "arm_flex": "shoulder_flexion"}  # fmt: skip
SHORT_BONE, ACROSS = 0.05, 0.8  # [m] of a leg; lateral share of a knee axis
PLACES = CalibrationSettings(frames=30, anatomical=0.03, tracking=0.03)
TRUNK = ("torso", "neck", "L5", "L4", "L3", "L2", "L1", *(f"T{k}" for k in range(12, 0, -1)))


@dataclass(frozen=True, eq=False)
class RobotMotion:
    """Robot fitted to a person's markers.

    Attributes:
        person: robot as a person, scaled by `factor`, with markers.
        factor: size of the person relative to the robot.
        fit: coordinates are six of the base and the robot's joints.
        at_limit: joint -> share of frames at a limit.
        alike: person's coordinate -> joint, sign 1 or -1.
    """

    name: str
    person: Person
    factor: float
    fit: Fit
    at_limit: dict[str, float]
    alike: dict[str, tuple[str, float]]
    warnings: tuple[str, ...]

    @property
    def rms(self) -> float:
        """RMS marker distance at the person's size [m]."""
        return float(np.sqrt(np.nanmean(self.fit.rms**2)))

    @property
    def joints(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Names and values (T, n) [rad] of all robot joints."""
        values = {n: v for n, v in self.person.with_dependent(self.fit.q).items() if not n.startswith(f"{BASE}_")}
        return tuple(values), np.stack(list(values.values()), axis=1)

    def angle(self, coordinate: str) -> np.ndarray:
        """Return the joint angle (T,) for a person's coordinate, with its sign [rad]."""
        name, sign = self.alike[coordinate]
        return sign * self.joint(name)

    def joint(self, name: str) -> np.ndarray:
        """Return joint values (T,) [rad], mimic joints included."""
        return self.person.with_dependent(self.fit.q)[name]


def robot_as_person(robot: Robot) -> Person:
    """Return a floating-base robot as a person without markers, or raise ClipError."""
    model = robot.model
    if robot.base != "floating":
        raise ClipError(f"{robot.name}: its base is fixed: load it with a floating base")
    X = robot.X_world_root
    coordinates = [Coordinate(f"{BASE}_{c}", c.startswith("r"), float(v)) for c, v in zip(
        ("rz", "ry", "rx", "tx", "ty", "tz"), (0.0, 0.0, 0.0, *X.translation), strict=True)]  # fmt: skip
    z, y, x = np.eye(3)[[2, 1, 0]]
    root = AnatomicalJoint(
        "base_joint", GROUND, BASE,
        rotations=tuple(CoordinateAxis(a, LINE, f"{BASE}_r{n}") for a, n in ((z, "z"), (y, "y"), (x, "x"))),
        translations=tuple(CoordinateAxis(a, LINE, f"{BASE}_t{n}") for a, n in ((x, "x"), (y, "y"), (z, "z"))),
    )  # fmt: skip
    bodies, joints = [_body(BASE, model.inertias[1])], [root]
    zero = robot.postures["zero"]
    for j in range(2, model.njoints):
        name, k = model.names[j], robot.index[model.names[j]]
        placement = model.jointPlacements[j]
        vector, slides = joint_axis(model, j)
        axis, turns = CoordinateAxis(vector, LINE, name), not slides
        parent = BASE if model.parents[j] == 1 else model.names[model.parents[j]]
        P = OffsetFrame(placement.rotation.copy(), placement.translation.copy())
        bodies.append(_body(name, model.inertias[j]))
        joints.append(
            AnatomicalJoint(
                f"{name}_joint", parent, name, P, OffsetFrame(), *(((axis,), ()) if turns else ((), (axis,)))
            )
        )
        coordinates.append(Coordinate(name, turns, float(zero[k]), float(robot.lower[k]), float(robot.upper[k]), True))
    couplings = [
        Coupling(robot.joint_names[a], robot.joint_names[b], Function((float(offset), float(factor))))
        for a, b, factor, offset in robot.mimic
    ]
    return Person(
        robot.name, tuple(bodies), tuple(joints), tuple(coordinates), (), tuple(couplings),
        np.array([0.0, 0.0, -9.80665]), (), {b.name: "robot" for b in bodies},
    )  # fmt: skip


def _body(name: str, inertia: pin.Inertia) -> PersonBody:
    return PersonBody(name, float(inertia.mass), np.array(inertia.lever), np.array(inertia.inertia))


# -------- Markers


@dataclass(frozen=True, eq=False)
class _RobotSegment:
    """Target of a body's markers: robot joint, robot and person lines (2, 3), factor."""

    joint: int
    there: np.ndarray
    here: np.ndarray
    factor: float


def place_markers(robot: Robot, person: Person) -> tuple[list[Marker], list[str]]:
    """Return a person's markers on a robot, and labels without a body.

    Args:
        robot: floating base.
        person: calibrated, y up; built-in body names.
    """
    posture = np.where(person.rotational, 0.0, person.rest)
    _, origins = person.body_poses(posture)
    at = {name: TO_ROBOT @ origins[0, k] for k, name in enumerate(person.body_names)}
    segments = _segments(robot, at)
    q = robot.q("zero")
    pin.forwardKinematics(robot.model, robot.data, q)
    out, lost = [], []
    for m in person.markers:
        s = segments.get(m.body)
        if s is None:
            lost.append(m.name)
            continue
        x = at[m.body] + TO_ROBOT @ np.asarray(m.place)
        R = _between(s.here[1] - s.here[0], s.there[1] - s.there[0])
        world = s.there[0] + s.factor * R @ (x - s.here[0])
        local = robot.data.oMi[s.joint].actInv(world)
        body = BASE if s.joint == 1 else robot.model.names[s.joint]
        out.append(Marker(m.name, body, np.array(local), m.anatomical))
    return out, lost


def _segments(robot: Robot, at: dict[str, np.ndarray]) -> dict[str, _RobotSegment]:
    """Return body of the person -> equivalent robot segment."""
    model, q = robot.model, robot.q("zero")
    pin.forwardKinematics(model, robot.data, q)
    pin.updateFramePlacements(model, robot.data)
    points = {n: robot.data.oMf[f].translation.copy() for n, f in robot.points.items()}
    on = {n: int(model.frames[f].parentJoint) for n, f in robot.points.items()}
    here: dict[str, np.ndarray] = {}
    out: dict[str, _RobotSegment] = {}

    def line(bodies: tuple[str, ...], joint: int, there: tuple, ends: tuple) -> None:
        a, b = np.array(there), np.array(ends)
        length = float(np.linalg.norm(b[1] - b[0]))
        factor = float(np.linalg.norm(a[1] - a[0])) / length if length > 0 else 1.0
        for name in bodies:
            out[name] = _RobotSegment(joint, a, b, factor)

    legs: dict[str, int] = {}
    for side in "rl":
        ankle = on.get(f"{side}_foot_tcp")
        shin = None if ankle is None else _knee(robot, side, ankle)
        if ankle is not None and shin is not None:
            first = ankle
            while model.parents[first] not in (shin, 0):
                first = int(model.parents[first])
            hip, knee_at, ankle_at = (robot.data.oMi[j].translation.copy() for j in (model.parents[shin], shin, first))
            if "mid_hip" in points:  # where the hip axes meet, which may differ from the origin of the last one
                hip = np.array([points["mid_hip"][0], hip[1], points["mid_hip"][2]])
            mine = at[f"femur_{side}"], at[f"tibia_{side}"], at[f"talus_{side}"]
            line((f"femur_{side}",), int(model.parents[shin]), (hip, knee_at), mine[:2])
            line((f"tibia_{side}",), shin, (knee_at, ankle_at), mine[1:])
            foot = mine[2], mine[2] + mine[2] - mine[1]
            line((f"talus_{side}", f"calcn_{side}", f"toes_{side}"), ankle, (ankle_at, 2 * ankle_at - knee_at), foot)
            legs[side], here[f"hip_{side}"] = int(model.parents[shin]), hip
        shoulder, elbow, wrist = (points.get(f"{side}_{p}") for p in ("gh", "elbow", "wrist"))
        if shoulder is None or elbow is None or wrist is None:
            continue
        arm = at[f"humerus_{side}"], at[f"ulna_{side}"], at[f"hand_{side}"]
        bend = robot.joint_for(f"{side}_elbow_flexion")
        upper = int(model.parents[model.getJointId(bend)]) if bend else on[f"{side}_elbow"]
        line((f"humerus_{side}",), upper, (shoulder, elbow), arm[:2])
        line((f"ulna_{side}", f"radius_{side}"), _before(model, on[f"{side}_wrist"]), (elbow, wrist), arm[1:])
        tip = next((on[f"{side}_{p}"] for p in ("fingertip", "tcp") if f"{side}_{p}" in on), on[f"{side}_wrist"])
        line((f"hand_{side}",), tip, (wrist, 2 * wrist - elbow), (arm[2], 2 * arm[2] - arm[1]))
    if {"l_gh", "r_gh", "sternum"} <= set(points):
        neck = (points["l_gh"] + points["r_gh"]) / 2
        hips = (here["hip_r"] + here["hip_l"]) / 2 if legs else points.get("mid_hip", neck - [0, 0, 0.5])
        mine_neck, mine_hips = ((at[f"{b}_r"] + at[f"{b}_l"]) / 2 for b in ("humerus", "femur"))
        pelvis = _common(model, list(legs.values())) if legs else on.get("mid_hip", 1)
        line(("pelvis",), pelvis, (hips, neck), (mine_hips, mine_neck))
        line((*TRUNK, "clavicle_r", "clavicle_l"), on["sternum"], (neck, hips), (mine_neck, mine_hips))
        heads = [j for j in range(2, model.njoints) if model.names[j].startswith(("neck", "head"))]
        if heads:
            line(("head",), heads[-1], (neck, hips), (mine_neck, mine_hips))
    return out


def _knee(robot: Robot, side: str, foot: int) -> int | None:
    """Return the knee by name, else the lateral hinge with longest bones."""
    named = robot.joint_for(f"{side}_knee_flexion")
    if named is not None:
        return int(robot.model.getJointId(named))
    chain = [foot]
    while robot.model.parents[chain[-1]] > 1:
        chain.append(int(robot.model.parents[chain[-1]]))
    at = [robot.data.oMi[j].translation for j in chain]
    best, length = None, SHORT_BONE
    for k, j in enumerate(chain[1:-1], 1):
        across = abs((robot.data.oMi[j].rotation @ joint_axis(robot.model, j)[0])[1])
        bone = min(float(np.linalg.norm(at[k] - at[0])), float(np.linalg.norm(at[k] - at[-1])))
        if across > ACROSS and bone > length:
            best, length = j, bone
    return best


def _alike(robot: Robot) -> dict[str, tuple[str, float]]:
    """Return equivalent joints of coordinates, with signs."""
    model = robot.model
    pin.framesForwardKinematics(model, robot.data, robot.q("zero"))
    out = {}
    for side in "rl":
        names = {c: robot.joint_for(f"{side}_{j}") for c, j in ALIKE.items()}
        if names["knee_angle"] is None and f"{side}_foot_tcp" in robot.points:
            knee = _knee(robot, side, int(model.frames[robot.points[f"{side}_foot_tcp"]].parentJoint))
            names["knee_angle"] = None if knee is None else model.names[knee]
        for coordinate, name in names.items():
            if name is None:
                continue
            j = model.getJointId(name)
            y = float((robot.data.oMi[j].rotation @ joint_axis(model, j)[0])[1])
            forward = 1.0 if coordinate == "knee_angle" else -1.0  # about +y a shank swings back, others forward
            out[f"{coordinate}_{side}"] = name, float(np.sign(y) or 1.0) * forward
    return out


def _before(model: pin.Model, wrist: int) -> int:
    """Return the last joint before the wrist joints."""
    while model.names[wrist].split("_")[1:2] == ["wrist"]:
        wrist = int(model.parents[wrist])
    return wrist


def _common(model: pin.Model, joints: list[int]) -> int:
    chains = []
    for j in joints:
        chain = []
        while j > 0:
            j = int(model.parents[j])
            chain.append(j)
        chains.append(chain)
    return next(j for j in chains[0] if all(j in chain for chain in chains))


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the smallest rotation from a to b; identity for zero length."""
    if not (np.linalg.norm(a) > 0 and np.linalg.norm(b) > 0):
        return np.eye(3)
    return np.asarray(pin.Quaternion.FromTwoVectors(a / np.linalg.norm(a), b / np.linalg.norm(b)).toRotationMatrix())


# -------- The fit


def robot_rows(analysis: Analysis, motions: Sequence[RobotMotion]) -> list[dict[str, Any]]:
    """Return comparison rows of the person and each robot.

    Correlation and RMS difference [deg] are of knees and elbows.
    """
    a = analysis
    rms = 1e3 * float(np.sqrt(np.nanmean(a.fit.rms**2)))
    head = {"name": a.person.name, "coordinates": a.person.n, "factor": 1.0, "markers": len(a.fit.labels)}
    rows: list[dict[str, Any]] = [{**head, "rms_mm": round(rms, 1), "at_limit": "", "correlation": "", "rms_deg": ""}]
    for m in motions:
        corr, difference = [], []
        for coordinate in m.alike:
            if coordinate.startswith(("knee", "elbow")):
                mine, theirs = a.fit.q[:, a.person.index(coordinate)], m.angle(coordinate)
                if mine.std() > 0 and theirs.std() > 0:
                    corr.append(float(np.corrcoef(mine, theirs)[0, 1]))
                difference.append(float(np.rad2deg(np.sqrt(((mine - theirs) ** 2).mean()))))
        worst = sorted(m.at_limit.items(), key=lambda x: -x[1])[:3]
        rows.append({
            "name": m.name, "coordinates": m.person.n, "factor": round(m.factor, 3), "markers": len(m.fit.labels),
            "rms_mm": round(1e3 * m.rms, 1), "at_limit": ", ".join(f"{n} {100 * v:.0f} %" for n, v in worst),
            "correlation": round(float(np.mean(corr)), 3) if corr else "",
            "rms_deg": round(float(np.mean(difference)), 1) if difference else "",
        })  # fmt: skip
    return rows


def fit_robot(analysis: Analysis, robot: Robot) -> RobotMotion:
    """Fit a robot to the markers of an analysis.

    Args:
        analysis: of a person with built-in body names.
        robot: floating base.

    Raises:
        ClipError: if the robot has fewer than six markers, or an implausible size.
    """
    markers, lost = place_markers(robot, analysis.person)
    used = {m.name for m in markers} & set(analysis.fit.labels)
    if len(used) < 6:
        raise ClipError(
            f"{robot.name}: takes {len(used)} of the markers: it has too few points in common with a person"
        )
    person = robot_as_person(robot).with_markers([m for m in markers if m.name in used])
    clip, _, _ = upright(person, analysis.clip, ())
    found = calibrate(person, clip.positions, clip.labels, None, PLACES)
    moved = found.person
    result = fit(moved, clip.positions, clip.labels)
    lower = np.array([c.lower for c in moved.coordinates])
    upper = np.array([c.upper for c in moved.coordinates])
    near = (result.q - lower < NEAR_LIMIT) | (upper - result.q < NEAR_LIMIT)
    at_limit = {n: float(near[:, k].mean()) for k, n in enumerate(moved.names) if near[:, k].any()}
    alike = {c: pair for c, pair in _alike(robot).items() if c in analysis.person.names}
    said = [f"no position for {', '.join(lost)}"] if lost else []
    factor = float(np.mean(list(found.factors.values())))
    return RobotMotion(robot.name, moved, factor, result, at_limit, alike, (*said, *result.warnings))
