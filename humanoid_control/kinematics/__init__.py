"""Kinematics of trees of joints: compiled forward kinematics, velocity bounds, centroidal momentum, joint states.

```python
import numpy as np
import pinocchio as pin
from humanoid_control.kinematics import JointLimits, JointPoses, velocity_bounds

model = pin.buildSampleModelManipulator()
poses = JointPoses(model)
poses.update(np.zeros(model.nq))
tip = poses.p[-1]  # origin of the last joint in the world [m]

# Range -1 .. 1 rad, 2 rad/s: 1 ms before the upper limit, at most the remaining angle.
limits = JointLimits(np.array([-1.0]), np.array([1.0]), np.array([2.0]))
low, high = velocity_bounds(np.array([0.9995]), limits, dt=0.001)
assert np.isclose(high[0], 0.5)
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.kinematics.centroidal import centroidal_momentum_map as centroidal_momentum_map
    from humanoid_control.kinematics.centroidal import centroidal_momentum_rate as centroidal_momentum_rate
    from humanoid_control.kinematics.forward_kinematics import JointPoses as JointPoses
    from humanoid_control.kinematics.forward_kinematics import KinematicTree as KinematicTree
    from humanoid_control.kinematics.joint_limits import JointLimits as JointLimits
    from humanoid_control.kinematics.joint_limits import velocity_bounds as velocity_bounds
    from humanoid_control.kinematics.joint_state import JointState as JointState
    from humanoid_control.kinematics.joint_state import NodeStatus as NodeStatus
    from humanoid_control.kinematics.joint_state import node_statuses as node_statuses
    from humanoid_control.kinematics.joint_state import part_statuses as part_statuses

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "centroidal": ["centroidal_momentum_map", "centroidal_momentum_rate"],
        "joint_state": ["JointState", "NodeStatus", "node_statuses", "part_statuses"],
        "joint_limits": ["JointLimits", "velocity_bounds"],
        "forward_kinematics": ["JointPoses", "KinematicTree"],
    },
    public=["JointPoses", "JointState", "KinematicTree", "centroidal_momentum_map", "centroidal_momentum_rate"],
)
