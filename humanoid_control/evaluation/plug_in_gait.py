"""Comparison of our person model with Plug-in Gait: angles, moments and centre of mass from a C3D file.

Plug-in Gait reports knee and ankle angles as flexion and dorsiflexion, as we do. Its moments are per kilogram [N
mm/kg], positive for knee extension and plantar flexion; ours are generalised forces of flexion and dorsiflexion, with
opposite sign. Angles are compared up to a constant, moments in the stance of feet measured by a plate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.files import why
from humanoid_control.human import Analysis, AnalysisSettings, inverse_dynamics
from humanoid_control.human.forces.force_plates import force_plates
from humanoid_control.human.models import SubjectSettings, analyse_subject, find_subject
from humanoid_control.human.models.subject import centre_of_mass
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.c3d import C3dContent, decode_c3d

LOADED = 20.0  # [N] force of a standing foot
SIDES = {"right": "R", "left": "L"}
ANGLES = {"knee flexion": ("KneeAngles", "knee_angle"), "ankle dorsiflexion": ("AnkleAngles", "ankle_angle"),
          "hip flexion": ("HipAngles", "hip_flexion")}  # fmt: skip
MOMENTS = {"knee moment": ("KneeMoment", "knee_angle"), "ankle moment": ("AnkleMoment", "ankle_angle")}
ASKED = {"knee flexion": 5.0, "centre of mass": 25.0, "knee moment": 12.0, "ankle moment": 12.0}
COLUMNS = ["quantity", "side", "unit", "rms", "constant", "frames", "asked"]


@dataclass(frozen=True, eq=False)
class GaitComparison:
    """Walk analysed by us and by Plug-in Gait.

    Attributes:
        rows: quantity, side, unit, RMS difference, removed constant, frames, and required bound ("": none).
        curves: (quantity, side) -> theirs and ours (T,), NaN where not compared.
    """

    analysis: Analysis
    rows: list[dict[str, Any]]
    curves: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]


def compare_with_plug_in_gait(
    path: str | Path, settings: AnalysisSettings | None = None, sex: str = ""
) -> GaitComparison:
    """Analyse a C3D file with Plug-in Gait outputs, and compare.

    Args:
        sex: segment masses of "men" or "women"; "": as in the person's file.

    Raises:
        ClipError: if the file is unreadable, or lacks outputs or parameters of Plug-in Gait.
    """
    path, settings = Path(path).expanduser(), settings or AnalysisSettings()
    if path.suffix.lower() != ".c3d":
        raise ClipError(f"{path}: outputs of Plug-in Gait are in C3D files")
    try:
        content = decode_c3d(path.read_bytes(), str(path))
    except OSError as error:
        raise ClipError(f"{path}: cannot be read: {why(error)}") from None
    mass, stature = (content.numbers(f"PROCESSING:{name}") for name in ("BODYMASS", "HEIGHT"))
    if not mass.size or not stature.size:
        raise ClipError(
            f"{path}: contains no PROCESSING:Bodymass and Height: run Plug-in Gait, and save the file again"
        )
    clip, wrenches = load_clip(path), force_plates(content, str(path))
    known = SubjectSettings(markers="plug_in_gait", mass=float(mass[0]), stature=1e-3 * float(stature[0]), sex=sex)
    subject = find_subject(clip, wrenches, None, known)
    a = analyse_subject(subject, clip, wrenches, None, settings)
    if a.loads is None:
        raise ClipError(f"{path}: no plate forces, or too few frames: no moments to compare")
    curves = {}
    tau, stands = _moments(a, settings.cutoff)
    for side, letter in SIDES.items():
        s = f"_{side[0]}"
        for quantity, (theirs, ours) in ANGLES.items():
            mine = np.rad2deg(a.motion.values[:, a.person.index(ours + s)])
            curves[quantity, side] = _output(content, letter + theirs, path)[:, 0], mine
        for quantity, (theirs, ours) in MOMENTS.items():
            vicon = 1e-3 * float(mass[0]) * _output(content, letter + theirs, path)[:, 0]
            mine = np.where(stands[side], -tau[:, a.person.index(ours + s)], np.nan)
            curves[quantity, side] = vicon, mine
    rows = [_row(quantity, side, *pair) for (quantity, side), pair in curves.items()]
    return GaitComparison(a, rows + _com_rows(a, content, path, stands), curves)


def _moments(a: Analysis, cutoff: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return moments (T, n), and whether a plate measured the foot (T,), by side.

    Leg moments depend on the own foot's force only.
    """
    assert a.loads is not None
    loads, stands = {}, {}
    for side, wrench in a.loads.wrenches.items():
        at = wrench.low_passed(cutoff).resampled(a.times)
        loads[a.carriers[side]] = np.nan_to_num(np.hstack([at.force, at.moment]))
        stands[side] = wrench.resampled(a.times).normal_force > LOADED
    found = inverse_dynamics(a.person, a.motion.values, a.motion.velocity, a.motion.acceleration, loads)
    return found.tau, stands


def _output(content: C3dContent, name: str, path: Path) -> np.ndarray:
    labels = [label.rpartition(":")[2].strip() for label in content.all_texts("POINT:LABELS")]
    if name not in labels:
        raise ClipError(f"{path}: contains no '{name}': run the dynamic model of Plug-in Gait, and save the file again")
    k = labels.index(name)
    return np.where(content.missing[:, k, None], np.nan, content.points[:, k].astype(float))


def _com_rows(a: Analysis, content: C3dContent, path: Path, stands: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return rows of the centre-of-mass distance [mm], with and without its mean, and of the plate-based error."""
    theirs = 1e-3 * _output(content, "CentreOfMass", path) @ _turn(a, path)
    ours = centre_of_mass(a.person, a.motion.values)
    d = 1e3 * (ours - theirs)
    mean = np.nanmean(d, axis=0)
    size = [np.linalg.norm(x, axis=1) for x in (d, d - mean)]
    rows = [
        _filled("centre of mass", "", "mm", size[0], 0.0),
        _filled("centre of mass, without constant offset", "", "mm", size[1], float(np.linalg.norm(mean))),
    ]
    alone = stands["right"] & ~stands["left"]
    lever = _lever(a, alone)
    forward = float(_ahead(a) @ np.nanmean((theirs - ours)[alone], axis=0))
    for whose, value in (("ours", lever), ("Plug-in Gait's", lever + 1e3 * forward)):
        rows.append(_filled("centre of mass, by the plate", whose, "mm", np.array([value]), 0.0))
    return rows


def _turn(a: Analysis, path: Path) -> np.ndarray:
    """Return the matrix (3, 3) from clip to person axes for row vectors, since the clip was turned upright."""
    before, after = load_clip(path).positions.reshape(-1, 3), a.clip.positions.reshape(-1, 3)
    seen = np.isfinite(before).all(axis=1)
    return np.asarray(np.linalg.lstsq(before[seen], after[seen], rcond=None)[0])


def _ahead(a: Analysis) -> np.ndarray:
    _, p = a.person.body_poses(a.motion.values[[0, -1]])
    way = p[1, 0] - p[0, 0]
    way = way - (way @ a.up) * a.up
    return np.asarray(way / np.linalg.norm(way))


def _lever(a: Analysis, rows: np.ndarray) -> float:
    """Return the mean distance [mm] of our centre of mass ahead of the one implied by plates and inertia.

    It is the residual lateral root moment over the weight.
    """
    assert a.loads is not None
    loads = {}
    for side, wrench in a.loads.wrenches.items():
        at = wrench.low_passed(a.settings.cutoff).resampled(a.times)
        loads[a.carriers[side]] = np.nan_to_num(np.hstack([at.force, at.moment]))
    m = a.motion
    found = inverse_dynamics(a.person, m.values, m.velocity, m.acceleration, loads)
    tilt = found.residual[:, a.root.index(a.person.index("pelvis_tilt"))]
    return 1e3 * float(tilt[rows].mean()) / a.weight


def _row(quantity: str, side: str, theirs: np.ndarray, ours: np.ndarray) -> dict[str, Any]:
    difference = ours - theirs
    moment = quantity in MOMENTS
    constant = 0.0 if moment else float(np.nanmean(difference))
    return _filled(quantity, side, "N m" if moment else "deg", difference - constant, constant)


def _filled(quantity: str, side: str, unit: str, difference: np.ndarray, constant: float) -> dict[str, Any]:
    known = np.isfinite(difference)
    rms = float(np.sqrt((difference[known] ** 2).mean())) if known.any() else float("nan")
    values = (quantity, side, unit, round(rms, 2), round(constant, 2), int(known.sum()), ASKED.get(quantity, ""))
    return dict(zip(COLUMNS, values, strict=True))
