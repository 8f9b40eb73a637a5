"""Angular momentum while walking: the source's methods and ours on the same steps, and its claims about them."""

from humanoid_control.ik.momentum_study.lab import Lab, Outcome, find_gait

__all__ = ["Lab", "Outcome", "find_gait"]
