"""Body points: a clip of any origin reduced to the named points a robot can imitate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from humanoid_control.capture.axes import find_placement
from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.gaps import fill_gaps, longest_gap
from humanoid_control.capture.marker_set_file import ESTIMATED, OPTIONAL, REQUIRED
from humanoid_control.capture.marker_sets import BodyLocator
from humanoid_control.capture.missing_sternum import complete_sternum
from humanoid_control.errors import ClipError, UnknownNameError

MAX_GAP = 0.5  # [s] longest gap that is filled by default
_LEAST_LENGTH = 0.03  # [m] no limb is shorter


@dataclass(frozen=True, eq=False)
class BodyPoints:
    """A person's motion as points of the body, without gaps, in world axes: z up, floor at 0, facing +x at the start.

    Args:
        name: of the clip.
        rate: frames a second [Hz].
        names: P body points: l_hip r_hip sternum l_shoulder r_shoulder l_elbow r_elbow l_wrist r_wrist always; head
            and knee, ankle, toe, heel of both sides where the clip shows them.
        positions: (T, P, 3) [m], world; read-only.
        missing: (P,) share of the frames in which a point was interpolated.
        warnings: the clip's, and what was left out or estimated.
        estimated: points that no marker shows, or not all the time, found from the others: the sternum or none.
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

    @property
    def n_frames(self) -> int:
        """Number of frames T."""
        return len(self.positions)

    @property
    def duration(self) -> float:
        """Time from the first to the last frame [s]."""
        return (self.n_frames - 1) / self.rate

    @property
    def times(self) -> np.ndarray:
        """(T,) time of every frame after the first one [s]."""
        return np.arange(self.n_frames) / self.rate

    def point(self, name: str) -> np.ndarray:
        """(T, 3) path of one body point [m], world. Raises UnknownNameError when the clip does not show it."""
        if name not in self.names:
            raise UnknownNameError("body point", name, self.names)
        return self.positions[:, self.names.index(name)]

    @property
    def mid_hip(self) -> np.ndarray:
        """(T, 3) middle of the hip centres [m], world."""
        return (self.point("l_hip") + self.point("r_hip")) / 2

    @property
    def heading(self) -> np.ndarray:
        """(T,) direction the pelvis faces: yaw about z from +x [rad], world, without jumps of a full turn.

        Forward is the hip line crossed with the vertical. Dube 2012 (section 5.3) takes the y axis of the laboratory
        for the front, which fails when the dancer turns.
        """
        left = self.point("l_hip") - self.point("r_hip")
        return np.unwrap(np.arctan2(-left[:, 0], left[:, 1]))

    def in_pelvis(self) -> np.ndarray:
        """(T, P, 3) positions [m] in the pelvis frame: origin mid-hip, x where the pelvis faces, y left, z up.

        Only the turn about the vertical is taken out: a pelvis that tilts keeps its tilt.
        """
        yaw = self.heading
        cos, sin = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
        x, y, z = np.moveaxis(self.positions - self.mid_hip[:, None], -1, 0)
        return np.stack([cos * x + sin * y, -sin * x + cos * y, z], axis=-1)


def body_points(clip: MarkerClip, marker_set: str | Path | None = None, max_gap: float = MAX_GAP) -> BodyPoints:
    """Find the points of the body in a clip: choose the marker set, fill short gaps, turn it upright.

    The clip is taken as it is; `clean` it before, or use `load_body_points`, to check labels and take out noise.
    A sternum without a marker, or hidden for longer than `max_gap`, is estimated from hips and shoulders, with a
    warning.

    Args:
        clip: markers of one person in the axes of the file.
        marker_set: name of a built-in set, path of a YAML file, or None to choose the built-in set that fits best.
        max_gap: longest gap that is filled [s].

    Raises:
        ClipError: no set fits, a required point is hidden for longer than `max_gap`, a limb has no length, or the hips
            do not tell where the person faces. An optional point hidden for longer is left out with a warning.
        UnknownNameError: no marker set of that name.
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
            raise ClipError(f"{where}: {problem}: crop the clip, fill the gap where it was recorded, or raise max_gap")
        warnings.append(f"{problem}: left out")
    _check_lengths(filled, where)
    names = [point for point in REQUIRED + OPTIONAL if point in {*names, "sternum"}]
    estimated: tuple[str, ...] = ()
    if "sternum" not in filled or np.isnan(filled["sternum"]).any():
        filled["sternum"], note = complete_sternum(filled, clip.rate)
        warnings.append(note)
        estimated = ("sternum",)
    placement = find_placement({point: filled[point] for point in names}, clip.rate, where)
    points_W = {point: placement.apply(filled[point]) for point in names}
    return BodyPoints(
        name=clip.name,
        rate=clip.rate,
        names=tuple(names),
        positions=np.stack(list(points_W.values()), axis=1),
        missing=np.array([np.isnan(seen[point][:, 0]).mean() if point in seen else 1.0 for point in names]),
        warnings=(*warnings, *_backward_feet(points_W)),
        estimated=estimated,
    )


def _check_lengths(points: dict[str, np.ndarray], where: str) -> None:
    """Raise ClipError when a limb has no length: two labels on one marker."""
    limbs = [("l_shoulder", "r_shoulder"), ("l_hip", "l_shoulder"), ("r_hip", "r_shoulder")]
    limbs += [(f"{side}_{a}", f"{side}_{b}") for side in "lr" for a, b in (("shoulder", "elbow"), ("elbow", "wrist"))]
    for a, b in limbs:
        length = float(np.median(np.linalg.norm(points[a] - points[b], axis=1)))
        if not length >= _LEAST_LENGTH:
            raise ClipError(
                f"{where}: {a} and {b} are {length:.3f} m apart: check their labels, they lie on one marker"
            )


def _backward_feet(points_W: dict[str, np.ndarray]) -> tuple[str, ...]:
    """A warning when the toes point away from where the pelvis faces: left and right are swapped, or mirrored axes."""
    if not {"l_toe", "r_toe", "l_ankle", "r_ankle"} <= set(points_W):
        return ()
    left = points_W["l_hip"] - points_W["r_hip"]
    foot = points_W["l_toe"] + points_W["r_toe"] - points_W["l_ankle"] - points_W["r_ankle"]
    if np.median(left[:, 1] * foot[:, 0] - left[:, 0] * foot[:, 1]) >= 0:
        return ()
    return ("the toes point backward: left and right labels are swapped, or the file's axes are mirrored",)
