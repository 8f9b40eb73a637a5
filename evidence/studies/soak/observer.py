"""The observer of a soak: a process of its own that hears what a robot's driver would hear, and keeps it.

Run as `python -m evidence.studies.soak.observer ROBOT FILE`; it says `ready` with the first command, ends with
SIGINT and then writes FILE (.npz). With FILE alone it listens to nobody: above all other processes it sleeps, and
notes when it is woken late. Where it is late no process can be on time: the machine itself stood still, as a virtual
one does whose host is busy.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.files import whole_file
from humanoid_control.hardware.realtime import SpareTimeCollector, become_real_time
from humanoid_control.robots import Robot, load_robot

COMMANDS = ("t", "stamp", "step", "speed", "outside", "finite", "off")
STATES = ("t", "speed", "finite")
STALE = 0.1  # [s] after which joint states say nothing about where the robot is: the next ones do
DEPTH = 200  # messages that wait while the observer is not running
PRIORITY = 51  # of real-time scheduling, a driver's: one that is itself late would call the commands late
SPARE = 0.002  # [s] between two messages
FIRST = 98  # of real-time scheduling: above nodes (50), a driver's guardian (80) and all else of this package
PULSE = 0.002  # [s] of sleep
LATE = 0.002  # [s] of lateness that is noted
AFTER = 0.02  # [s] after a gap in which its cause may be noted


class SoakObservations:
    """Everything that counts of joint commands and joint states, as columns.

    Attributes:
        commands: rows of COMMANDS: time of arrival and stamp [s], the largest step of a joint since the command before
            [rad], the largest speed that is commanded as a share of its limit (0 where no speeds are), the farthest
            that a joint is asked to be beyond its range [rad], 1 where all is finite, and the largest distance of a
            joint from the last joint states [rad], where those are older than STALE from the next ones; NaN: none came.
        states: rows of STATES: time of arrival [s], the largest measured speed as a share of its limit, 1 where all
            is finite.
        diagnostics: (time of arrival [s], node, level, message), where one of the last two changes.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.index = {name: k for k, name in enumerate(robot.joint_names)}
        self.commands, self.states = array("d"), array("d")
        self.diagnostics: list[tuple[float, str, int, str]] = []
        self._last: np.ndarray | None = None
        self._measured, self._measured_at = np.full(robot.n, np.nan), np.full(robot.n, -np.inf)
        self._waiting: list[tuple[int, np.ndarray]] = []  # commands that are compared with the next joint states
        self._told: dict[str, tuple[int, str]] = {}

    def command(self, names: Any, stamp: float, q: np.ndarray, v: np.ndarray, now: float) -> None:
        """Take a command: positions (k,), speeds (k,), either may be empty."""
        k, r = [self.index[n] for n in names if n in self.index], self.robot
        finite = bool(np.isfinite(q).all() and np.isfinite(v).all())
        step = outside = off = 0.0
        if len(q) == len(k):
            at = np.full(r.n, np.nan)
            at[k] = q
            if self._last is not None:
                step = _largest(np.abs(at - self._last))
            outside = max(_largest(at - r.upper), _largest(r.lower - at), 0.0)
            off = _largest(np.abs(at - self._measured))
            if now - self._measured_at[k].min(initial=now) > STALE:
                off = np.nan
                self._waiting.append((len(self.commands) + COMMANDS.index("off"), at))
            self._last = at
        speed = _largest(np.abs(v) / r.velocity[k]) if len(v) == len(k) else 0.0
        self.commands.extend((now, stamp, step, speed, outside, float(finite), off))

    def state(self, names: Any, q: np.ndarray, v: np.ndarray, now: float) -> None:
        """Take joint states."""
        k = [self.index[n] for n in names if n in self.index]
        finite = bool(np.isfinite(q).all() and np.isfinite(v).all())
        if len(q) == len(k) and finite:
            self._measured[k], self._measured_at[k] = q, now
            for place, at in self._waiting:
                self.commands[place] = _largest(np.abs(at - self._measured))
            self._waiting.clear()
        speed = _largest(np.abs(v) / self.robot.velocity[k]) if len(v) == len(k) else 0.0
        self.states.extend((now, speed, float(finite)))

    def status(self, node: str, level: int, message: str, now: float) -> None:
        """Take a node's diagnostics."""
        if self._told.get(node) != (level, message):
            self._told[node] = (level, message)
            self.diagnostics.append((now, node, level, message))

    def save(self, path: Path) -> None:
        """Write all columns."""
        told = np.array(json.dumps(self.diagnostics))
        with whole_file(path) as part, part.open("wb") as file:
            np.savez_compressed(
                file,
                commands=np.frombuffer(self.commands).reshape(-1, len(COMMANDS)),
                states=np.frombuffer(self.states).reshape(-1, len(STATES)),
                diagnostics=told,
            )


def _largest(values: np.ndarray) -> float:
    return float(np.nanmax(values)) if len(values) and not np.isnan(values).all() else 0.0


def load(path: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], list[list[Any]]]:
    """Columns of commands and of states by name, and the rows of diagnostics."""
    with np.load(path) as file:
        commands = dict(zip(COMMANDS, file["commands"].T, strict=True))
        states = dict(zip(STATES, file["states"].T, strict=True))
        return commands, states, json.loads(str(file["diagnostics"]))


def listen(robot: Robot, path: Path) -> None:
    """Listen until SIGINT or SIGTERM, then write."""
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import JointState

    from humanoid_control.nodes.base.messages import EVENTS
    from humanoid_control.nodes.base.runner import make_executor

    stop, heard = threading.Event(), SoakObservations(robot)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    def on_command(m: Any) -> None:
        stamp = m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec
        heard.command(m.name, stamp, np.asarray(m.position), np.asarray(m.velocity), time.time())

    def on_state(m: Any) -> None:
        heard.state(m.name, np.asarray(m.position), np.asarray(m.velocity), time.time())

    def on_diagnostics(m: Any) -> None:
        for s in m.status:
            heard.status(s.name, int.from_bytes(s.level, "little"), s.message, time.time())

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("soak_observer")
    qos = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(JointState, "joint_commands", on_command, qos)
    node.create_subscription(JointState, "joint_states", on_state, qos)
    node.create_subscription(DiagnosticArray, "/diagnostics", on_diagnostics, EVENTS)
    executor = make_executor()
    executor.add_node(node)
    become_real_time(PRIORITY)
    collector, told = SpareTimeCollector(), False
    while not stop.is_set():
        with contextlib.suppress(KeyError, ValueError, TypeError):  # somebody else's nonsense on these topics
            executor.spin_once(timeout_sec=0.1)
        collector.run(SPARE)
        if len(heard.commands) and not told:
            print("ready", flush=True)
            told = True
    executor.shutdown()
    node.destroy_node()
    rclpy.try_shutdown()
    heard.save(path)


# -------- the pulse of the machine


def granted() -> bool:
    """True where this process is above the nodes; elsewhere its lateness says nothing about the machine."""
    return os.sched_getscheduler(0) == os.SCHED_FIFO


def beat(path: Path) -> None:
    """Sleep and wake until SIGINT or SIGTERM, then write when it was late [s since the epoch], and by how much."""
    stop, late = threading.Event(), array("d")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    become_real_time(FIRST)
    counts = granted()
    print("ready", flush=True)
    before = time.monotonic()
    while not stop.is_set():
        time.sleep(PULSE)
        now = time.monotonic()
        if counts and now - before - PULSE > LATE:
            late.extend((time.time(), now - before - PULSE))
        before = now
    with whole_file(path) as part, part.open("wb") as file:
        np.savez_compressed(file, late=np.frombuffer(late).reshape(-1, 2))


def load_pulse(path: Path) -> np.ndarray:
    """Late wakings (n, 2): when [s since the epoch], and by how much [s]."""
    with np.load(path) as file:
        return np.asarray(file["late"])


def stood_still(late: np.ndarray, begin: float, end: float) -> float:
    """Longest time for which the machine stood still within a gap from `begin` to `end` [s since the epoch]."""
    own = (late[:, 0] >= begin) & (late[:, 0] - late[:, 1] <= end) & (late[:, 0] <= end + AFTER)
    return float(np.minimum(late[own, 1], end - begin).max(initial=0.0))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        beat(Path(sys.argv[1]))
    else:
        listen(load_robot(sys.argv[1], "fixed"), Path(sys.argv[2]))
