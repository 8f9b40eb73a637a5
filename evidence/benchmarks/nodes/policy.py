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
LEVEL = 50  # commands of which most arrive before the next sensors
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
    late, silent = answered(np.array(sensors.sent), arrivals, round(RATE * read.period))
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


def answered(sent: np.ndarray, arrivals: np.ndarray, every: int) -> tuple[np.ndarray, np.ndarray]:
    """Which observations a policy used, and when their command arrived.

    A policy uses each `every`-th instant. Which one that is shows in most commands of a second: they arrive before the
    next instant is sent. A command belongs to the last such instant, and to no later one, however late it is.

    Args:
        sent: instants, rising [ns]. arrivals: of commands, rising [ns].

    Returns:
        (2, k) instant and arrival of its first command [ns]; (m,) such instants between them without a command [ns].
    """
    pairs = dict[int, int]()
    unanswered = set[int]()
    for part in np.array_split(arrivals, max(1, len(arrivals) // LEVEL)):
        newest = np.searchsorted(sent, part, side="right") - 1
        part, newest = part[newest >= 0], newest[newest >= 0]
        if not len(part):
            continue
        used = sent[np.bincount(newest % every, minlength=every).argmax() :: every]
        place = np.searchsorted(used, part, side="right") - 1
        part, place = part[place >= 0], place[place >= 0]
        for k, at in zip(place, part, strict=True):
            pairs.setdefault(int(used[k]), int(at))
        if len(place):
            unanswered |= set(used[place[0] : place[-1]].tolist())
    found = np.array(sorted(pairs.items()), dtype=np.int64).reshape(-1, 2).T
    return found, np.array(sorted(unanswered - pairs.keys()), dtype=np.int64)


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
