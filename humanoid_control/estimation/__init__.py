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

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.estimation.clock_offset import ClockOffset as ClockOffset
    from humanoid_control.estimation.clock_offset import ClockOffsets as ClockOffsets
    from humanoid_control.estimation.clock_offset import ClockSteps as ClockSteps
    from humanoid_control.estimation.floating_base import BaseEstimate as BaseEstimate
    from humanoid_control.estimation.floating_base import FloatingBaseEstimator as FloatingBaseEstimator
    from humanoid_control.estimation.joint_filter import CLOCK_BACK as CLOCK_BACK
    from humanoid_control.estimation.joint_filter import JointFilter as JointFilter
    from humanoid_control.estimation.joint_supervision import JointFault as JointFault
    from humanoid_control.estimation.joint_supervision import JointFaultKind as JointFaultKind
    from humanoid_control.estimation.joint_supervision import JointSupervision as JointSupervision
    from humanoid_control.estimation.joint_supervision import JointSupervisionLimits as JointSupervisionLimits
    from humanoid_control.estimation.plausibility import EncoderTurns as EncoderTurns
    from humanoid_control.estimation.plausibility import JointPlausibility as JointPlausibility
    from humanoid_control.estimation.plausibility import named_twice as named_twice
    from humanoid_control.estimation.robot_supervision import LOST_AFTER as LOST_AFTER
    from humanoid_control.estimation.robot_supervision import RobotSupervision as RobotSupervision
    from humanoid_control.estimation.robot_supervision import Verdict as Verdict

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "clock_offset": ["ClockOffset", "ClockOffsets", "ClockSteps"],
        "floating_base": ["BaseEstimate", "FloatingBaseEstimator"],
        "joint_filter": ["CLOCK_BACK", "JointFilter"],
        "joint_supervision": ["JointFault", "JointFaultKind", "JointSupervision", "JointSupervisionLimits"],
        "plausibility": ["EncoderTurns", "JointPlausibility", "named_twice"],
        "robot_supervision": ["LOST_AFTER", "RobotSupervision", "Verdict"],
    },
    public=["ClockOffsets", "EncoderTurns", "JointFilter", "JointSupervision", "RobotSupervision"],
)
