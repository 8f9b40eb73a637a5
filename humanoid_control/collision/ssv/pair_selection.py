"""Selection of segment pairs that may touch, by random motion, with a reason for each exclusion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from humanoid_control.collision.ssv.distance import SegmentPairs
from humanoid_control.collision.ssv.model import Frame, SsvModel
from humanoid_control.collision.ssv.segments import Segment, SegmentPair, expand

SAME_BODY, NEIGHBOURS, AT_REST, ALWAYS, NEVER = "same body", "neighbours", "at rest", "always", "never"
STARTS = 4  # start postures of a descent, each the nearest of its share of the samples
STEP, LEAST_STEP, STEPS = 0.5, 1e-3, 60  # [rad or m] first and last step, and largest number of steps, of a descent


@dataclass(frozen=True)
class Mechanism:
    """Mechanism for the sampling.

    Attributes:
        ancestor_mask: as `Robot.ancestor_mask` (njoints, nv).
        rest: posture without collisions (n,).
        first: Jacobian column of the first coordinate.
        place: coordinates (n,) -> reusable poses (J, 12) and Jacobian (6, nv).
    """

    parents: Sequence[int]
    ancestor_mask: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rest: np.ndarray
    first: int
    place: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Sampling:
    """Settings of the decision by random postures.

    Attributes:
        postures: number; in every second one half of the coordinates are at a limit.
        always: share of touching postures above which pairs are excluded.
        never: least distance above which pairs are excluded [m].
    """

    postures: int = 2000
    seed: int = 0
    always: float = 0.95
    never: float = 0.02


@dataclass(frozen=True)
class LeftOut:
    """Excluded pair of segments.

    Attributes:
        reason: SAME_BODY, NEIGHBOURS, AT_REST, ALWAYS or NEVER.
    """

    first: str
    second: str
    reason: str
    detail: str


@dataclass(frozen=True)
class PairChoice:
    """Selected and excluded pairs."""

    pairs: tuple[SegmentPair, ...]
    left_out: tuple[LeftOut, ...]

    def explain(self) -> list[str]:
        """Return one line for each excluded pair, with the reason."""
        return [f"{x.first} - {x.second}: {x.detail}" for x in self.left_out]


def choose_pairs(
    segments: Iterable[Segment], frames: Mapping[str, Frame], mechanism: Mechanism, sampling: Sampling | None = None
) -> PairChoice:
    """Select the pairs of segments that can touch but do not always."""
    sampling = sampling or Sampling()
    plain = expand(segments)
    candidates, left_out = _apart_by_joints(plain, frames, mechanism.parents)
    model = SsvModel.build(plain, frames, candidates)
    distance = SegmentPairs(model, mechanism.ancestor_mask)
    distance.place(mechanism.place(mechanism.rest)[0])
    at_rest = distance.nearest().distance
    touching, least = np.zeros(len(candidates)), np.full((STARTS, len(candidates)), np.inf)
    nearest = np.tile(mechanism.rest, (STARTS, len(candidates), 1))
    for n, x in enumerate(random_postures(mechanism, sampling)):
        distance.place(mechanism.place(x)[0])
        d, batch = distance.nearest().distance, n % STARTS
        touching += d < 0
        nearest[batch, d < least[batch]] = x
        least[batch] = np.minimum(least[batch], d)
    kept = []
    for k, pair in enumerate(candidates):
        share = touching[k] / max(sampling.postures, 1)
        names = pair.first, pair.second
        if at_rest[k] < 0:
            left_out.append(LeftOut(*names, AT_REST, f"they overlap by {-1000 * at_rest[k]:.0f} mm at rest"))
        elif share >= sampling.always:
            detail = f"they touch in {100 * share:.0f} % of {sampling.postures} random postures"
            left_out.append(LeftOut(*names, ALWAYS, detail))
        elif least[:, k].min() <= sampling.never:
            kept.append(pair)
        else:
            found = min(descend(distance, mechanism, k, x) for x in nearest[:, k])
            if found <= sampling.never:
                kept.append(pair)
                continue
            detail = f"never closer than {1000 * found:.0f} mm, from {sampling.postures} random postures and descents"
            left_out.append(LeftOut(*names, NEVER, detail))
    return PairChoice(tuple(kept), tuple(left_out))


def _apart_by_joints(
    segments: tuple[Segment, ...], frames: Mapping[str, Frame], parents: Sequence[int]
) -> tuple[list[SegmentPair], list[LeftOut]]:
    """Return the pairs with two or more joints between them, and the others."""
    candidates, left_out = [], []
    for a, b in combinations(segments, 2):
        i, j = frames[a.link][0], frames[b.link][0]
        if i == j:
            left_out.append(LeftOut(a.name, b.name, SAME_BODY, "no joint moves one relative to the other"))
        elif parents[i] == j or parents[j] == i:
            left_out.append(LeftOut(a.name, b.name, NEIGHBOURS, "one joint connects them"))
        else:
            candidates.append(SegmentPair(a.name, b.name))
    return candidates, left_out


def random_postures(mechanism: Mechanism, sampling: Sampling) -> Iterable[np.ndarray]:
    """Yield coordinates (n,) within the limits."""
    rng = np.random.default_rng(sampling.seed)
    for k in range(sampling.postures):
        x = rng.uniform(mechanism.lower, mechanism.upper)
        if k % 2:
            side = rng.integers(0, 4, len(x))
            x = np.where(side == 0, mechanism.lower, np.where(side == 1, mechanism.upper, x))
        yield x


def descend(distance: SegmentPairs, mechanism: Mechanism, pair: int, x: np.ndarray) -> float:
    """Return the least distance of a pair [m] by descent within the limits."""
    step, columns = STEP, slice(mechanism.first, mechanism.first + len(x))

    def at(y: np.ndarray) -> tuple[float, np.ndarray]:
        poses, J = mechanism.place(y)
        distance.place(poses)
        near = distance.nearest()
        return float(near.distance[pair]), near.gradient(J)[pair, columns]

    d, slope = at(x)
    for _ in range(STEPS):
        free = np.where((slope > 0) & (x <= mechanism.lower) | (slope < 0) & (x >= mechanism.upper), 0.0, slope)
        size = float(np.linalg.norm(free))
        if step < LEAST_STEP or size < 1e-9 or d < 0:
            break
        y = np.clip(x - step / size * free, mechanism.lower, mechanism.upper)
        d_y, slope_y = at(y)
        if d_y < d:
            x, d, slope, step = y, d_y, slope_y, 1.5 * step
        else:
            step *= 0.4
    return d
