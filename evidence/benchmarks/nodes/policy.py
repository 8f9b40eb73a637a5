"""Node `policy` alone: from the sensors of one process to the command in another one, and its share of a core.

The robot is this process: it stands, and publishes joint states and IMU at the rate of a driver. The node steps at each
fifth of these instants (50 Hz). Another process hears its commands.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from evidence.benchmarks import Row, row
from evidence.benchmarks.nodes.command_arrival import Listener
from evidence.benchmarks.nodes.histogram import LogHistogram
from evidence.benchmarks.nodes.one_node import processor_time, running_node
from evidence.benchmarks.nodes.stack import check_seconds
from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.paths import test_data
from humanoid_control.policy import load_policy
from humanoid_control.robots import load_robot
from humanoid_control.robots.loadable import check_robot
from humanoid_control.terminal import progress

COLUMNS = ["name", "unit", "median", "p99", "p99.9", "max", "n"]
PUBLIC = "policies/holosoma/ppo_g1_29dof.onnx"  # of $HUMANOID_TEST_DATA
RATE = 250.0  # [Hz] of the sensors
DOMAIN = 72
SETTLE = 3.0  # [s]
LEVEL = 24  # neighbouring commands of which most arrive before the next sensors
EARLY = 1_000_000  # [ns] before its due time at which the node takes an instant
TOTAL = "observation to command in another process"


def measure(robot: str = "g1", policy: str = "", seconds: float = 240.0, quiet: bool = True) -> list[Row]:
    """Rows: the way from an observation to its command, a step by the node, unanswered observations, share of a core.

    Args:
        policy: file; empty: a public one of $HUMANOID_TEST_DATA.

    Raises:
        ConfigError: no policy, or too short. EnvironmentProblem: the node does not start, or lets the robot down.
    """
    check_seconds(seconds)
    path = Path(policy) if policy else test_data(PUBLIC)
    if path is not None and not path.is_file():
        raise ConfigError(f"{path}: file not found")
    check_robot(robot)
    if path is None:
        raise ConfigError("no policy: name one, --policy policy.onnx")
    model = load_robot(robot, "floating")
    read = load_policy(path, model)
    given = (f"robot:={robot}", f"policy:={path}", "start:=true", "stand_in:=0.2", "late:=50.0", "sensor_lost:=5.0")
    os.environ.update(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST", ROS_DOMAIN_ID=str(DOMAIN))
    from evidence.benchmarks.nodes.policy_sensors import RUNS, PolicySensors

    with (
        Listener() as listener,
        running_node("policy", (*given, f"window:={min(seconds, 600.0):g}")) as pid,
        PolicySensors(model, read.start_posture, RATE) as sensors,
        progress("measuring", seconds, quiet) as show,
    ):
        sensors.start()
        sensors.play(SETTLE)
        before, busy, begin, since = sensors.told(), processor_time(pid), time.monotonic(), time.time_ns()
        sensors.play(seconds, show)
        share = (processor_time(pid) - busy) / (time.monotonic() - begin)
        until = time.time_ns()
        sensors.play(1.1)  # diagnostics come once a second
        after = sensors.told()
        if sensors.state != RUNS:
            raise EnvironmentProblem(f"the policy ended in {sensors.state}: {after.get('reason', '')}")
    arrivals = np.array(listener.heard.get("arrivals", []), dtype=np.int64)
    late, silent = answered(np.array(sensors.sent), arrivals, round(1e9 * read.period), round(RATE * read.period))
    counts = (late[0] >= since) & (late[0] <= until)
    way = LogHistogram()
    way.add_all(1e-3 * (late[1] - late[0])[counts])
    asked = int(counts.sum())
    lost = int(((silent >= since) & (silent <= until)).sum())
    step = [1e3 * float(after[f"step_{p}_ms"]) for p in ("p50", "p99")]
    steps = int(after["policy_steps"]) - int(before["policy_steps"])
    scheduling = {"policy": after.get("scheduling", ""), "robot": sensors.scheduling}
    return [
        way.row(TOTAL) | {"scheduling": scheduling, "policy": path.name, "rate": 1.0 / read.period},
        row("step, by the node", "us", step[0], step[1], steps),
        row("without a command", "observations", lost, lost, asked + lost),
        row("processor", "% of a core", 100 * share, 100 * share, steps),
    ]


def answered(sent: np.ndarray, arrivals: np.ndarray, period: int, every: int) -> tuple[np.ndarray, np.ndarray]:
    """Which observations a policy used, and when their command arrived.

    A policy uses the first instant at or after each of its due times, which are a period apart. Most of the commands
    near by show when that is: they arrive before the next instant is sent. A command belongs to the last due time, or,
    where that has two, to one without any before it. Of instants that the sensors sent at once, a policy uses one.

    Args:
        sent: instants, rising [ns]. arrivals: of commands, rising [ns]. period: of the policy [ns].
        every: instants in a period.

    Returns:
        (2, k) instant and arrival of its first command [ns]; (m,) such instants between them without a command [ns].
    """
    newest = np.searchsorted(sent, arrivals, side="right") - 1
    arrivals, newest = arrivals[newest >= 0], newest[newest >= 0]
    if not len(arrivals):
        return np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    gap = period // every
    # The publisher keeps its grid of times through pauses, so an instant's place in the period is that of its time.
    begin = sent[0] + int(np.median((sent - sent[0] + gap // 2) % gap)) - gap // 2
    places = (sent[newest] - begin + gap // 2) // gap % every
    due = begin + gap * _most_near(places, every)
    due += (arrivals - due + EARLY) // period * period
    _give_back(sent, due, period)
    pairs = dict[int, int]()
    unanswered = set[int]()
    used = _used(sent, due)
    for instant, at in zip(used.tolist(), arrivals.tolist(), strict=True):
        pairs.setdefault(instant, at)
    for k in np.flatnonzero(np.diff(due) > period + period // 2):
        missed = _used(sent, np.arange(due[k] + period, due[k + 1] - gap, period))
        unanswered |= set(missed[used[k + 1] - missed >= period // 2].tolist())
    found = np.array(sorted(pairs.items()), dtype=np.int64).T
    return found, np.array(sorted(unanswered - pairs.keys()), dtype=np.int64)


def _give_back(sent: np.ndarray, due: np.ndarray, period: int) -> None:
    """Move commands that are later than a period to their due times, if these have none; in place [ns]."""
    holes = np.diff(due) > period + period // 2
    holes &= _used(sent, due[1:]) - _used(sent, due[1:] - period) >= period // 2  # the sensors did not pause there
    for second in (np.flatnonzero(np.diff(due) < period // 2) + 1).tolist():
        first = max(second - LEVEL, 0)
        near = np.flatnonzero(holes[first : second - 1])
        if len(near):
            hole = first + int(near[-1])
            due[hole + 1 : second] -= period
            holes[hole] = due[hole + 1] - due[hole] > period + period // 2


def _used(sent: np.ndarray, due: np.ndarray) -> np.ndarray:
    """Return the first instants at or after due times [ns]."""
    return np.asarray(sent[np.minimum(np.searchsorted(sent, due - EARLY), len(sent) - 1)])


def _most_near(values: np.ndarray, count: int) -> np.ndarray:
    """Return, for each of (n,) integers below `count`, the most frequent one among its neighbours."""
    same = np.vstack([np.zeros(count), np.cumsum(values[:, None] == np.arange(count), axis=0)])
    k = np.arange(len(values))
    first, last = np.maximum(k - LEVEL // 2, 0), np.minimum(k + LEVEL // 2 + 1, len(values))
    return (same[last] - same[first]).argmax(axis=1)


def notes(rows: list[Row]) -> list[str]:
    """Return notes on the counted times."""
    way = rows[0]
    ways = ", ".join(f"{k} {v or 'not reported'}" for k, v in way["scheduling"].items())
    return [
        f"{way['policy']} at {way['rate']:g} Hz, joint states and IMU at {RATE:g} Hz; no simulator, no viewer. "
        f"Scheduling: {ways}.",
        f"{TOTAL}: from before joint states and IMU are written to the arrival of the command that they made, in a "
        "third process.",
        "A percentile needs ten times beyond it: p99.9 needs 10,000 steps (200 s at 50 Hz).",
        "processor: user and system time of the node's process.",
    ]
