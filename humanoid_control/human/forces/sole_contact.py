"""Distance of the centre of pressure from soles, and rest of soles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ConfigError
from humanoid_control.human.forces.wrenches import MeasuredWrench


@dataclass(frozen=True)
class AssignmentSettings:
    """Criteria of a foot on a plate; ConfigError unless positive.

    Attributes:
        distance: of the centre of pressure from the sole [m].
        speed: of the slowest sole point [m/s].
        share: required share of a loaded interval; 0.1 s suffices.
    """

    distance: float = 0.06
    speed: float = 0.4
    share: float = 0.15

    def __post_init__(self) -> None:
        for name in ("distance", "speed", "share"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ConfigError(f"assignment of plates: {name} must be positive, got {getattr(self, name)}")


class SoleScene:
    """Soles around the centre of pressure of a plate.

    Args:
        wrench: cut to loaded intervals.
        times: (m,) [s].
        feet: foot -> (m, k, 3) sole points [m]; NaN: not visible.
    """

    def __init__(self, wrench: MeasuredWrench, times: np.ndarray, feet: Mapping[str, np.ndarray]) -> None:
        self.times, self.feet, self.wrench = times, feet, wrench
        self.flat = surface_axes(wrench.normal)
        self.soles = {name: points @ self.flat for name, points in feet.items()}
        self.velocity = {name: sole_velocity(points, times) for name, points in feet.items()}
        sampled = wrench.resampled(times)
        self.load = np.nan_to_num(sampled.normal_force)
        self.pressure = sampled.center_of_pressure() @ self.flat
        self.distance = {name: outline_distance(self.pressure, sole) for name, sole in self.soles.items()}

    def frames(self, a: int, b: int) -> np.ndarray | None:
        """Return frames within samples [a, b), at least the nearest; None outside."""
        start, end = self.wrench.times[a], self.wrench.times[b - 1]
        rows = np.flatnonzero((self.times >= start) & (self.times <= end))
        if len(rows):
            return rows
        inside = self.times[0] <= end and start <= self.times[-1]
        return np.array([np.argmin(np.abs(self.times - (start + end) / 2))]) if inside else None

    def rests(self, foot: str, floor: np.ndarray, settings: AssignmentSettings) -> np.ndarray:
        """Return True (m,) where a sole point is slow."""
        speed = np.linalg.norm(self.velocity[foot] - floor, axis=2)
        return np.where(np.isnan(speed), np.inf, speed).min(axis=1) < settings.speed

    def at(self, foot: str, floor: np.ndarray, settings: AssignmentSettings) -> np.ndarray:
        """Return True (m,) where a foot rests under the pressure."""
        near = np.nan_to_num(self.distance[foot], nan=np.inf) <= settings.distance
        return near & (self.load > 0) & self.rests(foot, floor, settings)

    def between(self, rows: np.ndarray, rests: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return distances (rows,) from the outline of two resting feet."""
        out = np.full(len(rows), np.inf)
        for one, other in combinations(self.soles, 2):
            both = np.concatenate([self.soles[one][rows], self.soles[other][rows]], axis=1)
            distance = np.nan_to_num(outline_distance(self.pressure[rows], both), nan=np.inf)
            out = np.where(rests[one] & rests[other], np.minimum(out, distance), out)
        return out

    def nearest_foot(self, rows: np.ndarray, settings: AssignmentSettings) -> dict[str, np.ndarray]:
        """Return the nearest foot at any speed, or {}."""
        best = {name: np.nan_to_num(d[rows], nan=np.inf).min() for name, d in self.distance.items()}
        name = min(best, key=lambda name: best[name])
        return {name: np.ones(len(rows), dtype=bool)} if best[name] <= settings.distance else {}

    def nearest(self, rows: np.ndarray) -> float:
        """Return the median distance of the nearest sole [m]."""
        best = np.min([np.nan_to_num(d[rows], nan=np.inf) for d in self.distance.values()], axis=0)
        return float(np.median(best[np.isfinite(best)])) if np.isfinite(best).any() else float("nan")


def surface_axes(normal: np.ndarray) -> np.ndarray:
    """Return directions (3, 2) along a surface as columns."""
    e1 = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    e1 = e1 / np.linalg.norm(e1)
    return np.stack([e1, np.cross(normal, e1)], axis=1)


def sole_velocity(points: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return velocities (m, k, 3) by central differences [m/s]."""
    return np.gradient(points, times, axis=0) if len(times) > 1 else np.zeros_like(points)


@kernel(allocates=True)
def outline_distance(p: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return distances (m,) of p (m, 2) from convex hulls of points (m, k, 2): 0 inside."""
    m, k = points.shape[0], points.shape[1]
    out = np.full(m, np.nan)
    # The hull is the union of all triangles of its points, and its edges are among all connections. NaN points are
    # skipped.
    for t in range(m):
        best, inside = np.inf, False
        # Vectors from p: the nearest point of a connection is at the share s of it.
        for i in range(k):
            ax, ay = points[t, i, 0] - p[t, 0], points[t, i, 1] - p[t, 1]
            if not np.isfinite(ax + ay):
                continue
            # Squared distances: one root a frame suffices.
            best = min(best, ax * ax + ay * ay)
            for j in range(i + 1, k):
                bx, by = points[t, j, 0] - p[t, 0], points[t, j, 1] - p[t, 1]
                if not np.isfinite(bx + by):
                    continue
                ux, uy = bx - ax, by - ay
                s = -(ax * ux + ay * uy) / max(ux * ux + uy * uy, 1e-12)
                if 0.0 < s < 1.0:
                    best = min(best, (ax + s * ux) ** 2 + (ay + s * uy) ** 2)
                # p is inside a triangle if all three cross products have the same sign.
                ab = ax * by - ay * bx
                for n in range(j + 1, k):
                    cx, cy = points[t, n, 0] - p[t, 0], points[t, n, 1] - p[t, 1]
                    bc, ca = bx * cy - by * cx, cx * ay - cy * ax
                    # The order of the three points is unknown, so both signs count.
                    inside = inside or (ab > 0 and bc > 0 and ca > 0) or (ab < 0 and bc < 0 and ca < 0)
        if np.isfinite(best):
            out[t] = 0.0 if inside else np.sqrt(best)
    return out
