"""Ground model of the planner: footholds, swing clearance, slope felt by the soles.

A foothold is the least-squares plane under the sole; steep or uneven ground and edges are rejected. Without a map, the
stance soles measure the slope.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.walking.swing_foot import LEVEL, SwingPath, SwingShape

STEEPEST = float(np.radians(15.0))  # [rad] slope of a foothold
UNEVEN = 0.015  # [m] deviation of a point from the plane
EDGE = 0.025  # [m] range about the plane that indicates an edge
# [m] spacing of the sample points, at most: with few points, an edge under one of them looks like a slope.
SPACING = 0.02
OFF_GROUND = 0.03  # [m] accepted height error of a listed footstep
KEEP_OFF = 0.01  # [m] distance of a sole from an edge, for odometry errors
CLEARANCE = 0.02  # [m] of heel and toe above the ground
LOOKS, BETWEEN = 20, 4  # poses sampled in a swing; interpolated points between them
RAMP = 0.25  # share of a swing over which the clearance grows from zero, at both ends
SLACK = 0.002  # [m] tolerance of the clearance
HIGHEST = 0.16  # [m] maximum extra lift of a swing
MOST_KNOWN = 200  # cached swings: a plan requests each several times
SHAPES = (  # order of trial: default, first up then forward, first forward then down
    SwingShape(),
    SwingShape(begin=0.15, end=0.95, top=0.45),
    SwingShape(begin=0.05, end=0.85, top=0.55),
    SwingShape(begin=0.25, end=0.95, top=0.4),
    SwingShape(begin=0.05, end=0.75, top=0.6),
    SwingShape(begin=0.3, end=0.9, top=0.35),
    SwingShape(begin=0.1, end=0.7, top=0.65),
)


class HeightMap(Protocol):
    """Heights of the ground, as in `simulation.Ground`."""

    def heights(self, points: np.ndarray) -> np.ndarray:
        """Return heights (k,) at points (k, 2) [m]."""

    def as_plane(self) -> tuple[float, float, float] | None:
        """Return height at the origin [m] and slopes along x and y if the ground is a plane."""


class Foothold(NamedTuple):
    """Place to stand.

    Attributes:
        X: pose of the sole on its plane, with the requested heading.
        why: reason of a rejection; empty: valid.
    """

    X: pin.SE3
    why: str


class Terrain:
    """Height map with queries for soles.

    Attributes:
        outlines: (2, 4, 2) corners of both soles in their frames [m].
        known: False: the map is felt by the soles.
    """

    def __init__(self, heights: HeightMap, outlines: np.ndarray, known: bool = True) -> None:
        self.map, self.outlines, self.known = heights, np.asarray(outlines), known
        self._points = [_grid(o) for o in self.outlines]
        self._known: dict[tuple[float, ...], tuple[float, SwingShape]] = {}

    def foothold(self, X: pin.SE3, foot: int) -> Foothold:
        """Return the foothold at (x, y) and heading of a pose."""
        yaw = float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
        c, s = np.cos(yaw), np.sin(yaw)
        x, y, _ = X.translation
        plane = self.map.as_plane()
        if plane is not None:
            z0, dx, dy = plane
            a, along, across, off = z0 + dx * x + dy * y, dx * c + dy * s, dy * c - dx * s, np.zeros(1)
            count = 1
        else:
            local, pinv = self._points[foot]
            count = pinv.shape[1]
            z = self.map.heights(local @ np.array([[c, s], [-s, c]]) + X.translation[:2])
            a, along, across = pinv @ z[:count]
            off = z - a - local @ np.array([along, across])
        place = pin.SE3(_tilted(c, s, along, across), np.array([x, y, a]))
        tilt = float(np.arccos(1.0 / np.sqrt(1.0 + along**2 + across**2)))
        if float(np.ptp(off)) > EDGE:
            return Foothold(place, f"an edge under the sole: {1e3 * np.ptp(off):.0f} mm")
        rough = float(np.abs(off[:count]).max())
        if rough > UNEVEN:
            return Foothold(place, f"uneven ground under the sole: {1e3 * rough:.0f} mm off its plane")
        if tilt > STEEPEST:
            return Foothold(place, f"a slope of {np.degrees(tilt):.0f} deg, the maximum is {np.degrees(STEEPEST):.0f}")
        return Foothold(place, "")

    def refusal(self, X: pin.SE3, foot: int) -> str:
        """Return why a sole cannot stand at a pose (arguments as `foothold`); empty if it can."""
        place = self.foothold(X, foot)
        off = float(X.translation[2] - place.X.translation[2])
        return place.why or (f"it is {off:+.2f} m off the ground" if abs(off) > OFF_GROUND else "")

    def swing(
        self,
        start: pin.SE3,
        end: pin.SE3,
        times: tuple[float, float],
        lift: float,
        foot: int,
        shape: SwingShape = LEVEL,
    ) -> SwingPath:
        """Return the lowest swing that keeps heel and toe clear of the ground, or the one that comes nearest.

        Args:
            times: times of lift-off and touch-down [s].
            lift: minimum lift [m].
        """
        if self.map.as_plane() is not None:
            return SwingPath.between(start, end, *times, lift, shape)
        key = (*np.round(np.concatenate([start.translation, start.rotation[0], end.translation]), 4), lift, foot)
        if key not in self._known:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._lowest(start, end, lift, foot)
        high, shape = self._known[key]
        return SwingPath.between(start, end, *times, high, shape)

    def _lowest(self, start: pin.SE3, end: pin.SE3, lift: float, foot: int) -> tuple[float, SwingShape]:
        best, most = (lift, SHAPES[0]), -np.inf
        for more in np.arange(0.0, HIGHEST + 1e-9, 0.02):
            for shape in SHAPES:
                room = self._clear(SwingPath.between(start, end, 0.0, 1.0, lift + float(more), shape), foot)
                if room >= 0.0:
                    return lift + float(more), shape
                if room > most:
                    best, most = (lift + float(more), shape), room
        return best

    def _clear(self, path: SwingPath, foot: int) -> float:
        rim = np.column_stack([_rim(self.outlines[foot]), np.zeros(6)])
        u = np.arange(1, LOOKS) / LOOKS
        at = [path.at(path.lift_off + x * (path.land - path.lift_off)) for x in u]
        # A foot moves 5 cm between two samples, more than the nosing of a stair: check interpolated points as well.
        looks = np.linspace(0.0, len(u) - 1.0, BETWEEN * (len(u) - 1) + 1)
        first = np.minimum(looks.astype(int), len(u) - 2)
        share = (looks - first)[:, None, None]
        seen = np.array([rim @ X.rotation.T + X.translation for X in at])
        points = seen[first] + share * (seen[first + 1] - seen[first])
        u = np.interp(looks, np.arange(len(u)), u)
        asked = [CLEARANCE * minimum_jerk(min(1.0, x / RAMP, (1.0 - x) / RAMP)) - SLACK for x in u]
        above = points[..., 2] - self.map.heights(points[..., :2].reshape(-1, 2)).reshape(len(u), -1)
        return float((above.min(axis=1) - asked).min())


def _grid(outline: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = outline.min(axis=0), outline.max(axis=0)

    def between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        counts = [int(np.ceil((b - a) / SPACING)) + 1 for a, b in zip(low, high, strict=True)]
        x, y = np.meshgrid(*(np.linspace(low[k], high[k], n) for k, n in enumerate(counts)), indexing="ij")
        return np.column_stack([x.ravel(), y.ravel()])

    points, rim = between(low, high), between(low - KEEP_OFF, high + KEEP_OFF)
    return np.vstack([points, rim]), np.linalg.pinv(np.column_stack([np.ones(len(points)), points]))


def _rim(outline: np.ndarray) -> np.ndarray:
    (x0, y0), (x1, y1) = outline.min(axis=0), outline.max(axis=0)
    return np.array([[x, y] for x in (x0, x1) for y in (y0, 0.5 * (y0 + y1), y1)])


def _tilted(c: float, s: float, along: float, across: float) -> np.ndarray:
    """Return the sole rotation on a plane with slopes along the heading and to its left."""
    if along == 0.0 and across == 0.0:
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    forward = np.array([c, s, along]) / np.sqrt(1.0 + along**2)
    normal = np.cross(forward, np.array([-s, c, across]))
    normal /= np.linalg.norm(normal)
    return np.column_stack([forward, np.cross(normal, forward), normal])


# -------- Felt ground

TIME = 1.5  # [s] time constant of the slope: longer than bumps, shorter than hills
# Slopes within the error of an IMU count as level; slopes above SURE are trusted.
AS_LEVEL, SURE = float(np.tan(np.radians(0.8))), float(np.tan(np.radians(1.6)))


class FeltGround:
    """Plane through the stance sole with the felt slope; slopes within IMU error count as level.

    Attributes:
        felt: (2,) slope along x and y of the world.
        place: (3,) stance sole [m].
    """

    def __init__(self) -> None:
        self.felt, self.place = np.zeros(2), np.zeros(3)

    def begin(self, *soles: pin.SE3) -> None:
        """Set the slope to the mean of the soles."""
        self.felt = np.mean([_slope(X) for X in soles], axis=0)

    def feel(self, X: pin.SE3, dt: float) -> None:
        """Update the slope by a loaded sole after `dt` [s]."""
        self.felt += (1.0 - np.exp(-dt / TIME)) * (_slope(X) - self.felt)

    @property
    def slope(self) -> np.ndarray:
        """Trusted slope (2,)."""
        size = float(np.hypot(*self.felt))
        return self.felt * min(max((size - AS_LEVEL) / (SURE - AS_LEVEL), 0.0), 1.0)

    def heights(self, points: np.ndarray) -> np.ndarray:
        z, dx, dy = self.as_plane()
        return z + points @ np.array([dx, dy])

    def as_plane(self) -> tuple[float, float, float]:
        x, y, z = (float(c) for c in self.place)
        dx, dy = (float(c) for c in self.slope)
        return z - dx * x - dy * y, dx, dy


def _slope(X: pin.SE3) -> np.ndarray:
    n = X.rotation[:, 2]
    return -n[:2] / max(float(n[2]), 0.5)
