"""Clips for libraries of tests: pieces of the built-in dance as TRC files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from humanoid_control.mocap import load_clip

FRAMES = 40


def trc_text(labels, rate: float, positions: np.ndarray) -> str:
    """A TRC file of markers (T, M, 3) [m]."""
    T, M = positions.shape[:2]
    head = [
        "PathFileType\t4\t(X/Y/Z)\tclip.trc",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{rate:g}\t{rate:g}\t{T}\t{M}\tmm\t{rate:g}\t1\t{T}",
        "Frame#\tTime\t" + "\t\t\t".join(labels),
        "\t\t" + "\t".join(f"X{k}\tY{k}\tZ{k}" for k in range(1, M + 1)),
        "",
    ]
    rows = [
        f"{t + 1}\t{t / rate:.5f}\t" + "\t".join(f"{1000 * v:.2f}" for v in x.ravel()) for t, x in enumerate(positions)
    ]
    return "\n".join([*head, *rows]) + "\n"


def write_library(folder: Path, clips: int, frames: int = FRAMES) -> Path:
    """Different clips in two sub-folders."""
    dance = load_clip("dance")
    for k in range(clips):
        first = 60 * k % (len(dance.positions) - frames)
        path = folder / ("a", "b")[k % 2] / f"clip_{k:03d}.trc"
        path.parent.mkdir(parents=True, exist_ok=True)
        scale = 1.0 - 0.002 * k
        path.write_text(trc_text(dance.labels, dance.rate, scale * dance.positions[first : first + frames]))
    return folder
