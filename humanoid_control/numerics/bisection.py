"""Bisection on a condition that holds up to some number and fails beyond it."""

from __future__ import annotations

from collections.abc import Callable


def bisect(holds: Callable[[float], bool], most: float, halvings: int) -> float:
    """The greatest number of 0..most for which a condition holds, to most / 2^halvings and from below.

    Args:
        holds: the condition; taken to hold at 0, which is not tried.
        most: where the search ends; it is tried first.
        halvings: how often the interval is halved.

    Returns:
        A number at which the condition held, or 0.
    """
    if holds(most):
        return most
    low, high = 0.0, most
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
