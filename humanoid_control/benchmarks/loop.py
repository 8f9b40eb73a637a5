"""The inverse kinematics node in closed loop at 500 Hz: simulator, estimator and targets around it, no viewer."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.ros_env import require_ros
from humanoid_control.nodes.session.session import Session
from humanoid_control.nodes.stacks import find_stack
from humanoid_control.terminal import progress

ROBOT = "lola"
RATE = 500.0  # [Hz]
SETTLE = 5.0  # [s]
NODE = "whole_body_ik"


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows: command_latency, period_error, tick, missed_ticks, from the node's own diagnostics.

    The percentiles are those of the whole measurement, whose length is the node's sliding window.
    """
    require_ros()
    if not 5 <= args.seconds <= 3600:
        raise ConfigError(f"--seconds must be between 5 and 3600, got {args.seconds:g}")
    imitation = find_stack("imitation")
    stack = dataclasses.replace(imitation, nodes=tuple(n for n in imitation.nodes if n.executable != "viewer"))
    shared = {"robot": args.robot, "window": args.seconds}
    with Session(stack, shared, {NODE: {"rate": RATE}}, quiet=True) as session:
        session.start()
        session.wait_first_motion()
        session.run(SETTLE)
        before = _heard(session)
        with progress("measuring", args.seconds, quiet=args.json) as show:
            session.run(args.seconds, lambda t, _: show(t))
        after = _heard(session)
    ticks, missed = (int(after[k]) - int(before[k]) for k in ("ticks", "missed_ticks"))
    latency, period, tick = (
        [float(after[f"{k}_{p}_ms"]) for p in ("p50", "p99")] for k in ("latency", "period_error", "execution")
    )
    return [
        _row("command_latency", "ms", latency[0], latency[1], ticks),
        _row("period_error", "ms", period[0], period[1], ticks),
        _row("tick", "ms", tick[0], tick[1], ticks),
        _row("missed_ticks", "ticks", missed, missed, ticks + missed),
    ]


def _heard(session: Session) -> dict[str, str]:
    """The node's last diagnostics, once there are any."""
    assert session.monitor is not None
    for _ in range(100):
        session.run(1.1)  # diagnostics come once a second
        if NODE in session.monitor.nodes:
            break
    return session.monitor.nodes[NODE][2]


def _row(name: str, unit: str, median: float, p99: float, n: int) -> dict[str, Any]:
    return {"name": name, "unit": unit, "median": round(median, 3), "p99": round(p99, 3), "n": n}


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """What is counted."""
    return [
        f"{NODE} at {RATE:.0f} Hz with simulator, estimator and streamer on this machine, whose cores they share.",
        "command_latency: from the stamp of targets to the command that uses them. period_error: how far the time",
        f"between two ticks is from {1e3 / RATE:g} ms, whether longer or shorter.",
    ]
