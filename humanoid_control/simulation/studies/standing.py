"""Whether a robot stands, and how hard that is for it: the observer of studies on many worlds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.simulation.engine import Engine
from humanoid_control.simulation.recipe import VARIABLES, Recipe
from humanoid_control.simulation.studies.many import Observed, Progress, simulate_many

SETTLING = 1.0  # [s] the robot sinks into its drives and the ground
LOW, TILTED = 0.7, np.radians(45.0)  # of its height, of its root link: it has fallen
PUSHED = 0.1  # [s]
STUDIED = (*(v for v in VARIABLES if v != "slope"), "slope_deg", "push_x", "push_y")


@dataclass(frozen=True)
class Stand:
    """What became of a robot that should stand.

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

    def look(self, engine: Engine) -> None:
        """See `many.Observer`."""
        pose = engine.base_state()[0]
        if self._start is None:
            self._start = pose
        tilt = 2 * np.arccos(min(1.0, abs(float(pose[3:] @ self._start[3:]))))
        self._tilt = max(self._tilt, tilt)
        reach = max(self._start[2], 0.2)
        if self._fell is None and (engine.diverged or self._start[2] - pose[2] > (1 - LOW) * reach or tilt > TILTED):
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

    def result(self) -> Stand:
        """See `many.Observer`."""
        return Stand(self._fell is None, self._fell, self._drift, self._tilt, self._share, self._joint)


def make_world(base: Recipe, variation: Mapping[str, Any]) -> Engine:
    """The world of a variation of a recipe."""
    values = {k: v for k, v in variation.items() if k in VARIABLES}
    if "slope_deg" in variation:
        values["slope"] = np.radians(variation["slope_deg"])
    return base.changed(values).build()


def make_observer(variation: Mapping[str, Any]) -> StandingObserver:
    """The observer of a variation."""
    return StandingObserver(float(variation.get("push_x", 0.0)), float(variation.get("push_y", 0.0)))


def standing_study(
    recipe: Recipe,
    variations: list[dict[str, float]],
    seconds: float,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Observed]:
    """How a robot stands under each of the conditions; results are `Stand`.

    Args:
        recipe: what they have in common.
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
        raise ConfigError(f"the robot settles for {SETTLING:g} s: simulate longer than that, got {seconds:g} s")
    return simulate_many(partial(make_world, recipe), variations, seconds, make_observer, workers, progress)


def as_row(observed: Observed) -> dict[str, Any]:
    """An outcome as one flat dictionary."""
    row = {**observed.variation, **asdict(observed.result), "real_time_factor": observed.real_time_factor}
    return {**row, "failure": observed.failure or None}
