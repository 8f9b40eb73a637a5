"""Learned policies in simulators: a tracker judges motions, limiters side by side, faults put in on purpose."""
