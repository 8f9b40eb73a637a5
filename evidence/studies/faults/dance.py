"""Row `dance`: a dance that nothing happens to; whatever stops it is a false alarm."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evidence.studies.faults.figures import FaultRow, Joints, MeasuredFault, Plan, Try, moves_from
from evidence.studies.faults.stack import COMMANDS, ERROR, STATES, FaultWindow, ObservedStack
from humanoid_control.session import find_stack

STACK = "imitation"
CALM, CALM_LIMIT = 1.0, 10.0  # [s] before a fault in which the robot moves; how long that is waited for


def dances(stack: ObservedStack, window: FaultWindow) -> bool:
    """Test whether commands move at the end of a window."""
    return math.isfinite(moves_from(window.joints[COMMANDS], stack.robot.velocity, window.end - 2.0 * CALM))


@contextlib.contextmanager
def without_viewer(plan: Plan, *topics: str) -> Iterator[ObservedStack]:
    """The imitation, which dances, without a page."""
    with ObservedStack(find_stack(STACK).without("viewer"), plan, topics) as stack:
        stack.until(stack.window(CALM), lambda w: dances(stack, w), CALM_LIMIT)
        yield stack


PART = 30.0  # [s] of a case
CEASED = 0.1  # [s] without a command: they ceased
HOLD = 0.5  # [s] for which commands rest while targets move
TARGETS_MOVE = 0.02  # [m] of a target in that time


def dance_cases(plan: Plan) -> list[list[Any]]:
    """Parts of the dance; each by its number and its length [s]."""
    seconds = 3600.0 * plan.hours
    return [[k, min(PART, seconds - k * PART)] for k in range(math.ceil(seconds / PART - 1e-9))]


@contextlib.contextmanager
def start_dance(plan: Plan) -> Iterator[Try]:
    """The dance continues from one part to the next."""
    with without_viewer(plan, COMMANDS, STATES, "targets") as stack:
        yield lambda job: dance(stack, float(job[1]))


def dance(stack: ObservedStack, seconds: float) -> dict[str, Any]:
    """Errors and holds in a part of the dance."""
    window = stack.window(seconds)
    commands, states = window.joints[COMMANDS], window.joints[STATES]
    waits = np.diff(np.concatenate([[window.begin], commands.t, [window.end]]))
    errors = dict.fromkeys(f"{t.node}: {t.message}" for t in window.told if t.level >= ERROR)
    return {
        "seconds": window.end - window.begin,
        "errors": list(errors),
        "holds": holds(commands, window.targets, stack.robot.velocity),
        "ceased": int((waits > CEASED).sum()),
        "gap_s": float(waits.max()),
        "speed": float((np.abs(states.v) / stack.robot.velocity).max(initial=0.0)),
        "stale": bool(errors),  # who was stopped stays so
    }


def holds(commands: Joints, targets: np.ndarray, velocity: np.ndarray) -> int:
    """Times for which commands rest though targets move."""
    found, end = 0, commands.t[-1] if len(commands.t) else 0.0
    for begin in np.arange(commands.t[0], end - HOLD, HOLD) if len(commands.t) else ():
        own = (targets[:, 0] >= begin) & (targets[:, 0] < begin + HOLD)
        moved = np.ptp(targets[own, 2:], axis=0).max(initial=0.0) if own.any() else 0.0
        rests = not math.isfinite(moves_from(commands.between(begin, begin + HOLD), velocity, begin))
        found += bool(rests and moved > TARGETS_MOVE)
    return found


def judge_dance(outcomes: Sequence[dict[str, Any]]) -> list[MeasuredFault]:
    """False stops."""
    errors = [text for o in outcomes for text in o["errors"]]
    found = [
        MeasuredFault("duration", sum(o["seconds"] for o in outcomes), None, "s"),
        MeasuredFault("errors on /diagnostics", len(errors), 0),
        MeasuredFault("pauses while targets move", sum(o["holds"] for o in outcomes), 0),
        MeasuredFault(f"times without a command for {CEASED:g} s", sum(o["ceased"] for o in outcomes), 0),
        MeasuredFault("longest time without a command", max(o["gap_s"] for o in outcomes), None, "s"),
        MeasuredFault("joint speed / limit", max(o["speed"] for o in outcomes)),
    ]
    return found + [MeasuredFault(f"  {text[:100]}", errors.count(text)) for text in dict.fromkeys(errors)]


DANCE_ROW = FaultRow(
    "dance",
    "a dance without faults: nothing stops it",
    dance_cases,
    start_dance,
    judge_dance,
)
