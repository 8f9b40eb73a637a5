"""Accuracy of the estimated sternum: the table of Dube 2012, section 5.3.3, for clips that show the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evidence.studies.report import Progress, StudyReport, silent
from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.mocap import BodyPoints, find_body_points, load_clip
from humanoid_control.mocap.sternum import FITTED_TO, METHODS, SternumSettings, estimate_sternum, fit_sternum
from humanoid_control.terminal import ReportTable

COLUMNS = ("spine", "r_clavicle", "l_clavicle", "side", "front", "up", "distance")
"""Length errors (estimate less truth, signed), distances along the axes of the pelvis (absolute), and in space."""

GOAL = (0.017, 0.008)  # [m] mean and standard deviation of the distance, as published

_POINTS = ("l_hip", "r_hip", "l_shoulder", "r_shoulder", "sternum")


@dataclass(frozen=True)
class SternumErrors:
    """One row of the table.

    Attributes:
        method: of METHODS, or "published" for the numbers of Dube 2012.
        fitted_on: what the constants come from.
        sample: "in" when they were fitted to the frames they are judged on, "part" when to these and others, "out" when
            to others only, "" when that is not known.
        frames: number of frames judged; 0 where that is not published.
        mean, std: by column of `COLUMNS` [m].
        worst: largest distance [m]; NaN where not known.
    """

    method: str
    fitted_on: str
    sample: str
    frames: int
    mean: dict[str, float]
    std: dict[str, float]
    worst: float


PUBLISHED = SternumErrors(
    "published",
    "not stated",
    "",
    0,
    dict(zip(COLUMNS, (-0.001, -0.004, 0.005, 0.009, 0.009, 0.007, 0.017), strict=True)),
    dict(zip(COLUMNS, (0.009, 0.013, 0.011, 0.007, 0.007, 0.006, 0.008), strict=True)),
    float("nan"),
)
"""Dube 2012, section 5.3.3, on a recording of the Ohio State University (ACCAD, "Performance 1")."""


def sternum_report(body: BodyPoints, other: BodyPoints | None = None) -> tuple[SternumErrors, ...]:
    """Compare the estimated sternum with the marker, for both methods and several origins of their constants.

    The constants are fitted to the clip itself, which flatters them; to the other half of the clip, each half judged
    with what the other one gave; to another person's clip; and taken as they come with the package. Marker and body
    are never quite symmetrical, but how they differ is each person's own: from another person only `forward` and `up`
    are taken.

    Args:
        body: points of a clip with a sternum marker; its recording is not that of Dube 2012.
        other: points of another clip with a sternum marker.

    Returns:
        The published row, then those of the clip.

    Raises:
        ClipError: a clip has no sternum marker, or too few frames.
    """
    for shown in (body, *([other] if other else [])):
        if shown.estimated:
            raise ClipError(f"clip '{shown.name}': has no marker on the sternum to compare with")
    if body.n_frames < 4:
        raise ClipError(f"clip '{body.name}': {body.n_frames} frames are too few to split into halves")
    inside = dict(zip(body.names, np.moveaxis(body.in_pelvis(), 1, 0), strict=True))
    points = np.stack([inside[name] for name in _POINTS])
    half = body.n_frames // 2
    halves = (slice(None, half), slice(half, None))
    rows = [PUBLISHED]
    for method in METHODS:
        start = SternumSettings(method)
        whole = _estimate(points, _fit(points, start))
        crossed = [_estimate(points[:, test], _fit(points[:, learn], start)) for learn, test in (halves, halves[::-1])]
        rows.append(_row(method, "this clip", "in", points, whole))
        rows.append(_row(method, "its other half", "out", points, np.concatenate(crossed[::-1])))
        if other is not None:
            learnt = _fit(np.stack([other.point(name) for name in _POINTS]), start)
            rows.append(_row(method, other.name, "out", points, _estimate(points, replace(learnt, left=0.0))))
        package = "part" if body.name in FITTED_TO else "out"
        rows.append(_row(method, "the package", package, points, _estimate(points, start)))
    return tuple(rows)


def leave_one_out(bodies: Sequence[BodyPoints]) -> tuple[SternumErrors, ...]:
    """Errors on each person with the constants of all others: what the method is worth for somebody it never saw.

    The constants are the means over the other persons; `left` is zero, as in `sternum_report`. Clips must wear the
    marker in one place: on the middle of the sternum, on its upper end (CLAV) and on its lower one (STRN) are 5 to 20
    cm apart, and mixed they tell nothing about persons.

    Args:
        bodies: one clip each of two persons or more, all with a marker on the sternum.

    Returns:
        A row for each method and person, in this order.

    Raises:
        ClipError: one clip alone, or one without the marker.
    """
    if len(bodies) < 2:
        raise ClipError("leaving one person out needs clips of at least two persons")
    for body in bodies:
        if body.estimated:
            raise ClipError(f"clip '{body.name}': has no marker on the sternum to compare with")
    everyone = [np.stack([body.point(name) for name in _POINTS]) for body in bodies]
    rows = []
    for method in METHODS:
        start = SternumSettings(method)
        fits = [_fit(points, start) for points in everyone]
        for k, body in enumerate(bodies):
            others = [fit for j, fit in enumerate(fits) if j != k]
            names = ("forward", "up", "k_c", "k_s")
            mean: dict[str, Any] = {name: float(np.mean([getattr(fit, name) for fit in others])) for name in names}
            inside = dict(zip(body.names, np.moveaxis(body.in_pelvis(), 1, 0), strict=True))
            points = np.stack([inside[name] for name in _POINTS])
            estimate = _estimate(points, replace(start, left=0.0, **mean))
            rows.append(_row(method, f"all but {body.name}", "out", points, estimate))
    return tuple(rows)


def _estimate(points: np.ndarray, settings: SternumSettings) -> np.ndarray:
    """(T, 3) estimate from the points (5, T, 3) in the order of `_POINTS`."""
    l_hip, r_hip, l_gh, r_gh, _ = points
    return estimate_sternum(l_hip, r_hip, l_gh, r_gh, settings)


def _fit(points: np.ndarray, settings: SternumSettings) -> SternumSettings:
    """Constants from the points (5, T, 3) in the order of `_POINTS`."""
    l_hip, r_hip, l_gh, r_gh, sternum = points
    return fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum, settings)


def _row(method: str, fitted_on: str, sample: str, points: np.ndarray, estimate: np.ndarray) -> SternumErrors:
    """Errors of an estimate (T, 3) of the last of the points (5, T, 3), pelvis frame."""
    hips, l_gh, r_gh, truth = (points[0] + points[1]) / 2, points[2], points[3], points[4]

    def length_error(end: np.ndarray) -> np.ndarray:
        return np.linalg.norm(estimate - end, axis=1) - np.linalg.norm(truth - end, axis=1)

    error = estimate - truth
    distance = np.linalg.norm(error, axis=1)
    columns = (
        length_error(hips),
        length_error(r_gh),
        length_error(l_gh),
        np.abs(error[:, 1]),
        np.abs(error[:, 0]),
        np.abs(error[:, 2]),
        distance,
    )
    return SternumErrors(
        method,
        fitted_on,
        sample,
        len(distance),
        {name: float(values.mean()) for name, values in zip(COLUMNS, columns, strict=True)},
        {name: float(values.std()) for name, values in zip(COLUMNS, columns, strict=True)},
        float(distance.max()),
    )


# -------- the study

_HEADS = [name.replace("_", " ") for name in COLUMNS]


def run_study(
    clips: Sequence[str] = (), marker_set: str | None = None, show: Progress = silent, **reading: Any
) -> StudyReport:
    """The table for each clip; of several clips, one a person, also with the constants of all other persons.

    Args:
        clips: motion files with a marker on the sternum.
        marker_set: of the clips.
        show: told how far it is.
        reading: unit, scale and rate of the clips, as for `load_clip`.

    Raises:
        ConfigError: no clip.
        ClipError: a clip that cannot be read, or has no marker on the sternum.
    """
    if not clips:
        raise ConfigError("give clips with a marker on the sternum: --clip dance1.trc, repeated for more persons")
    bodies = []
    for k, clip in enumerate(clips):
        show(k / len(clips), clip)
        bodies.append(find_body_points(load_clip(clip, **reading), marker_set or None))
    judged = [(body.name, sternum_report(body)) for body in bodies]
    if len(bodies) > 1:
        judged.append(("leave one person out", leave_one_out(bodies)))
    show(1.0, "")
    parts: list[ReportTable | str] = []
    for title, rows in judged:
        cells = [[row.method, row.fitted_on, row.sample or "?", *_cells(row)] for row in rows]
        heads = ["method", "constants from", "sample", *_HEADS, "max"]
        parts.append(ReportTable(f"error of the estimated sternum [cm], {title}", heads, cells))
        parts += [_verdict(row) for row in rows if row is not PUBLISHED]
    data = {
        "study": "sternum",
        "unit": "cm",
        "clips": [{"clip": title, "rows": [_in_cm(row) for row in rows]} for title, rows in judged],
    }
    return StudyReport(data, parts, _NOTES)


_NOTES = (
    "Mean and standard deviation. spine, clavicles: estimated less true length; side, front, up: distance along the "
    "axes of the pelvis; distance: in space.",
    "published: Dube 2012, section 5.3.3, on a recording that is not available; these clips replace it.",
    'sample: "in" for constants fitted to the evaluated frames, "out" for constants fitted to others, "part" for '
    'both ("the package" was fitted to dance1 and walk1).',
)


def _cells(row: SternumErrors) -> list[str]:
    """Mean and deviation of every column, and the largest distance."""
    cells = [f"{100 * row.mean[k]:.2f}±{100 * row.std[k]:.2f}" for k in COLUMNS]
    return [*cells, "-" if np.isnan(row.worst) else f"{100 * row.worst:.2f}"]


def _verdict(row: SternumErrors) -> str:
    met = row.mean["distance"] <= GOAL[0] and row.std["distance"] <= GOAL[1]
    return (
        f"{row.method}, {row.fitted_on}: {100 * row.mean['distance']:.2f} ± {100 * row.std['distance']:.2f} cm, "
        f"{'at or below' if met else 'above'} the published {100 * GOAL[0]:.1f} ± {100 * GOAL[1]:.1f} cm"
    )


def _in_cm(row: SternumErrors) -> dict[str, Any]:
    """A row as plain names and centimetres."""
    return {
        "method": row.method,
        "fitted_on": row.fitted_on,
        "sample": row.sample,
        "frames": row.frames,
        **{k: round(100 * row.mean[k], 3) for k in COLUMNS},
        **{f"{k}_std": round(100 * row.std[k], 3) for k in COLUMNS},
        "worst": round(100 * row.worst, 3),
    }
