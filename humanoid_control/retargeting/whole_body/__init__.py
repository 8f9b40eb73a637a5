"""Whole-body retargeting: root, trunk, arms and legs of a floating-base robot with foot contacts."""
