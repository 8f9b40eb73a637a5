"""The surface of a swept-sphere volume as triangles."""

from __future__ import annotations

import numpy as np

AROUND, UP = 30, 12  # steps around the core and from its lower to its upper side
FLAT = 1e-9


def volume_mesh(core: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """All points at a radius from a point, a line or a triangle.

    Each level is the core's outline pushed outwards by r cos(a) and lifted by r sin(a): arcs about its vertices, with
    straight pieces between them. The levels at the bottom and at the top are the core itself.

    Args:
        core: (n, 3) one, two or three vertices [m].
        radius: [m].

    Returns:
        Vertices (V, 3) and faces (F, 3), seen counter-clockwise from outside.
    """
    core = _without_needless(np.asarray(core, dtype=float))
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
    """Directions around the core as angles (n,), rising, and the vertex (n,) that each is pushed from."""
    if len(core) == 1:
        return np.linspace(0, 2 * np.pi, AROUND, endpoint=False), np.zeros(AROUND, dtype=int)
    edges = np.roll(core, -1, axis=0) - core
    normals = np.arctan2(edges @ e2, edges @ e1) - np.pi / 2  # outward, as the core runs counter-clockwise
    turns, owner = [], []
    for k in range(len(core)):
        span = (normals[k] - normals[k - 1]) % (2 * np.pi)
        steps = max(2, round(AROUND * span / (2 * np.pi))) + 1
        turns.append(normals[k - 1] + np.linspace(0.0, span, steps))
        owner.append(np.full(steps, k))
    return np.concatenate(turns), np.concatenate(owner)


def core_axes(core: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two unit vectors in a core's plane and its normal, about which its vertices (n, 3) run counter-clockwise."""
    core = _without_needless(np.asarray(core, dtype=float))
    e1 = core[1] - core[0] if len(core) > 1 else np.array([1.0, 0.0, 0.0])
    e1 = e1 / np.linalg.norm(e1)
    other = core[2] - core[0] if len(core) == 3 else np.eye(3)[int(np.argmin(np.abs(e1)))]
    up = np.cross(e1, other)
    up /= np.linalg.norm(up)
    return e1, np.cross(up, e1), up


def _without_needless(core: np.ndarray) -> np.ndarray:
    """A triangle without area is a line, a line without length a point."""
    if len(core) == 3:
        edges = np.roll(core, -1, axis=0) - core
        lengths = np.linalg.norm(edges, axis=1)
        k = int(np.argmax(lengths))
        if np.linalg.norm(np.cross(edges[0], edges[1])) <= FLAT * max(lengths[k], FLAT):
            core = core[[k, (k + 1) % 3]]
    if len(core) == 2 and np.linalg.norm(core[1] - core[0]) <= FLAT:
        core = core[:1]
    return core
