"""The ways of tendons as points to draw."""

from __future__ import annotations

import numpy as np

from humanoid_control.tendons.routing.measuring import contact_of, from_solid
from humanoid_control.tendons.routing.placing import place
from humanoid_control.tendons.routing.routing import Placed, Routing
from humanoid_control.tendons.routing.wrapping import APART, AROUND

STEP = 0.2  # [rad] between points of a curved way


def path_points(routing: Routing, theta: np.ndarray, at: Placed) -> list[np.ndarray]:
    """Points (K, 3) of every tendon in the frame of body 0; see TendonGeometry.paths."""
    place(routing, theta, at)
    out = []
    for m in range(len(routing.first) - 1):
        rows: list[np.ndarray] = []
        last = -1
        for s in range(routing.first[m], routing.first[m + 1]):
            start, end = int(routing.start[s]), int(routing.end[s])
            if start != last:
                rows += [np.full((1, 3), np.nan)] if rows else []
                rows.append(at.x[start].reshape(1, 3).copy())
            if routing.solid[s] >= 0:
                rows.append(_on_solid(routing, at, s))
            rows.append(at.x[end].reshape(1, 3).copy())
            last = end
        out.append(np.concatenate(rows))
    return out


def _on_solid(routing: Routing, at: Placed, s: int) -> np.ndarray:
    """Points (K, 3) of a stretch on its solid; none where it passes it."""
    met, arc, t0, t1, sense = contact_of(routing, at, s)
    if met == APART:
        return np.empty((0, 3))
    k = int(routing.solid[s])
    if met != AROUND:
        return np.array([from_solid(routing, at, k, t0)])
    a, b, r = np.array(t0), np.array(t1), float(routing.radius[k])
    if routing.ball[k]:
        angle = arc / r
        x, z = a / r, np.cross(a, b) * (1.0 if angle <= np.pi else -1.0)
        y = np.cross(z / max(float(np.linalg.norm(z)), 1e-300), x)
        height = np.zeros(2)
    else:
        angle = float(np.sqrt(max(arc**2 - (b[2] - a[2]) ** 2, 0.0))) / r
        x = np.array([a[0], a[1], 0.0]) / r
        y = -sense * np.array([-x[1], x[0], 0.0])
        height = np.array([a[2], b[2]])
    f = np.linspace(0.0, 1.0, 2 + int(angle / STEP))
    curve = r * (np.cos(f * angle)[:, None] * x + np.sin(f * angle)[:, None] * y)
    curve[:, 2] += height[0] + f * (height[1] - height[0])
    return np.array([from_solid(routing, at, k, (p[0], p[1], p[2])) for p in curve])
