"""Built-in person model with markers, size and mass of a clip's subject.

Calibration scales the whole body, then places markers without landmark, then scales all segments. With all load on the
plates the vertical force is m (g + a), with the acceleration a of the centre of mass: this gives the mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from humanoid_control.errors import ClipError, ConfigError, first_few
from humanoid_control.human.analysis import Analysis, AnalysisSettings, analyse, upright
from humanoid_control.human.calibration import Calibration, CalibrationSettings, calibrate, spread_frames
from humanoid_control.human.derivatives import SHORTEST, differentiate
from humanoid_control.human.elements import GROUND
from humanoid_control.human.forces.wrenches import MeasuredWrench
from humanoid_control.human.ik_setup import CoordinateTask, FitTasks
from humanoid_control.human.marker_fit import FitSettings, fit
from humanoid_control.human.model import Person
from humanoid_control.human.models.marker_template import TemplateMatch, find_template, load_template
from humanoid_control.human.models.person_file import MASS, SEXES, STATURE, PersonFile, find_person_file
from humanoid_control.mocap import MarkerClip, plain_label

TYPICAL_STATURE, TYPICAL_MASS = 1.75, 75.0  # [m], [kg]
NOISE = 0.01  # [m] standard deviation of a marker, relative to which spreads of coordinates are weighted
FRAMES, FIRST_FRAMES = 20, 12  # of each clip: frames of a calibration, and of its first step
GRAVITY = 9.80665  # [m/s^2]
CUTOFF = 6.0  # [Hz] of centre of mass and forces: removes impacts, which skin markers do not resolve
WHOLE, LEAST = 0.05, 0.15  # relative width of force / (g + a) with all load on the plates; its shortest time [s]
PEAK, SHARE = 8, 0.3  # half width of a peak [%], and its height relative to the highest
UNEXPLAINED = 0.12  # of the weight: a larger missing force means a foot off the plates
OTHER = 1.08  # size factor beyond which clips are of different people
OUTLIERS, LEAST_OUTLIER = 5.0, 0.015  # medians of a marker, and [m]: beyond both it is excluded from calibration
_ONE_SIZE = CalibrationSettings(rounds=2, size=1e-3, anatomical=0.02, tracking=0.05)
_SIZES = CalibrationSettings(size=0.08, anatomical=0.007)  # landmarks of the model are averages
_PLAIN = FitSettings(swaps=False, outliers=0.0, tolerance=1e-4)


@dataclass(frozen=True, eq=False)
class Subject:
    """Person model ready for fitting.

    Attributes:
        person: with markers, size and mass.
        stature: [m].
        guesses: assumptions that affect the results.
        match: marker template, or None.
        calibration: None without a clip.
    """

    person: Person
    tasks: FitTasks
    stature: float
    notes: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()
    match: TemplateMatch | None = None
    calibration: Calibration | None = None


@dataclass(frozen=True)
class SubjectSettings:
    """Known data of a subject; missing data are estimated.

    Attributes:
        model: name, or path of a file (.yaml).
        markers: template name, or path; "": by labels.
        stature: [m], or None.
        mass: [kg], or None.
        sex: "men" or "women"; "": men, with a note.
    """

    model: str | Path = "person"
    markers: str | Path = ""
    stature: float | None = None
    mass: float | None = None
    sex: str = ""


def own_person(
    stature: float = TYPICAL_STATURE,
    mass: float = TYPICAL_MASS,
    sex: str = "men",
    markers: str | Path = "",
    model: str | Path = "person",
) -> Subject:
    """Return a built-in person of average proportions.

    Args:
        stature: [m].
        mass: [kg].
        sex: "men" or "women".
        markers: template name, or path; "": none.
        model: name, or path.

    Raises:
        ConfigError: if stature or mass is impossible.
        UnknownNameError: if model, template or sex is unknown.
    """
    file = find_person_file(model)
    placed = load_template(markers).markers(file)[0] if markers else []
    return Subject(file.build(stature, mass, sex, placed), tasks_of(file), stature)


def tasks_of(file: PersonFile) -> FitTasks:
    """Return weights (marker noise / spread)^2 [m^2] of coordinates."""
    rest = {c.name: c.default for c in file.coordinates}
    return FitTasks(coordinates={n: CoordinateTask((NOISE / s) ** 2, rest[n]) for n, s in file.spreads.items()})


def analyse_subject(
    subject: Subject,
    clip: MarkerClip,
    wrenches: Sequence[MeasuredWrench] = (),
    tasks: FitTasks | None = None,
    settings: AnalysisSettings | None = None,
) -> Analysis:
    """Run `analyse` with a built-in person, its tasks and notes; `tasks` take priority."""
    given = tasks or FitTasks()
    held = {**subject.tasks.coordinates, **given.coordinates}
    found = analyse(subject.person, clip, wrenches, replace(given, coordinates=held), settings)
    return replace(found, warnings=(*subject.notes, *found.warnings), guesses=subject.guesses)


def find_subject(
    clip: MarkerClip,
    wrenches: Sequence[MeasuredWrench] = (),
    static: MarkerClip | None = None,
    settings: SubjectSettings | None = None,
) -> Subject:
    """Estimate the subject of a clip.

    Args:
        clip: any axis up.
        wrenches: of all plates, clip axes, as recorded.
        static: standing trial of the person, same axes.

    Raises:
        ClipError: if labels match no template, or the size is implausible.
        ConfigError: if stature or mass is impossible.
        UnknownNameError: if model, template or sex is unknown.
    """
    s = settings or SubjectSettings()
    _check_known(s)
    file = find_person_file(s.model)
    match = find_template(clip, s.markers or None)
    firm = own_person(s.stature or TYPICAL_STATURE, markers=s.markers or match.template.name, model=s.model).person
    clip, wrenches, turn = upright(firm, clip, wrenches)
    clips = [clip] if static is None else [clip, replace(static, positions=static.positions @ turn.T)]
    labels = [label for c in clips for label in find_template(c, match.template.name).found]
    placed, loose = match.template.markers(file, labels)
    start = s.stature or TYPICAL_STATURE
    person = file.build(start, s.mass or TYPICAL_MASS, s.sex or SEXES[0], placed)
    tasks = tasks_of(file)
    frames, names = _frames(clips, [m.name for m in placed], FRAMES)
    if static is not None:
        _check_same_size(person, clips, names, tasks, loose)
    person = _of_one_size(person, (frames, names), tasks, loose)
    found = _calibrated(person, frames, names, tasks)
    person = found.person
    stature = _stature(file, person, start)
    notes, guesses = [match.sentence()], list[str]()
    before, after = (1e3 * float(np.sqrt(np.nanmean(f.rms**2))) for f in (found.before, found.after))
    notes.append(
        f"person of {stature:.2f} m by the markers{f' ({s.stature:.2f} m as given)' if s.stature else ''}: they "
        f"lie {before:.1f} mm off before calibration and {after:.1f} mm after"
    )
    if not s.sex:
        notes.append("the segment masses are those of men by default: use --sex women for women")
    mass, said = (s.mass, "") if s.mass is not None else _mass(person, clip, wrenches, tasks)
    if mass is None:
        guesses.append(
            f"the mass is unknown ({said}): {TYPICAL_MASS:g} kg is assumed: moments scale with it, give --mass"
        )
    elif said:
        notes.append(said)
    person = person.with_mass(mass or TYPICAL_MASS)
    return Subject(person, tasks, stature, tuple(notes), tuple(guesses), match, found)


def _check_known(s: SubjectSettings) -> None:
    for what, value, (least, most), unit in (("stature", s.stature, STATURE, "m"), ("mass", s.mass, MASS, "kg")):
        if value is not None and not (np.isfinite(value) and least <= value <= most):
            raise ConfigError(f"a {what} of {value:g} {unit} is implausible: it must be {least:g} to {most:g} {unit}")


# -------- Size


def _frames(clips: Sequence[MarkerClip], names: list[str], most: int) -> tuple[np.ndarray, list[str]]:
    """Return equally many frames (F, M, 3) of each clip."""
    parts = []
    for clip in clips:
        column = {plain_label(label): k for k, label in reversed(list(enumerate(clip.labels)))}
        own = np.full((clip.n_frames, len(names), 3), np.nan)
        for m, name in enumerate(names):
            if (k := column.get(plain_label(name))) is not None:
                own[:, m] = clip.positions[:, k]
        parts.append(own[spread_frames(own, most)])
    return np.concatenate(parts), names


def _calibrated(person: Person, frames: np.ndarray, names: list[str], tasks: FitTasks) -> Calibration:
    """Calibrate, again without outliers."""
    settings, every = replace(_SIZES, frames=len(frames)), np.arange(len(frames))
    found = calibrate(person, frames, names, tasks, settings, every)
    r = found.after.residuals
    seen = np.ma.masked_invalid(r)
    far = np.nan_to_num(r) > np.maximum(OUTLIERS * np.ma.median(seen, axis=0).filled(np.inf), LEAST_OUTLIER)
    if not far.any():
        return found
    rest = frames.copy()
    columns = [names.index(label) for label in found.after.labels]
    rest[:, columns] = np.where(far[..., None], np.nan, rest[:, columns])
    again = calibrate(person, rest, names, tasks, settings, every)
    return replace(again, before=found.before)


def _check_same_size(
    person: Person, clips: Sequence[MarkerClip], names: list[str], tasks: FitTasks, loose: Sequence[str]
) -> None:
    """Raise ClipError for people of different sizes."""
    firm = [n for n in names if n not in loose]
    sizes = []
    for clip in clips:
        frames, _ = _frames([clip], firm, FIRST_FRAMES)
        seen = [k for k in range(len(firm)) if np.isfinite(frames[:, k]).all(axis=1).any()]
        one = _one_factor(person, frames[:, seen], [firm[k] for k in seen], tasks)
        sizes.append(one * _length(person))
    if not 1 / OTHER < sizes[0] / sizes[1] < OTHER:
        raise ClipError(
            f"'{clips[0].name}' and '{clips[1].name}' are of different people: one is {max(sizes) / min(sizes):.2f} "
            "times as large as the other: give the static trial of the same person, or leave it out"
        )


def _of_one_size(person: Person, clip: tuple[np.ndarray, list[str]], tasks: FitTasks, loose: Sequence[str]) -> Person:
    """Scale all bodies equally; place loose markers."""
    positions, names = clip
    known = [k for k, name in enumerate(names) if name not in loose]
    if len(known) < 3:
        raise ClipError(
            f"{len(known)} of the markers ({first_few(list(names))}) have known positions on the body, but 3 are "
            "needed for the size of the person: give --model with a model that has these markers, or --markers with "
            "a template of their positions"
        )
    some = np.unique(np.linspace(0, len(positions) - 1, FIRST_FRAMES).round().astype(int))
    factor = _one_factor(person, positions[some][:, known], [names[k] for k in known], tasks)
    person = person.scaled(dict.fromkeys(person.body_names, factor))
    if not loose:
        return person
    bare = person.with_markers([m for m in person.markers if m.name not in loose])
    found = fit(bare, positions, names, tasks, _PLAIN)
    R, p = person.body_poses(found.q)
    markers = []
    for m in person.markers:
        if m.name in loose:
            b = person.body_index(m.body)
            local = np.einsum("tji,tj->ti", R[:, b], positions[:, names.index(m.name)] - p[:, b])
            seen = np.isfinite(local).all(axis=1)
            m = replace(m, place=np.median(local[seen], axis=0)) if seen.any() else m
        markers.append(m)
    return person.with_markers(markers)


def _one_factor(person: Person, positions: np.ndarray, names: list[str], tasks: FitTasks) -> float:
    """Return the body factor from landmark markers (F, M, 3)."""
    firm = person.with_markers([m for m in person.markers if m.name in names])
    every = np.arange(len(positions))
    sized = calibrate(firm, positions, names, tasks, replace(_ONE_SIZE, frames=len(every)), every).person
    return _length(sized) / _length(person)


def _length(person: Person) -> float:
    """Return the summed distances of joints from their parents [m]."""
    return float(sum(np.linalg.norm(j.P.p) for j in person.joints))


def _stature(file: PersonFile, person: Person, start: float) -> float:
    """Return the upright height [m], soles to top of the head."""
    posture = np.where(person.rotational, 0.0, person.rest)
    _, p = person.body_poses(posture)
    origin = {j.body: j.at for j in file.joints}
    model = file.build(start, TYPICAL_MASS, SEXES[0])
    growth = _growth(model, person)
    top = file.landmarks["vertex"]
    height = p[0, person.body_index(top.body), 1] + growth[top.body] * start * (top.at - origin[top.body])[1]
    soles = [
        p[0, person.body_index(name), 1] - growth[name] * start * origin[name][1] for name in ("calcn_r", "calcn_l")
    ]
    return float(height - np.mean(soles))


def _growth(model: Person, person: Person) -> dict[str, float]:
    """Return body -> factor from joint distances, else its group's."""
    ways: dict[str, list[float]] = {name: [] for name in person.body_names}
    place = {j.child: j.P.p for j in model.joints}
    for joint in person.joints:
        length = float(np.linalg.norm(place[joint.child]))
        if joint.parent != GROUND and length > 0:
            ways[joint.parent].append(float(np.linalg.norm(joint.P.p)) / length)
    by_size: dict[str, list[float]] = {}
    for name, found in ways.items():
        by_size.setdefault(person.sizes.get(name, name), []).extend(found)
    everything = [f for found in ways.values() for f in found]
    common = float(np.mean(everything)) if everything else 1.0
    mean = {size: float(np.mean(found)) if found else common for size, found in by_size.items()}
    return {name: mean[person.sizes.get(name, name)] for name in person.body_names}


# -------- Mass


def _mass(
    person: Person, clip: MarkerClip, wrenches: Sequence[MeasuredWrench], tasks: FitTasks
) -> tuple[float | None, str]:
    """Return the mass [kg] and a note, or None and the reason."""
    if not wrenches:
        return None, "no forces"
    if clip.n_frames < SHORTEST:
        return None, "too few frames"
    q = fit(person, clip.positions, clip.labels, tasks, _PLAIN).q
    com = centre_of_mass(person, q)
    up = wrenches[0].normal / np.linalg.norm(wrenches[0].normal)
    a = differentiate(clip.timestamps, com, min(CUTOFF, 0.45 * clip.rate)).acceleration @ up
    force = np.zeros(clip.n_frames)
    for wrench in (w.zeroed() for w in wrenches):
        at = wrench.low_passed(min(CUTOFF, 0.45 / float(np.median(np.diff(wrench.times))))).resampled(clip.timestamps)
        force += at.force @ up
    known = np.isfinite(force + a)
    mass, frames = mass_by_forces(force[known], GRAVITY + a[known], clip.rate)
    if mass is None:
        return None, "the plates never carry the whole person for long enough"
    return mass, (
        f"{mass:.1f} kg by the plates: vertical force over g and the acceleration of the centre of mass, in "
        f"{frames} frames in which they carry the whole person"
    )


def centre_of_mass(person: Person, q: np.ndarray) -> np.ndarray:
    """Return the centre of mass (T, 3) [m]."""
    R, p = person.body_poses(q)
    mass = np.array([b.mass for b in person.bodies])
    local = np.array([b.com for b in person.bodies])
    at = p + np.einsum("tbij,bj->tbi", R, local)
    return np.asarray(np.einsum("b,tbi->ti", mass, at) / mass.sum())


def mass_by_forces(force: np.ndarray, gravity: np.ndarray, rate: float) -> tuple[float | None, int]:
    """Return the mass [kg] by impulse over fully loaded frames, and their number.

    A foot off the plates lowers force / gravity: the search starts at the highest frequent value.

    Args:
        force: (T,) vertical, all plates [N].
        gravity: (T,) g plus acceleration of the centre of mass [m/s^2].
        rate: [Hz].
    """
    firm = gravity > 0.8 * GRAVITY
    ratio = force[firm] / gravity[firm]
    values = np.sort(ratio[(ratio > MASS[0]) & (ratio < MASS[1])])
    if not len(values):
        return None, 0
    grid = np.exp(np.arange(np.log(values[0]), np.log(values[-1]) + 0.01, 0.01))
    counts = np.searchsorted(values, grid * (1 + WHOLE)) - np.searchsorted(values, grid * (1 - WHOLE))
    near = np.lib.stride_tricks.sliding_window_view(np.pad(counts, PEAK), 2 * PEAK + 1).max(axis=1)
    peaks = np.flatnonzero((counts == near) & (counts >= max(LEAST * rate, SHARE * counts.max())))
    if not len(peaks):
        return None, 0
    mass = float(grid[peaks[-1]])
    for _ in range(5):
        whole = np.abs(force - mass * gravity) < UNEXPLAINED * mass * GRAVITY
        if whole.sum() < LEAST * rate:
            return None, 0
        mass = float(force[whole].sum() / gravity[whole].sum())
    return mass, int(whole.sum())
