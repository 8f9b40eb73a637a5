"""Row `floods`: a dancing stack is flooded with markers, and those who watch and record it die.

Run as `python -m evidence.studies.faults.floods` it is the process that floods: a line on standard input is
seconds and a seed; the answer is JSON.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.companion import READY, Companion
from evidence.studies.faults.dance import CALM, CALM_LIMIT, STACK, dances
from evidence.studies.faults.figures import FaultRow, MeasuredFault, Plan, Try, longest_gap
from evidence.studies.faults.stack import COMMANDS, FaultWindow, ObservedStack
from humanoid_control.session import find_stack

VIEWER_PORT = 8484
FLOOD, RECORDER, VIEWER = "flood", "recorder killed", "viewer killed"
FLOODED, WATCHED = 20.0, 4.0  # [s] of a flood, and after a helper's end
RECORDS = 3.0  # [s] for which a recorder records before it is killed
GAP = 0.02  # [s]
DROWSY = 0.005  # [s] by which the observer may be late and still tell gaps


def flood_cases(plan: Plan) -> list[list[Any]]:
    """Each sort so often."""
    return [[sort, k] for k in range(plan.floods) for sort in (FLOOD, RECORDER, VIEWER)]


@contextlib.contextmanager
def start_floods(plan: Plan) -> Iterator[Try]:
    """The imitation with its viewer, and somebody who can flood it."""
    port = int(plan.settings.get("viewer", {}).get("port", VIEWER_PORT))
    settings = {**plan.settings, "viewer": {"port": port, **plan.settings.get("viewer", {})}}
    shown = Plan(plan.robot, plan.seed, settings=settings)
    with Companion("faults.floods", plan.robot) as flooder:
        flooder.heard()
        with ObservedStack(find_stack(STACK), shown, (COMMANDS,)) as stack:
            stack.session.supervisor.children["viewer"].restarts = 10 * plan.floods
            yield lambda job: flood(stack, flooder, plan, *job)


def flood(stack: ObservedStack, flooder: Companion, plan: Plan, sort: str, count: int) -> dict[str, Any]:
    """The longest time without a command in a flood, or after the end of a helper."""
    stack.until(stack.window(CALM), lambda w: dances(stack, w), CALM_LIMIT)
    calm = undisturbed_gap(stack.window(CALM))
    sent: dict[str, Any] = {}
    if sort == FLOOD:
        seed = int(plan.rng("floods", count).integers(1 << 31))
        window = stack.window(0.0, lambda: flooder.say(f"{FLOODED} {seed}"))
        window = window.then(stack.more(window.end, FLOODED + 1.0))
        sent = json.loads(flooder.heard() or "{}")
    elif sort == VIEWER:
        stack.session.supervisor.children["viewer"].ready.wait(CALM_LIMIT)
        process = stack.session.supervisor.children["viewer"].process
        assert process is not None
        window = stack.window(WATCHED, process.kill)
    else:
        with recorder(stack, Path(stack.session.directory) / f"bag_{count}_{time.time():.0f}") as process:
            stack.run(RECORDS)
            window = stack.window(WATCHED, process.kill)
    commands = window.joints[COMMANDS]
    return {
        "gap_s": undisturbed_gap(window),
        "arrivals_gap_s": longest_gap(commands.t, window.begin, window.end)[0],
        "slept_s": window.slept,
        "calm_gap_s": calm,
        "commands": len(commands.t),
        "sent": sent,
    }


def undisturbed_gap(window: FaultWindow) -> float:
    """Longest time without a command [s]: of their arrivals, or where the observer itself slept, of their stamps."""
    commands = window.joints[COMMANDS]
    gap, k = longest_gap(commands.t, window.begin, window.end)
    if window.slept < GAP + DROWSY or not 0 < k < len(commands.t):
        return gap
    return float(np.diff(commands.stamp).max(initial=0.0))


@contextlib.contextmanager
def recorder(stack: ObservedStack, bag: Path) -> Iterator[subprocess.Popen]:
    """A process that records all topics."""
    command = [sys.executable, "-u", "-m", "humanoid_control.cli.main", "record", "-o", str(bag)]
    log = stack.session.directory / "recorder.log"
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def judge_floods(outcomes: Sequence[dict[str, Any]]) -> list[MeasuredFault]:
    """The longest gaps, of each sort."""
    found = [MeasuredFault("longest time without a command", max(o["gap_s"] for o in outcomes), GAP, "s")]
    for sort in dict.fromkeys(o["case"][0] for o in outcomes):
        own = [o for o in outcomes if o["case"][0] == sort]
        found.append(MeasuredFault(f"  {sort}: without a command", max(o["gap_s"] for o in own), None, "s"))
    found += [
        MeasuredFault("  before the first flood", max(o["calm_gap_s"] for o in outcomes), None, "s"),
        MeasuredFault("longest stall of the observer", max(o["slept_s"] for o in outcomes), None, "s"),
    ]
    sent = [o["sent"] for o in outcomes if o["sent"]]
    if sent:
        found.append(MeasuredFault("messages of a flood", float(np.mean([s["rate"] for s in sent])), None, "1/s"))
        found.append(MeasuredFault("largest message", max(s["largest"] for s in sent) / 1e6, None, "MB"))
        found.append(MeasuredFault("total size", float(np.mean([s["bytes_per_s"] for s in sent])) / 1e6, None, "MB/s"))
    return found


FLOODS_ROW = FaultRow(
    "floods",
    "markers with ever new names, up to 1 MB per message, 100 per second for 20 s; recorder and viewer killed: "
    "commands continue",
    flood_cases,
    start_floods,
    judge_floods,
)


# -------- The process that floods

RATE = 100.0  # [Hz]
MARKERS = (30, 300, 1500, 3470)  # in a message; the most are 1 MB
NAME = b"@" * 60  # where a name goes


def templates() -> list[tuple[np.ndarray, np.ndarray]]:
    """Messages as bytes, each with the places (m, k) of the bytes of its names."""
    from rclpy.serialization import serialize_message
    from visualization_msgs.msg import Marker, MarkerArray

    found = []
    for count in MARKERS:
        array = MarkerArray(markers=[Marker(ns=NAME.decode()) for _ in range(count)])
        for marker in array.markers:
            marker.header.frame_id = "world"
            marker.pose.orientation.w = 1.0
        raw = serialize_message(array)
        starts, at = [], raw.find(NAME)
        while at >= 0:
            starts.append(at)
            at = raw.find(NAME, at + len(NAME))
        found.append((np.frombuffer(raw, np.uint8), np.array(starts)[:, None] + np.arange(len(NAME))))
    return found


def main() -> None:
    """Flood when asked for, until the input ends."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions
    from visualization_msgs.msg import MarkerArray

    from humanoid_control.nodes.base.messages import STREAM_OUT

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C of the terminal: the end of the input ends it
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node, shapes = rclpy.create_node("flood"), templates()
    print(READY, flush=True)
    for line in sys.stdin:
        seconds, seed = line.split()
        rng, publisher = np.random.default_rng(int(seed)), node.create_publisher(MarkerArray, "targets", STREAM_OUT)
        begin = due = time.monotonic()
        sizes: list[int] = []
        while time.monotonic() < begin + float(seconds):
            raw, names = shapes[rng.integers(len(shapes))]
            message = raw.copy()
            message[names] = rng.integers(97, 123, names.shape, dtype=np.uint8)
            publisher.publish(message.tobytes())
            sizes.append(len(raw))
            due = max(due + 1.0 / RATE, time.monotonic() - 1.0)
            time.sleep(max(0.0, due - time.monotonic()))
        took = time.monotonic() - begin
        node.destroy_publisher(publisher)
        said = {"rate": len(sizes) / took, "largest": max(sizes), "bytes_per_s": sum(sizes) / took}
        print(json.dumps(said), flush=True)
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
