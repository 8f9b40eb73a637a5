"""Frames a second of retargeting, of the live tick, and of the peers that a user would take instead, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from humanoid_control.benchmarks import Row
from humanoid_control.benchmarks.peers import mink_stepper, pink_stepper
from humanoid_control.benchmarks.rows import row_of
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import (
    JointTrajectory,
    Retargeter,
    RetargetSettings,
    Targets,
    retarget_clip,
    scale_to_robot,
)
from humanoid_control.robots import Robot, load_robot
from humanoid_control.terminal import compile_first, progress, warn

FIVE = ("armar3", "hrp2", "suralp", "wabian2", "we4rii")
ROUNDS = 5
PEER_FRAMES = 200  # of each round

Stepper = Callable[[np.ndarray, float], np.ndarray]


def measure(robot: str = "wabian2", motion: str = "dance", quiet: bool = True) -> list[Row]:
    """Rows: converged_fps, live_tick, five_robots_s, mink_fps, pink_fps, the ratios, and what each achieved."""
    body = load_body_points(motion)
    model = load_robot(robot, "fixed")
    targets = scale_to_robot(body, model)
    compile_first()
    retarget_clip(targets, model, RetargetSettings(iterations=1))
    peers: dict[str, Stepper] = {}
    for name, make in (("mink", mink_stepper), ("pink", pink_stepper)):
        try:
            peers[name] = make(model, Retargeter(model).start(targets.positions[0]))
        except ImportError:
            warn(f"{name} is not installed: its rows are left out (pip install 'humanoid_control[bench]')")
    whole: list[float] = []
    single: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in peers}
    postures: dict[str, list[np.ndarray]] = {name: [] for name in peers}
    one_step = RetargetSettings(iterations=1)
    for k in range(ROUNDS):  # side by side, so that other work on the machine hits all alike
        trajectory = _timed(targets, model, None, whole)
        rough = _timed(targets, model, one_step, single)
        for name, step in peers.items():
            _time_peer(step, targets, k, times[name], postures[name])
    live = _live_ticks(model, targets)
    rows = [
        row_of("converged_fps", "1/s", whole),
        row_of("one_step_fps", "1/s", single),
        row_of("live_tick", "ms", 1e3 * live),
        row_of("five_robots_s", "s", [_five_robots(body, quiet) for _ in range(3)]),
        row_of("converged_error", "cm", 100 * trajectory.errors.mean(axis=1)),
        row_of("one_step_error", "cm", 100 * rough.errors.mean(axis=1)),
        row_of("converged_closest", "mm", [1e3 * float(min(trajectory.clearance.min(), 1.0))]),
    ]
    for name in peers:
        fps = 1.0 / np.array(times[name])
        error, closest = _judged(model, targets, np.array(postures[name]))
        rows += [
            row_of(f"{name}_fps", "1/s", fps),
            row_of(f"converged_to_{name}", "ratio", [float(np.median(whole) / np.median(fps))]),
            row_of(f"one_step_to_{name}", "ratio", [float(np.median(single) / np.median(fps))]),
            row_of(f"{name}_error", "cm", 100 * error),
            row_of(f"{name}_closest", "mm", [1e3 * closest]),
        ]
    return rows


def _timed(targets: Targets, robot: Robot, settings: RetargetSettings | None, fps: list[float]) -> JointTrajectory:
    """Solve the clip; frames a second, with the first posture, appended."""
    start = time.perf_counter()
    trajectory = retarget_clip(targets, robot, settings)
    fps.append(len(targets) / (time.perf_counter() - start))
    return trajectory


def _time_peer(step: Stepper, targets: Targets, part: int, times: list[float], postures: list[np.ndarray]) -> None:
    """The next frames of the clip, one solver step each, so that five rounds go on where the one before ended."""
    first = part * PEER_FRAMES
    for p in targets.positions[first : first + PEER_FRAMES]:
        start = time.perf_counter()
        postures.append(step(p, 1.0 / targets.rate))
        times.append(time.perf_counter() - start)


def _judged(robot: Robot, targets: Targets, joints: np.ndarray) -> tuple[np.ndarray, float]:
    """Mean error of each frame [m] and the least distance between two shapes [m] of a peer's postures (T, n)."""
    judge = Retargeter(robot)
    errors, closest = [], 1.0
    for goal, posture in zip(targets.positions, joints, strict=False):
        judge.start_at(posture)
        errors.append(judge.errors(goal).mean())
        closest = min(closest, judge.clearance)
    return np.array(errors), closest


def _live_ticks(robot: Robot, targets: Targets) -> np.ndarray:
    """Times of single steps as the streamer makes them [s]."""
    solver = Retargeter(robot)
    solver.start(targets.positions[0])
    times = []
    for _ in range(3):
        for p in targets.positions[1:]:
            start = time.perf_counter()
            solver.step(p, 1.0 / targets.rate)
            times.append(time.perf_counter() - start)
    return np.array(times)


def _five_robots(body: Any, quiet: bool) -> float:
    """Time for loading five robots, scaling and solving the clip for each [s]."""
    start = time.perf_counter()
    with progress("five robots", len(FIVE), quiet=quiet) as show:
        for k, name in enumerate(FIVE):
            robot = load_robot(name, "fixed")
            retarget_clip(scale_to_robot(body, robot), robot)
            show(k + 1)
    return time.perf_counter() - start


def notes(rows: list[Row]) -> list[str]:
    """Meaning of the counts."""
    return [
        f"The same clip in one run of one core; peers: one step a frame, {ROUNDS} times {PEER_FRAMES} frames. error:",
        "mean distance of the seven points from their targets; closest: nearest two shapes of all frames.",
    ]
