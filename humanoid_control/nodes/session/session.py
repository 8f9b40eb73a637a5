"""Listens to a running stack: diagnostics of every node, and whether the commands move.

Also here:

* One directory a run: parameters, logs, recordings.
* A stack that runs under supervision, with its monitor and, if wanted, its recorder.
"""

from __future__ import annotations

import datetime
import itertools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from humanoid_control.nodes.session.supervisor import InputRefused, StackFailure, Supervisor, describe, node_command
from humanoid_control.nodes.stacks import Stack, parameters_file
from humanoid_control.paths import state_dir
from humanoid_control.terminal import IMITATION, SIMULATION, TENDONS, compile_first, warn

# -------- Listens to a running stack: diagnostics of every node, and whether the commands move


class Monitor:
    """A small ROS node in the command's own process.

    Attributes:
        nodes: node -> (level, message, values) of its last diagnostics.
        moving: commands that differ from the first one have been heard, and joint states too.
    """

    def __init__(self, namespace: str = "") -> None:
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.signals import SignalHandlerOptions
        from sensor_msgs.msg import JointState

        from humanoid_control.nodes.base.messages import EVENTS, STREAM_IN
        from humanoid_control.nodes.base.runner import make_executor

        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node: Any = rclpy.create_node("monitor", namespace=namespace)
        self._executor = make_executor()
        self._executor.add_node(self.node)
        self.nodes: dict[str, tuple[int, str, dict[str, str]]] = {}
        self.moving = False
        self._first: np.ndarray | None = None
        self._states = False
        self._subscriptions = [
            self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVENTS),
            self.node.create_subscription(JointState, "joint_states", self._on_states, STREAM_IN),
            self.node.create_subscription(JointState, "joint_commands", self._on_commands, STREAM_IN),
        ]

    def _on_diagnostics(self, m: Any) -> None:
        for s in m.status:
            level = s.level[0] if isinstance(s.level, bytes) else int(s.level)
            self.nodes[s.name.strip("/")] = (level, s.message, {v.key: v.value for v in s.values})

    def _on_states(self, _: Any) -> None:
        self._states = True

    def _on_commands(self, m: Any) -> None:
        p = np.asarray(m.position or m.velocity)  # a robot under feedback is commanded velocities alone
        if self._first is None:
            self._first = p
        elif self._states and p.shape == self._first.shape and np.abs(p - self._first).max(initial=0.0) > 1e-3:
            self.moving = True
            # Enough is known; the streams would only cost time from now on.
            for s in self._subscriptions[1:]:
                self.node.destroy_subscription(s)
            self._subscriptions = self._subscriptions[:1]

    def spin(self, seconds: float) -> None:
        """Take what has come, or wait for it [s]."""
        self._executor.spin_once(timeout_sec=seconds)

    def hold_clip_at(self, seconds: float, timeout: float = 10.0) -> bool:
        """Ask the streamer to go to a place in the clip and stand still there; whether it answered."""
        from std_msgs.msg import Float64
        from std_srvs.srv import Trigger

        from humanoid_control.nodes.base.messages import EVENTS

        seek = self.node.create_publisher(Float64, "clip/seek", EVENTS)
        pause = self.node.create_client(Trigger, "trajectory_streamer/pause")
        end, answer = time.monotonic() + timeout, None
        while time.monotonic() < end:
            self.spin(0.05)
            if answer is None and pause.service_is_ready() and seek.get_subscription_count():
                seek.publish(Float64(data=seconds))
                answer = pause.call_async(Trigger.Request())
            if answer is not None and answer.done():
                return True
        return False

    def line(self) -> str:
        """One line of status: the worst node's message, or 'all ok'."""
        worst = max(self.nodes.items(), key=lambda kv: kv[1][0], default=None)
        if worst is None:
            return "waiting"
        name, (level, message, _) = worst
        return "all ok" if level == 0 else f"{name}: {message}"[:70]

    def close(self) -> None:
        import rclpy

        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()


# -------- One directory a run: parameters, logs, recordings


def new_run_directory(name: str) -> Path:
    """Make a directory for this run below the state directory, and point `latest` to it."""
    root = state_dir() / "runs"
    root.mkdir(exist_ok=True)
    stamp = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}_{name}"
    for k in itertools.count():
        path = root / (stamp if k == 0 else f"{stamp}_{k}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        latest = root / "latest"
        latest.unlink(missing_ok=True)
        latest.symlink_to(path.name)
        return path
    raise AssertionError


def discard_run_directory(path: Path) -> None:
    """Remove the directory of a run that never was one; `latest` is again the one before."""
    shutil.rmtree(path, ignore_errors=True)
    latest = path.parent / "latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
        if others := sorted(p.name for p in path.parent.iterdir() if p.is_dir()):
            latest.symlink_to(others[-1])


def write_parameters(directory: Path, parameters: dict[str, Any]) -> Path:
    """Write the ROS parameter file of a run."""
    path = directory / "parameters.yaml"
    path.write_text(yaml.safe_dump(parameters, sort_keys=False))
    return path


# -------- A stack that runs under supervision, with its monitor and, if wanted, its recorder

FIRST_MOTION_TIMEOUT = 45.0
FIRST_WORD_TIMEOUT = 12.0  # [s] nodes that are ready and can be heard say how they are every second


class Session:
    """Starts a stack, waits for what it waits for, and stops it; use as a context manager."""

    def __init__(
        self,
        stack: Stack,
        shared: dict[str, Any],
        settings: dict[str, dict[str, Any]],
        namespace: str = "",
        record: bool = False,
        quiet: bool = False,
        topics: tuple[str, ...] = (),
    ) -> None:
        """Prepare.

        Args:
            stack, shared, settings: the nodes and their parameters, as of `parameters_file`.
            namespace: of the nodes.
            record, topics: record these topics, all where none is named.
            quiet: do not print what nodes complain about; it is in `said`.
        """
        self.stack, self.namespace, self.quiet = stack, namespace, quiet
        self.directory = new_run_directory(stack.name)
        self.bag, self._topics = self.directory / "recording" if record else None, topics
        self.stopped = threading.Event()
        self.said: list[tuple[str, str]] = []
        self._held: list[str] | None = []  # lines that wait until the nodes are ready
        self.supervisor = Supervisor(self.directory, self._say)
        source = {**stack.settings.get("state_estimator", {}), **settings.get("state_estimator", {})}.get("source")
        self._rooms = [IMITATION]  # several nodes would compile the same at once, and be late
        self._rooms += [SIMULATION] if any(n.executable == "simulator" for n in stack.nodes) else []
        self._rooms += [TENDONS] if source == "tendons" else []
        self._parameters = write_parameters(self.directory, parameters_file(stack, shared, settings))
        self.monitor: Monitor | None = None
        self._stopping = False
        self.begin = time.monotonic()

    def _say(self, name: str, text: str) -> None:
        if self._stopping and "killed" not in text:
            return  # nodes that miss those already stopped
        self.said.append((name, text))
        if self._held is not None:
            self._held.append(f"{name}: {text}")
        elif not self.quiet:
            warn(f"  {name}: {text}")

    def _print_held(self, but: str = "") -> None:
        """Print what was said so far, but for lines that an error repeats."""
        lines, self._held = self._held or [], None
        for line in lines:
            if not self.quiet and line not in but:
                warn(f"  {line}")

    def __enter__(self) -> Session:
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, lambda *_: self.stopped.set())
        return self

    def __exit__(self, kind: object, error: object, *_: object) -> None:
        self.stop()
        if isinstance(error, InputRefused):  # its line is all that there is to know
            discard_run_directory(self.directory)

    def start(self) -> None:
        """Start recorder, nodes and monitor; wait until all are ready.

        Raises:
            InputRefused: a node refused its input; leaving the context then removes the run's directory.
            StackFailure: a node did not start.
        """
        compile_first(*self._rooms)
        self.begin = time.monotonic()
        if self.bag is not None:
            command = [sys.executable, "-u", "-m", "humanoid_control.cli.main", "record", "-o", str(self.bag)]
            self.supervisor.start("record", [*command, *(["--topics", *self._topics] if self._topics else [])])
        for spec in self.stack.nodes:
            remaps = self.stack.remaps.get(spec.executable)
            command = node_command(spec.module, self._parameters, self.namespace, remaps)
            self.supervisor.start(spec.executable, command)
        self.monitor = Monitor(self.namespace)
        try:
            self.supervisor.wait_ready()
        except StackFailure as e:
            self._print_held(str(e))
            raise
        self._print_held()

    def wait_first_motion(self, timeout: float = FIRST_MOTION_TIMEOUT) -> float:
        """Wait until joint states arrive and commands move; how long after the start [s].

        Raises:
            StackFailure: nothing arrives, as where discovery is switched off.
        """
        assert self.monitor is not None
        begin = time.monotonic()
        while not self.monitor.moving:
            self.monitor.spin(0.02)
            if self.stopped.is_set():
                break
            self.check()
            if time.monotonic() - begin > (timeout if self.monitor.nodes else min(timeout, FIRST_WORD_TIMEOUT)):
                raise StackFailure(self._why_silent())
        return time.monotonic() - self.begin

    def _why_silent(self) -> str:
        assert self.monitor is not None
        if not self.monitor.nodes:
            return (
                "the nodes run but are not heard: discovery does not work in this ROS domain; check "
                "ROS_AUTOMATIC_DISCOVERY_RANGE, ROS_DOMAIN_ID and the loopback interface with `humanoid doctor`"
            )
        worst = [f"{n}: {m}" for n, (level, m, _) in self.monitor.nodes.items() if level]
        return (
            f"nothing moves after {FIRST_MOTION_TIMEOUT:g} s: {'; '.join(worst) or 'see the logs'} ({self.directory})"
        )

    def check(self) -> None:
        """Look after the nodes once.

        Raises:
            StackFailure: one died too often.
        """
        if not self.supervisor.watch():
            dead = [c.name for c in self.supervisor.children.values() if c.gave_up]
            raise StackFailure(f"{', '.join(dead)} could not be kept alive: see {self.directory}")

    def run(self, seconds: float, show: Callable[[float, str], None] | None = None) -> float:
        """Keep running for some time (infinite: until a signal); how long it was [s]."""
        begin = time.monotonic()
        while not self.stopped.is_set() and time.monotonic() - begin < seconds:
            assert self.monitor is not None
            self.monitor.spin(0.1)
            self.check()
            if show is not None:
                show(time.monotonic() - begin, self.monitor.line())
        return time.monotonic() - begin

    def stop(self) -> float:
        """Stop everything; how long it took [s]."""
        self._stopping = True
        if self.monitor is not None:
            self.monitor.close()
            self.monitor = None
        return self.supervisor.stop(first="record")

    def processes(self) -> list[dict[str, Any]]:
        """Name, process id and start-up time of the nodes."""
        return describe(self.supervisor.children)
