"""Biped walking: footsteps that follow a commanded velocity, and balance from sensor feedback.

`Walker` plans footsteps, the zero-moment point (ZMP) and the divergent component of motion (DCM) of the centre of mass
(CoM), and corrects by foot forces:

    from humanoid_control.robots import load_robot
    from humanoid_control.simulation import SimulationConfig
    from humanoid_control.walking import Walker

    engine = SimulationConfig("lola", "floating").build()
    walker = Walker(load_robot("lola", "floating"))
    for tick in range(300):
        walker.command([0.4, 0.0, 0.0])  # [m/s], [m/s], [rad/s]
        report = walker.step(engine.read())
        engine.command(walker.joints, walker.joint_velocity)
        engine.step(4)  # of 1 ms: a tick of the walker

`Gait` and `WalkTask` track a steady gait without feedback; other tasks may use the joints named by `free`:

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
    from humanoid_control.walking.planning.model_predictive import ModelPredictive as ModelPredictive
    from humanoid_control.walking.planning.preview_control import PreviewControl as PreviewControl
    from humanoid_control.walking.planning.step import Footstep as Footstep
    from humanoid_control.walking.planning.step import StepLimits as StepLimits
    from humanoid_control.walking.planning.step import StepTimes as StepTimes
    from humanoid_control.walking.replanner import WalkSettings as WalkSettings
    from humanoid_control.walking.stabilizer import StabilizerGains as StabilizerGains
    from humanoid_control.walking.step_adjustment import AdjustmentSettings as AdjustmentSettings
    from humanoid_control.walking.step_limits import step_limits_of as step_limits_of
    from humanoid_control.walking.walk_task import WalkTask as WalkTask
    from humanoid_control.walking.walk_task import leg_length as leg_length
    from humanoid_control.walking.walker import Walker as Walker
    from humanoid_control.walking.walker import WalkReport as WalkReport
    from humanoid_control.walking.walker import WalkState as WalkState

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "footsteps": ["Footstep", "StepLimits", "StepTimes"],
        "gait": ["Gait", "GaitPoint", "GaitSettings"],
        "momentum_reference": ["CubicStep", "MomentumReference"],
        "planning.model_predictive": ["ModelPredictive"],
        "planning.preview_control": ["PreviewControl"],
        "replanner": ["WalkSettings"],
        "stabilizer": ["StabilizerGains"],
        "step_adjustment": ["AdjustmentSettings"],
        "step_limits": ["step_limits_of"],
        "walk_task": ["WalkTask", "leg_length"],
        "walker": ["WalkReport", "WalkState", "Walker"],
    },
    public=[
        "AdjustmentSettings",
        "Footstep",
        "GaitSettings",
        "StabilizerGains",
        "StepLimits",
        "StepTimes",
        "WalkReport",
        "WalkSettings",
        "WalkState",
        "Walker",
    ],
)
