"""Frames a second of the fit, seconds of a calibration, microseconds of inverse dynamics, on public recordings."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.human import (
    FitSettings,
    calibrate,
    fit,
    inverse_dynamics,
    read_ik_setup,
    read_osim,
    weighted_inverse_dynamics,
)
from humanoid_control.mocap import load_clip
from humanoid_control.paths import TEST_DATA, test_data

COLUMNS = ["name", "unit", "median", "best", "n"]
ROUNDS = 5
PLAIN = FitSettings(outliers=0.0, swaps=False)
CLIPS = {
    "walk": ("subject_scaled_walk.osim", "motion_capture_walk.trc", "ik_setup_walk.xml"),
    "run": ("subject_scaled_run.osim", "motion_capture_run.trc", "ik_setup_run.xml"),
}


def measure(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """A row for each number; CPU time, so that other work on the machine counts little.

    Raises:
        EnvironmentProblem: the recordings are not there.
    """
    rows = []
    for name, (model, trc, setup) in CLIPS.items():
        folder = _folder(name)
        person, clip = read_osim(folder / "computed_opensim46" / model), load_clip(folder / trc)
        tasks = read_ik_setup(folder / setup, person)
        times = _times(partial(fit, person, clip.positions, clip.labels, tasks, PLAIN), rounds)
        rows.append(_row(f"fit_{name}_fps", "1/s", clip.n_frames / times, max))
        if name == "run":
            times = _times(partial(calibrate, person, clip.positions, clip.labels), rounds)
            rows.append(_row("calibrate_s", "s", times))
            rows += _dynamics(person, fit(person, clip.positions, clip.labels, tasks, PLAIN).q, clip.rate, rounds)
    return rows


def _folder(name: str) -> Path:
    folder = test_data(f"human_motion/rajagopal_{name}")
    if folder is None:
        raise EnvironmentProblem(
            f"the recording human_motion/rajagopal_{name} is not there: let {TEST_DATA} lead to it"
        )
    return folder


def _dynamics(person: Any, q: np.ndarray, rate: float, rounds: int) -> list[dict[str, Any]]:
    """Inverse dynamics of a frame, plain and corrected by the plates, with a load on both feet."""
    qd = np.gradient(q, 1 / rate, axis=0)
    qdd = np.gradient(qd, 1 / rate, axis=0)
    loads = {f"calcn_{side}": np.tile([0.0, 400.0, 0.0, 0.0, 0.0, 0.0], (len(q), 1)) for side in "lr"}
    plain = _times(lambda: inverse_dynamics(person, q, qd, qdd, loads), rounds)
    weighted = _times(lambda: weighted_inverse_dynamics(person, (q, qd, qdd), loads, np.ones(person.n)), rounds)
    return [
        _row("inverse_dynamics_us", "us", 1e6 * plain / len(q)),
        _row("weighted_us", "us", 1e6 * weighted / len(q)),
    ]


def _times(job: Callable[[], Any], rounds: int) -> np.ndarray:
    """CPU time of each round [s], after one that compiles."""
    job()
    out = []
    for _ in range(rounds):
        start = time.process_time()
        job()
        out.append(time.process_time() - start)
    return np.array(out)


def _row(name: str, unit: str, values: np.ndarray, best: Callable[..., Any] = min) -> dict[str, Any]:
    median, top = float(np.median(values)), float(best(values))
    return {"name": name, "unit": unit, "median": round(median, 4), "best": round(top, 4), "n": len(values)}
