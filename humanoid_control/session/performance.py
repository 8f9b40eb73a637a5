"""Observation of a performance, with a report."""

from __future__ import annotations

import math
from typing import Any

from humanoid_control.session.session import Session
from humanoid_control.session.stacks import PERFORMER
from humanoid_control.session.walk_course import Course
from humanoid_control.terminal import console, progress, table

PERFORM_TOPICS = (
    "joint_states",
    "joint_commands",
    "odom",
    "ground_truth/odometry",
    "performing/state",
    "reference_joint_states",
    "footsteps/planned",
    "clip/time",
    "/diagnostics",
)
# Share of real time, because two cores simulate, control at 500 Hz, record and draw. Late ticks cover more time.
PERFORM_PACE = 0.3
PREPARED = 900.0  # [s] for clip, motion and transition; compilation on a busy machine takes minutes
UNTOLD = 1.2  # [s] until the last diagnostics arrive


def watch(session: Session, seconds: float = math.inf, quiet: bool = True) -> dict[str, Any]:
    """Observe a performance; `good`: it reached its end, or the observation's.

    Args:
        session: running session of the stack `perform`.
        seconds: maximum duration in robot time [s].

    Raises:
        StackFailure: see `Session`.
    """
    c = Course(session, PERFORMER, "performing/state")
    with progress("preparing", 1.0, quiet=quiet) as show:

        def is_prepared() -> bool:
            show(0.0, c.values.get("preparing", ""))
            return c.state in ("STAND", "PERFORM")

        c.until(is_prepared, PREPARED)
    started = session.wait_first_motion()
    if not quiet:
        console.print(f"standing after {started:.1f} s; logs and recording: {session.directory}")
    begin, performing = c.time, False
    with progress("performance", 1.0, quiet=quiet) as show:
        while c.time - begin < seconds and not session.stopped.is_set():
            c.until(lambda: False, 0.2)
            c.take_errors()
            performing = performing or c.state == "PERFORM"
            clip, duration = (float(c.values.get(name, 0)) for name in ("clip_s", "clip_duration_s"))
            share = clip / duration if c.state == "PERFORM" and duration > 0.0 else 0.0
            show(min(share, 1.0), f"{c.state.lower()}, {clip:.1f} s of the clip")
            if c.state in ("FALLEN", "OFF") or (performing and c.state == "STAND"):
                break
    danced = c.time - begin
    c.until(lambda: False, UNTOLD)
    return _report(c, started, danced, performing)


def _report(c: Course, started: float, danced: float, performing: bool) -> dict[str, Any]:
    values = c.values
    return {
        "start_s": round(started, 2),
        "danced_s": round(danced, 2),
        "state": c.state,
        "falls": c.falls,
        "performed": int(values.get("performed", 0)),
        "tilt_deg": round(math.degrees(c.tilt), 2),
        "dcm_error_rms_mm": round(c.error_rms, 1),
        "early_contacts": int(values.get("early_contacts", 0)),
        "late_contacts": int(values.get("late_contacts", 0)),
        "failed_programs": int(values.get("failed_programs", 0)),
        "torque_saturated_percent": float(values.get("torque_saturated_percent", "nan")),
        "control_p50_ms": float(values.get("control_p50_ms", "nan")),
        "control_p99_ms": float(values.get("control_p99_ms", "nan")),
        "good": performing and c.falls == 0 and c.state in ("STAND", "PERFORM"),
    }


def print_performance(report: dict[str, Any]) -> None:
    table("performance", ["quantity", "value"], [
        ["danced", f"{report['danced_s']:.1f} s"],
        ["falls", report["falls"]],
        ["maximum tilt of the root link", f"{report['tilt_deg']:.1f} deg"],
        ["error of the divergent component, rms", f"{report['dcm_error_rms_mm']:.1f} mm"],
        ["early contacts, late contacts", f"{report['early_contacts']}, {report['late_contacts']}"],
        ["commands with a joint at its torque limit", f"{report['torque_saturated_percent']:.1f} %"],
        ["tick time, median and 99 %", f"{report['control_p50_ms']:.2f} ms, {report['control_p99_ms']:.2f} ms"],
    ])  # fmt: skip
    verdict = "performed on its feet without a fall" if report["good"] else "incomplete performance"
    console.print(f"{verdict}; final state: {report['state'].lower()}")
