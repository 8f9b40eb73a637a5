"""Triangle meshes of URDF visuals, collision shapes and swept-sphere volumes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from humanoid_control.collision import Box, Capsule, Cylinder, Ellipsoid, Sphere
from humanoid_control.collision.coal_backend import elliptic_capsule_points, rotation_of_z_onto
from humanoid_control.collision.shapes import Shape
from humanoid_control.robots.description.meshes import geometry
from humanoid_control.robots.description.urdf import UrdfTree, placement

Triangles = tuple[np.ndarray, np.ndarray]
Color = tuple[int, int, int]
DEFAULT_COLOR: Color = (190, 195, 200)
EDGE = np.radians(35)
AROUND, UP = 30, 12  # steps around the core, and from bottom to top
FLAT = 1e-9  # [m]


def link_meshes(tree: UrdfTree, folder: Path | None = None) -> dict[str, list[tuple[Triangles, Color]]]:
    """Return the visuals of each link, one mesh per colour, in the link frame.

    Args:
        folder: folder of the URDF; missing mesh files are skipped.
    """
    materials = {m.get("name", ""): _rgba(m) for m in tree.document.findall("material")}
    out: dict[str, list[tuple[Triangles, Color]]] = {}
    for link in tree.document.findall("link"):
        groups: dict[Color, list[trimesh.Trimesh]] = {}
        for visual in link.findall("visual"):
            found = geometry(visual.find("geometry"), folder)
            if found is not None:
                mesh = trimesh.Trimesh(found.vertices, found.faces)
                mesh.apply_transform(placement(visual.find("origin")).homogeneous)
                groups.setdefault(_color_of(visual, materials), []).append(mesh)
        out[link.get("name", "")] = [(_merged(meshes), color) for color, meshes in groups.items()]
    return out


def shape_mesh(shape: Shape) -> Triangles:
    """Return the triangles of a collision shape in the link frame."""
    if isinstance(shape, Sphere):
        mesh = _sphere(shape.radius)
        mesh.apply_translation(shape.center)
    elif isinstance(shape, (Capsule, Cylinder)):
        p0, p1 = np.array(shape.p0), np.array(shape.p1)
        length = float(np.linalg.norm(p1 - p0))
        make = trimesh.creation.capsule if isinstance(shape, Capsule) else trimesh.creation.cylinder
        mesh = make(height=length, radius=shape.radius)
        X = np.eye(4)
        X[:3, :3], X[:3, 3] = rotation_of_z_onto(p1 - p0), (p0 + p1) / 2
        mesh.apply_translation(-mesh.bounds.mean(axis=0))
        mesh.apply_transform(X)
    elif isinstance(shape, Box):
        mesh = trimesh.creation.box(shape.size)
        mesh.apply_transform(trimesh.transformations.euler_matrix(*shape.rpy))
        mesh.apply_translation(shape.center)
    elif isinstance(shape, Ellipsoid):
        mesh = _sphere(1.0)
        mesh.apply_scale(shape.semi_axes)
        mesh.apply_translation(shape.center)
    else:
        points = elliptic_capsule_points(shape.a, shape.b, shape.c, shape.l) + np.array(shape.top_center)
        mesh = trimesh.Trimesh(points).convex_hull
    return _merged([mesh])


def _sphere(radius: float) -> trimesh.Trimesh:
    return trimesh.creation.icosphere(subdivisions=2, radius=radius)


def _merged(meshes: list[trimesh.Trimesh]) -> Triangles:
    """Merge meshes; edges sharper than EDGE keep separate normals."""
    whole: Any = trimesh.util.concatenate(meshes) if len(meshes) > 1 else meshes[0]
    mesh = trimesh.graph.smooth_shade(whole, angle=EDGE, facet_minarea=None)
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def _rgba(material: ET.Element) -> Color:
    e = material.find("color")
    if e is None:
        return DEFAULT_COLOR
    values = [round(255 * float(v)) for v in e.get("rgba", "").split()]
    return (values[0], values[1], values[2]) if len(values) >= 3 else DEFAULT_COLOR


def _color_of(visual: ET.Element, materials: dict[str, Color]) -> Color:
    m = visual.find("material")
    if m is None:
        return DEFAULT_COLOR
    return _rgba(m) if m.find("color") is not None else materials.get(m.get("name", ""), DEFAULT_COLOR)


def volume_mesh(core: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the surface at a radius around a point, line or triangle.

    Each level is the core outline offset by r cos(a) and lifted by r sin(a): arcs and straight lines. The outermost
    levels are the core itself.

    Args:
        core: one to three vertices (n, 3) [m].
        radius: radius [m].

    Returns:
        Vertices (V, 3) and faces (F, 3), counter-clockwise from outside.
    """
    core = _simplest_core(np.asarray(core, dtype=float))
    e1, e2, up = core_axes(core)
    turns, owner = _arcs(core, e1, e2)
    outward = np.cos(turns)[:, None] * e1 + np.sin(turns)[:, None] * e2
    level = np.linspace(-np.pi / 2, np.pi / 2, UP + 1)
    rings = (
        core[owner][None]
        + radius * np.cos(level)[:, None, None] * outward[None]
        + radius * np.sin(level)[:, None, None] * up
    )
    n = len(turns)
    k, j = np.meshgrid(np.arange(UP), np.arange(n), indexing="ij")
    a, b = k * n + j, k * n + (j + 1) % n
    faces = [np.stack([a, b, a + n], -1).reshape(-1, 3), np.stack([b, b + n, a + n], -1).reshape(-1, 3)]
    if len(core) == 3:
        corners = np.searchsorted(owner, [0, 1, 2])
        faces += [(UP * n + corners)[None], corners[::-1][None]]
    return rings.reshape(-1, 3), np.vstack(faces).astype(np.uint32)


def _arcs(core: np.ndarray, e1: np.ndarray, e2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return increasing angles (n,) around the core, and the vertex index of each (n,)."""
    if len(core) == 1:
        return np.linspace(0, 2 * np.pi, AROUND, endpoint=False), np.zeros(AROUND, dtype=int)
    edges = np.roll(core, -1, axis=0) - core
    normals = np.arctan2(edges @ e2, edges @ e1) - np.pi / 2  # outward, because the core is counter-clockwise
    turns, owner = [], []
    for k in range(len(core)):
        span = (normals[k] - normals[k - 1]) % (2 * np.pi)
        steps = max(2, round(AROUND * span / (2 * np.pi))) + 1
        turns.append(normals[k - 1] + np.linspace(0.0, span, steps))
        owner.append(np.full(steps, k))
    return np.concatenate(turns), np.concatenate(owner)


def core_axes(core: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two unit vectors in the core plane, and the normal of counter-clockwise vertices (n, 3)."""
    core = _simplest_core(np.asarray(core, dtype=float))
    e1 = core[1] - core[0] if len(core) > 1 else np.array([1.0, 0.0, 0.0])
    e1 = e1 / np.linalg.norm(e1)
    other = core[2] - core[0] if len(core) == 3 else np.eye(3)[int(np.argmin(np.abs(e1)))]
    up = np.cross(e1, other)
    up /= np.linalg.norm(up)
    return e1, np.cross(up, e1), up


def _simplest_core(core: np.ndarray) -> np.ndarray:
    """Reduce degenerate triangles to lines, lines to points."""
    if len(core) == 3:
        edges = np.roll(core, -1, axis=0) - core
        lengths = np.linalg.norm(edges, axis=1)
        k = int(np.argmax(lengths))
        if np.linalg.norm(np.cross(edges[0], edges[1])) <= FLAT * max(lengths[k], FLAT):
            core = core[[k, (k + 1) % 3]]
    if len(core) == 2 and np.linalg.norm(core[1] - core[0]) <= FLAT:
        core = core[:1]
    return core
