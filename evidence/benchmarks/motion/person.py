"""Frames a second of the fit, seconds of a calibration and of an analysis, on public recordings; optimal reaches.

The reaches are those of `bench reaching`, by the same measure.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evidence.benchmarks.motion import reaching
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.evaluation.report.person_page import person_page
from humanoid_control.human import (
    Fit,
    FitSettings,
    calibrate,
    fit,
    inverse_dynamics,
    read_ik_setup,
    read_osim,
    weighted_inverse_dynamics,
)
from humanoid_control.human.analysis import upright
from humanoid_control.human.forces.loads import read_loads, read_storage
from humanoid_control.human.models import SubjectSettings, analyse_subject, find_subject
from humanoid_control.human.records import write_records
from humanoid_control.mocap import MarkerClip, load_clip
from humanoid_control.paths import TEST_DATA, test_data

COLUMNS = ["name", "unit", "median", "best", "n", "ours_not_dearer_percent", "gap_percent"]
EMPTY = {"ours_not_dearer_percent": "", "gap_percent": ""}
REACHES = ("reach_5_ms", "reach_7_ms", "mtc_4_ms", "crocoddyl_7_ms")
TITLE = "bench human, public recordings"
ROUNDS = 5
PLAIN = FitSettings(outliers=0.0, swaps=False)


class Recording(NamedTuple):
    """Files of a recording that OpenSim's inverse kinematics can be given, too: a model, markers, and a setup."""

    model: Path
    trc: Path
    setup: Path


CLIPS = {
    "walk": (
        "rajagopal_walk",
        "computed_opensim46/subject_scaled_walk.osim",
        "motion_capture_walk.trc",
        "ik_setup_walk.xml",
    ),
    "run": (
        "rajagopal_run",
        "computed_opensim46/subject_scaled_run.osim",
        "motion_capture_run.trc",
        "ik_setup_run.xml",
    ),
    "gait2354": ("gait2354_walk", "reference/subject01_simbody.osim", "subject01_walk1.trc", "subject01_Setup_IK.xml"),
}
"""Folder of human_motion, and the files of a recording in it."""


def measure(rounds: int = ROUNDS, quiet: bool = True) -> list[dict[str, Any]]:
    """A row for each number; CPU time, so that other work on the machine counts little.

    Raises:
        EnvironmentProblem: the recordings are not there.
    """
    rows = []
    for name in CLIPS:
        files = recording(name)
        rows += fit_rows(name, files, rounds)
        if name == "run":
            person, clip = read_osim(files.model), load_clip(files.trc)
            times = _times(partial(calibrate, person, clip.positions, clip.labels), rounds)
            rows.append(_row("calibrate_s", "s", times))
            tasks = read_ik_setup(files.setup, person)
            rows += _dynamics(person, fit(person, clip.positions, clip.labels, tasks, PLAIN).q, clip.rate, rounds)
    return rows + _own(rounds) + [EMPTY | one for one in reaching.measure_reaches(REACHES, rounds, quiet)]


def fit_rows(name: str, files: Recording, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Frames a second of the fit of a recording, and of OpenSim's own tool where it is installed.

    Args:
        name: for the rows. files: of the recording. rounds: of our fit.

    Raises:
        RobotError, ClipError: a file cannot be read.
    """
    person, clip = read_osim(files.model), load_clip(files.trc)
    job = partial(fit, person, clip.positions, clip.labels, read_ik_setup(files.setup, person), PLAIN)
    row = _row(f"fit_{name}_fps", "1/s", clip.n_frames / _times(job, rounds), max)
    return [row, *_opensim(name, files, job(), clip)]


def _own(rounds: int) -> list[dict[str, Any]]:
    """A person of our own of 47 coordinates, fitted to the run's 42 markers; a whole analysis with files and page."""
    clip = load_clip(recording("run").trc)
    subject = find_subject(clip, settings=SubjectSettings(mass=72.6))
    clip, _, _ = upright(subject.person, clip, ())
    times = _times(partial(fit, subject.person, clip.positions, clip.labels, subject.tasks, PLAIN), rounds)
    walk = recording("walk").trc
    paths = walk, walk.parent / "grf_walk.xml"
    whole = _times(partial(_analyse, *paths), rounds, time.perf_counter)
    return [_row("fit_46_fps", "1/s", clip.n_frames / times, max), _row("analyse_s", "s", whole)]


def _analyse(trc: Path, forces: Path) -> None:
    """What `humanoid analyse` does from files to files, without a model."""
    clip, wrenches = load_clip(trc), read_loads(forces)
    found = analyse_subject(find_subject(clip, wrenches), clip, wrenches)
    with tempfile.TemporaryDirectory() as out:
        write_records(found, Path(out))
        (Path(out) / "report.html").write_text(person_page(found), encoding="utf-8")


def _opensim(name: str, files: Recording, ours: Fit, clip: MarkerClip) -> list[dict[str, Any]]:
    """The same fit by OpenSim's own tool, where it is installed: the same model, markers, weights and its accuracy.

    Its frames are compared by the cost of both postures, by our own sum of squares.
    """
    try:
        import opensim
    except ImportError:
        return []
    opensim.Logger.removeFileSink()  # it would leave a file wherever the command is called
    opensim.Logger.setLevelString("Off")
    with tempfile.TemporaryDirectory() as out:
        tool = opensim.InverseKinematicsTool(str(files.setup), False)
        subject = opensim.Model(str(files.model))  # the tool does not keep it alive
        tool.setModel(subject)
        tool.setMarkerDataFileName(str(files.trc))
        tool.setOutputMotionFileName(f"{out}/ik.mot")
        tool.setResultsDir(out)
        start = time.process_time()
        tool.run()
        spent = time.process_time() - start
        theirs = read_storage(f"{out}/ik.mot")
    person = ours.person
    columns = [theirs.labels.index(n) for n in person.names]
    q = theirs.values[:, columns] * np.where(person.rotational, np.pi / 180, 1.0)
    frames = np.round((theirs.times - clip.start) * clip.rate).astype(int)
    cheaper = 100 * float((ours.cost[frames] <= _cost(ours, clip, q, frames) * (1 + 1e-6)).mean())
    row = _row(f"opensim_{name}_fps", "1/s", np.array([len(frames) / spent]), max)
    return [{**row, "ours_not_dearer_percent": round(cheaper, 1)}]


def _cost(ours: Fit, clip: MarkerClip, q: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """Half the weighted sum of squares (T,) of postures, as the fit has it."""
    place = {m.name: k for k, m in enumerate(ours.person.markers)}
    at = ours.person.marker_positions(q)[:, [place[label] for label in ours.labels]]
    measured = clip.select(ours.labels).positions[frames]
    squares = np.nan_to_num(((measured - at) ** 2).sum(axis=2))
    return 0.5 * (ours.weights[frames] * squares).sum(axis=1)


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """How many times as fast as OpenSim, where it was measured; what is counted of the reaches."""
    found = {r["name"]: r["median"] for r in rows}
    beside = [
        f"{name}: {found[f'fit_{name}_fps'] / found[f'opensim_{name}_fps']:.0f} times OpenSim in this run"
        for name in CLIPS
        if f"opensim_{name}_fps" in found
    ]
    return beside + reaching.notes(rows)


def recording(name: str) -> Recording:
    """Files of a recording, by its name in CLIPS.

    Raises:
        EnvironmentProblem: it is not there.
    """
    place, *files = CLIPS[name]
    folder = test_data(f"human_motion/{place}")
    if folder is None:
        raise EnvironmentProblem(f"the recording human_motion/{place} was not found: set {TEST_DATA} to its folder")
    return Recording(*(folder / file for file in files))


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


def _times(job: Callable[[], Any], rounds: int, clock: Callable[[], float] = time.process_time) -> np.ndarray:
    """Time of each round [s], of the processor by default, after one that compiles."""
    job()
    out = []
    for _ in range(rounds):
        start = clock()
        job()
        out.append(clock() - start)
    return np.array(out)


def _row(name: str, unit: str, values: np.ndarray, best: Callable[..., Any] = min) -> dict[str, Any]:
    median, top = float(np.median(values)), float(best(values))
    return {"name": name, "unit": unit, "median": round(median, 4), "best": round(top, 4), "n": len(values), **EMPTY}
