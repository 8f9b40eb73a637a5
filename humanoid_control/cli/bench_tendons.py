"""Tendons: mappings of table I, filter updates beside filterpy, and three groups in one process; one core."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from humanoid_control.cli.bench_dynamics import Case, take_turns
from humanoid_control.cli.bench_tendons_cases import SIZES, three_groups, update_cases
from humanoid_control.cli.output import TENDONS, compile_first, progress
from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.simulation.studies.tendons.table_one import TABLE_ONE, Built, build

ROBOT = "kengoro_upper"
TITLE = "bench tendons, kengoro_upper"
COLUMNS = ["name", "unit", "median", "p99", "n", "size", "peak_mb", "source", "ratio", "goal", "reached"]
CALLS, STEPS, BUILDS = 2000, 2000, 3
LESS = {"jmm_neck_s": 20.0, "jmm_scapula_s": 20.0, "jmm_shoulder_s": 20.0, "update_8x10": 40.0, "update_60x80": 150.0}
MORE = {"three_groups": 2000.0, "three_groups_absolute": 2000.0}
RATIO = {"update_8x10": 5.0}  # how many times longer filterpy should take
PEAK = 4000.0  # [MB] of a process that builds the mappings of table I
COUNTS: dict[str, tuple[int, ...]] = {}  # other values per joint than those of table I, by the name of its column


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows in s, us or Hz. Ours and the peer take turns, so that other work on the machine hits both alike."""
    robot = load_robot(args.robot, "fixed")
    if robot.name != ROBOT:
        raise ConfigError(f"bench tendons measures the three groups of table I, which only {ROBOT} has")
    compile_first(TENDONS)
    with progress("measuring", 1.0, quiet=args.json) as show:
        built: dict[str, list[Built]] = {g.name: [] for g in TABLE_ONE}
        for k in range(BUILDS * len(TABLE_ONE)):
            group = TABLE_ONE[k % len(TABLE_ONE)]
            share = 0.6 / (BUILDS * len(TABLE_ONE))
            part = _part(show, k * share, share, group.name)
            built[group.name].append(build(robot, group, COUNTS.get(group.name), part))
        rows = [_built_row(name, b) for name, b in built.items()]
        cases = update_cases()
        times = take_turns(cases, CALLS, _part(show, 0.6, 0.2, "updates"))
        rows += [_row(case, 1e6 * t, "us") for case, t in zip(cases, times, strict=True)]
        cases = groups_cases(robot, {name: b[0] for name, b in built.items()})
        times = take_turns(cases, STEPS, _part(show, 0.8, 0.2, "three groups"))
        rows += [_row(case, 1.0 / t, "Hz") for case, t in zip(cases, times, strict=True)]
    judge(rows)
    return rows


def groups_cases(robot: Robot, built: dict[str, Built]) -> list[Case]:
    """The three groups with the mappings just built, by an absolute and by the default relative observation."""
    mappings = {g.group: built[g.name].mapping for g in TABLE_ONE}
    kinds = (("three_groups", "r2"), ("three_groups_absolute", "absolute"))
    return [Case(name, three_groups(robot, mappings, kind), 14) for name, kind in kinds]


def _part(show: Callable[..., object], start: float, share: float, text: str) -> Callable[[float], None]:
    """What tells the bar how much of a part is done."""
    return lambda done: (show(start + share * done, text), None)[1]


def _built_row(name: str, built: Sequence[Built]) -> dict[str, Any]:
    source = next(g for g in TABLE_ONE if g.name == name)
    b = built[0]
    d, m = len(source.joints), len(b.mapping.muscle_names)
    row = _values(f"jmm_{name}_s", "s", np.array([b.seconds for b in built]), 99, 3)
    row |= {"states": d, "tendons": m, "crossed": "", "size": f"{d}x{m}", "peak_mb": round(built[-1].peak / 1e6)}
    row |= {"source": f"{source.construction:.0f} + {source.regression:.0f}"}
    more = {"data": b.mapping.fit.samples if b.mapping.fit else 0, "degree": 5, "lengths_s": round(b.lengths, 3)}
    return row | more | {"length_rms_mm": 1e3 * b.length_rms, "arm_error_percent": 100 * b.arm_error}


def _row(case: Case, values: np.ndarray, unit: str) -> dict[str, Any]:
    n, m, crossed = SIZES.get(case.name.removeprefix("filterpy_").removeprefix("update_"), (14, 28, ""))
    size = f"{n}x{m}, {crossed} crossed" if crossed and crossed != n else f"{n}x{m}"
    row = _values(case.name, unit, values, 1 if unit == "Hz" else 99, 2)
    return row | {"states": n, "tendons": m, "crossed": crossed, "size": size, "peak_mb": "", "source": ""}


def _values(name: str, unit: str, values: np.ndarray, slow: int, digits: int) -> dict[str, Any]:
    """Median, best and the percentile toward the slow side."""
    best = values.max() if unit == "Hz" else values.min()
    row: dict[str, Any] = {"name": name, "unit": unit, "median": round(float(np.median(values)), digits)}
    row |= {"best": round(float(best), digits), "p99": round(float(np.percentile(values, slow)), digits)}
    return row | {"n": len(values)}


def judge(rows: list[dict[str, Any]]) -> None:
    """Write to each row how many times longer filterpy takes, the goals, and whether they are reached."""
    by = {r["name"]: r for r in rows}
    for row in rows:
        name = row["name"]
        peer = (
            by.get(name.replace("update_", "filterpy_").removesuffix("_dense")) if name.startswith("update_") else None
        )
        ratio = round(float(peer["median"]) / float(row["median"]), 1) if peer else 0.0
        met: list[bool] = []
        goals: list[str] = []
        if name in LESS:
            met.append(row["median"] < LESS[name])
            goals.append(f"< {LESS[name]:g} {row['unit']}")
        if name in MORE:
            met.append(row["median"] > MORE[name])
            goals.append(f"> {MORE[name]:g} {row['unit']}")
        if row["peak_mb"] != "":
            met.append(row["peak_mb"] < PEAK)
            goals.append(f"< {PEAK / 1000:g} GB")
        if ratio and name in RATIO:
            met.append(ratio >= RATIO[name])
            goals.append(f"{RATIO[name]:g} x peer")
        row |= {"ratio": ratio or "", "goal": ", ".join(goals), "reached": ("yes" if all(met) else "no") if met else ""}


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """What the numbers stand for."""
    lines = [
        "jmm: data set and polynomials of degree 5 from as many postures as in table I, on one core; source: its",
        "construction + regression [s] on 12 cores. peak_mb: most memory of the whole process so far.",
        "update: all tendons taken in, and the leave-one-out test of each; size: joints x tendons. 60x80 has the",
        "sparse rows of a whole body, 60x80_dense full ones. three_groups: whole steps a second of neck, scapula and",
        "shoulder (14 joints estimated) in one process, polynomials and exchange included; r2, then absolute.",
    ]
    if any(r["name"].startswith("filterpy_") for r in rows):
        return [
            *lines,
            "filterpy: ExtendedKalmanFilter.update as its users call it, H and h(x) given ready-made; ratio: its time",
            "by ours. It has no test for lying tendons and no form for sparse H: full rows take it as long.",
        ]
    return [*lines, "filterpy is not installed: pip install 'humanoid_control[bench]' adds its rows"]
