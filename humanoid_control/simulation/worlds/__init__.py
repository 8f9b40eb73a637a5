"""Worlds behind the interface `engine.Engine`: ideal drives, drives with motors, tendons, MuJoCo."""
