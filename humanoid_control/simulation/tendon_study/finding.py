"""What an experiment found: errors of each joint over the seeds, one walk to be drawn, and other numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mapping import Array

DEGREES, MILLIMETRES = "deg", "mm"
_SCALE = {DEGREES: 180.0 / np.pi, MILLIMETRES: 1e3}


@dataclass(frozen=True)
class Runs:
    """How often and how long each experiment is run, and who is told the share done of it.

    Raises:
        ConfigError: no seed, or walks too short to judge.
    """

    seeds: int = 20
    steps: int = 1500
    show: Callable[[float], object] = field(default=lambda share: None)

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"--seeds must be at least 1, got {self.seeds}")
        if self.steps < LEAST_STEPS:
            raise ConfigError(f"--steps must be at least {LEAST_STEPS}, got {self.steps}")


LEAST_STEPS = 50


@dataclass(frozen=True)
class Row:
    """Errors of one filter.

    Attributes:
        name: of the filter and its conditions. joints: (J,). errors: (seeds, J), not negative [rad or m].
        unit: in which `median` and `worst` over the seeds are.
    """

    name: str
    joints: tuple[str, ...]
    errors: Array
    unit: str = DEGREES

    @property
    def median(self) -> Array:
        """(J,) [unit]."""
        return np.median(self.errors, axis=0) * _SCALE[self.unit]

    @property
    def worst(self) -> Array:
        """(J,) [unit]."""
        return np.max(self.errors, axis=0) * _SCALE[self.unit]


@dataclass(frozen=True)
class Trace:
    """One walk of the first seed.

    Attributes:
        title: of the plot. joints: (J,). actual: (T, J) angles [rad]; None where the lines are differences.
        lines: (T, J) by the name of the filter [rad].
    """

    title: str
    joints: tuple[str, ...]
    actual: Array | None
    lines: dict[str, Array]


@dataclass(frozen=True)
class Finding:
    """One experiment.

    Attributes:
        name, title: E4, what it is about. source: what the source says. measure: what the rows' errors are.
        rows: errors by filter. table: other numbers, one dictionary a line. traces: to be drawn.
    """

    name: str
    title: str
    source: str
    measure: str = ""
    rows: tuple[Row, ...] = ()
    table: tuple[dict[str, Any], ...] = ()
    traces: tuple[Trace, ...] = ()


def tail(errors: Array, share: float = 0.2) -> Array:
    """(J,) mean absolute error over the last share of a walk (T, J)."""
    first = len(errors) - max(1, round(share * len(errors)))
    return np.asarray(np.abs(errors[first:]).mean(axis=0))


def settled(errors: Array, skip: float = 1 / 6) -> Array:
    """(J,) root mean square error of a walk (T, J) without its first part."""
    return np.asarray(np.sqrt(np.mean(errors[round(skip * len(errors)) :] ** 2, axis=0)))
