"""The whole stack measured from outside (processor, memory, start) and by its own diagnostics (ticks, latency)."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.ros_env import require_ros
from humanoid_control.nodes.session.session import Session
from humanoid_control.nodes.stacks import find_stack
from humanoid_control.terminal import progress

STARTS = 3
PORT = 8097
SETTLE = 5.0


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows: ik_tick, marker_to_command, missed_ticks_percent, cores, memory_mb, start_s; missed ticks, memory and
    time until it is ready of every node."""
    require_ros()
    if not 5 <= args.seconds <= 3600:
        raise ConfigError(f"--seconds must be between 5 and 3600, got {args.seconds:g}")
    starts = [_start_once(args) for _ in range(STARTS - 1)]
    with _session(args) as session:
        starts.append(_started(session))
        session.run(SETTLE)
        before = _totals(session)
        samples = _sample(session, args)
        after = _totals(session)
        ik = session.monitor.nodes["whole_body_ik"][2] if session.monitor else {}
    ticks = {n: after[n][0] - before[n][0] for n in after}
    missed = {n: after[n][1] - before[n][1] for n in after}
    shares = {n: 100 * missed[n] / max(1, ticks[n] + missed[n]) for n in ticks}
    total = 100 * sum(missed.values()) / max(1, sum(ticks.values()) + sum(missed.values()))
    commands = ticks["whole_body_ik"]
    markers = ticks["trajectory_streamer"]
    return [
        _row("ik_tick", "ms", float(ik["execution_p50_ms"]), float(ik["execution_p99_ms"]), commands),
        _row("marker_to_command", "ms", float(ik["latency_p50_ms"]), float(ik["latency_p99_ms"]), markers),
        _row("missed_ticks_percent", "%", total, max(shares.values()), sum(ticks.values()) + sum(missed.values())),
        *(_row(f"missed_{n}", "%", share, share, ticks[n] + missed[n]) for n, share in sorted(shares.items())),
        _row("cores", "cores", *_p50_p99([s[0] for s in samples]), len(samples)),
        _row("memory_mb", "MB", *_p50_p99([sum(memory.values()) for _, memory in samples]), len(samples)),
        *(_row(f"memory_{n}_mb", "MB", *_p50_p99([m[n] for _, m in samples]), len(samples)) for n in sorted(ticks)),
        _row("start_s", "s", *_p50_p99([first for first, _ in starts]), len(starts)),
        *(_row(f"ready_{n}_s", "s", *_p50_p99([ready[n] for _, ready in starts]), len(starts)) for n in sorted(ticks)),
    ]


def _session(args: argparse.Namespace) -> Session:
    settings = {"viewer": {"port": PORT}}
    shared = {"robot": args.robot, "window": max(5.0, args.seconds)}
    return Session(find_stack("imitation"), shared, settings, quiet=True)


def _start_once(args: argparse.Namespace) -> tuple[float, dict[str, float]]:
    with _session(args) as session:
        return _started(session)


def _started(session: Session) -> tuple[float, dict[str, float]]:
    """Time until the robot first moves, and until each node was ready since it was started [s]."""
    session.start()
    ready = {row["name"]: float(row["ready_s"]) for row in session.processes()}
    return session.wait_first_motion(), ready


def _sample(session: Session, args: argparse.Namespace) -> list[tuple[float, dict[str, float]]]:
    """Cores of all nodes together and MB of each, once a second."""
    nodes = {row["name"]: row["pid"] for row in session.processes()}
    pids = list(nodes.values())
    clock = os.sysconf("SC_CLK_TCK")
    out: list[tuple[float, dict[str, float]]] = []
    with progress("measuring", args.seconds, quiet=args.json) as show:
        begin = last = time.monotonic()
        used = sum(_cpu_ticks(p) for p in pids)
        while last - begin < args.seconds and not session.stopped.is_set():
            session.run(1.0)
            now, total = time.monotonic(), sum(_cpu_ticks(p) for p in pids)
            out.append(((total - used) / clock / (now - last), {n: _memory_mb(p) for n, p in nodes.items()}))
            last, used = now, total
            show(last - begin)
    return out


def _totals(session: Session) -> dict[str, tuple[int, int]]:
    """Node -> (ticks, missed) so far, once every node has reported."""
    assert session.monitor is not None
    names = [n.executable for n in session.stack.nodes]
    for _ in range(100):
        session.run(1.1)  # diagnostics come once a second
        if all(n in session.monitor.nodes for n in names):
            break
    values = {n: session.monitor.nodes[n][2] for n in names}
    return {n: (int(v["ticks"]), int(v["missed_ticks"])) for n, v in values.items()}


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def _memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _p50_p99(values: list[float]) -> tuple[float, float]:
    p50, p99 = np.percentile(values, [50, 99])
    return float(p50), float(p99)


def _row(name: str, unit: str, median: float, p99: float, n: int) -> dict[str, Any]:
    return {"name": name, "unit": unit, "median": round(median, 3), "p99": round(p99, 3), "n": int(n)}
