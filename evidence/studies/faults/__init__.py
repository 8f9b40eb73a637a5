"""Faults: campaigns of what breaks in a running stack, and what it promises then next to what was measured."""
