"""Guessed robot file of an unknown URDF or MJCF, with comments, for manual completion."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from humanoid_control.collision.shapes import Box, Capsule, LinkShape, shape_to_row
from humanoid_control.documents import yaml_text
from humanoid_control.errors import RobotError
from humanoid_control.files import whole_file
from humanoid_control.robots.description.mjcf import read_description
from humanoid_control.robots.description.robot_file import SCHEMA, RobotFile, read_robot_file, shapes_from_urdf
from humanoid_control.robots.description.urdf import UrdfTree
from humanoid_control.robots.guess.bodies import Bodies
from humanoid_control.robots.guess.contact_shapes import ContactFit, fit_contacts
from humanoid_control.robots.guess.fitted_shapes import BodyFit, fit_bodies, fitted_links
from humanoid_control.robots.guess.limbs import (
    guess_feet,
)
from humanoid_control.robots.guess.mapping import Mapping, guess_mapping
from humanoid_control.robots.guess.overlaps import (
    crowded_links,
    links_overlapping_at_rest,
    overlapping_links,
    parted_posture,
    spread_posture,
    with_images,
)
from humanoid_control.robots.robot import Robot

UPPER_ARM, LOWER_ARM, TORSO = 0.14, 0.13, 0.5  # radii: share of the bone, of the bone, of half the shoulder width

# Progress shares: after shapes of bodies, free arms, and selection of pairs.
BODIES_SHARE, CONTACTS_BEGIN, FITTING_BEGIN = 0.3, 0.4, 0.5


def guess_robot_file(
    path: Path,
    folder: Path | None = None,
    shapes: bool = True,
    tell: Callable[[float, str], None] = lambda share, text: None,
) -> tuple[Path, Mapping]:
    """Guess the robot file of a URDF or MJCF and write it.

    Args:
        folder: default: the description's.
        shapes: include collision shapes.
        tell: called with the finished share, 0 to 1, and the next step.

    Returns:
        The written file, and the guessed data.

    Raises:
        RobotError: if the URDF is invalid or has no arms, or the robot file exists.
        ConfigError: if it cannot be written.
    """
    beside = (folder or path.parent) / path.with_suffix(".yaml").name
    if beside.exists():
        raise RobotError(f"{beside} exists already: move it to draft it again")
    tree = read_description(path)
    mapping = guess_mapping(tree)
    bodies = Bodies(tree, path.parent, np.array([np.sin(mapping.yaw), np.cos(mapping.yaw), 0.0]))
    if mapping.legs is not None:
        feet = guess_feet(Robot(tree, RobotFile(), "fixed"), tree, mapping.legs, bodies, mapping.yaw)
        mapping = replace(mapping, feet=feet)
    mapping = replace(mapping, fits=tuple(fit_bodies(bodies, lambda share, text: tell(BODIES_SHARE * share, text))))
    with whole_file(beside) as part:
        part.write_text(mapping_text(mapping, tree))
        robot = Robot(tree, read_robot_file(part), "fixed")  # checks that the file is readable
        if mapping.fits:
            arms = [[joint.name for joint in arm.shoulder] for arm in mapping.arms]
            postures: list[Callable[[Robot], dict[str, float]]] = [lambda robot: parted_posture(robot, bodies, arms)]
            if mapping.legs is not None:
                postures.append(lambda robot: spread_posture(robot, arms))
            tell(BODIES_SHARE, "a posture in which nothing touches")
            for posture in postures:
                if neutral := posture(robot):
                    mapping = replace(mapping, neutral=_on_both_sides(mapping.neutral | neutral, arms, robot))
                    part.write_text(mapping_text(mapping, tree))
                    robot = Robot(tree, read_robot_file(part), "fixed")
            if shapes:
                mapping = replace(mapping, contacts=tuple(_contacts(robot, tree, mapping, bodies, tell)))
        part.write_text(mapping_text(mapping, tree, shapes))
        Robot(tree, read_robot_file(part), "fixed")
    return beside, mapping


def _on_both_sides(neutral: dict[str, float], arms: list[list[str]], robot: Robot) -> dict[str, float]:
    """Apply the larger of two corresponding arm turns to both arms."""
    out = dict(neutral)
    for left, right in zip(*arms, strict=False):
        if left in out and right in out:
            most = max(abs(out[left]), abs(out[right]))
            for name in (left, right):
                k = robot.joint_index(name)
                out[name] = float(np.clip(np.copysign(most, out[name]), robot.lower[k], robot.upper[k]))
    return out


def _contacts(
    robot: Robot, tree: UrdfTree, mapping: Mapping, bodies: Bodies, tell: Callable[[float, str], None]
) -> list[ContactFit]:
    """Return shapes around first contacts of links with overlapping fitted shapes."""
    tell(CONTACTS_BEGIN, "links that overlap in random postures")
    stand_out = {fit.link: fit.outside_max for fit in mapping.fits}
    ways = () if mapping.legs is None else (mapping.legs.left, mapping.legs.right)
    legs = [robot.joint_index(joint.name) for way in ways for joint in way]
    often = with_images(overlapping_links(robot, stand_out, legs), bodies)
    at_rest = with_images(links_overlapping_at_rest(robot), bodies)
    crowded = with_images(crowded_links(robot, bodies, legs), bodies) if legs else []
    # Deeper overlaps may be collisions: they count only if contacts are fitted or absent.
    anyway = with_images(overlapping_links(robot, dict.fromkeys(tree.links, np.inf), legs), bodies) if legs else []
    crowded = [pair for pair in dict.fromkeys(crowded + anyway) if pair not in often]
    seldom = [pair for pair in dict.fromkeys(at_rest + crowded) if pair not in often]
    without = replace(robot.file, unwatched_links=(*often, *crowded))

    def fitting(share: float, text: str) -> None:
        tell(FITTING_BEGIN + (1.0 - FITTING_BEGIN) * share, text)

    contacts = fit_contacts(Robot(tree, without, "fixed"), bodies, often + seldom, tell=fitting)
    # Without own shapes, links that seldom overlap stay: some of their pairs are watched.
    return [c for c in contacts if c.shapes or c.links in often or (c.links in crowded and c.touched == 0)]


def mapping_text(mapping: Mapping, tree: UrdfTree, shapes: bool = True) -> str:
    """Return the text of a robot file, with comments on uncertain values, optionally with shapes."""
    robot = Robot(tree, RobotFile(), "fixed")
    lines = [
        "# Guessed from names and structure of the URDF: check every line, especially those marked GUESS.",
        "# See docs/adding_a_robot.md for the other keys.",
        f"schema: {SCHEMA}",
        f"title: {yaml_text(tree.name)}",
        f"base: {'floating' if mapping.has_legs else 'fixed'}",
        f"anchor: {yaml_text(mapping.points['mid_hip'].link)}  # the link that is held still in imitation",
        "# The soles are on the floor." if mapping.feet else "# GUESS: the lowest link or shape is on the floor.",
        f"root_height: {{neutral: {_above_floor(mapping, robot, tree):.4f}}}",
    ]
    if abs(mapping.yaw) > 1e-3:
        lines.append(f"root_rpy: [0, 0, {mapping.yaw:.6g}]  # the left side is not along y: turned to look along x")
    if mapping.neutral:
        angles = ", ".join(f"{yaml_text(joint)}: {angle:g}" for joint, angle in mapping.neutral.items())
        lines.append(
            f"postures: {{neutral: {{{angles}}}}}  # [rad]; with all joints at 0 arms touch the body or hang close"
        )
    added = {name: frame for foot in mapping.feet for name, frame in foot.frames.items()}
    if added:
        lines.append("frames:  # the robot's own axes on links with tilted axes")
    for name, frame in added.items():
        rpy = ", ".join(f"{v:g}" for v in frame.rpy)
        lines.append(f"  {name}: {{link: {yaml_text(frame.link)}, xyz: [0, 0, 0], rpy: [{rpy}]}}")
    lines += ["# Joints between hips and wrists; others keep the neutral posture.", "imitation_joints:"]
    lines += [f"  - {yaml_text(j)}" for j in mapping.imitation_joints]
    lines.append("points:  # in the frame of a link [m]")
    for name, p in mapping.points.items():
        xyz = ", ".join(f"{v + 0.0:.4f}" for v in np.round(p.xyz, 4))
        lines.append(f"  {name}: {{link: {yaml_text(p.link)}, xyz: [{xyz}]}}  # {'GUESS, ' if p.weak else ''}{p.how}")
    for side, foot in zip("lr", mapping.feet, strict=False):
        xyz = ", ".join(f"{v + 0.0:.4f}" for v in np.round(foot.place, 4))
        link = yaml_text(foot.soles[0].link)
        lines.append(f"  {side}_foot_tcp: {{link: {link}, xyz: [{xyz}]}}  # on the sole, below the ankle")
    if mapping.feet:
        lines.append("feet:  # soles: rectangles along the axes of a link [m]")
    for foot in mapping.feet:
        for sole in foot.soles:
            sides = ", ".join(f"{k}: {getattr(sole, k) + 0.0:.4f}" for k in ("x_min", "x_max", "y_min", "y_max", "z"))
            note = f"{'GUESS, ' if foot.weak else ''}around {foot.how}"
            lines.append(f"  - {{name: {sole.name}, link: {yaml_text(sole.link)}, {sides}}}  # {note}")
    if mapping.meanings:
        lines.append("meanings:  # anatomical name -> joint; which way is positive stays the joint's own")
        lines += [f"  {k}: {yaml_text(v)}" for k, v in mapping.meanings.items()]
    return "\n".join(lines + (_shape_lines(mapping, robot, tree) if shapes else [])) + "\n"


def _shape_lines(mapping: Mapping, robot: Robot, tree: UrdfTree) -> list[str]:
    lines: list[str] = []
    held = fitted_links(tree, list(mapping.fits))
    own = tuple(item for item in shapes_from_urdf(tree) if item.link not in held)
    fitted = tuple(item for fit in mapping.fits for item in fit.shapes)
    capsules = _capsules(mapping, robot, own + fitted)
    if capsules or fitted:
        sources = [w for w, some in (("fitted to its meshes", fitted), ("guessed from its bones", capsules)) if some]
        lines += [f"collision_from: shapes {' and '.join(sources)}", "collision:"]
        lines += [f"  - {json.dumps(shape_to_row(item))}" for item in own]
        for fit in mapping.fits:
            lines.append(f"  # {fit.link}: around its meshes, {fit_text(fit)}")
            lines += [f"  - {json.dumps(shape_to_row(item))}" for item in fit.shapes]
        for contact in mapping.contacts:
            if contact.shapes:
                lines.append(f"  # {' - '.join(contact.links)}: {contact_text(contact)}")
                lines += [f"  - {json.dumps(shape_to_row(item))}" for item in contact.shapes]
        if capsules:
            lines.append("  # GUESS: these have neither shapes nor meshes; capsules along the bones stand for them.")
            lines += capsules
    if mapping.contacts:
        lines.append(
            "# Their shapes overlap where the meshes do not: those around the whole bodies are not kept apart."
        )
        lines.append("unwatched_links:")
    for contact in mapping.contacts:
        a, b = contact.links
        lines.append(f"  - [{yaml_text(a)}, {yaml_text(b)}]  # {contact_text(contact)}")
    return lines


def contact_text(fit: ContactFit) -> str:
    """Describe the contacts of two links."""
    if fit.touched is None:
        return "GUESS: no geometry detects their contact"
    if not fit.touched:
        return "their meshes never touched in random postures"
    if not fit.shapes:
        return f"GUESS: their meshes touched in {100 * fit.touched:.0f} % of random motions, but no shapes detect it"
    inside = f", {1e3 * fit.shrunk:.0f} mm inside it" if fit.shrunk else ""
    kept = "as far apart as the meshes" if fit.by_distance else f"around the parts that touch first{inside}"
    missed, forbidden = f"{100 * fit.missed:.0f} % of the contacts", f"{100 * fit.early:.0f} % of the free postures"
    return f"{kept}; they miss {missed} and forbid {forbidden}"


def fit_text(fit: BodyFit) -> str:
    """Describe the excess of shapes."""
    text = f"outside them up to {1e3 * fit.outside_max:.0f} mm, {1e3 * fit.outside_mean:.0f} mm on average"
    return text + (f"; {1e3 * fit.inside_max:.1f} mm of a mesh stand out" if fit.inside_max > 1e-4 else "")


def _capsules(mapping: Mapping, robot: Robot, own: tuple[LinkShape, ...]) -> list[str]:
    """Return capsules along trunk and arm bones not covered by other shapes."""
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
    inward = (end - start) / np.linalg.norm(end - start) * radius
    ends = [poses[link].inverse().act(p) for p in (start + inward, end - inward)]
    p0, p1 = (", ".join(f"{v + 0.0:.4f}" for v in np.round(p, 4)) for p in ends)
    return (
        f"  - {{name: {name}, link: {yaml_text(link)}, shape: capsule, p0: [{p0}], p1: [{p1}], radius: {radius:.4f}}}"
    )


def _above_floor(mapping: Mapping, robot: Robot, tree: UrdfTree) -> float:
    """Return the root height above soles, else lowest link origin or shape [m]."""
    poses = robot.link_poses(robot.q("zero"))
    poses |= {n: poses[f.link] * f.pose() for foot in mapping.feet for n, f in foot.frames.items()}
    root = float(poses[tree.root].translation[2])
    if mapping.feet:
        soles = [sole for foot in mapping.feet for sole in foot.soles]
        return root - min(float(poses[s.link].act(c)[2]) for s in soles for c in s.corners())
    below = [float(X.translation[2]) for X in poses.values()]
    for item in (*shapes_from_urdf(tree), *(item for fit in mapping.fits for item in fit.shapes)):
        X, shape = poses[item.link], item.shape
        centre, radius = shape.bounding_sphere()
        if isinstance(shape, Box):
            R = X.rotation @ pin.rpy.rpyToMatrix(*shape.rpy)
            radius = float(np.abs(R[2]) @ shape.size) / 2
        elif isinstance(shape, Capsule):
            radius = shape.radius + abs(float(X.rotation[2] @ (np.array(shape.p1) - shape.p0))) / 2
        below.append(float(X.act(centre)[2]) - radius)
    return root - min(below)
