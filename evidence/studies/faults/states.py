"""Row `states`: joint states that are wrong, one case after the other on a dancing stack."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evidence.studies.companion import Companion
from evidence.studies.faults.figures import (
    FaultRow,
    MeasuredFault,
    Plan,
    Try,
    beyond_range,
    moves_from,
    number,
    over_speed,
    rest,
    spread,
)
from evidence.studies.faults.relay import FAULTS, TRUE_STATES
from evidence.studies.faults.stack import COMMANDS, GLANCE, WARN, FaultWindow, ObservedStack, ask
from humanoid_control.session import find_stack

LASTS = (1.1, 1.4)  # [s] of a fault: longer than the silence of a joint that must stop the robot, and braking
CALM, CALM_LIMIT = 0.3, 4.0  # [s] that a stack is well before a fault, and how long that is waited for
BACK = 4.0  # [s] after a fault in which the robot must move again
BY_ITSELF = 0.7  # [s] after a fault for which it may begin to move by itself, where nobody asks for more
FOLLOWABLE = 20.0  # [rad/s^2] by simulated drives; at the node's default some joints are thrown about by their stops
NOTICED, STOPPED = 0.5, 0.2  # [s]
SPEED, TINY = 1.05, 1e-9
HARMLESS = 0.15  # [rad] of commands in a time: joint states that stand still in it are as those of a robot that rests
WORDS = {
    "silent": ("no joint states", "no estimated_joint_states", "not measured"),
    "frozen": ("frozen", "following error"),
    "nan": ("not a number", "not measured"),
    "jumped": ("jumped", "from where it was", "its range is"),
    "dragged": ("following error",),
    "duplicate": ("twice",),
    "huge": ("its range is", "not a number"),
}
"""What diagnostics call a fault; where it is of one joint, they also name that."""
OF_ALL = ("silent", "frozen")
RESYNC = "~/resync"


def cases(plan: Plan) -> list[list[Any]]:
    """Kinds of faults in turn."""
    kinds = list(FAULTS)
    return [[kinds[k % len(kinds)], k] for k in range(plan.states)]


@contextlib.contextmanager
def start(plan: Plan) -> Iterator[Try]:
    """The imitation without a viewer, its joint states by way of the relay."""
    stack = find_stack("imitation").without("viewer")
    stack = dataclasses.replace(
        stack,
        remaps={**stack.remaps, "simulator": {"joint_states": TRUE_STATES}},
        settings={**stack.settings, "whole_body_ik": {"acceleration": FOLLOWABLE}},
    )
    with Companion("faults.relay", plan.robot) as relay:
        relay.heard()
        with ObservedStack(stack, plan, (COMMANDS, TRUE_STATES)) as running:
            yield lambda job: wrong_states(running, relay, plan, *job)


def wrong_states(stack: ObservedStack, relay: Companion, plan: Plan, kind: str, count: int) -> dict[str, Any]:
    """One fault: when it was noticed, how the robot stopped, and how it continued."""
    rng = plan.rng("states", count)
    joint = "" if kind in OF_ALL else str(rng.choice(stack.robot.joint_names))
    lasts, velocity = float(rng.uniform(*LASTS)), stack.robot.velocity
    window = stack.until(stack.window(CALM), lambda w: is_well(stack, w), CALM_LIMIT)
    well = is_well(stack, window)
    asked = {"fault": kind, "joint": joint or stack.robot.joint_names[0], "seconds": lasts}
    at = ask(relay, **asked)
    window = window.then(stack.more(window.end, GLANCE))
    window, resync = moves_again(stack, window, at["ended"])
    commands, joints = window.joints[COMMANDS], window.joints[TRUE_STATES]
    braked, rests = rest(commands, velocity, at["began"], at["ended"])
    named, text = window.first_said(WORDS[kind], at["began"], joint)
    said = [f"{t.node}: {t.message}" for t in window.told if t.level and t.t >= at["began"]]
    over, _ = over_speed(commands, velocity)
    during = commands.between(at["began"], at["ended"]).q
    moves = moves_from(commands, velocity, max(at["ended"], rests if math.isfinite(rests) else 0.0))
    return {
        "well_before": well,
        "joint": joint,
        "named_s": named - at["began"],
        "noticed_s": min(named, braked) - at["began"],
        "stop_s": rests - braked if math.isfinite(rests) else math.inf,
        "at_rest_s": rests - at["began"],
        "moves_again_s": moves - at["ended"],
        "resync": resync,
        "words": text or " | ".join(dict.fromkeys(said)),
        "moved": float(np.ptp(during, axis=0).max()) if len(during) else 0.0,
        "over_speed": over,
        # The first command is where the robot is, be that outside its range.
        "beyond": max(0.0, beyond_range(commands, stack.robot) - beyond_range(joints, stack.robot)),
        "speed": float((abs(joints.v) / velocity).max(initial=0.0)),
        "stale": not math.isfinite(moves),
    }


def is_well(stack: ObservedStack, window: FaultWindow) -> bool:
    """Test whether the robot dances and its nodes have nothing to complain of."""
    commands = window.joints[COMMANDS]
    quiet = all(stack.level(node) < WARN for node in ("whole_body_ik", "state_estimator"))
    return quiet and math.isfinite(moves_from(commands, stack.robot.velocity, window.end - 2 * CALM))


def moves_again(stack: ObservedStack, window: FaultWindow, ended: float) -> tuple[FaultWindow, bool]:
    """The window up to when the robot moves, and whether it did so only after `~/resync`, as its nodes had said."""

    def moves(w: FaultWindow) -> bool:
        return math.isfinite(moves_from(w.joints[COMMANDS], stack.robot.velocity, ended))

    def asks() -> list[str]:
        return [n for n, s in stack.session.monitor.nodes.items() if s.level and RESYNC in s.message]

    window = stack.until(window, lambda w: moves(w) or bool(asks()), BY_ITSELF)
    if moves(window):
        return window, False
    asking = asks()
    for node in asking:
        stack.call(f"/{node}/resync")
    return stack.until(window.then(stack.more(window.end, 0.0)), moves, BACK - BY_ITSELF), bool(asking)


def judge(outcomes: Sequence[dict[str, Any]]) -> list[MeasuredFault]:
    """Faults that were missed, times, limits and recoveries."""
    idle = [o for o in outcomes if o["case"][0] == "frozen" and o["moved"] < HARMLESS]
    missed = [o for o in outcomes if o not in idle and (o["named_s"] is None or o["at_rest_s"] is None)]
    shown = [o for o in outcomes if o not in idle]
    noticed = [number(o["noticed_s"]) for o in shown]
    stops = [number(o["stop_s"]) for o in shown]
    back = [number(o["moves_again_s"]) for o in outcomes]
    found = [
        MeasuredFault("not noticed", len(missed), 0),
        MeasuredFault("  frozen while the dance rests: no effect", len(idle)),
        MeasuredFault("  of these, not reported", sum(o["named_s"] is None for o in missed)),
        MeasuredFault("  of these, not at rest", sum(o["at_rest_s"] is None for o in missed)),
        *spread("noticed after", noticed, {"p50": None, "p99": None, "max": NOTICED}),
        *spread("at rest after", [number(o["at_rest_s"]) for o in shown], {"p50": None, "max": None}),
        *spread("braked stop", stops, {"p50": None, "max": STOPPED}),
        *spread("moves again after", back, {"p50": None, "max": BACK}),
        MeasuredFault("resumed only after resync", sum(o["resync"] for o in outcomes)),
        MeasuredFault("commands over a speed limit", sum(o["over_speed"] for o in outcomes), 0),
        MeasuredFault("commands outside their range", max(o["beyond"] for o in outcomes), TINY, "rad"),
        MeasuredFault("joint speed / limit", max(o["speed"] for o in outcomes), SPEED),
        MeasuredFault("begun before the recovery", sum(not o["well_before"] for o in outcomes)),
    ]
    return found + [MeasuredFault(f"  {kind} not noticed", count) for kind, count in _by_kind(missed).items()]


def _by_kind(missed: Sequence[dict[str, Any]]) -> dict[str, int]:
    kinds = [str(o["case"][0]) for o in missed]
    return {kind: kinds.count(kind) for kind in FAULTS if kind in kinds}


STATES_ROW = FaultRow(
    "states",
    "joint states silent, frozen, NaN, jumped, huge, contradictory, or of a joint that does not follow: reported and "
    "stopped, then resumed",
    cases,
    start,
    judge,
)
