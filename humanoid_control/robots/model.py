"""The pinocchio model of a robot: base held or free, tracked points as frames, mimicking joints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.robot_file import RobotFile
from humanoid_control.robots.urdf_root import placed_in_world, rooted_at
from humanoid_control.robots.urdf_tree import UrdfTree

FIXED, FLOATING = "fixed", "floating"


def build_model(tree: UrdfTree, file: RobotFile, base: str, anchor: str, X_world_root: pin.SE3) -> pin.Model:
    """The model, with the tracked points of the robot file as operational frames.

    Args:
        tree: a checked URDF.
        file: whose points are added.
        base: 'floating' lets the root move; 'fixed' roots the tree at the anchor and holds that still, where it is in
            the neutral posture.
        anchor: the link that is held.
        X_world_root: pose of the root link in the neutral posture.

    Raises:
        RobotError: pinocchio refuses the URDF.
    """
    tree = tree.bare()
    try:
        if base == FLOATING:
            model = pin.buildModelFromXML(tree.text(), pin.JointModelFreeFlyer())
        else:
            X_world_anchor = X_world_root * _pose_in_root(tree, file, anchor)
            model = pin.buildModelFromXML(placed_in_world(rooted_at(tree, anchor), X_world_anchor).text())
    except (ValueError, RuntimeError) as e:
        raise RobotError(f"{tree.where}: pinocchio cannot build a model: {str(e).splitlines()[0]}") from None
    for name, (link, xyz) in file.points.items():
        link_frame = model.frames[model.getFrameId(link)]
        X = link_frame.placement * pin.SE3(np.eye(3), np.array(xyz))
        label, joint = point_label(name, tree), link_frame.parentJoint
        model.addFrame(pin.Frame(label, joint, model.getFrameId(link), X, pin.FrameType.OP_FRAME), False)
    return model


def point_label(name: str, tree: UrdfTree) -> str:
    """Name of a tracked point's frame: its own, unless a link or a joint has that name already."""
    taken = {*tree.links, *(j.get("name") for j in tree.joints)}
    return f"point:{name}" if name in taken else name


def _pose_in_root(tree: UrdfTree, file: RobotFile, link: str) -> pin.SE3:
    """Pose of a link in the root link in the neutral posture."""
    model = pin.buildModelFromXML(tree.text())
    q = pin.neutral(model)
    for name, value in file.postures.get("neutral", {}).items():
        if model.existJointName(name):
            q[model.joints[model.getJointId(name)].idx_q] = value
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return data.oMf[model.getFrameId(tree.root)].inverse() * data.oMf[model.getFrameId(link)]


def mimicking_joints(tree: UrdfTree, index: Mapping[str, int]) -> list[tuple[int, int, float, float]]:
    """Joints that follow another one: (follower, leader, multiplier, offset), joints by their index.

    Raises:
        UnknownNameError: the leader does not exist.
    """
    out, joints = [], {j.get("name", "") for j in tree.joints}
    for joint in tree.joints:
        m = joint.find("mimic")
        if m is None:
            continue
        leader, follower = m.get("joint", ""), index.get(joint.get("name", ""))
        if leader not in joints:
            raise UnknownNameError("joint", leader, joints, hint=f"(mimicked by {joint.get('name')})")
        if follower is None or leader not in index:
            continue  # one of the two is fixed
        out.append((follower, index[leader], float(m.get("multiplier", "1")), float(m.get("offset", "0"))))
    return out
