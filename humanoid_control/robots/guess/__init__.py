"""Guess of the robot file of an unknown URDF from names and structure (`humanoid robots map`)."""
