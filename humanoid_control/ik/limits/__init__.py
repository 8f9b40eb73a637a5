"""Constraints on every velocity of the whole-body inverse kinematics, in the order of precedence.

```python
from humanoid_control.ik import WholeBodyIk
from humanoid_control.ik.limits import Limit, clamp_bounds, default_limits
from humanoid_control.robots import load_robot

class Slow(Limit):
    def tighten(self, state, lower, upper):
        clamp_bounds(lower, upper, -0.1, 0.1)

robot = load_robot("hrp2")
solver = WholeBodyIk(robot, limits=[Slow(), *default_limits(robot)])
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.ik.limits.collision_recovery import CollisionRecovery as CollisionRecovery
    from humanoid_control.ik.limits.idle_joints import IdleJointLimit as IdleJointLimit
    from humanoid_control.ik.limits.limit import AccelerationLimit as AccelerationLimit
    from humanoid_control.ik.limits.limit import ConfigurationLimit as ConfigurationLimit
    from humanoid_control.ik.limits.limit import IkState as IkState
    from humanoid_control.ik.limits.limit import Limit as Limit
    from humanoid_control.ik.limits.limit import VelocityLimit as VelocityLimit
    from humanoid_control.ik.limits.limit import clamp_bounds as clamp_bounds
    from humanoid_control.ik.limits.self_collision import SelfCollisionLimit as SelfCollisionLimit
    from humanoid_control.ik.limits.self_collision import default_limits as default_limits
    from humanoid_control.ik.limits.stopping_path import StoppingPathCheck as StoppingPathCheck

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "collision_recovery": ["CollisionRecovery"],
        "idle_joints": ["IdleJointLimit"],
        "limit": ["AccelerationLimit", "ConfigurationLimit", "IkState", "Limit", "VelocityLimit", "clamp_bounds"],
        "self_collision": ["SelfCollisionLimit", "default_limits"],
        "stopping_path": ["StoppingPathCheck"],
    },
    public=[
        "AccelerationLimit",
        "ConfigurationLimit",
        "IdleJointLimit",
        "IkState",
        "Limit",
        "SelfCollisionLimit",
        "VelocityLimit",
        "default_limits",
    ],
)
