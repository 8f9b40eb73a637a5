"""Worlds that implement `engine.Engine`: ideal drives, motors, tendons, winches, MuJoCo."""
