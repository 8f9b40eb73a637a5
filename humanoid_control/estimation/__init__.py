"""Motion from measurements: filtering, differentiation, control."""

from humanoid_control.estimation.joint_filter import JointFilter

__all__ = ["JointFilter"]
