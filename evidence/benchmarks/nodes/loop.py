"""The inverse kinematics node in closed loop at 500 Hz: simulator, estimator and targets around it, no viewer."""

from __future__ import annotations

from evidence.benchmarks import Row, row
from evidence.benchmarks.nodes.command_arrival import Listener
from evidence.benchmarks.nodes.stack import check_seconds, told_scheduling
from humanoid_control.robots import load_robot
from humanoid_control.session import Session, find_stack
from humanoid_control.terminal import progress

RATE = 500.0  # [Hz]
SETTLE = 5.0  # [s]
NODE = "whole_body_ik"


def measure(robot: str = "lola", seconds: float = 40.0, quiet: bool = True) -> list[Row]:
    """Rows: command_latency and command_transport, in another process; the node's own publish_latency, period_error,
    tick, missed_ticks.

    The percentiles of its own are those of the whole measurement, whose length is the node's sliding window.
    """
    check_seconds(seconds)
    load_robot(robot, "fixed")  # a robot that is none leaves no run behind
    stack = find_stack("imitation").without("viewer")
    settings = {NODE: {"rate": RATE}}
    with Listener() as listener, Session(stack, robot, settings, window=seconds, quiet=True) as session:
        session.wait_first_motion()
        session.run(SETTLE)
        before = _last_diagnostics(session)
        listener.begin()
        with progress("measuring", seconds, quiet) as show:
            session.run(seconds, lambda t, _: show(t))
        listener.end()
        after = _last_diagnostics(session)
    ticks, missed = (int(after[k]) - int(before[k]) for k in ("ticks", "missed_ticks"))
    latency, period, tick = (
        [float(after[f"{k}_{p}_ms"]) for p in ("p50", "p99")] for k in ("latency", "period_error", "execution")
    )
    return [
        *listener.rows("command_latency", 1 / RATE),
        row("publish_latency", "ms", latency[0], latency[1], ticks, scheduling={NODE: after.get("scheduling", "")}),
        row("period_error", "ms", period[0], period[1], ticks),
        row("tick", "ms", tick[0], tick[1], ticks),
        row("missed_ticks", "ticks", missed, missed, ticks + missed),
    ]


def _last_diagnostics(session: Session) -> dict[str, str]:
    """Of the node, as soon as there are any."""
    for _ in range(100):
        session.run(1.1)  # diagnostics come once a second
        if NODE in session.monitor.nodes:
            break
    return session.monitor.nodes[NODE].values


def notes(rows: list[Row]) -> list[str]:
    """Lines on what is counted."""
    return [
        f"{NODE} at {RATE:.0f} Hz with simulator, estimator and streamer on the same cores of this machine.",
        "command_latency: from the stamp of targets to the arrival of the resulting command in another process; "
        "publish_latency: to its publication, by the node; command_transport: from any command's stamp to its arrival.",
        f"period_error: absolute deviation of the time between two ticks from {1e3 / RATE:g} ms.",
        told_scheduling({r["name"]: r for r in rows}["publish_latency"]) + ".",
    ]
