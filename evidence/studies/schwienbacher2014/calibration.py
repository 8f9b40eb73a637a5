"""Encoder calibration: offsets planted in the encoders of each leg, and found again in a simulated jig.

Many seeds show how near the offsets come and which combinations of them the poses cannot tell (Schwienbacher 2014).
`run_study` makes the report of `humanoid study calibration`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evidence.studies.report import Progress, StudyReport, silent
from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.report.plots import SERIES, png, subplots
from humanoid_control.robots.drives import drives_of
from humanoid_control.robots.robot import Robot
from humanoid_control.simulation.encoder_calibration import (
    POSE,
    POSITION,
    EncoderCalibration,
    JigAccuracy,
    LegChain,
    calibrate,
    fixtures,
    jig_poses,
    legs_of,
    mean_offsets,
)
from humanoid_control.simulation.sensors.encoders import absolute_encoders
from humanoid_control.terminal import ReportTable, machine

PLANTED = np.radians(3.0)  # standard deviation of the mounting offsets


@dataclass(frozen=True)
class MeasurementCase:
    """One kind and number of measurements, over all seeds.

    Attributes:
        measure: 'pose' or 'position'. poses: their number.
        first: calibration of the first seed, for what does not depend on the noise.
        errors: (seeds, k) found less planted offsets [rad].
        spread: (k,) median over the seeds of the spread over the poses [rad].
    """

    measure: str
    poses: int
    first: EncoderCalibration
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

    leg: LegChain
    cases: tuple[MeasurementCase, ...]
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
        seeds: each with other offsets and noise.
        accuracy: of the jig.
        show: called with the share done and the leg.

    Raises:
        ConfigError, RobotError: a number out of range, a robot without legs.
    """
    for name, value in (("poses", poses), ("seeds", seeds)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}")
    if not (np.isfinite(noise) and noise >= 0):
        raise ConfigError(f"noise must be 0 or more, got {noise:g} rad")
    accuracy, file = accuracy or JigAccuracy(), drives_of(robot)
    kinds = dict.fromkeys([(POSE, poses), (POSE, 1), (POSITION, poses), (POSITION, 1)])
    legs, out = legs_of(robot), []
    for n, leg in enumerate(legs):
        postures = jig_poses(leg, poses)
        found: dict[tuple[str, int], list[EncoderCalibration]] = {key: [] for key in kinds}
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
            cases.append(MeasurementCase(measure, count, results[0], errors, spread))
        out.append(LegStudy(leg, tuple(cases), np.array(means) - planted, postures[:, leg.index]))
    return out


# -------- Report

POSES, NOISE, SEEDS = 3, 0.02, 10  # noise [deg]
COLUMNS = ["leg", "measured", "poses", "condition", "weakest deg", "worst rms deg", "within 3 s.e. %"]
NOTE = """measured: position and orientation of the sole in the jig, or only the position of its middle. weakest:
predicted error along the least observable combination of offsets; worst rms: of the worst joint, over the seeds;
within: share of all errors within three predicted standard errors (99.7 % if the prediction is right)."""


def run_study(
    robot: str = "lola", poses: int = POSES, noise: float = NOISE, seeds: int = SEEDS, show: Progress = silent
) -> StudyReport:
    """Plant offsets in the encoders of each leg, and find them again.

    Args:
        robot: name or path, with legs.
        poses: in the jig. noise: of an encoder reading [deg]. seeds: how often, with other errors.
        show: told how far it is.
    """
    from humanoid_control.robots.catalogue import load_robot

    if not 0 <= noise < math.inf:
        raise ConfigError(f"noise must be 0 or more, got {noise:g} deg")
    model, accuracy = load_robot(robot, "fixed"), JigAccuracy()
    legs = study_calibration(model, poses, math.radians(noise), seeds, accuracy, show)
    data = to_json(model, legs, noise, accuracy.position, math.degrees(accuracy.orientation))
    return StudyReport(
        data, _parts(model, legs, noise, seeds), pictures=lambda: {"calibration.png": calibration_plot(legs)}
    )


def to_json(robot: Robot, legs: list[LegStudy], noise: float, position: float, orientation: float) -> dict[str, Any]:
    """The study as plain dictionaries; angles in degrees, lengths in metres."""
    rows = []
    for s in legs:
        cases = [
            {
                "measure": c.measure,
                "poses": c.poses,
                "condition": c.first.condition,
                "singular_values_per_deg": np.radians(c.first.singular),
                "standard_error": np.degrees(c.first.standard_error),
                "covariance": np.degrees(np.degrees(c.first.covariance)),
                "rms_error": np.degrees(c.rms),
                "spread": np.degrees(c.spread),
                "within_3_standard_errors": c.within,
                "not_identified": [
                    {"joints": d.parts, "standard_error": math.degrees(d.deviation)} for d in c.first.unidentified
                ],
            }
            for c in s.cases
        ]
        mean = np.degrees(np.sqrt(np.mean(s.mean_errors**2, axis=0)))
        rows.append(
            {
                "leg": s.leg.name,
                "joints": s.leg.joints,
                "postures": np.degrees(s.postures),
                "cases": cases,
                "mean_rms_error": mean,
            }
        )
    head = {"study": "calibration", "robot": robot.name, "seeds": len(legs[0].mean_errors), "noise": noise}
    head |= {"jig_position": position, "jig_orientation": orientation}
    return {**head, "legs": rows, "machine": machine()}


def _parts(robot: Robot, legs: list[LegStudy], noise: float, seeds: int) -> list[ReportTable | str]:
    title = f"{robot.title}: encoder offsets from jig poses, encoder noise {noise:g}°, {seeds} seeds"
    parts: list[ReportTable | str] = [
        ReportTable(title, COLUMNS, [_case_row(s, c) for s in legs for c in s.cases]),
        NOTE,
    ]
    lines = [
        [s.leg.name, c.measure, c.poses, _angle(d.deviation), ", ".join(f"{p:+.2f} {j}" for j, p in d.parts.items())]
        for s in legs
        for c in s.cases
        for d in c.first.unidentified
    ]
    if lines:
        columns = ["leg", "measured", "poses", "s.e. deg", "combination of offsets"]
        parts.append(ReportTable("not identified (standard error above 1°)", columns, lines))
    joints = []
    for s in legs:
        best, mean = s.cases[0], np.sqrt(np.mean(s.mean_errors**2, axis=0))
        for k, name in enumerate(s.leg.joints):
            numbers = [best.first.standard_error[k], best.rms[k], mean[k], best.spread[k]]
            joints.append([name, *(_angle(x) for x in numbers)])
    count = legs[0].cases[0].poses
    columns = ["joint", "standard error deg", "rms error deg", "rms error of the mean deg", "spread deg"]
    parts.append(ReportTable(f"each offset from {count} pose{'s' * (count > 1)}", columns, joints))
    parts.append(
        "mean: reading minus joint angle, where the jig defines the joint angles. spread: median range over\n"
        "the poses, each pose alone; it stays within the noise if the poses agree."
    )
    return parts


def _case_row(s: LegStudy, c: MeasurementCase) -> list[Any]:
    weakest = 1 / c.first.singular[-1] if c.first.singular[-1] > 0 else math.inf
    known = np.isfinite(c.first.standard_error)
    rms = float(c.rms[known].max()) if known.any() else math.nan
    within = round(100 * c.within, 1) if known.any() else "-"
    condition = round(c.first.condition, 1) if math.isfinite(c.first.condition) else "-"
    return [s.leg.name, c.measure, c.poses, condition, _angle(weakest), _angle(rms), within]


def _angle(x: float) -> Any:
    """Degrees for a table; - where there is no bound."""
    return round(math.degrees(x), 4) if math.isfinite(x) else "-"


# -------- Plot


def calibration_plot(legs: list[LegStudy]) -> bytes:
    """A PNG with one panel a leg: all poses next to one pose; joints that one pose does not bound are left out."""
    figure, axes = subplots(len(legs), 1, 8.0, 2.8 * len(legs))
    shown = [c for c in legs[0].cases if c.measure == "pose"]
    for study, ax in zip(legs, axes, strict=True):
        for n, case in enumerate(c for c in study.cases if c.measure == "pose"):
            at = np.arange(len(study.leg.joints)) + 0.26 * n - 0.13
            error = case.first.standard_error
            band = np.where(np.isfinite(error), 3 * np.degrees(error), np.nan)
            ax.bar(at, 2 * band, 0.22, -band, color=SERIES[n], alpha=0.25, linewidth=0)
            for errors in np.degrees(case.errors):
                ax.plot(at, np.where(np.isfinite(band), errors, np.nan), ".", color=SERIES[n], markersize=3)
        ax.set_xticks(range(len(study.leg.joints)), study.leg.joints, rotation=15, ha="right", fontsize=7)
        ax.set_ylabel(f"{study.leg.name}: error [°]")
    return png(figure, [(f"{c.poses} pose{'s' * (c.poses > 1)}", SERIES[n]) for n, c in enumerate(shown)])
