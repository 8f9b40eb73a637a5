"""Commands as processes of their own that start at once: each is a fork of one process that has imported everything.

A command's start is mostly imports, and the tests run hundreds of commands. What runs in the fork is the same `main`,
with its own environment, folder, standard streams and exit code. Tests of start-up, signals and running stacks start
afresh instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

LIBRARIES = ("numpy", "scipy.spatial", "pinocchio", "coal", "numba", "rich.table", "yaml")
ROOMS = ("cli.demo", "cli.robots", "cli.retarget", "cli.score", "cli.study", "warm_up.retargeting", "ik", "collision")
MODULES = (*LIBRARIES, *(f"humanoid_control.{room}" for room in ROOMS))


class WarmProcess:
    """The process that is forked."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-u", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
        )  # fmt: skip

    def run(self, argv: list[str], env: dict[str, str], cwd: Path, timeout: float) -> subprocess.CompletedProcess:
        """Run `humanoid argv` to its end.

        Raises:
            subprocess.TimeoutExpired: it took longer.
        """
        out, err = cwd.parent / f"{cwd.name}.out", cwd.parent / f"{cwd.name}.err"
        job = {"argv": argv, "env": env, "cwd": str(cwd), "out": str(out), "err": str(err), "timeout": timeout}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())
        said = out.read_text(), err.read_text()
        out.unlink(), err.unlink()
        if code is None:
            raise subprocess.TimeoutExpired(argv, timeout, *said)
        return subprocess.CompletedProcess(argv, code, *said)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def _child(job: dict) -> int:
    """In the fork: become the command."""
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["humanoid", *job["argv"]]
    from humanoid_control.cli.main import main

    try:
        code = main(job["argv"])
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _wait(pid: int, timeout: float) -> int | None:
    """The child's exit code; None where it took longer than `timeout` [s] and was killed."""
    import signal
    import time

    end, pause = time.monotonic() + timeout, 0.002
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(pause)
        pause = min(1.5 * pause, 0.05)


def _serve() -> None:
    import contextlib
    import importlib

    for name in MODULES:
        with contextlib.suppress(ImportError):  # ROS may be absent
            importlib.import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(_child(job))
        print(json.dumps(_wait(pid, job["timeout"])), flush=True)


if __name__ == "__main__":
    _serve()
