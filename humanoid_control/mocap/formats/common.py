"""Common parts of readers: units by the size of a person, numbers of texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ClipError, ConfigError, UnknownNameError

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "inch": 0.0254}
CMU_UNIT = 0.0254 / 0.45  # skeletons of the CMU database: inches scaled by 0.45

_SPELLINGS = {
    "meter": "m", "meters": "m", "metre": "m", "metres": "m",
    "centimeter": "cm", "centimeters": "cm", "centimetres": "cm",
    "millimeter": "mm", "millimeters": "mm", "millimetres": "mm",
    "in": "inch", "inches": "inch",
}  # fmt: skip

_EXTENT = (0.45, 3.5)  # [m] longest side of the markers' box: legs alone to raised arms
_TYPICAL_EXTENT = 1.6
_CHAIN = (0.95, 2.1)  # [m] ankle to head along the bones: child to giant
_TYPICAL_CHAIN = 1.42
_TOLD = (0.1, 10.0)  # [m] longest side or chain accepted for a unit given by the user


@dataclass(frozen=True)
class Size:
    """Size of a recording as given by the user.

    Attributes:
        unit: from `UNITS`; "": stated, or plausible for a person.
        scale: factor, applied before the unit is guessed.

    Raises:
        UnknownNameError: if the unit is unknown.
        ConfigError: if the scale is not positive.
    """

    unit: str = ""
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.unit and not known_unit(self.unit):
            raise UnknownNameError("unit", self.unit, UNITS)
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise ConfigError(f"the scale of a clip must be positive, got {self.scale:g}")

    def scale_and_note(self, length: float, what: str, where: str) -> tuple[float, tuple[str, ...]]:
        """Return metres per file unit for the given unit, and a note.

        Args:
            length: [file units].
            what: such as "the markers span".

        Raises:
            ClipError: if the size is implausible.
        """
        metres = length * self.scale * UNITS[known_unit(self.unit)]
        if not _TOLD[0] <= metres <= _TOLD[1]:
            raise ClipError(
                f"{where}: {what} {metres:.3g} m with the unit {self.unit} and the scale {self.scale:g}: "
                "correct the unit or the scale"
            )
        times = f" times {self.scale:g}" if self.scale != 1 else ""
        note = f"read as {self.unit}{times}, as given: {what} {metres:.2f} m"
        return self.scale * UNITS[known_unit(self.unit)], (note,)


# Words of tables for missing values; the first are from C's printf on Windows.
NO_NUMBER = frozenset({"1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind", "1.#r", "nan(ind)", "-nan(ind)", "-nan", "nan"}) | {
    *("", "-", "--", "na", "n/a", "#n/a", "#value!", "#div/0!", "null", "none", "missing")
}
AS_STATED = Size()

ALWAYS_ALLOWED = 256 * 2**20  # [bytes] memory that any file may take
MOST_GROWTH = 100  # times the file size; packed or text recordings reach 20


MOST_POINTS = 10_000  # markers or joints; laboratories record 500


def check_count(points: int, where: str) -> None:
    """Raise ClipError above `MOST_POINTS` markers or joints."""
    if points > MOST_POINTS:
        raise ClipError(f"{where}: names {points:,} markers or joints; the maximum is {MOST_POINTS:,}: export it again")


def check_growth(needed: int, held: int, where: str) -> None:
    """Raise ClipError if reading needs above 256 MiB and 100 times the file size.

    Args:
        needed: bytes in memory.
        held: bytes of the file.
    """
    if needed > max(ALWAYS_ALLOWED, MOST_GROWTH * held):
        raise ClipError(
            f"{where}: {held:,} bytes would take {needed / 2**20:,.0f} MiB of memory, implausible for a recording: "
            "export it again"
        )


def known_unit(spelling: str) -> str:
    """Return the unit of a word such as "Millimeters", or ""."""
    unit = spelling.strip().lower()
    unit = _SPELLINGS.get(unit, unit)
    return unit if unit in UNITS else ""


def body_extent(positions: np.ndarray) -> float:
    """Return the longest side of the markers' box, median over frames, or NaN.

    Args:
        positions: (T, M, 3) any unit; NaN: missing.
    """
    missing = np.isnan(positions)
    high = np.where(missing, -np.inf, positions).max(axis=1)
    low = np.where(missing, np.inf, positions).min(axis=1)
    seen = (~missing).sum(axis=1).min(axis=1) >= 2
    with np.errstate(invalid="ignore", over="ignore"):  # a damaged file may hold infinite numbers
        return float(np.median((high - low)[seen].max(axis=1))) if seen.any() else float("nan")


def scale_of_markers(
    positions: np.ndarray, stated: str, where: str, size: Size = AS_STATED
) -> tuple[float, tuple[str, ...]]:
    """Return metres per file unit, and warnings: the stated unit unless implausible.

    Args:
        positions: (T, M, 3) [file units]; NaN: missing.
        stated: unit in the file, or "".

    Raises:
        ClipError: if no unit gives a person.
    """
    infinite = np.isinf(positions)
    finite = np.where(infinite, np.nan, positions) if infinite.any() else positions
    extent = body_extent(finite)  # infinite values are rejected with their label by MarkerClip
    stated = stated[:20] if stated.isprintable() else ""
    unit = known_unit(stated)
    if np.isnan(extent):
        raise ClipError(f"{where}: no frame contains two markers: record or export it again")
    if size.unit:
        return size.scale_and_note(extent, "the markers span", where)
    file_extent, extent = extent, extent * size.scale
    if unit and _EXTENT[0] <= extent * UNITS[unit] <= _EXTENT[1]:
        return size.scale * UNITS[unit], ()
    guess = _nearest_unit(extent, _TYPICAL_EXTENT, UNITS)
    if not _EXTENT[0] <= extent * UNITS[guess] <= _EXTENT[1]:
        raise ClipError(
            f"{where}: the markers span {extent:.3g} in the longest direction, implausible for a person in "
            f"{', '.join(UNITS)} (unit stated: {stated or 'none'}): check the marker labels, or give unit and "
            f"scale{_advice(file_extent, _TYPICAL_EXTENT)}"
        )
    says = f"states unit '{stated}', in which" if stated else "states no unit;"
    return size.scale * UNITS[guess], (
        f"the file {says} the markers span {extent:.4g}: read as {guess}, so that they span "
        f"{extent * UNITS[guess]:.2f} m",
    )


def scale_of_skeleton(
    chain: float, where: str, stated: float | None = None, size: Size = AS_STATED
) -> tuple[float, tuple[str, ...]]:
    """Return metres per file unit, and a note unless the stated unit is used.

    Args:
        chain: bones from ankle over hip to head [file units].
        stated: [m], or None.

    Raises:
        ClipError: if no unit gives a person.
    """
    if size.unit:
        return size.scale_and_note(chain, "the bones from ankle to head are", where)
    file_chain, chain = chain, chain * size.scale
    if stated is not None and _CHAIN[0] <= chain * stated <= _CHAIN[1]:
        return size.scale * stated, ()
    units = {**UNITS, "CMU unit": CMU_UNIT}
    if stated is not None:  # some programs took CMU units for metres and wrote centimetres
        units["hundredth of a CMU unit"] = CMU_UNIT / 100
    guess = _nearest_unit(chain, _TYPICAL_CHAIN, units)
    metres = chain * units[guess]
    if not _CHAIN[0] <= metres <= _CHAIN[1]:
        raise ClipError(
            f"{where}: the bones from ankle to head are {chain:.3g} units long, implausible for a person in "
            f"{', '.join(units)}: give unit and scale{_advice(file_chain, _TYPICAL_CHAIN)}"
        )
    says = "no unit" if stated is None else f"a unit of {stated:.5g} m, implausible for a person"
    return size.scale * units[guess], (
        f"the file states {says}: bones from ankle to head of {chain:.4g} read as {guess} "
        f"({units[guess]:.5g} m), that is {metres:.2f} m",
    )


def ankle_to_head(names: Sequence[str], parents: Sequence[int], positions: np.ndarray) -> float:
    """Return the bone length from an ankle over the hip to the head [file units], for any pose.

    Without "foot" or "ankle" and "head" in joint names it is the longest side of the box.

    Args:
        parents: indices, negative: none.
        positions: (T, J, 3) [file units].
    """
    ankle, head = _first_named(names, ("foot", "ankle")), _first_named(names, ("head",))
    if ankle < 0 or head < 0:
        return float(np.median(np.ptp(positions, axis=1).max(axis=1)))
    apart = set(_to_root(parents, ankle)) ^ set(_to_root(parents, head))
    bones = [positions[:, i] - positions[:, parents[i]] for i in apart if parents[i] >= 0]
    return math.fsum(float(np.median(np.linalg.norm(bone, axis=1))) for bone in bones)


_FRAMES = 4096  # processed at a time
_OUTLIER_STEP = 20.0  # ratio to the usual step: no motion starts like that


def first_frame_apart(positions: np.ndarray) -> bool:
    """Return True if the first frame of joints (T, J, 3) is not part of the motion.

    Its step is 20 times the usual and 3 times the largest other one.
    """
    steps = largest_steps(positions)
    return len(steps) > 2 and bool(steps[0] > _OUTLIER_STEP * np.median(steps[1:]) and steps[0] > 3 * steps[1:].max())


def largest_steps(positions: np.ndarray) -> np.ndarray:
    """Return the largest joint step (T - 1,) of positions (T, J, 3)."""
    steps = np.empty(max(len(positions) - 1, 0))
    for first in range(0, len(steps), _FRAMES):
        block = np.diff(positions[first : first + _FRAMES + 1], axis=0)
        steps[first : first + _FRAMES] = np.linalg.norm(block, axis=2).max(axis=1)
    return steps


def _first_named(names: Sequence[str], words: tuple[str, ...]) -> int:
    """Return the first joint with one of the words, or -1."""
    return next((i for i, name in enumerate(names) if any(word in name.lower() for word in words)), -1)


def _to_root(parents: Sequence[int], index: int) -> list[int]:
    chain = []
    while index >= 0:
        chain.append(index)
        index = parents[index]
    return chain


def _advice(length: float, typical: float) -> str:
    """Return unit and scale that make a person, for messages."""
    if not (np.isfinite(length) and length > 0):
        return ""
    unit = _nearest_unit(length, typical, UNITS)
    return f" (unit {unit} and scale {typical / (length * UNITS[unit]):.2g} make it {typical:g} m)"


def _nearest_unit(size: float, typical: float, units: dict[str, float]) -> str:
    """Return the unit in which `size` is nearest to `typical` metres."""
    with np.errstate(divide="ignore"):
        return min(units, key=lambda unit: abs(np.log(size * units[unit] / typical)))


_SAME_STEP = 0.3  # relative difference of equal steps with rounding or jitter
_OFF_GRID = 0.25  # of a step: largest deviation of a row from its frame
LONGEST_GAP = 60.0  # [s] longer gaps separate two recordings
MOTION_RATES = (5.0, 2000.0)  # [Hz] of motion capture
_SAME_RATE = 0.02  # relative difference of equal rates
_TIME_UNITS = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}


def base_step(steps: np.ndarray) -> float:
    """Return the time step of neighbouring frames [s] despite omitted ones; 0: none.

    It is the mean of short steps: the median of rounded times (8 and 9 ms at 120 Hz) is wrong.

    Args:
        steps: [s].
    """
    steps = steps[steps > 0]
    if not len(steps):
        return 0.0
    short = float(np.quantile(steps, 0.1))
    return float(steps[steps < (1 + 2 * _SAME_STEP) * short].mean())


def seconds_of_times(
    times: np.ndarray,
    stated: float | None,
    where: str,
    usual: tuple[float, float] = MOTION_RATES,
    counted: bool = True,
) -> tuple[float, tuple[str, ...]]:
    """Return seconds per unit of a time column, by plausible rates, and a note.

    Plausible rates of two units never coincide. Steps of 1 may count frames or milliseconds: only a stated rate
    decides.

    Args:
        times: (T,) [unknown unit].
        stated: rate [Hz], or None.
        usual: plausible rates [Hz].
        counted: False: steps of 1 are milliseconds.

    Raises:
        ClipError: if no unit is plausible, or the column counts rows of unknown rate.
    """
    step = base_step(np.diff(times))
    if not step > 0 or usual[0] <= 1 / step <= usual[1]:
        return 1.0, ()
    if stated is not None and stated > 0:
        for unit in ("seconds", "milliseconds"):
            if abs(1 / (step * _TIME_UNITS[unit] * stated) - 1) < _SAME_RATE:
                return _TIME_UNITS[unit], (f"the time column counts {unit}",) if unit != "seconds" else ()
        if abs(step - 1) < _SAME_RATE:
            return 1 / stated, ("the time column counts frames",)
    if counted and abs(step - 1) < 1e-6:
        raise ClipError(
            f"{where}: the time column contains 1, 2, 3: give the rate (--rate 120, or rate=120), or name the column "
            "time_ms if it counts milliseconds"
        )
    for unit, factor in _TIME_UNITS.items():
        rate = 1 / (step * factor)
        if usual[0] <= rate <= usual[1]:
            return factor, (f"the time column counts {unit}: its steps of {step:.4g} make {rate:.4g} Hz",)
    raise ClipError(
        f"{where}: the time column has steps of {step:.4g}, which is not {usual[0]:g} to {usual[1]:g} Hz in any unit: "
        "write times in seconds"
    )


def on_even_times(
    times: np.ndarray, positions: np.ndarray, stated: float | None, where: str
) -> tuple[float, np.ndarray, tuple[str, ...]]:
    """Return rate [Hz], positions (T', M, 3) at even times, and warnings.

    Dropped rows become frames without markers. Uneven times are interpolated.

    Args:
        times: (T,) increasing [s].
        positions: (T, M, 3), NaN: missing.
        stated: rate [Hz], used if times agree; or None.

    Raises:
        ClipError: if rows are a minute apart, or frames would fill the memory.
    """
    steps = np.diff(times)
    base = base_step(steps)
    k = int(np.argmax(steps))
    if steps[k] > LONGEST_GAP and steps[k] > 10 * base:
        raise ClipError(
            f"{where}: no row from {times[k]:.2f} to {times[k + 1]:.2f} s: two recordings in one table, split it there "
            "or correct the times"
        )
    if stated is not None and stated > 0 and abs(base * stated - 1) < _SAME_STEP / 3:
        frames = np.maximum(np.rint(steps * stated), 1)
        if abs((times[-1] - times[0]) * stated - frames.sum()) < 0.02 * len(frames) + 1:
            base = 1 / stated
    counts = np.maximum(np.rint(steps / base), 1).astype(int)
    step = (times[-1] - times[0]) / counts.sum()
    rate = _near_rate(1 / step, stated)
    notes = []
    if stated is not None and abs(rate / stated - 1) > 1e-3:
        notes.append(f"the header states {stated:g} Hz, the time column {rate:.4g} Hz: the time column is used")
    even = np.abs(steps - counts * step).max() <= _OFF_GRID * step
    if even and counts.max() == 1:
        return rate, positions, tuple(notes)
    length = int(counts.sum()) + 1 if even else len(times)
    check_growth(positions.itemsize * positions[0].size * length, positions.nbytes, where)
    vary = f"the time steps vary from {steps.min():.4g} to {steps.max():.4g} s"
    if even:
        found = np.full((length, *positions.shape[1:]), np.nan)
        found[np.concatenate([[0], np.cumsum(counts)])] = positions
        first = int(np.argmax(counts > 1))
        notes.append(
            f"{vary}: {length - len(times)} of {length} frames at {rate:.4g} Hz have no row, the first after "
            f"{times[first] - times[0]:.3f} s"
        )
        return rate, found, tuple(notes)
    rate = (len(times) - 1) / (times[-1] - times[0])
    at = times[0] + np.arange(len(times)) / rate
    before = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    share = np.clip((at - times[before]) / steps[before], 0.0, 1.0)[:, None, None]
    found = np.where(share > 0, (1 - share) * positions[before] + share * positions[before + 1], positions[before])
    notes.append(f"{vary}: interpolated at {rate:.4g} Hz")
    return float(rate), found, tuple(notes)


def _near_rate(rate: float, stated: float | None) -> float:
    """Return the rate [Hz] rounded to the stated or a whole one, if near."""
    if stated is not None and abs(rate / stated - 1) < 1e-3:
        return stated
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) < 1e-3 * whole else float(rate)


def floats(words: Sequence[str], what: str) -> np.ndarray:
    """Return finite numbers, or raise ClipError that begins with `what`."""
    try:
        numbers = np.array(words, dtype=float)
    except ValueError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise ClipError(f"{what}: contains a non-numeric value: the file is damaged")
    return numbers
