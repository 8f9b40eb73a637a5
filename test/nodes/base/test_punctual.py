"""Deadlines of a punctual node: kept although the executor comes back late, and messages are still taken."""

import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.base import runner

TICKS, RATE, OVERSLEPT = 40, 100.0, 0.0004


class Executor:
    """One that comes back from waiting late, as the real ones do."""

    waits = 0

    def spin_once(self, timeout_sec):
        self.waits += 1
        time.sleep(timeout_sec + OVERSLEPT if timeout_sec else 0.0)


def lateness(punctual, monkeypatch):
    """Median lateness of ticks [s], and how often the executor waited."""
    monkeypatch.setattr(runner, "LAST", 2 * OVERSLEPT)
    monkeypatch.setattr(runner, "SpareTimeCollector", lambda: SimpleNamespace(run=lambda spare: False))
    stop, executor, late = threading.Event(), Executor(), []

    def tick(skipped):
        late.append(node.late)
        if len(late) >= TICKS:
            stop.set()

    def nothing(*_):
        return False

    beat = SimpleNamespace(beat=nothing, rest=nothing)
    node = SimpleNamespace(
        active=True, heartbeat=beat, rate=RATE, wake=False, punctual=punctual, late=0.0, ending=nothing, run_tick=tick,
        publish_diagnostics=nothing, run_slack_time=nothing,
    )  # fmt: skip
    runner._loop(node, executor, stop)
    return sorted(late)[TICKS // 2], executor.waits


@pytest.mark.timed
def test_a_punctual_node_is_not_late_by_what_the_executor_oversleeps(monkeypatch):
    usual, _ = lateness(False, monkeypatch)
    punctual, waits = lateness(True, monkeypatch)
    assert usual >= OVERSLEPT and 0.0 <= punctual < usual - OVERSLEPT / 2
    assert waits >= TICKS / 2, "it listens all the same"
