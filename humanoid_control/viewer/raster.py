"""Pictures of triangles and lines by the processor alone: depth buffer, shaded surfaces, a floor with shadows.

For films: no browser and no graphics card is needed. A point X of the world is seen at

    (u, v) = (w / 2 + f x / z, h / 2 - f y / z),   (x, y, z) = R (X - eye),

with the rows of R to the right, up and ahead. Depth is kept as 1 / z, which is linear in the picture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel

NEAREST = 0.1  # [m] from the camera, below which nothing is drawn
FLOOR_LIGHT, FLOOR_LINE, SKY = (0.93, 0.94, 0.95), (0.72, 0.75, 0.79), (0.97, 0.98, 1.0)
FLOOR_FAR = 25.0  # [m] at which the floor has become the sky
CELL, LINE = 0.5, 0.012  # [m] between lines of the floor, and their width
AMBIENT, SHADOW = 0.5, 0.80  # share of the light that is everywhere; of that of the floor in a shadow
TOWARD_EYE = 2e-3  # share by which lines are drawn nearer than they are: those on a surface are seen


class Camera(NamedTuple):
    """A pinhole camera: R (3, 3), eye (3,) [m], focal length [pixels]."""

    R: np.ndarray
    eye: np.ndarray
    focal: float


class Surfaces(NamedTuple):
    """Triangles of bodies.

    Attributes:
        vertices, normals: (V, 3) in the frames of their bodies.
        body: (V,) of each vertex.
        faces: (F, 3).
        colors: (F, 3) from 0 to 1.
    """

    vertices: np.ndarray
    normals: np.ndarray
    body: np.ndarray
    faces: np.ndarray
    colors: np.ndarray


class Lines(NamedTuple):
    """Thick lines: ends (n, 2, 3) [m], radii (n,) [m], colors (n, 3), opacities (n,) from 0 to 1."""

    ends: np.ndarray
    radii: np.ndarray
    colors: np.ndarray
    opacities: np.ndarray


class Canvas(NamedTuple):
    """A picture in the making: color (h, w, 3) from 0 to 1, depth (h, w) as 1 / z [1/m], shadow (h, w)."""

    color: np.ndarray
    depth: np.ndarray
    shadow: np.ndarray

    @classmethod
    def new(cls, width: int, height: int) -> Canvas:
        """An empty one."""
        return cls(
            np.zeros((height, width, 3), dtype=np.float32),
            np.zeros((height, width), dtype=np.float32),
            np.zeros((height, width), dtype=np.bool_),
        )


def look_at(eye: np.ndarray, at: np.ndarray, view: float, height: int) -> Camera:
    """A camera that stands upright.

    Args:
        eye, at: (3,) [m].
        view: angle from top to bottom [rad].
        height: of the picture [pixels].
    """
    ahead = (at - eye) / np.linalg.norm(at - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return Camera(
        np.array([right, np.cross(right, ahead), ahead]), np.asarray(eye, float), height / 2 / math.tan(view / 2)
    )


@kernel
def place_surfaces(s: Surfaces, R: np.ndarray, p: np.ndarray, world: np.ndarray, normal: np.ndarray) -> None:
    """Vertices and normals (V, 3) in the world, from poses R (B, 3, 3), p (B, 3) of the bodies."""
    for v in range(s.vertices.shape[0]):
        b = s.body[v]
        for i in range(3):
            x, n = p[b, i], 0.0
            for j in range(3):
                x += R[b, i, j] * s.vertices[v, j]
                n += R[b, i, j] * s.normals[v, j]
            world[v, i], normal[v, i] = x, n


@kernel
def _seen(camera: Camera, w: int, h: int, x: np.ndarray, out: np.ndarray) -> None:
    """Place (u, v, 1 / z) of a point in the picture; 1 / z is 0 where it is too near or behind."""
    a, b, c = x[0] - camera.eye[0], x[1] - camera.eye[1], x[2] - camera.eye[2]
    z = camera.R[2, 0] * a + camera.R[2, 1] * b + camera.R[2, 2] * c
    if z < NEAREST:
        out[2] = 0.0
        return
    f = camera.focal / z
    out[0] = 0.5 * w + f * (camera.R[0, 0] * a + camera.R[0, 1] * b + camera.R[0, 2] * c)
    out[1] = 0.5 * h - f * (camera.R[1, 0] * a + camera.R[1, 1] * b + camera.R[1, 2] * c)
    out[2] = 1.0 / z


@kernel
def paint_floor(camera: Camera, canvas: Canvas) -> None:
    """The sky, and the floor z = 0 with its lines; what was in the picture goes."""
    h, w = canvas.depth.shape
    R, eye = camera.R, camera.eye
    for v in range(h):
        y = (0.5 * h - v - 0.5) / camera.focal
        for u in range(w):
            x = (u + 0.5 - 0.5 * w) / camera.focal
            canvas.shadow[v, u] = False
            down = R[0, 2] * x + R[1, 2] * y + R[2, 2]
            z = -eye[2] / down if down < -1e-6 else 0.0  # ahead of the camera, where the ray meets the floor
            if z <= NEAREST or z > 4.0 * FLOOR_FAR:
                canvas.depth[v, u] = 0.0
                for c in range(3):
                    canvas.color[v, u, c] = SKY[c]
                continue
            canvas.depth[v, u] = 1.0 / z
            line = 0.0
            wide = max(LINE, 0.7 * z / camera.focal / max(-down, 0.05))  # a line is never thinner than a pixel
            for i in range(2):
                at = eye[i] + z * (R[0, i] * x + R[1, i] * y + R[2, i])
                off = abs(at / CELL - np.floor(at / CELL + 0.5)) * CELL
                line = max(line, min(1.0, max(0.0, 1.5 - off / wide)) * LINE / wide)
            far = min(1.0, (z / FLOOR_FAR) ** 1.5)
            for c in range(3):
                own = FLOOR_LIGHT[c] + line * (FLOOR_LINE[c] - FLOOR_LIGHT[c])
                canvas.color[v, u, c] = own + far * (SKY[c] - own)


@kernel
def paint_shadows(camera: Camera, light: np.ndarray, faces: np.ndarray, world: np.ndarray, canvas: Canvas) -> None:
    """Darken the floor where triangles stand between it and a light that comes from a direction (3,)."""
    h, w = canvas.depth.shape
    corner, seen = np.empty(3), np.empty((3, 3))
    for f in range(faces.shape[0]):
        for k in range(3):
            x = world[faces[f, k]]
            up = max(x[2], 0.0)
            corner[0], corner[1], corner[2] = x[0] - up * light[0] / light[2], x[1] - up * light[1] / light[2], 0.0
            _seen(camera, w, h, corner, seen[k])
        area, u0, u1, v0, v1 = _covered(seen, w, h)
        for v in range(v0, v1 + 1):
            for u in range(u0, u1 + 1):
                if canvas.shadow[v, u] or canvas.depth[v, u] <= 0.0:
                    continue
                a, b, c = _weights(seen, area, u + 0.5, v + 0.5)
                if a >= 0.0 and b >= 0.0 and c >= 0.0:
                    canvas.shadow[v, u] = True
                    for i in range(3):
                        canvas.color[v, u, i] *= SHADOW


@kernel
def _covered(seen: np.ndarray, w: int, h: int) -> tuple[float, int, int, int, int]:
    """Twice the area of a triangle (3, 3) in the picture, signed; the first and last column and row that it touches.

    No column where it lies behind the camera or is seen from its edge.
    """
    area = (seen[1, 0] - seen[0, 0]) * (seen[2, 1] - seen[0, 1]) - (seen[2, 0] - seen[0, 0]) * (seen[1, 1] - seen[0, 1])
    if min(seen[0, 2], seen[1, 2], seen[2, 2]) <= 0.0 or abs(area) < 1e-9:
        return area, 0, -1, 0, -1
    u0 = max(0, int(np.floor(min(seen[0, 0], seen[1, 0], seen[2, 0]))))
    u1 = min(w - 1, int(np.ceil(max(seen[0, 0], seen[1, 0], seen[2, 0]))))
    v0 = max(0, int(np.floor(min(seen[0, 1], seen[1, 1], seen[2, 1]))))
    v1 = min(h - 1, int(np.ceil(max(seen[0, 1], seen[1, 1], seen[2, 1]))))
    return area, u0, u1, v0, v1


@kernel
def _weights(seen: np.ndarray, area: float, u: float, v: float) -> tuple[float, float, float]:
    """Barycentric weights of a place in the picture; all at least 0 inside the triangle."""
    a = ((seen[1, 0] - u) * (seen[2, 1] - v) - (seen[2, 0] - u) * (seen[1, 1] - v)) / area
    b = ((seen[2, 0] - u) * (seen[0, 1] - v) - (seen[0, 0] - u) * (seen[2, 1] - v)) / area
    return a, b, 1.0 - a - b


@kernel
def paint_surfaces(
    camera: Camera, light: np.ndarray, s: Surfaces, world: np.ndarray, normal: np.ndarray, canvas: Canvas
) -> None:
    """Triangles, shaded by a light from a direction (3,); both sides of each are seen."""
    h, w = canvas.depth.shape
    seen, shade = np.empty((3, 3)), np.empty(3)
    for f in range(s.faces.shape[0]):
        for k in range(3):
            _seen(camera, w, h, world[s.faces[f, k]], seen[k])
        area, u0, u1, v0, v1 = _covered(seen, w, h)
        if u0 > u1 or v0 > v1:
            continue
        for k in range(3):
            x, n = world[s.faces[f, k]], normal[s.faces[f, k]]
            toward = (camera.eye[0] - x[0]) * n[0] + (camera.eye[1] - x[1]) * n[1] + (camera.eye[2] - x[2]) * n[2]
            lit = n[0] * light[0] + n[1] * light[1] + n[2] * light[2]
            shade[k] = AMBIENT + (1.0 - AMBIENT) * (0.5 + 0.5 * (lit if toward >= 0.0 else -lit))
        for v in range(v0, v1 + 1):
            for u in range(u0, u1 + 1):
                a, b, c = _weights(seen, area, u + 0.5, v + 0.5)
                if a < 0.0 or b < 0.0 or c < 0.0:
                    continue
                near = a * seen[0, 2] + b * seen[1, 2] + c * seen[2, 2]
                if near <= canvas.depth[v, u]:
                    continue
                canvas.depth[v, u] = near
                bright = a * shade[0] + b * shade[1] + c * shade[2]
                for i in range(3):
                    canvas.color[v, u, i] = bright * s.colors[f, i]


@kernel
def paint_lines(camera: Camera, lines: Lines, canvas: Canvas) -> None:
    """Lines as round bars; one that is not opaque is seen through what is before it, and hides nothing."""
    h, w = canvas.depth.shape
    ends = np.empty((2, 3))
    for n in range(lines.radii.shape[0]):
        _seen(camera, w, h, lines.ends[n, 0], ends[0])
        _seen(camera, w, h, lines.ends[n, 1], ends[1])
        if min(ends[0, 2], ends[1, 2]) <= 0.0:
            continue
        most = camera.focal * lines.radii[n] * max(ends[0, 2], ends[1, 2])
        u0, u1 = (
            max(0, int(min(ends[0, 0], ends[1, 0]) - most)),
            min(w - 1, int(max(ends[0, 0], ends[1, 0]) + most) + 1),
        )
        v0, v1 = (
            max(0, int(min(ends[0, 1], ends[1, 1]) - most)),
            min(h - 1, int(max(ends[0, 1], ends[1, 1]) + most) + 1),
        )
        du, dv = ends[1, 0] - ends[0, 0], ends[1, 1] - ends[0, 1]
        square = max(du * du + dv * dv, 1e-12)
        for v in range(v0, v1 + 1):
            for u in range(u0, u1 + 1):
                s = ((u + 0.5 - ends[0, 0]) * du + (v + 0.5 - ends[0, 1]) * dv) / square
                s = min(1.0, max(0.0, s))
                near = (1.0 - s) * ends[0, 2] + s * ends[1, 2]
                radius = max(camera.focal * lines.radii[n] * near, 0.7)
                off = math.hypot(u + 0.5 - ends[0, 0] - s * du, v + 0.5 - ends[0, 1] - s * dv) / radius
                share = lines.opacities[n]
                if off > 1.0 or (share >= 1.0 and near * (1.0 + TOWARD_EYE) <= canvas.depth[v, u]):
                    continue
                bright = 0.75 + 0.25 * math.sqrt(1.0 - off * off)
                if share >= 1.0:
                    canvas.depth[v, u] = near
                for i in range(3):
                    canvas.color[v, u, i] += share * (bright * lines.colors[n, i] - canvas.color[v, u, i])
