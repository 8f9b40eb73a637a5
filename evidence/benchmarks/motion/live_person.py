"""Node human_motion at 240 Hz: a recorded walk with two force plates, played to and fro as live markers.

The camera is this process, the node another one, alone in a ROS domain of their own on this machine.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from evidence.benchmarks import Row, row
from evidence.benchmarks.motion.person import recording
from evidence.benchmarks.nodes.one_node import processor_time, running_node
from evidence.benchmarks.nodes.stack import check_seconds
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.mocap import load_clip
from humanoid_control.terminal import progress

RATE = 240.0  # [Hz]
DOMAIN = 71
SETTLE = 5.0  # [s]
NODE = "human_motion"
TO_Z_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
TITLE = "bench human_node, a walk with two plates"


def measure(seconds: float = 20.0, quiet: bool = True) -> list[Row]:
    """Rows: age of joint states at their publication, latency from the stamp of the markers, frames missed, share of a
    core, fit.

    Raises:
        EnvironmentProblem: ROS 2 or the recording is missing, the node does not start. ConfigError: too short.
    """
    check_seconds(seconds)
    files = recording("walk")
    os.environ.update(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST", ROS_DOMAIN_ID=str(DOMAIN))
    from evidence.benchmarks.motion.marker_camera import MarkerCamera

    loads = read_loads(files.trc.parent / "grf_walk.xml")
    clip, wrenches = load_clip(files.trc), [w.zeroed() for w in loads]
    times = np.arange(clip.timestamps[0], clip.timestamps[-1], 1 / RATE)
    at = np.stack([np.interp(times, clip.timestamps, x) for x in clip.positions.reshape(clip.n_frames, -1).T], axis=1)
    positions = at.reshape(len(times), -1, 3) @ TO_Z_UP.T
    forces = [w.rotated(TO_Z_UP).resampled(times) for w in wrenches]
    given = (f"model:={files.model}", f"setup:={files.setup}", f"plates:={len(forces)}")
    with (
        running_node(NODE, given) as pid,
        MarkerCamera(clip.labels, len(forces)) as camera,
        progress("measuring", seconds, quiet) as show,
    ):
        camera.play(positions, forces, RATE, SETTLE)
        before, busy = camera.told(), processor_time(pid)
        begin, sent, heard = time.monotonic(), camera.sent, camera.heard
        camera.play(positions, forces, RATE, seconds, show)
        share = (processor_time(pid) - busy) / (time.monotonic() - begin)
        camera.wait(0.2)
        sent, heard = camera.sent - sent, camera.heard - heard
        after = camera.told()
    return _rows(before, after, share, (sent, heard))


def _rows(before: dict[str, Any], after: dict[str, Any], share: float, frames: tuple[int, int]) -> list[Row]:
    """Rows of the node's diagnostics (its percentiles: of the last 1000 frames) and of frames sent and answered."""
    n, heard = frames
    age, latency = ([float(after[f"{k}_{p}_ms"]) for p in ("p50", "p99")] for k in ("age", "latency"))
    missed, busy = max(0.0, 100 * (1 - heard / max(n, 1))), 100 * share
    steps = float(after["iterations"])
    known = 0 if after["moments"] != "known" else 1
    return [
        row("age", "ms", age[0], age[1], n),
        row("latency", "ms", latency[0], latency[1], n),
        row("frames_missed", "%", missed, missed, n),
        row("processor", "% of a core", busy, busy, n),
        row("iterations", "", steps, steps, n),
        row("residual", "mm", float(after["residual_mm"]), float(before["residual_mm"]), n, moments_known=known),
    ]


def notes(rows: list[Row]) -> list[str]:
    """Lines on what is counted."""
    return [
        f"{NODE} at {RATE:.0f} Hz with 41 markers, 29 free coordinates and two plates, on shared cores.",
        "age: from the arrival of a frame to the publication of its joint states; latency: from its stamp.",
        "frames_missed: sent frames without joint states. processor: user and system time of its process.",
    ]
