"""Row `kills`: nodes of a dancing stack die, and are started again."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evidence.studies.faults.dance import CALM, CALM_LIMIT, CEASED, dances, without_viewer
from evidence.studies.faults.figures import (
    FaultRow,
    Joints,
    MeasuredFault,
    Plan,
    Try,
    longest_gap,
    moves_from,
    number,
    spread,
)
from evidence.studies.faults.stack import COMMANDS, ERROR, STATES, FaultWindow, ObservedStack

KILLED = ("state_estimator", "whole_body_ik", "trajectory_streamer")  # the simulator is the robot
RECOVERS = 60.0  # [s] for which it is waited that the robot dances again: a busy machine starts nodes slowly
AGAIN, FIRST_OFF = 1.5, 0.01  # [s], [rad]


def kill_cases(plan: Plan) -> list[list[Any]]:
    """Each control node in turn, so often."""
    return [[node, k] for k in range(plan.kills) for node in KILLED]


@contextlib.contextmanager
def start_kills(plan: Plan) -> Iterator[Try]:
    """A dance whose nodes are started again as often as they die."""
    with without_viewer(plan, COMMANDS, STATES) as stack:
        for child in stack.session.supervisor.children.values():
            child.restarts = 10 * len(KILLED) * plan.kills
        yield lambda job: kill(stack, plan, *job)


def kill(stack: ObservedStack, plan: Plan, node: str, count: int) -> dict[str, Any]:
    """Kill a node: when commands come again, how far from the robot, and when it dances again."""
    stack.until(stack.window(CALM), lambda w: dances(stack, w), CALM_LIMIT)
    stack.run(float(plan.rng(node, count).uniform(0.0, CALM)))
    process = stack.session.supervisor.children[node].process

    def end() -> None:
        assert process is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)

    window = stack.window(CALM, end)
    killed, velocity = window.begin, stack.robot.velocity

    def runs(w: FaultWindow) -> bool:
        child = stack.session.supervisor.children[node]
        if child.process is process or not child.ready.is_set():
            return False
        # What moves before the new process is ready still follows the last words of the old one.
        since = max(child.started[-1] + child.ready_after, w.end - 2.0 * CALM)
        return math.isfinite(moves_from(w.joints[COMMANDS], velocity, since))

    window = stack.until(window, runs, RECOVERS)
    commands, states = window.joints[COMMANDS], window.joints[STATES]
    gap, k = longest_gap(commands.t, window.begin, window.end)
    first_off = math.nan
    if gap > CEASED and k < len(commands.t):
        before = states.q[states.t <= commands.t[k]]
        first_off = float(np.abs(commands.q[k] - before[-1]).max()) if len(before) else math.inf
    rested = _last_rest(commands, velocity, killed)
    back = moves_from(commands, velocity, rested)
    return {
        "gap_s": gap,
        "first_off": first_off if gap > CEASED else 0.0,
        "ceased": gap > CEASED,
        "dances_again_s": back - killed if runs(window) else math.inf,
        "speed": float((np.abs(states.v) / velocity).max(initial=0.0)),
        "stale": not runs(window),
        "words": [f"{t.node}: {t.message}" for t in window.told if t.level >= ERROR][-1:],
    }


def _last_rest(commands: Joints, velocity: np.ndarray, since: float) -> float:
    """End of the longest rest of commands after a time [s]; that time where they never rested."""
    moving = commands.t[1:][commands.pace(velocity) > 1e-3]
    gaps = np.diff(np.concatenate([[since], moving[moving >= since]]))
    return since if not len(gaps) or gaps.max() < CEASED else float(since + gaps[: gaps.argmax() + 1].sum())


def judge_kills(outcomes: Sequence[dict[str, Any]]) -> list[MeasuredFault]:
    """Times and first commands, of all and of each node."""
    ceased = [o for o in outcomes if o["ceased"]]
    found = [
        *spread(
            "commands again after", [number(o["gap_s"]) for o in outcomes], {"p50": None, "p95": AGAIN, "max": None}
        ),
        MeasuredFault(
            "first command from the robot, max",
            max((number(o["first_off"]) for o in ceased), default=0.0),
            FIRST_OFF,
            "rad",
        ),
        MeasuredFault("commands ceased in", len(ceased)),
        *spread("dances again after", [number(o["dances_again_s"]) for o in outcomes], {"p50": None, "max": None}),
        MeasuredFault("did not dance again", sum(o["dances_again_s"] is None for o in outcomes), 0),
        MeasuredFault("joint speed / limit", max(o["speed"] for o in outcomes)),
    ]
    for node in dict.fromkeys(o["case"][0] for o in outcomes):
        own = [o for o in outcomes if o["case"][0] == node]
        found += spread(
            f"  {node}: commands again after", [number(o["gap_s"]) for o in own], {"p50": None, "max": None}
        )
        found += spread(f"  {node}: dances again after", [number(o["dances_again_s"]) for o in own], {"max": None})
    return found


KILLS_ROW = FaultRow(
    "kills",
    "kill -9 of a node: it is restarted, and commands begin at the posture of the robot",
    kill_cases,
    start_kills,
    judge_kills,
)
