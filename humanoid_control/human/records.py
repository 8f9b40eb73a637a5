"""Output files of an analysis."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.human.analysis import GOOD_RESIDUAL, Analysis
from humanoid_control.human.forward_tracking import trunk_of
from humanoid_control.human.model import Person
from humanoid_control.human.models.osim_export import osim_text
from humanoid_control.human.models.robot_motion import RobotMotion
from humanoid_control.human.models.urdf_export import urdf_of

FILES = (
    "angles.mot",
    "torques.sto",
    "forces.mot",
    "model.osim",
    "model.urdf",
    "motion.npz",
    "motion.csv",
    "report.json",
    "report.html",
)
TRACKED = ("tracked_angles.mot", "tracked_torques.sto")  # written in addition if the motion was tracked forward
AXES = "xyz"


def write_storage(
    path: Path, name: str, labels: Sequence[str], times: np.ndarray, values: np.ndarray, in_degrees: bool
) -> None:
    """Write an OpenSim table (.mot, .sto).

    Args:
        labels: of the C columns after the time.
        times: (n,) [s].
        values: (n, C).
        in_degrees: header flag.
    """
    head = [name, "version=1", f"nRows={len(times)}", f"nColumns={len(labels) + 1}"]
    lines = [*head, f"inDegrees={'yes' if in_degrees else 'no'}", "endheader", "\t".join(["time", *labels])]
    lines += ["\t".join([f"{t:.8f}", *(f"{v:.8f}" for v in row)]) for t, row in zip(times, values, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def angles_table(a: Analysis, q: np.ndarray | None = None) -> tuple[list[str], np.ndarray]:
    """Return names and values (T, C) [deg, m] of all coordinates, at q (T, n) [rad, m] or as measured."""
    everything = a.person.with_dependent(a.motion.values if q is None else q)
    scale = {c.name: 180 / np.pi if c.rotational else 1.0 for c in a.person.all_coordinates}
    return list(everything), np.stack([scale[n] * v for n, v in everything.items()], axis=1)


def moments_table(a: Analysis) -> tuple[list[str], np.ndarray]:
    """Return OpenSim's names and values (T, n) of the generalised forces [N m, N]."""
    names = [f"{c.name}_{'moment' if c.rotational else 'force'}" for c in a.person.coordinates]
    return names, a.tau


def forces_table(a: Analysis) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return times, names, values: force, centre of pressure, free moment by foot."""
    assert a.loads is not None
    names, columns = [], []
    for foot, wrench in a.loads.wrenches.items():
        s = foot[0]
        pressed = wrench.normal_force > 0
        point = np.where(pressed[:, None], wrench.center_of_pressure(), 0.0)
        free = np.where(pressed, wrench.free_moment(), 0.0)[:, None] * wrench.normal
        names += [f"ground_force_{s}_v{x}" for x in AXES] + [f"ground_force_{s}_p{x}" for x in AXES]
        names += [f"ground_torque_{s}_{x}" for x in AXES]
        columns += [wrench.force, np.nan_to_num(point), np.nan_to_num(free)]
        times = wrench.times
    return times, names, np.hstack(columns)


def write_records(a: Analysis, folder: Path) -> None:
    """Write the models and tables of `FILES` into an existing folder, without the report.

    Angles are degrees in `angles.mot` and `motion.csv`, radians in `motion.npz`. Times are on the recording's
    clock [s].
    """
    (folder / "model.osim").write_text(osim_text(a.person), encoding="utf-8")
    text, _ = _urdf(a.person)
    if text:
        (folder / "model.urdf").write_text(text, encoding="utf-8")
    names, angles = angles_table(a)
    write_storage(folder / "angles.mot", "Coordinates", names, a.times, angles, True)
    with (folder / "motion.csv").open("w", newline="") as out:
        rows = csv.writer(out)
        moments, tau = moments_table(a)
        units = ["deg" if c.rotational else "m" for c in a.person.all_coordinates]
        rows.writerow(["time_s", *(f"{n}_{u}" for n, u in zip(names, units, strict=True)), *moments])
        for t, q, f in zip(a.times, angles, tau, strict=True):
            rows.writerow([f"{t:.6f}", *(f"{v:.6g}" for v in q), *("" if np.isnan(v) else f"{v:.6g}" for v in f)])
    arrays: dict[str, Any] = {
        "coordinates": np.array(a.person.names),
        "times": a.times,
        "q": a.motion.values,
        "qd": a.motion.velocity,
        "qdd": a.motion.acceleration,
        "std": a.fit.std,
        "tau": a.tau,
        "residual": a.residual,
        "residual_before": a.residual_before,
        "markers": np.array(a.fit.labels),
        "marker_residuals": a.fit.residuals,
    }
    if a.loads is not None:
        names, tau = moments_table(a)
        e = a.explained  # OpenSim cannot read NaN
        write_storage(folder / "torques.sto", "Inverse Dynamics Generalized Forces", names, a.times[e], tau[e], False)
        times, labels, forces = forces_table(a)
        write_storage(folder / "forces.mot", "Forces on the feet", labels, times, forces, False)
        arrays |= {"force_times": times, "force_labels": np.array(labels), "forces": forces}
        arrays |= _write_tracked(a, folder)
    np.savez_compressed(folder / "motion.npz", **arrays)


def _urdf(person: Person) -> tuple[str, list[str]]:
    """Return URDF text and notes, or "" and the reason."""
    try:
        out = urdf_of(person)
    except RobotError as error:
        return "", [f"no model.urdf: {error}"]
    return out.text, list(out.notes)


def _write_tracked(a: Analysis, folder: Path) -> dict[str, Any]:
    """Write tables of the tracked motion, if any; return arrays."""
    if a.tracking is None:
        return {}
    m = a.tracking.motion
    e = np.isfinite(m.tau).all(axis=1)
    names, angles = angles_table(a, m.q[e])
    write_storage(folder / TRACKED[0], "Coordinates", names, a.times[e], angles, True)
    names, _ = moments_table(a)
    write_storage(folder / TRACKED[1], "Inverse Dynamics Generalized Forces", names, a.times[e], m.tau[e], False)
    return {"tracked_q": m.q, "tracked_qd": m.qd, "tracked_qdd": m.qdd, "tracked_tau": m.tau}


def tracking_summary(a: Analysis) -> dict[str, Any]:
    """Return residuals, deviations and constants of forward tracking."""
    assert a.tracking is not None
    m, c = a.tracking.motion, a.tracking.constants
    e = np.isfinite(m.tau).all(axis=1)
    before, after = (np.sqrt((r[e] ** 2).mean(axis=0)) for r in (a.residual_before, m.residual))
    names = [a.person.names[k] for k in a.root]
    off = np.sqrt((m.error[e] ** 2).mean(axis=0))
    angles = a.person.rotational
    shown = np.where(angles, 180 / np.pi, 1e3) * off
    return {
        "residual": {n: {"before": float(b), "after": float(x)} for n, b, x in zip(names, before, after, strict=True)},
        "root_off": {a.person.names[k]: float(shown[k]) for k in a.root},
        "error_m": float(np.sqrt((off[~angles] ** 2).mean())),
        "error_deg": float(np.rad2deg(np.sqrt((off[angles] ** 2).mean()))),
        "mass_factor": c.mass,
        "trunk": trunk_of(a.person),
        "trunk_moved_m": float(np.linalg.norm(c.moved)),
        "plate_zeros": {body: zero.tolist() for body, zero in c.zeros.items()},
    }


def summary(a: Analysis) -> dict[str, Any]:
    """Return numbers of fit, residual and contacts, and warnings."""
    out: dict[str, Any] = {
        "clip": a.clip.name,
        "model": a.person.name,
        "mass_kg": a.person.mass,
        "coordinates": a.person.n,
        "frames": a.clip.n_frames,
        "rate_hz": a.clip.rate,
        "start_s": a.clip.start,
        "cutoff_hz": a.settings.cutoff,
        "markers": len(a.fit.labels),
        "marker_rms_mm": 1e3 * float(np.sqrt(np.nanmean(a.fit.rms**2))),
        "marker_worst_mm": 1e3 * float(np.nanmax(a.fit.worst)),
        "by_marker_mm": dict(marker_ranking(a)),
        "frames_with_moments": int(a.explained.sum()),
        "warnings": list(a.warnings),
        "guesses": list(a.guesses),
        "urdf": _urdf(a.person)[1],
    }
    if a.tracking is not None:
        out["tracking"] = tracking_summary(a)
    if a.loads is not None and a.explained.any():
        out["residual"] = residual_table(a)
        out["contacts"] = [
            {"plate": c.plate, "start_s": c.start, "end_s": c.end, "feet": list(c.feet), "peak_n": c.peak}
            for c in a.loads.contacts
        ]
    return out


def marker_ranking(a: Analysis) -> list[tuple[str, float]]:
    """Return the RMS residual [mm] of each visible marker, largest first."""
    seen = np.isfinite(a.fit.residuals)
    squares = np.where(seen, a.fit.residuals, 0.0) ** 2
    rms = 1e3 * np.sqrt(squares.sum(axis=0) / np.maximum(seen.sum(axis=0), 1))
    ranked = [(a.fit.labels[k], float(rms[k])) for k in np.argsort(-rms) if seen[:, k].any()]
    return ranked


def residual_table(a: Analysis) -> dict[str, dict[str, float]]:
    """Return RMS root residuals before and after correction, and relative to weight."""
    e = a.explained
    names = [a.person.names[k] for k in a.root]
    lengths = [not a.person.rotational[k] for k in a.root]
    before, after = (np.sqrt((r[e] ** 2).mean(axis=0)) for r in (a.residual_before, a.residual))
    out = {n: {"before": float(b), "after": float(c)} for n, b, c in zip(names, before, after, strict=True)}
    size = [float(np.linalg.norm(r[lengths]) / a.weight) for r in (before, after)]
    good = {"before": size[0], "after": size[1], "good_below": GOOD_RESIDUAL}
    return out | {"force_of_weight": good}


def write_robot(motion: RobotMotion, times: np.ndarray, folder: Path) -> None:
    """Write `robot_<name>.csv`: robot joints [rad] without the base, with time from 0 [s]."""
    names, values = motion.joints
    with (folder / f"robot_{motion.name}.csv").open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["time", *names])
        for t, q in zip(times - times[0], values, strict=True):
            rows.writerow([f"{t:.6f}", *(f"{v:.6f}" for v in q)])
