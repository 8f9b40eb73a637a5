"""Contacts of a robot's own meshes along a motion, by coal on their triangles: what no approximation has touched.

The controller keeps shapes apart, and the shapes stand for the meshes; this measures whether that was enough. Meshes
of one joint and of neighbouring joints, and those that touch in the neutral posture already, are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.retargeting.retargeter import retarget_clip
from humanoid_control.retargeting.scaling import scale_to_robot
from humanoid_control.robots.description.meshes import find_mesh, load_mesh, mesh_unit
from humanoid_control.robots.description.urdf import UrdfTree, parse_urdf
from humanoid_control.robots.robot import Robot

TAGS = {"collision": pin.GeometryType.COLLISION, "visual": pin.GeometryType.VISUAL}


@dataclass(frozen=True)
class MeshContacts:
    """Own meshes that touch along a motion.

    Attributes:
        pairs: P pairs of links that ever touch, the most frequent first.
        touching: (T, P) whether each does in each frame.
        watched: how many pairs of meshes were looked at.
    """

    pairs: tuple[tuple[str, str], ...]
    touching: np.ndarray
    watched: int

    @property
    def frames(self) -> int:
        """Frames in which any pair touches."""
        return int(self.touching.any(axis=1).sum())

    @property
    def frames_of_pairs(self) -> list[int]:
        """Frames in which each of `pairs` touches."""
        return [int(n) for n in self.touching.sum(axis=0)]

    @property
    def share(self) -> float:
        """Share of the frames in which any pair touches."""
        return float(self.touching.any(axis=1).mean()) if len(self.touching) else 0.0


@dataclass(frozen=True)
class ClipContacts:
    """Own meshes that touch along a retargeted clip, next to what the shapes said that the controller kept apart.

    Attributes:
        robot: its name.
        meshes: contacts of the meshes.
        share_by_shapes: share of the same frames in which two shapes overlap.
    """

    robot: str
    meshes: MeshContacts
    share_by_shapes: float

    def to_json(self) -> dict[str, Any]:
        """Frames, shares in per cent, and frames of each pair as plain values."""
        m = self.meshes
        pairs = [{"links": list(p), "frames": n} for p, n in zip(m.pairs, m.frames_of_pairs, strict=True)]
        shares = {"touching_percent": 100 * m.share, "by_shapes_percent": 100 * self.share_by_shapes}
        return {"robot": self.robot, "frames": len(m.touching), **shares, "pairs": pairs}


def mesh_contacts(
    robot: Robot, joints: np.ndarray, progress: Callable[[int], None] = lambda _: None, tag: str = "collision"
) -> MeshContacts:
    """Contacts of a robot's own geometry at joint angles.

    Args:
        robot: from the file of its URDF.
        joints: (T, n) [rad].
        progress: called with the number of frames done.
        tag: 'collision' or 'visual' geometry.

    Raises:
        RobotError: no such geometry, or mesh files that are not found.
    """
    geometry = _geometry(robot, tag)
    _watch_pairs(robot, geometry)
    links = [str(robot.model.frames[g.parentFrame].name) for g in geometry.geometryObjects]
    names = [(links[p.first], links[p.second]) for p in geometry.collisionPairs]
    data, found = geometry.createData(), np.zeros((len(joints), len(names)), dtype=bool)
    for k, row in enumerate(joints):
        found[k] = _touching(robot, geometry, data, row)
        progress(k + 1)
    pairs = sorted({_sorted(n) for c, n in enumerate(names) if found[:, c].any()})
    columns = [found[:, [c for c, n in enumerate(names) if _sorted(n) == pair]].any(axis=1) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda c: -int(columns[c].sum()))
    touching = np.stack([columns[c] for c in order], axis=1) if order else np.zeros((len(joints), 0), dtype=bool)
    return MeshContacts(tuple(pairs[c] for c in order), touching, len(names))


def geometry_with_meshes(robot: Robot) -> str | None:
    """Geometry of a robot's URDF that has meshes: 'collision', else 'visual'; None where all shapes are primitive."""
    document = parse_urdf(robot.urdf, robot.name).document
    return next((tag for tag in TAGS if document.find(f"link/{tag}/geometry/mesh") is not None), None)


def clip_mesh_contacts(
    robot: Robot, body: BodyPoints, every: int = 1, progress: Callable[[int, int], None] = lambda done, total: None
) -> ClipContacts:
    """Retarget a clip, and find the contacts of the robot's own collision meshes in every N-th frame.

    Args:
        robot: with a fixed base, from the file of its URDF.
        body: the clip.
        every: step from one judged frame to the next.
        progress: called with (frames judged, frames in all).

    Raises:
        RobotError: no such geometry, mesh files that are not found, or a robot without the tracked points.
        ClipError: the clip has no first posture on the robot.
    """
    trajectory = retarget_clip(scale_to_robot(body, robot), robot)
    joints = trajectory.positions[::every]
    found = mesh_contacts(robot, joints, lambda k: progress(k, len(joints)))
    return ClipContacts(robot.name, found, float(np.mean(trajectory.clearance[::every] < 0)))


def _sorted(pair: tuple[str, str]) -> tuple[str, str]:
    return (pair[0], pair[1]) if pair[0] < pair[1] else (pair[1], pair[0])


def _geometry(robot: Robot, tag: str) -> pin.GeometryModel:
    tree = parse_urdf(robot.urdf, robot.name)
    if not list(tree.document.iterfind(f"link/{tag}")):
        raise RobotError(f"{robot.name}: its URDF has no {tag} geometry")
    _absolute_paths(tree, robot, tag)
    # The loader of pinocchio crashes on some damaged files: each is read in another process before.
    files = dict.fromkeys(Path(mesh.get("filename", "")) for mesh in tree.document.iter("mesh"))
    if (broken := next((f for f in files if load_mesh(f) is None), None)) is not None:
        raise RobotError(f"{robot.name}: the mesh file {broken} cannot be read: cut off or damaged?")
    return pin.buildGeomFromUrdfString(robot.model, tree.text(), TAGS[tag])


def _absolute_paths(tree: UrdfTree, robot: Robot, tag: str) -> None:
    """Name mesh files by where they are, and leave out the geometry of the other tag."""
    for link in tree.document.findall("link"):
        for e in [e for other in TAGS if other != tag for e in link.findall(other)]:
            link.remove(e)
    for mesh in tree.document.iter("mesh"):
        name = mesh.get("filename", "")
        path = find_mesh(name, robot.folder) if robot.folder is not None else None
        if path is None:
            raise RobotError(f"{robot.name}: the mesh file {name} is not found from {robot.folder or 'nowhere'}")
        mesh.set("filename", str(path))
        if (unit := mesh_unit(path)) != 1.0:  # which the loader ignores
            scale = [float(x) * unit for x in mesh.get("scale", "1 1 1").split()]
            mesh.set("scale", " ".join(f"{x:.9g}" for x in scale))


def _watch_pairs(robot: Robot, geometry: pin.GeometryModel) -> None:
    parents = robot.model.parents.tolist()
    joint = [g.parentJoint for g in geometry.geometryObjects]
    pairs = [
        (i, j)
        for i in range(len(joint))
        for j in range(i + 1, len(joint))
        if joint[i] != joint[j] and parents[joint[i]] != joint[j] and parents[joint[j]] != joint[i]
    ]
    for i, j in pairs:
        geometry.addCollisionPair(pin.CollisionPair(i, j))
    rest = _touching(robot, geometry, geometry.createData(), robot.postures["neutral"])
    geometry.removeAllCollisionPairs()
    for (i, j), touches in zip(pairs, rest, strict=True):
        if not touches:
            geometry.addCollisionPair(pin.CollisionPair(i, j))


def _touching(robot: Robot, geometry: pin.GeometryModel, data: pin.GeometryData, joints: np.ndarray) -> np.ndarray:
    pin.updateGeometryPlacements(robot.model, robot.data, geometry, data, robot.q(joints))
    pin.computeCollisions(geometry, data, False)
    return np.array([bool(r.isCollision()) for r in data.collisionResults], dtype=bool)
