"""Measured forces on a person as wrenches, and their assignment to feet."""
