"""URDF, robot file, drives, tendons and documentation made from a robot's source file (`humanoid robots build`)."""
