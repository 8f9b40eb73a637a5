"""Estimation of a robot's state from measurements.

```python
import numpy as np

from humanoid_control.estimation import JointFilter

joints = JointFilter(["hip", "knee"], bandwidth=30.0)  # [Hz]
joints.update(0.000, np.array([0.10, 0.20]))  # [s], [rad]
joints.update(0.002, np.array([0.11, 0.20]))
print(joints.at(0.003).v)  # [rad/s]
```
"""

from humanoid_control.estimation.clock_offset import ClockOffset, ClockOffsets, ClockSteps
from humanoid_control.estimation.joint_filter import CLOCK_BACK, JointFilter
from humanoid_control.estimation.joint_supervision import (
    JointFault,
    JointFaultKind,
    JointSupervision,
    JointSupervisionLimits,
)
from humanoid_control.estimation.plausibility import EncoderTurns, JointPlausibility, named_twice
from humanoid_control.estimation.robot_supervision import LOST_AFTER, RobotSupervision, Verdict

__all__ = [
    "CLOCK_BACK",
    "LOST_AFTER",
    "ClockOffset",
    "ClockOffsets",
    "ClockSteps",
    "EncoderTurns",
    "JointFault",
    "JointFaultKind",
    "JointFilter",
    "JointPlausibility",
    "JointSupervision",
    "JointSupervisionLimits",
    "RobotSupervision",
    "Verdict",
    "named_twice",
]
