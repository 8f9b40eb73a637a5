"""The whole stack measured from outside (processor, memory) and by its own diagnostics (ticks, latency)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from evidence.benchmarks import Row, row, row_of
from evidence.benchmarks.nodes.command_arrival import Listener
from humanoid_control.errors import ConfigError
from humanoid_control.nodes import require_ros
from humanoid_control.robots.loadable import check_robot
from humanoid_control.session import Session
from humanoid_control.terminal import progress

PORT = 8097
SETTLE = 5.0
PERIOD = 0.004  # [s] of regular commands
SUPERVISOR = "supervisor"
MEMORY_EVERY = 10  # samples


def measure(robot: str = "hrp2", seconds: float = 40.0, quiet: bool = True) -> list[Row]:
    """Rows: ik_tick, marker_to_command, following_error, missed_ticks_percent, cores, memory_mb; missed ticks and
    memory of every node."""
    check_seconds(seconds)
    check_robot(robot)  # a robot that is none leaves no run behind
    settings = {"viewer": {"port": PORT}}
    with (
        Listener() as listener,
        Session("imitation", robot, settings, window=max(5.0, seconds), quiet=True) as session,
    ):
        session.wait_first_motion()
        session.run(SETTLE)
        listener.begin()
        before = _totals(session)
        samples, following = _sample(session, seconds, quiet)
        listener.end()
        after = _totals(session)
        scheduling = {n: status.values.get("scheduling", "") for n, status in session.monitor.nodes.items()}
        ik = session.monitor.nodes["whole_body_ik"].values
    ticks = {n: after[n][0] - before[n][0] for n in after}
    missed = {n: after[n][1] - before[n][1] for n in after}
    shares = {n: 100 * missed[n] / max(1, ticks[n] + missed[n]) for n in ticks}
    total = 100 * sum(missed.values()) / max(1, sum(ticks.values()) + sum(missed.values()))
    commands = ticks["whole_body_ik"]
    markers = ticks["trajectory_streamer"]
    return [
        row(
            "ik_tick",
            "ms",
            float(ik["execution_p50_ms"]),
            float(ik["execution_p99_ms"]),
            commands,
            scheduling=scheduling,
        ),
        *listener.rows("marker_to_command", PERIOD),
        row("marker_to_publish", "ms", float(ik["latency_p50_ms"]), float(ik["latency_p99_ms"]), markers),
        row_of("following_error", "rad", [error for error, _ in following], joint=max(following)[1]),
        row("missed_ticks_percent", "%", total, max(shares.values()), sum(ticks.values()) + sum(missed.values())),
        *(row(f"missed_{n}", "%", share, share, ticks[n] + missed[n]) for n, share in sorted(shares.items())),
        row_of("cores", "cores", [s[0] for s in samples]),
        row_of("memory_mb", "MB", [sum(memory.values()) for _, memory in samples]),
        *(row_of(f"memory_{n}_mb", "MB", [m[n] for _, m in samples]) for n in sorted(samples[0][1])),
    ]


def check_seconds(seconds: float) -> None:
    """Test that nodes can be started here, and measured for so long.

    Raises:
        EnvironmentProblem: ROS 2 is missing. ConfigError: not between 5 s and an hour.
    """
    require_ros()
    if not 5 <= seconds <= 3600:
        raise ConfigError(f"seconds must be between 5 and 3600, got {seconds:g}")


Usage = tuple[float, dict[str, float]]
"""Cores of all nodes, their supervisor and its helpers together, and MB of each."""


def _sample(session: Session, seconds: float, quiet: bool) -> tuple[list[Usage], list[tuple[float, str]]]:
    """Usage, and the worst following error of the simulated robot [rad] with its joint, once a second."""
    nodes = {row["name"]: row["pid"] for row in session.processes()} | {SUPERVISOR: os.getpid()}
    nodes |= session.supervisor.helpers
    pids = list(nodes.values())
    clock = os.sysconf("SC_CLK_TCK")
    out, following = list[Usage](), list[tuple[float, str]]()
    with progress("measuring", seconds, quiet) as show:
        begin = last = time.monotonic()
        used = sum(_cpu_ticks(p) for p in pids)
        while last - begin < seconds and not session.stopped.is_set():
            session.run(1.0)
            now, total = time.monotonic(), sum(_cpu_ticks(p) for p in pids)
            # Adding up the memory of a process stops it for a moment, so that is done less often.
            memory = out[-1][1] if len(out) % MEMORY_EVERY else {n: _memory_mb(p) for n, p in nodes.items()}
            out.append(((total - used) / clock / (now - last), memory))
            following.append(_following_error(session.monitor.nodes["simulator"].values))
            last, used = now, total
            show(last - begin)
    return out, following


def _following_error(told: Mapping[str, str]) -> tuple[float, str]:
    """Worst following error [rad] since the diagnostics before, as the simulator told it, and its joint."""
    return float(told["following_error_rad"]), told["following_error_joint"]


def _totals(session: Session) -> dict[str, tuple[int, int]]:
    """Node -> (ticks, missed) so far, once every node has reported."""
    names = session.stack.executables
    for _ in range(100):
        session.run(1.1)  # diagnostics come once a second
        if all(n in session.monitor.nodes for n in names):
            break
    values = {n: session.monitor.nodes[n].values for n in names}
    return {n: (int(v["ticks"]), int(v["missed_ticks"])) for n, v in values.items()}


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def _memory_mb(pid: int) -> float:
    """Memory of a process, what it shares with others by equal parts (PSS); 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def told_scheduling(row: Row) -> str:
    """Scheduling of the nodes in words, from a row that has it."""
    ways = {str(way) for way in row.get("scheduling", {}).values()}
    return f"scheduling of the nodes, if reported: {', '.join(sorted(ways)) or 'not reported'}"


def notes(rows: list[Row]) -> list[str]:
    """Lines on what is counted."""
    by = {r["name"]: r for r in rows}
    return [
        "ik_tick, marker_to_publish, missed ticks: from the diagnostics of the nodes.",
        "marker_to_command: from the stamp of targets to the arrival of the resulting command in another process; "
        "command_transport: from the stamp of any command to its arrival there.",
        "following_error: largest error of any joint in each second, from the diagnostics of the simulator; the "
        f"largest was at {by['following_error']['joint']}.",
        "cores, memory (PSS): of all nodes, their supervisor, the fork server and the keeper of shared memory, every "
        "1 and 10 s.",
        told_scheduling(by["ik_tick"]) + ".",
    ]
