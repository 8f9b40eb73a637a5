"""`humanoid study safety`: thousands of bad starts of each robot, and what became of them."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.cli.output import console, machine, print_json, progress, table
from humanoid_control.errors import ConfigError

if TYPE_CHECKING:
    from humanoid_control.ik.safety_study import Run
    from humanoid_control.robots import Robot

STARTS = 2000
COLUMNS = ["robot", "starts", "inside", "outside", "deep mm", "not left", "left ms", "p99 ms", "home", "through"]
COLUMNS += ["touched", "rad/s", "limits", "failures", "tick µs"]
NOTE = """inside, outside: starts in collision, and with a joint beyond its range by up to 20 % of it; every second has
targets. not left: not free of collisions and inside all ranges after 15 s. left: median time until then. home: led home
by way of the neutral posture, because the gradients alone did not lead out; through: those of them on whose way pairs
that were apart had to be let through; touched: how often a pair that was apart by 1 mm came to touch. rad/s: fastest
joint while leaving. limits: largest share of a limit on speed or acceleration; above 1 would be a violation."""


def run(args: argparse.Namespace) -> int:
    """Play all starts and print the table."""
    from humanoid_control.ik.safety_study import bad_starts, leave
    from humanoid_control.ik.velocity_ik import VelocityIk
    from humanoid_control.robots import CATALOGUE, load_robot

    count = STARTS if args.starts is None else args.starts
    if count < 1:
        raise ConfigError(f"--starts must be at least 1, got {count}")
    robots = [load_robot(name, "fixed") for name in ([args.robot] if args.robot else CATALOGUE)]
    results = []
    with progress("study", len(robots) * count, quiet=args.json) as show:
        for n, robot in enumerate(robots):
            solver, runs = VelocityIk(robot), []
            for k, start in enumerate(bad_starts(robot, count)):
                show(n * count + k, robot.name)
                runs.append(leave(solver, start))
            results.append(summary(robot, runs))
    if args.json:
        print_json({"study": "safety", "robots": results, "machine": machine()})
        return 0
    table("bad starts, and how the safe solver leaves them", COLUMNS, [_row(r) for r in results])
    console.print(NOTE)
    for r in results:
        if r["blocking"]:
            pairs = ", ".join(f"{name} ({times})" for name, times in list(r["blocking"].items())[:6])
            console.print(f"{r['robot']}, not left: {pairs}")
    return 0


def summary(robot: Robot, runs: list[Run]) -> dict[str, Any]:
    """The numbers of one robot."""
    times = np.array([r.left for r in runs if r.left is not None])
    ticks = 1e6 * np.concatenate([r.ticks for r in runs])
    blocking = Counter(pair for r in runs if r.left is None for pair in r.blocking)
    return {
        "robot": robot.name,
        "starts": len(runs),
        "inside": sum(r.start.depth > 0 for r in runs),
        "outside": sum(r.start.outside > 0 for r in runs),
        "deepest": max(r.start.depth for r in runs),
        "not_left": sum(r.left is None for r in runs),
        "left_median": float(np.median(times)) if len(times) else None,
        "left_p99": float(np.percentile(times, 99)) if len(times) else None,
        "stages": dict(sorted(Counter(r.stage for r in runs).items())),
        "touched": sum(r.touched for r in runs),
        "closest_end": min(r.closest for r in runs),
        "outside_end": max(r.outside for r in runs),
        "leaving_speed": max(r.leaving for r in runs),
        "speed_share": max(r.speed for r in runs),
        "acceleration_share": max(r.acceleration for r in runs),
        "failures": sum(r.failures for r in runs),
        "tick_median": float(np.median(ticks)),
        "tick_p99": float(np.percentile(ticks, 99)),
        "blocking": dict(blocking.most_common()),
    }


def _row(r: dict[str, Any]) -> list[Any]:
    ms = ["-" if r[k] is None else round(1000 * r[k]) for k in ("left_median", "left_p99")]
    home, through = (sum(n for stage, n in r["stages"].items() if stage >= least) for least in (1, 2))
    row = [r["robot"], r["starts"], r["inside"], r["outside"], round(1000 * r["deepest"]), r["not_left"], *ms]
    limits = round(max(r["speed_share"], r["acceleration_share"]), 6)
    row += [home, through, r["touched"], round(r["leaving_speed"], 3), limits]
    return [*row, r["failures"], round(r["tick_median"])]
