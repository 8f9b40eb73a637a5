"""Figures of what an observer heard of a stack: steps of commands, gaps, rests, two who command; and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.robots import Robot

ROUNDING = 1e-5  # [rad] of a step: stamps are rounded to a quarter of a microsecond
NEXT = 0.1  # [s] within which commands of another sender show that two command at once
EPISODE = 0.5  # [s] without such a change after which a contest is over
STILL = 1e-3  # share of a joint's speed limit below which it rests
RESTS = 0.1  # [s] for which a robot at rest rests
SLOWEST = 0.5  # [1/s] shares of its speed limit that a joint loses where it is braked, not only slower by itself
LAST_STEPS = 2  # but in the last ones
MOVES = 0.02  # share of a joint's speed limit with which a robot moves
KEPT, BROKEN, SHOWN = "kept", "broken", ""


class Joints(NamedTuple):
    """Messages of joints in the order in which they came.

    Attributes:
        t, stamp: (m,) arrival and stamp [s]. q, v: (m, n) [rad], [rad/s]. sender: (m,) number of the publisher.
    """

    t: np.ndarray
    stamp: np.ndarray
    q: np.ndarray
    v: np.ndarray
    sender: np.ndarray

    @staticmethod
    def of(rows: np.ndarray, n: int) -> Joints:
        """Of rows as `observer.Heard` keeps them, of n joints."""
        return Joints(rows[:, 0], rows[:, 1], rows[:, 2 : 2 + n], rows[:, 2 + n : 2 + 2 * n], rows[:, -1])

    def between(self, begin: float, end: float) -> Joints:
        """Those that came in a time [s]."""
        own = (self.t >= begin) & (self.t <= end)
        return Joints(*(x[own] for x in self))

    def pace(self, velocity: np.ndarray) -> np.ndarray:
        """Speed (m - 1,) from each to the next of the joint that is nearest to its limit, as a share of it."""
        passed = np.maximum(np.diff(self.stamp), 1e-4)[:, None]
        return np.abs(np.diff(self.q, axis=0) / passed / velocity).max(axis=1, initial=0.0)


def over_speed(c: Joints, velocity: np.ndarray) -> tuple[int, float]:
    """Steps between consecutive commands that are beyond a speed limit, whoever sent them, and the farthest [rad]."""
    steps, passed = np.abs(np.diff(c.q, axis=0)), np.maximum(np.diff(c.stamp), 0.0)
    beyond = steps - velocity * passed[:, None]
    over = ~(beyond <= ROUNDING).all(axis=1)  # what is no number is over any limit
    return int(over.sum()), float(np.nanmax(beyond, initial=0.0)) if len(steps) else 0.0


def beyond_range(c: Joints, robot: Robot) -> float:
    """The farthest that a joint is, or is asked to be, outside its range [rad]."""
    return max(0.0, float(np.nanmax(np.maximum(c.q - robot.upper, robot.lower - c.q), initial=0.0)))


def longest_gap(t: np.ndarray, begin: float, end: float) -> tuple[float, int]:
    """Longest time without a message within a time [s], and the index of the one that ended it, len(t): none did."""
    gaps = np.diff(np.concatenate([[begin], t, [end]]))
    return float(gaps.max()), int(gaps.argmax())


def contest(c: Joints) -> float:
    """The longest time for which two senders commanded at once [s]: they took turns."""
    turns = (np.diff(c.sender) != 0) & (np.diff(c.t) < NEXT)
    at = c.t[1:][turns]
    if len(at) < 2:
        return 0.0
    parts = np.split(at, np.flatnonzero(np.diff(at) > EPISODE) + 1)
    return float(max(part[-1] - part[0] for part in parts))


def rest(c: Joints, velocity: np.ndarray, begin: float, end: float) -> tuple[float, float]:
    """When commands began to brake, and when they came to rest, for `RESTS` or to the end [s]; infinite: never.

    Braking is the last time in which the pace fell fast, without a break. Who rested from the beginning began then.
    """
    pace, t = c.pace(velocity), c.t[1:]
    at_rest, during = pace < STILL, (t >= begin) & (t <= end)
    for k in np.flatnonzero(at_rest & during):
        stays = at_rest[(t >= t[k]) & (t <= min(t[k] + RESTS, end))]
        if stays.all() and (t[k] + RESTS <= end or t[-1] >= end - RESTS):
            first = k
            while first > 0 and t[first - 1] >= begin:
                slows = (pace[first - 1] - pace[first]) / max(t[first] - t[first - 1], 1e-3)
                if slows <= (SLOWEST if k - first > LAST_STEPS else 0.0):
                    break
                first -= 1
            return max(begin, float(t[first])), float(t[k])
    return math.inf, math.inf


def moves_from(c: Joints, velocity: np.ndarray, since: float) -> float:
    """When commands began to move after a time, and continued for `RESTS` [s]; infinite: never."""
    pace, t = c.pace(velocity), c.t[1:]
    moving = pace > MOVES
    for k in np.flatnonzero(moving & (t >= since)):
        within = (t >= t[k]) & (t <= t[k] + RESTS)
        if t[-1] >= t[k] + RESTS and moving[within].mean() > 0.8:
            return float(t[k])
    return math.inf


# -------- Rows


class MeasuredFault(NamedTuple):
    """A value next to its limit.

    Attributes:
        what: it is. value: measured. limit: most that is promised; None: nothing is. unit: of both.
    """

    what: str
    value: float
    limit: float | None = None
    unit: str = ""

    @property
    def verdict(self) -> str:
        """`KEPT`, `BROKEN` (what is not a number is), or `SHOWN`."""
        return SHOWN if self.limit is None else KEPT if self.value <= self.limit else BROKEN


def spread(what: str, values: Sequence[float], limits: dict[str, float | None], unit: str = "s") -> list[MeasuredFault]:
    """Percentiles of values, "p50", "p99" or "max", each next to its limit."""
    share = {"max": 100.0} | {name: float(name[1:]) for name in limits if name != "max"}
    x = np.array(values if len(values) else [math.nan], dtype=float)
    found = {n: float(np.percentile(x, share[n], method="higher")) for n in limits}  # also where some are infinite
    return [MeasuredFault(f"{what} {n}", found[n], limit, unit) for n, limit in limits.items()]


def number(value: Any) -> float:
    """A number of an outcome; one that was infinite is None in a file."""
    return math.inf if value is None else float(value)


@dataclass(frozen=True)
class Plan:
    """What is to be tried.

    Attributes:
        robot: of the catalogue, or path of a URDF. seed: of all that is random.
        starts, states, kills, floods, messages: how often; kills and floods of each sort, messages of each topic.
        hours: of the dance. settings: node -> parameter -> value.
    """

    robot: str = "hrp2"
    seed: int = 0
    starts: int = 50
    states: int = 1000
    hours: float = 1.0
    kills: int = 20
    floods: int = 3
    messages: int = 100_000
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def rng(self, *job: Any) -> np.random.Generator:
        """Random numbers of a case, the same whenever it is tried."""
        return np.random.default_rng([self.seed, *(int.from_bytes(str(w).encode()[:8], "little") for w in job)])

    def settings_of(self, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The settings of some nodes."""
        return {node: values for node, values in self.settings.items() if node in nodes}


Try = Callable[[list[Any]], dict[str, Any]]
"""Makes the outcome of a case, of plain values; one with `stale` needs a new stack afterwards."""


class FaultRow(NamedTuple):
    """A row of the table.

    Attributes:
        name: of it. promise: in words. cases: of a plan, plain values. start: the stack; inside it cases can be tried.
        judge: outcomes to values next to their limits.
    """

    name: str
    promise: str
    cases: Callable[[Plan], list[list[Any]]]
    start: Callable[[Plan], AbstractContextManager[Try]]
    judge: Callable[[Sequence[dict[str, Any]]], list[MeasuredFault]]
