"""A tick of whole-body inverse kinematics: the solvers of this package and of pink and mink, in one run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from humanoid_control.benchmarks.ik_cases import MARGIN, Motion, SolverCase, package_cases
from humanoid_control.benchmarks.peers import mink_cases, pink_cases
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.terminal import compile_first, warn

COLUMNS = ["name", "unit", "median", "best", "p99", "n"]
ROUNDS = 5
TICKS = 400  # of each round
CHUNK = 20  # ticks after which the next solver has its turn
RATIOS = (
    ("ours_to_pink_all_pairs", "pink_all_pairs", "tick_qp_peers"),
    ("ours_to_mink_all_pairs", "mink_all_pairs", "tick_qp_peers"),
    ("ours_to_pink_no_collision", "pink_no_collision", "tick_no_collision"),
    ("ours_to_mink_no_collision", "mink_no_collision", "tick_no_collision"),
)


def measure(robot: str = "lola", quiet: bool = True) -> list[dict[str, Any]]:
    """A row for each solver (us a tick) and the ratios to the peers.

    All get the same postures, from each of which they take one step towards the next. They take turns, so that
    other work on the machine hits all alike.
    """
    model = load_robot(robot, "floating")
    compile_first()
    motion = Motion(model, TICKS)
    cases = package_cases(model, motion)
    for name, make in (("pink", pink_cases), ("mink", mink_cases)):
        try:
            cases += make(model, motion)
        except ImportError:
            warn(f"{name} is not installed: its rows are left out (pip install 'humanoid_control[bench]')")
    for case in cases:  # whatever is made at the first calls
        case.begin()
        _ticks(case, motion, range(min(CHUNK, TICKS)))
        case.failed = 0
    times = {case.name: np.empty((ROUNDS, TICKS)) for case in cases}
    for k in range(ROUNDS):
        for case in cases:
            case.begin()
        for first in range(0, TICKS, CHUNK):
            part = range(first, min(first + CHUNK, TICKS))
            for case in cases:
                times[case.name][k, part.start : part.stop] = _ticks(case, motion, part)
    rows = [_row(case, times[case.name], motion) for case in cases]
    median = {r["name"]: r["median"] for r in rows}
    for name, peer, own in RATIOS:
        if peer in median:
            shares = [np.median(b) / np.median(a) for a, b in zip(times[own], times[peer], strict=True)]
            best = round(float(max(shares)), 2)
            worst = round(float(min(shares)), 2)
            middle = round(median[peer] / median[own], 2)
            rows.append({"name": name, "unit": "ratio", "median": middle, "best": best, "p99": worst, "n": ROUNDS})
    return rows


def _ticks(case: SolverCase, motion: Motion, ticks: range) -> list[float]:
    """Times of some ticks of the motion [s]; targets are set outside of them."""
    out = []
    for k in ticks:
        case.aim(k)
        start = time.perf_counter()
        ok = case.tick(motion.q[k])
        out.append(time.perf_counter() - start)
        case.failed += not ok
    return out


def _row(case: SolverCase, rounds: np.ndarray, motion: Motion) -> dict[str, Any]:
    us = 1e6 * rounds
    row = {
        "name": case.name,
        "unit": "us",
        "median": round(float(np.median(us)), 1),
        "best": round(float(np.median(us, axis=1).min()), 1),
        "p99": round(float(np.percentile(us, 99)), 1),
        "n": int(us.size),
        "rows": case.rows,
        "failed": case.failed,
    }
    if case.pairs:
        inside = float(np.mean(motion.closest < MARGIN))
        row |= {"pairs": case.pairs, "active_pairs": case.active, "inside_margin": round(inside, 3)}
    return row


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines on what is counted."""
    by = {r["name"]: r for r in rows}
    free, qp, few = by["tick_nullspace_free"], by["tick_qp"], by["tick_qp_peers"]
    pairs, active, inside = qp["pairs"], qp["active_pairs"], f"{qp['inside_margin']:.0%}"
    lines = [
        f"One core; median of all ticks, and of the quietest of {ROUNDS} rounds (best); of ratios best and, as p99,",
        f"worst round. {pairs} pairs of shapes are watched while all joints move; {active} of them",
        f"on average are rows of the quadratic program; in {inside} of the ticks one is nearer than its",
        "margin, so that rows hold the robot back.",
        f"tick_nullspace: {by['tick_nullspace']['rows']} task rows, tick_nullspace_free: {free['rows']}, without the",
        "arms'; objectives: joint limits, comfort, all pairs, and angular momentum tracked by the arms.",
        f"tick_qp: {qp['rows']} rows, angular momentum among them. tick_qp_peers, tick_no_collision and the peers: the",
        f"same {few['rows']} rows of soles, chest, centre of mass and posture, and limits of range and speed.",
    ]
    for peer in ("pink", "mink"):
        if f"{peer}_all_pairs" in by:
            p = by[f"{peer}_all_pairs"]
            lines.append(
                f"{peer}: {p['pairs']} pairs, {p['active_pairs']} rows; {p['failed']} of {p['n']} ticks failed."
            )
    return lines
