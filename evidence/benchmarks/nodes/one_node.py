"""A node as a process of its own, started without its stack."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from humanoid_control.errors import EnvironmentProblem

READY_TIME, STOP = 120.0, 10.0  # [s] for a node to be ready, kernels included, and to end


@contextlib.contextmanager
def running_node(name: str, parameters: Sequence[str]) -> Iterator[int]:
    """Run a node until the context is left; the process id.

    Args:
        name: module of `humanoid_control.nodes`. parameters: 'key:=value' each.

    Raises:
        EnvironmentProblem: it does not become ready; with its last words.
    """
    command = [sys.executable, "-u", "-m", f"humanoid_control.nodes.{name}", "--ros-args"]
    command += [word for text in parameters for word in ("-p", text)]
    with tempfile.TemporaryDirectory() as logs:
        log = Path(logs) / "node.log"
        with log.open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + READY_TIME
            while not re.search(r"^READY", log.read_text(), re.M):
                if process.poll() is not None or time.monotonic() > end:
                    raise EnvironmentProblem(f"{name} did not start: {log.read_text()[-500:]}")
                time.sleep(0.1)
            yield process.pid
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP)
            except subprocess.TimeoutExpired:
                process.kill()


def processor_time(pid: int) -> float:
    """User and system time of a process [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
