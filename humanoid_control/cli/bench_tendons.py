"""Tendons: mappings of table I, filter updates beside filterpy, and three groups in one process; one core."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from humanoid_control.cli.bench_dynamics import Case, take_turns
from humanoid_control.cli.bench_tendons_cases import SIZES, three_groups, update_cases
from humanoid_control.cli.output import TENDONS, compile_first, progress
from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot, load_robot
from humanoid_control.simulation.tendon_study.table_one import TABLE_ONE, Built, build

ROBOT = "kengoro_upper"
TITLE = "bench tendons, kengoro_upper"
COLUMNS = ["name", "unit", "median", "best", "p99", "n", "states", "tendons", "crossed", "peak_mb", "source"]
CALLS, STEPS = 2000, 2000
COUNTS: dict[str, tuple[int, ...]] = {}  # other values per joint than those of table I, by the name of its column


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows in s, us or Hz. Ours and the peer take turns, so that other work on the machine hits both alike."""
    if args.robot != ROBOT:
        raise ConfigError(f"bench tendons measures the three groups of table I, which only {ROBOT} has")
    compile_first(TENDONS)
    robot = load_robot(ROBOT, "fixed")
    with progress("measuring", 1.0, quiet=args.json) as show:
        built = {}
        for k, group in enumerate(TABLE_ONE):
            built[group.name] = build(robot, group, COUNTS.get(group.name), _part(show, k / 5, 0.2, group.name))
        rows = [_built_row(name, b) for name, b in built.items()]
        cases = update_cases()
        times = take_turns(cases, CALLS, _part(show, 0.6, 0.2, "updates"))
        rows += [_row(case, 1e6 * t, "us") for case, t in zip(cases, times, strict=True)]
        cases = groups_cases(robot, built)
        times = take_turns(cases, STEPS, _part(show, 0.8, 0.2, "three groups"))
        return rows + [_row(case, 1.0 / t, "Hz") for case, t in zip(cases, times, strict=True)]


def groups_cases(robot: Robot, built: dict[str, Built]) -> list[Case]:
    """The three groups with the mappings just built, by an absolute and by the default relative observation."""
    mappings = {g.group: built[g.name].mapping for g in TABLE_ONE}
    kinds = (("three_groups", "r2"), ("three_groups_absolute", "absolute"))
    return [Case(name, three_groups(robot, mappings, kind), 14) for name, kind in kinds]


def _part(show: Callable[..., object], start: float, share: float, text: str) -> Callable[[float], None]:
    """What tells the bar how much of a part is done."""
    return lambda done: (show(start + share * done, text), None)[1]


def _built_row(name: str, b: Built) -> dict[str, Any]:
    source = next(g for g in TABLE_ONE if g.name == name)
    d, m = len(source.joints), len(b.mapping.muscle_names)
    row = {"name": f"jmm_{name}_s", "unit": "s", "n": 1, "states": d, "tendons": m, "crossed": ""}
    row |= dict.fromkeys(("median", "best", "p99"), round(b.seconds, 3))
    row |= {"peak_mb": round(b.peak / 1e6), "source": f"{source.construction:.0f} + {source.regression:.0f}"}
    more = {"data": b.mapping.fit.samples if b.mapping.fit else 0, "degree": 5, "lengths_s": round(b.lengths, 3)}
    return row | more | {"length_rms_mm": 1e3 * b.length_rms, "arm_error_percent": 100 * b.arm_error}


def _row(case: Case, values: np.ndarray, unit: str) -> dict[str, Any]:
    """Median, best and the 99th percentile toward the slow side."""
    slow = 1 if unit == "Hz" else 99
    best = values.max() if unit == "Hz" else values.min()
    n, m, crossed = SIZES.get(case.name.removeprefix("filterpy_").removeprefix("update_"), (14, 28, ""))
    row = {"name": case.name, "unit": unit, "median": round(float(np.median(values)), 2), "best": round(float(best), 2)}
    row |= {"p99": round(float(np.percentile(values, slow)), 2), "n": len(values)}
    return row | {"states": n, "tendons": m, "crossed": crossed, "peak_mb": "", "source": ""}


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """What the numbers stand for, and the ratios to the peer."""
    by = {r["name"]: r for r in rows}
    lines = [
        "jmm: data set and polynomials of degree 5 from as many postures as in table I, on one core; source: its",
        "construction + regression [s] on 12 cores. peak_mb: most memory of the whole process so far.",
        "update: all tendons taken in, and the leave-one-out test of each. crossed: joints that each tendon crosses;",
        "60x80 has the sparse rows of a whole body, 60x80_dense full ones. three_groups: whole steps of neck, scapula",
        "and shoulder (14 joints estimated, 28 tendons), polynomials and exchange included; r2, then absolute.",
    ]
    peers = [(size, by[f"filterpy_{size}"]["median"] / by[f"update_{size}"]["median"]) for size in SIZES
             if f"filterpy_{size}" in by]  # fmt: skip
    if peers:
        ratios = ", ".join(f"{size} {ratio:.1f}" for size, ratio in peers)
        return [*lines, f"filterpy / ours: {ratios}. filterpy has no test for lying tendons, and is given H and h(x)."]
    return [*lines, "filterpy is not installed: pip install 'humanoid_control[bench]' adds its rows"]
