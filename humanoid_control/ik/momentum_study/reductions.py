"""T-27 to T-31 of the specification: by how much each method lowers vertical momentum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from humanoid_control.ik.momentum_methods import MU
from humanoid_control.ik.momentum_study.claim import Claim, Part, decide, lower_by
from humanoid_control.ik.momentum_study.lab import DELTAS, Lab
from humanoid_control.ik.momentum_walkers import SwingWalker

AT_LEAST = 15.0  # [%] for the source's "about 20 %"
WITHIN = 10.0  # [points] for its other percentages
LENGTHS = (0.5, 0.75, 1.0, 1.25)  # of the lab's step


def _against(lab: Lab, method: str, reference: str) -> dict[str, float]:
    ours, theirs = lab.outcome(method).z, lab.outcome(reference).z
    return {
        "L_z_lower_%": lower_by(ours.peak_to_peak, theirs.peak_to_peak),
        "rate_lower_%": lower_by(ours.rate_peak_to_peak, theirs.rate_peak_to_peak),
    }


def _tracking(lab: Lab, method: str) -> list[Part]:
    n = _against(lab, method, lab.reference())
    n["beyond_range_deg"] = round(float(np.degrees(max(lab.outcome(method).z.beyond_limit, 0.0))), 2)
    reached = min(n["L_z_lower_%"], n["rate_lower_%"]) >= AT_LEAST
    depends = f"how much depends on mu, here {MU:g} kg m^2" if method.endswith("damped") else ""
    return [Part(f"{method} against {lab.reference()}", decide(reached), n, depends)]


def _longer_steps(lab: Lab) -> list[Part]:
    gains, ratios, speeds = {}, {}, {}
    for share in LENGTHS:
        gait = replace(lab.gait, step_length=round(share * lab.gait.step_length, 4))
        one = lab.outcome(lab.best_tracking(), gait=gait).z.peak_to_peak
        zero = lab.outcome("method 0 x", gait=gait).z.peak_to_peak
        full = lab.outcome("method 0", gait=gait)
        assert isinstance(full.walker, SwingWalker)
        label = f"{gait.step_length:g}_m"
        gains[f"L_z_lower_%_{label}"] = lower_by(one, zero)
        ratios[f"levers_{label}"] = round(full.walker.singular, 4)
        speeds[f"speed_{label}"] = round(full.z.speed_share, 2)
    values, levers = list(gains.values()), list(ratios.values())
    degrades = levers == sorted(levers, reverse=True) and list(speeds.values())[-1] > 1.0
    return [
        Part("the benefit grows with the length of the step", decide(values == sorted(values)), gains),
        Part("method 0 drives the arms out of their reach in long steps", decide(degrades), ratios | speeds),
    ]


def _slower(lab: Lab) -> list[Part]:
    gait = replace(lab.gait, step_time=1.25 * lab.gait.step_time)
    one, zero = (lab.outcome(m, gait=gait).z for m in (lab.best_tracking(), "method 0 x"))
    n = {"torque_left_lower_%": lower_by(one.torque_left, zero.torque_left)}
    n["torque_right_lower_%"] = lower_by(one.torque_right, zero.torque_right)
    return [Part(f"{lab.best_tracking()}, steps of {gait.step_time:g} s", decide(min(n.values()) > 0), n)]


def _weighting(lab: Lab) -> list[Part]:
    still = lab.outcome("still").z
    z = lab.outcome(f"method 2 {DELTAS[0]:g}").z
    L = lower_by(z.peak_to_peak, still.peak_to_peak)
    torque = lower_by(max(z.torque_left, z.torque_right), max(still.torque_left, still.torque_right))
    reached = [lower_by(lab.outcome(f"method 2 {d:g}").z.peak_to_peak, still.peak_to_peak) for d in DELTAS]
    enough = [d for d, r in zip(DELTAS, reached, strict=True) if r >= 40.0]
    sweep = {f"L_z_lower_%_delta_{d:g}": r for d, r in zip(DELTAS, reached, strict=True)}
    seen = f"40 % is reached at a delta of {enough[0]:g} or less" if enough else "no delta of the sweep reaches 40 %"
    return [
        Part("both are lower", decide(min(L, torque) > 0), {"L_z_lower_%": L, "torque_lower_%": torque}),
        Part("L_z by 40 %, within 10 points", decide(abs(L - 40) <= WITHIN), sweep, seen),
        Part("torque by 15 %, within 10 points", decide(abs(torque - 15) <= WITHIN), {"torque_lower_%": torque}),
    ]


def _first_or_second(lab: Lab) -> list[Part]:
    one, two = lab.outcome(lab.best_tracking()).z, lab.outcome(f"method 2 {DELTAS[0]:g}").z
    keys = ("peak_to_peak", "rms", "rate_peak_to_peak", "rate_rms")
    n = {f"{k}_lower_%": lower_by(getattr(one, k), getattr(two, k)) for k in keys}
    runs = {d: lab.outcome(f"method 2 {d:g}").z for d in DELTAS}
    inside = {d: z for d, z in runs.items() if z.beyond_limit <= 0}
    best = min(inside, key=lambda d: inside[d].peak_to_peak)
    tuned = {"delta": best, "method_1": round(one.peak_to_peak, 3), "method_2": round(inside[best].peak_to_peak, 3)}
    return [
        Part("with the source's delta", decide(min(n.values()) > 0), n),
        Part("with the best delta that keeps every range", decide(one.peak_to_peak < inside[best].peak_to_peak), tuned),
    ]


T27 = Claim(
    "T-27",
    "Method 1 lowers the peaks of vertical momentum and of its rate by about 20 % against method 0",
    "peak-to-peak of both lower by at least 15 %, in the mode of method 1 that lowers L_z most and keeps joint ranges",
    lambda lab: _tracking(lab, lab.best_tracking()),
)
T27_PRINTED = Claim(
    "T-27 as printed",
    "The same with the normalisation of eq. (7.9), its rates clamped",
    "peak-to-peak of both lower by at least 15 %",
    lambda lab: _tracking(lab, "method 1 thesis"),
    "eq. (7.9) divides by |J_r|^3: where |J_r| is below 1 kg m^2 it asks for 1 / |J_r| times what cancels (E-19)",
)
T28 = Claim(
    "T-28",
    "The benefit of method 1 grows with step length; method 0 meets singularities in long steps",
    "reduction of L_z against method 0 along x rises with each longer step; levers of method 0's rows fall with each, "
    "and the longest asks for more than a joint's speed limit",
    _longer_steps,
    "in per cent it does not; what is taken away does grow",
)
T29 = Claim(
    "T-29",
    "Method 1 lowers the vertical contact torque of both feet at 1.4 km/h (no number given)",
    "peak-to-peak of the torque lower on both feet than with method 0 along x, with steps a quarter longer in time",
    _slower,
)
T30 = Claim(
    "T-30",
    "Method 2 with delta 0.5 lowers vertical momentum by about 40 % and the torque's peaks by about 15 %",
    "both lower than with still arms, L_z by 30 to 50 %, torque by 5 to 25 %",
    _weighting,
    "delta weighs rates against momentum, so what it does depends on the inertia of the arms, which is estimated here",
)
T31 = Claim(
    "T-31",
    "Method 1 works better than method 2",
    "lower peak-to-peak and RMS of L_z and of its rate than with delta 0.5, and lower peak-to-peak of L_z than with "
    "the best delta of the sweep; collision avoidance on",
    _first_or_second,
    "tuned, the two do the same: both are damped least squares for the same arms",
)
