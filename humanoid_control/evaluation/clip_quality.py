"""Quality of one retargeted clip: a dictionary of numbers, one verdict line, and a grade from A to F.

A list of measures says what counts: each names a number, its goal, and how far beyond it the next grades reach. The
worst measure is the grade of the clip, so that no good number hides a bad one. To take in one more measure, compute
its number in one of the functions of `_NUMBERS`, and give it a row of `MEASURES` where it is to count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.evaluation.ground_contact import measure_ground_contact
from humanoid_control.retargeting import POINTS, JointTrajectory, WholeBodyTrajectory
from humanoid_control.robots import Robot
from humanoid_control.terminal import plain_values

GRADES = ("A", "B", "C", "D", "F")
ALWAYS = 1e-6  # beyond a limit that is always kept, this counts as kept: differences of doubles
NEAREST = 0.05  # [m] shapes farther apart are not measured
BODY = 12  # points of the body; those behind them are corners of soles, whose targets are their own places on the floor


class Measure(NamedTuple):
    """A number that counts for the grade; smaller is better.

    Attributes:
        key: of the number. unit: of it, for words. meaning: in a few words.
        most: the largest value of grade A, B, C and D; beyond is F.
    """

    key: str
    unit: str
    meaning: str
    most: tuple[float, float, float, float]

    def grade(self, value: float) -> int:
        """Place in GRADES of a value; the last where it is not a number."""
        return next((k for k, most in enumerate(self.most) if value <= most), len(GRADES) - 1)


def _kept(key: str, unit: str, meaning: str, limit: float = 0.0) -> Measure:
    """A measure of what must always be kept: A or F."""
    return Measure(key, unit, meaning, (limit + ALWAYS,) * 4)


MEASURES = (
    _kept("beyond_range_deg", "deg", "a joint beyond its range"),
    _kept("speed_share", "", "a joint's speed over its limit", 1.0),
    Measure("colliding_percent", "%", "frames in self-collision", (0.0, 0.5, 2.0, 5.0)),
    Measure("slip_mm", "mm", "slip of 95 of 100 contacts", (2.0, 5.0, 10.0, 20.0)),
    Measure("penetration_mm", "mm", "a sole below the floor", (1.0, 3.0, 6.0, 12.0)),
    Measure("floating_mm", "mm", "a sole in contact above the floor", (5.0, 10.0, 20.0, 40.0)),
    Measure("error_cm", "cm", "mean distance of the points", (5.0, 8.0, 12.0, 20.0)),
    Measure("error_p95_cm", "cm", "the same in the worst 5 of 100 frames", (10.0, 15.0, 20.0, 30.0)),
)
"""What counts for the grade. Goals (A) of slip, penetration and floating: 2, 1 and 5 mm; no frame in self-collision."""


@dataclass(frozen=True)
class ClipQuality:
    """Quality of one clip on one robot.

    Attributes:
        numbers: name with its unit -> value; those of the ground only where the whole body was retargeted.
        grade: of GRADES, the worst of the measures'.
        verdict: one line: the grade, and why it is no A.
        grades: measure -> its own grade.
    """

    numbers: dict[str, float]
    grade: str
    verdict: str
    grades: dict[str, str]


def measure_clip(robot: Robot, trajectory: JointTrajectory) -> ClipQuality:
    """Numbers, verdict and grade of a trajectory on the robot that it was made for.

    Args:
        robot: with the base that the trajectory needs: floating for a WholeBodyTrajectory, else fixed.
        trajectory: of a whole clip.
    """
    numbers: dict[str, float] = {}
    for part in _NUMBERS:
        numbers |= part(robot, trajectory)
    numbers = {key: round(float(value), 4) if math.isfinite(value) else math.nan for key, value in numbers.items()}
    return grade_numbers(numbers)


def grade_numbers(numbers: dict[str, float]) -> ClipQuality:
    """The quality that numbers by name mean; a measure without its number does not count."""
    found = [(m, m.grade(numbers[m.key])) for m in MEASURES if m.key in numbers]
    worst = max((g for _, g in found), default=len(GRADES) - 1)
    beyond = [f"{m.meaning} {numbers[m.key]:.3g} {m.unit}".rstrip() for m, g in found if g == worst] if worst else []
    if not found:
        beyond = ["nothing was measured"]
    told = f"{GRADES[worst]}: {', '.join(beyond) or 'every goal is met'}"
    return ClipQuality(numbers, GRADES[worst], told, {m.key: GRADES[g] for m, g in found})


# -------- The numbers


def _size(robot: Robot, t: JointTrajectory) -> dict[str, float]:
    """Number of frames, and their rate."""
    return {"frames": len(t.positions), "rate_hz": t.rate}


def _errors(robot: Robot, t: JointTrajectory) -> dict[str, float]:
    """Distances of the points to their targets [cm]: over all and over the worst frames, and of each point."""
    body = 100 * t.errors[:, :BODY]
    names = t.point_names if isinstance(t, WholeBodyTrajectory) else POINTS
    frames = body.mean(axis=1)
    out = {"error_cm": frames.mean(), "error_p95_cm": np.percentile(frames, 95), "error_max_cm": body.max()}
    return out | {f"error_{name}_cm": body[:, k].mean() for k, name in enumerate(names[: body.shape[1]])}


def _limits(robot: Robot, t: JointTrajectory) -> dict[str, float]:
    """Range, speed, acceleration and jerk of the joints, by differences of the positions.

    Speed is a share of the limit; a joint without one has none. Acceleration and jerk are 99th percentiles over frames
    and joints that move.
    """
    q, dt = t.positions, 1.0 / t.rate
    beyond = np.maximum(robot.lower - q, q - robot.upper).max(initial=0.0)
    out = {"beyond_range_deg": np.degrees(max(float(beyond), 0.0)), "speed_share": 0.0}
    if len(q) > 1:
        v = np.diff(q, axis=0) / dt
        out["speed_share"] = float((np.abs(v).max(axis=0) / robot.velocity).max())
    moving = np.ptp(q, axis=0) > 0
    for order, name in ((2, "acceleration_p99_rad_s2"), (3, "jerk_p99_rad_s3")):
        change = np.abs(np.diff(q[:, moving], order, axis=0)) / dt**order
        out[name] = float(np.percentile(change, 99)) if change.size else 0.0
    out["at_speed_limit_percent"] = 100 * np.mean(t.saturated > 0)
    out["fallback_percent"] = 100 * np.mean(t.used_fallback > 0)
    return out


def _self_collision(robot: Robot, t: JointTrajectory) -> dict[str, float]:
    """Share of the frames in which two of the robot's shapes overlap [%], and the nearest that any two come [mm].

    Shapes farther apart than 5 cm all the time are told as 50 mm.
    """
    pairs = robot.collision_monitor("shapes")
    q = t.q() if isinstance(t, WholeBodyTrajectory) else t.positions
    nearest = np.array([pairs.update(row, NEAREST).distance.min(initial=NEAREST) for row in np.ascontiguousarray(q)])
    return {"colliding_percent": 100 * np.mean(nearest < 0), "closest_mm": 1000 * nearest.min(initial=NEAREST)}


def _ground(robot: Robot, t: JointTrajectory) -> dict[str, float]:
    """Contact of the soles with the floor; nothing for an upper body."""
    if not isinstance(t, WholeBodyTrajectory):
        return {}
    contact = measure_ground_contact(robot, t.q(), t.contacts, t.rate)
    row = contact.row()
    slip = 1000 * contact.slip if len(contact.slip) else np.zeros(1)
    return {
        "contacts": row["contacts"],
        "contact_percent": 100 * float(t.contacts.any(axis=1).mean()),
        "slip_mm": float(np.percentile(slip, 95)),
        "slip_median_mm": row["slip_mm"],
        "slip_max_mm": row["slip_max_mm"],
        "slip_mm_s": row["slip_mm_s"],
        "skating_mm_s": row["skating_mm_s"],
        "penetration_mm": row["penetration_mm"],
        "floating_mm": row["floating_mm"],
    }


_NUMBERS: tuple[Callable[[Robot, JointTrajectory], dict[str, Any]], ...] = (
    _size,
    _errors,
    _ground,
    _limits,
    _self_collision,
)


def quality_row(quality: ClipQuality) -> dict[str, Any]:
    """Plain values for JSON: grade, verdict, and the numbers."""
    return {"grade": quality.grade, "verdict": quality.verdict, **plain_values(quality.numbers)}
