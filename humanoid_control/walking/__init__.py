"""Walking: references of a steady gait, the task that follows them, and the momentum to have while turning.

Soles, centre of mass and chest follow the gait; the joints that `free` names are left to other tasks.

    from humanoid_control.ik import WholeBodyIk
    from humanoid_control.robots import load_robot
    from humanoid_control.walking import GaitSettings, WalkTask

    robot = load_robot("lola", "floating")
    walk = WalkTask(robot, GaitSettings(step_length=0.3), dt=0.004)
    solver, q = WholeBodyIk(robot), walk.start(robot)
    for tick in range(200):
        walk.t = tick * walk.dt
        q = solver.step(q, [walk], walk.dt).q
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.walking.gait import Gait as Gait
    from humanoid_control.walking.gait import GaitPoint as GaitPoint
    from humanoid_control.walking.gait import GaitSettings as GaitSettings
    from humanoid_control.walking.momentum_reference import CubicStep as CubicStep
    from humanoid_control.walking.momentum_reference import MomentumReference as MomentumReference
    from humanoid_control.walking.walk_task import WalkTask as WalkTask
    from humanoid_control.walking.walk_task import leg_length as leg_length

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "gait": ["Gait", "GaitPoint", "GaitSettings"],
        "momentum_reference": ["CubicStep", "MomentumReference"],
        "walk_task": ["WalkTask", "leg_length"],
    },
)
