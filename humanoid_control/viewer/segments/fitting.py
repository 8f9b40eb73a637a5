"""Points to fit a first set of volumes to: of a mesh file, or of what a link looks like; or its inertia instead."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import trimesh

from humanoid_control.collision.ssv_fit import fit_ssv
from humanoid_control.collision.ssv_segments import Ssv
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots import Robot
from humanoid_control.robots.ssv_links import fit_link
from humanoid_control.robots.urdf_tree import parse_urdf
from humanoid_control.viewer.meshes import link_meshes

MESH_TYPES = (".stl", ".obj", ".ply", ".off")
LOOK, INERTIA = "what the link looks like", "the link's inertia"
SHAPES = ("auto", "point", "line", "triangle", "rectangle")


def fitted(robot: Robot, link: str, source: str, shape: str, folder: Path | None = None) -> tuple[Ssv, ...]:
    """Volumes around a link.

    Args:
        robot: whose link.
        link: its name.
        source: LOOK, around all that the URDF draws; INERTIA, around the solid ellipsoid of its mass and inertia.
        shape: of `fit_ssv`.
        folder: where the URDF's mesh files are.

    Raises:
        UnknownNameError: another source, shape or link.
        RobotError: the link has no look, or no mass.
    """
    if source == INERTIA:
        return fit_link(robot, link, shape).ssvs
    if source != LOOK:
        raise UnknownNameError("source", source, (LOOK, INERTIA))
    meshes = link_meshes(parse_urdf(robot.urdf, robot.name), folder)
    if link not in meshes:
        raise UnknownNameError("link", link, meshes, hint=f"(robot {robot.name})")
    if not meshes[link]:
        raise RobotError(f"{robot.name}: link '{link}' has nothing to see to fit a volume to: take its inertia")
    return fit_ssv(np.vstack([vertices for (vertices, _), _ in meshes[link]]), shape, link)


def mesh_points(name: str, content: bytes) -> np.ndarray:
    """The vertices (n, 3) of a mesh file, in its own units and frame.

    Args:
        name: of the file; its ending says which kind it is.
        content: of the file.

    Raises:
        RobotError: a kind that is not read, or nothing to read.
    """
    kind = Path(name).suffix.lower()
    if kind not in MESH_TYPES:
        raise RobotError(f"{name}: a mesh must be one of {', '.join(MESH_TYPES)}")
    try:
        mesh = trimesh.load_mesh(io.BytesIO(content), file_type=kind[1:])
        points = np.asarray(mesh.vertices, dtype=float).reshape(-1, 3)
    except Exception as e:  # trimesh raises whatever its parsers do
        raise RobotError(f"{name}: not a readable mesh: {(str(e) or type(e).__name__).splitlines()[0]}") from None
    if not len(points) or not np.isfinite(points).all():
        raise RobotError(f"{name}: a mesh without vertices, or with some that are not finite")
    return points
