"""Frames of REP 120 that are fixed to links; state estimation publishes `base_footprint`, `odom` and `map`."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.documents import parse_xml
from humanoid_control.robots.robot import Robot

BASE, TORSO, GAZE = "base_link", "torso", "gaze"
SIDES = ("l", "r")
GRIPPER_POINTS = ("tcp", "fingertip")  # points of the robot file, the first is used
_HEAD = re.compile(r"head|neck|cervical", re.I)
_NO_GAZE = re.compile(r"camera|eye|jaw|face|mouth|ear(?![a-z])|antenna", re.I)


class StandardFrame(NamedTuple):
    """Frame with a standard name.

    Attributes:
        link: carries it.
        X_link_frame: its pose in the link.
        own: the description has a link of this name.
    """

    link: str
    X_link_frame: pin.SE3
    own: bool


def standard_frames(robot: Robot) -> dict[str, StandardFrame]:
    """Return the REP 120 frames of a robot by name.

    * `base_link`: the root link. `torso`: lowest body that carries both wrists and the gaze.
    * `l_sole`, `r_sole`: x-y plane in the contact surface, origin below the link's origin.
    * `l_ankle`, `r_ankle`: foot link. `l_wrist`, `r_wrist`, `l_gripper`, `r_gripper`: points of the robot file.
    * `gaze`: on the last body of neck and head; in the neutral posture x forward, z up (REP 103).

    Missing parts (wheels, no neck) have no frame; existing links are never replaced. The robot's data are overwritten.
    """
    model, data = robot.model, robot.data
    pin.framesForwardKinematics(model, data, robot.q("neutral"))
    R_root = data.oMf[model.getFrameId(robot.root_link)].rotation
    found = {BASE: (robot.root_link, pin.SE3(R_root.T, np.zeros(3)))}
    for foot in robot.feet:
        side = foot.name[:1]
        if foot.name == f"{side}_foot" and side in SIDES:
            found[f"{side}_ankle"] = foot.link, pin.SE3.Identity()
            found[f"{side}_sole"] = foot.link, pin.SE3(np.eye(3), np.array([0.0, 0.0, foot.z]))
        elif foot.name == f"{side}_toe" and side in SIDES:
            found[f"{side}_toe"] = foot.link, pin.SE3(np.eye(3), np.array([0.0, 0.0, foot.z]))
    for side in SIDES:
        points = {f"{side}_wrist": (f"{side}_wrist",), f"{side}_gripper": tuple(f"{side}_{p}" for p in GRIPPER_POINTS)}
        for name, labels in points.items():
            if label := next((p for p in labels if p in robot.points), None):
                found[name] = _on_body(robot, model.frames[robot.points[label]])
    if at := _head(robot):
        link, origin = at
        found[GAZE] = link, data.oMf[model.getFrameId(link)].actInv(pin.SE3(np.eye(3), origin))
    carried = [
        model.frames[model.getFrameId(found[n][0])].parentJoint for n in ("l_wrist", "r_wrist", GAZE) if n in found
    ]
    if len(carried) > 1:
        shared = set.intersection(*({int(k) for k in model.supports[j]} for j in carried))
        found[TORSO] = _link_of(robot, max(shared)), pin.SE3.Identity()
    links = {f.name for f in model.frames if f.type == pin.FrameType.BODY}
    return {
        name: StandardFrame(name, pin.SE3.Identity(), True) if name in links else StandardFrame(link, X, False)
        for name, (link, X) in found.items()
    }


def _on_body(robot: Robot, frame: pin.Frame) -> tuple[str, pin.SE3]:
    link = _link_of(robot, frame.parentJoint)
    return link, robot.model.frames[robot.model.getFrameId(link)].placement.actInv(frame.placement)


def _link_of(robot: Robot, joint: int) -> str:
    bodies = [f.name for f in robot.model.frames if f.type == pin.FrameType.BODY and f.parentJoint == joint]
    return robot.root_link if robot.root_link in bodies or not bodies else bodies[0]


def _head(robot: Robot) -> tuple[str, np.ndarray] | None:
    """Return head link and frame position (3,) in the neutral posture [m], or None."""
    model, data = robot.model, robot.data
    limbs = {int(k) for f in robot.points.values() for k in model.supports[model.frames[f].parentJoint]}
    free = [
        j
        for j in range(1, model.njoints)
        if _is_head(model.names[j]) and (j not in limbs or "head_top" in robot.points)
    ]
    if free:
        depth = {j: sum(int(k) in free for k in model.supports[j]) for j in free}
        last = max(free, key=lambda j: depth[j])
        return _link_of(robot, last), data.oMi[last].translation.copy()
    fixed = [f for f in model.frames if f.type == pin.FrameType.BODY and _is_head(f.name)]
    if not fixed:
        return None
    # The origin of a fixed link often lies in its parent; its centre of mass lies in the head.
    tree = parse_xml(robot.urdf, robot.name, "a URDF")
    origin = tree.find(f"./link[@name='{fixed[0].name}']/inertial/origin")
    center = np.array((origin.get("xyz", "0 0 0") if origin is not None else "0 0 0").split(), dtype=float)
    return fixed[0].name, data.oMf[model.getFrameId(fixed[0].name)].act(center)


def _is_head(name: str) -> bool:
    return bool(_HEAD.search(name)) and not _NO_GAZE.search(name)
