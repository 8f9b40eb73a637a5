"""`humanoid study worlds`: one robot standing under many conditions, simulated side by side."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.studies.report import Progress, StudyReport, silent
from humanoid_control.terminal import Table, machine

SECONDS = 5.0
LONGEST = 3600.0
MOST = 10000
NOTE = """drift: of the root link after the first second, in which the robot settles. torque: largest share of a drive's
limit after that, and whose. real time: simulated by computing time on one core."""


def run_study(
    robot: str = "lola",
    vary: Mapping[str, Sequence[float]] | None = None,
    seconds: float = SECONDS,
    engine: str = "multibody",
    drives: str = "ideal",
    workers: int | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Simulate all combinations.

    Args:
        robot: name or path.
        vary: what differs from world to world -> its values; see `STUDIED`.
        seconds: simulated time. engine, drives: of every world.
        workers: processes; None: one a core.
        show: told how far it is.
    """
    from humanoid_control.simulation.engine import SimulationConfig
    from humanoid_control.simulation.many_worlds import STUDIED, as_row, standing_study

    varied = dict(vary or {})
    for name in varied:
        if name not in STUDIED:
            raise UnknownNameError("variable", name, STUDIED)
    variations = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
    if len(variations) > MOST:
        raise ConfigError(f"{len(variations)} combinations are too many, at most {MOST}: vary less")
    recipe = SimulationConfig(robot, engine=engine, drives=drives)
    if not 0 < seconds <= LONGEST:
        raise ConfigError(f"--seconds must be above 0 and at most {LONGEST:g}, got {seconds:g}")
    recipe.build()  # mistakes are said before anything is started
    found = standing_study(
        recipe, variations, seconds, workers, lambda done, total, text: show(done / max(1, total), text)
    )
    rows = [as_row(o) for o in found]
    data: dict[str, Any] = {"study": "worlds", "robot": recipe.robot, "engine": recipe.engine, "drives": recipe.drives}
    data |= {"seconds": seconds, "worlds": rows, "machine": machine()}
    columns = [*varied, "", "drift mm", "tilt deg", "torque %", "joint", "real time"]
    title = f"{recipe.robot} standing for {seconds:g} s ({recipe.engine})"
    return StudyReport(data, [Table(title, columns, [_row(r, list(varied)) for r in rows]), NOTE])


def parse_varied(texts: Sequence[str]) -> dict[str, list[float]]:
    """`name=1,2,3` texts as name -> values.

    Raises:
        ConfigError: not of that form, not a number, twice the same name.
    """
    out: dict[str, list[float]] = {}
    for text in texts:
        name, equals, values = (t.strip() for t in text.partition("="))
        if not equals or not values:
            raise ConfigError(f"--vary '{text}' must be name=values, for example friction=0.2,0.4,0.8")
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
