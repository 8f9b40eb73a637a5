"""Fit of a person to the markers of a clip.

Outliers are down-weighted (Huber), swapped left and right labels are detected, angles are unwrapped, gimbal lock is
reported.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ClipError, SizeError, first_few
from humanoid_control.files import mirrored_name
from humanoid_control.human.elements import GROUND
from humanoid_control.human.ik_setup import FitTasks
from humanoid_control.human.kinematics import make_pose, marker_positions
from humanoid_control.human.marker_equations import lay_out_markers, make_equations
from humanoid_control.human.marker_solver import (
    FitProblem,
    FitRecord,
    FrameData,
    MarkerFrameResults,
    fit_frames,
    root_covariances,
)
from humanoid_control.human.model import Person
from humanoid_control.mocap import plain_label

REASONS = ("converged", "no step lowers the cost", "too many steps", "no marker seen")
GIMBAL = 0.05  # volume of a joint's three axes below which its angles are uncertain
LEAST_OUTLIER = 1e-3  # [m]
SWAP_RESIDUAL = 0.03  # [m] smallest residual of both markers of a swapped pair
SWAP_GAIN = 0.5  # largest remaining share of the cost after undoing a swap
MIRRORED_RMS, MIRRORED_GAIN = 0.05, 0.25  # [m] and share of the cost, for a whole clip
SMALLEST, LARGEST = 1 / 3, 3.0  # accepted size of the clip relative to the person
UNSEEN = 10.0  # standard deviation [rad or m] of an undetermined coordinate
LEAST_SHARE = 0.5  # of labels, weighted by visibility, below which equal names may mean other places


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit.

    Attributes:
        tolerance: last step [rad, m]; 1e-4 suffices live.
        most_steps: of a frame.
        hold: weight of undetermined coordinates, relative to the mean [m^2].
        starts: random postures in the first frame and after jumps of the cost.
        spread: standard deviation of starts [rad].
        outliers: residual in medians from which the weight falls; 0: never.
        swaps: detect swapped sides.
        root: compute the root covariance.
    """

    tolerance: float = 1e-6
    most_steps: int = 100
    hold: float = 1e-8
    starts: int = 20
    spread: float = 0.5
    outliers: float = 5.0
    swaps: bool = True
    seed: int = 1
    root: bool = False


@dataclass(frozen=True, eq=False)
class Fit:
    """Angles of a clip.

    Attributes:
        q: (T, n) [rad, m].
        std: (T, n); inf: undetermined, 0: locked.
        labels: of the M markers used.
        residuals: (T, M) [m]; NaN: not visible.
        weights: (T, M) final; 0: not visible.
        cost: (T,).
        steps: (T,).
        reason: (T,) index in `REASONS`.
        restarted: (T,) several starts were tried.
        warnings: findings and assumptions.
        root_covariance: (T, 6, 6) in the order of `root_coordinates`; NaN: undetermined; None: not requested.
        rms: (T,) [m].
        worst: (T,) [m].
        worst_marker: (T,) index in `labels`; -1: none.
    """

    person: Person
    q: np.ndarray
    std: np.ndarray
    labels: tuple[str, ...]
    residuals: np.ndarray
    weights: np.ndarray
    cost: np.ndarray
    steps: np.ndarray
    reason: np.ndarray
    restarted: np.ndarray
    warnings: tuple[str, ...] = ()
    root_covariance: np.ndarray | None = None
    rms: np.ndarray = field(init=False)
    worst: np.ndarray = field(init=False)
    worst_marker: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        seen = np.isfinite(self.residuals)
        r = np.where(seen, self.residuals, 0.0)
        rms = np.sqrt((r**2).sum(1) / np.maximum(seen.sum(1), 1))
        object.__setattr__(self, "rms", np.where(seen.any(1), rms, np.nan))
        object.__setattr__(self, "worst", np.where(seen.any(1), r.max(1, initial=0.0), np.nan))
        object.__setattr__(self, "worst_marker", np.where(seen.any(1), r.argmax(1), -1))

    @property
    def unseen(self) -> np.ndarray:
        """(T, n) True for undetermined coordinates, which keep their value."""
        return self.std > UNSEEN


def fit(
    person: Person,
    markers: np.ndarray,
    labels: Sequence[str],
    tasks: FitTasks | None = None,
    settings: FitSettings | None = None,
) -> Fit:
    """Fit a person to the markers of a clip.

    Args:
        person: with the same up axis.
        markers: (T, M, 3) [m]; NaN: not visible.
        labels: unknown ones are omitted.
        tasks: default: all weights 1.

    Raises:
        SizeError: if shapes do not match.
        UnknownNameError: if a coordinate is unknown.
        ClipError: if fewer than three markers match, or the size differs.
    """
    tasks, settings = tasks or FitTasks(), settings or FitSettings()
    tasks.check(person)
    markers = np.asarray(markers, dtype=float)
    if markers.ndim != 3 or markers.shape[1:] != (len(labels), 3):
        raise SizeError(f"markers must be (frames, {len(labels)} labels, 3), got {markers.shape}")
    pairs = match_markers(person, labels, tasks)
    columns, own = [k for k, _ in pairs], [m for _, m in pairs]
    return ClipFit(person, markers[:, columns], own, tasks, settings).run()


def match_markers(person: Person, labels: Sequence[str], tasks: FitTasks) -> list[tuple[int, int]]:
    """Return pairs of column and marker by name, else without subject and case; ClipError below three."""
    exact = {label: k for k, label in enumerate(labels)}
    plain = {plain_label(label): k for k, label in reversed(list(enumerate(labels)))}
    found = []
    for m, marker in enumerate(person.markers):
        column = exact.get(marker.name, plain.get(plain_label(marker.name), -1))
        if column >= 0 and tasks.markers.get(marker.name, tasks.others) > 0:
            found.append((column, m))
    if len(found) < 3:
        have, theirs = first_few(list(labels), 3), first_few([m.name for m in person.markers], 3)
        raise ClipError(
            f"{len(found)} of the clip's {len(labels)} markers ({have}) are {person.name}'s ({theirs}): "
            "rename them, or give a model with these markers"
        )
    return found


class ClipFit:
    """Kernel data of one clip, and passes over it."""

    def __init__(
        self, person: Person, markers: np.ndarray, own: list[int], tasks: FitTasks, settings: FitSettings
    ) -> None:
        self.person, self.settings, self.warnings = person, settings, list[str]()
        self.markers = [person.markers[m] for m in own]
        self.labels = tuple(m.name for m in self.markers)
        self.bodies = np.array([person.body_index(m.body) for m in self.markers], dtype=np.int64)
        self.places = np.array([m.place for m in self.markers], dtype=float)
        seen = np.isfinite(markers).all(axis=2)
        self.given = np.array([tasks.markers.get(name, tasks.others) for name in self.labels])
        self.targets = np.ascontiguousarray(np.where(seen[..., None], markers, 0.0))
        self.weights = np.where(seen, self.given, 0.0)
        self._check_size(markers)
        self.triples = rotation_triples(person)
        self.problem, self.reference = self._problem(tasks)
        T, M, n = len(markers), len(own), len(self.problem.layout.entry)
        self.results = MarkerFrameResults(
            np.zeros((T, person.n)), np.zeros(T), np.zeros(T), np.zeros((T, n)), np.zeros((T, M)),
            np.ones((T, len(self.triples))), np.zeros((T, 4), dtype=np.int64),
        )  # fmt: skip

    def _check_size(self, markers: np.ndarray) -> None:
        """Reject a clip of implausible size."""
        place = marker_positions(self.person.chain.table, self.person.rest[None], self.bodies, self.places)[0]
        counts = np.isfinite(markers).all(axis=2).sum(axis=1)
        frame = int(np.argmax(counts))
        seen = np.isfinite(markers[frame]).all(axis=1)
        if seen.sum() < 3:
            raise ClipError(f"no frame shows three of {self.person.name}'s markers: nothing can be fitted")
        sizes = [np.sqrt(((x - x.mean(0)) ** 2).sum(1).mean()) for x in (markers[frame][seen], place[seen])]
        ratio = float(sizes[0] / max(sizes[1], 1e-12))
        if not SMALLEST < ratio < LARGEST:
            told = f"{ratio:.0f} times too large" if ratio > 1 else f"{1 / max(ratio, 1e-12):.0f} times too small"
            raise ClipError(f"the clip is {told} for {self.person.name}: are the markers in millimetres, or the model?")

    def _problem(self, tasks: FitTasks) -> tuple[FitProblem, np.ndarray]:
        person, settings, chain = self.person, self.settings, self.person.chain.record
        free = np.array([not c.locked for c in person.coordinates], dtype=bool)
        lower, upper = bounds_of(person)
        layout = lay_out_markers(chain, self.bodies, self.places, free, (lower, upper))
        total = float(self.weights.sum(axis=1).mean())
        u, reference = np.zeros(person.n), np.tile(person.rest, (1, 1))
        for name, task in tasks.coordinates.items():
            k, values = person.index(name), np.atleast_1d(task.value)
            if len(values) not in (1, len(self.targets)):
                raise SizeError(f"the task of '{name}' has {len(values)} values for {len(self.targets)} frames")
            if len(values) > 1 and len(reference) == 1:
                reference = np.repeat(reference, len(values), axis=0)
            u[k], reference[:, k] = task.weight * (total if task.relative else 1.0), values
        root = np.array([c in root_coordinates(person) for c in layout.entry], dtype=bool)
        turning = person.rotational & ~np.isin(np.arange(person.n), root_coordinates(person))
        rng = np.random.default_rng(settings.seed)
        mean = float(self.weights[self.weights > 0].mean()) if (self.weights > 0).any() else 1.0
        problem = FitProblem(
            layout,
            np.ascontiguousarray(u[layout.entry]),
            settings.hold * mean,
            settings.tolerance,
            settings.most_steps,
            person.rest.copy(),
            root,
            turning,
            headings(person).copy(),
            settings.spread * rng.standard_normal((settings.starts, person.n)),
            np.array(list(self.triples.values()), dtype=np.int64).reshape(-1, 3),
        )
        return problem, np.ascontiguousarray(reference[:, layout.entry])

    def record(self) -> Packed[FitRecord]:
        """Return the kernel record with the present weights and targets."""
        chain, layout = self.person.chain.record, self.problem.layout
        data = FrameData(self.targets, np.ascontiguousarray(self.weights), self.reference)
        work = make_pose(chain), make_equations(chain, layout)
        return Packed(FitRecord(chain, self.problem, data, self.results, *work))

    def solve(self, frames: np.ndarray, anew: bool) -> None:
        """Solve frames with the present weights and targets."""
        record = self.record()  # keep the record alive while the kernel runs
        fit_frames(record.table, frames.astype(np.int64), anew)

    def root_covariance(self) -> np.ndarray:
        """Return the root covariance (T, 6, 6)."""
        out = np.full((len(self.targets), 6, 6), np.nan)
        record = self.record()
        root_covariances(record.table, out)
        root = root_coordinates(self.person)
        if len(root) == 6:  # the kernel uses the order of q
            order = np.argsort(np.argsort(root))
            out = out[:, order][:, :, order]
        return out

    def run(self) -> Fit:
        """Run all passes."""
        T = len(self.targets)
        self.solve(np.arange(T), True)
        if self.settings.swaps:
            self._undo_swaps()
            self._tell_mirrored()
        if self.settings.outliers > 0:
            self._weigh_outliers()
        self._tell_unseen()
        q = unwrapped(self.person, self.results.q)
        self._tell_gimbal()
        std = np.zeros_like(q)
        std[:, self.problem.layout.entry] = np.sqrt(self.results.variance)
        info = self.results.info
        slow = np.flatnonzero((info[:, 1] == 1) | (info[:, 1] == 2))
        if len(slow):
            self.warnings.append(f"{len(slow)} frame(s) did not converge, the first is {slow[0]}: check its markers")
        return Fit(
            self.person, q, std, self.labels, self.results.residual, self.weights, self.results.cost,
            info[:, 0].copy(), info[:, 1].copy(), info[:, 2] == 1, tuple(self.warnings),
            self.root_covariance() if self.settings.root else None,
        )  # fmt: skip

    # -------- Faulty markers

    def _medians(self) -> np.ndarray:
        """Return the median residual (M,) of each marker; 0: never visible."""
        r = np.ma.masked_invalid(self.results.residual)
        return np.asarray(np.ma.median(r, axis=0).filled(0.0))

    def _weigh_outliers(self) -> None:
        """Reduce the weights of outliers in at most two passes."""
        limit = np.maximum(self.settings.outliers * self._medians(), LEAST_OUTLIER)
        plain = np.where(self.weights > 0, self.given, 0.0)
        ever = np.zeros(len(self.labels), dtype=int)
        for _ in range(2):
            r = np.nan_to_num(self.results.residual)
            far = r > limit
            frames = np.flatnonzero(far.any(axis=1) | (self.weights < plain).any(axis=1))
            if not len(frames):
                break
            self.weights = np.where(far, plain * limit / np.maximum(r, limit), plain)
            self.solve(frames, False)
            ever = np.maximum(ever, far.sum(axis=0))
        if ever.any():
            told = [f"{self.labels[m]} in {ever[m]}" for m in np.argsort(-ever) if ever[m]]
            self.warnings.append(f"markers far from their usual position have less weight: {first_few(told)} frame(s)")

    def _undo_swaps(self) -> None:
        """Swap sides where this halves the cost."""
        limit = np.maximum(self.settings.outliers * self._medians(), SWAP_RESIDUAL)
        far = np.nan_to_num(self.results.residual) > limit
        for a, b in self._sides():
            frames = np.flatnonzero(far[:, a] & far[:, b])
            if not len(frames):
                continue
            before, kept = self.results.cost[frames].copy(), self._kept(frames)
            self._exchange(frames, a, b)
            self.solve(frames, False)
            worse = self.results.cost[frames] > SWAP_GAIN * before
            back = frames[worse]
            self._exchange(back, a, b)
            for ours, theirs in zip(self.results, kept, strict=True):
                ours[back] = theirs[worse]
            if len(back) < len(frames):
                count = len(frames) - len(back)
                self.warnings.append(f"{self.labels[a]} and {self.labels[b]} were swapped in {count} frame(s)")

    def _exchange(self, frames: np.ndarray, a: int, b: int) -> None:
        """Swap two markers and their weights."""
        for array in (self.targets, self.weights):
            array[frames, a], array[frames, b] = array[frames, b].copy(), array[frames, a].copy()

    def _tell_mirrored(self) -> None:
        """Warn if swapped sides fit the whole clip far better."""
        r = self.results.residual
        seen = np.isfinite(r)
        if not seen.any() or np.sqrt((r[seen] ** 2).mean()) < MIRRORED_RMS:
            return
        order = np.arange(len(self.labels))
        for a, b in self._sides():
            order[a], order[b] = b, a
        frame = np.array([int(np.argmax(seen.sum(axis=1)))])
        before, kept, targets = self.results.cost[frame][0], self._kept(frame), self.targets
        self.targets = np.ascontiguousarray(targets[:, order])
        self.solve(frame, True)
        if self.results.cost[frame][0] < MIRRORED_GAIN * before:
            self.warnings.append("left and right labels seem swapped throughout: swap them, or turn off mirroring")
        self.targets = targets
        for ours, theirs in zip(self.results, kept, strict=True):
            ours[frame] = theirs

    def _kept(self, frames: np.ndarray) -> list[np.ndarray]:
        return [array[frames].copy() for array in self.results]

    def _sides(self) -> list[tuple[int, int]]:
        """Return pairs of left and right markers."""
        place = {name: k for k, name in enumerate(self.labels)}
        pairs = ((k, place.get(other_side(name), -1)) for name, k in place.items())
        return [(k, j) for k, j in pairs if j > k]

    # -------- Warnings

    def _tell_unseen(self) -> None:
        never = np.isinf(self.results.variance).all(axis=0) | (self.results.variance > UNSEEN**2).all(axis=0)
        names = [self.person.names[c] for c in self.problem.layout.entry[never]]
        if names and len(names) < len(never):
            self.warnings.append(f"{first_few(names)} without markers: held at rest")

    def _tell_gimbal(self) -> None:
        used = {self.person.body_names[b] for b in self.problem.layout.used}
        for name, volume in zip(self.triples, np.abs(self.results.volume).T, strict=True):
            near = np.flatnonzero(volume < GIMBAL)
            if len(near) and name in used:
                self.warnings.append(
                    f"the joint of {name} is near gimbal lock in {len(near)} frame(s), the first is {near[0]}: its "
                    "first and third angle are ill-defined there"
                )


# -------- Helpers


def other_side(name: str) -> str:
    """Return the name on the other side (R.Knee, r_knee, RKNE, knee_r)."""
    mirrored = mirrored_name(name)
    if mirrored != name:
        return mirrored
    swap = {"R": "L", "L": "R", "r": "l", "l": "r"}
    return swap[name[0]] + name[1:] if name and name[0] in swap else name


def bounds_of(person: Person) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds (n,); infinite without clamping."""
    lower = np.array([c.lower if c.clamped else -np.inf for c in person.coordinates])
    return lower, np.array([c.upper if c.clamped else np.inf for c in person.coordinates])


def rotation_triples(person: Person) -> dict[str, list[int]]:
    """Return body -> three rotation axes with separate coordinates."""
    chain, out = person.chain.record, {}
    for b, name in enumerate(person.body_names):
        axes = [a for a in range(chain.first[b], chain.first[b + 1]) if chain.turns[a] and chain.coordinate[a] >= 0]
        if len({int(chain.coordinate[a]) for a in axes}) == 3 == len(axes):
            out[name] = axes
    return out


def root_coordinates(person: Person) -> list[int]:
    """Return the coordinate indices of the joint to the ground."""
    joint = next(j for j in person.joints if j.parent == GROUND)
    names = [a.coordinate for a in (*joint.rotations, *joint.translations) if a.coordinate in person.names]
    return [person.index(name) for name in dict.fromkeys(names)]


@functools.lru_cache(maxsize=8)
def headings(person: Person) -> np.ndarray:
    """Return rest postures (K, n) with the root turned by quarters."""
    turns = [c for c in root_coordinates(person) if person.rotational[c] and not person.coordinates[c].locked]
    quarters = np.array(np.meshgrid(*[[0.0, np.pi / 2, -np.pi / 2, np.pi]] * len(turns), indexing="ij"))
    grid = np.tile(person.rest, (quarters[0].size if turns else 1, 1))
    if turns:
        grid[:, turns] = quarters.reshape(len(turns), -1).T
    grid = np.clip(grid, *bounds_of(person))
    R, _ = person.body_poses(grid)
    _, first = np.unique(np.round(R[:, 0].reshape(len(grid), -1), 6) + 0.0, axis=0, return_index=True)
    return np.ascontiguousarray(grid[np.sort(first)])


def unwrapped(person: Person, q: np.ndarray) -> np.ndarray:
    """Return coordinates without jumps of full turns; bounded ones stay."""
    out = q.copy()
    lower, upper = bounds_of(person)
    for k in np.flatnonzero(person.rotational & np.isinf(lower) & np.isinf(upper)):
        angle = np.unwrap(q[:, k])
        out[:, k] = angle - 2 * np.pi * np.round(np.median(angle) / (2 * np.pi))
    return out
