"""A soak: faults of many kinds on a running stack, at random by a seed, and what was promised next to what was seen.

An observer in a process of its own hears the commands and joint states as a driver would; each fault has a window of
time, and what happened in it is compared with the promises of its kind.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evidence.studies.companion import Companion
from evidence.studies.report import Progress, StudyReport, silent
from evidence.studies.soak.intruder import INTRUSIONS, OPERATE, TOLD_TO_GO_ON
from evidence.studies.soak.observer import load, load_pulse, stood_still
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.session import Session, find_stack
from humanoid_control.terminal import ReportTable, machine

PAUSE = (6.0, 10.0)  # [s] of calm before the next fault
BEFORE, AFTER = 0.5, 5.0  # [s] around a fault that belong to it
LASTING = 3.0  # [s] of an intrusion
ENDS = 40.0  # [s] in which a recorder whose disk is full must end
ESSENTIAL = ("whole_body_ik", "state_estimator", "simulator")
HELPERS = ("trajectory_streamer", "viewer")
KILL, HANG, INTRUDE, FILL = "kill -9", "hang", "intrude", "fill"
ROOM = 2**21  # [bytes] in each file of a recording on a disk that is full then
TINY, OVER_SPEED, FIRST_OFF = 1e-9, 1.05, 0.01
MOVES = 0.01  # share of its speed limit that some joint exceeds while the robot moves: above the noise of encoders


class Promise(NamedTuple):
    """What is promised of a kind of fault.

    Attributes:
        gap: longest time without a command [s]. named: a diagnostic must say something about it; of a full disk the
            recorder. usual: the gap in 95 % of all faults of which this is promised [s].
    """

    gap: float
    named: bool = False
    usual: float = np.inf


PROMISES = {
    (KILL, "essential"): Promise(3.0, usual=1.5),
    (KILL, "helper"): Promise(0.02),
    (HANG, "essential"): Promise(3.0),
    (HANG, "helper"): Promise(0.02),
    (INTRUDE, "commands"): Promise(np.inf, True),
    (INTRUDE, "states"): Promise(np.inf, True),
    (INTRUDE, "flood"): Promise(0.02, True),
    (INTRUDE, "targets"): Promise(0.02, True),
    (INTRUDE, "clock"): Promise(0.02),
    (FILL, "disk"): Promise(0.02, True),
}


class Fault(NamedTuple):
    """A fault: what is done, to whom or of what sort, and its promise."""

    what: str
    target: str
    promise: Promise

    @property
    def name(self) -> str:
        return f"{self.what} {self.target}"


def faults_of(stack: Sequence[str]) -> list[Fault]:
    """All faults that a stack of these nodes can have."""
    kinds = [(n, "essential") for n in ESSENTIAL if n in stack] + [(n, "helper") for n in HELPERS if n in stack]
    out = [Fault(what, node, PROMISES[what, kind]) for what in (KILL, HANG) for node, kind in kinds]
    out += [Fault(INTRUDE, kind, PROMISES[INTRUDE, kind]) for kind in INTRUSIONS]
    return [*out, Fault(FILL, "disk", PROMISES[FILL, "disk"])]


@dataclass
class Seen:
    """What was seen around one fault, between `begin` and `end` [s since the epoch].

    Attributes:
        gap: longest time without a command [s]. stood: of it the machine itself stood still [s].
        step: largest step of a command over what the speed limits allow in the time since the one before.
        outside: farthest beyond a joint's range [rad]. first_off: distance of the first command after the longest gap
            from the joint states [rad]; NaN without a gap.
        speed: largest measured speed as a share of its limit. finite: no number was none.
        named: a diagnostic that is new in this time, the worst one.
        said: by a recorder that ended by itself.
        moved: the robot moved just before the fault: one at rest keeps speed and position whatever happens.
        resynced: afterwards a node waited to be told to continue, by `~/resync`, and was.
    """

    fault: Fault
    begin: float
    end: float
    gap: float = 0.0
    stood: float = 0.0
    step: float = 0.0
    outside: float = 0.0
    first_off: float = float("nan")
    speed: float = 0.0
    finite: bool = True
    named: str = ""
    said: str = ""
    moved: bool = False
    resynced: bool = False
    broken: list[str] = field(default_factory=list)


def judge(
    seen: Seen,
    commands: dict[str, np.ndarray],
    states: dict[str, np.ndarray],
    told: Sequence[Sequence[Any]],
    late: np.ndarray,
) -> None:
    """Fill in what was seen around a fault, and which promises were broken.

    A gap may be longer than promised by as much as the machine stood still in it (`late`, of `load_pulse`). What an
    intruder publishes on the observed topics is heard too: there only what the robot does counts.
    """
    own = (commands["t"] >= seen.begin) & (commands["t"] <= seen.end)
    t = commands["t"][own]
    times = np.concatenate([[seen.begin], t, [seen.end]])
    gaps = np.diff(times)
    k = int(np.argmax(gaps))
    seen.gap = float(gaps[k])
    seen.stood = stood_still(late, times[k], times[k + 1])
    if len(t) and seen.gap > 0.1:
        seen.first_off = float(commands["off"][own][k]) if k < len(t) else float("nan")
    seen.outside = float(commands["outside"][own].max(initial=0.0))
    before = (states["t"] >= seen.begin) & (states["t"] < seen.begin + BEFORE)
    seen.moved = bool((states["speed"][before] > MOVES).any())
    theirs = (states["t"] >= seen.begin) & (states["t"] <= seen.end)
    if seen.fault.target != "states":  # those of the intruder are heard as well
        seen.speed = float(states["speed"][theirs].max(initial=0.0))
    intruded = seen.fault.target in ("commands", "states")
    if not intruded:
        seen.finite = bool(commands["finite"][own].all() and states["finite"][theirs].all())
        seen.step = float(commands["speed"][own].max(initial=0.0))
    found = [
        (int(level), f"{node}: {text}") for at, node, level, text in told if seen.begin <= at <= seen.end and level
    ]
    seen.named = max(found, default=(0, ""))[1]
    p, broken = seen.fault.promise, seen.broken
    if seen.gap - seen.stood > p.gap:
        broken.append(f"no command for {seen.gap:.3f} s (guaranteed {p.gap:g})")
    if not intruded and seen.outside > TINY:
        broken.append(f"a command {seen.outside:.2g} rad beyond a range")
    if seen.step > 1.0 + 1e-6:
        broken.append(f"a command at {seen.step:.2f} of a speed limit")
    if seen.speed > OVER_SPEED:
        broken.append(f"a joint at {seen.speed:.2f} of its speed limit")
    if not seen.finite:
        broken.append("a non-finite number")
    if seen.first_off > FIRST_OFF and seen.fault.what == KILL:
        broken.append(f"the first command {seen.first_off:.3f} rad from the robot (guaranteed {FIRST_OFF:g})")
    if p.named and not (seen.said if seen.fault.what == FILL else seen.named):
        broken.append("the recorder reported nothing" if seen.fault.what == FILL else "nothing on /diagnostics")


def soak(
    robot: str, hours: float, seed: int, session: Session, faults: Sequence[Fault], show: Progress, folder: Path
) -> list[Seen]:
    """Run faults on a started session until the time is over; each kind once, in random order, then again."""
    rng, begun, seen = np.random.default_rng(seed), time.monotonic(), list[Seen]()
    path, queue = folder / "heard.npz", list[Fault]()
    rhythm = folder / "pulse.npz"
    ear = Companion("soak.observer", robot, str(path), supervised=True)
    with (
        Companion("soak.intruder", robot) as intruder,
        Companion("soak.observer", str(rhythm)) as pulse,
        ear as observer,
    ):
        if (intruder.heard(), observer.heard(), pulse.heard()) != ("ready",) * 3:
            raise ConfigError(f"the processes of the soak did not start: see {session.directory}")
        while (left := 3600 * hours - (time.monotonic() - begun)) > 0 and not session.stopped.is_set():
            show(1.0 - left / (3600 * hours), f"{len(seen)} faults")
            session.run(float(rng.uniform(*PAUSE)))
            if not queue:
                queue = [faults[k] for k in rng.permutation(len(faults))]
            fault, begin = queue.pop(), time.time() - BEFORE
            said = do(fault, session, intruder, rng)
            session.run(AFTER)
            seen.append(Seen(fault, begin, time.time(), said=said))
            intruder.say(OPERATE)
            seen[-1].resynced = intruder.heard() == TOLD_TO_GO_ON
    commands, states, told = load(path)
    late = load_pulse(rhythm)
    for one in seen:
        judge(one, commands, states, told, late)
    return seen


def do(fault: Fault, session: Session, intruder: Companion, rng: np.random.Generator) -> str:
    """Inject a fault; what a recorder said that ended by itself."""
    if fault.what == FILL:
        return fill_disk(session)
    if fault.what == INTRUDE:
        intruder.say(f"{fault.target} {LASTING} {rng.integers(1 << 31)}")
        session.run(LASTING)
        intruder.heard()
        return ""
    process = session.supervisor.children[fault.target].process
    if process is not None and process.poll() is None:
        os.kill(process.pid, signal.SIGKILL if fault.what == KILL else signal.SIGSTOP)
    return ""


def fill_disk(session: Session, room: int = ROOM) -> str:
    """Record all topics until the recorder's disk is full; what it said, nothing where it did not end by itself.

    Its files cannot grow beyond `room` [bytes]: the same to it, and needs neither a disk of its own nor the right to
    mount one.
    """
    folder = session.directory / f"full_disk_{time.time_ns()}"
    command = [sys.executable, "-m", "humanoid_control.cli.main", "record", "-o", str(folder)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    ) as recorder:
        session.run(LASTING)
        end = time.monotonic() + ENDS
        while recorder.poll() is None and time.monotonic() < end and not session.stopped.is_set():
            session.run(0.1)
        ended = recorder.poll() is not None
        recorder.kill()
        assert recorder.stderr is not None
        words = " ".join(recorder.stderr.read().split())
    shutil.rmtree(folder, ignore_errors=True)
    return words if ended else ""


NOTE = """moving: faults during motion, with a joint faster than 1 % of its limit just before: a robot at rest keeps
speed and position anyway. gap: longest time without a command around a fault, the 95th percentile and the worst of its
kind. stood: of such a gap, the longest stall of the machine itself: a process of highest priority was woken as late,
and a gap may be longer by this time. first: the distance of the first command from the joint positions. speed:
measured, as a share of the limit, largest of any joint. Guarantees: after kill -9 of an essential node commands again
within 1.5 s in 95 % of these faults and within 3 s in all, the first at most 0.01 rad off; within 3 s after a node
hangs; no gap above 20 ms for all other faults, even if the disk of the recorder is full, which it must report within
40 s; never a non-finite number, a command beyond a range or speed limit, or a joint beyond 1.05 of its speed limit. If
a robot is stopped after a fault because it did not follow, it is resumed before the next fault."""


def run_soak(
    robot: str = "hrp2",
    hours: float = 1.0,
    seed: int = 0,
    stack: str = "imitation",
    only: Sequence[str] = (),
    show: Progress = silent,
    settings: dict[str, dict[str, Any]] | None = None,
    watch: Callable[[Seen], None] | None = None,
) -> StudyReport:
    """Soak a stack.

    Args:
        robot: of the catalogue, or the path of a URDF. hours: how long. seed: of the faults. stack: its name.
        only: faults with one of these words in their name. settings: of the stack's nodes. show, watch: told of
            progress, and of each outcome.

    Raises:
        ConfigError: no such time. UnknownNameError: stack, robot or fault. StackFailure: it did not start, or ended.
    """
    if not 0 < hours <= 1000:
        raise ConfigError(f"hours must be above 0 and at most 1000, got {hours:g}")
    load_robot(robot, "fixed")
    known = faults_of(find_stack(stack).executables)
    for word in only:
        if not any(word in f.name for f in known):
            raise UnknownNameError("fault", word, dict.fromkeys(w for f in known for w in f.name.split()))
    faults = [f for f in known if not only or any(word in f.name for word in only)]
    with Session(stack, robot, settings, quiet=True) as session:
        session.wait_first_motion()
        seen = soak(robot, hours, seed, session, faults, show, session.directory)
        complaints = len(session.complaints)
    for one in seen:
        if watch is not None:
            watch(one)
    return soak_report(seen, {"robot": robot, "stack": stack, "hours": hours, "seed": seed, "complaints": complaints})


def soak_report(seen: Sequence[Seen], what: dict[str, Any]) -> StudyReport:
    """Tables and data of a soak.

    Args:
        seen: outcomes of its faults. what: robot, stack, hours, seed and complaints of it.
    """
    rows = [_row(kind, [s for s in seen if s.fault == kind]) for kind in dict.fromkeys(s.fault for s in seen)]
    columns = [
        "fault",
        "times",
        "moving",
        "gap 95 % s",
        "gap worst s",
        "stood s",
        "first off rad",
        "speed",
        "violations",
    ]
    broken = [f"{s.fault.name}: {text}" for s in seen for text in s.broken] + _unusual(seen)
    moving, still = [s for s in seen if s.moved], [s for s in seen if not s.moved]
    kept, calm = (sum(not s.broken for s in some) for some in (moving, still))
    data = {
        "study": "soak",
        "soak": what,
        "faults": [{**s.__dict__, "fault": s.fault.name} for s in seen],
        "during_motion": {"faults": len(moving), "kept": kept},
        "at_rest": {"faults": len(still), "kept": calm},
        "broken": broken,
        "machine": machine(),
    }
    verdict = (
        f"{len(seen)} faults: {len(moving)} during motion, {kept} of them without violation; {len(still)} at rest, "
        f"which are less critical, {calm} of them without violation"
    )
    waited = [s.fault.name for s in seen if s.resynced]
    told = [f"stopped until ~/resync, {waited.count(name)} times: {name}" for name in dict.fromkeys(waited)]
    return StudyReport(
        data,
        [
            ReportTable(f"soak of {what['stack']}, {what['robot']}", columns, rows),
            verdict,
            *told,
            *sorted(set(broken)),
            NOTE,
        ],
    )


def _unusual(seen: Sequence[Seen]) -> list[str]:
    """Promises of what is usual that were broken."""
    out = []
    for usual in sorted({s.fault.promise.usual for s in seen if np.isfinite(s.fault.promise.usual)}):
        gaps = [s.gap for s in seen if s.fault.promise.usual == usual]
        if (p95 := float(np.percentile(gaps, 95))) > usual:
            out.append(f"95 % of {len(gaps)} essential nodes that were killed: {p95:.2f} s (guaranteed {usual:g})")
    return out


def _row(fault: Fault, seen: Sequence[Seen]) -> list[Any]:
    gaps = [s.gap for s in seen]
    first = [s.first_off for s in seen if np.isfinite(s.first_off)]
    return [
        fault.name,
        len(seen),
        sum(s.moved for s in seen),
        round(float(np.percentile(gaps, 95)), 3),
        round(max(gaps), 3),
        round(max(s.stood for s in seen), 3),
        round(max(first), 4) if first else "",
        round(max(s.speed for s in seen), 2),
        sum(bool(s.broken) for s in seen),
    ]
