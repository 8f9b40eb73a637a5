"""Measured forces on a person: force plates and tables of loads as wrenches, and the feet that they belong to."""
