"""Retargeting: human body points become robot targets, and targets become joint trajectories.

    from humanoid_control.mocap import load_body_points
    from humanoid_control.retargeting import retarget_clip, scale_to_robot
    from humanoid_control.robots import load_robot

    robot = load_robot("hrp2", "fixed")
    targets = scale_to_robot(load_body_points("dance"), robot)
    trajectory = retarget_clip(targets, robot)
    print(trajectory.positions.shape, trajectory.errors.mean())

`retarget_whole_body(body, robot)` includes root, legs and foot contacts, for a floating-base robot. `LiveTargets`
converts live markers to targets; `Retargeter.step` follows targets frame by frame.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.retargeting.interchange import INTERCHANGE as INTERCHANGE
    from humanoid_control.retargeting.live import LiveSettings as LiveSettings
    from humanoid_control.retargeting.live import LiveTargets as LiveTargets
    from humanoid_control.retargeting.player import ClipPlayer as ClipPlayer
    from humanoid_control.retargeting.player import Figure as Figure
    from humanoid_control.retargeting.retargeter import Retargeter as Retargeter
    from humanoid_control.retargeting.retargeter import retarget_clip as retarget_clip
    from humanoid_control.retargeting.scaling import POINTS as POINTS
    from humanoid_control.retargeting.scaling import Scaler as Scaler
    from humanoid_control.retargeting.scaling import Targets as Targets
    from humanoid_control.retargeting.scaling import scale_to_robot as scale_to_robot
    from humanoid_control.retargeting.settings import AVOIDANCE as AVOIDANCE
    from humanoid_control.retargeting.settings import CONSTRAINED as CONSTRAINED
    from humanoid_control.retargeting.settings import METHODS as METHODS
    from humanoid_control.retargeting.settings import RetargetSettings as RetargetSettings
    from humanoid_control.retargeting.trajectory import JointTrajectory as JointTrajectory
    from humanoid_control.retargeting.trajectory import WholeBodyTrajectory as WholeBodyTrajectory
    from humanoid_control.retargeting.whole_body.clip_retargeter import CLIP as CLIP
    from humanoid_control.retargeting.whole_body.clip_retargeter import LIVE as LIVE
    from humanoid_control.retargeting.whole_body.clip_retargeter import WHOLE_BODY_METHODS as WHOLE_BODY_METHODS
    from humanoid_control.retargeting.whole_body.clip_retargeter import ClipRetargeter as ClipRetargeter
    from humanoid_control.retargeting.whole_body.clip_retargeter import whole_body_solver as whole_body_solver
    from humanoid_control.retargeting.whole_body.pipeline import WholeBodyMotion as WholeBodyMotion
    from humanoid_control.retargeting.whole_body.pipeline import WholeBodyTask as WholeBodyTask
    from humanoid_control.retargeting.whole_body.pipeline import at_solving_rate as at_solving_rate
    from humanoid_control.retargeting.whole_body.pipeline import every as every
    from humanoid_control.retargeting.whole_body.pipeline import retarget_whole_body as retarget_whole_body
    from humanoid_control.retargeting.whole_body.pipeline import whole_body_settings as whole_body_settings
    from humanoid_control.retargeting.whole_body.retargeter import WholeBodyRetargeter as WholeBodyRetargeter
    from humanoid_control.retargeting.whole_body.scaling import WholeBodyScaler as WholeBodyScaler
    from humanoid_control.retargeting.whole_body.scaling import WholeBodyTargets as WholeBodyTargets
    from humanoid_control.retargeting.whole_body.scaling import shows_legs as shows_legs

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "interchange": ["INTERCHANGE"],
        "live": ["LiveSettings", "LiveTargets"],
        "player": ["ClipPlayer", "Figure"],
        "retargeter": ["Retargeter", "retarget_clip"],
        "scaling": ["POINTS", "Scaler", "Targets", "scale_to_robot"],
        "settings": ["AVOIDANCE", "CONSTRAINED", "METHODS", "RetargetSettings"],
        "trajectory": ["JointTrajectory", "WholeBodyTrajectory"],
        "whole_body.retargeter": ["WholeBodyRetargeter"],
        "whole_body.pipeline": [
            "WholeBodyMotion",
            "WholeBodyTask",
            "at_solving_rate",
            "every",
            "retarget_whole_body",
            "whole_body_settings",
        ],
        "whole_body.clip_retargeter": ["CLIP", "LIVE", "WHOLE_BODY_METHODS", "ClipRetargeter", "whole_body_solver"],
        "whole_body.scaling": ["WholeBodyScaler", "WholeBodyTargets", "shows_legs"],
    },
    public=[
        "ClipPlayer",
        "JointTrajectory",
        "LiveSettings",
        "LiveTargets",
        "POINTS",
        "RetargetSettings",
        "Retargeter",
        "WholeBodyRetargeter",
        "WholeBodyTask",
        "WholeBodyTrajectory",
        "retarget_clip",
        "retarget_whole_body",
        "scale_to_robot",
        "whole_body_settings",
    ],
)
