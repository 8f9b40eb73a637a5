"""Row `starts`: a second controller is started next to one that commands, or at the same moment."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evidence.studies.faults.figures import (
    FaultRow,
    MeasuredFault,
    Plan,
    Try,
    contest,
    moves_from,
    over_speed,
    spread,
)
from evidence.studies.faults.stack import COMMANDS, ERROR, FaultWindow, ObservedStack
from humanoid_control.nodes import NODES
from humanoid_control.session import find_stack
from humanoid_control.session.runs import write_parameters
from humanoid_control.session.supervisor import READY_TIMEOUT, StackFailure, node_command

CONTROLLER, RIVAL = "whole_body_ik", "trajectory_streamer"
TWIN, OTHER = "twin", "other"  # of what sort the second one is: the same node, or another controller
BESIDE, TOGETHER = "beside", "together"  # when it is started
LATER = 1.0  # [s] by which the second one is later at most
READY, ENDS = READY_TIMEOUT, 5.0  # [s] in which a node must be ready, and end
SETTLED = 2.0  # [s] after both are ready in which it must be clear who commands
BEGINS = 3.0  # [s] in which one that runs must move the robot, or is started again
LAST = 0.3  # [s] at the end in which those are counted who command
CONTEST, NAMED = 0.1, "has another publisher"
RIVALS_TOPICS = {"reference_joint_states": "/joint_commands", "estimated_joint_states": "/estimated_joint_states"}


def cases(plan: Plan) -> list[list[Any]]:
    """Each sort of the second one at each moment, in turn."""
    sorts = [(second, when) for when in (BESIDE, TOGETHER) for second in (TWIN, OTHER)]
    return [[*sorts[k % len(sorts)], k] for k in range(plan.starts)]


@contextlib.contextmanager
def start(plan: Plan) -> Iterator[Try]:
    """The imitation without viewer and controller, which the cases start."""
    stack = find_stack("imitation").without("viewer").without(CONTROLLER)
    with ObservedStack(stack, plan, (COMMANDS,), dances=False) as running:
        controllers = Controllers(running, plan)
        yield lambda job: second_start(running, controllers, plan, *job)


class Controllers:
    """Processes of controllers on a running stack that has none."""

    def __init__(self, stack: ObservedStack, plan: Plan) -> None:
        self._stack, self._supervisor = stack, stack.session.supervisor
        imitation = find_stack("imitation")
        settings: dict[str, dict[str, Any]] = {**plan.settings_of(imitation.executables)}
        settings[RIVAL] = {**settings.get(RIVAL, {}), "solve": True}
        folder = stack.session.directory / "controllers"
        folder.mkdir()
        self._sorts: dict[str, str] = {}
        self._took: dict[str, float] = {}  # until one of a sort is ready [s]
        self._parameters = write_parameters(folder, imitation.ros_parameters({"robot": plan.robot}, settings))

    def start(self, name: str, sort: str = TWIN) -> None:
        """Start one; where it is no twin, it is another node, in a namespace of its own, that commands the same."""
        twin = sort == TWIN
        module = NODES[CONTROLLER if twin else RIVAL].module
        command = node_command(module, self._parameters, "" if twin else "rival", {} if twin else RIVALS_TOPICS)
        self._supervisor.start(name, command, essential=False, restarts=0)
        self._sorts[name] = sort

    def slower(self, sort: str) -> float:
        """Time by which one of a sort is ready later than the node of the stack [s]; 0 until both are known."""
        return max(0.0, self._took[sort] - self._took[TWIN]) if {sort, TWIN} <= self._took.keys() else 0.0

    def ready(self, name: str) -> bool:
        """Test whether it runs.

        Raises:
            StackFailure: it ended.
        """
        child = self._supervisor.children[name]
        if not child.alive:
            raise StackFailure(f"{name} ended: see {child.log}")
        if child.ready.is_set():
            self._took[self._sorts[name]] = child.ready_after
        return child.ready.is_set()

    def stop(self, name: str) -> None:
        """Stop it, and wait for its end."""
        child = self._supervisor.children.pop(name, None)
        if child is None or child.process is None or not child.alive:
            return
        child.process.send_signal(2)
        end = time.monotonic() + ENDS
        while child.alive and time.monotonic() < end:
            self._stack.run(0.05)
        if child.alive:
            child.process.kill()
            child.process.wait(ENDS)

    def running(self, name: str) -> bool:
        """Test whether it was started, and runs."""
        return name in self._supervisor.children and self._supervisor.children[name].alive


def second_start(
    stack: ObservedStack, controllers: Controllers, plan: Plan, sort: str, when: str, count: int
) -> dict[str, Any]:
    """One start of a second controller: steps over a limit, and how long both commanded."""
    later = float(plan.rng("starts", count).uniform(0.0, LATER))
    if when == TOGETHER:
        controllers.stop("first")
    else:
        begin(stack, controllers)
    window = stack.window(0.0)
    head_start = controllers.slower(sort) if when == TOGETHER else 0.0
    order = ["first", "second"] if head_start < later else ["second", "first"]
    for name in order:
        if name == "second" or when == TOGETHER:
            controllers.start(name, sort if name == "second" else TWIN)
        if name == order[0]:
            window = window.then(stack.more(window.end, abs(later - head_start)))
    ready = dict.fromkeys(order, False)

    def both(_: FaultWindow) -> bool:
        ready.update({name: controllers.ready(name) for name in order})
        return all(ready.values())

    window = stack.until(window, both, READY)
    if not all(ready.values()):
        raise StackFailure("a second controller was not ready in time")
    window = window.then(stack.more(window.end, SETTLED))
    commands, velocity = window.joints[COMMANDS], stack.robot.velocity
    over, worst = over_speed(commands, velocity)
    at_end = commands.between(window.end - LAST, math.inf)
    named, text = window.first_said((NAMED,), window.begin)
    controllers.stop("second")
    return {
        "later_s": later,
        "over_speed": over,
        "beyond": worst,
        "contest_s": contest(commands),
        "commanding": len(np.unique(at_end.sender)),
        "senders": len(np.unique(commands.sender)),
        "named": math.isfinite(named),
        "words": text,
        "errors": sum(t.level >= ERROR for t in window.told),
        "commands": len(commands.t),
    }


def begin(stack: ObservedStack, controllers: Controllers) -> None:
    """See to it that the first one commands, and moves the robot.

    Raises:
        StackFailure: it does not.
    """

    def moves(window: FaultWindow) -> bool:
        commands = window.joints[COMMANDS]
        return math.isfinite(moves_from(commands, stack.robot.velocity, window.end - 2.0 * LAST))

    if controllers.running("first") and moves(stack.until(stack.window(LAST), moves, BEGINS)):
        return
    controllers.stop("first")
    controllers.start("first")
    if not moves(stack.until(stack.window(LAST), lambda w: controllers.ready("first") and moves(w), READY)):
        raise StackFailure(f"{CONTROLLER} does not move the robot")


def judge(outcomes: Sequence[dict[str, Any]]) -> list[MeasuredFault]:
    """Steps over the limit, contests, and who commanded at the end."""
    held = sum(o["commanding"] == 0 for o in outcomes)
    found = [
        MeasuredFault("steps over a speed limit", sum(o["over_speed"] for o in outcomes), 0),
        MeasuredFault("  number of cases", sum(o["over_speed"] > 0 for o in outcomes)),
        MeasuredFault("farthest beyond a limit", max(o["beyond"] for o in outcomes), None, "rad"),
        *spread("both command during", [o["contest_s"] for o in outcomes], {"p50": None, "max": CONTEST}),
        MeasuredFault("two command at the end", sum(o["commanding"] > 1 for o in outcomes), 0),
        MeasuredFault("no controller commands at the end", held),
        MeasuredFault("not named on /diagnostics", sum(not o["named"] for o in outcomes), 0),
        MeasuredFault("commands of the second were received", sum(o["senders"] > 1 for o in outcomes)),
    ]
    parts = dict.fromkeys((o["case"][0], o["case"][1]) for o in outcomes)
    for sort, when in parts:
        own = [o for o in outcomes if o["case"][:2] == [sort, when]]
        over = sum(o["over_speed"] for o in own)
        found.append(MeasuredFault(f"  {sort}, {when}: steps over a limit in {len(own)}", over))
    return found


STARTS_ROW = FaultRow(
    "starts",
    "a second controller, with the same or another name, starts after the first or at the same time: no step beyond "
    "a speed limit, and one of them yields",
    cases,
    start,
    judge,
)
