"""A claim of the source about angular momentum, the rule by which it is judged, and what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from humanoid_control.ik.momentum_study.lab import Lab
from humanoid_control.imitation.study.finding import FAILS, HOLDS, OPEN, Part, decide

__all__ = ["FAILS", "HOLDS", "OPEN", "Claim", "Judgement", "Part", "decide", "lower_by"]


@dataclass(frozen=True)
class Claim:
    """A statement as an experiment.

    Attributes:
        name: T-27 to T-35 of the specification, or 'ours'.
        statement: in our words, with the source's number.
        rule: when it holds and when it cannot be decided.
        experiment: measures, part by part.
        reason: the most likely cause where it does not hold.
    """

    name: str
    statement: str
    rule: str
    experiment: Callable[[Lab], list[Part]]
    reason: str = ""

    def judge(self, lab: Lab) -> Judgement:
        """Run the experiment: the claim fails with any part, and is open while any is open."""
        parts = self.experiment(lab)
        verdicts = {p.verdict for p in parts}
        verdict = FAILS if FAILS in verdicts else OPEN if OPEN in verdicts or not parts else HOLDS
        seen = [p.seen for p in parts if p.seen]
        reasons = [self.reason] * bool(verdict == FAILS and self.reason) + seen
        return Judgement(self, tuple(parts), verdict, "; ".join(reasons))


@dataclass(frozen=True)
class Judgement:
    """What a claim came to on one robot; `reason` may be empty."""

    claim: Claim
    parts: tuple[Part, ...]
    verdict: str
    reason: str


def lower_by(value: float, reference: float) -> float:
    """How much lower a value is than a reference [%], rounded for the report."""
    return round(100.0 * (1.0 - value / reference), 1)
