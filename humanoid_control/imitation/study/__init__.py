"""The conclusions of the source as experiments: each holds, does not hold, or cannot be decided, with its numbers."""

from humanoid_control.imitation.study.finding import FAILS, HOLDS, OPEN, Finding, Hypothesis, Part
from humanoid_control.imitation.study.study import HYPOTHESES, study

__all__ = ["FAILS", "HOLDS", "HYPOTHESES", "OPEN", "Finding", "Hypothesis", "Part", "study"]
