"""CPU rendering of triangles and lines: depth buffer, shading, floor with shadows.

A world point X appears at

    (u, v) = (w / 2 + f x / z, h / 2 - f y / z),   (x, y, z) = R (X - eye),

with the rows of R to the right, up and ahead. The depth buffer stores 1 / z, which is linear in the picture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel

NEAREST = 0.1  # [m] minimum distance from the camera
FLOOR_LIGHT, FLOOR_LINE, SKY = (0.93, 0.94, 0.95), (0.72, 0.75, 0.79), (0.97, 0.98, 1.0)
FLOOR_FAR = 25.0  # [m] distance at which the floor blends into the sky
CELL, LINE = 0.5, 0.012  # [m] floor line spacing and width
AMBIENT, SHADOW = 0.5, 0.80  # share of ambient light; brightness of the floor in a shadow
TOWARD_EYE = 2e-3  # relative depth offset of lines, so that lines on a surface are visible


class Camera(NamedTuple):
    """Pinhole camera: R (3, 3), eye (3,) [m], focal length [pixels]."""

    R: np.ndarray
    eye: np.ndarray
    focal: float


class Surfaces(NamedTuple):
    """Triangles of bodies.

    Attributes:
        vertices: positions in body frames (V, 3) [m].
        normals: unit normals in body frames (V, 3).
        body: body index of each vertex (V,).
        faces: vertex indices (F, 3).
        colors: colours from 0 to 1 (F, 3).
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
    """Picture buffers: color (h, w, 3) from 0 to 1, depth (h, w) as 1 / z [1/m], shadow (h, w)."""

    color: np.ndarray
    depth: np.ndarray
    shadow: np.ndarray

    @classmethod
    def new(cls, width: int, height: int) -> Canvas:
        """Return an empty canvas."""
        return cls(
            np.zeros((height, width, 3), dtype=np.float32),
            np.zeros((height, width), dtype=np.float32),
            np.zeros((height, width), dtype=np.bool_),
        )


def look_at(eye: np.ndarray, at: np.ndarray, view: float, height: int) -> Camera:
    """Return an upright camera.

    Args:
        eye: camera position (3,) [m].
        at: target point (3,) [m].
        view: vertical field of view [rad].
        height: picture height [pixels].
    """
    ahead = (at - eye) / np.linalg.norm(at - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return Camera(
        np.array([right, np.cross(right, ahead), ahead]), np.asarray(eye, float), height / 2 / math.tan(view / 2)
    )


@kernel
def place_surfaces(s: Surfaces, R: np.ndarray, p: np.ndarray, world: np.ndarray, normal: np.ndarray) -> None:
    """Compute world vertices and normals (V, 3) from body poses R (B, 3, 3), p (B, 3)."""
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
    """Project a point to (u, v, 1 / z); 1 / z is 0 if it is too near or behind the camera."""
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
    """Overwrite the picture with the sky and the floor z = 0."""
    h, w = canvas.depth.shape
    R, eye = camera.R, camera.eye
    for v in range(h):
        # Ray direction of the pixel centre in camera axes: (x, y, 1).
        y = (0.5 * h - v - 0.5) / camera.focal
        for u in range(w):
            x = (u + 0.5 - 0.5 * w) / camera.focal
            canvas.shadow[v, u] = False
            down = R[0, 2] * x + R[1, 2] * y + R[2, 2]
            z = -eye[2] / down if down < -1e-6 else 0.0  # depth at which the pixel's ray meets z = 0; 0: it does not
            if z <= NEAREST or z > 4.0 * FLOOR_FAR:
                canvas.depth[v, u] = 0.0
                for c in range(3):
                    canvas.color[v, u, c] = SKY[c]
                continue
            canvas.depth[v, u] = 1.0 / z
            line = 0.0
            wide = max(LINE, 0.7 * z / camera.focal / max(-down, 0.05))  # at least one pixel wide
            for i in range(2):
                # Distance from the nearest grid line of this direction, at the point where the ray meets the floor.
                at = eye[i] + z * (R[0, i] * x + R[1, i] * y + R[2, i])
                off = abs(at / CELL - np.floor(at / CELL + 0.5)) * CELL
                # Fade over the edge; lines widened to a pixel get proportionally lighter.
                line = max(line, min(1.0, max(0.0, 1.5 - off / wide)) * LINE / wide)
            # Blend into the sky with distance.
            far = min(1.0, (z / FLOOR_FAR) ** 1.5)
            for c in range(3):
                own = FLOOR_LIGHT[c] + line * (FLOOR_LINE[c] - FLOOR_LIGHT[c])
                canvas.color[v, u, c] = own + far * (SKY[c] - own)


@kernel(allocates=True)
def paint_shadows(camera: Camera, light: np.ndarray, faces: np.ndarray, world: np.ndarray, canvas: Canvas) -> None:
    """Darken the floor where triangles block light from direction (3,)."""
    h, w = canvas.depth.shape
    corner, seen = np.empty(3), np.empty((3, 3))
    for f in range(faces.shape[0]):
        for k in range(3):
            x = world[faces[f, k]]
            # Project the vertex along the light onto z = 0: x - (x_z / l_z) l. Vertices below the floor stay.
            up = max(x[2], 0.0)
            corner[0], corner[1], corner[2] = x[0] - up * light[0] / light[2], x[1] - up * light[1] / light[2], 0.0
            _seen(camera, w, h, corner, seen[k])
        area, u0, u1, v0, v1 = _covered(seen, w, h)
        for v in range(v0, v1 + 1):
            for u in range(u0, u1 + 1):
                # Each floor pixel is darkened once, whatever number of triangles covers it.
                if canvas.shadow[v, u] or canvas.depth[v, u] <= 0.0:
                    continue
                a, b, c = _weights(seen, area, u + 0.5, v + 0.5)
                if a >= 0.0 and b >= 0.0 and c >= 0.0:
                    canvas.shadow[v, u] = True
                    for i in range(3):
                        canvas.color[v, u, i] *= SHADOW


@kernel
def _covered(seen: np.ndarray, w: int, h: int) -> tuple[float, int, int, int, int]:
    """Return twice the signed area of a projected triangle (3, 3), and its column and row range.

    The range is empty behind the camera or seen edge-on.
    """
    area = (seen[1, 0] - seen[0, 0]) * (seen[2, 1] - seen[0, 1]) - (seen[2, 0] - seen[0, 0]) * (seen[1, 1] - seen[0, 1])
    if min(seen[0, 2], seen[1, 2], seen[2, 2]) <= 0.0 or abs(area) < 1e-9:
        return area, 0, -1, 0, -1
    # Bounding box in pixels, clipped to the picture.
    u0 = max(0, int(np.floor(min(seen[0, 0], seen[1, 0], seen[2, 0]))))
    u1 = min(w - 1, int(np.ceil(max(seen[0, 0], seen[1, 0], seen[2, 0]))))
    v0 = max(0, int(np.floor(min(seen[0, 1], seen[1, 1], seen[2, 1]))))
    v1 = min(h - 1, int(np.ceil(max(seen[0, 1], seen[1, 1], seen[2, 1]))))
    return area, u0, u1, v0, v1


@kernel
def _weights(seen: np.ndarray, area: float, u: float, v: float) -> tuple[float, float, float]:
    """Return barycentric weights; all are >= 0 inside the triangle."""
    # Signed areas of the triangles opposite to each corner, relative to the whole.
    a = ((seen[1, 0] - u) * (seen[2, 1] - v) - (seen[2, 0] - u) * (seen[1, 1] - v)) / area
    b = ((seen[2, 0] - u) * (seen[0, 1] - v) - (seen[0, 0] - u) * (seen[2, 1] - v)) / area
    return a, b, 1.0 - a - b


@kernel(allocates=True)
def paint_surfaces(
    camera: Camera, light: np.ndarray, s: Surfaces, world: np.ndarray, normal: np.ndarray, canvas: Canvas
) -> None:
    """Draw triangles lit from direction (3,), on both sides."""
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
            # A surface seen from behind has its normal reversed, so that both sides are lit alike.
            toward = (camera.eye[0] - x[0]) * n[0] + (camera.eye[1] - x[1]) * n[1] + (camera.eye[2] - x[2]) * n[2]
            lit = n[0] * light[0] + n[1] * light[1] + n[2] * light[2]
            # Half-Lambert term (1 + n.l) / 2 above the ambient share: no side is black.
            shade[k] = AMBIENT + (1.0 - AMBIENT) * (0.5 + 0.5 * (lit if toward >= 0.0 else -lit))
        for v in range(v0, v1 + 1):
            for u in range(u0, u1 + 1):
                a, b, c = _weights(seen, area, u + 0.5, v + 0.5)
                if a < 0.0 or b < 0.0 or c < 0.0:
                    continue
                # 1 / z is linear in the picture, so the weights interpolate it exactly; larger is nearer.
                near = a * seen[0, 2] + b * seen[1, 2] + c * seen[2, 2]
                if near <= canvas.depth[v, u]:
                    continue
                canvas.depth[v, u] = near
                bright = a * shade[0] + b * shade[1] + c * shade[2]
                for i in range(3):
                    canvas.color[v, u, i] = bright * s.colors[f, i]


@kernel(allocates=True)
def paint_lines(camera: Camera, lines: Lines, canvas: Canvas) -> None:
    """Draw lines as round bars; translucent ones ignore depth and hide nothing."""
    h, w = canvas.depth.shape
    ends = np.empty((2, 3))
    for n in range(lines.radii.shape[0]):
        _seen(camera, w, h, lines.ends[n, 0], ends[0])
        _seen(camera, w, h, lines.ends[n, 1], ends[1])
        if min(ends[0, 2], ends[1, 2]) <= 0.0:
            continue
        # Bounding box, enlarged by the projected radius of the nearer end.
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
                # Parameter s in [0, 1] of the point of the segment nearest to the pixel.
                s = ((u + 0.5 - ends[0, 0]) * du + (v + 0.5 - ends[0, 1]) * dv) / square
                s = min(1.0, max(0.0, s))
                near = (1.0 - s) * ends[0, 2] + s * ends[1, 2]
                # Projected radius at that point, at least 0.7 pixels so that thin lines stay visible.
                radius = max(camera.focal * lines.radii[n] * near, 0.7)
                off = math.hypot(u + 0.5 - ends[0, 0] - s * du, v + 0.5 - ends[0, 1] - s * dv) / radius
                share = lines.opacities[n]
                if off > 1.0 or (share >= 1.0 and near * (1.0 + TOWARD_EYE) <= canvas.depth[v, u]):
                    continue
                # Brightness of a cylinder seen from the front: highest on its axis.
                bright = 0.75 + 0.25 * math.sqrt(1.0 - off * off)
                if share >= 1.0:
                    canvas.depth[v, u] = near
                for i in range(3):
                    canvas.color[v, u, i] += share * (bright * lines.colors[n, i] - canvas.color[v, u, i])
