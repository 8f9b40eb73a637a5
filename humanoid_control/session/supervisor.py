"""Supervised processes: start, monitoring, restart after death or hang, and an orderly stop."""

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
from humanoid_control.session.fork_server import ForkedProcess, ForkServer
from humanoid_control.session.shared_memory import PortHolder, SharedMemoryKeeper, remove_leftovers

READY_TIMEOUT = 180.0  # [s]; a node may compile its kernels
# [s] stop limits: a child; all children together; a child that must finish something
CHILD_LIMIT, STOP_LIMIT, FINISH_LIMIT = 1.0, 2.2, 10.0
RESTARTS, RESTART_WINDOW = 3, 60.0  # restarts of a child allowed within a window [s]
HANG_LIMIT = 0.8  # [s] standstill of a node's loop; with the period of the checks about one second
PATIENCE = 4.0  # multiple of that limit for helpers: loading a page may block the viewer's interpreter
# [s] limit for a restarted fork to be ready; the same as a multiple of its first startup
FORK_READY, FORK_FACTOR = 8.0, 4.0  # [s] minimum limit for a restarted fork to be ready; multiple of its last startup
DEAF_LIMIT = 1.5  # [s] time for which a node may miss all messages
DEAF_WINDOW = 10.0  # [s] window after a restart in which that is attributed to the middleware
HANG_VARIABLE = "HUMANOID_HANG_LIMIT"  # overrides the hang limit [s]; inf: none, for a debugger
LAST_WORDS = 1.0  # [s] longest wait for the last lines of an ended child
FULL = 2**18  # [bytes] free space below which a disk counts as full

Report = Callable[[str, str], None]


@dataclass
class Child:
    """Supervised process.

    Attributes:
        essential: the stack cannot run without it.
        forked: fork it from a preloaded process if possible.
        hung: reason why it was killed as hung, or empty.
        why: last words of its first end.
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
    """A node did not start, or could not be kept alive."""


class InputRefused(StackFailure):
    """A node rejected its input; its message is the reason."""


class Supervisor:
    """Runner of child processes.

    Each child is a session leader, so Ctrl-C reaches it once, through this process, and dies with this process.
    Children stop one by one, because simultaneous exits can deadlock the middleware.
    """

    def __init__(self, directory: Path, report: Report, environment: dict[str, str] | None = None) -> None:
        """Create a supervisor without children.

        Args:
            report: called with (name, line) for warnings, deaths and restarts.
            environment: additional environment variables of the children.
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
        """Start loading kernel groups in the fork server; return at once."""
        if self._server is None:
            self._server = ForkServer(self._environment)
        if groups:
            with contextlib.suppress(OSError):
                self._server.load(*groups)

    def wait_loaded(self, timeout: float) -> bool:
        """Wait up to `timeout` [s]; return True once loading is finished or impossible."""
        with contextlib.suppress(OSError):
            return self._server is None or self._server.wait_loaded(timeout)
        return True

    @property
    def helpers(self) -> dict[str, int]:
        """Process ids of the fork server and the shared-memory keeper."""
        kept = {"fork_server": self._server, "shared_memory_keeper": self._keeper}
        return {name: helper.pid for name, helper in kept.items() if helper is not None}

    def start(
        self, name: str, command: list[str], essential: bool = True, restarts: int = RESTARTS, forked: bool = False
    ) -> None:
        """Start a child; its output goes to `<name>.log`.

        Args:
            essential: False: the others continue without it.
            forked: fork it with preloaded kernels; needs a `node_command`.
        """
        if self._keeper is None:
            self._keeper = SharedMemoryKeeper(self._born)
        child = Child(name, command, self.directory / f"{name}.log", essential, restarts, forked)
        self.children[name] = child
        self._spawn(child)

    def _spawn(self, child: Child) -> None:
        # of this process only: the pump of the last one may still have lines to read
        child.ready, child.last_lines = threading.Event(), []
        child.hung, child.heartbeat = "", HeartbeatMonitor()
        child.started.append(time.monotonic())
        child.process = self._forked(child) or self._afresh(child)
        child.heartbeat.handed_over()
        own = (child, child.process, child.started[-1], child.ready, child.last_lines)
        child.pump = threading.Thread(target=self._pump, args=own, daemon=True)
        child.pump.start()

    def _forked(self, child: Child) -> ForkedProcess | None:
        if not child.forked or self._server is None or "-m" not in child.command[:3]:
            return None
        if not self.wait_loaded(0.0):  # compilation may take minutes, and a dead node cannot wait
            return None
        assert child.heartbeat is not None
        _, _, _, module, *arguments = child.command
        try:
            return self._server.start(module, arguments, {}, {child.heartbeat.variable: child.heartbeat.descriptor})
        except OSError as e:
            self.report(child.name, f"is started without the fork server, which takes longer: {e}")
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

    def _pump(
        self,
        child: Child,
        process: subprocess.Popen | ForkedProcess,
        started: float,
        ready: threading.Event,
        lines: list[str],
    ) -> None:
        """Copy a child's output to its log, even if unwritable, and report warnings."""
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
                lines.append(text)
                del lines[:-20]
                if text.startswith(READY):
                    child.ready_after = time.monotonic() - started
                    ready.set()
                elif "[WARN]" in text or "[ERROR]" in text:
                    self.report(child.name, text.split("]: ", 1)[-1])

    def wait_ready(self, timeout: float = READY_TIMEOUT, meanwhile: Callable[[], None] | None = None) -> None:
        """Wait until every child is ready, calling `meanwhile` repeatedly.

        Raises:
            StackFailure: if a child rejected its input, died, or was not ready in time.
        """
        deadline = time.monotonic() + timeout
        for child in self.children.values():
            while not child.ready.wait(0.02 if meanwhile is None else 0.0):
                if meanwhile is not None:
                    meanwhile()
                if not child.alive:
                    if child.pump is not None:
                        child.pump.join(LAST_WORDS)
                    raise self._failure(child)
                if time.monotonic() > deadline:
                    raise StackFailure(f"{child.name} was not ready after {timeout:g} s: see {child.log}")

    def _failure(self, child: Child) -> StackFailure:
        code = child.process.returncode if child.process else None
        if code == EXIT_BAD_INPUT and child.last_lines:
            return InputRefused(child.last_lines[-1])
        last = child.last_lines[-1] if child.last_lines else "no output"
        return StackFailure(f"{child.name} ended with code {code}: {last} (see {child.log})")

    def watch(self) -> bool:
        """Restart dead or hung children; return False if an essential one is lost."""
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
            child.hung = f"its loop was stalled for {stalled:.1f} s"
            self._signal(child, signal.SIGKILL)

    def _end_if_never_ready(self, child: Child) -> None:
        """Kill a restarted fork that does not become ready: the middleware can deadlock."""
        never = math.isnan(child.ready_after)
        if never or child.ready.is_set() or child.hung or not isinstance(child.process, ForkedProcess):
            return
        limit = max(FORK_READY, FORK_FACTOR * child.ready_after) if math.isfinite(self._hang_limit) else math.inf
        if (passed := time.monotonic() - child.started[-1]) > limit:
            child.hung = f"it was not ready after {passed:.0f} s"
            self._signal(child, signal.SIGKILL)

    def _end_deaf(self) -> None:
        """Kill a child that receives nothing after a recent restart: a connection was lost.

        The last allowed restart is kept, because the silence may have another cause.
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
            child.hung = f"it received nothing from the other nodes for {DEAF_LIMIT:g} s"
            self._signal(child, signal.SIGKILL)

    def _restart(self, child: Child) -> None:
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
            self.report(child.name, f"{ended}; {after}, the other nodes continue: {child.why}")

    def _last_words(self, child: Child) -> str:
        """Return the last output of a child, and whether its disk is full."""
        said = [line for line in child.last_lines if line and not line.startswith(READY)]
        words = child.hung or (said[-1] if said else "no output")
        with contextlib.suppress(OSError):
            if shutil.disk_usage(self.directory).free < FULL:
                return f"{words}; the disk is full ({self.directory})"
        return words

    def stop(self, first: Sequence[str] = ()) -> float:
        """Stop children in `first`, then others, last started first; return the duration [s].

        Each child is interrupted and gets `CHILD_LIMIT` (1 s), all together `STOP_LIMIT` (2.2 s); what is left then is
        killed. Children in `first` get `FINISH_LIMIT` (10 s), to stop a robot or finish a file.
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
                    child.process.wait(FINISH_LIMIT if child.name in first else min(left, CHILD_LIMIT))
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
        if (child := self.children.get(name)) is not None and child.alive:
            self._signal(child, signal.SIGINT)

    @staticmethod
    def _signal(child: Child, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            assert child.process is not None
            os.killpg(child.process.pid, number)


def child_environment(directory: Path, more: dict[str, str]) -> dict[str, str]:
    """Return the environment of a node: own logs, one BLAS thread."""
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
    """Return the command line of a node process; `remaps`: topic to topic."""
    command = [sys.executable, "-u", "-m", module, "--ros-args", "--params-file", str(parameters)]
    command += [word for old, new in (remaps or {}).items() for word in ("-r", f"{old}:={new}")]
    return [*command, "-r", f"__ns:=/{namespace.strip('/')}"] if namespace else command


def hang_limit() -> float:
    """Return the allowed standstill of a loop [s]: `$HUMANOID_HANG_LIMIT`, or 0.8.

    Raises:
        ConfigError: if the variable is not a positive number.
    """
    text = os.environ.get(HANG_VARIABLE, "").strip()
    with contextlib.suppress(ValueError):
        if not text or float(text) > 0:
            return float(text or HANG_LIMIT)
    raise ConfigError(f"{HANG_VARIABLE} must be a number of seconds above 0, or inf for no limit, got '{text}'")
