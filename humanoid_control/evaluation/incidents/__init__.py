"""Incident analysis: the first violated quantity of a recorded run, and differences of two runs.

```python
from pathlib import Path

import numpy as np

from humanoid_control.evaluation.incidents import JointStream, RobotStreams, RunStreams, find_violations

# Commands at 200 Hz that cease for half a second; `read_streams` reads such streams from a recording.
t = np.arange(400) / 200 + np.where(np.arange(400) < 200, 0.0, 0.5)
elbow = JointStream(t, t, ("elbow",), np.zeros((400, 1)), np.zeros((400, 1)), np.ones((400, 1), dtype=bool))
run = RunStreams(Path("run"), 2.5, {"": RobotStreams({"joint_commands": elbow})}, {}, "")
print(find_violations(run).headline())
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.evaluation.incidents.checks import find_violations as find_violations
    from humanoid_control.evaluation.incidents.difference import compare_runs as compare_runs
    from humanoid_control.evaluation.incidents.page import timeline_page as timeline_page
    from humanoid_control.evaluation.incidents.streams import JointStream as JointStream
    from humanoid_control.evaluation.incidents.streams import RobotStreams as RobotStreams
    from humanoid_control.evaluation.incidents.streams import RunStreams as RunStreams
    from humanoid_control.evaluation.incidents.streams import read_streams as read_streams
    from humanoid_control.evaluation.incidents.timeline import Timeline as Timeline
    from humanoid_control.evaluation.incidents.timeline import Violation as Violation

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "checks": ["find_violations"],
        "difference": ["compare_runs"],
        "page": ["timeline_page"],
        "streams": ["JointStream", "RobotStreams", "RunStreams", "read_streams"],
        "timeline": ["Timeline", "Violation"],
    },
    public=["compare_runs", "find_violations", "read_streams"],
)
