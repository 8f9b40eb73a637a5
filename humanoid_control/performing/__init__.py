"""Performing: whole-body motions made dynamically feasible, then tracked under physics.

```python
from humanoid_control.mocap import load_body_points
from humanoid_control.performing import make_feasible
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.robots import load_robot

robot = load_robot("hrp2", "floating")
motion = make_feasible(retarget_whole_body(load_body_points("gentle_dance"), robot, method="clip"), robot)
print(motion.forces.shape, motion.torque.shape, motion.infeasible.max())
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.performing.center_program import CenterProgram as CenterProgram
    from humanoid_control.performing.clip_dynamics import contact_forces as contact_forces
    from humanoid_control.performing.contact_plan import Change as Change
    from humanoid_control.performing.contact_plan import ContactPlan as ContactPlan
    from humanoid_control.performing.dynamic_motion import DynamicMotion as DynamicMotion
    from humanoid_control.performing.export import DYNAMIC as DYNAMIC
    from humanoid_control.performing.export import WITH_FORCES as WITH_FORCES
    from humanoid_control.performing.export import as_whole_body as as_whole_body
    from humanoid_control.performing.export import write_with_forces as write_with_forces
    from humanoid_control.performing.feasible_motion import make_feasible as make_feasible
    from humanoid_control.performing.feasible_motion import retargeted_motion as retargeted_motion
    from humanoid_control.performing.measures import feasibility_row as feasibility_row
    from humanoid_control.performing.performance import OpenLoop as OpenLoop
    from humanoid_control.performing.performance import Performance as Performance
    from humanoid_control.performing.performance import Performer as Performer
    from humanoid_control.performing.performance import PositionDrives as PositionDrives
    from humanoid_control.performing.performance import perform as perform
    from humanoid_control.performing.preparation import check_performer as check_performer
    from humanoid_control.performing.preparation import read_motion as read_motion
    from humanoid_control.performing.settings import FeasibilitySettings as FeasibilitySettings
    from humanoid_control.performing.stage import Stage as Stage
    from humanoid_control.performing.stage import StageState as StageState
    from humanoid_control.performing.stage import standing_configuration as standing_configuration
    from humanoid_control.performing.transitions import approach as approach
    from humanoid_control.performing.transitions import coming_to_rest as coming_to_rest
    from humanoid_control.performing.transitions import joined as joined
    from humanoid_control.performing.transitions import placed_on as placed_on
    from humanoid_control.performing.transitions import standing_motion as standing_motion
    from humanoid_control.performing.transitions import stopping_frame as stopping_frame
    from humanoid_control.performing.whole_body_controller import ControllerSettings as ControllerSettings
    from humanoid_control.performing.whole_body_controller import WholeBodyController as WholeBodyController

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "center_program": ["CenterProgram"],
        "clip_dynamics": ["contact_forces"],
        "contact_plan": ["Change", "ContactPlan"],
        "dynamic_motion": ["DynamicMotion"],
        "export": ["DYNAMIC", "WITH_FORCES", "as_whole_body", "write_with_forces"],
        "feasible_motion": ["make_feasible", "retargeted_motion"],
        "measures": ["feasibility_row"],
        "performance": ["OpenLoop", "Performance", "Performer", "PositionDrives", "perform"],
        "preparation": ["check_performer", "read_motion"],
        "settings": ["FeasibilitySettings"],
        "stage": ["Stage", "StageState", "standing_configuration"],
        "transitions": ["approach", "coming_to_rest", "joined", "placed_on", "standing_motion", "stopping_frame"],
        "whole_body_controller": ["ControllerSettings", "WholeBodyController"],
    },
    public=[
        "ControllerSettings",
        "DynamicMotion",
        "FeasibilitySettings",
        "Performance",
        "WholeBodyController",
        "check_performer",
        "contact_forces",
        "feasibility_row",
        "make_feasible",
        "perform",
        "read_motion",
    ],
)
