"""Rates at which whole bodies are solved: recordings of 5 to 1,000 frames a second come in between, and back.

The solver takes a frame at a time. With few frames a foot moves far from one to the next, and is caught late; with very
many, what a step of the solver leaves over counts as speed. Between 50 and 250 Hz neither matters.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from humanoid_control.mocap import BodyPoints
from humanoid_control.retargeting.whole_body import WholeBodyTrajectory

SLOWEST, FASTEST = 50.0, 250.0  # [Hz]


def rate_factors(rate: float) -> tuple[int, int]:
    """How many frames are solved for each of the clip's, and how many of the clip's for each that is solved.

    One of both is 1: a slow clip is interpolated, of a fast one every second or third ... frame is taken.

    Args:
        rate: of the clip [Hz].
    """
    if rate < SLOWEST:
        return math.ceil(SLOWEST / rate - 1e-9), 1
    return 1, max(1, math.ceil(rate / FASTEST - 1e-9))


def at_solving_rate(body: BodyPoints) -> tuple[BodyPoints, int, tuple[str, ...]]:
    """The body with more or fewer frames, where its rate asks for that.

    Args:
        body: at any rate.

    Returns:
        The body; how many of its frames lie between two of the clip's (1: none); and a note where frames are left out.
    """
    more, fewer = rate_factors(body.rate)
    if more > 1 and body.n_frames > 2:
        t = np.arange((body.n_frames - 1) * more + 1) / more
        positions = CubicSpline(np.arange(body.n_frames), body.positions, axis=0)(t)
        return replace(body, rate=body.rate * more, positions=positions, missing=body.missing.copy()), more, ()
    if fewer > 1 and body.n_frames > 2 * fewer:
        rate = body.rate / fewer
        note = f"{rate:g} of {body.rate:g} frames a second are solved and written: more would help nobody"
        positions = body.positions[::fewer].copy()
        return replace(body, rate=rate, positions=positions, missing=body.missing.copy()), 1, (note,)
    return body, 1, ()


def every(trajectory: WholeBodyTrajectory, step: int) -> WholeBodyTrajectory:
    """Each `step`th frame of a trajectory, with velocities from one of them to the next."""
    if step == 1:
        return trajectory
    frames = len(trajectory.positions)
    thinned: dict[str, Any] = {
        f.name: value[::step]
        for f in fields(trajectory)
        if isinstance(value := getattr(trajectory, f.name), np.ndarray) and len(value) == frames
    }
    rate = trajectory.rate / step
    velocities = np.zeros_like(thinned["positions"])
    velocities[:-1] = np.diff(thinned["positions"], axis=0) * rate
    return replace(trajectory, **{**thinned, "rate": rate, "velocities": velocities})
