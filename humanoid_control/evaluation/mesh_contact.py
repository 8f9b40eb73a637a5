"""Self-contacts of a robot's meshes along a motion, by coal on triangles.

Meshes of the same or neighbouring joints, and those in contact in the neutral posture, are excluded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.retargeting.retargeter import retarget_clip
from humanoid_control.retargeting.scaling import scale_to_robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.urdf_geometry import TAGS, urdf_geometry


@dataclass(frozen=True)
class MeshContacts:
    """Self-contacts of meshes along a motion.

    Attributes:
        pairs: P link pairs that touch, most frequent first.
        touching: (T, P) contact per frame.
    """

    pairs: tuple[tuple[str, str], ...]
    touching: np.ndarray
    watched: int

    @property
    def frames(self) -> int:
        """Number of frames with any contact."""
        return int(self.touching.any(axis=1).sum())

    @property
    def frames_of_pairs(self) -> list[int]:
        """Number of frames with contact, per pair."""
        return [int(n) for n in self.touching.sum(axis=0)]

    @property
    def share(self) -> float:
        """Share of frames with any contact."""
        return float(self.touching.any(axis=1).mean()) if len(self.touching) else 0.0


@dataclass(frozen=True)
class ClipContacts:
    """Mesh contacts of a retargeted clip, with the shape contacts for comparison."""

    robot: str
    meshes: MeshContacts
    share_by_shapes: float

    def to_json(self) -> dict[str, Any]:
        """Return frames, shares in per cent, and frames per pair as plain values."""
        m = self.meshes
        pairs = [{"links": list(p), "frames": n} for p, n in zip(m.pairs, m.frames_of_pairs, strict=True)]
        shares = {"touching_percent": 100 * m.share, "by_shapes_percent": 100 * self.share_by_shapes}
        return {"robot": self.robot, "frames": len(m.touching), **shares, "pairs": pairs}


def mesh_contacts(
    robot: Robot, joints: np.ndarray, progress: Callable[[int], None] = lambda _: None, tag: str = "collision"
) -> MeshContacts:
    """Find self-contacts of a robot's geometry at joint angles.

    Args:
        robot: loaded from a URDF file.
        tag: 'collision' or 'visual' geometry.

    Raises:
        RobotError: if the geometry or a mesh file is missing.
    """
    geometry = urdf_geometry(robot, tag)
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
    """Return the geometry that has meshes: 'collision', else 'visual'; None for primitive shapes only."""
    document = parse_urdf(robot.urdf, robot.name).document
    return next((tag for tag in TAGS if document.find(f"link/{tag}/geometry/mesh") is not None), None)


def clip_mesh_contacts(
    robot: Robot, body: BodyPoints, every: int = 1, progress: Callable[[int, int], None] = lambda done, total: None
) -> ClipContacts:
    """Retarget a clip, and find collision mesh contacts in every n-th frame.

    Args:
        robot: fixed base, loaded from a URDF file.
        progress: called with (finished frames, all frames).

    Raises:
        RobotError: if geometry, mesh files or imitation points are missing.
        ClipError: if no first posture is found.
    """
    trajectory = retarget_clip(scale_to_robot(body, robot), robot)
    joints = trajectory.positions[::every]
    found = mesh_contacts(robot, joints, lambda k: progress(k, len(joints)))
    return ClipContacts(robot.name, found, float(np.mean(trajectory.clearance[::every] < 0)))


def _sorted(pair: tuple[str, str]) -> tuple[str, str]:
    return (pair[0], pair[1]) if pair[0] < pair[1] else (pair[1], pair[0])


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
