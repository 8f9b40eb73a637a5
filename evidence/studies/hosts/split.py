"""A stack that runs on two hosts, and what is heard of it on both: the robot on one, its controller on the other."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from evidence.studies.hosts.link import TwoHosts
from evidence.studies.observer import load
from humanoid_control.errors import HumanoidError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.session import find_stack

OBSERVER = "evidence.studies.observer"
ROBOT_SIDE, CONTROL_SIDE = 0, 1
ROBOT_NODES = ("simulator", "state_estimator")
CONTROL_NODES = ("whole_body_ik", "trajectory_streamer")
PATIENCE = 180.0  # [s] in which all must be running: kernels may have to be compiled
PERIOD = 0.002  # [s] of the simulator's messages
MOVES = 0.3  # [rad/s] of any joint: the robot moves
SMOOTH = 0.02  # [s] over which the speed of a joint is taken for `MOVES`
LASTING, MOSTLY = 0.5, 0.8  # [s], and the share of it in which a robot moves that has begun to


class HostsFailure(HumanoidError):
    """A part of the split stack did not start, or ended."""


class Window(NamedTuple):
    """What was heard on both hosts in some time.

    Attributes:
        begin, end: [s] of the monotonic clock, as all arrivals.
        topics: by host, topic -> rows, see `observer.Heard`. told: by host, rows of diagnostics.
        wall: time of this machine's clock at the monotonic time 0 [s].
    """

    begin: float
    end: float
    topics: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
    told: tuple[list[list[Any]], list[list[Any]]]
    wall: float

    def arrivals(self, host: int, topic: str) -> np.ndarray:
        """Arrivals of messages of a topic on a host [s]."""
        return self.topics[host][topic][:, 0]

    def named(self, host: int, since: float, words: tuple[str, ...]) -> tuple[float, str]:
        """Time after which diagnostics on a host said one of some words [s], infinite: never; and the message."""
        for at, node, level, text, _ in self.told[host]:
            if at >= since and level and any(w in text for w in words):
                return at - since, f"{node}: {text}"
        return float("inf"), ""


@dataclass(frozen=True)
class Speeds:
    """Speeds of the robot's joints in a window, as shares of their limits.

    Attributes:
        speed: most of any joint.
        beyond: most that a reference of a drive moved beyond limit times period [rad]; 0: it never did.
        moving: time after which the robot moves, and continues moving [s]; infinite: never.
    """

    speed: float
    beyond: float
    moving: float


def speeds(robot: Robot, window: Window, since: float) -> Speeds:
    """Speeds from a time on [s]."""
    states, n = window.topics[ROBOT_SIDE]["joint_states"], robot.n
    states = states[states[:, 0] >= since]
    applied = window.topics[ROBOT_SIDE]["applied_commands"]
    applied = applied[applied[:, 0] >= since]
    if len(states) < 2 or len(applied) < 2:
        return Speeds(float("nan"), float("nan"), float("inf"))
    steps, passed = np.abs(np.diff(applied[:, 2 : 2 + n], axis=0)), np.diff(applied[:, 1])
    periods = PERIOD * np.maximum(1, np.round(passed / PERIOD))  # more than one where the observer lost messages
    beyond = steps - robot.velocity * periods[:, None]
    q, v = states[:, 2 : 2 + n], states[:, 2 + n : 2 + 2 * n]
    return Speeds(
        float(np.nanmax(np.abs(v) / robot.velocity)),
        max(0.0, float(np.nanmax(beyond))),
        _moving(states[:, 0], q) - since,
    )


def _moving(t: np.ndarray, q: np.ndarray) -> float:
    """First time from which a robot moves most of the next half second [s]; infinite: never."""
    ahead = np.searchsorted(t, t + SMOOTH).clip(max=len(t) - 1)
    moves = np.abs(q[ahead] - q).max(axis=1) > MOVES * SMOOTH
    count = np.concatenate([[0], np.cumsum(moves)])
    end = np.searchsorted(t, t + LASTING)
    share = (count[end] - count[:-1]) / np.maximum(end - np.arange(len(t)), 1)
    found = (moves & (share > MOSTLY) & (t + LASTING <= t[-1])).nonzero()[0]
    return float(t[found[0]]) if len(found) else float("inf")


def imitation_error(robot: Robot, window: Window, since: float) -> float:
    """Root mean square distance of the robot's points from the targets as they left the streamer [m]."""
    states, targets = window.topics[ROBOT_SIDE]["joint_states"], window.topics[CONTROL_SIDE]["targets"]
    targets = targets[targets[:, 0] >= since]
    if not len(states) or not len(targets):
        return float("nan")
    k = np.searchsorted(states[:, 0], targets[:, 0]).clip(max=len(states) - 1)
    names = list(robot.points)
    reached = np.array([robot.point_positions(robot.q(q), names) for q in states[k, 2 : 2 + robot.n]])
    off = reached - targets[:, 2:].reshape(len(targets), -1, 3)
    return float(np.sqrt(np.nanmean((off**2).sum(axis=2))))


class SplitStack:
    """A running stack, split over two hosts; use as a context manager.

    Attributes:
        hosts: the two hosts and the link between them. robot: that is simulated on the first.
    """

    def __init__(
        self, robot: str, domain: str, clock: bool = False, settings: Mapping[str, str] | None = None, stack: str = ""
    ) -> None:
        """Create the split stack.

        Args:
            robot: of the catalogue, or path of a URDF. domain: ROS_DOMAIN_ID.
            clock: the controller has a clock of its own, see `TwoHosts.set_clock`.
            settings: NODE.PARAM -> value. stack: its name; empty: imitation.
        """
        self._name, self.robot, self._clock = robot, load_robot(robot, "fixed"), clock
        self._stack, self._settings = find_stack(stack or "imitation"), settings or {}
        self.hosts = TwoHosts(domain)
        self._folder = tempfile.TemporaryDirectory()
        self._count = 0

    def __enter__(self) -> SplitStack:
        self.hosts.__enter__()
        try:
            self._start()
        except BaseException as e:
            self.__exit__(type(e), e, None)
            raise
        return self

    def _start(self) -> None:
        folder, observer = Path(self._folder.name), [sys.executable, "-u", "-m", OBSERVER, self._name]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._observers = [self.hosts.start(host, observer, **pipes) for host in (0, 1)]
        self._logs = [folder / "robot.log", folder / "control.log"]
        self._parts = [self._up(host, nodes) for host, nodes in ((0, ROBOT_NODES), (1, CONTROL_NODES))]
        for o in self._observers:
            self._answer(o, "ready")
        begin = time.monotonic()
        while not self._runs():
            self.check()
            if time.monotonic() - begin > PATIENCE:
                raise HostsFailure(f"nothing moved after {PATIENCE:g} s: {self._last_words()}")

    def _up(self, host: int, nodes: tuple[str, ...]) -> subprocess.Popen:
        words = [sys.executable, "-u", "-m", "humanoid_control.cli.main", "up", self._stack.name, "--robot", self._name]
        words += ["--only", ",".join(nodes)]
        words += [w for k, v in self._settings.items() if k.split(".")[0] in nodes for w in ("--set", f"{k}={v}")]
        log = self._logs[host].open("w")
        return self.hosts.start(
            host, words, clock=self._clock and host == 1, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def _runs(self) -> bool:
        """Test whether the robot moves by commands of the other host."""
        window = self.window(1.0)
        return len(window.arrivals(0, "joint_commands")) > 20 and np.isfinite(speeds(self.robot, window, 0.0).moving)

    def check(self) -> None:
        """Test whether all processes are there.

        Raises:
            HostsFailure: one of them is gone.
        """
        for process in (*self._parts, *self._observers):
            if process.poll() is not None:
                raise HostsFailure(f"a part of the stack ended: {self._last_words()}")

    def _last_words(self) -> str:
        return " | ".join(" ".join(log.read_text().split())[-300:] for log in self._logs)

    def _answer(self, observer: subprocess.Popen, word: str) -> None:
        assert observer.stdout is not None
        if (said := observer.stdout.readline().strip()) != word:
            raise HostsFailure(f"an observer printed '{said}' instead of '{word}'")

    def _ask(self, host: int, line: str) -> None:
        observer = self._observers[host]
        assert observer.stdin is not None
        observer.stdin.write(line + "\n")
        observer.stdin.flush()
        self._answer(observer, "done")

    def seek(self, seconds: float) -> None:
        """Play the clip from there on [s]."""
        self._ask(CONTROL_SIDE, f"seek {seconds}")

    def window(self, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> Window:
        """Listen for some time [s], which begins now and in which something is done first."""
        self._take()
        begin = time.monotonic()
        meanwhile()
        time.sleep(max(0.0, begin + seconds - time.monotonic()))
        end = time.monotonic()
        topics, told = self._take()
        self.check()
        return Window(begin, end, topics, told, time.time() - time.monotonic())

    def _take(self) -> tuple[Any, Any]:
        self._count += 1
        paths = [Path(self._folder.name) / f"{host}_{self._count}.npz" for host in (0, 1)]
        for host, path in enumerate(paths):
            self._ask(host, str(path))
        loaded = [load(path) for path in paths]
        for path in paths:
            path.unlink()
        return tuple(x[0] for x in loaded), tuple(x[1] for x in loaded)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for observer in getattr(self, "_observers", ()):
            with contextlib.suppress(OSError):
                observer.stdin.close()
        self.hosts.__exit__(kind, error, trace)
        self._folder.cleanup()
