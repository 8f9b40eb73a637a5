"""Client of the preparation process; it never blocks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.in_child import die_with
from humanoid_control.nodes.performing.parameters import WholeBodyControllerParameters
from humanoid_control.performing.preparation import MOTION, WAY

NICE = 5  # preparation must not delay control


class Preparation:
    """Child process, started by the first request, with one request at a time.

    Attributes:
        pending: pending request, or empty.
        has_motion: the process has the motion that transitions lead to.
    """

    def __init__(self, p: WholeBodyControllerParameters) -> None:
        self._p = p
        self._begin()

    def _begin(self) -> None:
        self.pending, self._activity, self._since, self._rest = "", "", 0.0, b""
        self.has_motion = self._unwanted = False
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Request the motion of the parameters."""
        p = self._p
        reading = {"rate": p.clip_rate or None, "unit": p.clip_unit, "scale": p.clip_scale, "up": p.clip_up}
        clip = {"name": p.clip, "clean": p.clean, "marker_set": p.marker_set or None, **reading}
        self._send({"do": MOTION, "motion": p.motion, "clip": clip, "pace": p.pace})

    def find_transition(self, q: np.ndarray) -> None:
        """Request a transition from q (nq,) to the first posture."""
        self._send({"do": WAY, "q": q.tolist()})

    def _send(self, request: dict[str, Any]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        self.pending, self._activity, self._since = request["do"], "starting", time.monotonic()
        self._unwanted = False
        self._process.stdin.write((json.dumps(request) + "\n").encode())
        self._process.stdin.flush()

    def _start(self) -> None:
        command = [sys.executable, "-m", "humanoid_control.performing.preparation", self._p.robot]
        parent = os.getpid()

        def prepare() -> None:
            die_with(parent)()
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.nice(NICE)

        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=prepare, env=self._environment()
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    @staticmethod
    def _environment() -> dict[str, str]:
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        root = str(Path(__file__).parents[3])
        return {**os.environ, **one, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}

    def discard_transition(self) -> None:
        """Discard a pending transition: the robot was moved."""
        self._unwanted = self.pending == WAY

    @property
    def progress(self) -> str:
        """Current activity with its duration; empty: none."""
        return f"{self._activity} ({time.monotonic() - self._since:.0f} s)" if self.pending else ""

    def take(self) -> dict[str, Any] | None:
        """Return the answer once, or None."""
        if not self.pending or self._process is None or self._process.stdout is None:
            return None
        with contextlib.suppress(BlockingIOError):
            got = self._process.stdout.read()
            if got == b"":
                code = self._process.wait()
                self._begin()
                return {"error": f"the process that prepares the performance ended, exit code {code}"}
            self._rest += got or b""
        while b"\n" in self._rest:
            line, self._rest = self._rest.split(b"\n", 1)
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # output of a library
            if "progress" in answer:
                self._activity = answer["progress"]
                continue
            self.has_motion = self.has_motion or (self.pending == MOTION and "error" not in answer)
            unwanted, self.pending, self._unwanted = self._unwanted, "", False
            return None if unwanted else dict(answer)
        return None

    def close(self) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
        self._begin()
