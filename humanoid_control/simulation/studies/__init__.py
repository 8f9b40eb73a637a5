"""Experiments: many worlds at once, standing, calibration in a jig."""
