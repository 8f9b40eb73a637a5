"""Lateness of the loop that all nodes run in, measured in a process of its own: a cyclic test of this machine.

lateness = measure_loop(500.0, 10.0)
print(lateness.percentile(99))
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.ros_env import choose_discovery
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import TickNode

WARM = 1.0  # [s] of cycles that do not count
PATIENCE = 300.0  # [s] beyond the measurement, for a start that compiles
RESULT = "LATENESS "


class Lateness(NamedTuple):
    """Lateness of the cycles of a loop.

    Attributes:
        late: (n,) of each cycle behind its deadline [s]. missed: deadlines that had no cycle at all.
        period: of the loop [s]. scheduling: that the process was granted.
    """

    late: np.ndarray
    missed: int
    period: float
    scheduling: str

    def percentile(self, share: float) -> float:
        """Lateness that so many per cent of the cycles keep [s]."""
        return float(np.percentile(self.late, share))

    def missed_percent(self) -> float:
        """Share of deadlines without a cycle, or with one that began a period late [%]."""
        return 100.0 * self.missed / (len(self.late) + self.missed)


class LatenessRecorder:
    """Part of a node that records how late its ticks are, and ends the process after a while."""

    def record(self, node: TickNode, seconds: float) -> None:
        """Begin, for so many seconds [s] after a second of warming up."""
        self._node, self._most = node, round(seconds * node.rate)
        self._late, self._count, self._missed = np.zeros(self._most), -round(WARM * node.rate), 0

    def note(self, skipped: int) -> None:
        """Take a tick; `skipped` deadlines before it had none."""
        if 0 <= self._count < self._most:
            self._late[self._count] = self._node.late
            self._missed += skipped
        self._count += 1 + (skipped if self._count >= 0 else 0)
        if self._count >= self._most:
            self._end()

    def _end(self) -> None:
        late = self._late[self._late > 0.0]
        told = {"late": late.tolist(), "missed": self._missed, "period": 1.0 / self._node.rate}
        print(RESULT + json.dumps(told | {"scheduling": self._node.scheduling}), flush=True)
        self._most = 1 << 62  # once
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass(frozen=True)
class LoopParameters(NodeParameters):
    """Parameters of the loop under test."""

    rate: float = param(500.0, "rate of the loop", "Hz", 10.0, 5000.0)
    seconds: float = param(10.0, "time of the measurement", "s", 0.1, 3600.0)


class EmptyLoop(TickNode):
    """The loop of a driver that does nothing but look at the clock."""

    Parameters = LoopParameters
    params: LoopParameters
    node_name = "loop_lateness"
    punctual = True

    def configure(self) -> float:
        self.recorder = LatenessRecorder()
        return self.params.rate

    def activate(self) -> None:
        self.recorder.record(self, self.params.seconds)

    def run_tick(self, skipped: int) -> None:
        super().run_tick(skipped)
        self.recorder.note(skipped)

    def tick(self, now: float) -> None:
        """Nothing."""


def measure_loop(
    rate: float, seconds: float, priority: int = 50, command: Sequence[str] = ("-m", __name__)
) -> Lateness:
    """Run a loop in a process of its own and collect how late it was.

    Args:
        rate: of the loop [Hz]. seconds: of the measurement [s].
        priority: SCHED_FIFO where that is permitted; 0: as any process.
        command: arguments of Python for a node with a `LatenessRecorder`; by default the empty loop.

    Raises:
        ConfigError: the process ended without a result.
    """
    env = {**os.environ}
    choose_discovery(env)
    given = (f"rate:={rate:.1f}", f"seconds:={seconds:.1f}", f"priority:={priority}")
    words = [sys.executable, *command, "--ros-args", *(w for p in given for w in ("-p", p))]
    try:
        run = subprocess.run(words, env=env, capture_output=True, text=True, timeout=seconds + PATIENCE)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"the loop did not end within {seconds + PATIENCE:.0f} s") from None
    line = next((x for x in run.stdout.splitlines() if x.startswith(RESULT)), "")
    if not line:
        last = (run.stderr.strip().splitlines() or ["no word"])[-1]
        raise ConfigError(f"the loop ended without a result: {last}")
    told = json.loads(line.removeprefix(RESULT))
    return Lateness(np.array(told["late"]), told["missed"], told["period"], told["scheduling"])


if __name__ == "__main__":
    sys.exit(main_of(EmptyLoop))
