"""Supervised processes: started, watched, restarted when they die or hang, stopped one by one, nothing left behind."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.in_child import die_with
from humanoid_control.nodes.base.heartbeat import HeartbeatMonitor
from humanoid_control.nodes.base.ros_env import GUARD, choose_discovery
from humanoid_control.nodes.base.runner import EXIT_BAD_INPUT, READY
from humanoid_control.nodes.session.fork_server import ForkedProcess, ForkServer
from humanoid_control.nodes.session.shared_memory import PortHolder, SharedMemoryKeeper, remove_leftovers

READY_TIMEOUT = 180.0  # [s]; a node may compile its kernels
STOP_LIMIT, FINISH_LIMIT = 2.2, 10.0  # [s] for all children together, and for one that has something to finish
RESTARTS, RESTART_WINDOW = 3, 60.0  # a child is restarted so often in so much time [s]
HANG_LIMIT = 0.8  # [s] for which the loop of a node may stand still; with the time between two looks a second
PATIENCE = 4.0  # times that limit for helpers: a page that loads in the viewer may hold its interpreter for a while
FORK_READY, FORK_FACTOR = 8.0, 4.0  # [s] in which a fork that is started again is ready; times its time before
DEAF_LIMIT = 1.5  # [s] for which a node may miss what others send
DEAF_WINDOW = 10.0  # [s] after the start of one of them in which that is laid to the middleware
HANG_VARIABLE = "HUMANOID_HANG_LIMIT"  # another limit [s]; inf: none, for a debugger
LAST_WORDS = 0.3  # [s] in which the last lines of a child that ended are read
FULL = 2**18  # [bytes] a disk with less is full

Report = Callable[[str, str], None]


@dataclass
class Child:
    """One supervised process.

    Attributes:
        name, log: of the process. command: its words.
        forked: it is forked from a process that has its libraries and kernels, where that is possible.
        essential: without it the stack cannot go on. restarts: so often it is started again.
        heartbeat: of the process that runs now. hung: it was killed because its loop stood still.
        why: its last words when it first ended, of the ends that count.
    """

    name: str
    command: list[str]
    log: Path
    essential: bool = True
    restarts: int = RESTARTS
    forked: bool = False
    heartbeat: HeartbeatMonitor | None = None
    pump: threading.Thread | None = None
    hung: str = ""
    why: str = ""
    process: subprocess.Popen | ForkedProcess | None = None
    ready: threading.Event = field(default_factory=threading.Event)
    started: list[float] = field(default_factory=list)
    last_lines: list[str] = field(default_factory=list)
    ready_after: float = float("nan")
    gave_up: bool = False

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class StackFailure(HumanoidError):
    """A node would not start, or could not be kept alive."""


class InputRefused(StackFailure):
    """A node refused its input: its line says why, and nothing ran."""


class Supervisor:
    """Runs child processes.

    Children get a session of their own, so that a Ctrl-C of the terminal reaches them once, through this process; they
    die with it, whatever kills it; they are asked to stop one after another, because the middleware can lock up when
    several participants leave at once, and are killed when they do not.
    """

    def __init__(self, directory: Path, report: Report, environment: dict[str, str] | None = None) -> None:
        """Prepare.

        Args:
            directory: of this run: logs go there.
            report: called with (name, line) for warnings, deaths and restarts.
            environment: more environment variables for the children.
        """
        self.directory, self.report = directory, report
        self.children: dict[str, Child] = {}
        self._environment = child_environment(directory, environment or {})
        self._hang_limit = hang_limit()
        self._born = time.time()
        self._keeper: SharedMemoryKeeper | None = None
        self._ports = PortHolder(self._born)
        self._server: ForkServer | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def load(self, *groups: str) -> None:
        """Have groups of kernels loaded by the process that forked children come from; returns at once."""
        if self._server is None:
            self._server = ForkServer(self._environment)
        if groups:
            with contextlib.suppress(OSError):
                self._server.load(*groups)

    def wait_loaded(self, timeout: float) -> bool:
        """Wait until that is done; whether it is after `timeout` [s], also where it never will."""
        with contextlib.suppress(OSError):
            return self._server is None or self._server.wait_loaded(timeout)
        return True

    @property
    def helpers(self) -> dict[str, int]:
        """Process ids of what the supervisor keeps beside it: what children are forked from, and the keeper."""
        kept = {"fork_server": self._server, "shared_memory_keeper": self._keeper}
        return {name: helper.pid for name, helper in kept.items() if helper is not None}

    def start(
        self, name: str, command: list[str], essential: bool = True, restarts: int = RESTARTS, forked: bool = False
    ) -> None:
        """Start a child; its output goes to `<name>.log`.

        Args:
            name, command: of the child.
            essential: False: where it cannot be kept alive, it is given up and the others go on.
            restarts: so often it is started again when it ends.
            forked: of what `load` has loaded; its command is that of a node (`node_command`).
        """
        if self._keeper is None:
            self._keeper = SharedMemoryKeeper(self._born)
        child = Child(name, command, self.directory / f"{name}.log", essential, restarts, forked)
        self.children[name] = child
        self._spawn(child)

    def _spawn(self, child: Child) -> None:
        child.ready.clear()
        child.hung, child.last_lines, child.heartbeat = "", [], HeartbeatMonitor()
        child.started.append(time.monotonic())
        child.process = self._forked(child) or self._afresh(child)
        child.heartbeat.handed_over()
        child.pump = threading.Thread(target=self._pump, args=(child, child.process), daemon=True)
        child.pump.start()

    def _forked(self, child: Child) -> ForkedProcess | None:
        """The child's process as a fork; None where it is to start afresh, or what it would be forked from is gone."""
        if not child.forked or self._server is None or "-m" not in child.command[:3]:
            return None
        if not self.wait_loaded(0.0):  # it may be compiling for minutes, and a dead node cannot wait
            return None
        assert child.heartbeat is not None
        _, _, _, module, *arguments = child.command
        try:
            return self._server.start(module, arguments, {}, {child.heartbeat.variable: child.heartbeat.descriptor})
        except OSError as e:
            self.report(child.name, f"starts afresh, which takes longer: {e}")
            return None

    def _afresh(self, child: Child) -> subprocess.Popen:
        assert child.heartbeat is not None
        environment = dict(self._environment)
        choose_discovery(environment, supervised=child.restarts > 0)
        return subprocess.Popen(
            child.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, child.heartbeat.variable: str(child.heartbeat.descriptor)},
            pass_fds=(child.heartbeat.descriptor,),
            start_new_session=True,
            preexec_fn=die_with(os.getpid()),
            text=True,
            errors="replace",
            bufsize=1,
        )

    def _pump(self, child: Child, process: subprocess.Popen | ForkedProcess) -> None:
        """Copy a child's output to its log, and report its warnings and errors.

        A log that cannot be written is no reason to stop reading: the child would wait for it.
        """
        assert process.stdout is not None
        with contextlib.ExitStack() as stack:
            log = None
            with contextlib.suppress(OSError):
                log = stack.enter_context(child.log.open("ab", buffering=0))
            for line in process.stdout:
                with contextlib.suppress(OSError):
                    if log is not None:
                        log.write(line.encode(errors="replace"))
                text = line.rstrip()
                child.last_lines = [*child.last_lines[-19:], text]
                if text.startswith(READY):
                    child.ready_after = time.monotonic() - child.started[-1]
                    child.ready.set()
                elif "[WARN]" in text or "[ERROR]" in text:
                    self.report(child.name, text.split("]: ", 1)[-1])

    def wait_ready(self, timeout: float = READY_TIMEOUT, meanwhile: Callable[[], None] | None = None) -> None:
        """Wait until every child says that it is ready, and do something over and over meanwhile.

        Raises:
            StackFailure: one refused its input, died, or did not get ready in time.
        """
        deadline = time.monotonic() + timeout
        for child in self.children.values():
            while not child.ready.wait(0.02 if meanwhile is None else 0.0):
                if meanwhile is not None:
                    meanwhile()
                if not child.alive:
                    time.sleep(0.1)  # let the pump read the last lines
                    raise self._failure(child)
                if time.monotonic() > deadline:
                    raise StackFailure(f"{child.name} was not ready after {timeout:g} s: see {child.log}")

    def _failure(self, child: Child) -> StackFailure:
        """Error of a child that ended before it was ready, with its last line."""
        code = child.process.returncode if child.process else None
        if code == EXIT_BAD_INPUT and child.last_lines:
            return InputRefused(child.last_lines[-1])
        last = child.last_lines[-1] if child.last_lines else "no output"
        return StackFailure(f"{child.name} ended with code {code}: {last} (see {child.log})")

    def watch(self) -> bool:
        """Restart children that died or hang; False once an essential one could not be kept alive."""
        self._ports.release()
        for child in self.children.values():
            if child.gave_up:
                continue
            if child.alive:
                self._end_if_hung(child)
                self._end_if_never_ready(child)
            else:
                self._restart(child)
        self._end_deaf()
        return not any(c.gave_up and c.essential for c in self.children.values())

    def _end_if_hung(self, child: Child) -> None:
        assert child.heartbeat is not None and child.process is not None
        stalled = child.heartbeat.stalled(child.process.pid)
        limit = self._hang_limit * (1.0 if child.essential else PATIENCE)
        if stalled > limit and child.ready.is_set() and not child.hung:
            child.hung = f"its loop stood still for {stalled:.1f} s"
            self._signal(child, signal.SIGKILL)

    def _end_if_never_ready(self, child: Child) -> None:
        """End a fork that was ready before and, started again, is not: the middleware may wait for itself for ever.

        It has its kernels, so that nothing takes long. A first start, which may compile, has `READY_TIMEOUT`.
        """
        never = math.isnan(child.ready_after)
        if never or child.ready.is_set() or child.hung or not isinstance(child.process, ForkedProcess):
            return
        limit = max(FORK_READY, FORK_FACTOR * child.ready_after) if math.isfinite(self._hang_limit) else math.inf
        if (passed := time.monotonic() - child.started[-1]) > limit:
            child.hung = f"it was not ready after {passed:.0f} s"
            self._signal(child, signal.SIGKILL)

    def _end_deaf(self) -> None:
        """End a child that hears nothing of the others, where one of them was started again a moment ago and all run.

        The middleware has lost one of the two to the other; a new process is found. Never the last start that a child
        has: what it misses may have another reason.
        """
        needed = [c for c in self.children.values() if c.essential]
        deaf = [c for c in needed if c.heartbeat is not None and c.heartbeat.deaf() > DEAF_LIMIT]
        if not deaf or math.isinf(self._hang_limit) or not all(c.alive and c.ready.is_set() for c in needed):
            return
        now = time.monotonic()
        latest = max((c.started[-1] + c.ready_after for c in needed if len(c.started) > 1), default=-math.inf)
        child = max(deaf, key=lambda c: c.started[-1])
        recent = sum(now - t < RESTART_WINDOW for t in child.started)
        if DEAF_LIMIT < now - latest < DEAF_WINDOW and recent < child.restarts and not child.hung:
            child.hung = f"it heard nothing of the others for {DEAF_LIMIT:g} s"
            self._signal(child, signal.SIGKILL)

    def _restart(self, child: Child) -> None:
        """Start a child again that has ended, unless that was done too often."""
        assert child.process is not None
        if child.pump is not None:
            child.pump.join(LAST_WORDS)
        ended = child.hung or f"ended with code {child.process.returncode}"
        recent = [t for t in child.started if time.monotonic() - t < RESTART_WINDOW]
        if len(recent) == 1 or not child.why:
            child.why = self._last_words(child)
        if len(recent) <= child.restarts:
            self.report(child.name, f"{ended}: restarted ({len(recent)} of {child.restarts})")
            self._ports.hold()
            self._spawn(child)
            return
        child.gave_up = True
        after = f"not restarted again after {child.restarts} restarts" if child.restarts else "not restarted"
        if child.essential:
            self.report(child.name, f"{ended}; {after}")
        else:
            self.report(child.name, f"{ended}; {after}, the other nodes go on: {child.why}")

    def _last_words(self, child: Child) -> str:
        """Why a child ended, as far as it said so itself, and whether its disk is full."""
        said = [line for line in child.last_lines if line and not line.startswith(READY)]
        words = child.hung or (said[-1] if said else "it said nothing")
        with contextlib.suppress(OSError):
            if shutil.disk_usage(self.directory).free < FULL:
                return f"{words}; the disk is full ({self.directory})"
        return words

    def stop(self, first: Sequence[str] = ()) -> float:
        """Stop every child, those named first, then the last started first; how long it took [s].

        Those named first have a robot to bring to rest or a file to finish, and are given time for it.
        """
        begin = since = time.monotonic()
        names = [*first, *reversed(self.children)]
        order = [self.children[n] for n in dict.fromkeys(names) if n in self.children]
        for child in order:
            if child.alive:
                assert child.process is not None
                self._signal(child, signal.SIGINT)
                left = max(0.1, STOP_LIMIT - (time.monotonic() - since))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.process.wait(FINISH_LIMIT if child.name in first else min(left, 1.0))
                if child.name in first:
                    since = time.monotonic()
        for child in self.children.values():
            if child.alive:
                self.report(child.name, "did not stop: killed")
                self._signal(child, signal.SIGKILL)
            if child.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.process.wait(1.0)
        if self._server is not None:
            self._server.close()
            self._server = None
        self._ports.release(float("inf"))
        remove_leftovers(self._born)
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None
        return time.monotonic() - begin

    def interrupt(self, name: str) -> None:
        """Send SIGINT to a child, where it runs."""
        if (child := self.children.get(name)) is not None and child.alive:
            self._signal(child, signal.SIGINT)

    @staticmethod
    def _signal(child: Child, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            assert child.process is not None
            os.killpg(child.process.pid, number)


def child_environment(directory: Path, more: dict[str, str]) -> dict[str, str]:
    """The environment of a node: as of this process, the logs in the directory of the run, one BLAS thread."""
    env = dict(os.environ)
    choose_discovery(env, supervised=True)
    env.setdefault("OMP_NUM_THREADS", "1")
    env["ROS_LOG_DIR"] = str(directory / "ros")
    env["PYTHONUNBUFFERED"] = "1"
    if env.get(GUARD) and str(Path(sys.prefix) / "lib") not in env.get("LD_LIBRARY_PATH", ""):
        del env[GUARD]
    env.update(more)
    return env


def node_command(
    module: str, parameters: Path, namespace: str = "", remaps: Mapping[str, str] | None = None
) -> list[str]:
    """The command line of a node process; `remaps`: topic to topic."""
    command = [sys.executable, "-u", "-m", module, "--ros-args", "--params-file", str(parameters)]
    command += [word for old, new in (remaps or {}).items() for word in ("-r", f"{old}:={new}")]
    return [*command, "-r", f"__ns:=/{namespace.strip('/')}"] if namespace else command


def hang_limit() -> float:
    """Time for which the loop of a node may stand still [s]: `$HUMANOID_HANG_LIMIT`, or 0.8.

    Raises:
        ConfigError: the variable is not a number above 0.
    """
    text = os.environ.get(HANG_VARIABLE, "").strip()
    with contextlib.suppress(ValueError):
        if not text or float(text) > 0:
            return float(text or HANG_LIMIT)
    raise ConfigError(f"{HANG_VARIABLE} must be a number of seconds above 0, or inf for no limit, got '{text}'")
