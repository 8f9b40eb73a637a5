"""Bodies of a robot (links with all parts fixed to them) as surfaces, and their mirror images.

Left and right bodies get mirrored shapes, each fitted to the points of both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.spatial import cKDTree

from humanoid_control.collision.shapes import Box, Capsule, Vec3
from humanoid_control.robots.description.meshes import Triangles, link_geometry
from humanoid_control.robots.description.robot_file import RobotFile
from humanoid_control.robots.description.urdf import UrdfTree, link_of, placement
from humanoid_control.robots.robot import Robot

TAGS = ("collision", "visual")
SPACING = 0.008  # [m] between points on large triangles
MANY, CELL = 20000, 0.002  # points of a body; [m] denser sets keep one per cell
MIDDLE = 0.02  # [m] from the mirror plane
TWIN_BOX, TWIN_MEAN = 0.003, 0.002  # [m] tolerance of mirror images: sides of their boxes; mean point distance


class Bodies:
    """Bodies of a URDF, each in the frame of its first link and named after it."""

    def __init__(self, tree: UrdfTree, folder: Path | None, left: np.ndarray | None = None) -> None:
        """Read the mesh files.

        Args:
            left: (3,) left direction in the zero posture; None: no mirror images.
        """
        self.tree, self.left = tree, left
        self._of = bodies_of(tree)
        self._surfaces = {tag: link_geometry(tree, folder, tag) for tag in TAGS}

    @cached_property
    def points(self) -> dict[str, np.ndarray]:
        """Points (n, 3) of bodies with meshes; primitive collision geometry supersedes a link's visuals."""
        given = _links_with_primitives_only(self.tree)
        points: dict[str, list[np.ndarray]] = {}
        for link, (body, X) in self._of.items():
            for tag, surface in self._surfaces.items():
                if link in surface and not (link in given and tag == "visual"):
                    points.setdefault(body, []).append(dense_points(surface[link]) @ X.rotation.T + X.translation)
        meshed = {
            self._of[e.get("name", "")][0]
            for e in self.tree.document.findall("link")
            if e.get("name") not in given and next(e.iter("mesh"), None) is not None
        }
        return {body: np.vstack(p) for body, p in points.items() if body in meshed}

    @cached_property
    def parts(self) -> dict[str, list[Triangles]]:
        """Link surfaces of each body: collision geometry, else visual."""
        found: dict[str, dict[str, list[Triangles]]] = {}
        for link, (body, X) in self._of.items():
            for tag, surface in self._surfaces.items():
                if link in surface:
                    moved = surface[link].vertices @ X.rotation.T + X.translation
                    found.setdefault(body, {}).setdefault(tag, []).append(Triangles(moved, surface[link].faces))
        return {body: kinds[min(kinds)] for body, kinds in found.items()}

    @cached_property
    def surfaces(self) -> dict[str, Triangles]:
        """Joined surface of each body."""
        return {body: _joined(parts) for body, parts in self.parts.items()}

    # -- mirror images

    @cached_property
    def twins(self) -> dict[str, str]:
        """Mirror image of each body in the zero posture; bodies in the middle are their own."""
        if self.left is None:
            return {}
        boxes = {body: np.array([p.min(axis=0), p.max(axis=0)]) for body, p in self._placed.items()}
        out: dict[str, str] = {}
        for body, placed in self._placed.items():
            if body in out:
                continue
            image = placed - 2 * np.outer(placed @ self.left, self.left)
            box, tree = np.array([image.min(axis=0), image.max(axis=0)]), cKDTree(image)
            away = {
                other: self._unlike(image, tree, other)
                for other in boxes
                if other not in out and np.abs(boxes[other] - box).max() < TWIN_BOX
            }
            twin = min(away, key=away.__getitem__, default=body)
            if away.get(twin, np.inf) < TWIN_MEAN:
                out[body], out[twin] = twin, body
            elif abs(box.mean(axis=0) @ self.left) < MIDDLE:
                out[body] = body
        return out

    @cached_property
    def _poses(self) -> dict[str, pin.SE3]:
        robot = Robot(self.tree, RobotFile(), "fixed")
        return {name: pin.SE3(X) for name, X in robot.link_poses(robot.q("zero")).items()}

    @cached_property
    def _placed(self) -> dict[str, np.ndarray]:
        found = {body: dense_points(surface) for body, surface in self.surfaces.items()} | self.points
        return {body: p @ self._poses[body].rotation.T + self._poses[body].translation for body, p in found.items()}

    def _unlike(self, image: np.ndarray, near_image: cKDTree, other: str) -> float:
        """Return the mean distance between image and body [m]; infinite if any point is far."""
        placed = self._placed[other]
        ways = cKDTree(placed).query(image)[0], near_image.query(placed)[0]
        # Samples of a triangle and of its image may differ by SPACING.
        return float(max(d.mean() for d in ways)) if max(d.max() for d in ways) < SPACING else np.inf

    def reflection(self, body: str) -> np.ndarray:
        """Return the matrix (3, 4) from points of a body to their images in the twin's frame."""
        X, Y = self._poses[body], self._poses[self.twins[body]]
        assert self.left is not None
        M = np.eye(3) - 2 * np.outer(self.left, self.left)
        offset = Y.rotation.T @ (M @ X.translation - Y.translation)
        return np.column_stack([Y.rotation.T @ M @ X.rotation, offset])

    def image(self, body: str, points: np.ndarray) -> np.ndarray:
        """Return mirror images (n, 3) of points in the twin's frame."""
        M = self.reflection(body)
        return points @ M[:, :3].T + M[:, 3]

    def image_shape(self, body: str, shape: Capsule | Box) -> Capsule | Box:
        """Return the mirror image of a shape in the twin's frame."""
        M = self.reflection(body)
        Q, t = M[:, :3], M[:, 3]

        def at(point: Vec3) -> Vec3:
            return vec3(Q @ np.array(point) + t)

        if isinstance(shape, Capsule):
            return replace(shape, p0=at(shape.p0), p1=at(shape.p1))
        # A box is symmetric: one more reflection through it turns the reflection into a rotation.
        R = Q @ pin.rpy.rpyToMatrix(*shape.rpy) @ np.diag([1.0, -1.0, 1.0])
        return replace(shape, center=at(shape.center), rpy=vec3(pin.rpy.matrixToRpy(R)))

    def images_of(self, links: tuple[str, str]) -> tuple[str, str] | None:
        """Return the mirror image of a pair of bodies; None if missing or the pair itself."""
        if any(link not in self.twins for link in links):
            return None
        a, b = (self.twins[link] for link in links)
        return None if {a, b} == set(links) else (a, b)


def vec3(x: np.ndarray) -> Vec3:
    """Round to five decimals."""
    return tuple(round(float(v), 5) + 0.0 for v in x)  # type: ignore[return-value]


def bodies_of(tree: UrdfTree) -> dict[str, tuple[str, pin.SE3]]:
    """Return link -> (its body, named after the first link; the link's pose in it)."""
    joints = {link_of(j, "child"): j for j in tree.joints}
    out: dict[str, tuple[str, pin.SE3]] = {}

    def find(link: str) -> tuple[str, pin.SE3]:
        if link not in out:
            joint = joints.get(link)
            if joint is None or joint.get("type") != "fixed":
                out[link] = link, pin.SE3.Identity()
            else:
                body, X = find(link_of(joint, "parent"))
                out[link] = body, X * placement(joint.find("origin"))
        return out[link]

    return {link: find(link) for link in tree.links}


def dense_points(surface: Triangles) -> np.ndarray:
    """Return vertices and points on large triangles, at most about SPACING apart."""
    corners = surface.vertices[surface.faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    out = [surface.vertices]
    for n in np.unique(np.ceil(longest[longest > SPACING] / SPACING).astype(int)):
        large = corners[(longest > SPACING) & (np.ceil(longest / SPACING) == n)]
        i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1))
        weights = np.stack([i, j, n - i - j], axis=-1)[i + j <= n] / n
        out.append((weights @ large).reshape(-1, 3))
    points = np.vstack(out)
    if len(points) < MANY:
        return points
    # One point per grid cell: fine meshes have millions.
    cell = (points / CELL).round().astype(np.int64) - np.floor(points.min(axis=0) / CELL).astype(np.int64)
    _, first = np.unique((cell[:, 0] * 20011 + cell[:, 1]) * 20011 + cell[:, 2], return_index=True)
    return points[first]


def _links_with_primitives_only(tree: UrdfTree) -> set[str]:
    return {
        e.get("name", "")
        for e in tree.document.findall("link")
        if e.find("collision") is not None and e.find("collision/geometry/mesh") is None
    }


def _joined(parts: list[Triangles]) -> Triangles:
    starts = np.cumsum([0, *(len(p.vertices) for p in parts)])
    faces = [p.faces + start for p, start in zip(parts, starts, strict=False)]
    return Triangles(np.vstack([p.vertices for p in parts]), np.vstack(faces))
