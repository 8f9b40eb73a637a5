"""A tick of whole-body inverse kinematics: the solvers of this package and of PlaCo, mink and pink, in one run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from evidence.benchmarks.ik_cases import (
    CHAIN,
    MARGIN,
    CaseMotion,
    SolverCase,
    chain_robot,
    far_chain_program,
    package_cases,
    saturated_program,
)
from evidence.benchmarks.peers import mink_cases, pink_cases
from evidence.benchmarks.placo_peer import tick_cases
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.terminal import warn
from humanoid_control.warm_up import INVERSE_KINEMATICS, RETARGETING, compile_first

COLUMNS = ["name", "unit", "median", "best", "p99", "p99_warm", "cold", "n"]
ROUNDS = 5
TICKS = 400  # of each round
CHUNK = 20  # ticks after which the next solver has its turn
SLOW, FEW_ROUNDS = ("pink_all_pairs",), 1  # half a minute for what four more rounds would not change
SATURATED = ("lola", "hrp2", "wabian2")
PEERS = {"placo": tick_cases, "mink": mink_cases, "pink": pink_cases}
OWN = {"all_pairs": "tick_qp_peers", "nearest_10": "tick_qp_peers", "no_collision": "tick_no_collision"}


def measure(robot: str = "lola", quiet: bool = True) -> list[dict[str, Any]]:
    """A row for each solver (us a tick), and for each peer how many times this package's tick it takes.

    All get the same postures, from each of which they take one step towards the next. They take turns, so that
    other work on the machine hits all alike.
    """
    model = load_robot(robot, "floating")
    compile_first(RETARGETING, INVERSE_KINEMATICS)
    motion = CaseMotion(model, TICKS)
    cases = package_cases(model, motion)
    for name, make in PEERS.items():
        try:
            cases += make(model, motion)
        except ImportError as e:
            warn(f"{name}'s rows are omitted: {e} (`make bench` installs it)")
    for name in dict.fromkeys((robot, *SATURATED)):
        own = model if name == robot else load_robot(name, "floating")
        cases.append(saturated_program(f"tick_qp_saturated_{name}", own))
    cases.append(far_chain_program(f"tick_{CHAIN}_joints_far", chain_robot(CHAIN)))
    for case in cases:  # whatever is made at the first calls
        case.begin()
        _ticks(case, motion, range(min(CHUNK, TICKS)))
        case.failed, case.constraints = 0, 0.0
    times: dict[str, list[np.ndarray]] = {case.name: [] for case in cases}
    for k in range(ROUNDS):
        playing = [case for case in cases if k < FEW_ROUNDS or case.name not in SLOW]
        for case in playing:
            case.begin()
            times[case.name].append(np.empty(TICKS))
        for first in range(0, TICKS, CHUNK):
            part = range(first, min(first + CHUNK, TICKS))
            for case in playing:
                times[case.name][k][part.start : part.stop] = _ticks(case, motion, part)
    rows = [_row(case, np.array(times[case.name]), motion) for case in cases]
    return rows + _ratios(rows, times)


def _ratios(rows: list[dict[str, Any]], times: dict[str, list[np.ndarray]]) -> list[dict[str, Any]]:
    """Time of each peer by that of the same job here, above 1 where the peer is slower; best and worst round."""
    median, out = {r["name"]: r["median"] for r in rows}, []
    for name in median:
        peer, _, kind = name.partition("_")
        if peer in PEERS and kind in OWN:
            shares = [np.median(b) / np.median(a) for a, b in zip(times[OWN[kind]], times[name], strict=False)]
            best, worst = (round(float(x), 2) for x in (max(shares), min(shares)))
            middle = round(median[name] / median[OWN[kind]], 2)
            row = {"name": f"{name}_to_ours", "unit": "ratio", "median": middle, "best": best, "p99": worst}
            out.append(row | {"n": len(shares)})
    return out


def _ticks(case: SolverCase, motion: CaseMotion, ticks: range) -> list[float]:
    """Times of some ticks of the motion [s]; targets are set outside of them."""
    if case.remote is not None:
        return case.remote(ticks)
    out = []
    for k in ticks:
        case.aim(k)
        start = time.perf_counter()
        ok = case.tick(motion.q[k])
        out.append(time.perf_counter() - start)
        case.failed += not ok
        case.constraints += case.used()
    return out


def _row(case: SolverCase, rounds: np.ndarray, motion: CaseMotion) -> dict[str, Any]:
    us = 1e6 * rounds
    cold = np.arange(us.shape[1]) % CHUNK == 0  # after the turns of all others, whose data are in the caches
    row = {
        "name": case.name,
        "unit": "us",
        "median": round(float(np.median(us)), 1),
        "best": round(float(np.median(us, axis=1).min()), 1),
        "p99": round(float(np.percentile(us, 99)), 1),
        "p99_warm": round(float(np.percentile(us[:, ~cold], 99)), 1),
        "cold": round(float(np.median(us[:, cold])), 1),
        "n": int(us.size),
        "rows": case.rows,
        "failed": case.failed,
    }
    if case.pairs:
        inside = float(np.mean(motion.closest < MARGIN))
        row |= {"pairs": case.pairs, "active_pairs": round(case.constraints / us.size, 1)}
        row |= {"near_pairs": round(float(np.mean(motion.near)), 1), "inside_margin": round(inside, 3)}
    return row


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines on what is counted."""
    by = {r["name"]: r for r in rows}
    free, qp, few = by["tick_nullspace_free"], by["tick_qp"], by["tick_qp_peers"]
    pairs, inside = qp["pairs"], f"{qp['inside_margin']:.0%}"
    lines = [
        f"One core; median of all ticks, and of the fastest of {ROUNDS} rounds (best); ratios: best round and, as "
        f"p99, worst round.",
        f"Solvers take turns of {CHUNK} ticks. cold: median of the first ticks of a turn, with cold caches; "
        f"p99_warm: all other ticks; p99: all ticks, one in twenty of which is a first one.",
        f"{pairs} pairs of shapes are monitored while all joints move; {qp['near_pairs']} of them are near "
        f"on average, and {qp['active_pairs']} are rows of the quadratic program (tick_qp_peers: "
        f"{few['active_pairs']}); in {inside} of the ticks a pair is closer than its margin, and rows constrain the "
        f"robot.",
        f"tick_nullspace: {by['tick_nullspace']['rows']} task rows, tick_nullspace_free: {free['rows']}, without the "
        "arms'; objectives: joint limits, comfort, all pairs, and angular momentum tracked by the arms.",
        f"tick_qp: {qp['rows']} rows, angular momentum among them.",
        "tick_qp_peers, tick_no_collision and the peers: the same "
        f"{few['rows']} rows of soles, chest, centre of mass and posture, and limits of range and speed. Only this "
        f"package also limits accelerations and checks the path to the next posture and the stopping path.",
    ]
    lines.append(
        "tick_qp_saturated_...: soles stay, hands are sent half a metre out of reach in directions that turn; all "
        "pairs, in closed loop: most joints are at a bound."
    )
    lines.append(
        f"tick_{CHAIN}_joints_far: the pose of the last link of a chain, half a metre out of reach in a direction that "
        "turns, and posture; in closed loop."
    )
    for peer, how in HOW.items():
        if f"{peer}_all_pairs" in by:
            p = by[f"{peer}_all_pairs"]
            told = f"{p['pairs']} pairs, {p['active_pairs']} rows; {p['failed']} of {p['n']} ticks failed."
            lines.append(f"{peer}: {how}{told}")
    return lines


HOW = {
    "placo": "in a separate process with its own pinocchio; distances as soft constraints of weight 1e6; ",
    "mink": "on a MuJoCo model; ",
    "pink": "",
}
