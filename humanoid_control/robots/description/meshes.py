"""Mesh files of a URDF on this machine, and link geometry as triangles."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.robots.description.mesh_reader import read_mesh
from humanoid_control.robots.description.urdf import UrdfTree, placement

FOLDERS_UP = 5  # from the URDF's folder, in the search for packages
SIDES = 24  # of a polygonal cylinder, and around a sphere
SHOWN = 4  # names in a message
SCHEMES = ("file://", "package://", "model://")
FARTHEST = 1e6  # [m] or file units: vertices beyond mean a damaged file
LARGEST = 10.0  # [m] between the farthest points of a link
CONFINED: set[Path] = set()
"""Folders of untrusted robots, such as uploads to a page: their meshes must lie within them."""
_UNIT = re.compile(rb"<unit\b[^>]*?\bmeter\s*=\s*[\"']\s*([0-9.eE+-]+)\s*[\"']")
_UNIT_BEFORE = 1 << 16  # bytes from the start of a COLLADA file


class Triangles(NamedTuple):
    """Surface: vertices (n, 3) [m] and triangles (m, 3) of indices."""

    vertices: np.ndarray
    faces: np.ndarray


def in_confines(path: Path, folder: Path) -> bool:
    """Return whether a robot in a folder may read a file: uploaded robots only their own files."""
    root = next((c for c in CONFINED if folder.resolve().is_relative_to(c)), None)
    return root is None or path.resolve().is_relative_to(root)


def find_mesh(name: str, folder: Path) -> Path | None:
    """Find the file of a mesh name in a URDF; None if missing.

    Packages of `package://` are searched in the folders above, also under other names.
    """
    plain = name
    for scheme in SCHEMES:
        plain = plain.removeprefix(scheme)
    above = [folder.resolve(), *list(folder.resolve().parents)[:FOLDERS_UP]]
    inside = Path(*Path(plain).parts[1:]) if "://" in name and len(Path(plain).parts) > 1 else Path(plain)
    tries = [*(p / plain for p in above), *(p / inside for p in above), above[0] / Path(plain).name]
    found = (p for p in tries if p.is_file())  # an absolute path stays itself behind any folder
    return next((p for p in found if in_confines(p, above[0])), None)


def load_mesh(path: Path, scale: np.ndarray | None = None) -> Triangles | None:
    """Load the triangles of a mesh file (STL, OBJ, DAE and others) [m]; None if unreadable.

    Args:
        scale: (3,) factors, may mirror.
    """
    found = _binary_stl(path)
    if found is None and (read := read_mesh(path)) is not None:
        found = Triangles(read[0] * mesh_unit(path), read[1])
    if found is None or not len(found.faces) or not (np.abs(found.vertices) < FARTHEST).all():  # also not for NaN
        return None
    if scale is None:
        return found
    return Triangles(found.vertices * scale, found.faces[:, ::-1] if np.prod(scale) < 0 else found.faces)


def mesh_unit(path: Path) -> float:
    """Return the unit of a mesh file [m]; 1 if unstated. coal's loader ignores it."""
    if path.suffix.lower() != ".dae":
        return 1.0
    with path.open("rb") as file:
        stated = _UNIT.search(file.read(_UNIT_BEFORE))
    try:
        unit = float(stated[1]) if stated else 1.0
    except ValueError:
        return 1.0
    return unit if 0 < unit < float("inf") else 1.0


def _binary_stl(path: Path) -> Triangles | None:
    """Read a binary STL file, 100 times faster than coal; None for other files."""
    if path.suffix.lower() != ".stl":
        return None
    content = path.read_bytes()
    count = int.from_bytes(content[80:84], "little")
    if len(content) != 84 + 50 * count:
        return None
    rows = np.frombuffer(content, np.uint8, offset=84).reshape(count, 50)[:, 12:48].copy()
    return Triangles(rows.view("<f4").reshape(-1, 3).astype(float), np.arange(3 * count).reshape(-1, 3))


def geometry(e: ET.Element | None, folder: Path | None) -> Triangles | None:
    """Return the triangles of a <geometry>; None if empty or missing."""
    if e is None:
        return None
    box, cylinder, capsule, sphere, file = (e.find(k) for k in ("box", "cylinder", "capsule", "sphere", "mesh"))
    if box is not None:
        half = np.array([float(v) for v in box.get("size", "0 0 0").split()]) / 2
        return _hull(half * [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    turn = 2 * np.pi * np.arange(SIDES) / SIDES
    if cylinder is not None:
        r, length = float(cylinder.get("radius", "0")), float(cylinder.get("length", "0"))
        ring = r * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
        return _hull(np.vstack([ring + [0, 0, length / 2], ring - [0, 0, length / 2]]))
    ball = sphere if sphere is not None else capsule
    if ball is not None:
        up = np.linspace(-np.pi / 2, np.pi / 2, SIDES // 2 + 1)
        a, b = (x.ravel() for x in np.meshgrid(turn, up))
        round_ = np.stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)], axis=1)
        points = float(ball.get("radius", "0")) * np.unique(round_.round(12), axis=0)
        end = np.array([0.0, 0.0, float(ball.get("length", "0")) / 2])
        return _hull(points if ball is sphere else np.vstack([points + end, points - end]))
    if file is not None and folder is not None:
        path = find_mesh(file.get("filename", ""), folder)
        scale = np.array([float(v) for v in file.get("scale", "1 1 1").split()])
        return load_mesh(path, scale) if path is not None else None
    return None


def _hull(points: np.ndarray) -> Triangles | None:
    """Return the surface of a convex solid about its origin, counter-clockwise from outside."""
    from scipy.spatial import ConvexHull, QhullError  # slow import

    try:
        hull = ConvexHull(points)
    except QhullError:  # degenerate shape
        return None
    a, b, c = points[hull.simplices].transpose(1, 0, 2)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces = hull.simplices.copy()
    faces[inward] = faces[inward][:, ::-1]
    return Triangles(points, faces)


def link_geometry(tree: UrdfTree, folder: Path | None, tag: str) -> dict[str, Triangles]:
    """Return the joined surfaces of each link in its own frame, if any.

    Args:
        tag: 'collision' or 'visual'.

    Raises:
        RobotError: if a link is implausibly large (mesh unit).
    """
    out: dict[str, Triangles] = {}
    for link in tree.document.findall("link"):
        vertices, faces, count = [], [], 0
        for e in link.findall(tag):
            found = geometry(e.find("geometry"), folder)
            if found is None:
                continue
            X = placement(e.find("origin"))
            vertices.append(found.vertices @ X.rotation.T + X.translation)
            faces.append(found.faces + count)
            count += len(found.vertices)
        if count:
            span = float(np.ptp(np.vstack(vertices), axis=0).max())
            if not span < LARGEST:
                names = [m.get("filename", "") for e in link.findall(tag) for m in e.iter("mesh")]
                files = [str(f) for n in names if folder is not None and (f := find_mesh(n, folder)) is not None]
                said = f" ({', '.join(dict.fromkeys(files))})" if files else ""
                raise RobotError(
                    f"{tree.name}: the {tag} geometry of link '{link.get('name', '')}'{said} spans {span:.3g} m: "
                    'are its meshes in centimetres or millimetres? then <mesh ... scale="0.01 0.01 0.01"/> or 0.001'
                )
            out[link.get("name", "")] = Triangles(np.vstack(vertices), np.vstack(faces))
    return out


def missing_meshes(tree: UrdfTree, folder: Path | None) -> list[str]:
    """Return the names of missing or unreadable mesh files."""
    names = dict.fromkeys(e.get("filename", "") for e in tree.document.iter("mesh"))
    paths = {n: find_mesh(n, folder) if folder is not None else None for n in names}
    return [n for n, path in paths.items() if path is None or load_mesh(path) is None]


def missing_text(names: list[str], where: str) -> str:
    """Describe missing mesh files in a line."""
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"{where}: mesh files missing or truncated: {shown}; their geometry is left out"
