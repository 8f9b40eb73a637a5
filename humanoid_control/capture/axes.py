"""Axes: the clip turned so that z is up, the floor is z = 0 and the person starts at the origin facing +x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.marker_sets import BodyLocator
from humanoid_control.errors import ClipError

_HEADING_TIME = 0.5  # [s] from the start, over which the hip line is averaged
_LEAST_HIP_WIDTH = 0.08  # [m] nobody's hip centres are closer
_FLOOR_PERCENTILE = 1.0  # of the heights of the feet: the lowest sample alone may be a glitch
_FEET = ("l_toe", "r_toe", "l_heel", "r_heel")
_ANKLES = ("l_ankle", "r_ankle")


@dataclass(frozen=True, eq=False)
class Placement:
    """The rigid motion from the axes of a file (F) to the world (W): p_W = R_WF p_F + p_WF.

    Args:
        R_WF: (3, 3) rotation, never a reflection.
        p_WF: (3,) origin of the file's axes in the world [m].
    """

    R_WF: np.ndarray
    p_WF: np.ndarray

    def apply(self, positions_F: np.ndarray) -> np.ndarray:
        """Positions (..., 3) [m] from the file's axes to the world's."""
        return positions_F @ self.R_WF.T + self.p_WF


def upright(clip: MarkerClip, marker_set: str | Path | None = None) -> MarkerClip:
    """The clip with all its markers in world axes; see `find_placement`.

    Args:
        clip: markers in any right-handed axes of which one is vertical.
        marker_set: as for `body_points`.

    Raises:
        ClipError: no marker set fits, or hips and shoulders do not tell the direction.
    """
    placement = find_placement(BodyLocator(clip, marker_set).locate(), clip.rate, f"clip '{clip.name}'")
    return replace(clip, positions=placement.apply(clip.positions))


def find_placement(
    points_F: Mapping[str, np.ndarray], rate: float, where: str, up_F: np.ndarray | None = None
) -> Placement:
    """How a recording has to be turned and moved to stand in the world.

    Up is the file axis along which the body is longest from the feet (or, without feet, the hips) to the shoulders,
    in the median of all frames. Forward is across the hip line, averaged over the first 0.5 s. The lowest foot is on
    the floor (without feet the height stays as it is) and the middle of the hips starts above the origin.

    Args:
        points_F: body points (T, 3) [m] in file axes, NaN where missing; hips and shoulders at least.
        rate: frames a second [Hz].
        where: start of an error message: the clip.
        up_F: (3,) unit vector upward, where it is known.

    Raises:
        ClipError: hips and shoulders, or left and right hip, lie on top of each other.
    """
    up_F = _up(points_F, where) if up_F is None else up_F
    start = slice(0, max(1, round(_HEADING_TIME * rate)))
    left_F = _mean(points_F["l_hip"] - points_F["r_hip"], start)
    left_F = left_F - (left_F @ up_F) * up_F
    width = float(np.linalg.norm(left_F))
    if not width >= _LEAST_HIP_WIDTH:
        raise ClipError(
            f"{where}: left and right hip are {width:.3f} m apart at the start: "
            "the recording is flat, or left and right are mixed up; it needs three dimensions"
        )
    y_F = left_F / width
    R_WF = np.stack([np.cross(y_F, up_F), y_F, up_F])
    hips_W = _mean((points_F["l_hip"] + points_F["r_hip"]) / 2, start) @ R_WF.T
    feet = [points_F[point] for point in _FEET if point in points_F] or [
        points_F[point] for point in _ANKLES if point in points_F
    ]
    heights = np.concatenate([foot @ up_F for foot in feet]) if feet else np.zeros(1)
    return Placement(R_WF, -np.array([hips_W[0], hips_W[1], np.nanpercentile(heights, _FLOOR_PERCENTILE)]))


def _up(points_F: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """Unit vector along the file axis, either way, that points most from the feet to the shoulders."""
    shoulders = (points_F["l_shoulder"] + points_F["r_shoulder"]) / 2
    lower = ("l_ankle", "r_ankle") if all(point in points_F for point in _ANKLES) else ("l_hip", "r_hip")
    body = np.nanmedian(shoulders - (points_F[lower[0]] + points_F[lower[1]]) / 2, axis=0)
    axis = int(np.argmax(np.abs(body)))
    if not abs(body[axis]) > _LEAST_HIP_WIDTH:
        raise ClipError(f"{where}: the shoulders are not above the {lower[0][2:]}s: check the labels")
    return np.sign(body[axis]) * np.eye(3)[axis]


def _mean(path: np.ndarray, start: slice) -> np.ndarray:
    """Mean of a path (T, 3) over its first seen frames."""
    seen = path[~np.isnan(path[:, 0])]
    return seen[start].mean(axis=0) if len(seen) else np.full(3, np.nan)
