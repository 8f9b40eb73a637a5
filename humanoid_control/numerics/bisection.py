"""Bisection on a condition that holds up to some number."""

from __future__ import annotations

from collections.abc import Callable


def bisect(holds: Callable[[float], bool], most: float, halvings: int) -> float:
    """Return the largest number in 0..most for which a condition holds, to most / 2^halvings, from below.

    Args:
        holds: condition, assumed at 0.
    """
    if holds(most):
        return most
    low, high = 0.0, most
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
