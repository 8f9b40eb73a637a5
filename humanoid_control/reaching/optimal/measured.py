"""Reaches of people from HuG-MP (Bianchin et al. 2025), compared with motion criteria at equal ends.

A file holds one person: a MATLAB cell array `tasks{10 repetitions, 6 tasks}{motion}` of 4 x T angles [deg] at 100 Hz,
with axes and signs of `person_arm`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ClipError, first_line
from humanoid_control.files import why
from humanoid_control.reaching.optimal.arm import Arm
from humanoid_control.reaching.optimal.person_arm import person_arm
from humanoid_control.reaching.optimal.reach import ReachSettings, synthesise

RATE = 100.0  # [Hz]
VARIABLE = "tasks"
JOINTS = 4
SHORTEST = 5  # minimum samples of a motion
PLACES: tuple[tuple[str, ...], ...] = (
    ("R", "1", "12", "R", "4", "9", "R"),
    ("R", "2", "10", "R", "9", "11", "R"),
    ("R", "10", "2", "R", "11", "9", "R"),
    ("R", "1", "R", "3", "R", "9", "R", "11", "R"),
    ("K", "M", "R"),
    ("K", "S", "K"),
)
"""Places of each task: R at rest, K on the knee, M at the mouth, S at the other shoulder, and targets of the board."""


@dataclass(frozen=True)
class MeasuredReach:
    """Motion between two places.

    Attributes:
        task: from 1.
        repetition: from 1.
        motion: from 1.
        begin: place, as in PLACES.
        end: place, as in PLACES.
        q: (T, 4) angles [rad] at RATE.
    """

    task: int
    repetition: int
    motion: int
    begin: str
    end: str
    q: np.ndarray

    @property
    def seconds(self) -> float:
        """Duration [s]."""
        return (len(self.q) - 1) / RATE

    @property
    def times(self) -> np.ndarray:
        """Sample times (T,) [s]."""
        return np.arange(len(self.q)) / RATE


def read_measured_reaches(path: str | Path) -> list[MeasuredReach]:
    """Read all motions of one person.

    Raises:
        ClipError: if the file is unreadable or has other content.
    """
    from scipy.io import loadmat

    path = Path(path)
    try:
        content = loadmat(str(path), appendmat=False)
    except OSError as e:
        raise ClipError(f"{path}: cannot be read: {why(e)}") from None
    except Exception as e:  # any error of the reader on a damaged file
        raise ClipError(f"{path}: not a MATLAB file of reaches: {first_line(e)}") from None
    tasks = content.get(VARIABLE)
    if not isinstance(tasks, np.ndarray) or tasks.dtype != object or tasks.ndim != 2:
        raise ClipError(f"{path}: has no cell array '{VARIABLE}' of repetitions and tasks")
    out = list(_motions(tasks, path))
    if not out:
        raise ClipError(f"{path}: contains no motion")
    return out


def _motions(tasks: np.ndarray, path: Path) -> Iterator[MeasuredReach]:
    for (repetition, task), cell in np.ndenumerate(tasks):
        parts: list[Any] = list(cell.ravel()) if isinstance(cell, np.ndarray) and cell.dtype.kind == "O" else [cell]
        places = PLACES[task] if task < len(PLACES) else ()
        for k, part in enumerate(parts):
            where = f"{path}: repetition {repetition + 1}, task {task + 1}, motion {k + 1}"
            if not isinstance(part, np.ndarray) or part.size == 0:
                continue  # a removed trial
            if part.ndim != 2 or part.shape[0] != JOINTS or part.dtype.kind not in "fiu":
                raise ClipError(f"{where}: must be {JOINTS} x samples, got {part.shape} of {part.dtype}")
            q = np.deg2rad(part.astype(float).T)
            if part.shape[1] < SHORTEST or not np.isfinite(q).all():
                raise ClipError(f"{where}: has {part.shape[1]} samples, or non-numeric ones")
            begin, end = places[k : k + 2] if k + 1 < len(places) else ("?", "?")
            yield MeasuredReach(task + 1, repetition + 1, k + 1, begin, end, q)


# -------- Comparison

CRITERIA = ("maj", "mtc", "torque", "mchj")
WITHOUT_GRAVITY = ("mtc", "torque")
MIXES = (0.25, 0.5, 0.75)  # fractions of joint jerk; the rest is torque change
LONG = 2.0  # [s]


def study_settings() -> dict[str, ReachSettings]:
    """Return the settings compared with people: quintic, four segments, straight start, no limits.

    People stay far within their ranges; limits would mask a criterion.
    """

    def one(cost: Mapping[str, float], gravity: bool = True) -> ReachSettings:
        return ReachSettings(cost, segments=4, gravity=gravity, limits=False, starts=1)

    out = {cost: one({cost: 1.0}) for cost in CRITERIA}
    out |= {f"{cost}_weightless": one({cost: 1.0}, gravity=False) for cost in WITHOUT_GRAVITY}
    return out | {f"mix_{w:g}": one({"maj": w, "mtc": 1.0 - w}) for w in MIXES}


def compare(arm: Arm, measured: MeasuredReach, settings: Mapping[str, ReachSettings]) -> dict[str, float]:
    """Return, by settings, the RMS distance [rad] of a measured reach from the synthesised one.

    The arm has four joints; ends and duration are equal.
    """
    out = {}
    for name, one in settings.items():
        reach = synthesise(arm, measured.q[0], measured.q[-1], measured.seconds, one)
        out[name] = float(np.sqrt(np.mean((reach.at(measured.times)[0] - measured.q) ** 2)))
    return out


def compare_person(
    reaches: Sequence[MeasuredReach], repetition: int | None = None, arm: Arm | None = None
) -> list[dict[str, Any]]:
    """Return a row per reach: ends, duration, and distances [deg] by `study_settings`.

    Args:
        reaches: of one person.
        repetition: only this one.
        arm: default: `person_arm`.
    """
    arm, settings = arm or person_arm(JOINTS), study_settings()
    rows = []
    for one in reaches:
        if repetition is not None and one.repetition != repetition:
            continue
        row: dict[str, Any] = {"task": one.task, "repetition": one.repetition, "motion": one.motion}
        row |= {"begin": one.begin, "end": one.end, "seconds": one.seconds}
        rows.append(row | {name: float(np.rad2deg(d)) for name, d in compare(arm, one, settings).items()})
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return, by settings, median distance [deg], quartiles, median of long reaches, and fraction nearest.

    The fraction compares only joint jerk, torque change and torque, as published; NaN for others.
    """
    out = {}
    three = np.array([[row[c] for c in CRITERIA[:3]] for row in rows])
    long = np.array([row["seconds"] >= LONG for row in rows])
    for name in study_settings():
        values = np.array([row[name] for row in rows])
        low, middle, high = np.percentile(values, [25, 50, 75])
        share = np.nan
        if name in CRITERIA[:3]:
            share = float(np.mean(three.argmin(axis=1) == CRITERIA.index(name)))
        late = float(np.median(values[long])) if long.any() else np.nan
        out[name] = {"median": middle, "lower": low, "upper": high, "long": late, "nearest": share}
    return out
