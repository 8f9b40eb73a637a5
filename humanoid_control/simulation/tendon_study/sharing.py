"""E3: lengths with noise and spikes; angles shared between groups beside each group for itself."""

from __future__ import annotations

from math import radians
from typing import Any

import numpy as np

from humanoid_control.simulation.tendon_study.finding import Finding, Row, Runs, Trace, settled
from humanoid_control.simulation.tendon_study.lab import ARM, TendonLab, measured
from humanoid_control.tendons.encoders import EncoderErrors
from humanoid_control.tendons.filter_settings import FilterSettings
from humanoid_control.tendons.mapping import Array
from humanoid_control.tendons.tendon_estimator import TendonEstimator

SIGMA = radians(0.5)
HELD = SIGMA  # what an angle may stray in one step where it is not predicted from the tendons
ERRORS = EncoderErrors(noise=5e-4, spikes=0.02, spike=5e-3)
AS_PRINTED: dict[str, Any] = {"gate": 0.0, "limits": "off"}  # the source has neither
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("conventional, plain inverse", {"share": False, "cutoff": 0.0, **AS_PRINTED}),
    ("shared, plain inverse", {"share": True, "cutoff": 0.0, **AS_PRINTED}),
    ("conventional, cut-off 1e-3", {"share": False, **AS_PRINTED}),
    ("shared, cut-off 1e-3", {"share": True, **AS_PRINTED}),
    ("shared, default: gate, soft limits", {"share": True}),
    ("shared, default, angles held", {"share": True, "predict": "hold", "step_noise": HELD, "borrowed_noise": HELD}),
)
SHOWN = (0, 3, 5)


def shared_and_conventional(lab: TendonLab, runs: Runs) -> Finding:
    """E3: the left arm's own angles and those it borrows, the whole body moving."""
    estimators = [
        TendonEstimator(
            lab.groups, lab.mappings, FilterSettings("absolute", length_noise=ERRORS.noise, borrowed_start=0.1, **more)
        )
        for _, more in VARIANTS
    ]
    joints, muscles = estimators[0].joint_names, estimators[0].muscle_names
    length = [lab.whole.tendon_names.index(t) for t in muscles]
    arms = [next(f for f in e.filters if f.group.own == ARM) for e in estimators]
    group, limits = arms[0].group, arms[0].mapping.limits
    angle = [lab.whole.joint_names.index(j) for j in group.joints]
    own = len(group.own)
    errors: list[list[Array]] = [[] for _ in VARIANTS]
    jitter, outside = np.zeros((len(VARIANTS), runs.seeds)), np.zeros((len(VARIANTS), runs.seeds))
    lines: dict[str, Array] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        q, lengths = lab.walk(runs.steps, SIGMA, seed)
        z = measured(lengths[:, length], seed, ERRORS)
        truth = q[:, angle]
        for k, (estimator, arm) in enumerate(zip(estimators, arms, strict=True)):
            runs.show((seed + k / len(VARIANTS)) / runs.seeds)
            estimator.reset({j: q[0, lab.whole.joint_names.index(j)] for j in joints})
            estimate = np.empty_like(truth)
            for row, lengths_now in enumerate(z):
                estimator.step(lengths_now)
                estimate[row] = arm.theta
            error = estimate - truth
            errors[k].append(settled(error))
            jitter[k, seed] = np.sqrt(np.mean(np.diff(error[:, :own], axis=0) ** 2))
            borrowed = estimate[:, own:]
            beyond = (borrowed < limits[own:, 0]) | (borrowed > limits[own:, 1])
            outside[k, seed] = np.mean(beyond.any(axis=1))
            if seed == 0 and k in SHOWN:
                lines[VARIANTS[k][0]], first = estimate[:, :own], truth[:, :own]
    rows = [Row(name, group.joints, np.array(e)) for (name, _), e in zip(VARIANTS, errors, strict=True)]
    table = [
        {
            "filter": name,
            "jitter of own deg/step": round(float(np.degrees(np.median(jitter[k]))), 3),
            "worst": round(float(np.degrees(jitter[k].max())), 3),
            "borrowed beyond limits %": round(100 * float(np.median(outside[k])), 1),
        }
        for k, (name, _) in enumerate(VARIANTS)
    ]
    source = "conventional estimates vibrate, the proposed are stable and smooth; no number (figure 7, hardware)"
    measure = "root mean square error without the first sixth; noise 0.5 mm, spikes of 5 mm in 2 % of the lengths"
    trace = Trace("noise and spikes (figure 7)", ARM, first, lines)
    return Finding("E3", "shared angles beside none shared", source, measure, tuple(rows), tuple(table), (trace,))
