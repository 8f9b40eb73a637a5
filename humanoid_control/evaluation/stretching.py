"""Whole-body clips slowed locally (`--stretch auto`), judged by the measures of the grade.

Everywhere, the pelvis turns at most 4 rad/s and joints keep their speed limits. A second is infeasible if more than a
fifth of its frames need a wrench outside soles or friction cone, or a torque beyond its limit. It is slowed only where
less infeasible time remains: slower is no cure for flight or lost balance. All other frames stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.ndimage import binary_closing

from humanoid_control.evaluation.clip_quality import ALWAYS, GRADES, MEASURES, ClipMeasures, ClipQuality
from humanoid_control.performing import DynamicMotion, FeasibilitySettings
from humanoid_control.performing.local_pace import PACE_STEP, PACE_WINDOW, Stretch, pace_for_speed, slowed, yaw_rate
from humanoid_control.performing.measures import SECOND, inner_pace, worst_part
from humanoid_control.retargeting import WholeBodyMotion
from humanoid_control.retargeting.whole_body.contacts import runs
from humanoid_control.robots import Robot

AUTO, NONE = "auto", "none"
STRETCHES = (AUTO, NONE)
"""Values of `--stretch`."""
YAW_RATE = FeasibilitySettings.yaw_rate  # [rad/s] of the pelvis
UPRIGHT = 0.5  # cosine of the pelvis' tilt below which it has no heading
RESERVE = 0.97  # of speed limits, because slowed frames lie between those of the clip
SPEED_ROUNDS, LEAST_PACE = 12, 0.1
LEVELS = (PACE_STEP, PACE_STEP**2, PACE_STEP**3)  # tried paces
MOST_INFEASIBLE = next(m.most[0] for m in MEASURES if m.key == "infeasible_percent") / 100.0  # of a second
MOST_OF_IT = 0.8  # share of the best gain; the fastest pace that reaches it is taken
KEPT = 0.9  # largest share of its infeasible time that a slowed part keeps
CHECKS = 6  # of the slowed parts together
SHORTEST = 5  # frames
FEASIBLE_PACE = 0.97  # of the feasibility pass, below which a frame counts as slowed

Row = dict[str, float | str]


@dataclass(frozen=True)
class Stretched:
    """Motion at its local pace.

    Attributes:
        motion: the given one if nothing is slowed.
        row: what was changed: slowed_percent of the clip, least_pace; and before (`_before`) and after: seconds,
            yaw_rate [rad/s], infeasible_percent, worst_second_percent, grade.
    """

    motion: WholeBodyMotion
    row: Row


def stretched(motion: WholeBodyMotion, robot: Robot) -> Stretched:
    """Slow a motion where its pelvis or joints are too fast, and where it becomes less infeasible."""
    before = _Shown(motion, robot, np.ones(len(motion.trajectory.positions)))
    after = before
    if len(before.stretch.pace) >= SHORTEST:
        after = _within_speeds(before)
        better = _within_speeds(_mended(after))
        after = better if better.grade <= after.grade else after
    row = _row(before, after.quality, after.stretch.pace < 1.0, after.stretch.pace, after.seconds, after.turning)
    return Stretched(after.motion, row)


def feasible_row(motion: WholeBodyMotion, robot: Robot, dynamic: DynamicMotion, after: ClipQuality) -> Row:
    """Return the row of a feasible motion, slowed by the same law in its pass; `motion`: as it was retargeted."""
    before, pace = _Shown(motion, robot, np.ones(len(motion.trajectory.positions))), inner_pace(dynamic)
    turning, on = pelvis_yaw_rate(dynamic.q, dynamic.rate), dynamic.playing
    slow = (pace < FEASIBLE_PACE) * pace / max(float(pace.mean()), 1e-9)  # of the clip's time, not of the result's
    return _row(before, after, slow, pace, float(on.sum()) / dynamic.rate, turning)


def stretch_notes(row: Row) -> list[str]:
    """Return a line about a slowed clip; none if it is empty or nothing is slowed."""
    if not row or not row["slowed_percent"]:
        return []
    return [
        f"slowed in {row['slowed_percent']:g} % of its time, at least pace {row['least_pace']:g}: "
        f"{row['seconds_before']:g} s became {row['seconds']:g} s; grade before: {row['grade_before']}"
    ]


def pelvis_yaw_rate(q: np.ndarray, rate: float) -> np.ndarray:
    """Return the size of the pelvis' yaw rate (T,) [rad/s]; 0 where it lies and has no heading."""
    upright = 1.0 - 2.0 * (q[:, 3] ** 2 + q[:, 4] ** 2) > UPRIGHT
    return np.where(upright, np.abs(yaw_rate(q[:, 3:7], rate)), 0.0)


def _row(
    before: _Shown, after: ClipQuality, slow: np.ndarray, pace: np.ndarray, seconds: float, turning: np.ndarray
) -> Row:
    out: Row = {"slowed_percent": round(100 * float(np.mean(slow)), 1), "least_pace": round(float(pace.min()), 2)}
    both = (("_before", before.seconds, before.turning, before.quality), ("", seconds, turning, after))
    for end, duration, rates, quality in both:
        numbers = quality.numbers
        out[f"seconds{end}"] = round(duration, 2)
        out[f"yaw_rate{end}"] = round(float(rates.max(initial=0.0)), 2)
        out[f"infeasible_percent{end}"] = round(numbers.get("infeasible_percent", 0.0), 1)
        out[f"worst_second_percent{end}"] = round(numbers.get("infeasible_worst_second_percent", 0.0), 1)
        out[f"grade{end}"] = quality.grade
    return out


class _Shown:
    """Motion at a pace (P,), with its measures."""

    def __init__(self, given: WholeBodyMotion, robot: Robot, pace: np.ndarray) -> None:
        self.given, self.robot, self.stretch = given, robot, Stretch.of(pace)

    def at(self, pace: np.ndarray) -> _Shown:
        """Return the same motion at another pace."""
        return _Shown(self.given, self.robot, pace)

    @cached_property
    def motion(self) -> WholeBodyMotion:
        s, m = self.stretch, self.given
        return WholeBodyMotion(s.trajectory(m.trajectory, self.robot), s.targets(m.targets)) if s.slowed else m

    @property
    def rate(self) -> float:
        """Frames per second [Hz]."""
        return self.given.trajectory.rate

    @property
    def seconds(self) -> float:
        """Duration [s]."""
        return len(self.motion.trajectory.positions) / self.rate

    @cached_property
    def measures(self) -> ClipMeasures:
        return ClipMeasures(self.robot, self.motion.trajectory, self.motion.targets.contacts)

    @cached_property
    def quality(self) -> ClipQuality:
        return self.measures.quality()

    @property
    def grade(self) -> int:
        """Index in GRADES."""
        return GRADES.index(self.quality.grade)

    @property
    def turning(self) -> np.ndarray:
        """Yaw rate (T,) of the pelvis [rad/s]."""
        return pelvis_yaw_rate(self.measures.q, self.rate)

    @cached_property
    def infeasible(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Clip frames (F,) with known dynamics, which are infeasible (F,), and the time [s] that each stands for."""
        d, lack = self.measures.dynamics, self.measures.lacking
        if d is None or lack is None or not len(d.frames):
            return np.zeros(0, dtype=int), np.zeros(0, dtype=bool), 0.0
        share = np.nan_to_num(d.effort_share).max(axis=1, initial=0.0)
        step = int(d.frames[1] - d.frames[0]) if len(d.frames) > 1 else 1
        return self.stretch.frames[d.frames], lack | (share > 1.0), step / self.rate

    def infeasible_time(self, begin: int = 0, end: int | None = None) -> float:
        """Return the infeasible time [s] of a part of the clip, by frames."""
        frames, bad, each = self.infeasible
        return float((bad & (frames >= begin) & (frames < (end or len(self.stretch.pace)))).sum()) * each

    def worst_second(self) -> tuple[float, int, int]:
        """Return the largest infeasible share of a second, and the clip frames between which it lies."""
        frames, bad, each = self.infeasible
        share, at = worst_part(bad, 1.0 / each)
        first = round(at / each)
        last = min(first + round(SECOND / each), len(frames)) - 1
        return share, int(frames[first]), int(frames[last]) + 1


def _within_speeds(shown: _Shown) -> _Shown:
    """Slow a motion until the pelvis and all joints keep their speeds."""
    for _ in range(SPEED_ROUNDS):
        t = shown.motion.trajectory
        joints = np.abs(np.diff(t.positions, axis=0)) * t.rate / shown.robot.velocity
        share = np.append(joints.max(axis=1, initial=0.0), 0.0)
        turns = shown.turning
        fast = turns > YAW_RATE
        if not fast.any() and (share <= 1.0 + ALWAYS).all():
            break
        required = np.where(fast, pace_for_speed(turns, RESERVE * YAW_RATE), 1.0)
        required = np.where(share > 1.0 + ALWAYS, np.minimum(required, pace_for_speed(share, RESERVE)), required)
        pace = slowed(shown.stretch.pace, required, shown.stretch.frames, shown.rate)
        shown = shown.at(np.maximum(pace, LEAST_PACE))
    return shown


def _mended(shown: _Shown) -> _Shown:
    """Slow the infeasible seconds where less infeasible time remains."""
    parts = _infeasible_parts(shown)
    if not parts:
        return shown
    count, had = len(shown.stretch.pace), np.array([shown.infeasible_time(*part) for part in parts])

    def at(paces: np.ndarray) -> _Shown:
        required = np.ones(count)
        for (a, b), pace in zip(parts, paces, strict=True):
            required[a:b] = pace
        return shown.at(slowed(shown.stretch.pace, required, np.arange(count), shown.rate))

    def left(tried: _Shown) -> np.ndarray:
        return np.array([tried.infeasible_time(*part) for part in parts])

    remains = np.array([left(at(np.full(len(parts), level))) for level in LEVELS])
    gain = had - remains
    first = (gain >= MOST_OF_IT * gain.max(axis=0)).argmax(axis=0)  # the fastest with most of the gain
    paces = np.where(gain.max(axis=0) > 0, np.take(LEVELS, first), 1.0)
    for _ in range(CHECKS):
        if (paces == 1.0).all():
            return shown
        tried = at(paces)
        worse = (left(tried) > KEPT * had) & (paces < 1.0)
        share, begin, end = tried.worst_second()
        if not worse.any() and share > shown.worst_second()[0] + ALWAYS:
            worse = np.array([a < end and b > begin for a, b in parts]) & (paces < 1.0)
            if not worse.any():
                return shown
        if not worse.any():
            return tried if tried.infeasible_time() < shown.infeasible_time() else shown
        paces[worse] = 1.0
    return shown


def _infeasible_parts(shown: _Shown) -> list[tuple[int, int]]:
    """Return the parts of the clip, by frames, within infeasible seconds around infeasible frames; at most 1 s each."""
    frames, bad, each = shown.infeasible
    if not bad.any():
        return []
    window = min(len(bad), max(1, round(SECOND / each)))
    total = np.concatenate([[0], np.cumsum(bad)])
    beyond = (total[window:] - total[:-window]) > MOST_INFEASIBLE * window
    wanted = bad & np.array([beyond[max(0, k - window + 1) : k + 1].any() for k in range(len(bad))])
    on = np.zeros(len(shown.stretch.pace), dtype=bool)
    on[frames[wanted]] = True
    near = binary_closing(np.pad(on, count := round(2 * PACE_WINDOW * shown.rate)), np.ones(count))[count:-count]
    parts: list[tuple[int, int]] = []
    for a, b in runs(near):
        cuts = np.linspace(a, b, max(1, round((b - a) / (SECOND * shown.rate))) + 1).round().astype(int)
        parts += pairwise(cuts.tolist())
    return parts
