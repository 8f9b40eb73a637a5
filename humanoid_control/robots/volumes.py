"""Swept-sphere volumes of a robot, from its file or its collision shapes, and their pairs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.distance import SegmentPairs
from humanoid_control.collision.ssv.fitting import fit_volumes, inertia_points, volumes_of_shape
from humanoid_control.collision.ssv.model import Frame, PoseArray, SsvModel
from humanoid_control.collision.ssv.pair_selection import Mechanism, PairChoice, Sampling, choose_pairs
from humanoid_control.collision.ssv.segments import Segment, SegmentFile, SegmentPair, Volume, read_segment_file
from humanoid_control.errors import RobotError, UnknownNameError, told_of
from humanoid_control.robots.description.urdf import parse_urdf, placement
from humanoid_control.robots.robot import Robot, joint_columns

WORLD = "world"  # link of static segments: obstacles
TURN = np.pi  # [rad] sampled range of joints without limits, both ways


def volumes_of(robot: Robot, by_link: bool = False) -> SsvModel:
    """Return the robot's volumes, from its file or its collision shapes.

    Args:
        by_link: one compound per link with a group per shape (fewer pairs); else one segment per shape, pair k is
            `robot.pairs[k]`.

    Raises:
        UnknownNameError: if the file has an unknown name.
        RobotError: if the file does not fit.
    """
    if robot.volumes is not None:
        with told_of(robot.volumes):
            return model_of(robot, read_segment_file(robot.volumes))
    if by_link:
        return model_of(robot, volumes_of_shapes(robot))
    names = [s.name for s in robot.shapes]
    return build_volumes(robot, segments_of(robot), [SegmentPair(names[i], names[j]) for i, j in robot.pairs])


def volumes_of_shapes(robot: Robot) -> SegmentFile:
    """Return a draft volumes file: collision shapes by link, with pairs."""
    return SegmentFile(segments_of(robot, by_link=True), tuple(_pairs_by_link(robot)), robot.name)


def model_of(robot: Robot, file: SegmentFile) -> SsvModel:
    """Return the model of a file; samples pairs if it has none, within seconds. Raises as `SsvModel.build`."""
    pairs = find_pairs(robot, file.segments).pairs if file.pairs is None else file.pairs
    return build_volumes(robot, file.segments, pairs)


def segments_of(robot: Robot, by_link: bool = False) -> tuple[Segment, ...]:
    """Return the segments of the robot's collision shapes."""
    if not by_link:
        return tuple(Segment(s.name, s.link, volumes_of_shape(s.shape, s.name)) for s in robot.shapes)
    links: dict[str, list[Volume]] = {}
    for s in robot.shapes:
        of_link = links.setdefault(s.link, [])
        for v in volumes_of_shape(s.shape, s.name):
            taken = {x.name for x in of_link}  # the second part of a shape may have the name of another shape
            name = next(x for k in count(1) if (x := v.name if k == 1 else f"{v.name}_{k}") not in taken)
            of_link.append(Volume(name, v.type, v.radius, v.vertices, s.name))
    return tuple(Segment(link, link, tuple(ssvs)) for link, ssvs in links.items())


def build_volumes(robot: Robot, segments: Iterable[Segment], pairs: Iterable[SegmentPair]) -> SsvModel:
    """Build arrays of segments on links, and on WORLD for obstacles. Raises as `SsvModel.build`."""
    still = {WORLD: (0, np.eye(3), np.zeros(3))}
    return SsvModel.build(segments, still | link_frames(robot), pairs)


def segment_pairs(
    robot: Robot, model: SsvModel, activation: float = float("inf"), broad_phase: str = "obb"
) -> SegmentPairs:
    """Create the distance computation, to be placed with rows of a `PoseArray`."""
    return SegmentPairs(model, robot.ancestor_mask, activation, broad_phase)


def find_pairs(robot: Robot, segments: Iterable[Segment], sampling: Sampling | None = None) -> PairChoice:
    """Return the pairs of segments worth checking, from random postures, with reasons for the others."""
    data = robot.model.createData()
    poses = PoseArray(data)

    def place(joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pin.computeJointJacobians(robot.model, data, robot.q(robot.follow(joints.copy())))
        return poses.rows(), joint_columns(data)

    mechanism = Mechanism(
        robot.model.parents.tolist(),
        robot.ancestor_mask,
        *robot.range_within(TURN),
        robot.postures["neutral"],
        robot.iv,
        place,
    )
    return choose_pairs(segments, link_frames(robot), mechanism, sampling)


def link_frames(robot: Robot) -> dict[str, Frame]:
    """Return link -> (carrying joint, rotation, position in its frame)."""
    return {
        f.name: (int(f.parentJoint), np.array(f.placement.rotation), np.array(f.placement.translation))
        for f in robot.model.frames
        if f.type == pin.FrameType.BODY
    }


def _pairs_by_link(robot: Robot) -> list[SegmentPair]:
    """Return pairs of shapes as pairs of links; shapes with equal partners are grouped."""
    partners: dict[tuple[str, str], dict[str, set[str]]] = {}
    for i, j in robot.pairs:
        a, b = robot.shapes[i], robot.shapes[j]
        if (b.link, a.link) in partners:
            a, b = b, a
        partners.setdefault((a.link, b.link), {}).setdefault(a.name, set()).add(b.name)
    out = []
    for (first, second), table in partners.items():
        together: dict[frozenset[str], list[str]] = {}
        for name, others in table.items():
            together.setdefault(frozenset(others), []).append(name)
        out += [SegmentPair(first, second, tuple(a), tuple(sorted(b))) for b, a in together.items()]
    return out


def fit_link(robot: Robot, link: str, shape: str = "auto") -> Segment:
    """Fit a segment to the uniform ellipsoid with the link's mass and inertia.

    Args:
        shape: of `fit_volumes`.

    Raises:
        UnknownNameError: if link or shape is unknown.
        RobotError: if the link has no mass, or an impossible inertia.
    """
    links = {e.get("name", ""): e for e in parse_urdf(robot.urdf, robot.name).document.findall("link")}
    if link not in links:
        raise UnknownNameError("link", link, links, hint=f"(robot {robot.name})")
    found = [links[link].find(f"inertial/{part}") for part in ("mass", "inertia")]
    mass = float(found[0].get("value", "0")) if found[0] is not None else 0.0
    if mass <= 0.0 or found[1] is None:
        raise RobotError(f"{robot.name}: link '{link}' has no mass to fit a volume to: draw it by hand")
    xx, yy, zz, xy, xz, yz = (float(found[1].get(k, "0")) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    X = placement(links[link].find("inertial/origin"))
    inertia = X.rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ X.rotation.T
    return Segment(link, link, fit_volumes(inertia_points(mass, X.translation, inertia), shape, link))
