"""E4 of Kawaharazuka 2018: an arm that was zeroed at the wrong posture, by the absolute and by the relative filters.

Also what becomes of the filters where the model is not the robot: tendons whose moment arms are off by some percent,
and mappings that are fitted to the geometry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import radians
from typing import Any

import numpy as np

from evidence.studies.kawaharazuka2018.result import (
    ErrorGoal,
    ExperimentResult,
    ResultRow,
    Runs,
    Trace,
    spread,
    tail,
    walks_of,
)
from evidence.studies.kawaharazuka2018.testbed import ARM, NOISE, Limb, TendonTestbed, measured
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.mappings.postures import random_postures, random_walk

ZEROED, GUESS = np.radians([30.0, -30.0, 30.0, -30.0]), np.radians([0.0, 0.0, 0.0, -45.0])
SIGMA = radians(1.0)
GEOMETRY, POLYNOMIALS, NETWORK = "geometry", "polynomials", "neural mapping"
POSTURES = 500  # that say how far wrong moment arms put the lengths


@dataclass(frozen=True)
class ZeroVariant:
    """A filter, and what is wrong with its model.

    Attributes:
        name: in the tables. settings: of the filter.
        mapping: `GEOMETRY`, or fitted `POLYNOMIALS` or `NETWORK`.
        scale: standard deviation of the factors by which the tendons' lengths differ from those of the model.
        told: the filter's length noise counts how far its model puts the lengths, and not the encoders' noise alone.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    mapping: str = GEOMETRY
    scale: float = 0.0
    told: bool = True


ABSOLUTE: dict[str, Any] = {"observation": "absolute"}
R2: dict[str, Any] = {"observation": "r2"}
R3: dict[str, Any] = {"observation": "r3", "step_noise": radians(1.0)}
VARIANTS = (
    ZeroVariant("absolute, correct zero", ABSOLUTE),
    ZeroVariant("absolute, wrong zero", {**ABSOLUTE, "gate": 0.0}),
    ZeroVariant("relative as printed", {"observation": "literal", "limits": "off"}),
    ZeroVariant("relative r1", {"observation": "r1", "step_noise": radians(0.02)}),
    ZeroVariant("relative r2", R2),
    ZeroVariant("relative r3", R3),
    *(ZeroVariant(f"relative {k}, {m}", s, m) for m in (POLYNOMIALS, NETWORK) for k, s in (("r2", R2), ("r3", R3))),
    *(
        ZeroVariant(f"{name}, arms {100 * scale:g} % wrong{'' if told else ', undisclosed'}", s, scale=scale, told=told)
        for scale in (0.02, 0.05)
        for told in (True, False)
        for name, s in (("absolute, correct zero", ABSOLUTE), ("relative r2", R2), ("relative r3", R3))
    ),
)
WRONG = "absolute, wrong zero"
SHOWN, STRIP = (WRONG, "relative r2"), ("relative r1", "relative r3")
RELATIVE = ErrorGoal(median=1.0, worst=5.0)
GOALS = {
    "absolute, correct zero": ErrorGoal(worst=1.0),
    "relative r2": RELATIVE,
    "relative r3": RELATIVE,
}


def wrong_zero(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """E4: zeroed at (30, -30, 30, -30) deg as if that were zero, start at (0, 0, 0, -45) deg."""
    arm = testbed.limb(ARM)
    mappings: dict[str, JointMuscleMapping] = {
        GEOMETRY: arm.mapping,
        POLYNOMIALS: testbed.polynomials_of(arm),
        NETWORK: testbed.network(arm),
    }
    filters = []
    for v in VARIANTS:
        mapping = mappings[v.mapping]
        noise = told_noise(arm, mapping, v.scale) if v.told else NOISE
        settings = EstimatorSettings(length_noise=noise, **v.settings)
        filters.append(GroupFilter(arm.group, mapping, settings))
    walks: list[list[Array]] = [[] for _ in VARIANTS]
    lines: dict[str, Array] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        q = random_walk(arm.geometry.limits, ZEROED, runs.steps, SIGMA, seed)
        lengths = arm.geometry.lengths_of(q)
        for k, (f, v) in enumerate(zip(filters, VARIANTS, strict=True)):
            runs.show((seed + k / len(VARIANTS)) / runs.seeds)
            z = measured(lengths, seed, EncoderErrors(noise=NOISE, scale=v.scale))
            f.reset(GUESS)
            if v.name == WRONG:
                f.zero(z[0], np.zeros(len(ARM)))
            estimate = np.array([f.step(row) for row in z])
            walks[k].append(estimate - q)
            if seed == 0 and v.name in SHOWN:
                lines[v.name], first = estimate, q
    rows = [
        ResultRow(v.name, ARM, np.array([tail(e) for e in errors]), goal=GOALS.get(v.name))
        for v, errors in zip(VARIANTS, walks, strict=True)
    ]
    source = "absolute stays 'about 30 deg' off, relative ends 'almost the same' (figures 8, 9)"
    measure = (
        "mean absolute error of the last fifth; lengths with 0.1 mm of noise; filters know the noise and the length "
        "error of their model; undisclosed: only the noise"
    )
    trace = Trace(
        "zeroed at (30, −30, 30, −30)° instead of 0°; the estimate starts at (0, 0, 0, −45)°",
        ARM,
        first,
        lines,
        spread={v.name: spread(e) for v, e in zip(VARIANTS, walks, strict=True) if v.name in (*SHOWN, *STRIP)},
        of=f"error of {len(ARM)} joints, {walks_of(runs)}",
    )
    return ExperimentResult("E4", "wrong zero", source, measure, tuple(rows), (), (trace,))


def told_noise(arm: Limb, mapping: JointMuscleMapping, scale: float) -> float:
    """Length noise that a filter is told: that of the encoders, the misfit of its mapping, and what factors on the
    lengths with deviation `scale` make of lengths since zero, root mean square [m]."""
    misfit = mapping.fit.rms if mapping.fit else 0.0
    lengths = arm.geometry.lengths_of(random_postures(arm.geometry.limits, POSTURES))
    return float(np.sqrt(NOISE**2 + misfit**2 + scale**2 * np.mean(lengths**2)))
