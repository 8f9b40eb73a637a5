"""Triangles for what a URDF draws and for collision shapes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from humanoid_control.robots.geometry import elliptic_capsule_points, rotation_of_z_onto
from humanoid_control.robots.shapes import Box, Capsule, Cylinder, Ellipsoid, Shape, Sphere
from humanoid_control.robots.urdf_tree import UrdfTree, placement

Triangles = tuple[np.ndarray, np.ndarray]
Color = tuple[int, int, int]
DEFAULT_COLOR: Color = (190, 195, 200)
SIDES = 24
EDGE = np.radians(35)


def link_meshes(tree: UrdfTree, folder: Path | None = None) -> dict[str, list[tuple[Triangles, Color]]]:
    """What each link looks like: one triangle mesh a colour, in the link frame.

    Args:
        tree: the URDF.
        folder: where relative mesh files are looked for; a mesh that is not found is left out.
    """
    materials = {m.get("name", ""): _rgba(m) for m in tree.document.findall("material")}
    out: dict[str, list[tuple[Triangles, Color]]] = {}
    for link in tree.document.findall("link"):
        groups: dict[Color, list[trimesh.Trimesh]] = {}
        for visual in link.findall("visual"):
            mesh = _geometry(visual.find("geometry"), folder)
            if mesh is not None:
                mesh.apply_transform(placement(visual.find("origin")).homogeneous)
                groups.setdefault(_color_of(visual, materials), []).append(mesh)
        out[link.get("name", "")] = [(_merged(meshes), color) for color, meshes in groups.items()]
    return out


def shape_mesh(shape: Shape) -> Triangles:
    """A collision shape as triangles in the link frame."""
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


def _geometry(e: ET.Element | None, folder: Path | None) -> trimesh.Trimesh | None:
    if e is None:
        return None
    box, cylinder, sphere, file = (e.find(k) for k in ("box", "cylinder", "sphere", "mesh"))
    if box is not None:
        return trimesh.creation.box([float(v) for v in box.get("size", "0 0 0").split()])
    if cylinder is not None:
        return trimesh.creation.cylinder(
            radius=float(cylinder.get("radius", "0")), height=float(cylinder.get("length", "0")), sections=SIDES
        )
    if sphere is not None:
        return _sphere(float(sphere.get("radius", "0")))
    if file is not None and folder is not None:
        name = file.get("filename", "").removeprefix("file://").removeprefix("package://")
        for path in (folder / name, folder / Path(name).name, *(p / name for p in folder.parents[:4])):
            if path.is_file():
                mesh = trimesh.load_mesh(path)
                scale = [float(v) for v in file.get("scale", "1 1 1").split()]
                mesh.apply_scale(scale)
                return mesh
    return None


def _sphere(radius: float) -> trimesh.Trimesh:
    return trimesh.creation.icosphere(subdivisions=2, radius=radius)


def _merged(meshes: list[trimesh.Trimesh]) -> Triangles:
    """One mesh of all; edges sharper than EDGE keep a normal on each side, or flat ends would be shaded as domes."""
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
