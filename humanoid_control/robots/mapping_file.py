"""A guessed robot file as text with remarks, written beside the URDF for a person to finish."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots.mapping import Mapping, guess_mapping
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.robot_file import SCHEMA, RobotFile, read_robot_file, shapes_from_urdf
from humanoid_control.robots.shapes import LinkShape, shape_to_row
from humanoid_control.robots.urdf_tree import UrdfTree, parse_urdf
from humanoid_control.whole_files import whole_file

UPPER_ARM, LOWER_ARM, TORSO = 0.14, 0.13, 0.5  # radii: share of the bone, of the bone, of half the shoulder width


def map_urdf(path: Path) -> tuple[Path, Mapping]:
    """Guess the robot file of a URDF and write it beside it.

    Returns:
        The file written, and what was guessed.

    Raises:
        RobotError: not a usable URDF, no arms in it, or a robot file is there already.
        ConfigError: it cannot be written.
    """
    beside = path.with_suffix(".yaml")
    if beside.exists():
        raise RobotError(f"{beside} exists already: move it away to have it guessed anew")
    try:
        tree = parse_urdf(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as e:
        raise RobotError(f"{path}: cannot be read as a URDF: {e.__class__.__name__}") from None
    mapping = guess_mapping(tree)
    with whole_file(beside) as part:
        part.write_text(mapping_text(mapping, tree))
        Robot(tree, read_robot_file(part), "fixed")  # what is written can be read
    return beside, mapping


def mapping_text(mapping: Mapping, tree: UrdfTree) -> str:
    """The robot file with remarks: what was found by the structure, and what is only a guess."""
    robot = Robot(tree, RobotFile(), "fixed")
    lines = [
        "# Guessed from names and structure of the URDF: check every line, above all those marked GUESS.",
        "# See docs/adding_a_robot.md for what else may stand here (feet, postures).",
        f"schema: {SCHEMA}",
        f"title: {_quoted(tree.name)}",
        f"base: {'floating' if mapping.has_legs else 'fixed'}",
        f"anchor: {_quoted(mapping.points['mid_hip'].link)}  # the link that is held still in imitation",
        f"root_height: {{neutral: {_lowest(robot, tree):.3f}}}  # GUESS: the lowest link or shape is on the floor",
    ]
    if abs(mapping.yaw) > 1e-3:
        lines.append(f"root_rpy: [0, 0, {mapping.yaw:.6g}]  # the left side is not along y: turned to look along x")
    lines += ["# Joints between hips and wrists; others keep the neutral posture.", "imitation_joints:"]
    lines += [f"  - {_quoted(j)}" for j in mapping.imitation_joints]
    lines.append("points:  # in the frame of a link [m]")
    for name, p in mapping.points.items():
        xyz = ", ".join(f"{v + 0.0:.4f}" for v in np.round(p.xyz, 4))
        lines.append(f"  {name}: {{link: {_quoted(p.link)}, xyz: [{xyz}]}}  # {'GUESS, ' if p.weak else ''}{p.how}")
    if mapping.meanings:
        lines.append("meanings:  # anatomical name -> joint; which way is positive stays the joint's own")
        lines += [f"  {k}: {_quoted(v)}" for k, v in mapping.meanings.items()]
    own = shapes_from_urdf(tree)
    if capsules := _capsules(mapping, robot, own):
        lines.append("collision:")
        lines += [f"  - {json.dumps(shape_to_row(item))}" for item in own]
        lines.append("  # GUESS: where the URDF has only meshes, or nothing, these keep trunk and arms apart.")
        lines += capsules
    return "\n".join(lines) + "\n"


def _capsules(mapping: Mapping, robot: Robot, own: tuple[LinkShape, ...]) -> list[str]:
    """Capsules along the trunk and the arm bones, for those of which no shape covers the middle."""
    poses = robot.link_poses(robot.q("zero"))
    at = {name: poses[p.link].act(p.xyz) for name, p in mapping.points.items()}
    half_width = float(np.linalg.norm(at["l_gh"] - at["r_gh"])) / 2
    bones = [("torso", "sternum", "mid_hip", TORSO * half_width)]
    for s in "lr":
        for shape, share, a, b in (("upper_arm", UPPER_ARM, "gh", "elbow"), ("lower_arm", LOWER_ARM, "elbow", "wrist")):
            ends = f"{s}_{a}", f"{s}_{b}"
            bones.append((f"{s}_{shape}", *ends, share * float(np.linalg.norm(at[ends[1]] - at[ends[0]]))))
    covers = [(poses[item.link].act(c), r) for item in own for c, r in [item.shape.bounding_sphere()]]
    return [
        _capsule(f"{name}_guess", mapping.points[a].link, at[a], at[b], radius, poses)
        for name, a, b, radius in bones
        if not any(np.linalg.norm((at[a] + at[b]) / 2 - c) < r for c, r in covers)
    ]


def _capsule(name: str, link: str, start: np.ndarray, end: np.ndarray, radius: float, poses: dict[str, pin.SE3]) -> str:
    """A row of the collision table: a capsule between two points in the world, its round ends inside them."""
    inward = (end - start) / np.linalg.norm(end - start) * radius
    ends = [poses[link].inverse().act(p) for p in (start + inward, end - inward)]
    p0, p1 = (", ".join(f"{v + 0.0:.4f}" for v in np.round(p, 4)) for p in ends)
    return f"  - {{name: {name}, link: {_quoted(link)}, shape: capsule, p0: [{p0}], p1: [{p1}], radius: {radius:.4f}}}"


def _lowest(robot: Robot, tree: UrdfTree) -> float:
    """How far the lowest link origin or primitive shape lies below the root in the zero posture [m]."""
    poses = robot.link_poses(robot.q("zero"))
    below = [float(X.translation[2]) for X in poses.values()]
    for item in shapes_from_urdf(tree):
        centre, radius = item.shape.bounding_sphere()
        size = getattr(item.shape, "size", None)
        half = float(np.abs(poses[item.link].rotation[2] @ np.diag(size)).sum() / 2) if size else radius
        below.append(float(poses[item.link].act(centre)[2]) - half)
    return float(poses[tree.root].translation[2]) - min(below)


def _quoted(text: str) -> str:
    """A YAML scalar: quoted where a plain one would mean something else."""
    return text if text.replace("_", "").replace("-", "").isalnum() and not text.isdigit() else f'"{text}"'
