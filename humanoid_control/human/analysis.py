"""Analysis of a recorded motion: markers and force plates in, joint angles, moments and what is left unexplained out.

The sequence is that of gait laboratories: fit, low-pass with derivatives, forces given to feet, inverse dynamics. What
the forces do not explain gives no moments: there they are NaN, and it is said.
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
CARRIES = ("calcn", "foot", "hindfoot")  # the body of a foot on which the load acts, the first that is there
UNEXPLAINED = 0.2  # of the weight: vertical force of the root beyond which a contact was not measured
GOOD_RESIDUAL = 0.05  # of the weight (Hicks et al. 2015)
LEAST_SEEN = 0.25  # of the markers that are followed: a frame that shows fewer is not measured, but filled in
FAR_TRUNK = 0.05  # [m] by which no model of the right size has a wrong centre of mass
FREE_ROOT = 6  # coordinates of a root that moves freely
FRAMES_OF_UP = 25  # frames that tell which way is up


@dataclass(frozen=True)
class AnalysisSettings:
    """Settings of an analysis.

    Args:
        cutoff: of the low-pass filter of coordinates and of forces [Hz]: 6 for walking, 12 to 15 for running.
        plate_variance: of the root's force and moment by the plates [N^2, N^2 m^2]; infinite to leave accelerations
            as they were measured.
        offset: by which the clock of the forces is behind that of the clip [s].
        fit: of the markers.
        tracking: also track the motion forward by its forces; None: not.
    """

    cutoff: float = 6.0
    plate_variance: float = PLATE_VARIANCE
    offset: float = 0.0
    fit: FitSettings = field(default_factory=FitSettings)
    tracking: TrackingSettings | None = None


@dataclass(frozen=True, eq=False)
class Analysis:
    """Results of a motion.

    Args:
        clip: the markers, in the axes of the person.
        person: that was fitted.
        fit: of the markers.
        motion: q with its derivatives, filtered (T, n).
        tau: (T, n) generalised forces [N m, N], the root's first six among them as far as the plates leave them; NaN
            where contacts are not explained, and everywhere without forces.
        residual_before, residual: (T, 6) of the root, before and after the correction by the plates; NaN as tau.
        loads: forces of the plates by foot, at the frames; None without forces.
        carriers: body on which the load of each foot acts.
        warnings: findings and assumptions, one sentence each.
        guesses: assumptions without a measurement; the results depend on them.
        tracking: the motion that its forces explain; None where it was not asked for, or no forces are known.
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
        """Coordinates of the root in q."""
        return root_coordinates(self.person)

    @property
    def weight(self) -> float:
        """Of the person [N]."""
        return self.person.mass * float(np.linalg.norm(self.person.gravity))

    @cached_property
    def up(self) -> np.ndarray:
        """(3,) unit vector against gravity."""
        return upward(self.person)

    @cached_property
    def explained(self) -> np.ndarray:
        """(T,) frames whose forces are known."""
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
        person: of the size and mass of who was recorded.
        clip: markers in any of the axes in use; it is turned so that up is that of the person.
        wrenches: of all plates, in the axes of the clip; none gives angles alone.
        tasks: weights of the fit.
        settings: by default those of `AnalysisSettings`.
        calibrate_by: clips of the same markers and axes, such as a static trial or the clip itself, by which sizes of
            the segments and places of the markers are found; none: the person is taken as it is.

    Raises:
        ClipError: markers that are not the person's, or fewer than half of them and no tasks that name them; a clip and
            forces with no time or no vertical in common.
        ConfigError: a cut-off beyond half the rate, bad tasks.
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
        short = f"'{clip.name}' has {T} frame(s): moments need at least {SHORTEST}, so there are angles alone"
        bound = f"the root of {person.name} has {len(root_coordinates(person))} coordinates: moments need {FREE_ROOT}, "
        why_none = short if T < SHORTEST else f"{bound}so there are angles alone"
        said.append(why_none if wrenches else "no forces were given: angles alone, no moments")
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
            f"{(~known).sum()} of {T} frames have no moments: a contact that no plate measured, or outside their record"
        )
    tracking = None
    if settings.tracking is not None and known.any():
        tracking = _tracked(person, found, motion, given, settings, (known, clip.rate))
        moved = 0.0 if tracking is None else float(np.linalg.norm(tracking.constants.moved))
        if moved > FAR_TRUNK:
            said.append(
                f"tracking moves the centre of mass of the trunk by {1e3 * moved:.0f} mm: check the mass, the size of "
                "the model and the forces, or leave tracking out"
            )
    out = Analysis(clip, person, found, motion, tau, before, after, loads, carriers, settings, tuple(said))
    return replace(out, tracking=tracking)


def _said_of_time(clip: MarkerClip, asked: tuple[float, float] | None) -> tuple[str, ...]:
    """A warning where a task set asks for less than the whole clip."""
    first, last = clip.timestamps[[0, -1]].tolist()
    if asked is None or (asked[0] <= first + 0.5 / clip.rate and asked[1] >= last - 0.5 / clip.rate):
        return ()
    return (f"the task set asks for {asked[0]:g} to {asked[1]:g} s: all frames, {first:g} to {last:g} s, are analysed",)


def _check_same_set(person: Person, clip: MarkerClip) -> None:
    """Refuse a clip and a model that have few labels in common: the same names may then mean other places."""
    pairs = match_markers(person, clip.labels, FitTasks())
    seen = np.isfinite(clip.positions).all(axis=2).mean(axis=0)
    common = float(seen[[k for k, _ in pairs]].sum())
    if common < LEAST_SHARE * seen.sum() and len(pairs) < LEAST_SHARE * len(person.markers):
        used = {k for k, _ in pairs}
        unused = [label for k, label in enumerate(clip.labels) if k not in used]
        raise ClipError(
            f"'{clip.name}': {len(pairs)} of its {len(clip.labels)} labels are among the {len(person.markers)} of "
            f"{person.name} ({first_few([clip.labels[k] for k in sorted(used)])}), not {first_few(unused)}: "
            "give a model with these markers, rename them, or name those to follow in a task set (--setup, tasks)"
        )


def _seen_enough(person: Person, clip: MarkerClip, tasks: FitTasks) -> tuple[np.ndarray, list[str]]:
    """Frames (T,) that show enough markers for a posture, and sentences about the share of the clip that is used."""
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
    """Wrenches (T, 6) on the bodies of the feet at the frames, filtered as the motion is; NaN where nobody measured."""
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
    """Forward tracking of the frames that are known; of: these (T,), and the rate [Hz]."""
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
    """tau (T, n), residual before and after (T, 6); NaN where the forces do not explain the motion.

    Args:
        person, found, motion, loads, settings: of the analysis.
        of: frames (T,) that show enough markers, and the rate [Hz].
    """
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
    # What lifts the root: the contact that nobody measured.
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
    """(rows, 6, 6) variance of the accelerations of the root's coordinates; a frame whose markers do not tell has that
    of the nearest that do."""
    assert found.root_covariance is not None
    known = np.flatnonzero(np.isfinite(found.root_covariance).all(axis=(1, 2)))
    if not len(known):
        raise ClipError("no frame shows enough markers to tell how certain the root is: moments need more markers")
    nearest = known[np.argmin(np.abs(rows[:, None] - known[None]), axis=1)]
    return found.root_covariance[nearest] * noise_gain(rate, cutoff)


# -------- The person


def calibrated(person: Person, clips: Sequence[MarkerClip], tasks: FitTasks) -> tuple[Person, str]:
    """The person with sizes and markers of who was recorded, and a sentence about what was found.

    Raises:
        ClipError: as `calibrate`; clips without common labels.
    """
    labels = [label for label in clips[0].labels if all(label in c.labels for c in clips)]
    if not labels:
        raise ClipError(f"{' and '.join(c.name for c in clips)} have no marker in common: nothing to calibrate by")
    # As many frames of each, so that a short static trial counts as much as a long motion.
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
    """(3,) unit vector against gravity."""
    return -person.gravity / np.linalg.norm(person.gravity)


def with_free_root(person: Person) -> Person:
    """The person whose root has no bounds: models bound its angles to half a turn or less, recordings do not."""
    root = {person.names[k] for k in root_coordinates(person)}
    free = tuple(replace(c, clamped=False) if c.name in root else c for c in person.all_coordinates)
    return replace(person, all_coordinates=free)


def root_force(person: Person, q: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """(T, 3) force of the root [N] in the ground: of its three translations; residual (T, 6) as `inverse_dynamics` has
    it."""
    joint = person.joints[0]
    named = {a.coordinate: joint.P.R @ a.vector for a in joint.translations}
    names = [person.names[k] for k in root_coordinates(person)]
    axes = np.array([named.get(name, np.zeros(3)) for name in names])
    return residual @ axes


def root_wrench(person: Person, q: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """(T, 6) force and moment about the root's origin [N, N m] in the ground that are the residual (T, 6) of the root's
    coordinates; near gimbal lock the shortest moment."""
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
    """Clip and forces in axes whose up is the person's, and the rotation (3, 3) to these: the trunk tells which way."""
    trunk = trunk_direction(person, clip.positions, clip.labels)
    k = int(np.argmax(np.abs(trunk)))
    up = np.sign(trunk[k]) * np.eye(3)[k]
    target = upward(person)
    if up @ target > 0.99:
        return clip, list(wrenches), np.eye(3)
    turn = turning_to_up(up, target)
    return replace(clip, positions=clip.positions @ turn.T), [w.rotated(turn) for w in wrenches], turn


def _said_of_axes(turn: np.ndarray, person: Person) -> list[str]:
    """A sentence where the clip was turned."""
    up = turn.T @ upward(person)
    axis = f"{'+' if up.sum() > 0 else '-'}{'xyz'[int(np.argmax(np.abs(up)))]}"
    return [] if np.array_equal(turn, np.eye(3)) else [f"up is {axis} in the clip: turned to the model's axes"]


def trunk_direction(person: Person, markers: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """(3,) mean direction of the trunk, from the pelvis upwards, in the axes of markers (T, M, 3) [m].

    Raises:
        ClipError: markers that are not the person's, or of another size.
    """
    pairs = match_markers(person, labels, FitTasks())
    counts = np.isfinite(markers[:, [k for k, _ in pairs]]).all(axis=2).sum(axis=1)
    frames = np.argsort(-counts, kind="stable")[:: max(1, len(counts) // FRAMES_OF_UP)][:FRAMES_OF_UP]
    found = fit(person, markers[np.sort(frames)], labels, None, FitSettings(swaps=False, outliers=0))
    R_rest = person.body_poses(person.rest)[0][0, 0]
    R = person.body_poses(found.q)[0][:, 0]
    return np.asarray((R @ (R_rest.T @ upward(person))).mean(axis=0))


def turning_to_up(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smallest rotation (3, 3) of the unit vector a to b."""
    if a @ b < -0.99:
        other = np.eye(3)[int(np.argmin(np.abs(a)))]
        return 2 * np.outer(other, other) - np.eye(3)
    v = np.cross(a, b)
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + cross + cross @ cross / (1 + a @ b)


# -------- Feet


def feet_of(person: Person) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Bodies of each foot by side, and the one that carries the load.

    Raises:
        ClipError: no body is named as one of a foot.
    """
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
        raise ClipError(f"{person.name} has no body that is named as a foot: forces cannot be given to one")
    return feet, carriers


def sole_points(person: Person, q: np.ndarray, feet: dict[str, tuple[str, ...]]) -> dict[str, np.ndarray]:
    """Points (T, k, 3) [m] of each foot: its markers, and the origins of its bodies."""
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
