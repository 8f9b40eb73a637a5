"""Generated URDF, robot file, drives, tendons and documentation of a robot (`humanoid robots build`)."""
