"""Faults: campaigns of what breaks in a running stack, and what it promises then beside what was measured."""
