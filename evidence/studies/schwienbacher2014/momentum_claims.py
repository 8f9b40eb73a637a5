"""Claims about angular momentum in walking (Schwienbacher 2014, T-27 to T-35), each with the rule that judges it.

Reductions of vertical momentum by each method, then stability, references, the inverse and collision avoidance; and one
claim about the constrained solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evidence.studies.report import FAILS, Part, decide, overall
from evidence.studies.schwienbacher2014.momentum_sweep import PUBLISHED, best, sweep
from evidence.studies.schwienbacher2014.momentum_walkers import FreeJointGains, SwingWalker, TrackingWalker
from evidence.studies.schwienbacher2014.momentum_walks import DELTAS, WalkingLab, find_gait
from humanoid_control.ik.null_space.momentum_tracking import MU, weighting_inverse
from humanoid_control.kinematics.centroidal import inertia_about_center
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.walking import MomentumReference


@dataclass(frozen=True)
class MomentumClaim:
    """A statement as an experiment.

    Attributes:
        name: T-27 to T-35, or 'constrained'.
        statement: with the published number.
        rule: by which it holds, and by which it cannot be decided.
        experiment: measures, part by part.
        reason: the most likely cause where it does not hold.
    """

    name: str
    statement: str
    rule: str
    experiment: Callable[[WalkingLab], list[Part]]
    reason: str = ""

    def judge(self, lab: WalkingLab) -> MomentumJudgement:
        """Run the experiment: the claim fails with any part, and is open while any is open."""
        parts = self.experiment(lab)
        verdict = overall(parts)
        seen = [p.seen for p in parts if p.seen]
        reasons = [self.reason] * bool(verdict == FAILS and self.reason) + seen
        return MomentumJudgement(self, tuple(parts), verdict, "; ".join(reasons))


@dataclass(frozen=True)
class MomentumJudgement:
    """Verdict on a claim for one robot; `reason` may be empty."""

    claim: MomentumClaim
    parts: tuple[Part, ...]
    verdict: str
    reason: str


def lower_by(value: float, reference: float) -> float:
    """Reduction of a value against a reference [%], rounded for the report."""
    return round(100.0 * (1.0 - value / reference), 1)


# -------- T-27 to T-31: reductions of vertical momentum

AT_LEAST = 15.0  # [%] for the published "about 20 %"
WITHIN = 10.0  # [points] for the other percentages
SAME = 0.02  # share of what still arms have by which tuned methods have to differ
NUMBERS = ("peak_to_peak", "rms", "rate_peak_to_peak", "rate_rms")
LENGTHS = (0.5, 0.75, 1.0, 1.25)  # of the lab's step


def _against(lab: WalkingLab, method: str, reference: str) -> dict[str, float]:
    z, z_reference = lab.outcome(method).z, lab.outcome(reference).z
    return {
        "L_z_lower_%": lower_by(z.peak_to_peak, z_reference.peak_to_peak),
        "rate_lower_%": lower_by(z.rate_peak_to_peak, z_reference.rate_peak_to_peak),
    }


def _tracking(lab: WalkingLab, method: str) -> list[Part]:
    n = _against(lab, method, lab.reference())
    n["beyond_range_deg"] = round(float(np.degrees(max(lab.outcome(method).z.beyond_limit, 0.0))), 2)
    reached = min(n["L_z_lower_%"], n["rate_lower_%"]) >= AT_LEAST
    depends = f"the amount depends on mu, here {MU:g} kg m^2" if method.endswith("damped") else ""
    return [Part(f"{method} against {lab.reference()}", decide(reached), n, depends)]


def _longer_steps(lab: WalkingLab) -> list[Part]:
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
        Part("the benefit grows with step length", decide(values == sorted(values)), gains),
        Part("method 0 moves the arms out of their reach in long steps", decide(degrades), ratios | speeds),
    ]


def _slower(lab: WalkingLab) -> list[Part]:
    gait = replace(lab.gait, step_time=1.25 * lab.gait.step_time)
    one, zero = (lab.outcome(m, gait=gait).z for m in (lab.best_tracking(), "method 0 x"))
    n = {"torque_left_lower_%": lower_by(one.torque_left, zero.torque_left)}
    n["torque_right_lower_%"] = lower_by(one.torque_right, zero.torque_right)
    return [Part(f"{lab.best_tracking()}, steps of {gait.step_time:g} s", decide(min(n.values()) > 0), n)]


def _weighting_reductions(lab: WalkingLab) -> list[Part]:
    still = lab.outcome("still").z
    z = lab.outcome(f"method 2 {DELTAS[0]:g}").z
    L = lower_by(z.peak_to_peak, still.peak_to_peak)
    torque = lower_by(max(z.torque_left, z.torque_right), max(still.torque_left, still.torque_right))
    reached = [lower_by(lab.outcome(f"method 2 {d:g}").z.peak_to_peak, still.peak_to_peak) for d in DELTAS]
    enough = [d for d, r in zip(DELTAS, reached, strict=True) if r >= 40.0]
    by_delta = {f"L_z_lower_%_delta_{d:g}": r for d, r in zip(DELTAS, reached, strict=True)}
    seen = f"40 % is reached at a delta of {enough[0]:g} or less" if enough else "no delta of the sweep reaches 40 %"
    return [
        Part("both are lower", decide(min(L, torque) > 0), {"L_z_lower_%": L, "torque_lower_%": torque}),
        Part("L_z by 40 %, within 10 points", decide(abs(L - 40) <= WITHIN), by_delta, seen),
        Part("torque by 15 %, within 10 points", decide(abs(torque - 15) <= WITHIN), {"torque_lower_%": torque}),
    ]


def _first_or_second(lab: WalkingLab) -> list[Part]:
    one, two = lab.outcome(lab.best_tracking()).z, lab.outcome(f"method 2 {DELTAS[0]:g}").z
    n = {f"{k}_lower_%": lower_by(getattr(one, k), getattr(two, k)) for k in NUMBERS}
    runs = sweep(lab)
    first, second = best(runs, "method 1"), best(runs, "method 2")
    if first is None or second is None:
        return [Part("each at its best", decide(False, False), {})]
    tuned = {"method_1": round(first.z.peak_to_peak, 3), "method_2": round(second.z.peak_to_peak, 3)}
    reached = first.z.peak_to_peak < second.z.peak_to_peak
    return [
        Part("with the published delta", decide(min(n.values()) > 0), n),
        Part(f"each at its best: {first.name}; {second.name}", decide(reached), tuned),
    ]


T27 = MomentumClaim(
    "T-27",
    "Method 1 lowers the peaks of vertical momentum and of its rate by about 20 % against method 0",
    "peak-to-peak of both lower by at least 15 %, in the mode of method 1 that lowers L_z most and keeps joint ranges",
    lambda lab: _tracking(lab, lab.best_tracking()),
)
T27_PRINTED = MomentumClaim(
    "T-27 as printed",
    "The same with the normalisation of eq. (7.9), its rates clamped",
    "peak-to-peak of both lower by at least 15 %",
    lambda lab: _tracking(lab, "method 1 thesis"),
    "eq. (7.9) divides by |J_r|^3: where |J_r| is below 1 kg m^2 it commands 1 / |J_r| times the cancelling rate "
    "(E-19)",
)
T28 = MomentumClaim(
    "T-28",
    "The benefit of method 1 grows with step length; method 0 meets singularities in long steps",
    "reduction of L_z against method 0 along x rises with each longer step; levers of the rows of method 0 decrease "
    "with each, and the longest exceeds a joint speed limit",
    _longer_steps,
    "relative to the total it does not; the absolute reduction grows",
)
T29 = MomentumClaim(
    "T-29",
    "Method 1 lowers the vertical contact torque of both feet at 1.4 km/h (no number given)",
    "peak-to-peak of the torque lower on both feet than with method 0 along x, with steps a quarter longer in time",
    _slower,
)
T30 = MomentumClaim(
    "T-30",
    "Method 2 with delta 0.5 lowers vertical momentum by about 40 % and the torque's peaks by about 15 %",
    "both lower than with still arms, L_z by 30 to 50 %, torque by 5 to 25 %",
    _weighting_reductions,
    "delta weights rates against momentum, so its effect depends on the inertia of the arms, which is estimated here",
)
T31 = MomentumClaim(
    "T-31",
    "Method 1 works better than method 2",
    "lower peak-to-peak and RMS of L_z and of its rate than with delta 0.5, and, each with its best settings of the "
    "sweep within all limits, lower peak-to-peak of L_z; collision avoidance on",
    _first_or_second,
)


# -------- T-32 to T-35: soundness

QUICK = 0.625  # of the step time: a walk whose momentum no arms can cancel
INWARD = math.radians(18)  # turn of the arms' rest posture into the body
OFF, ON = FreeJointGains(activation=0.0), FreeJointGains(activation=0.04)
WITH_LONG_ARMS = "hrp2"
FEW = 4  # cycles
MILLIMETRE = 1e-3


def _saturating(lab: WalkingLab, mode: str) -> list[Part]:
    gait = replace(lab.gait, step_time=QUICK * lab.gait.step_time)
    found = lab.outcome(f"method 1 {mode} unclamped", gait=gait)
    assert isinstance(found.walker, TrackingWalker)
    n = {
        "asked_of_speed_limit": round(found.walker.rate_demand, 2),
        "left_over_kgm2/s": round(found.walker.residual, 3),
        "differs_from_cycle_before": round(found.z.repeats, 3),
    }
    saturates = found.walker.residual > 0.05 * lab.outcome("still", gait=gait).z.peak_to_peak
    stable = found.walker.rate_demand <= 1.0 and found.z.repeats < 0.1 * found.z.peak_to_peak
    return [Part(f"mode {mode}, steps of {gait.step_time:g} s, no clamp", decide(stable, saturates), n)]


def _reference(lab: WalkingLab) -> list[Part]:
    inertia = float(inertia_about_center(lab.robot.model, lab.robot.data, lab.robot.q("neutral"))[2, 2])
    T, turn = lab.gait.step_time, math.radians(10)
    straight, curve = MomentumReference(inertia), MomentumReference(inertia)
    straight.begin_step(0.0, T)
    end, slope, jump = abs(straight.value(T)), 0.0, 0.0
    for k, angle in enumerate((0.0, turn, turn, -turn, 0.0)):
        before = (curve.step.value(k * T), curve.step.rate(k * T)) if curve.step else (0.0, 0.0)
        step = curve.begin_step(k * T, T, angle)
        jump = max(jump, abs(step.value(k * T) - before[0]), abs(step.rate(k * T) - before[1]))
        end = max(end, abs(step.value((k + 1) * T) - inertia * angle / T))
        slope = max(slope, abs(step.rate((k + 1) * T)))
    n = {"I_zz_kgm2": round(inertia, 4), "end_error": end, "end_slope": slope, "jump": jump}
    return [Part("straight, into a curve and out of it", decide(max(end, slope, jump) < 1e-9), n)]


def _inverse(lab: WalkingLab) -> list[Part]:
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(200):
        J = rng.normal(size=(1, lab.robot.nv))
        for delta in DELTAS:
            W = delta * np.eye(lab.robot.nv) + J.T @ J
            worst = max(worst, float(np.abs(weighting_inverse(J, delta) - np.linalg.inv(W)).max()))
    return [Part("1200 random rows and deltas", decide(worst < 1e-10), {"largest_error": worst})]


def _inward(lab: WalkingLab) -> WalkingLab:
    """The lab, or that of a robot whose arms reach its body, where the lab's do not."""
    free = lab.outcome(lab.best_tracking(), gains=OFF, arms_in=INWARD, cycles=FEW).z.clearance
    if free < 0:
        return lab
    other = load_robot(WITH_LONG_ARMS, "floating")
    return WalkingLab(other, find_gait(other)[0], 2 * lab.dt)


def _together(lab: WalkingLab) -> list[Part]:
    one, lab = lab.best_tracking(), _inward(lab)
    still = lab.outcome("still", gains=ON, arms_in=INWARD, cycles=FEW).z.peak_to_peak
    touching = lab.outcome(one, gains=OFF, arms_in=INWARD, cycles=FEW).z.clearance
    both = lab.outcome(one, gains=ON, arms_in=INWARD, cycles=FEW).z
    n = {
        "clearance_off_mm": round(1000 * touching, 1),
        "clearance_on_mm": round(1000 * both.clearance, 1),
        "L_z_lower_%": lower_by(both.peak_to_peak, still),
    }
    works = both.clearance > 0 and n["L_z_lower_%"] >= 15.0
    return [Part(f"{one} on {lab.robot.name}, arms' posture turned in by 18 deg", decide(works, touching < 0), n)]


def _defeated(lab: WalkingLab) -> list[Part]:
    lab = _inward(lab)
    least = {d: lab.outcome(f"method 2 {d:g}", gains=ON, arms_in=INWARD, cycles=FEW).z.clearance for d in DELTAS}
    n = {f"clearance_mm_delta_{d:g}": round(1000 * c, 1) for d, c in least.items()}
    beaten = min(least.values()) <= 0
    return [Part(f"method 2 on {lab.robot.name}, arms' posture turned in by 18 deg", decide(beaten, beaten), n)]


def _constrained(lab: WalkingLab) -> list[Part]:
    runs = sweep(lab)
    good = [r for r in runs if not r.broken]
    own, others = [r for r in good if r.family == "constrained"], [r for r in good if r.family in PUBLISHED]
    chosen = best(runs, "constrained")
    if chosen is None or not others:
        return [Part("both sides keep the limits", decide(False, False), {})]
    parts, still = [], lab.outcome("still").z
    for key in NUMBERS:
        mine, theirs = (min(side, key=lambda r: float(getattr(r.z, key))) for side in (own, others))
        a, b = (float(getattr(r.z, key)) for r in (mine, theirs))
        n = {"constrained": round(a, 3), "published": round(b, 3)}
        n |= {
            "arms_constrained_rad/s": round(mine.z.arm_speed, 2),
            "arms_published_rad/s": round(theirs.z.arm_speed, 2),
        }
        counts = abs(a - b) > SAME * float(getattr(still, key))
        seen = "" if counts else "tuned, both leave almost no momentum"
        parts.append(Part(f"{key}, {mine.name}, below {theirs.name}", decide(a < b, counts), n, seen))
    z = chosen.z
    n = {
        "foot_mm": round(1000 * z.foot_error, 3),
        "clearance_mm": round(1000 * z.clearance, 1),
        "beyond_range_deg": round(float(np.degrees(max(z.beyond_limit, 0.0))), 3),
        "of_speed_limit": round(z.speed_share, 2),
    }
    kept = z.foot_error < MILLIMETRE and z.clearance > 0 and z.beyond_limit <= 1e-9 and z.speed_share <= 1 + 1e-9
    return [*parts, Part("soles to 1 mm, ranges, speeds, no contact", decide(kept), n)]


T32 = MomentumClaim(
    "T-32",
    "Method 1 is stable although the arms cannot reach the commanded rates",
    "in a walk with more than 5 % of its momentum uncancelled, in the modes unit and damped and without a clamp, the "
    "commanded rates stay below the speed limits and the walk repeats to 10 %",
    lambda lab: [*_saturating(lab, "unit"), *_saturating(lab, "damped")],
)
T32_PRINTED = MomentumClaim(
    "T-32 as printed",
    "The same with the normalisation of eq. (7.9)",
    "the same, in the mode thesis",
    lambda lab: _saturating(lab, "thesis"),
    "eq. (7.9) commands 1 / |J_r| times the cancelling rate: with light arms only the clamp bounds it (E-19)",
)
T33 = MomentumClaim(
    "T-33",
    "The reference ends at zero on a straight path and at I_zz dphi / T in a curve, with zero slope, and is "
    "continuous at step changes",
    "all to 1e-9, over five steps",
    _reference,
)
T34 = MomentumClaim("T-34", "The rank-one inverse is the inverse", "to 1e-10", _inverse)
T35 = MomentumClaim(
    "T-35",
    "Collision avoidance and method 1 work together",
    "with an arm posture that touches the body without avoidance: clear with it, and L_z at least 15 % lower; if the "
    "arms of a robot do not reach its body, HRP-2 is tested",
    _together,
)
T35_SECOND = MomentumClaim(
    "T-35 method 2",
    "Method 2 may defeat collision avoidance",
    "holds if it touches in that walk, with avoidance, at a delta of the sweep; undecided otherwise",
    _defeated,
)
CONSTRAINED = MomentumClaim(
    "constrained",
    "The constrained solver with momentum as a task lowers L_z and its rate more than every published method",
    "each at its best within the same limits on ranges, speeds, accelerations and distances: its lowest of each of the "
    "four numbers below the lowest of all runs of methods 0, 1 and 2 in the sweep, undecided if they differ by less "
    "than 2 % of the value with still arms; and soles kept to 1 mm",
    _constrained,
    "tuned, the null-space methods cancel as much: all use the same arms, and the remainder depends on the permitted "
    "swing",
)

CLAIMS: dict[str, MomentumClaim] = {
    c.name: c for c in (T27, T27_PRINTED, T28, T29, T30, T31, T32, T32_PRINTED, T33, T34, T35, T35_SECOND, CONSTRAINED)
}
