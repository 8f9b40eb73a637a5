"""Optimal reaching motions: arms, criteria of motion, trajectories that cost least; see `humanoid_control.reaching`."""
