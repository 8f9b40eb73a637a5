"""Conclusions of Dube 2012 as experiments: each holds, does not hold, or cannot be decided, with its numbers.

```python
from humanoid_control.mocap import find_body_points, load_clip
from evidence.studies.dube2012 import judge_hypotheses

body = find_body_points(load_clip("dance").crop(6.0, 9.0))
for finding in judge_hypotheses([body], ["H2", "H7"]):
    print(finding.hypothesis.statement, finding.verdict, finding.reason)
```
"""

from evidence.studies.dube2012.hypotheses import HYPOTHESES, judge_hypotheses
from evidence.studies.report import FAILS, HOLDS, OPEN, Finding, Hypothesis, Part

__all__ = ["FAILS", "HOLDS", "HYPOTHESES", "OPEN", "Finding", "Hypothesis", "Part", "judge_hypotheses"]
