"""What the demos have in common: a session that is watched for some time, and the last words about it."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

from humanoid_control.cli.output import console, progress
from humanoid_control.cli.session import Session


@dataclass(frozen=True)
class Watched:
    """How a run went.

    Attributes:
        started: after which the robot moved [s]. stopped: how long stopping took [s].
        processes: of the nodes, as `Session.processes`.
    """

    started: float
    stopped: float
    processes: list[dict[str, Any]]


def watch(args: argparse.Namespace, session: Session, name: str) -> Watched:
    """Start the session, show how it goes for the seconds asked for, or on until Ctrl-C, and stop it.

    Raises:
        StackFailure: as `Session`.
    """
    session.start()
    started = session.wait_first_motion()
    tell(args, f"moving after {started:.1f} s; logs and recording: {session.directory}")
    with progress(name, args.seconds, quiet=args.json) as show:
        session.run(args.seconds, show)
    if args.hold and not session.stopped.is_set():
        tell(args, "holding: Ctrl-C ends it")
        session.run(math.inf)
    processes = session.processes()
    return Watched(started, session.stop(), processes)


def print_end(session: Session, run: Watched) -> None:
    """How long starting and stopping took, and how to see the run again."""
    console.print(f"started in {run.started:.1f} s, stopped in {run.stopped:.1f} s; play it again:")
    console.print(f"  humanoid replay {session.bag} --viewer")


def tell(args: argparse.Namespace, text: str) -> None:
    """Print, but where JSON is asked for."""
    if not args.json:
        console.print(text)
