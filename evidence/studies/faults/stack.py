"""A running stack and its observer: what commands and joints do in a time in which something happens to it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from evidence.studies.companion import READY, Companion
from evidence.studies.faults.figures import Joints, Plan
from evidence.studies.observer import load
from humanoid_control.robots import load_robot
from humanoid_control.session import Session, Stack, StackFailure

COMMANDS, STATES = "joint_commands", "joint_states"
GLANCE = 0.25  # [s] between two looks at what is waited for
OK, WARN, ERROR = 0, 1, 2


class ReportedState(NamedTuple):
    """A status of a node: when it came [s], its node, its level and its message."""

    t: float
    node: str
    level: int
    message: str


class FaultWindow(NamedTuple):
    """What was heard in some time.

    Attributes:
        begin, end: [s] of the monotonic clock, as all arrivals. joints: by topic. targets: rows of positions.
        told: of all nodes, in order. slept: the longest time in which the observer itself heard nothing [s].
    """

    begin: float
    end: float
    joints: dict[str, Joints]
    targets: np.ndarray
    told: list[ReportedState]
    slept: float

    def then(self, other: FaultWindow) -> FaultWindow:
        """This one and the one that follows it."""
        joined = {
            topic: Joints(*(np.concatenate(two) for two in zip(one, other.joints[topic], strict=True)))
            for topic, one in self.joints.items()
        }
        targets = np.concatenate([self.targets, other.targets])
        slept = max(self.slept, other.slept)
        return FaultWindow(self.begin, other.end, joined, targets, self.told + other.told, slept)

    def first_said(self, words: Sequence[str], since: float, joint: str = "") -> tuple[float, str]:
        """When somebody said one of some words, and the name of a joint [s]; infinite: nobody; and what was said."""
        for one in self.told:
            if one.t >= since and one.level and joint in one.message and any(w in one.message for w in words):
                return one.t, f"{one.node.rsplit('/', 1)[-1]}: {one.message}"
        return float("inf"), ""


class ObservedStack:
    """A session with an observer next to it; use as a context manager.

    Attributes:
        session: of the stack. robot: its robot.
    """

    def __init__(self, stack: Stack, plan: Plan, topics: Sequence[str] = (COMMANDS, STATES), dances: bool = True):
        """Create the observed stack.

        Args:
            stack: what runs. plan: robot and settings. topics: that are heard. dances: wait until it moves.
        """
        self.robot = load_robot(plan.robot, "fixed")
        self.session = Session(stack, plan.robot, plan.settings_of(stack.executables), quiet=True)
        self._words, self._dances = (plan.robot, *topics), dances
        self._folder = tempfile.TemporaryDirectory()
        self._count = 0

    def __enter__(self) -> ObservedStack:
        self.session.__enter__()
        try:
            if self._dances:
                self.session.wait_first_motion()
            self._observer = Companion("observer", *self._words, supervised=True)
            if self._observer.heard() != READY:
                raise StackFailure("the observer of the stack did not start")
            self.run(0.0)
        except BaseException as e:
            self.__exit__(type(e), e, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if hasattr(self, "_observer"):
            self._observer.__exit__(kind, error, trace)
        self.session.__exit__(kind, error, trace)
        self._folder.cleanup()

    def run(self, seconds: float) -> None:
        """Go on for some time [s].

        Raises:
            KeyboardInterrupt: a signal stopped the session. StackFailure: a node could not be kept alive.
        """
        self.session.run(seconds)
        if self.session.stopped.is_set():
            raise KeyboardInterrupt

    def window(self, seconds: float, meanwhile: Callable[[], Any] = lambda: None) -> FaultWindow:
        """Listen for some time [s], which begins now and in which something is done first."""
        self._take()
        begin = time.monotonic()
        meanwhile()
        return self.more(begin, max(0.0, begin + seconds - time.monotonic()))

    def more(self, begin: float, seconds: float) -> FaultWindow:
        """Go on for some time [s]; what was heard since the last window, which ended at `begin`."""
        self.run(seconds)
        end = time.monotonic()
        arrays, told = self._take()
        joints = {t: Joints.of(rows, self.robot.n) for t, rows in arrays.items() if t not in ("targets", "slept")}
        slept = arrays["slept"][:, 1].max(initial=0.0)
        return FaultWindow(
            begin, end, joints, arrays["targets"], [ReportedState(*one[:4]) for one in told], float(slept)
        )

    def until(self, window: FaultWindow, true: Callable[[FaultWindow], bool], limit: float) -> FaultWindow:
        """A window that continues until something is true of it, or for `limit` [s] at most."""
        end = time.monotonic() + limit
        while not true(window) and time.monotonic() < end:
            window = window.then(self.more(window.end, GLANCE))
        return window

    def level(self, node: str) -> int:
        """Level of a node's last status; `ERROR` before it said anything."""
        status = next((s for name, s in self.session.monitor.nodes.items() if name.endswith(node)), None)
        return ERROR if status is None else int(status.level)

    def call(self, service: str) -> bool:
        """Call a Trigger service; whether it was done within two seconds."""
        from std_srvs.srv import Trigger

        node = self.session.monitor.node
        client, end = node.create_client(Trigger, service), time.monotonic() + 2.0
        answer = None
        while time.monotonic() < end and (answer is None or not answer.done()):
            if answer is None and client.service_is_ready():
                answer = client.call_async(Trigger.Request())
            self.run(0.02)
        node.destroy_client(client)
        return bool(answer is not None and answer.done() and answer.result().success)

    def _take(self) -> tuple[dict[str, np.ndarray], list[list[Any]]]:
        path = Path(self._folder.name) / f"{self._count}.npz"
        self._count += 1
        self._observer.say(str(path))
        if self._observer.heard() != "done":
            raise StackFailure("the observer of the stack ended")
        found = load(path)
        path.unlink()
        return found


def ask(companion: Companion, **what: Any) -> dict[str, Any]:
    """What a companion that talks JSON answers.

    Raises:
        StackFailure: it ended.
    """
    companion.say(json.dumps(what))
    if not (said := companion.heard()):
        raise StackFailure("a process of the study ended")
    return json.loads(said)
