"""Commands and nodes as processes of their own that start at once: forks of one process that has imported everything.

The start of a command or node is mostly imports, and the tests run hundreds of them. What runs in the fork is the same
`main`, with its own environment, folder, standard streams, signals and exit code. Tests of start-up and of running
stacks start afresh instead, and some of signals. Where rclpy's tracing is in use rclpy is not imported beforehand: the
threads of that would be lacking in a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import humanoid_control
from humanoid_control.session.fork_server import load_messages, run_main, traced

LIBRARIES = ("scipy.spatial", "coal", "rich.table", "rich.progress", "matplotlib.figure", "rosbags.typesys")
PR_SET_PDEATHSIG = 1  # of Linux
OWN_SHARE = Path("/proc/self/autogroup")  # of a session, where Linux shares the processor between sessions first


def give_way(more: int = 0) -> None:
    """Let processes that do not give way go first, those of other sessions, too.

    Where Linux shares the processor between sessions (autogroup), `nice` counts only among the processes of one, and
    the session has a `nice` of its own.

    Args:
        more: steps of `nice`; 0: as this process does already, in the session that it has now.
    """
    nice = os.nice(more)
    with contextlib.suppress(OSError):
        OWN_SHARE.write_text(str(nice))


class WarmProcess:
    """The process that is forked."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-u", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
        )  # fmt: skip
        self._asked = False

    def run(self, argv: list[str], env: dict[str, str], cwd: Path, timeout: float) -> subprocess.CompletedProcess:
        """Run `humanoid argv` to its end.

        Raises:
            subprocess.TimeoutExpired: it took longer.
        """
        out, err = cwd.parent / f"{cwd.name}.out", cwd.parent / f"{cwd.name}.err"
        process = self.start("humanoid_control.cli.main", argv, env, cwd, out, err)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
            raise subprocess.TimeoutExpired(argv, timeout, out.read_text(), err.read_text()) from None
        said = out.read_text(), err.read_text()
        out.unlink(), err.unlink()
        return subprocess.CompletedProcess(argv, code, *said)

    def start(
        self, module: str, argv: list[str], env: dict[str, str], cwd: Path, out: Path, err: Path | None = None
    ) -> ForkedProcess:
        """Start `python -m module argv` and leave it running; without `err` all that it says goes to `out`."""
        out.touch()  # there when the test looks, whatever the fork has come to by then
        job = {"module": module, "argv": argv, "env": env, "cwd": str(cwd), "out": str(out), "err": str(err or out)}
        return ForkedProcess(self, self.ask(job))

    def ask(self, job: dict) -> int | None:
        """Give the process a job, and take its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asked = True
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            if self._asked:  # else it may still import, as where the only test was a short one
                self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()


class ForkedProcess:
    """What `subprocess.Popen` is for a process that was started here."""

    def __init__(self, warm: WarmProcess, pid: int) -> None:
        self._warm, self.pid, self.returncode = warm, pid, None

    def poll(self) -> int | None:
        """Exit code, None while it runs."""
        if self.returncode is None:
            self.returncode = self._warm.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float = 60.0) -> int:
        """Exit code, when it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not after `timeout` [s].
        """
        end, pause = time.monotonic() + timeout, 0.002
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(pause)
            pause = min(1.5 * pause, 0.05)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, while it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def _become(job: dict) -> int:
    """In the fork: become what was asked for; its exit code. It does not outlive tests that were killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    give_way(0)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    for name, number in (("out", 1), ("err", 2)):
        if name == "out" or job["err"] != job["out"]:
            opened = os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        os.dup2(opened, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = [job["module"], *job["argv"]]
    return run_main(job["module"])


def _ended(pid: int) -> int | None:
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _import_everything() -> None:
    """The package, and what its modules import where they need it, but for what imports rclpy where it is traced."""
    if traced():
        sys.modules["rclpy"] = None  # importing it is an ImportError
    else:
        with contextlib.suppress(ImportError):
            importlib.import_module("rclpy")  # with threads of its tracing, which nobody misses where it is not in use
        load_messages()
    threads = len(os.listdir("/proc/self/task"))
    rooms = [m.name for m in pkgutil.walk_packages(humanoid_control.__path__, f"{humanoid_control.__name__}.")]
    for name in (*LIBRARIES, *rooms):
        with contextlib.suppress(ImportError):  # ROS, and libraries to compare with, may be absent
            importlib.import_module(name)
    _load_kernels()
    if traced():
        del sys.modules["rclpy"]
    gc.freeze()  # or a collection in each fork would copy all of it
    assert len(os.listdir("/proc/self/task")) == threads, "a fork has the thread that forks alone"


def _load_kernels() -> None:
    """What most commands and nodes load from the disk, or compile, at their first step."""
    for room in ("retargeting", "simulation"):
        importlib.import_module(f"humanoid_control.warm_up.{room}").compile_kernels()


def _serve() -> None:
    give_way(0)  # in this session, too, where the worker does
    _import_everything()
    for line in sys.stdin:
        job = json.loads(line)
        if "poll" in job:
            print(json.dumps(_ended(job["poll"])), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            os._exit(_become(job))
        print(json.dumps(pid), flush=True)


if __name__ == "__main__":
    _serve()
