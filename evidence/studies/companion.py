"""Processes next to a stack that a study asks for something by lines: both ends of the conversation."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from humanoid_control.nodes.base.ros_env import choose_discovery

END = 20.0  # [s] in which one must have ended
PERIOD, TARDY = 0.02, 0.002  # [s] between two looks at the input; by which a process may come late
READY = "ready"


class Companion:
    """A module of this package as a process of its own; use as a context manager."""

    def __init__(self, module: str, *words: str, supervised: bool = False) -> None:
        """Start it.

        Args:
            module: of the room `studies`. words: of its command line.
            supervised: it finds a node that is started again as soon as the nodes of a stack do.
        """
        command = [sys.executable, "-u", "-m", f"evidence.studies.{module}", *words]
        environment = dict(os.environ)
        choose_discovery(environment, supervised)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def say(self, line: str) -> None:
        """A line on its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def heard(self) -> str:
        """The next line that it says; empty at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def __enter__(self) -> Companion:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):
            self.process.send_signal(signal.SIGINT)
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()


def serve(executor: Any, answer: Callable[[str], str], slept: Callable[[float], None] = lambda _: None) -> None:
    """Take messages, and answer the lines of the standard input, until it ends. A Ctrl-C of the terminal is not heard.

    Args:
        executor: of rclpy. answer: to a line, at once; empty: it comes later.
        slept: told how long no message could be taken [s], where that is longer than anything was waited for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(READY, flush=True)
    waiting, looked = b"", 0.0
    while True:
        begin = time.monotonic()
        with contextlib.suppress(KeyError, ValueError, TypeError):  # somebody's nonsense on a topic
            executor.spin_once(timeout_sec=PERIOD)
        now = time.monotonic()
        if now - begin > PERIOD + TARDY:
            slept(now - begin)
        if now - looked < PERIOD:
            continue
        looked = now
        if select.select([0], [], [], 0.0)[0]:
            if not (new := os.read(0, 4096)):
                return
            *lines, waiting = (waiting + new).split(b"\n")
            for line in lines:
                if said := answer(line.decode()):
                    print(said, flush=True)
