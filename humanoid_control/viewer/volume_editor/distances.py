"""Distances of a robot's volumes in a posture, their colours, and ray picking."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.distance import SegmentPairs, volume_distances
from humanoid_control.collision.ssv.model import PoseArray, SsvModel
from humanoid_control.robots import Robot
from humanoid_control.robots.volumes import segment_pairs

RAY_STEPS, RAY_HIT, RAY_LENGTH = 96, 1e-4, 50.0  # [m]
Color = tuple[int, int, int]
# Uneven stops: near distances matter most.
STOPS: tuple[tuple[float, Color], ...] = (
    (0.0, (214, 39, 40)),
    (0.12, (255, 140, 0)),
    (0.3, (240, 210, 50)),
    (0.6, (70, 180, 95)),
    (1.0, (45, 105, 200)),
)
INSIDE: Color = (150, 0, 90)  # overlap
UNKNOWN: Color = (165, 170, 178)  # no partner
# Colours by segment.
PALETTE: tuple[Color, ...] = (
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (148, 103, 189), (140, 86, 75), (227, 119, 194), (188, 189, 34),
    (23, 190, 207), (110, 120, 130), (80, 90, 200),
)  # fmt: skip


@dataclass(frozen=True)
class VolumeGap:
    """Nearest volumes of a pair of segments.

    Attributes:
        volume_1: volume of the first segment, 'segment.volume'.
        volume_2: volume of the second segment.
        distance: signed distance [m].
        point_1: nearest point in the world (3,) [m].
        point_2: nearest point in the world (3,) [m].
    """

    first: str
    second: str
    volume_1: str
    volume_2: str
    distance: float
    point_1: np.ndarray
    point_2: np.ndarray


@dataclass(frozen=True)
class Distances:
    """Distances of all pairs and volumes.

    Attributes:
        gaps: gaps of all pairs, nearest first.
        volumes: distance of each pair's nearest volumes (N,) [m], else infinite.
        segments: distance to the nearest partner (S,) [m], or infinite.
    """

    gaps: tuple[VolumeGap, ...]
    volumes: np.ndarray
    segments: np.ndarray

    @property
    def largest(self) -> float:
        """Upper end of the colour bar: largest distance to a nearest partner [m]."""
        known = self.segments[np.isfinite(self.segments)]
        return float(known.max()) if len(known) and known.max() > 0 else 1.0

    @property
    def smallest(self) -> VolumeGap | None:
        return self.gaps[0] if self.gaps else None


class EditorDistances:
    """Distance calculator with its own forward kinematics."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._data = robot.model.createData()
        self._poses = PoseArray(self._data)
        self._calculator: SegmentPairs | None = None

    def at(self, model: SsvModel, joints: np.ndarray) -> Distances:
        """Return the distances at joint positions (n,) [rad]."""
        calculator = self._placed(model, joints)
        volumes, segments = np.full(len(model.arrays.radii), np.inf), np.full(len(model.segments), np.inf)
        if not model.pairs:
            return Distances((), volumes, segments)
        near = calculator.nearest()
        rows = model.arrays.pair_rows[near.pair]
        for side in (0, 1):
            np.minimum.at(volumes, near.volumes[:, side], near.distance)
            np.minimum.at(segments, rows[:, side], near.distance)
        gaps = tuple(
            VolumeGap(
                *model.names(int(near.pair[k])),
                model.volume_name(int(near.volumes[k, 0])),
                model.volume_name(int(near.volumes[k, 1])),
                float(near.distance[k]),
                near.point_1[k],
                near.point_2[k],
            )
            for k in np.argsort(near.distance, kind="stable")
        )
        return Distances(gaps, volumes, segments)

    def pick(self, model: SsvModel, joints: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> int | None:
        return ray_pick(model, self._placed(model, joints).placed.vertices, origin, direction)

    def _placed(self, model: SsvModel, joints: np.ndarray) -> SegmentPairs:
        if self._calculator is None or self._calculator.model is not model:
            self._calculator = segment_pairs(self.robot, model)
        pin.forwardKinematics(self.robot.model, self._data, self.robot.q(joints))
        self._calculator.reset()
        self._calculator.place(self._poses.rows())
        return self._calculator


def ray_pick(model: SsvModel, vertices: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> int | None:
    """Return the first volume hit by a ray, or None, by sphere tracing.

    Clickable meshes would block the drag handles.

    Args:
        model: model with N volumes.
        vertices: volume vertices in the world (N, 3, 3) [m].
        origin: origin of the ray (3,) [m].
        direction: direction of the ray (3,), any length.
    """
    n = np.asarray(direction, dtype=float)
    n = n / np.linalg.norm(n)
    reached, open_ = np.zeros(len(model.arrays.radii)), np.ones(len(model.arrays.radii), dtype=bool)
    for _ in range(RAY_STEPS):
        rows = np.flatnonzero(open_)
        if not len(rows):
            break
        points = np.asarray(origin, dtype=float) + reached[rows, None] * n
        d = np.empty(len(rows))
        for kind in range(3):
            of = model.arrays.kinds[rows] == kind
            zero, core = np.zeros(int(of.sum())), vertices[rows[of], : kind + 1]
            d[of] = volume_distances(
                "p" + "plt"[kind], points[of, None], zero, core, model.arrays.radii[rows[of]]
            ).distance
        reached[rows] += np.maximum(d, 0.0)
        open_[rows] = (d > RAY_HIT) & (reached[rows] < RAY_LENGTH)
    hit = reached < RAY_LENGTH
    return int(np.argmin(np.where(hit, reached, np.inf))) if hit.any() else None


def color_of(distance: float, largest: float) -> Color:
    """Return the colour of a distance [m] on a scale up to `largest` [m]."""
    if not np.isfinite(distance):
        return UNKNOWN
    if distance < 0:
        return INSIDE
    share = min(distance / largest, 1.0) if largest > 0 else 0.0
    at = [s for s, _ in STOPS]
    r, g, b = (round(float(np.interp(share, at, [c[k] for _, c in STOPS]))) for k in range(3))
    return r, g, b


def bar_html(largest: float, smallest: float, label: str = "", font: int = 12) -> str:
    """Return a colour bar in mm with a mark at the smallest gap.

    Args:
        largest: upper end [m].
        smallest: smallest gap, possibly negative [m].
        label: description of the smallest gap.
        font: font size [px].
    """
    gradient = ", ".join(f"rgb{c} {100 * s:.0f}%" for s, c in STOPS)
    share = 100 * min(max(smallest / largest, 0.0), 1.0) if largest > 0 else 0.0
    ticks = "".join(
        f"<span style='position:absolute;left:{100 * s:.0f}%;transform:translateX(-{100 * s:.0f}%)'>"
        f"{1000 * largest * s:.0f}</span>"
        for s in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    of = f": {html.escape(label)}" if label else ""
    said = f"smallest gap <b>{1000 * smallest:.0f} mm</b>{of}"
    if smallest < 0:
        said = f"<span style='color:rgb{INSIDE}'>overlap of <b>{-1000 * smallest:.0f} mm</b>{of}</span>"
    return (
        f"<div style='margin:2px 14px 6px;font-size:{font}px;line-height:1.35'>{said}"
        f"<div style='position:relative;height:{font}px;margin-top:{font // 2 + 2}px;border-radius:3px;"
        f"background:linear-gradient(to right, {gradient})'>"
        f"<div style='position:absolute;left:{share:.1f}%;top:-{font // 3}px;margin-left:-2px;width:4px;"
        f"height:{font + 2 * (font // 3)}px;background:#d00000;border:1px solid white'></div></div>"
        f"<div style='position:relative;height:{int(1.4 * font)}px'>{ticks}</div>"
        f"<div style='text-align:center;margin-top:-2px'>distance to the nearest partner [mm]</div></div>"
    )
