"""Analysis of a recorded motion: from markers and force plates to joint angles and moments.

The steps are fit, filter with derivatives, assignment of forces to feet, inverse dynamics. Moments are NaN where forces
do not explain the motion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from humanoid_control.errors import ClipError, first_few
from humanoid_control.human.calibration import calibrate
from humanoid_control.human.derivatives import SHORTEST, SmoothMotion, check_cutoff, differentiate
from humanoid_control.human.dynamics import (
    PLATE_VARIANCE,
    WeightedForces,
    acceleration_variance,
    inverse_dynamics,
    noise_gain,
    weighted_inverse_dynamics,
)
from humanoid_control.human.forces.plate_assignment import FootLoads, assign_plates
from humanoid_control.human.forces.wrenches import MeasuredWrench, check_same_gravity
from humanoid_control.human.forward_tracking import Tracking, TrackingSettings, track_recording
from humanoid_control.human.ik_setup import FitTasks
from humanoid_control.human.kinematics import axis_directions
from humanoid_control.human.marker_fit import LEAST_SHARE, Fit, FitSettings, fit, match_markers, root_coordinates
from humanoid_control.human.model import Person
from humanoid_control.mocap import MarkerClip

FOOT_WORDS = re.compile(r"calcn|foot|toes?|talus|hindfoot|forefoot", re.I)
SIDES = {"right": re.compile(r"(^|_|\.)r($|_|\.)|right", re.I), "left": re.compile(r"(^|_|\.)l($|_|\.)|left", re.I)}
CARRIES = ("calcn", "foot", "hindfoot")  # words for the body of a foot that carries the load, in order of preference
UNEXPLAINED = 0.2  # of the weight: a larger vertical root force means a contact without a plate
GOOD_RESIDUAL = 0.05  # of the weight (Hicks et al. 2015)
LEAST_SEEN = 0.25  # of the followed markers: frames with fewer count as filled in, not as measured
FAR_TRUNK = 0.05  # [m] a larger correction of the trunk's centre of mass is implausible
FREE_ROOT = 6  # coordinates of a free root
FRAMES_OF_UP = 25  # frames used to find the upward axis


@dataclass(frozen=True)
class AnalysisSettings:
    """Settings of an analysis.

    Attributes:
        cutoff: of coordinates and forces [Hz]; 6 for walking, 12 to 15 for running.
        plate_variance: of the plates at the root [N^2, N^2 m^2]; inf: accelerations as measured.
        offset: delay of the force clock [s].
        tracking: forward tracking; None: off.
    """

    cutoff: float = 6.0
    plate_variance: float = PLATE_VARIANCE
    offset: float = 0.0
    fit: FitSettings = field(default_factory=FitSettings)
    tracking: TrackingSettings | None = None


@dataclass(frozen=True, eq=False)
class Analysis:
    """Results of an analysis.

    Attributes:
        clip: in the axes of the person.
        motion: filtered q (T, n) with derivatives.
        tau: (T, n) generalised forces [N m, N]; NaN: unexplained.
        residual_before: (T, 6) of the root before the correction by plates.
        residual: (T, 6) of the root after it.
        loads: plate forces by foot, or None.
        carriers: foot -> body under load.
        guesses: assumptions that affect the results.
        tracking: forward-tracked motion, or None.
    """

    clip: MarkerClip
    person: Person
    fit: Fit
    motion: SmoothMotion
    tau: np.ndarray
    residual_before: np.ndarray
    residual: np.ndarray
    loads: FootLoads | None
    carriers: dict[str, str]
    settings: AnalysisSettings
    warnings: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()
    tracking: Tracking | None = None

    @property
    def times(self) -> np.ndarray:
        """(T,) on the recording's clock [s]."""
        return self.clip.timestamps

    @property
    def root(self) -> list[int]:
        """Indices of the root coordinates in q."""
        return root_coordinates(self.person)

    @property
    def weight(self) -> float:
        """Weight of the person [N]."""
        return self.person.mass * float(np.linalg.norm(self.person.gravity))

    @cached_property
    def up(self) -> np.ndarray:
        """(3,) unit vector against gravity."""
        return upward(self.person)

    @cached_property
    def explained(self) -> np.ndarray:
        """(T,) True in frames with moments."""
        return np.isfinite(self.tau).all(axis=1)


def analyse(
    person: Person,
    clip: MarkerClip,
    wrenches: Sequence[MeasuredWrench] = (),
    tasks: FitTasks | None = None,
    settings: AnalysisSettings | None = None,
    calibrate_by: Sequence[MarkerClip] = (),
) -> Analysis:
    """Analyse a motion.

    Args:
        person: with the subject's size and mass.
        clip: any axis up; it is turned to the person's.
        wrenches: of all plates, clip axes; none: angles only.
        calibrate_by: clips with the same markers and axes, such as a static trial.

    Raises:
        ClipError: if markers or vertical differ from the person's, or clip and forces do not overlap.
        ConfigError: if the cut-off or a task is invalid.
    """
    if tasks is None:
        _check_same_set(person, clip)
    tasks, settings = tasks or FitTasks(), settings or AnalysisSettings()
    check_cutoff(settings.cutoff, clip.rate)
    said = [*person.notes, *clip.warnings]
    said += _said_of_time(clip, tasks.time_range)
    person = with_free_root(person)
    if calibrate_by:
        person, found_sizes = calibrated(person, calibrate_by, tasks)
        said.append(found_sizes)
    clip, wrenches, turn = upright(person, clip, wrenches)
    said += _said_of_axes(turn, person)
    free = len(root_coordinates(person)) == FREE_ROOT
    found = fit(person, clip.positions, clip.labels, tasks, replace(settings.fit, root=bool(wrenches) and free))
    said += found.warnings
    seen, of_markers = _seen_enough(person, clip, tasks)
    said += of_markers
    motion = differentiate(clip.timestamps, found.q, settings.cutoff)
    said += motion.warnings
    T, n = found.q.shape
    nothing = np.full((T, n), np.nan), np.full((T, 6), np.nan), np.full((T, 6), np.nan)
    if not wrenches or T < SHORTEST or not free:
        short = f"'{clip.name}' has {T} frame(s): moments need at least {SHORTEST}, so only angles are computed"
        bound = f"the root of {person.name} has {len(root_coordinates(person))} coordinates: moments need {FREE_ROOT}, "
        why_none = short if T < SHORTEST else f"{bound}so only angles are computed"
        said.append(why_none if wrenches else "no forces given: only angles, no moments")
        return Analysis(clip, person, found, motion, *nothing, None, {}, settings, tuple(said))
    zeroed = [w.zeroed() for w in wrenches]
    zeroed = [replace(w, times=w.times + settings.offset) for w in zeroed]
    check_same_gravity(upward(person), zeroed, clip.name, ", ".join(w.name for w in zeroed))
    feet, carriers = feet_of(person)
    points = sole_points(person, found.q, feet)
    bodies = {body: foot for foot, names in feet.items() for body in names}
    loads = assign_plates(zeroed, clip.timestamps, points, bodies)
    said += [s for w in zeroed for s in w.warnings] + list(loads.warnings)
    given = _frame_loads(loads, carriers, settings.cutoff, motion.times)
    tau, before, after = _moments(person, found, motion, given, settings, (seen, clip.rate))
    known = np.isfinite(tau).all(axis=1)
    if not known.all():
        said.append(
            f"{(~known).sum()} of {T} frames have no moments: a contact without a plate, or outside the force recording"
        )
    tracking = None
    if settings.tracking is not None and known.any():
        tracking = _tracked(person, found, motion, given, settings, (known, clip.rate))
        moved = 0.0 if tracking is None else float(np.linalg.norm(tracking.constants.moved))
        if moved > FAR_TRUNK:
            said.append(
                f"tracking moves the centre of mass of the trunk by {1e3 * moved:.0f} mm: check the mass, the size of "
                "the model and the forces, or leave out tracking"
            )
    out = Analysis(clip, person, found, motion, tau, before, after, loads, carriers, settings, tuple(said))
    return replace(out, tracking=tracking)


def _said_of_time(clip: MarkerClip, asked: tuple[float, float] | None) -> tuple[str, ...]:
    """Warn if a task set requests only a part of the clip."""
    first, last = clip.timestamps[[0, -1]].tolist()
    if asked is None or (asked[0] <= first + 0.5 / clip.rate and asked[1] >= last - 0.5 / clip.rate):
        return ()
    return (f"the task set asks for {asked[0]:g} to {asked[1]:g} s: all frames, {first:g} to {last:g} s, are analysed",)


def _check_same_set(person: Person, clip: MarkerClip) -> None:
    """Reject a clip with few common labels: they may mean other places."""
    pairs = match_markers(person, clip.labels, FitTasks())
    seen = np.isfinite(clip.positions).all(axis=2).mean(axis=0)
    common = float(seen[[k for k, _ in pairs]].sum())
    if common < LEAST_SHARE * seen.sum() and len(pairs) < LEAST_SHARE * len(person.markers):
        used = {k for k, _ in pairs}
        unused = [label for k, label in enumerate(clip.labels) if k not in used]
        raise ClipError(
            f"'{clip.name}': {len(pairs)} of its {len(clip.labels)} labels are among the {len(person.markers)} of "
            f"{person.name} ({first_few([clip.labels[k] for k in sorted(used)])}), not {first_few(unused)}: "
            "give a model with these markers, rename them, or list those to follow in a task set (--setup, tasks)"
        )


def _seen_enough(person: Person, clip: MarkerClip, tasks: FitTasks) -> tuple[np.ndarray, list[str]]:
    """Return frames (T,) with enough markers, and notes."""
    pairs = match_markers(person, clip.labels, tasks)
    count = np.isfinite(clip.positions[:, [k for k, _ in pairs]]).all(axis=2).sum(axis=1)
    least = max(3, int(np.ceil(LEAST_SEEN * len(pairs))))
    seen, said = count >= least, []
    if not seen.all():
        said.append(
            f"{int((~seen).sum())} of {len(seen)} frames show fewer than {least} of {len(pairs)} markers: angles are "
            "filled in there, and there are no moments"
        )
    used = {k for k, _ in pairs}
    unused = [label for k, label in enumerate(clip.labels) if k not in used]
    if unused:
        said.append(f"{len(used)} of {len(clip.labels)} labels are followed; not followed: {first_few(unused)}")
    return seen, said


def _frame_loads(loads: FootLoads, carriers: dict[str, str], cutoff: float, times: np.ndarray) -> dict[str, np.ndarray]:
    """Return filtered wrenches (T, 6) by foot body at the frames; NaN: unknown."""
    out = {}
    for foot, wrench in loads.wrenches.items():
        at = wrench.low_passed(min(cutoff, 0.45 / np.median(np.diff(wrench.times)))).resampled(times)
        out[carriers[foot]] = np.hstack([at.force, at.moment])
    return out


def _tracked(
    person: Person,
    found: Fit,
    motion: SmoothMotion,
    given: dict[str, np.ndarray],
    settings: AnalysisSettings,
    of: tuple[np.ndarray, float],
) -> Tracking | None:
    """Track known frames forward; `of`: these (T,), rate [Hz]."""
    known, rate = of
    assert settings.tracking is not None
    rows = np.arange(len(known))
    variance = (
        acceleration_variance(found.std, rate, settings.cutoff),
        root_variance(found, rows, rate, settings.cutoff),
    )
    parts = motion.values, motion.velocity, motion.acceleration
    return track_recording(person, motion.times, parts, given, variance, known, settings.tracking)


def _moments(
    person: Person,
    found: Fit,
    motion: SmoothMotion,
    loads: dict[str, np.ndarray],
    settings: AnalysisSettings,
    of: tuple[np.ndarray, float],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return tau (T, n), residuals (T, 6) before and after; NaN: unexplained."""
    seen, rate = of
    T, n = found.q.shape
    tau, before, after = np.full((T, n), np.nan), np.full((T, 6), np.nan), np.full((T, 6), np.nan)
    known = np.isfinite(motion.acceleration).all(axis=1) & seen
    for wrench in loads.values():
        known &= np.isfinite(wrench).all(axis=1)
    if not known.any():
        return tau, before, after
    parts = motion.values[known], motion.velocity[known], motion.acceleration[known]
    given = {body: w[known] for body, w in loads.items()}
    plain = inverse_dynamics(person, *parts, given)
    rows = np.flatnonzero(known)
    # A vertical force at the root belongs to a contact without a plate.
    vertical = root_force(person, parts[0], plain.residual) @ upward(person)
    good = np.abs(vertical) < UNEXPLAINED * person.mass * np.linalg.norm(person.gravity)
    rows = rows[good]
    before[rows] = plain.residual[good]
    if not len(rows):
        return tau, before, after
    if np.isfinite(settings.plate_variance):
        variance = acceleration_variance(found.std[rows], rate, settings.cutoff)
        forces: WeightedForces = weighted_inverse_dynamics(
            person,
            (parts[0][good], parts[1][good], parts[2][good]),
            {body: w[good] for body, w in given.items()},
            variance,
            settings.plate_variance,
            root_variance(found, rows, rate, settings.cutoff),
        )
        tau[rows], after[rows] = forces.tau, forces.residual
    else:
        tau[rows], after[rows] = plain.tau[good], plain.residual[good]
    return tau, before, after


def root_variance(found: Fit, rows: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Return the covariance (rows, 6, 6) of root accelerations; undetermined rows use the nearest frame."""
    assert found.root_covariance is not None
    known = np.flatnonzero(np.isfinite(found.root_covariance).all(axis=(1, 2)))
    if not len(known):
        raise ClipError("no frame shows enough markers for the uncertainty of the root: moments need more markers")
    nearest = known[np.argmin(np.abs(rows[:, None] - known[None]), axis=1)]
    return found.root_covariance[nearest] * noise_gain(rate, cutoff)


# -------- The person


def calibrated(person: Person, clips: Sequence[MarkerClip], tasks: FitTasks) -> tuple[Person, str]:
    """Return the calibrated person and a note; ClipError if clips share no labels."""
    labels = [label for label in clips[0].labels if all(label in c.labels for c in clips)]
    if not labels:
        raise ClipError(f"{' and '.join(c.name for c in clips)} have no marker in common: nothing to calibrate")
    # Equal numbers of frames: a short static trial counts as much as a long motion.
    most = max(c.n_frames for c in clips)
    rows = [np.linspace(0, c.n_frames - 1, most).round().astype(int) for c in clips]
    markers = np.concatenate([c.select(labels).positions[k] for c, k in zip(clips, rows, strict=True)])
    found = calibrate(person, markers, labels, tasks)
    size = [found.factors[b.name] for b in person.bodies if b.mass > 0]
    before, after = (1e3 * float(np.sqrt(np.nanmean(f.rms**2))) for f in (found.before, found.after))
    farthest = max(found.moved, key=lambda name: found.moved[name])
    text = (
        f"calibrated: segments {min(size):.2f} to {max(size):.2f} times the model's, {farthest} moved by "
        f"{1e3 * found.moved[farthest]:.0f} mm, markers {before:.1f} mm off before and {after:.1f} mm after; the mass "
        "stays the model's"
    )
    return found.person, text


def upward(person: Person) -> np.ndarray:
    """Return the unit vector (3,) against gravity."""
    return -person.gravity / np.linalg.norm(person.gravity)


def with_free_root(person: Person) -> Person:
    """Return the person with an unbounded root."""
    root = {person.names[k] for k in root_coordinates(person)}
    free = tuple(replace(c, clamped=False) if c.name in root else c for c in person.all_coordinates)
    return replace(person, all_coordinates=free)


def root_force(person: Person, q: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return the root force (T, 3) [N], ground axes, from the residual (T, 6)."""
    joint = person.joints[0]
    named = {a.coordinate: joint.P.R @ a.vector for a in joint.translations}
    names = [person.names[k] for k in root_coordinates(person)]
    axes = np.array([named.get(name, np.zeros(3)) for name in names])
    return residual @ axes


def root_wrench(person: Person, q: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return force and moment (T, 6) about the root origin, ground axes [N, N m], from the residual (T, 6).

    At gimbal lock it has least norm.
    """
    W, d = axis_directions(person.chain.table, person.check(q))
    chain, root = person.chain.record, root_coordinates(person)
    A = np.zeros((len(W), len(root), 6))
    for k in range(chain.first[0], chain.first[1]):
        if chain.coordinate[k] >= 0:
            side = slice(3, 6) if chain.turns[k] else slice(0, 3)
            A[:, root.index(int(chain.coordinate[k])), side] += d[:, k, None] * W[:, k]
    right = np.atleast_2d(residual)[..., None]
    if A.shape[1] == 6 and (np.abs(np.linalg.det(A)) > 1e-6).all():
        return np.asarray(np.linalg.solve(A, right)[..., 0])
    return np.asarray((np.linalg.pinv(A, rcond=1e-6) @ right)[..., 0])


def upright(
    person: Person, clip: MarkerClip, wrenches: Sequence[MeasuredWrench]
) -> tuple[MarkerClip, list[MeasuredWrench], np.ndarray]:
    """Return clip and forces with the person's up, and the rotation (3, 3)."""
    trunk = trunk_direction(person, clip.positions, clip.labels)
    k = int(np.argmax(np.abs(trunk)))
    up = np.sign(trunk[k]) * np.eye(3)[k]
    target = upward(person)
    if up @ target > 0.99:
        return clip, list(wrenches), np.eye(3)
    turn = turning_to_up(up, target)
    return replace(clip, positions=clip.positions @ turn.T), [w.rotated(turn) for w in wrenches], turn


def _said_of_axes(turn: np.ndarray, person: Person) -> list[str]:
    """Return a sentence if the clip was turned."""
    up = turn.T @ upward(person)
    axis = f"{'+' if up.sum() > 0 else '-'}{'xyz'[int(np.argmax(np.abs(up)))]}"
    return [] if np.array_equal(turn, np.eye(3)) else [f"up is {axis} in the clip: turned to the model's axes"]


def trunk_direction(person: Person, markers: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """Return the mean trunk direction (3,), pelvis upward, in the axes of markers (T, M, 3) [m]."""
    pairs = match_markers(person, labels, FitTasks())
    counts = np.isfinite(markers[:, [k for k, _ in pairs]]).all(axis=2).sum(axis=1)
    frames = np.argsort(-counts, kind="stable")[:: max(1, len(counts) // FRAMES_OF_UP)][:FRAMES_OF_UP]
    found = fit(person, markers[np.sort(frames)], labels, None, FitSettings(swaps=False, outliers=0))
    R_rest = person.body_poses(person.rest)[0][0, 0]
    R = person.body_poses(found.q)[0][:, 0]
    return np.asarray((R @ (R_rest.T @ upward(person))).mean(axis=0))


def turning_to_up(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the smallest rotation (3, 3) from a to b."""
    if a @ b < -0.99:
        other = np.eye(3)[int(np.argmin(np.abs(a)))]
        return 2 * np.outer(other, other) - np.eye(3)
    v = np.cross(a, b)
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + cross + cross @ cross / (1 + a @ b)


# -------- Feet


def feet_of(person: Person) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return foot -> bodies, and foot -> body under load; ClipError without feet."""
    feet: dict[str, tuple[str, ...]] = {}
    carriers = {}
    for side, pattern in SIDES.items():
        names = tuple(n for n in person.body_names if FOOT_WORDS.search(n) and pattern.search(n))
        if not names:
            continue
        feet[side] = names
        first = [n for word in CARRIES for n in names if word in n.lower()]
        carriers[side] = first[0] if first else names[0]
    if not feet:
        raise ClipError(f"{person.name} has no body named as a foot: forces cannot be assigned")
    return feet, carriers


def sole_points(person: Person, q: np.ndarray, feet: dict[str, tuple[str, ...]]) -> dict[str, np.ndarray]:
    """Return foot -> points (T, k, 3) [m]."""
    R, p = person.body_poses(q)
    out = {}
    for side, names in feet.items():
        points = [p[:, person.body_index(n)] for n in names]
        for marker in person.markers:
            if marker.body in names:
                b = person.body_index(marker.body)
                points.append(p[:, b] + R[:, b] @ np.asarray(marker.place))
        out[side] = np.stack(points, axis=1)
    return out
