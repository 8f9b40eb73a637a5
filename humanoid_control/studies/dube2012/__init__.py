"""The conclusions of the source as experiments: each holds, does not hold, or cannot be decided, with its numbers."""

from humanoid_control.studies.dube2012.hypotheses import HYPOTHESES, study
from humanoid_control.studies.verdict import FAILS, HOLDS, OPEN, Finding, Hypothesis, Part

__all__ = ["FAILS", "HOLDS", "HYPOTHESES", "OPEN", "Finding", "Hypothesis", "Part", "study"]
