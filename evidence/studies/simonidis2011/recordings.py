"""Recordings with force plates: one marker set on models of other structure, plates trusted more and less, drift."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.human import AnalysisSettings, Person, TrackingSettings, analyse, calibrate, fit, read_ik_setup
from humanoid_control.human import read_osim as read_model
from humanoid_control.human.analysis import Analysis, with_free_root
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.mocap import MarkerClip, load_clip

VARIANCES = (1e7, 1e6, 1e5, 3e4, 1e4, 4e3, 1e3, 100.0, 1.0)  # [N^2, N^2 m^2] of the plates
FEWER = 24  # degrees of freedom of the humanoid in figure 8


class StudyRecording(NamedTuple):
    """Files of a recording below the folder of human motion, and the cut-off [Hz]."""

    clip: str
    model: str
    forces: str
    setup: str
    cutoff: float


RECORDINGS = {
    "gait2354": StudyRecording(
        "gait2354_walk/subject01_walk1.trc",
        "gait2354_walk/reference/subject01_simbody.osim",
        "gait2354_walk/subject01_walk1_grf.xml",
        "gait2354_walk/subject01_Setup_IK.xml",
        6.0,
    ),
    "walk": StudyRecording(
        "rajagopal_walk/motion_capture_walk.trc",
        "rajagopal_walk/computed_opensim46/subject_scaled_walk.osim",
        "rajagopal_walk/grf_walk.xml",
        "rajagopal_walk/ik_setup_walk.xml",
        6.0,
    ),
    "run": StudyRecording(
        "rajagopal_run/motion_capture_run.trc",
        "rajagopal_run/computed_opensim46/subject_scaled_run.osim",
        "rajagopal_run/grf_run.xml",
        "rajagopal_run/ik_setup_run.xml",
        15.0,
    ),
}
SIMPLER = ("mtp", "subtalar", "wrist", "pro_sup", "hip_rotation", "arm_rot", "lumbar_rotation", "lumbar_bending")
"""Words of coordinates that a simpler model lacks, in the order in which they go."""


def is_there(data: Path, name: str) -> bool:
    """Whether all files of a recording are there."""
    return all((data / f).is_file() for f in RECORDINGS[name][:4])


def _read(data: Path, name: str) -> tuple[Person, MarkerClip]:
    r = RECORDINGS[name]
    return read_model(data / r.model), load_clip(str(data / r.clip))


def fewer_joints(person: Person, most: int) -> Person:
    """The person with at most so many free coordinates: the others are locked where they rest."""
    locked = {c.name for c in person.coordinates if c.locked}
    for word in SIMPLER:
        for c in person.coordinates:
            if person.n - len(locked) > most and word in c.name:
                locked.add(c.name)
    stiff = tuple(replace(c, locked=True) if c.name in locked else c for c in person.all_coordinates)
    return replace(person, all_coordinates=stiff)


def map_markers(data: str, name: str, simple: bool) -> dict[str, Any]:
    """One marker set on a model: all of it, or with as many joints as the humanoid of figure 8."""
    person, clip = _read(Path(data), name)
    person = with_free_root(fewer_joints(person, FEWER) if simple else person)
    own = calibrate(person, clip.positions, clip.labels).person
    found = fit(own, clip.positions, clip.labels)
    return {
        "clip": name,
        "free": sum(not c.locked for c in person.coordinates),
        "converged": float((found.reason == 0).mean()),
        "rms_mm": 1e3 * float(np.sqrt(np.nanmean(found.rms**2))),
    }


def trust_plates(data: str, name: str) -> dict[str, Any]:
    """Root residuals of a recording by the plates' variance, without and with integration, and how far it drifts."""
    folder, r = Path(data), RECORDINGS[name]
    person, clip = _read(folder, name)
    tasks, wrenches = read_ik_setup(folder / r.setup, person), read_loads(folder / r.forces)
    rows = []
    for w in VARIANCES:
        tracking = TrackingSettings(plate_variance=w)
        a = analyse(person, clip, wrenches, tasks, AnalysisSettings(r.cutoff, w, tracking=tracking))
        rows.append({"variance": w, **_numbers(a)})
    return {"clip": name, "rows": rows}


def _numbers(a: Analysis) -> dict[str, float]:
    """Root mean squares of forces [N], moments [N m] and errors of one analysis."""
    assert a.tracking is not None
    m, angles = a.tracking.motion, a.person.rotational
    e = a.explained & np.isfinite(m.tau).all(axis=1)
    turns = angles[a.root]

    def size(x: np.ndarray) -> float:
        return float(np.sqrt((x**2).sum(axis=1).mean()))

    off = np.sqrt((m.error[e] ** 2).mean(axis=0))
    return {
        "measured_n": size(a.residual_before[e][:, ~turns]),
        "measured_nm": size(a.residual_before[e][:, turns]),
        "corrected_n": size(a.residual[e][:, ~turns]),
        "corrected_nm": size(a.residual[e][:, turns]),
        "tracked_n": size(m.residual[e][:, ~turns]),
        "tracked_nm": size(m.residual[e][:, turns]),
        "error_mm": 1e3 * float(np.sqrt((off[~angles] ** 2).mean())),
        "error_deg": float(np.degrees(np.sqrt((off[angles] ** 2).mean()))),
        "weight_n": a.weight,
    }
