"""Whole-body trajectories in formats of GMR, ProtoMotions, BeyondMimic and MuJoCo.

These programs identify joints by position: depth first, children in URDF order, as in an MJCF file made from the URDF.
NPZ files also store the names.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.files import whole_file

if TYPE_CHECKING:
    from humanoid_control.retargeting.trajectory import WholeBodyTrajectory
    from humanoid_control.robots import Robot

XYZW_TO_WXYZ = (3, 0, 1, 2)
KEYFRAMES = 2000  # maximum in an XML file; longer motions need an NPZ file


@dataclass(frozen=True)
class Interchange:
    """File format of another program."""

    suffix: str
    about: str
    write: Callable[[Path, WholeBodyTrajectory, Robot], None]


def tree_order(robot: Robot) -> tuple[str, ...]:
    """Return the joint names, depth first from the root, children in URDF order."""
    below: dict[str, list[tuple[str, str]]] = {}
    for joint in ET.fromstring(robot.urdf).findall("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        if parent is not None and child is not None:
            below.setdefault(parent.get("link", ""), []).append((joint.get("name", ""), child.get("link", "")))
    names, rest = [], [("", robot.root_link)]
    while rest:
        joint_name, link = rest.pop()
        if joint_name in robot.index:
            names.append(joint_name)
        rest += reversed(below.get(link, []))
    return (*names, *(n for n in robot.joint_names if n not in names))


def moving_links(robot: Robot) -> tuple[str, ...]:
    """Return the root link and the link moved by each joint of `tree_order`."""
    links = {joint.get("name"): child.get("link", "") for joint in ET.fromstring(robot.urdf).findall("joint")
             if (child := joint.find("child")) is not None}  # fmt: skip
    return (robot.root_link, *(links[name] for name in tree_order(robot) if name in links))


def _joints(trajectory: WholeBodyTrajectory, robot: Robot) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    names = tree_order(robot)
    columns = [trajectory.joint_names.index(name) for name in names]
    return names, trajectory.positions[:, columns], trajectory.velocities[:, columns]


def write_gmr(path: Path, trajectory: WholeBodyTrajectory, robot: Robot) -> None:
    """Write a GMR motion (Ze et al. 2025): fps, root_pos, root_rot (x y z w), dof_pos, local_body_pos.

    `local_body_pos` (T, B, 3) are positions of the links `link_body_list` in the root frame.
    """
    names, angles, _ = _joints(trajectory, robot)
    links = moving_links(robot)
    frames = [robot.model.getFrameId(link) for link in links]
    q, local = robot.q(), np.empty((len(angles), len(links), 3))
    q[:3], q[3:7] = 0.0, (0, 0, 0, 1)
    root = frames[0]
    for k, joints in enumerate(trajectory.positions):
        q[robot.iq :] = joints
        pin.framesForwardKinematics(robot.model, robot.data, q)
        X = robot.data.oMf[root]
        places = np.array([robot.data.oMf[f].translation for f in frames])
        local[k] = (places - X.translation) @ X.rotation
    _save(
        path,
        fps=_rate_number(trajectory.rate),
        root_pos=trajectory.root_position,
        root_rot=trajectory.root_quaternion,
        dof_pos=angles,
        local_body_pos=local,
        link_body_list=np.array(links),
        joint_names=np.array(names),
    )


def write_protomotions(path: Path, trajectory: WholeBodyTrajectory, robot: Robot) -> None:
    """Write arrays for the ProtoMotions converter: base_frame_pos, base_frame_wxyz, joint_angles, fps.

    `foot_contacts` (T, 2), left and right, is read from NAME_contacts.npz: a copy of the file suffices.
    """
    names, angles, _ = _joints(trajectory, robot)
    _save(
        path,
        base_frame_pos=trajectory.root_position,
        base_frame_wxyz=trajectory.root_quaternion[:, XYZW_TO_WXYZ],
        joint_angles=angles,
        fps=trajectory.rate,
        foot_contacts=trajectory.contacts.reshape(-1, 2, 2).any(axis=2).astype(np.float32),
        joint_names=np.array(names),
    )


def write_beyondmimic(path: Path, trajectory: WholeBodyTrajectory, robot: Robot) -> None:
    """Write the table for `csv_to_npz.py` of whole_body_tracking: x y z [m], quaternion x y z w, joints [rad].

    There is no header. Pass the frame rate to the script as `--input_fps`.
    """
    _, angles, _ = _joints(trajectory, robot)
    with whole_file(path) as part:
        table = np.hstack([trajectory.root_position, trajectory.root_quaternion, angles])
        np.savetxt(part, table, fmt="%.9f", delimiter=",")


def qpos(trajectory: WholeBodyTrajectory, robot: Robot) -> np.ndarray:
    """Return MuJoCo configurations (T, 7 + n): root position [m], quaternion w x y z, joints in tree order [rad]."""
    _, angles, _ = _joints(trajectory, robot)
    return np.hstack([trajectory.root_position, trajectory.root_quaternion[:, XYZW_TO_WXYZ], angles])


def write_mujoco(path: Path, trajectory: WholeBodyTrajectory, robot: Robot) -> None:
    """Write arrays for MuJoCo: qpos (T, 7 + n), qvel (T, 6 + n), timestep [s], joint_names.

    Velocities are forward differences: linear in the world, angular in the root frame.
    """
    names, _, velocities = _joints(trajectory, robot)
    p, dt = trajectory.root_position, 1.0 / trajectory.rate
    R = [pin.Quaternion(x).toRotationMatrix() for x in trajectory.root_quaternion]
    turns = np.array([pin.log3(a.T @ b) for a, b in zip(R, [*R[1:], R[-1]], strict=True)]) / dt
    slides = np.diff(p, axis=0, append=p[-1:]) / dt
    _save(
        path,
        qpos=qpos(trajectory, robot),
        qvel=np.hstack([slides, turns, velocities]),
        timestep=dt,
        joint_names=np.array(names),
    )


def write_keyframes(path: Path, trajectory: WholeBodyTrajectory, robot: Robot) -> None:
    """Write an MJCF file of keyframes, to include in a model with the same joint order.

    Raises:
        ConfigError: if there are more than KEYFRAMES frames, or the file cannot be written.
    """
    table = qpos(trajectory, robot)
    if len(table) > KEYFRAMES:
        raise ConfigError(
            f"{len(table)} frames are too many keyframes ({KEYFRAMES}): take --format mujoco, an NPZ file"
        )
    top = ET.Element("mujoco")
    top.append(ET.Comment(f" joints after the free one: {' '.join(tree_order(robot))} ".replace("--", "- -")))
    keys = ET.SubElement(top, "keyframe")
    for k, row in enumerate(table):
        values = " ".join(f"{v:.9g}" for v in row)
        ET.SubElement(keys, "key", name=f"frame_{k}", time=f"{k / trajectory.rate:.6f}", qpos=values)
    ET.indent(top)
    with whole_file(path) as part:
        ET.ElementTree(top).write(part, encoding="utf-8")


def _save(path: Path, **arrays: object) -> None:
    """Write an NPZ file atomically and without pickles."""
    with whole_file(path) as part:
        np.savez_compressed(part, **arrays)  # type: ignore[arg-type]


INTERCHANGE = {
    "gmr": Interchange(".npz", "GMR: the fields of its motions", write_gmr),
    "protomotions": Interchange(".npz", "ProtoMotions: convert_pyroki_retargeted_...", write_protomotions),
    "beyondmimic": Interchange(".csv", "whole_body_tracking: csv_to_npz.py", write_beyondmimic),
    "mujoco": Interchange(".npz", "MuJoCo: qpos and qvel", write_mujoco),
    "keyframes": Interchange(".xml", "MuJoCo: keyframes", write_keyframes),
}


def _rate_number(rate: float) -> float | int:
    """Return a rate [Hz] as an integer if it is one, as most readers expect."""
    return round(rate) if abs(rate - round(rate)) < 1e-6 * rate else rate
