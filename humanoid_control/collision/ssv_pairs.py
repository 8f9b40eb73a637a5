"""Which pairs of segments to watch, found by moving the mechanism at random, with the reason for each one left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from humanoid_control.collision.ssv_distance import SsvDistance
from humanoid_control.collision.ssv_model import Frame, SsvModel
from humanoid_control.collision.ssv_segments import Segment, SegmentPair, expand

SAME_BODY, NEIGHBOURS, AT_REST, ALWAYS, NEVER = "same body", "neighbours", "at rest", "always", "never"


@dataclass(frozen=True)
class LeftOut:
    """A pair of segments that is not watched.

    Attributes:
        first, second: segments.
        reason: SAME_BODY, NEIGHBOURS, AT_REST, ALWAYS or NEVER.
        detail: in words, with the number that decided.
    """

    first: str
    second: str
    reason: str
    detail: str


@dataclass(frozen=True)
class PairChoice:
    """The pairs to watch, and those left out."""

    pairs: tuple[SegmentPair, ...]
    left_out: tuple[LeftOut, ...]

    def explain(self) -> list[str]:
        """One line for each pair left out: which, and why."""
        return [f"{x.first} - {x.second}: {x.detail}" for x in self.left_out]


@dataclass(frozen=True)
class Sampling:
    """How random postures decide.

    Attributes:
        always: pairs that touch in at least this share of them are left out: their volumes overlap at the joint.
        never: [m] pairs that stay farther apart than this in all of them are left out. Larger is safer, as postures
            nearer than any sampled one exist.
    """

    always: float = 0.95
    never: float = 0.02


def choose_pairs(
    segments: Iterable[Segment],
    frames: Mapping[str, Frame],
    parents: Sequence[int],
    rest: np.ndarray,
    postures: Iterable[np.ndarray],
    sampling: Sampling | None = None,
) -> PairChoice:
    """All pairs of segments but those that cannot, or must, touch.

    Args:
        segments, frames: of `SsvModel.build`.
        parents: joint -> the joint before it.
        rest: (J, 12) poses of the joints where nothing collides: what overlaps there anyway is left out.
        postures: the same at random; each may reuse the array of the one before.
        sampling: thresholds.
    """
    sampling = sampling or Sampling()
    plain = expand(segments)
    joint = [frames[s.link][0] for s in plain]
    candidates, left_out = [], []
    for i, j in combinations(range(len(plain)), 2):
        a, b = plain[i].name, plain[j].name
        if joint[i] == joint[j]:
            left_out.append(LeftOut(a, b, SAME_BODY, "no joint moves one against the other"))
        elif parents[joint[i]] == joint[j] or parents[joint[j]] == joint[i]:
            left_out.append(LeftOut(a, b, NEIGHBOURS, "one joint connects them"))
        else:
            candidates.append(SegmentPair(a, b))
    model = SsvModel.build(plain, frames, candidates)
    distance = SsvDistance(model, np.zeros((max(joint, default=0) + 1, 0)))
    distance.place(rest)
    at_rest = distance.nearest().distance
    touching, least, count = np.zeros(len(candidates)), np.full(len(candidates), np.inf), 0
    for poses in postures:
        distance.place(poses)
        d = distance.nearest().distance
        touching, least, count = touching + (d < 0), np.minimum(least, d), count + 1
    kept = []
    for k, pair in enumerate(candidates):
        share = touching[k] / max(count, 1)
        if at_rest[k] < 0:
            why = LeftOut(pair.first, pair.second, AT_REST, f"they overlap by {-1000 * at_rest[k]:.0f} mm at rest")
        elif share >= sampling.always:
            why = LeftOut(
                pair.first, pair.second, ALWAYS, f"they touch in {100 * share:.0f} % of {count} random postures"
            )
        elif least[k] > sampling.never:
            detail = f"never nearer than {1000 * least[k]:.0f} mm in {count} random postures"
            why = LeftOut(pair.first, pair.second, NEVER, detail)
        else:
            kept.append(pair)
            continue
        left_out.append(why)
    return PairChoice(tuple(kept), tuple(left_out))
