"""Kernels compiled ahead, a module a group of them: retargeting, simulation, tendons."""
