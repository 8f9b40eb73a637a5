"""`humanoid study worlds`: one robot standing under many conditions, simulated side by side."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from evidence.studies.report import Progress, StudyReport, silent
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.simulation.engine import VARIABLES, Engine, SimulationConfig
from humanoid_control.simulation.many_worlds import Observed, simulate_many
from humanoid_control.simulation.many_worlds import Progress as Told
from humanoid_control.terminal import ReportTable, machine

SECONDS = 5.0
LONGEST = 3600.0
MOST = 10000
NOTE = """drift: of the root link after the first second, in which the robot settles. torque: largest share of a drive's
limit after that, and its joint. real time: simulated time over computing time, on one core."""


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
    varied = dict(vary or {})
    for name in varied:
        if name not in STUDIED:
            raise UnknownNameError("variable", name, STUDIED)
    variations = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
    if len(variations) > MOST:
        raise ConfigError(f"{len(variations)} combinations are too many, at most {MOST}: vary less")
    config = SimulationConfig(robot, engine=engine, drives=drives)
    if not 0 < seconds <= LONGEST:
        raise ConfigError(f"seconds must be above 0 and at most {LONGEST:g}, got {seconds:g}")
    config.build()  # mistakes are reported before anything is started
    found = standing_study(
        config, variations, seconds, workers, lambda done, total, text: show(done / max(1, total), text)
    )
    rows = [as_row(o) for o in found]
    data: dict[str, Any] = {"study": "worlds", "robot": config.robot, "engine": config.engine, "drives": config.drives}
    data |= {"seconds": seconds, "worlds": rows, "machine": machine()}
    columns = [*varied, "", "drift mm", "tilt deg", "torque %", "joint", "real time"]
    title = f"{config.robot} standing for {seconds:g} s ({config.engine})"
    return StudyReport(data, [ReportTable(title, columns, [_row(r, list(varied)) for r in rows]), NOTE])


def parse_varied(texts: Sequence[str]) -> dict[str, list[float]]:
    """`name=1,2,3` texts as name -> values.

    Raises:
        ConfigError: not of that form, not a number, twice the same name.
    """
    out: dict[str, list[float]] = {}
    for text in texts:
        name, equals, values = (t.strip() for t in text.partition("="))
        if not equals or not values:
            raise ConfigError(f"vary '{text}' must be name=values, for example friction=0.2,0.4,0.8")
        if name in out:
            raise ConfigError(f"vary {name} is given twice: give all its values at once")
        try:
            out[name] = [float(v) for v in values.split(",")]
        except ValueError:
            raise ConfigError(f"vary {name}: '{values}' are not numbers separated by commas") from None
        if not np.isfinite(out[name]).all():
            raise ConfigError(f"vary {name}: '{values}' are not all finite")
    return out


def _row(r: dict[str, Any], varied: list[str]) -> list[Any]:
    verdict = "stood" if r["stood"] else "diverged" if r["failure"] else f"fell at {r['fell_at']:.2f} s"
    drift, tilt = round(1000 * r["drift"], 2), round(float(np.degrees(r["tilt"])), 2)
    torque = round(100 * r["torque_share"], 1)
    return [*(r[k] for k in varied), verdict, drift, tilt, torque, r["torque_joint"], round(r["real_time_factor"], 1)]


# -------- Observer

SETTLING = 1.0  # [s] the robot sinks into its drives and the ground
LOW, TILTED = 0.7, np.radians(45.0)  # of its height, of its root link: it has fallen
PUSHED = 0.1  # [s]
STUDIED = (*(v for v in VARIABLES if v != "slope"), "slope_deg", "push_x", "push_y")


@dataclass(frozen=True)
class StandingResult:
    """Outcome for a robot that should stand.

    Attributes:
        stood: neither fell nor diverged.
        fell_at: when [s]; None where it stood.
        drift: largest horizontal distance of the root link from where it was when the robot had settled [m].
        tilt: largest angle of the root link against its start [rad].
        torque_share: largest torque after settling as a share of the drive's limit. torque_joint: whose.
    """

    stood: bool
    fell_at: float | None
    drift: float
    tilt: float
    torque_share: float
    torque_joint: str


class StandingObserver:
    """Watches a robot stand; pushes it at its root link, for 0.1 s, once it has settled."""

    def __init__(self, push_x: float = 0.0, push_y: float = 0.0) -> None:
        """`push_x`, `push_y`: forward and to the left [N]."""
        self._push = np.array([push_x, push_y, 0.0, 0.0, 0.0, 0.0])
        self._start: np.ndarray | None = None
        self._settled: np.ndarray | None = None
        self._fell: float | None = None
        self._drift = self._tilt = self._share = 0.0
        self._joint = ""

    def observe(self, engine: Engine) -> None:
        """See `many_worlds.Observer`."""
        pose = engine.base_state()[0]
        if self._start is None:
            self._start = pose
        tilt = 2 * np.arccos(min(1.0, abs(float(pose[3:] @ self._start[3:]))))
        self._tilt = max(self._tilt, tilt)
        height = max(self._start[2], 0.2)
        if self._fell is None and (engine.diverged or self._start[2] - pose[2] > (1 - LOW) * height or tilt > TILTED):
            self._fell = engine.time
        if engine.time < SETTLING - 1e-9:
            return
        if self._settled is None:
            self._settled = pose
            if self._push.any():
                engine.push(engine.robot.root_link, self._push, PUSHED)
        self._drift = max(self._drift, float(np.linalg.norm(pose[:2] - self._settled[:2])))
        share = np.abs(engine.torque) / engine.robot.effort
        k = int(np.argmax(share)) if len(share) else -1
        if k >= 0 and share[k] > self._share:
            self._share, self._joint = float(share[k]), engine.robot.joint_names[k]

    def result(self) -> StandingResult:
        """See `many_worlds.Observer`."""
        return StandingResult(self._fell is None, self._fell, self._drift, self._tilt, self._share, self._joint)


def make_world(base: SimulationConfig, variation: Mapping[str, Any]) -> Engine:
    """The world of a variation."""
    values = {k: v for k, v in variation.items() if k in VARIABLES}
    if "slope_deg" in variation:
        values["slope"] = np.radians(variation["slope_deg"])
    return base.changed(values).build()


def make_observer(variation: Mapping[str, Any]) -> StandingObserver:
    """The observer of a variation."""
    return StandingObserver(float(variation.get("push_x", 0.0)), float(variation.get("push_y", 0.0)))


def standing_study(
    config: SimulationConfig,
    variations: list[dict[str, float]],
    seconds: float,
    workers: int | None = None,
    progress: Told | None = None,
) -> list[Observed]:
    """A robot standing under each of the conditions; results are `StandingResult`.

    Args:
        config: what they have in common.
        variations: numbers by name, of STUDIED; pushes in N, `slope_deg` in degrees.
        seconds: simulated, more than the settling time of 1 s.

    Raises:
        UnknownNameError: of a number that there is not. HumanoidError: as `simulate_many`.
    """
    for variation in variations:
        for name in variation:
            if name not in STUDIED:
                raise UnknownNameError("variable", name, STUDIED)
    if seconds <= SETTLING:
        raise ConfigError(f"the robot settles for {SETTLING:g} s: simulate longer, got {seconds:g} s")
    return simulate_many(partial(make_world, config), variations, seconds, make_observer, workers, progress)


def as_row(observed: Observed) -> dict[str, Any]:
    """An outcome as one flat dictionary."""
    row = {**observed.variation, **asdict(observed.result), "real_time_factor": observed.real_time_factor}
    return {**row, "failure": observed.failure or None}
