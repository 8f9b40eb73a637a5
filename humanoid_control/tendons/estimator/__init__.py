"""Filters of joint groups, what they observe, faults of tendons, and the estimator of a whole body."""
