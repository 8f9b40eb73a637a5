"""Exact, compiled tendon routing: lengths, moment arms and derivatives."""
