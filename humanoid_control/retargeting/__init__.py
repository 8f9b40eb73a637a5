"""Imitation: body points of a dancer become targets for a robot, and targets become joint trajectories."""

from humanoid_control.retargeting.retargeter import JointTrajectory, Retargeter, RetargetSettings, retarget
from humanoid_control.retargeting.scaling import POINTS, Targets, scale_to_robot

__all__ = ["POINTS", "JointTrajectory", "RetargetSettings", "Retargeter", "Targets", "retarget", "scale_to_robot"]
