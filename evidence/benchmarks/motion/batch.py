"""Whole libraries: clips and frames a second with one process and with two, and the memory of a worker.

Identical clips, so that all jobs are alike: read, retargeted with root and legs, measured and written by each worker.
Counted from when every worker has done its first, so that starting and loading of kernels are not in it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from evidence.benchmarks import Row, row_of
from humanoid_control.clip_library import LibrarySettings, LocalWorkers, WorkerRobot, find_clips, library_jobs
from humanoid_control.clip_library.work import compile_for
from humanoid_control.mocap import MarkerClip, load_clip
from humanoid_control.terminal import progress

COLUMNS = ["name", "unit", "median", "p99", "n"]
TITLE = "bench batch, the built-in dance, whole body"
PROCESSES = (1, 2)
LONG = 30_000  # frames of the clip by which the growth of memory is seen
SETTINGS = LibrarySettings(whole_body=True)


def measure(robot: str = "hrp2", clips: int = 24, rounds: int = 3, quiet: bool = True) -> list[Row]:
    """Rows: clips/s and frames/s by one process and by two in turns, their ratio, and a worker's memory.

    Args:
        robot: a name or a path. clips: in each round, at least 4. rounds: of each number of processes. quiet: no bar.
    """
    source, clip = WorkerRobot.of(robot), load_clip("dance")
    compile_for(SETTINGS)
    rates: dict[int, list[float]] = {n: [] for n in PROCESSES}
    memory: list[float] = []
    with tempfile.TemporaryDirectory() as place, progress("libraries", rounds + 1, quiet=quiet) as show:
        write_clips(clip, Path(place), max(clips, 4))
        for k in range(rounds):
            for processes in PROCESSES:
                rate, most = _throughput(place, source, processes)
                rates[processes].append(rate)
                memory.append(most)
            show(k + 1)
        long = long_clip(clip, LONG)
        write_clips(long, Path(place) / "long", 1)
        _, grown = _throughput(f"{place}/long", source, 1)
    frames = len(clip.positions)
    out = []
    for processes in PROCESSES:
        out.append(row_of(f"clips_{processes}", "1/s", rates[processes]))
        out.append(row_of(f"frames_{processes}", "1/s", frames * np.array(rates[processes])))
    ratio = np.array(rates[PROCESSES[1]]) / np.array(rates[PROCESSES[0]])
    out.append(row_of("speed_up", "", ratio))
    out.append(row_of("worker_memory", "MB", np.array(memory) / 1e6))
    out.append(row_of("memory_of_1000_frames", "MB", [(grown - min(memory)) / 1e6 / ((LONG - frames) / 1000)]))
    return out


def write_clips(clip: MarkerClip, folder: Path, count: int) -> None:
    """Write the same clip as so many CSV files."""
    folder.mkdir(exist_ok=True)
    names = [f"{label}_{axis}" for label in clip.labels for axis in "xyz"]
    table = np.hstack([clip.times[:, None], clip.positions.reshape(len(clip.positions), -1)])
    head = "# unit: m\n" + ",".join(["time", *names])
    first = folder / "clip_000.csv"
    np.savetxt(first, table, fmt="%.5f", delimiter=",", header=head, comments="")
    for k in range(1, count):
        (folder / f"clip_{k:03d}.csv").write_bytes(first.read_bytes())


def long_clip(clip: MarkerClip, frames: int) -> MarkerClip:
    """The clip over and over, there and back, until it has so many frames."""
    there = np.concatenate([clip.positions, clip.positions[-2:0:-1]])
    positions = np.tile(there, (-(-frames // len(there)), 1, 1))[:frames]
    return MarkerClip(clip.name, clip.labels, clip.rate, positions, clip.source)


def _throughput(folder: str, robot: WorkerRobot, processes: int) -> tuple[float, float]:
    """Clips a second of a folder, and the most memory of a worker [bytes].

    Raises:
        AssertionError: a clip failed.
    """
    jobs, _ = library_jobs(find_clips(folder), [robot], SETTINGS)
    times, memory = [], 0.0
    for outcome in LocalWorkers(processes).outcomes(jobs):
        assert not outcome.record["failed"], outcome.record["reason"]
        times.append(time.perf_counter())
        memory = max(memory, outcome.memory)
    counted = len(times) - processes
    return counted / (times[-1] - times[processes - 1]) if counted > 0 else 0.0, memory


def notes(rows: list[Row]) -> list[str]:
    """What was counted."""
    return [
        "One thread per library in each process. A clip is 1,201 frames at 50 Hz, 17 markers as CSV; a job reads and "
        "cleans it, retargets root, arms and legs, measures its quality and packs the file. Rounds of one process and "
        "of two take turns; p99: slow side.",
        f"worker_memory: peak memory of a worker's process, with the libraries; memory_of_1000_frames: what "
        f"each thousand frames more of one clip of {LONG:,} frames add to it.",
    ]
