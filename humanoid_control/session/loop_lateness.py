"""Lateness of the node loop on this machine, measured in a separate process.

```
lateness = measure_loop(500.0, 10.0)
print(lateness.percentile(99))
```
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

WARM = 1.0  # [s] of initial cycles that do not count
PATIENCE = 300.0  # [s] beyond the measurement, for a start with compilation
RESULT = "LATENESS "


class Lateness(NamedTuple):
    """Lateness of loop cycles.

    Attributes:
        late: delay of each cycle (n,) [s].
        missed: deadlines without a cycle.
        period: period of the loop [s].
    """

    late: np.ndarray
    missed: int
    period: float
    scheduling: str

    def percentile(self, share: float) -> float:
        """Return a percentile of the lateness [s]."""
        return float(np.percentile(self.late, share))

    def missed_percent(self) -> float:
        """Return the share of missed deadlines [%]."""
        return 100.0 * self.missed / (len(self.late) + self.missed)


class LatenessRecorder:
    """Mixin that records the lateness of ticks, then ends the process."""

    def record(self, node: TickNode, seconds: float) -> None:
        """Record for `seconds` [s], after a warm-up."""
        self._node, self._most = node, round(seconds * node.rate)
        self._late, self._count, self._missed = np.zeros(self._most), -round(WARM * node.rate), 0

    def note(self, skipped: int) -> None:
        """Record a tick after `skipped` missed deadlines."""
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
        self._most = 1 << 62  # only once
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass(frozen=True)
class LoopParameters(NodeParameters):
    """Parameters of the tested loop."""

    rate: float = param(500.0, "loop rate", "Hz", 10.0, 5000.0)
    seconds: float = param(10.0, "duration of the measurement", "s", 0.1, 3600.0)


class EmptyLoop(TickNode):
    """Driver loop without work."""

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
        """Do nothing."""


def measure_loop(
    rate: float, seconds: float, priority: int = 50, command: Sequence[str] = ("-m", __name__)
) -> Lateness:
    """Measure the lateness of a loop in a separate process.

    Args:
        rate: rate of the loop [Hz].
        seconds: duration [s].
        priority: SCHED_FIFO priority, if permitted; 0: normal scheduling.
        command: Python arguments of a node with a `LatenessRecorder`.

    Raises:
        ConfigError: if the process ends without a result.
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
        last = (run.stderr.strip().splitlines() or ["no output"])[-1]
        raise ConfigError(f"the loop ended without a result: {last}")
    told = json.loads(line.removeprefix(RESULT))
    return Lateness(np.array(told["late"]), told["missed"], told["period"], told["scheduling"])


if __name__ == "__main__":
    sys.exit(main_of(EmptyLoop))
