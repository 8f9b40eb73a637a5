"""`humanoid study worlds`: one robot standing under many conditions, simulated side by side."""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_folder, whole_file
from humanoid_control.terminal import console, machine, plain_values, print_json, progress, table

SECONDS = 5.0
LONGEST = 3600.0
MOST = 10000
NOTE = """drift: of the root link after the first second, in which the robot settles. torque: largest share of a drive's
limit after that, and whose. real time: simulated by computing time on one core."""


def run(args: argparse.Namespace) -> int:
    """Simulate all combinations and print the table."""
    from humanoid_control.simulation.engine import Recipe
    from humanoid_control.simulation.many_worlds import STUDIED, as_row, standing_study

    varied = parse_varied(args.vary or [], STUDIED)
    check_folder(args.output)
    variations = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
    if len(variations) > MOST:
        raise ConfigError(f"{len(variations)} combinations are too many, at most {MOST}: vary less")
    recipe = Recipe(args.robot or "lola", engine=args.engine or "multibody", drives=args.drives or "ideal")
    seconds = SECONDS if args.seconds is None else args.seconds
    if not 0 < seconds <= LONGEST:
        raise ConfigError(f"--seconds must be above 0 and at most {LONGEST:g}, got {seconds:g}")
    recipe.build()  # mistakes are said before anything is started
    with progress("study", len(variations), quiet=args.json) as show:
        found = standing_study(recipe, variations, seconds, args.workers, lambda done, total, text: show(done, text))
    rows = [as_row(o) for o in found]
    report: dict[str, Any] = {
        "study": "worlds",
        "robot": recipe.robot,
        "engine": recipe.engine,
        "drives": recipe.drives,
    }
    report |= {"seconds": seconds, "worlds": rows}
    if args.output is not None:
        _write(args.output, {**report, "machine": machine()})
    if args.json:
        print_json({**report, "machine": machine()})
        return 0
    columns = [*varied, "", "drift mm", "tilt deg", "torque %", "joint", "real time"]
    table(
        f"{recipe.robot} standing for {seconds:g} s ({recipe.engine})", columns, [_row(r, list(varied)) for r in rows]
    )
    console.print(NOTE)
    if args.output is not None:
        console.print(f"written: {args.output / 'worlds.json'}")
    return 0


def parse_varied(texts: list[str], known: tuple[str, ...]) -> dict[str, list[float]]:
    """`name=1,2,3` texts as name -> values.

    Raises:
        UnknownNameError: with the nearest names. ConfigError: not of that form, not a number, twice the same name.
    """
    out: dict[str, list[float]] = {}
    for text in texts:
        name, equals, values = (t.strip() for t in text.partition("="))
        if not equals or not values:
            raise ConfigError(f"--vary '{text}' must be name=values, for example friction=0.2,0.4,0.8")
        if name not in known:
            raise UnknownNameError("variable", name, known)
        if name in out:
            raise ConfigError(f"--vary {name} is given twice: put all its values behind one")
        try:
            out[name] = [float(v) for v in values.split(",")]
        except ValueError:
            raise ConfigError(f"--vary {name}: '{values}' are not numbers separated by commas") from None
        if not np.isfinite(out[name]).all():
            raise ConfigError(f"--vary {name}: '{values}' are not all finite")
    return out


def _row(r: dict[str, Any], varied: list[str]) -> list[Any]:
    verdict = "stood" if r["stood"] else "diverged" if r["failure"] else f"fell at {r['fell_at']:.2f} s"
    drift, tilt = round(1000 * r["drift"], 2), round(float(np.degrees(r["tilt"])), 2)
    torque = round(100 * r["torque_share"], 1)
    return [*(r[k] for k in varied), verdict, drift, tilt, torque, r["torque_joint"], round(r["real_time_factor"], 1)]


def _write(folder: Path, report: dict[str, Any]) -> None:
    """worlds.json, whole or not at all."""
    folder.mkdir(exist_ok=True)
    with whole_file(folder / "worlds.json") as file:
        file.write_text(json.dumps(plain_values(report), indent=1) + "\n", encoding="utf-8")
