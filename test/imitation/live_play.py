"""Feeding clips to live targets frame by frame, and what to compare the outcome with."""

from __future__ import annotations

from functools import cache

import numpy as np

from humanoid_control.mocap import find_body_points, synthetic_dance
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.retargeting import POINTS
from humanoid_control.retargeting.live import LiveSettings, LiveTargets
from humanoid_control.retargeting.scaling import Scaler
from humanoid_control.robots import load_robot

ROBOT = load_robot("hrp2", "fixed")
DANCE = synthetic_dance(duration=24, rate=50).crop(0, 14)
QUICK = {"calibration": 1.0, "lead_in": 0.2}


def play(clip, change=None, labels=None, live=None, frames=None, **options):
    """Feed a clip frame by frame; the object, and the targets (T, 7, 3), NaN where there were none."""
    live = live or LiveTargets(ROBOT, LiveSettings(**{**QUICK, **options}))
    out = np.full((clip.n_frames, len(POINTS), 3), np.nan)
    for k in frames if frames is not None else range(clip.n_frames):
        positions = np.array(clip.positions[k])
        if change is not None:
            positions = change(k, positions)
        now = k / clip.rate
        if positions is None:
            for tick in range(2):
                live.hold(now + tick * 0.5 / clip.rate)
            targets = live.targets
        else:
            targets = live.frame(labels or clip.labels, positions, now)
        if targets is not None:
            out[k] = targets
    return live, out


@cache
def clear():
    """The targets (T, 7, 3) of the dance with every marker seen, played once for all tests."""
    out = play(DANCE)[1]
    out.flags.writeable = False
    return out


def offline(clip, seconds=None, upright=True):
    """The clip's targets; calibrated over its first seconds, as live markers are, or over the whole."""
    body = find_body_points(clip)
    n = body.n_frames if seconds is None else round(seconds * clip.rate) + 1
    first = BodyPoints(body.name, body.rate, body.names, body.positions[:n].copy(), body.missing.copy())
    return Scaler(first, ROBOT, upright).targets(body).positions


def speed(targets, rate):
    """(T - 1,) of the fastest target [m/s]."""
    return np.linalg.norm(np.diff(targets, axis=0), axis=2).max(axis=1) * rate


def error(a, b):
    """(T,) of the worst target [m]."""
    return np.linalg.norm(a - b, axis=2).max(axis=1)


def hide(labels, first, last, clip=DANCE):
    columns = [clip.index(label) for label in labels]

    def change(k, positions):
        if first <= k < last:
            positions[columns] = np.nan
        return positions

    return change
