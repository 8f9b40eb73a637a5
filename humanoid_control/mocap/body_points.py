"""Reduction of a clip to named body points in world axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap.cleaning import fill_gaps, longest_gap
from humanoid_control.mocap.clip import Frames, MarkerClip
from humanoid_control.mocap.marker_sets import ESTIMATED, OPTIONAL, REQUIRED, BodyLocator, MarkerSet
from humanoid_control.mocap.sternum import complete_sternum

MAX_GAP = 0.5  # [s] default of the longest filled gap
LEAST_LENGTH = 0.03  # [m] shortest plausible limb
_HEADING_TIME = 0.5  # [s] at the start: the hip line is averaged
_LEAST_HIP_WIDTH = 0.08  # [m] smallest distance of hip centres
_IN_DOUBT = 0.8  # ratio of the two longest extents above which the posture does not show the up axis
_FLOOR_PERCENTILE = 1.0  # of the foot heights: the lowest sample may be a glitch
_FOOT = 0.3  # [m] largest distance of heel or toe below the ankle
_SOLE = 0.12  # [m] largest height difference of foot points; a lower point is an error
_CROSSED = 0.03  # [m] standard deviation of the length of both shins that skin motion cannot cause
_MOST_HIDDEN = 0.5  # share of the frames in which a point may be bridged
_CARRIER = {"knee": "hip", "ankle": "knee", "toe": "ankle", "heel": "ankle"}
_FEET = ("l_toe", "r_toe", "l_heel", "r_heel")
_ANKLES = ("l_ankle", "r_ankle")


@dataclass(frozen=True, eq=False)
class BodyPoints(Frames):
    """Body points of a person without gaps, in world axes: z up, floor at 0, facing +x at the start.

    Attributes:
        rate: [Hz].
        names: P points: always l_hip r_hip sternum l_shoulder r_shoulder l_elbow r_elbow l_wrist r_wrist; if visible
            head and knee, ankle, toe, heel of both sides.
        positions: (T, P, 3) [m], world; read-only.
        missing: (P,) share of interpolated frames.
        warnings: of the clip, and on omitted or estimated points.
        estimated: the sternum or none.
    """

    name: str
    rate: float
    names: tuple[str, ...]
    positions: np.ndarray
    missing: np.ndarray
    warnings: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for array in (self.positions, self.missing):
            array.setflags(write=False)

    def point(self, name: str) -> np.ndarray:
        """Return a path (T, 3) [m], world, or raise UnknownNameError."""
        if name not in self.names:
            raise UnknownNameError("body point", name, self.names)
        return self.positions[:, self.names.index(name)]

    @property
    def mid_hip(self) -> np.ndarray:
        """(T, 3) middle of the hip centres [m], world."""
        return (self.point("l_hip") + self.point("r_hip")) / 2

    @property
    def heading(self) -> np.ndarray:
        """(T,) yaw of the pelvis about z from +x [rad], world, without jumps of full turns.

        Forward is the hip line crossed with the vertical; the laboratory's y axis (Dube 2012, section 5.3) fails when
        the dancer turns.
        """
        left = self.point("l_hip") - self.point("r_hip")
        return np.unwrap(np.arctan2(-left[:, 0], left[:, 1]))

    def cropped(self, frames: int) -> BodyPoints:
        """Return the first frames."""
        return replace(self, positions=self.positions[:frames].copy(), missing=self.missing.copy())

    def in_pelvis(self) -> np.ndarray:
        """Return (T, P, 3) [m] in the pelvis frame: origin mid-hip, x along the heading, y left, z up."""
        yaw = self.heading
        cos, sin = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
        x, y, z = np.moveaxis(self.positions - self.mid_hip[:, None], -1, 0)
        return np.stack([cos * x + sin * y, -sin * x + cos * y, z], axis=-1)


def torso_axes(spine: np.ndarray, across: np.ndarray) -> np.ndarray:
    """Return rotations (T, 3, 3) of a trunk: z along the spine, y from right to left shoulder.

    Args:
        spine: (T, 3) unit vectors.
        across: (T, 3) right to left shoulder.
    """
    y = across - np.sum(across * spine, axis=1, keepdims=True) * spine
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    return np.stack([np.cross(y, spine), y, spine], axis=2)


def find_body_points(
    clip: MarkerClip, marker_set: str | Path | MarkerSet | None = None, max_gap: float = MAX_GAP
) -> BodyPoints:
    """Return the body points of a clip, with short gaps filled, upright.

    The clip is not cleaned; see `load_body_points`. A sternum without a marker, or hidden for longer than `max_gap`, is
    estimated from hips and shoulders. Other optional points hidden for longer are bridged (legs) or omitted.

    Args:
        marker_set: built-in name, path of a YAML file, a set, or None: best built-in one.
        max_gap: longest filled gap [s].

    Raises:
        ClipError: if no set fits, a required point is hidden for longer than `max_gap`, a limb has no length, or the
            hips do not show the heading.
        UnknownNameError: if the marker set is unknown.
    """
    where = f"clip '{clip.name}' ({clip.source})"
    locator = BodyLocator(clip, marker_set)
    seen = locator.locate()
    filled = locator.locate(fill_gaps(clip, max_gap))
    names = []
    warnings = [*clip.warnings, *locator.warnings]
    for point in locator.points:
        if point in ESTIMATED or not np.isnan(filled[point]).any():
            names.append(point)
            continue
        problem = (
            f"{point} (from {', '.join(locator.labels(point))}) is hidden for "
            f"{longest_gap(filled[point], clip.rate):.2f} s, longer than {max_gap:g} s"
        )
        if point in REQUIRED:
            raise ClipError(
                f"{where}: {problem}: crop the clip, fill the gap in the recording software, or raise max_gap"
            )
        if _bridge(point, filled, clip.rate):
            warnings.append(f"{problem}: it moves with the {_CARRIER[point[2:]]} meanwhile")
            names.append(point)
            continue
        warnings.append(f"{problem}: left out")
    _check_lengths(filled, where)
    names = [point for point in REQUIRED + OPTIONAL if point in {*names, "sternum"}]
    estimated: tuple[str, ...] = ()
    if "sternum" not in filled or np.isnan(filled["sternum"]).any():
        filled["sternum"], note = complete_sternum(filled, clip.rate)
        warnings.append(note)
        estimated = ("sternum",)
    placement = find_placement({point: filled[point] for point in names}, clip.rate, where, clip.up_axis)
    warnings += _up_notes(filled, where, clip)
    below = _floor({point: filled[point] for point in names}, placement.R_WF[2])[1]
    if below:
        warnings.append(
            f"{below} (from {', '.join(locator.labels(below))}) lies too far below the other points of the feet, "
            "which define the ground; check its label"
        )
    points_W = {point: placement.apply(filled[point]) for point in names}
    return BodyPoints(
        name=clip.name,
        rate=clip.rate,
        names=tuple(names),
        positions=np.stack(list(points_W.values()), axis=1),
        missing=np.array([np.isnan(seen[point][:, 0]).mean() if point in seen else 1.0 for point in names]),
        warnings=(*warnings, *_backward_feet(points_W), *_crossed_feet(points_W)),
        estimated=estimated,
    )


def _check_lengths(points: dict[str, np.ndarray], where: str) -> None:
    """Raise ClipError for limbs without length: two labels on one marker."""
    limbs = [("l_shoulder", "r_shoulder"), ("l_hip", "l_shoulder"), ("r_hip", "r_shoulder")]
    limbs += [(f"{side}_{a}", f"{side}_{b}") for side in "lr" for a, b in (("shoulder", "elbow"), ("elbow", "wrist"))]
    for a, b in limbs:
        length = float(np.median(np.linalg.norm(points[a] - points[b], axis=1)))
        if not length >= LEAST_LENGTH:
            raise ClipError(
                f"{where}: {a} and {b} are {length:.3f} m apart: check their labels, both refer to one marker"
            )


def _backward_feet(points_W: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Warn if the toes point backward: swapped sides or mirrored axes."""
    if not {"l_toe", "r_toe", "l_ankle", "r_ankle"} <= set(points_W):
        return ()
    left = points_W["l_hip"] - points_W["r_hip"]
    foot = points_W["l_toe"] + points_W["r_toe"] - points_W["l_ankle"] - points_W["r_ankle"]
    if np.median(left[:, 1] * foot[:, 0] - left[:, 0] * foot[:, 1]) >= 0:
        return ()
    return ("the toes point backward: left and right labels are swapped, or the file's axes are mirrored",)


def _crossed_feet(points_W: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Warn if shins keep their length only with the other foot; crossed feet alone are no proof."""
    if not {*_ANKLES, "l_knee", "r_knee"} <= set(points_W):
        return ()

    def change(knee: str, ankle: str) -> float:
        length = np.linalg.norm(points_W[f"{knee}_knee"] - points_W[f"{ankle}_ankle"], axis=1)
        return float(np.std(length))

    own, other = change("l", "l") + change("r", "r"), change("l", "r") + change("r", "l")
    if own < _CROSSED or other > own / 2:
        return ()
    return (
        "the shins keep their length only with the other foot: left and right feet are swapped: correct the labels",
    )


def _bridge(point: str, filled: dict[str, np.ndarray], rate: float) -> bool:
    """Close the gaps of a leg point relative to its carrier, in trunk axes; False if not possible.

    Args:
        filled: point -> path (T, 3) [m]; the point's path is replaced.
    """
    carrier = _CARRIER.get(point[2:] if point[1] == "_" else point)
    carrier = f"{point[0]}_{carrier}" if carrier and point[1] == "_" else carrier
    path, hidden = filled[point], np.isnan(filled[point][:, 0])
    if carrier not in filled or np.isnan(filled[carrier]).any() or hidden.mean() > _MOST_HIDDEN:
        return False
    spine = _unit_rows(filled["l_shoulder"] + filled["r_shoulder"] - filled["l_hip"] - filled["r_hip"])
    R = torso_axes(spine, filled["l_hip"] - filled["r_hip"])
    local = np.einsum("tji,tj->ti", R, path - filled[carrier])
    frames = np.arange(len(path))
    length = np.linalg.norm(local, axis=1)
    for axis in range(3):
        local[hidden, axis] = np.interp(frames[hidden], frames[~hidden], local[~hidden, axis])
    straight = np.maximum(np.linalg.norm(local[hidden], axis=1), 1e-9)  # linear interpolation shortens the bone
    local[hidden] *= (np.interp(frames[hidden], frames[~hidden], length[~hidden]) / straight)[:, None]
    filled[point] = np.where(hidden[:, None], filled[carrier] + np.einsum("tij,tj->ti", R, local), path)
    return True


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Normalise vectors (T, 3)."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# -------- world axes


@dataclass(frozen=True, eq=False)
class Placement:
    """Rigid motion from file axes (F) to the world (W): p_W = R_WF p_F + p_WF.

    Attributes:
        R_WF: (3, 3) proper rotation.
        p_WF: (3,) [m].
    """

    R_WF: np.ndarray
    p_WF: np.ndarray

    def apply(self, positions_F: np.ndarray) -> np.ndarray:
        """Transform positions (..., 3) [m] from file to world axes."""
        return positions_F @ self.R_WF.T + self.p_WF


def upright(clip: MarkerClip, marker_set: str | Path | None = None) -> MarkerClip:
    """Return the clip in world axes; see `find_placement`.

    Args:
        clip: right-handed axes, one of them vertical.

    Raises:
        ClipError: if no marker set fits, or the direction is ambiguous.
    """
    located = BodyLocator(clip, marker_set).locate()
    placement = find_placement(located, clip.rate, f"clip '{clip.name}'", clip.up_axis)
    return replace(clip, positions=placement.apply(clip.positions), up="+z")


def find_placement(
    points_F: Mapping[str, np.ndarray], rate: float, where: str, up_F: np.ndarray | None = None
) -> Placement:
    """Return the placement that makes a recording stand in the world.

    Up is the stated axis, else the one with the longest extent from feet (or hips) to shoulders, median of all frames.
    Forward is across the hip line in the first 0.5 s. The lowest foot is on the floor. The hips start above the origin.

    Args:
        points_F: hips, shoulders and others (T, 3) [m], file axes, NaN: missing.
        rate: [Hz].
        up_F: (3,) unit vector upward, if known.

    Raises:
        ClipError: if hips or shoulders coincide, or the up axis is ambiguous.
    """
    up_F = _up(points_F, where) if up_F is None else up_F
    start = slice(0, max(1, round(_HEADING_TIME * rate)))
    left_F = _mean(points_F["l_hip"] - points_F["r_hip"], start)
    left_F = left_F - (left_F @ up_F) * up_F
    width = float(np.linalg.norm(left_F))
    if not width >= _LEAST_HIP_WIDTH:
        raise ClipError(
            f"{where}: left and right hip are {width:.3f} m apart at the start: "
            "the recording is two-dimensional, or left and right are swapped; three dimensions are needed"
        )
    y_F = left_F / width
    R_WF = np.stack([np.cross(y_F, up_F), y_F, up_F])
    hips_W = _mean((points_F["l_hip"] + points_F["r_hip"]) / 2, start) @ R_WF.T
    return Placement(R_WF, -np.array([hips_W[0], hips_W[1], _floor(points_F, up_F)[0]]))


def _floor(points_F: Mapping[str, np.ndarray], up_F: np.ndarray) -> tuple[float, str]:
    """Return the floor height along up [m], and a foot point too far below it, or "".

    A point too far below its ankle or all others does not count: a loose marker must not lift the person.
    """
    names = [p for p in _FEET if p in points_F] or [p for p in _ANKLES if p in points_F]
    heights = {p: h for p in names if np.isfinite(h := points_F[p] @ up_F).any()}
    if not heights:
        return 0.0, ""
    lowest = {p: float(np.nanpercentile(h, _FLOOR_PERCENTILE)) for p, h in heights.items()}
    order = sorted(lowest, key=lambda p: lowest[p])
    ankle = points_F.get(f"{order[0][0]}_ankle") if order[0] in _FEET else None
    far = ankle is not None and float(np.nanpercentile(ankle @ up_F, _FLOOR_PERCENTILE)) - lowest[order[0]] > _FOOT
    alone = len(order) > 2 and lowest[order[1]] - lowest[order[0]] > _SOLE
    if (far or alone) and len(order) > 1:
        return lowest[order[1]], order[0]
    return float(np.nanpercentile(np.concatenate(list(heights.values())), _FLOOR_PERCENTILE)), ""


def _up(points_F: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """Return the file axis most aligned with feet to shoulders."""
    body, lower = _body_line(points_F)
    axis = int(np.argmax(np.abs(body)))
    if not abs(body[axis]) > _LEAST_HIP_WIDTH:
        raise ClipError(f"{where}: the shoulders are not above the {lower}s: check the labels")
    second = float(np.sort(np.abs(body))[-2])
    if second > _IN_DOUBT * abs(body[axis]):
        raise ClipError(
            f"{where}: the upward axis is neither stated in the file nor clear from the posture: give it (--up z, "
            'or up="z" to load_clip)'
        )
    return np.sign(body[axis]) * np.eye(3)[axis]


def _up_notes(points_F: Mapping[str, np.ndarray], where: str, clip: MarkerClip) -> list[str]:
    """Note a guessed up axis, or a contradicting posture."""
    body, _ = _body_line(points_F)
    likely = int(np.argmax(np.abs(body)))
    posture = f"{'-' if body[likely] < 0 else '+'}{'xyz'[likely]}"
    if not clip.up:
        return [f"up is {posture}, guessed from the posture: if the person is not standing, give it (--up)"]
    upright = abs(body[likely]) > 2 * float(np.sort(np.abs(body))[-2])
    if not upright or posture == clip.up or clip.up_told:
        return []
    return [
        f"up is {clip.up}, as the file states; most of the time the body is along {posture}: if the person is "
        f"standing, give --up {posture.replace('+', '')}"
    ]


def _body_line(points_F: Mapping[str, np.ndarray]) -> tuple[np.ndarray, str]:
    """Return the median vector (3,) from feet (or hips) to shoulders, and the lower points."""
    shoulders = (points_F["l_shoulder"] + points_F["r_shoulder"]) / 2
    lower = ("l_ankle", "r_ankle") if all(point in points_F for point in _ANKLES) else ("l_hip", "r_hip")
    return np.nanmedian(shoulders - (points_F[lower[0]] + points_F[lower[1]]) / 2, axis=0), lower[0][2:]


def _mean(path: np.ndarray, start: slice) -> np.ndarray:
    """Return the mean of the first visible frames of a path (T, 3)."""
    seen = path[~np.isnan(path[:, 0])]
    return seen[start].mean(axis=0) if len(seen) else np.full(3, np.nan)
