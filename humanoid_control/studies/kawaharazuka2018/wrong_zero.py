"""E4 of Kawaharazuka 2018: an arm that was zeroed at the wrong posture, by the absolute and by the relative filters."""

from __future__ import annotations

from math import radians
from typing import Any

import numpy as np

from humanoid_control.studies.kawaharazuka2018.result import (
    ErrorGoal,
    ExperimentResult,
    Row,
    Runs,
    Trace,
    spread,
    tail,
    walks_of,
)
from humanoid_control.studies.kawaharazuka2018.testbed import ARM, NOISE, TendonTestbed, measured
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.postures import random_walk

ZEROED, GUESS = np.radians([30.0, -30.0, 30.0, -30.0]), np.radians([0.0, 0.0, 0.0, -45.0])
SIGMA = radians(1.0)
NETWORK = "relative r2, neural mapping"
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("absolute, right zero", {"observation": "absolute"}),
    ("absolute, wrong zero", {"observation": "absolute", "gate": 0.0}),
    ("relative as printed", {"observation": "literal", "limits": "off"}),
    ("relative r1", {"observation": "r1", "step_noise": radians(0.02)}),
    ("relative r2", {"observation": "r2"}),
    ("relative r3", {"observation": "r3", "step_noise": radians(1.0)}),
    (NETWORK, {"observation": "r2"}),
)
WRONG = "absolute, wrong zero"
SHOWN, STRIP = (WRONG, "relative r2"), ("relative r1", "relative r3")
RELATIVE = ErrorGoal(median=1.0, worst=5.0)
GOALS = {
    "absolute, right zero": ErrorGoal(worst=1.0),
    "relative r2": RELATIVE,
    "relative r3": RELATIVE,
}


def wrong_zero(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """E4: zeroed at (30, -30, 30, -30) deg as if that were zero, start at (0, 0, 0, -45) deg."""
    arm = testbed.limb(ARM)
    network = testbed.network(arm)
    misfit = network.fit.rms if network.fit else 0.0
    filters = []
    for name, settings in VARIANTS:
        noise = float(np.hypot(NOISE, misfit)) if name == NETWORK else NOISE
        mapping = network if name == NETWORK else arm.mapping
        filters.append(GroupFilter(arm.group, mapping, EstimatorSettings(length_noise=noise, **settings)))
    walks: list[list[Array]] = [[] for _ in VARIANTS]
    lines: dict[str, Array] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        q = random_walk(arm.geometry.limits, ZEROED, runs.steps, SIGMA, seed)
        z = measured(arm.geometry.lengths_of(q), seed)
        for k, (f, (name, _)) in enumerate(zip(filters, VARIANTS, strict=True)):
            runs.show((seed + k / len(VARIANTS)) / runs.seeds)
            f.reset(GUESS)
            if name == WRONG:
                f.zero(z[0], np.zeros(len(ARM)))
            estimate = np.array([f.step(row) for row in z])
            walks[k].append(estimate - q)
            if seed == 0 and name in SHOWN:
                lines[name], first = estimate, q
    rows = [
        Row(name, ARM, np.array([tail(e) for e in errors]), goal=GOALS.get(name))
        for (name, _), errors in zip(VARIANTS, walks, strict=True)
    ]
    source = "absolute stays 'about 30 deg' off, relative ends 'almost the same' (figures 8, 9)"
    measure = "mean absolute error of the last fifth; lengths with 0.1 mm of noise"
    trace = Trace(
        "zeroed at (30, −30, 30, −30)° as if that were 0°, the estimate starts at (0, 0, 0, −45)°",
        ARM,
        first,
        lines,
        spread={name: spread(e) for (name, _), e in zip(VARIANTS, walks, strict=True) if name in (*SHOWN, *STRIP)},
        of=f"error of {len(ARM)} joints, {walks_of(runs)}",
    )
    return ExperimentResult("E4", "wrong zero", source, measure, tuple(rows), (), (trace,))
