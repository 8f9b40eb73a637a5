"""Walks by name, each played once.

Also here:

* A claim of the source about angular momentum, the rule by which it is judged, and what was measured.
* T-27 to T-31 of the specification: by how much each method lowers vertical momentum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.null_space.momentum_tracking import MU
from humanoid_control.robots.robot import Robot
from humanoid_control.studies.schwienbacher2014.momentum_walkers import (
    ConstrainedWalker,
    FreeJointGains,
    Measures,
    NullSpaceWalker,
    Replay,
    SwingWalker,
    TrackingWalker,
    Walker,
    WeightingWalker,
    measure,
    replay,
)
from humanoid_control.studies.verdict import FAILS, HOLDS, OPEN, Part, decide
from humanoid_control.walking import GaitSettings, WalkTask, leg_length

__all__ = ["FAILS", "HOLDS", "OPEN", "Claim", "Judgement", "Part", "decide", "lower_by"]


# -------- Walks by name, each played once

SOURCE_LEG = 0.96  # [m] from hip to sole of the robot on which the source's steps were walked
LONGEST_STEP = 1.2  # [s]
DELTAS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
ALL_AXES = (True, True, True)

Factory = Callable[[Robot, WalkTask, FreeJointGains], Walker]


def _weighting(delta: float) -> Factory:
    return lambda r, w, g: WeightingWalker(r, w, g, delta)


METHODS: dict[str, Factory] = {
    "still": lambda r, w, g: NullSpaceWalker(r, w, g),
    "method 0": lambda r, w, g: SwingWalker(r, w, g),
    "method 0 x": lambda r, w, g: SwingWalker(r, w, g, axes=(True, False, False)),
    "method 1 thesis": lambda r, w, g: TrackingWalker(r, w, g, "thesis"),
    "method 1 unit": lambda r, w, g: TrackingWalker(r, w, g, "unit"),
    "method 1 damped": lambda r, w, g: TrackingWalker(r, w, g, "damped"),
    **{f"method 2 {d:g}": _weighting(d) for d in DELTAS},
    "ours": lambda r, w, g: ConstrainedWalker(r, w),
    "ours xyz": lambda r, w, g: ConstrainedWalker(r, w, ALL_AXES),
    "method 1 thesis unclamped": lambda r, w, g: TrackingWalker(r, w, g, "thesis", clamp=False),
    "method 1 unit unclamped": lambda r, w, g: TrackingWalker(r, w, g, "unit", clamp=False),
    "method 1 damped unclamped": lambda r, w, g: TrackingWalker(r, w, g, "damped", clamp=False),
}
TRACKING = ("method 1 thesis", "method 1 unit", "method 1 damped")
MAIN = ("still", "method 0", "method 0 x", *TRACKING, *(f"method 2 {d:g}" for d in DELTAS), "ours")


@dataclass(frozen=True)
class Outcome:
    """A walk and its numbers.

    Attributes:
        axes: measures of the momentum about x, y and z.
        run: the walk itself.
        walker: who walked, with what it noticed on the way.
    """

    axes: tuple[Measures, Measures, Measures]
    run: Replay
    walker: Walker

    @property
    def z(self) -> Measures:
        """Measures of the vertical momentum."""
        return self.axes[2]


class Lab:
    """One robot and its step; every walk is played when it is first asked for.

    Attributes:
        robot: with floating base.
        gait: the step of the walks, unless one is asked for with another.
    """

    def __init__(self, robot: Robot, gait: GaitSettings, dt: float = 0.004) -> None:
        self.robot, self.gait, self.dt = robot, gait, dt
        self._known: dict[object, Outcome] = {}

    def outcome(
        self,
        method: str,
        free: str = "arms",
        gait: GaitSettings | None = None,
        gains: FreeJointGains | None = None,
        arms_in: float = 0.0,
        cycles: int = 6,
    ) -> Outcome:
        """The outcome of a walk.

        Args:
            method: one of METHODS.
            free: one of FREE, the joints that may reduce momentum.
            gait: default: the lab's.
            gains: of the costs of free joints, in the source's methods.
            arms_in: how far the arms' posture is turned towards the body, at both shoulders [rad].
            cycles: gait cycles to play.
        """
        gait, gains = gait or self.gait, gains or FreeJointGains()
        key = (method, free, gait, gains, arms_in, cycles)
        if key not in self._known:
            robot = self.robot
            walk = WalkTask(robot, gait, free, self.dt)
            for side in "lr" if arms_in else "":
                joint = robot.joint_index(robot.joint_for(f"{side}_shoulder_abduction") or f"{side}_shoulder_abduction")
                walk.posture[joint] = max(walk.posture[joint] - arms_in, robot.lower[joint])
            walker = METHODS[method](robot, walk, gains)
            run = replay(robot, walk, walker, cycles)
            x, y, z = (measure(robot, walk, run, axis) for axis in range(3))
            self._known[key] = Outcome((x, y, z), run, walker)
        return self._known[key]

    def best_tracking(self) -> str:
        """The mode of method 1 with the least peak-to-peak of L_z on the lab's step, of those that keep every range."""
        found = {m: self.outcome(m).z for m in TRACKING}
        inside = {m: z for m, z in found.items() if z.beyond_limit <= 0} or found
        return min(inside, key=lambda m: inside[m].peak_to_peak)

    def reference(self) -> str:
        """Method 0, in three directions as in the source, or along x where that drives the arms out of their reach."""
        return "method 0" if self.outcome("method 0").z.speed_share <= 1 else "method 0 x"


def find_gait(robot: Robot, length: float | None = None, time: float | None = None) -> tuple[GaitSettings, list[str]]:
    """A step that the robot's legs can take, and what had to be changed for it.

    The source's step, 0.4 m in 0.8 s, is scaled by the length of the legs. Where the baseline then leaves a joint's
    range, touches itself or is faster than 90 % of a speed limit, the step becomes 10 % shorter and lower, or 0.1 s
    longer, again and again; a step of 1.2 s becomes shorter only.

    Args:
        robot: with floating base.
        length, time: [m], [s]; what is given is not changed.

    Raises:
        ConfigError: no step was found.
    """
    scale, notes = leg_length(robot) / SOURCE_LEG, []
    wanted = 0.4 * scale if length is None else length
    gait = GaitSettings(round(wanted, 3), 0.8 if time is None else time, lift=round(0.05 * scale, 3))
    for _ in range(25):
        try:
            z = Lab(robot, gait, 0.008).outcome("still", cycles=3).z
            slow, inside = z.speed_share <= 0.9, z.beyond_limit <= 0 and z.clearance > 0
        except (ConfigError, np.linalg.LinAlgError):
            slow, inside = True, False
        if (inside or length is not None) and (slow or time is not None):
            break
        shorter = not inside or gait.step_time >= LONGEST_STEP - 1e-9 or time is not None
        if shorter and length is None:
            gait = replace(gait, step_length=round(0.9 * gait.step_length, 3), lift=round(0.9 * gait.lift, 4))
        else:
            gait = replace(gait, step_time=round(gait.step_time + 0.1, 3))
    else:
        raise ConfigError(f"{robot.name}: no step was found that its legs can take")
    if gait.step_length != round(wanted, 3):
        notes.append(f"step shortened from {wanted:.3f} m to {gait.step_length:g} m: joint ranges and speeds")
    if time is None and gait.step_time != 0.8:
        notes.append(f"step time lengthened from 0.8 s to {gait.step_time:g} s: joint speeds")
    return gait, notes


# -------- A claim of the source about angular momentum, the rule by which it is judged, and what was measured


@dataclass(frozen=True)
class Claim:
    """A statement as an experiment.

    Attributes:
        name: T-27 to T-35 of the specification, or 'ours'.
        statement: in our words, with the source's number.
        rule: when it holds and when it cannot be decided.
        experiment: measures, part by part.
        reason: the most likely cause where it does not hold.
    """

    name: str
    statement: str
    rule: str
    experiment: Callable[[Lab], list[Part]]
    reason: str = ""

    def judge(self, lab: Lab) -> Judgement:
        """Run the experiment: the claim fails with any part, and is open while any is open."""
        parts = self.experiment(lab)
        verdicts = {p.verdict for p in parts}
        verdict = FAILS if FAILS in verdicts else OPEN if OPEN in verdicts or not parts else HOLDS
        seen = [p.seen for p in parts if p.seen]
        reasons = [self.reason] * bool(verdict == FAILS and self.reason) + seen
        return Judgement(self, tuple(parts), verdict, "; ".join(reasons))


@dataclass(frozen=True)
class Judgement:
    """What a claim came to on one robot; `reason` may be empty."""

    claim: Claim
    parts: tuple[Part, ...]
    verdict: str
    reason: str


def lower_by(value: float, reference: float) -> float:
    """How much lower a value is than a reference [%], rounded for the report."""
    return round(100.0 * (1.0 - value / reference), 1)


# -------- T-27 to T-31 of the specification: by how much each method lowers vertical momentum

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


def _weighting_reductions(lab: Lab) -> list[Part]:
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
    _weighting_reductions,
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
