"""Results of the experiments: errors of each joint over the seeds, walks to be drawn, and other numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array

DEGREES, MILLIMETRES, SECONDS, GIGABYTES = "deg", "mm", "s", "GB"
_SCALE = {DEGREES: 180.0 / np.pi, MILLIMETRES: 1e3, SECONDS: 1.0, GIGABYTES: 1e-9}


@dataclass(frozen=True)
class Runs:
    """Number and length of the runs of each experiment, and who is told the share done of it.

    Raises:
        ConfigError: no seed, or walks too short to judge.
    """

    seeds: int = 20
    steps: int = 1500
    show: Callable[[float], object] = field(default=lambda share: None)

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds must be at least 1, got {self.seeds}")
        if self.steps < LEAST_STEPS:
            raise ConfigError(f"steps must be at least {LEAST_STEPS}, got {self.steps}")


LEAST_STEPS = 50


@dataclass(frozen=True)
class ErrorGoal:
    """Upper bounds that the values of a row should keep [its unit].

    Attributes:
        median: the median over the seeds, of every joint. worst: every seed and joint. Infinite where nothing is asked.
    """

    median: float = np.inf
    worst: float = np.inf

    def __str__(self) -> str:
        asked = {"median": self.median, "worst": self.worst}
        return ", ".join(f"{name} < {value:g}" for name, value in asked.items() if value < np.inf)


@dataclass(frozen=True)
class ResultRow:
    """Errors of one filter, or the cost of building some mappings.

    Attributes:
        name: of the filter and its conditions. joints: (J,), or other things that each have a value.
        errors: (seeds, J), not negative [rad, m, s or bytes].
        unit: in which `median` and `worst` over the seeds are. goal: None where nothing is asked.
    """

    name: str
    joints: tuple[str, ...]
    errors: Array
    unit: str = DEGREES
    goal: ErrorGoal | None = None

    @property
    def scale(self) -> float:
        """From rad, m, s or bytes to the unit."""
        return _SCALE[self.unit]

    @property
    def median(self) -> Array:
        """(J,) [unit]."""
        return np.median(self.errors, axis=0) * self.scale

    @property
    def worst(self) -> Array:
        """(J,) [unit]."""
        return np.max(self.errors, axis=0) * self.scale

    @property
    def reached(self) -> bool | None:
        """True where the goal is; None where there is none."""
        if self.goal is None:
            return None
        return bool(self.median.max() < self.goal.median and self.worst.max() < self.goal.worst)


@dataclass(frozen=True)
class Trace:
    """Walk of the first seed, and the errors of the filters on all of them.

    Attributes:
        title: of the plot. joints: (J,). actual: (T, J) values [rad or m]; None where the lines are differences.
        lines: (T, J) by the name of the filter [rad or m]. unit: in which to draw them.
        spread: (2, T) by the name of the filter, as of `spread`. of: whose errors these are.
    """

    title: str
    joints: tuple[str, ...]
    actual: Array | None
    lines: dict[str, Array]
    unit: str = DEGREES
    spread: dict[str, Array] = field(default_factory=dict)
    of: str = ""

    @property
    def scale(self) -> float:
        """From rad or m to the unit."""
        return _SCALE[self.unit]


@dataclass(frozen=True)
class ExperimentResult:
    """Result of one experiment.

    Attributes:
        name, title: E4, what it is about. source: the published outcome. measure: of the rows' errors.
        rows: errors by filter. table: other numbers, one dictionary a line. traces: to be drawn.
    """

    name: str
    title: str
    source: str
    measure: str = ""
    rows: tuple[ResultRow, ...] = ()
    table: tuple[dict[str, Any], ...] = ()
    traces: tuple[Trace, ...] = ()


def walks_of(runs: Runs) -> str:
    """Number of walks, in words."""
    return "1 walk" if runs.seeds == 1 else f"{runs.seeds} walks"


def spread(errors: Sequence[Array]) -> Array:
    """(2, T): median and worst over all seeds and joints at each step, of the walks (T, J) of all seeds."""
    size = np.abs(np.array(errors))
    return np.array([np.median(size, axis=(0, 2)), size.max(axis=(0, 2))])


def tail(errors: Array, share: float = 0.2) -> Array:
    """(J,) mean absolute error over the last share of a walk (T, J)."""
    first = len(errors) - max(1, round(share * len(errors)))
    return np.asarray(np.abs(errors[first:]).mean(axis=0))


def settled(errors: Array, skip: float = 1 / 6) -> Array:
    """(J,) root mean square error of a walk (T, J) without its first part."""
    return np.asarray(np.sqrt(np.mean(errors[round(skip * len(errors)) :] ** 2, axis=0)))
