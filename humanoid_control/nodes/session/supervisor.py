"""Supervised processes: started, watched, restarted when they die, stopped one by one, and nothing left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from humanoid_control.errors import HumanoidError
from humanoid_control.nodes.base.ros_env import GUARD
from humanoid_control.nodes.base.runner import EXIT_BAD_INPUT, READY

READY_TIMEOUT = 90.0  # [s]
STOP_LIMIT, FINISH_LIMIT = 2.2, 10.0  # [s] for all children together, and for one that has a file to finish
RESTARTS, RESTART_WINDOW = 3, 60.0  # a child is restarted so often in so much time [s]
PR_SET_PDEATHSIG = 1
SHM = Path("/dev/shm")
SETTLE = 0.2  # [s] in which a process maps a file that it has just made

Report = Callable[[str, str], None]


@dataclass
class Child:
    """One supervised process."""

    name: str
    command: list[str]
    log: Path
    process: subprocess.Popen | None = None
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
        self._born = time.time()
        directory.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, command: list[str]) -> None:
        """Start a child; its output goes to `<name>.log`."""
        child = Child(name, command, self.directory / f"{name}.log")
        self.children[name] = child
        self._spawn(child)

    def _spawn(self, child: Child) -> None:
        child.ready.clear()
        child.started.append(time.monotonic())
        child.process = subprocess.Popen(
            child.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            start_new_session=True,
            preexec_fn=_die_with_parent,
            text=True,
            errors="replace",
            bufsize=1,
        )
        threading.Thread(target=self._pump, args=(child, child.process), daemon=True).start()

    def _pump(self, child: Child, process: subprocess.Popen) -> None:
        """Copy a child's output to its log, and report its warnings and errors."""
        assert process.stdout is not None
        with child.log.open("a") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                text = line.rstrip()
                child.last_lines = [*child.last_lines[-19:], text]
                if text.startswith(READY):
                    child.ready_after = time.monotonic() - child.started[-1]
                    child.ready.set()
                elif "[WARN]" in text or "[ERROR]" in text:
                    self.report(child.name, text.split("]: ", 1)[-1])

    def wait_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Wait until every child says that it is ready.

        Raises:
            StackFailure: one refused its input, died, or did not get ready in time.
        """
        deadline = time.monotonic() + timeout
        for child in self.children.values():
            while not child.ready.wait(0.02):
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
        """Restart children that died; False once one could not be kept alive."""
        for child in self.children.values():
            if child.alive or child.gave_up:
                continue
            code = child.process.returncode if child.process else None
            recent = [t for t in child.started if time.monotonic() - t < RESTART_WINDOW]
            if len(recent) > RESTARTS:
                child.gave_up = True
                self.report(child.name, f"ended with code {code}; not restarted again after {RESTARTS} restarts")
            else:
                self.report(child.name, f"ended with code {code}: restarted ({len(recent)} of {RESTARTS})")
                self._spawn(child)
        return not any(c.gave_up for c in self.children.values())

    def stop(self, first: str = "") -> float:
        """Stop every child, the one named first, then the last started first; how long it took [s].

        The one named first has a file to finish, and is given time for it.
        """
        begin = since = time.monotonic()
        names = [first, *reversed(self.children)]
        order = [self.children[n] for n in dict.fromkeys(names) if n in self.children]
        for child in order:
            if child.alive:
                assert child.process is not None
                self._signal(child, signal.SIGINT)
                left = max(0.1, STOP_LIMIT - (time.monotonic() - since))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.process.wait(FINISH_LIMIT if child.name == first else min(left, 1.0))
                if child.name == first:
                    since = time.monotonic()
        for child in self.children.values():
            if child.alive:
                self.report(child.name, "did not stop: killed")
                self._signal(child, signal.SIGKILL)
            if child.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.process.wait(1.0)
        remove_leftovers(self._born)
        return time.monotonic() - begin

    @staticmethod
    def _signal(child: Child, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            assert child.process is not None
            os.killpg(child.process.pid, number)


def child_environment(directory: Path, more: dict[str, str]) -> dict[str, str]:
    """The environment of a node: discovery on this machine only unless the user says otherwise, one BLAS thread."""
    env = dict(os.environ)
    env.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
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


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def shared_memory_files() -> list[Path]:
    """All shared-memory files of Fast DDS."""
    patterns = ("*fastdds_*", "*fastrtps_*")  # the name changed between releases
    return sorted(p for pattern in patterns for p in SHM.glob(pattern) if p.is_file()) if SHM.is_dir() else []


def files_in_use() -> set[str]:
    """Names below /dev/shm that some process has mapped or open."""
    used: set[str] = set()
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            for line in (proc / "maps").read_text().splitlines():
                _, found, name = line.partition("/dev/shm/")
                if found:
                    used.add(name.split(" (deleted)")[0])
        with contextlib.suppress(OSError):
            for fd in (proc / "fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(fd)
                    if target.startswith("/dev/shm/"):
                        used.add(target.removeprefix("/dev/shm/").split(" (deleted)")[0])
    return used


def leftovers(since: float = 0.0) -> list[Path]:
    """Files of this user, made after a time [s since the epoch], that no process uses.

    A port of the middleware consists of several files with one name and different endings; they go together. Files
    are listed before their users are, and twice: a process that has just made one takes a moment until it maps it, and
    dies when it is removed in between.
    """
    out = _unused(shared_memory_files(), since)
    if out:
        time.sleep(SETTLE)
        out = _unused(out, since)
    return out


def _unused(candidates: list[Path], since: float) -> list[Path]:
    used = files_in_use()
    out = []
    for path in candidates:
        with contextlib.suppress(OSError):
            info = path.stat()
            stem = path.name.removeprefix("sem.").split("_mutex")[0].removesuffix("_el")
            busy = any(stem in name for name in used)
            if info.st_uid == os.getuid() and info.st_mtime >= since - 1 and not busy:
                out.append(path)
    return out


def remove_leftovers(since: float = 0.0) -> int:
    """Remove `leftovers` of the middleware; returns how many there were."""
    found = leftovers(since)
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(found)
