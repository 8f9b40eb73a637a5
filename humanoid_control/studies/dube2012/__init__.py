"""Conclusions of Dube 2012 as experiments: each holds, does not hold, or cannot be decided, with its numbers.

from humanoid_control.mocap import load_body_points
from humanoid_control.studies.dube2012 import judge_hypotheses

for finding in judge_hypotheses([load_body_points("dance")], ["H2", "H7"]):
    print(finding.hypothesis.statement, finding.verdict, finding.reason)
"""

from humanoid_control.studies.dube2012.hypotheses import HYPOTHESES, judge_hypotheses
from humanoid_control.studies.verdict import FAILS, HOLDS, OPEN, Finding, Hypothesis, Part

__all__ = ["FAILS", "HOLDS", "HYPOTHESES", "OPEN", "Finding", "Hypothesis", "Part", "judge_hypotheses"]
