"""Optimal reaching: arms, motion criteria and trajectories; see `humanoid_control.reaching`."""
