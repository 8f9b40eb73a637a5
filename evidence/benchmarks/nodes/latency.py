"""Latency from a marker of another process to the command in a third one, part by part, and a histogram of the ticks.

`whole_body_ik` runs alone at 500 Hz, so that parts can be told apart; `humanoid bench loop` measures it among the other
nodes. A long measurement is made in segments, which `keep` stores: an interrupted one goes on behind the last of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evidence.benchmarks import Row
from evidence.benchmarks.nodes.histogram import LogHistogram, draw
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_folder, whole_file
from humanoid_control.in_child import die_with
from humanoid_control.nodes import require_ros
from humanoid_control.nodes.base.ros_env import BY_PROFILE, DISCOVERY, PROFILES, TRANSPORTS, choose_discovery
from humanoid_control.paths import share_dir
from humanoid_control.robots.loadable import check_robot
from humanoid_control.session import StackFailure
from humanoid_control.terminal import progress

COLUMNS = ["name", "unit", "median", "p99", "p99.9", "p99.99", "max", "n"]
MODULE = "evidence.benchmarks.nodes.latency_processes"
RATE = 500.0  # [Hz]
SEGMENT = 100_000  # ticks of a segment: 200 s
FEWEST, MOST = 500, 100_000_000  # cycles
MOST_LOAD = 64
START, STOP = 240.0, 20.0  # [s] for a process to be ready, kernels included, and to end
UDP, MEMORY = "udp", "shm"
TRANSPORT_CHOICES = (UDP, MEMORY)
TOTAL, TICKS = "marker to command in another process", ("lateness of a tick", "due tick to its end")
NODE, LISTENER = range(2)
NODE_COLUMNS = (
    "stamp", "source", "received", "entered", "handled", "begun", "publishing", "published", "command",
)  # fmt: skip
LISTENER_COLUMNS = ("command", "source", "received", "entered")
# Part: (time at its beginning, time at its end); times of the node, or of the listener.
PARTS: dict[str, tuple[tuple[int, str], tuple[int, str]]] = {
    "write the markers (Python, rclpy)": ((NODE, "stamp"), (NODE, "source")),
    "transport of the markers": ((NODE, "source"), (NODE, "received")),
    "wake up and take the markers": ((NODE, "received"), (NODE, "entered")),
    "read the markers": ((NODE, "entered"), (NODE, "handled")),
    "wait for the tick": ((NODE, "handled"), (NODE, "begun")),
    "tick": ((NODE, "begun"), (NODE, "publishing")),
    "write the command (Python, rclpy)": ((NODE, "publishing"), (LISTENER, "source")),
    "transport of the command": ((LISTENER, "source"), (LISTENER, "received")),
    "wake up and take the command": ((LISTENER, "received"), (LISTENER, "entered")),
    "publish() of the command": ((NODE, "publishing"), (NODE, "published")),
    TOTAL: ((NODE, "stamp"), (LISTENER, "entered")),
}
BUSY = "import numpy as np\na = np.ones(1 << 20)\nb = a.copy()\nwhile True: np.add(a, b, out=b); b *= 0.5"


def measure(
    robot: str = "lola", cycles: int = 15000, load: int = 0, transport: str = UDP, keep: str = "", quiet: bool = True
) -> list[Row]:
    """Rows in us: each part, the whole way, and lateness and end of the ticks.

    Args:
        cycles: ticks at 500 Hz. load: busy processes next to the nodes. transport: 'udp' or 'shm'.
        keep: folder of the segments; empty: none is kept.
    """
    require_ros()
    if not FEWEST <= cycles <= MOST:
        raise ConfigError(f"cycles must be between {FEWEST} and {MOST}, got {cycles}")
    if not 0 <= load <= MOST_LOAD:
        raise ConfigError(f"load must be between 0 and {MOST_LOAD}, got {load}")
    if transport not in TRANSPORT_CHOICES:
        raise UnknownNameError("transport", transport, TRANSPORT_CHOICES)
    check_robot(robot)
    folder = Path(keep) if keep else None
    check_folder(folder, "folder of segments")
    setting = {"robot": robot, "load": load, "transport": transport}
    segments = kept_segments(folder, setting)
    done = sum(s["cycles"] for s in segments)
    with progress("measuring", cycles, quiet) as show:
        while done < cycles:
            wanted = min(SEGMENT, max(FEWEST, cycles - done))
            segments.append(setting | run_segment(robot, wanted, load, transport))
            done += wanted
            if folder is not None:
                store_segment(folder, len(segments), segments[-1])
            show(min(done, cycles), f"{done:,} cycles")
    return rows_of(segments, folder)


def kept_segments(folder: Path | None, setting: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the stored segments.

    Raises:
        ConfigError: they were measured with other settings, or cannot be read.
    """
    out = []
    for path in sorted(folder.glob("segment_*.json")) if folder is not None and folder.is_dir() else []:
        try:
            out.append(json.loads(path.read_text(encoding="utf-8")))
            other = [f"{k} {out[-1][k]}" for k, v in setting.items() if out[-1][k] != v]
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{path}: not a segment of this bench: remove it") from None
        if other:
            raise ConfigError(f"{path}: measured with {', '.join(other)}: name another folder for these settings")
    return out


def store_segment(folder: Path, number: int, segment: Mapping[str, Any]) -> None:
    """Store a segment as a file that is whole or not there."""
    folder.mkdir(exist_ok=True)
    with whole_file(folder / f"segment_{number:05d}.json") as part:
        part.write_text(json.dumps(segment), encoding="utf-8")


def rows_of(segments: list[dict[str, Any]], folder: Path | None = None) -> list[Row]:
    """Add the segments up; with a folder, draw `histogram.png` there, if matplotlib is installed."""
    total = {name: LogHistogram() for name in (*PARTS, *TICKS)}
    for segment in segments:
        for name, d in segment["histograms"].items():
            total[name].merge(LogHistogram.from_json(d))
    if folder is not None:
        draw({name: total[name] for name in (TOTAL, *TICKS)}, folder / "histogram.png")
    counts = {key: sum(s[key] for s in segments) for key in ("cycles", "missed", "targets", "unanswered")}
    more = counts | {key: segments[-1][key] for key in ("load", "transport", "scheduling")}
    return [h.row(name) | (more if name == TOTAL else {}) for name, h in total.items()]


def notes(rows: list[Row]) -> list[str]:
    """Return the notes below the table."""
    whole = next(r for r in rows if r["name"] == TOTAL)
    return [
        f"{whole['cycles']:,} ticks of whole_body_ik at {RATE:.0f} Hz, {whole['missed']} missed, next to "
        f"{whole['load']} busy processes; transport {whole['transport']}; scheduling {whole['scheduling']}.",
        f"{whole['targets']:,} messages of targets, {whole['unanswered']} without a command that was heard.",
        "The parts up to the command's way follow each other; publish() of the command overlaps with its way. "
        "A percentile needs ten times beyond it: p99.99 of the way needs 100,000 targets (1,000,000 cycles).",
        "The node runs alone: no simulator, no viewer; targets come at 50 Hz, at any moment between two ticks.",
    ]


def joined(node: np.ndarray, listener: np.ndarray) -> dict[str, np.ndarray]:
    """Times of each part [us] where both sides are known.

    Args:
        node: (n, 9) [ns], see NODE_COLUMNS. listener: (m, 4) [ns], see LISTENER_COLUMNS.
    """
    order = {int(stamp): k for k, stamp in enumerate(listener[:, 0])}
    pairs = [(i, order[c]) for i, c in enumerate(node[:, NODE_COLUMNS.index("command")].tolist()) if c in order]
    rows = np.array(pairs, dtype=int).reshape(-1, 2)
    tables = (node[rows[:, 0]], listener[rows[:, 1]])
    columns = (NODE_COLUMNS, LISTENER_COLUMNS)
    out = {}
    for name, ((of, first), (to, last)) in PARTS.items():
        begin, end = tables[of][:, columns[of].index(first)], tables[to][:, columns[to].index(last)]
        known = (begin > 0) & (end > 0)  # a middleware may not say when a message came in
        out[name] = 1e-3 * (end - begin)[known]
    return out


def run_segment(robot: str, cycles: int, load: int, transport: str) -> dict[str, Any]:
    """Run the three processes until the node has counted its cycles.

    Raises:
        StackFailure: a process ends early, or does not answer.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        environment = environment_of(transport, folder) | {"HUMANOID_LATENCY_CYCLES": str(cycles)}
        with contextlib.ExitStack() as running:
            for _ in range(load):
                running.enter_context(_process([sys.executable, "-c", BUSY], environment))
            options = {"robot": robot, "rate": RATE, "start_blind": "true", "following_error": 0.0}
            words = [w for k, v in options.items() for w in ("-p", f"{k}:={v}")]
            node = running.enter_context(_ours("node", ["--ros-args", *words], environment, folder))
            _wait_for(node, "READY", START)
            running.enter_context(_ours("hear", [], environment, folder))
            running.enter_context(_ours("send", [robot], environment, folder))
            _wait_for(node, "DONE", START + 2 * cycles / RATE)
        return _segment(folder, cycles)


def _segment(folder: Path, cycles: int) -> dict[str, Any]:
    try:
        node, hear = (np.load(folder / f"{name}.npz") for name in ("node", "hear"))
    except OSError:
        raise StackFailure("a process of the bench ended without its times") from None
    parts = joined(node["rows"], hear["rows"])
    histograms = {name: LogHistogram() for name in (*parts, *TICKS)}
    for name, times in parts.items():
        histograms[name].add_all(times)
    for name, counts, largest in zip(TICKS, node["ticks"], node["largest"].tolist(), strict=True):
        histograms[name].counts, histograms[name].largest = counts, float(largest)
    answered = len(parts[TOTAL])
    return {
        "cycles": cycles,
        "missed": int(node["skipped"]),
        "targets": len(node["rows"]),
        "unanswered": len(node["rows"]) - answered,
        "scheduling": str(hear["scheduling"]),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "histograms": {name: h.to_json() for name, h in histograms.items()},
    }


def environment_of(transport: str, folder: Path) -> dict[str, str]:
    """Return the environment of the processes; shared memory has a profile of its own in `folder`."""
    environment = {k: v for k, v in os.environ.items() if k not in (*PROFILES, TRANSPORTS, DISCOVERY)}
    if transport == UDP:
        choose_discovery(environment, supervised=True)
        return environment
    path = folder / "shared_memory.xml"
    path.write_text(with_shared_memory((share_dir() / "config" / "supervised.xml").read_text()))
    return environment | {PROFILES[0]: str(path), DISCOVERY: BY_PROFILE}


def with_shared_memory(profile: str) -> str:
    """Return a profile of Fast DDS with shared memory next to its UDP loopback, which then carries discovery alone."""
    descriptor = "<transport_descriptor><transport_id>memory</transport_id><type>SHM</type></transport_descriptor>"
    return profile.replace("<transport_descriptors>", f"<transport_descriptors>{descriptor}", 1).replace(
        "<userTransports>", "<userTransports><transport_id>memory</transport_id>", 1
    )


@contextlib.contextmanager
def _process(command: list[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is asked to end, and killed if it does not."""
    with subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        preexec_fn=die_with(os.getpid(), signal.SIGTERM),  # a killed bench leaves no busy loop behind
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=STOP)
            except subprocess.TimeoutExpired:
                process.kill()


def _ours(
    name: str, words: list[str], environment: Mapping[str, str], folder: Path
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    command = [sys.executable, "-u", "-m", MODULE, name, *words]
    return _process(command, {**environment, "HUMANOID_LATENCY_FILE": str(folder / f"{name}.npz")})


def _wait_for(process: subprocess.Popen[str], word: str, seconds: float) -> None:
    """Read lines until one begins with a word.

    Raises:
        StackFailure: the process ends first, or is silent for so long.
    """
    assert process.stdout is not None
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        there, _, _ = select.select([process.stdout], [], [], left)
        line = process.stdout.readline() if there else ""
        if there and not line:
            raise StackFailure(f"the node of the bench ended before it said {word}: see the lines above")
        if line.startswith(word):
            return
    raise StackFailure(f"the node of the bench did not say {word} within {seconds:.0f} s")
