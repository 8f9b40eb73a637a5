"""Rows of a bench: a quantity with its median and the 99th percentile of its bad side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from humanoid_control.benchmarks import Row


def row(name: str, unit: str, median: float, p99: float, n: int, **more: Any) -> Row:
    """A row of numbers with three digits.

    Args:
        n: how many values there were.
        more: columns beside.
    """
    return {"name": name, "unit": unit, "median": round(median, 3), "p99": round(p99, 3), "n": int(n), **more}


def row_of(name: str, unit: str, values: Sequence[float] | np.ndarray, **more: Any) -> Row:
    """A row of single values; where more is better, as in 1/s, the bad side is the low one."""
    v = np.asarray(values, dtype=float)
    p50, p99 = np.percentile(v, [50, 1 if unit in ("1/s", "Hz") else 99])
    return row(name, unit, float(p50), float(p99), len(v), **more)
