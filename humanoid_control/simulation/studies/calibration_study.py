"""Calibration tried many times with planted offsets: how near it comes, and what the poses cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot
from humanoid_control.robots.drive_file import drives_of
from humanoid_control.simulation.sensors.encoders import absolute_encoders
from humanoid_control.simulation.studies.calibration import POSE, POSITION, Calibration, calibrate, mean_offsets
from humanoid_control.simulation.studies.jig import JigAccuracy, Leg, fixtures, jig_poses, legs_of

PLANTED = np.radians(3.0)  # standard deviation of the mounting offsets


@dataclass(frozen=True)
class Case:
    """One way to measure, over all seeds.

    Attributes:
        measure: 'pose' or 'position'. poses: how many.
        first: calibration of the first seed, for what does not depend on the noise.
        errors: (seeds, k) found less planted offsets [rad].
        spread: (k,) median over the seeds of the spread over the poses [rad].
    """

    measure: str
    poses: int
    first: Calibration
    errors: np.ndarray
    spread: np.ndarray

    @property
    def rms(self) -> np.ndarray:
        """Of the errors over the seeds (k,) [rad]."""
        return np.sqrt(np.mean(self.errors**2, axis=0))

    @property
    def within(self) -> float:
        """Share of the errors within three predicted standard errors, of the joints that have a bound; NaN without."""
        error = self.first.standard_error
        bound = np.isfinite(error)
        return float(np.mean(np.abs(self.errors[:, bound]) <= 3 * error[bound])) if bound.any() else float("nan")


@dataclass(frozen=True)
class LegStudy:
    """All cases of one leg, and the errors (seeds, k) of the plain mean where the jig defines joint angles [rad]."""

    leg: Leg
    cases: tuple[Case, ...]
    mean_errors: np.ndarray
    postures: np.ndarray


def study_calibration(
    robot: Robot,
    poses: int = 3,
    noise: float = np.radians(0.02),
    seeds: int = 10,
    accuracy: JigAccuracy | None = None,
    show: Callable[[float, str], None] = lambda share, text: None,
) -> list[LegStudy]:
    """Plant offsets in each leg's encoders, measure in a jig, calibrate; as often as there are seeds.

    Args:
        robot: with legs, its base fixed.
        poses: in the jig.
        noise: standard deviation of an encoder reading [rad].
        seeds: how often, each time with other offsets and noise.
        accuracy: of the jig.
        show: is told the share done and the leg.

    Raises:
        ConfigError, RobotError: a number out of range, a robot without legs.
    """
    for name, value in (("poses", poses), ("seeds", seeds)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}")
    if not (np.isfinite(noise) and noise >= 0):
        raise ConfigError(f"noise must be a number from 0 up, got {noise:g} rad")
    accuracy, file = accuracy or JigAccuracy(), drives_of(robot)
    wanted = dict.fromkeys([(POSE, poses), (POSE, 1), (POSITION, poses), (POSITION, 1)])
    legs, out = legs_of(robot), []
    for n, leg in enumerate(legs):
        postures = jig_poses(leg, poses)
        found: dict[tuple[str, int], list[Calibration]] = {key: [] for key in wanted}
        planted, means = [], []
        for seed in range(seeds):
            show((n + seed / seeds) / len(legs), leg.name)
            random = np.random.default_rng([n, seed])
            mounting = PLANTED * random.standard_normal(robot.n)
            encoders = absolute_encoders(robot, file, mounting, noise, int(random.integers(2**31)))
            measured = fixtures(leg, postures, encoders, accuracy, random)
            planted.append(mounting[leg.index])
            means.append(mean_offsets(leg, measured)[0])
            for (measure, count), results in found.items():
                results.append(calibrate(leg, measured[:count], encoders.deviation, accuracy, measure))
        cases = []
        for (measure, count), results in found.items():
            errors = np.array([c.offsets for c in results]) - planted
            spread = np.median([c.spread for c in results], axis=0)
            cases.append(Case(measure, count, results[0], errors, spread))
        out.append(LegStudy(leg, tuple(cases), np.array(means) - planted, postures[:, leg.index]))
    return out
