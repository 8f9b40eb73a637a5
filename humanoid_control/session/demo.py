"""Demonstrations: an observed session and the report of its recording.

```python
from humanoid_control.session import Session
from humanoid_control.session.demo import DANCE_LEAD_IN, dance_report, watch_session
from humanoid_control.robots import load_robot

settings = {"trajectory_streamer": {"clip": "gentle_dance", "lead_in": DANCE_LEAD_IN}}
with Session("imitation", "wabian2", settings, record=True) as session:
    run = watch_session(session, seconds=20.0)
print(dance_report(session, run, load_robot("wabian2", "fixed"))["error_of_robot"]["mean"])
```
"""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.errors import ConfigError
from humanoid_control.session.session import Session
from humanoid_control.session.stacks import NODES
from humanoid_control.terminal import console, progress

if TYPE_CHECKING:
    from humanoid_control.robots import Robot

DANCE_LEAD_IN = 1.5  # [s] from the first posture to the clip's; dance errors exclude it
SIZED_AFTER = 10.0  # [s] of recording used to predict its final size
MUCH = 10**9  # [bytes] recording size worth a message
# Topics of the report and the viewer. Fewer topics lose fewer messages on a busy machine.
REACH_TOPICS = (
    "joint_commands",
    "goals",
    "targets",
    "joint_states",
    "ground_truth/odometry",
    "ik_markers",
    "/diagnostics",
)


@dataclass(frozen=True)
class WatchedRun:
    """Times and processes of an observed run.

    Attributes:
        started: time until the robot moved [s].
        stopped: duration of the stop [s].
    """

    started: float
    stopped: float
    processes: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return {"start_s": round(self.started, 2), "stop_s": round(self.stopped, 2)}


def watch_session(
    session: Session, seconds: float, hold: bool = False, name: str = "demo", quiet: bool = True
) -> WatchedRun:
    """Run a session for some time, then stop it.

    Args:
        seconds: duration after the first motion [s].
        hold: continue until a signal.

    Raises:
        StackFailure: see `Session`.
    """
    started = session.wait_first_motion()
    if not quiet:
        console.print(f"moving after {started:.1f} s; logs and recording: {session.directory}")
    with progress(name, seconds, quiet=quiet) as show:
        session.run(seconds, show if quiet else _with_size(session, seconds, show))
    if hold and not session.stopped.is_set():
        if not quiet:
            console.print("holding: Ctrl-C stops")
        session.run(math.inf)
    processes = session.processes()
    return WatchedRun(started, session.stop(), processes)


def _with_size(session: Session, seconds: float, show: Callable[[float, str], None]) -> Callable[[float, str], None]:
    """Return a progress display with the predicted recording size."""
    waiting = seconds > SIZED_AFTER

    def shown(done: float, text: str) -> None:
        nonlocal waiting
        show(done, text)
        if waiting and done >= SIZED_AFTER:
            waiting = False
            with contextlib.suppress(OSError):  # the message is optional
                if words := size_in_words(session.directory, seconds / done):
                    console.print(words)

    return shown


def size_in_words(directory: Path, times: float) -> str:
    """Describe the size of a recording grown by `times`; empty if small."""
    size = times * sum(f.stat().st_size for f in (directory / "recording").glob("*"))
    free = shutil.disk_usage(directory).free
    if size < MUCH and size < free:
        return ""
    gigabytes = f"the recording will take about {size / 1e9:.1f} GB; {free / 1e9:.1f} GB are free"
    return gigabytes if size < free else f"{gigabytes}: the recording will end early, the robot keeps running"


def dance_report(session: Session, run: WatchedRun, robot: Robot, lead_in: float = DANCE_LEAD_IN) -> dict[str, Any]:
    """Report a recorded imitation; `good`: limits kept and no contact.

    Args:
        robot: dancing robot with a fixed base.
        lead_in: lead-in of the clip [s].

    Raises:
        ConfigError: if recording, commands or targets are missing.
    """
    from humanoid_control.evaluation.recorded_run import run_report

    report = run_report(_recording(session), robot, skip=lead_in)
    report |= {**run.to_json(), "processes": run.processes, "warnings": [": ".join(c) for c in session.complaints]}
    return report | {"good": report["limits"]["kept"] and report["self_collision"]["frames_in_collision"] == 0}


def reaching_report(session: Session, run: WatchedRun, robot: Robot, acceleration: float) -> dict[str, Any]:
    """Report recorded random reaching; `good`: every criterion holds.

    Warnings provoked by the goal script are excluded.

    Args:
        robot: fixed base.
        acceleration: acceleration limit of the inverse kinematics [rad/s^2].

    Raises:
        ConfigError: if recording or commands are missing.
    """
    from humanoid_control.evaluation.reaching import reach_report

    report = reach_report(_recording(session), robot, acceleration, NODES)
    warnings = [f"{name}: {text}" for name, text in session.complaints if not provoked_by_goals(text)]
    return report | {**run.to_json(), "warnings": warnings}


def provoked_by_goals(text: str) -> bool:
    """Test whether the goal script provokes every part of a warning."""
    return all("is not a number: held" in t or "jumped: held" in t for t in text.split("; "))


def _recording(session: Session) -> Path:
    if session.bag is None:
        raise ConfigError("the session was not recorded: create it with record=True")
    return session.bag
