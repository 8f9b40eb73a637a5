"""A person of points who walks on known footholds at known times, or runs; nobody was recorded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from humanoid_control.mocap import BodyPoints

RATE, STEP, SWING, STRIDE = 100.0, 0.7, 0.5, 0.5  # [Hz], [s] a step, [s] of it in the air, [m] a stride
THIGH = SHANK = 0.42
ANKLE, TOE, HEEL = np.array([0.0, 0.0, 0.08]), np.array([0.15, 0.0, 0.02]), np.array([-0.06, 0.0, 0.03])
UPPER = {"sternum": (0, 0, 0.45), "head": (0, 0, 0.7)}
ARM = {"shoulder": (0.0, 0.18, 0.42), "elbow": (0.0, 0.22, 0.12), "wrist": (0.12, 0.22, -0.1)}


def walking_person(steps: int = 5, lift: float = 0.12) -> tuple[BodyPoints, np.ndarray]:
    """The walk, and (T, 2) True where the left and the right foot stand flat and still.

    The person stands for a step first and last; then left and right swing in turn.
    """
    T = round((steps + 2) * STEP * RATE)
    t = np.arange(T) / RATE
    foot, still = np.zeros((2, T, 3)), np.ones((T, 2), dtype=bool)
    foot[0, :, 1], foot[1, :, 1] = 0.1, -0.1
    for k in range(steps):
        f, begin = k % 2, (k + 1) * STEP
        s = np.clip((t - begin) / SWING, 0, 1)
        length = STRIDE / 2 if k in (0, steps - 1) else STRIDE
        foot[f, :, 0] += length * (10 * s**3 - 15 * s**4 + 6 * s**5)
        foot[f, :, 2] += lift * np.sin(np.pi * s) ** 2
        still[(s > 0) & (s < 1), f] = False
    hip = 0.5 * (foot[0] + foot[1])
    smooth = np.ones(31) / 31
    for i in (0, 1):
        hip[:, i] = np.convolve(np.pad(hip[:, i], 15, "edge"), smooth, "valid")
    hip[:, 2] = 0.86
    return _person("walk", foot, hip), still


def running_person(seconds: float = 2.0, drop: float = 0.0) -> BodyPoints:
    """The person at 3 m/s, a stride of 0.6 s: no point of a foot is ever slower than 0.6 m/s.

    Args:
        seconds: for which it runs.
        drop: by which the whole recording lies below z = 0 [m].
    """
    t = np.arange(round(seconds * RATE)) / RATE
    hip, foot = np.zeros((len(t), 3)), np.zeros((2, len(t), 3))
    hip[:, 0], hip[:, 2] = 3.0 * t, 0.84 - drop
    for f in (0, 1):
        phase = 2 * np.pi * (t / 0.6 + 0.5 * f)
        foot[f, :, 0] = hip[:, 0] + 2.4 * 0.6 / (2 * np.pi) * np.sin(phase)
        foot[f, :, 1] = 0.1 if f == 0 else -0.1
        foot[f, :, 2] = 0.1 * (1 + np.cos(phase)) - drop
    return _person("run", foot, hip)


def crossing_person(rate: float = RATE) -> BodyPoints:
    """Return a person who walks with its feet crossed, faster with a higher rate: no robot's thighs can."""
    body = walking_person()[0]
    positions = body.positions.copy()
    for k, name in enumerate(body.names):
        inward = {"knee": 0.06, "ankle": 0.12, "toe": 0.12, "heel": 0.12}.get(name[2:], 0.0)
        positions[:, k, 1] -= inward if name.startswith("l_") else -inward
    return replace(body, positions=positions, rate=rate)


def _person(name: str, foot: np.ndarray, hip: np.ndarray) -> BodyPoints:
    """Return the points of a person with the middle of its soles (2, T, 3) and of its hips (T, 3) at these places."""
    at = {name: hip + np.array(p, float) for name, p in UPPER.items()}
    for f, side in enumerate("lr"):
        mirror = np.array([1.0, 1.0 if f == 0 else -1.0, 1.0])
        at |= {f"{side}_{name}": hip + np.array(p) * mirror for name, p in ARM.items()}
        at |= {f"{side}_{n}": foot[f] + p for n, p in (("ankle", ANKLE), ("toe", TOE), ("heel", HEEL))}
        h = at[f"{side}_hip"] = hip + [0.0, 0.09 * mirror[1], 0.0]
        leg = at[f"{side}_ankle"] - h
        d = np.linalg.norm(leg, axis=1, keepdims=True)
        forward = np.cross(np.cross(leg, [1.0, 0.0, 0.0]), leg)
        forward /= np.linalg.norm(forward, axis=1, keepdims=True)
        at[f"{side}_knee"] = h + 0.5 * leg + np.sqrt(np.maximum(THIGH**2 - (d / 2) ** 2, 0)) * forward
    names = tuple(at)
    return BodyPoints(name, RATE, names, np.stack([at[n] for n in names], axis=1), np.zeros(len(names)))
