"""Calibration of segment sizes (left equals right) and marker places to a clip.

The unknowns are factors of body groups, marker places, and coordinates of some frames, which are eliminated (Schur
complement):

    S = sum_f (H_tt - H_tq H_qq^-1 H_qt),    s = sum_f (g_t - H_tq H_qq^-1 g_q),    theta += S^-1 s
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.files import mirrored_name
from humanoid_control.human.elements import Marker
from humanoid_control.human.ik_setup import FitTasks
from humanoid_control.human.kinematics import Chain, make_pose, place
from humanoid_control.human.marker_fit import Fit, FitSettings, bounds_of, fit
from humanoid_control.human.model import Person

SMALLEST, LARGEST = 0.5, 1.6  # accepted factors relative to the given model


@dataclass(frozen=True)
class CalibrationSettings:
    """Settings of a calibration; the last four are standard deviations.

    Attributes:
        frames: number, spread over the clip.
        noise: markers from a rigid body [m].
        anatomical: places of anatomical markers [m].
        tracking: places of other markers [m].
        size: log factor of a segment from the mean.
    """

    frames: int = 40
    rounds: int = 3
    noise: float = 0.01
    anatomical: float = 0.005
    tracking: float = 0.02
    size: float = 0.2


@dataclass(frozen=True, eq=False)
class Calibration:
    """Result of a calibration.

    Attributes:
        person: scaled, with moved markers.
        factors: by body.
        moved: marker -> distance from its scaled place [m].
        before: fit of the given person.
        after: fit of the result.
    """

    person: Person
    factors: Mapping[str, float]
    moved: Mapping[str, float]
    frames: np.ndarray
    before: Fit
    after: Fit


def calibrate(
    person: Person,
    markers: np.ndarray,
    labels: Sequence[str],
    tasks: FitTasks | None = None,
    settings: CalibrationSettings | None = None,
    used: np.ndarray | None = None,
) -> Calibration:
    """Estimate segment sizes and marker places from one or several concatenated clips.

    Masses stay; set them with `Person.with_mass`.

    Args:
        markers: (T, M, 3) [m]; NaN: not visible.
        tasks: marker weights.
        used: frame indices; default: spread over the clip.

    Raises:
        ClipError: as `fit`, or if a factor is implausible.
        ConfigError: if a setting is not positive.
    """
    settings = settings or CalibrationSettings()
    for name in ("frames", "rounds", "noise", "anatomical", "tracking", "size"):
        if not getattr(settings, name) > 0:
            raise ConfigError(f"{name} of the calibration must be positive, got {getattr(settings, name)}")
    markers = np.asarray(markers, dtype=float)
    used = spread_frames(markers, settings.frames) if used is None else used
    chosen, plain = markers[used], FitSettings(outliers=0.0, swaps=False, tolerance=1e-4)
    before = last = fit(person, chosen, labels, tasks, plain)
    first = person
    person = person.with_markers([m for m in person.markers if m.name in before.labels])
    group = body_groups(person)
    total = np.ones(len(person.bodies))
    home = {m.name: np.asarray(m.place, dtype=float) for m in person.markers}
    for _ in range(settings.rounds):
        person, change = _step(person, last, (chosen, labels, tasks or FitTasks()), settings, (group, total, home))
        total = total * change
        home = {m.name: home[m.name] * change[person.body_index(m.body)] for m in person.markers}
        last = fit(person, chosen, labels, tasks, plain)
    moved = {m.name: float(np.linalg.norm(m.place - home[m.name])) for m in person.markers}
    factors = dict(zip(person.body_names, total.tolist(), strict=True))
    result = _with_all_markers(first, person, factors)
    return Calibration(result, factors, moved, used, before, last)


def spread_frames(markers: np.ndarray, most: int) -> np.ndarray:
    """Return frames over the clip that miss few markers."""
    seen = np.isfinite(markers).all(axis=2).sum(axis=1)
    good = np.flatnonzero(seen >= max(3, 0.8 * np.median(seen)))
    if not len(good):
        raise ClipError("no frame shows three markers: nothing can be calibrated")
    return good[np.unique(np.linspace(0, len(good) - 1, most).round().astype(int))]


def body_groups(person: Person) -> np.ndarray:
    """Return size groups (bodies,): `Person.sizes`, else left with right; unmarked bodies join a neighbour."""
    if person.sizes:
        named = [person.sizes.get(name, name) for name in person.body_names]
        return np.array([list(dict.fromkeys(named)).index(n) for n in named], dtype=np.int64)
    marked = {m.body for m in person.markers}
    parent = {j.child: j.parent for j in person.joints}
    leader: dict[str, str] = {}
    for name in person.body_names:
        children = [c for c in person.body_names if parent[c] == name and c in marked]
        leader[name] = name if name in marked else children[0] if children else leader.get(parent[name], name)
    names = [min(leader[n], mirrored_name(leader[n])) for n in person.body_names]
    order = list(dict.fromkeys(names))
    return np.array([order.index(n) for n in names], dtype=np.int64)


def _step(
    person: Person,
    last: Fit,
    measured: tuple[np.ndarray, Sequence[str], FitTasks],
    settings: CalibrationSettings,
    state: tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]],
) -> tuple[Person, np.ndarray]:
    """Return the person after one Gauss-Newton round, and its factors (bodies,)."""
    (markers, labels, tasks), (group, total, home) = measured, state
    place_of = {m.name: k for k, m in enumerate(person.markers)}
    own = [person.markers[place_of[name]] for name in last.labels]
    bodies = np.array([person.body_index(m.body) for m in own], dtype=np.int64)
    places = np.array([m.place for m in own])
    lengths = np.array([not c.rotational for c in person.coordinates])
    J, D, R = columns(person.chain.table, last.q, (bodies, places), group, lengths)
    lower, upper = bounds_of(person)
    J = np.where(((last.q <= lower) | (last.q >= upper))[:, None, None], 0.0, J)  # a coordinate at its bound is held
    x = person.with_markers(own).marker_positions(last.q)
    target = np.stack([markers[:, _column(labels, m.name)] for m in own], axis=1)
    r = np.where(last.weights[..., None] > 0, target - x, 0.0)
    mean = float(last.weights[last.weights > 0].mean())
    root = np.sqrt(last.weights / mean) / settings.noise
    free = np.array([not c.locked for c in person.coordinates])
    held, off_rest = _pulls(person, tasks, last)
    pulls = np.sqrt(held / mean)[free] / settings.noise, off_rest[:, free]
    S, s = _eliminated(J[..., free], D, R, (r, root), pulls)
    G = D.shape[-1]
    sigma = np.array([settings.anatomical if m.anatomical else settings.tracking for m in own]).repeat(3)
    off = np.concatenate([home[m.name] for m in own]) - places.ravel()
    add_size_prior(S, s, np.log([total[group == g][0] for g in range(G)]), settings.size)
    S[G:, G:] += np.diag(1 / sigma**2)
    s[G:] += off / sigma**2
    theta = np.linalg.solve(S, s)
    # theta[:G] are changes of log size, limited in a round against overshoot.
    change = np.exp(np.clip(theta[:G], -0.5, 0.5))[group]
    _check_factors(person, total * change)
    scaled = person.scaled(dict(zip(person.body_names, change.tolist(), strict=True)))
    better = {m.name: p for m, p in zip(own, places + theta[G:].reshape(-1, 3), strict=True)}
    grown = [
        replace(m, place=better[m.name] * change[person.body_index(m.body)]) if m.name in better else n
        for m, n in zip(person.markers, scaled.markers, strict=True)
    ]
    return scaled.with_markers(grown), change


def add_size_prior(S: np.ndarray, s: np.ndarray, log_size: np.ndarray, sigma: float) -> None:
    """Add the prior that pulls the factors to their common mean."""
    G = len(log_size)
    # Projection onto deviations from the mean; 1e-6 keeps S regular when no marker shows the overall size.
    P = (np.eye(G) - 1.0 / G) / sigma**2
    S[:G, :G] += P + 1e-6 * np.eye(G)
    s[:G] -= P @ log_size


def _pulls(person: Person, tasks: FitTasks, last: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n,) of coordinate tasks, distances (K, n) to targets."""
    u, off = np.zeros(person.n), np.zeros_like(last.q)
    total = float(last.weights.sum(axis=1).mean())
    for name, task in tasks.coordinates.items():
        k = person.index(name)
        if np.ndim(task.value) == 0:
            u[k], off[:, k] = task.weight * (total if task.relative else 1.0), task.value - last.q[:, k]
    return u, off


def _eliminated(
    J: np.ndarray,
    D: np.ndarray,
    R: np.ndarray,
    measured: tuple[np.ndarray, np.ndarray],
    pulls: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return normal equations of factors and places.

    Args:
        J: (K, M, 3, n) by coordinates.
        D: (K, M, 3, G) by factors.
        R: (K, M, 3, 3) by own place.
        measured: residuals (K, M, 3), roots of weights (K, M).
        pulls: roots of task weights (n,), distances to targets (K, n).
    """
    (r, root), (pull, off) = measured, pulls
    K, M, _, G = D.shape
    size = G + 3 * M
    S, s = np.zeros((size, size)), np.zeros(size)
    A = np.zeros((M, 3, size))
    for f in range(K):
        w = root[f][:, None, None]
        A[:, :, :G] = w * D[f]
        for m in range(M):
            A[m, :, G + 3 * m : G + 3 * m + 3] = root[f, m] * R[f, m]
        B, a = (w * J[f]).reshape(3 * M, -1), (root[f][:, None] * r[f]).ravel()
        flat = A.reshape(3 * M, size)
        # A coordinate without markers has a zero column: damping keeps H regular and the coordinate unchanged.
        H = B.T @ B + np.diag(pull**2)
        H[np.diag_indices_from(H)] += 1e-9 * max(1.0, float(H.diagonal().max()))
        solved = np.linalg.solve(H, B.T @ flat)
        # Schur complement of the coordinates of this frame.
        S += flat.T @ (flat - B @ solved)
        s += flat.T @ a - solved.T @ (B.T @ a + pull**2 * off[f])
    return (S + S.T) / 2, s


def _column(labels: Sequence[str], name: str) -> int:
    exact = list(labels)
    if name in exact:
        return exact.index(name)
    return [label.rpartition(":")[2].strip().casefold() for label in labels].index(name.casefold())


def _check_factors(person: Person, factors: np.ndarray) -> None:
    for name, factor in zip(person.body_names, factors, strict=True):
        if not SMALLEST <= factor <= LARGEST:
            raise ClipError(
                f"'{name}' would be {factor:.2f} times that of {person.name}, beyond {SMALLEST} to {LARGEST}: "
                "are the markers in millimetres, or on other bodies than in the model?"
            )


def _with_all_markers(first: Person, person: Person, factors: Mapping[str, float]) -> Person:
    """Return the calibrated person with absent markers scaled."""
    own = {m.name: m for m in person.markers}
    out: list[Marker] = [
        own.get(m.name, replace(m, place=factors[m.body] * np.asarray(m.place))) for m in first.markers
    ]
    return person.with_markers(out)


# -------- Compiled


@kernel(allocates=True)
def columns(
    table: Table[Chain], q: np.ndarray, markers: tuple[np.ndarray, np.ndarray], group: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return marker derivatives by coordinates (K, M, 3, n), factors (K, M, 3, G) and places (K, M, 3, 3).

    Args:
        q: (K, n).
        markers: bodies (M,), places (M, 3).
        lengths: (n,) True: length, not scaled.
    """
    chain = unpack(table, Chain)
    pose, nb, G = make_pose(chain), len(chain.parent), group.max() + 1
    bodies, places = markers
    K, M = len(q), len(bodies)
    J, D, rotations = np.zeros((K, M, 3, chain.n)), np.zeros((K, M, 3, G)), np.zeros((K, M, 3, 3))
    size = np.zeros((nb, 3, G))
    for f in range(K):
        place(chain, q[f], pose)
        # size[b]: derivative of the origin of body b by the log factors. The offset from parent origin to pivot scales
        # with the parent, the offset from pivot to origin with the body.
        for b in range(nb):
            up = chain.parent[b]
            size[b] = 0.0
            if up >= 0:
                size[b] += size[up]
            for i in range(3):
                if up >= 0:
                    size[b, i, group[up]] += pose.pivot[b, i] - pose.p[up, i]
                size[b, i, group[b]] += pose.p[b, i] - pose.pivot[b, i]
            # A translation by a length coordinate does not scale: remove it from the offset to the pivot.
            for a in range(chain.first[b], chain.first[b + 1]):
                c = chain.coordinate[a]
                if not chain.turns[a] and c >= 0 and lengths[c] and up >= 0:
                    value = pose.f[a]
                    for i in range(3):
                        size[b, i, group[up]] -= value * pose.W[a, i]
        for m in range(M):
            b = bodies[m]
            R, r = pose.R[b], places[m]
            rotations[f, m] = R
            D[f, m] = size[b]
            x = pose.p[b] + R[:, 0] * r[0] + R[:, 1] * r[1] + R[:, 2] * r[2]
            # The place of the marker scales with its own body.
            for i in range(3):
                D[f, m, i, group[b]] += x[i] - pose.p[b, i]
            # Every joint up to the ground moves the marker: f' W x (x - O) for a rotation, f' W for a translation.
            while b >= 0:
                for a in range(chain.first[b], chain.first[b + 1]):
                    c, W, o = chain.coordinate[a], pose.W[a], pose.pivot[b]
                    if c < 0:
                        continue
                    if chain.turns[a]:
                        J[f, m, 0, c] += pose.d1[a] * (W[1] * (x[2] - o[2]) - W[2] * (x[1] - o[1]))
                        J[f, m, 1, c] += pose.d1[a] * (W[2] * (x[0] - o[0]) - W[0] * (x[2] - o[2]))
                        J[f, m, 2, c] += pose.d1[a] * (W[0] * (x[1] - o[1]) - W[1] * (x[0] - o[0]))
                    else:
                        for i in range(3):
                            J[f, m, i, c] += pose.d1[a] * W[i]
                b = chain.parent[b]
    return J, D, rotations
