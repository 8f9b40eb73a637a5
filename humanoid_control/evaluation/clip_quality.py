"""Quality of a retargeted clip: numbers, a one-line verdict, and a grade from A to F.

Each measure grades a number; the worst one is the grade of the clip. The bounds of A to D are `Measure.most` in the
table `MEASURES`: for instance, `infeasible_percent` of frames allows an A up to 20 %. To add a measure, compute its
number in a function of `_NUMBERS`, and add a row to `MEASURES`. Contact agreement is reported, not graded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.evaluation.ground_contact import GroundContact, contact_agreement, measure_ground_contact
from humanoid_control.evaluation.mesh_contact import MeshContacts
from humanoid_control.evaluation.motion_dynamics import Dynamics, measure_dynamics
from humanoid_control.performing.measures import lacking, worst_part
from humanoid_control.performing.source_motion import continuous_quaternions, smoothed
from humanoid_control.retargeting import POINTS, JointTrajectory, WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.scaling import SOLE_POINTS
from humanoid_control.robots import Robot

GRADES = ("A", "B", "C", "D", "F")
ALWAYS = 1e-6  # tolerance of hard limits, for rounding
NEAREST = 0.05  # [m] range of measured shape distances
SMOOTH = 8.0  # [Hz] low-pass cutoff before inverse dynamics
MOST_DYNAMICS = 1000  # frames with dynamics; longer clips are subsampled


class Measure(NamedTuple):
    """Graded number; smaller is better.

    Attributes:
        topic: name in the verdict if not measured.
        most: upper bounds of grade A, B, C and D; F beyond.
    """

    key: str
    unit: str
    meaning: str
    topic: str
    most: tuple[float, float, float, float]

    def grade(self, value: float) -> int:
        """Return the index in GRADES of a value; the last for NaN."""
        return next((k for k, most in enumerate(self.most) if value <= most), len(GRADES) - 1)


def _kept(key: str, unit: str, meaning: str, topic: str, limit: float = 0.0) -> Measure:
    """Return a measure of a hard limit: A or F."""
    return Measure(key, unit, meaning, topic, (limit + ALWAYS,) * 4)


MEASURES = (
    _kept("beyond_range_deg", "deg", "distance of a joint beyond its range", "joint ranges"),
    _kept("speed_share", "", "joint speed / limit", "joint speeds", 1.0),
    Measure("at_speed_limit_percent", "%", "frames at a speed limit", "joint speeds", (10.0, 25.0, 50.0, 75.0)),
    Measure("torque_p99_percent", "%", "torque / limit", "torques", (100.0, 150.0, 250.0, 400.0)),
    Measure("infeasible_percent", "%", "frames with forces beyond the contacts", "balance", (20.0, 35.0, 50.0, 70.0)),
    Measure("com_unsupported_cm", "cm", "centre of mass outside its support", "balance", (5.0, 10.0, 20.0, 40.0)),
    Measure("colliding_percent", "%", "frames in self-collision", "self-collision", (0.0, 0.5, 2.0, 5.0)),
    Measure("meshes_percent", "%", "frames with touching meshes", "meshes", (0.5, 2.0, 5.0, 10.0)),
    Measure("slip_mm", "mm", "slip, 95th percentile of the contacts", "feet", (2.0, 5.0, 10.0, 20.0)),
    Measure("penetration_mm", "mm", "depth of a sole below the floor", "feet", (1.0, 3.0, 6.0, 12.0)),
    Measure("floating_mm", "mm", "height of a sole in contact above the floor", "feet", (5.0, 10.0, 20.0, 40.0)),
    Measure("error_cm", "cm", "mean distance of the points", "distances", (5.0, 8.0, 12.0, 20.0)),
    Measure(
        "error_p95_cm", "cm", "mean distance in the worst 5 % of the frames", "distances", (10.0, 15.0, 20.0, 30.0)
    ),
)
"""Graded measures. Grade A: slip 2 mm, penetration 1 mm, floating 5 mm; no frame in self-collision by shapes, 0.5 % by
meshes. The centre of mass counts in frames with infeasible contact forces; in others, these forces balance it."""


@dataclass(frozen=True)
class ClipQuality:
    """Quality of a clip on a robot.

    Attributes:
        numbers: name with unit -> value; ground contact only for whole bodies.
    """

    numbers: dict[str, float]
    grade: str
    verdict: str
    grades: dict[str, str]


@dataclass(frozen=True)
class ClipMeasures:
    """Clip on a robot with frame-by-frame measures.

    Attributes:
        robot: floating base for a WholeBodyTrajectory, else fixed.
        person: (T, 4) the person's heel and toe contacts, in the order of EDGES; None: unknown.
        meshes: mesh contacts in some frames; None: not measured.
    """

    robot: Robot
    trajectory: JointTrajectory
    person: np.ndarray | None = None
    meshes: MeshContacts | None = None

    @property
    def whole(self) -> WholeBodyTrajectory | None:
        """The trajectory if it is a whole-body one, else None."""
        return self.trajectory if isinstance(self.trajectory, WholeBodyTrajectory) else None

    @cached_property
    def q(self) -> np.ndarray:
        """Configurations (T, nq)."""
        return np.ascontiguousarray(self.trajectory.positions if self.whole is None else self.whole.q())

    @cached_property
    def ground(self) -> GroundContact | None:
        """Ground contact of the soles; None for an upper body."""
        t = self.whole
        return None if t is None else measure_ground_contact(self.robot, self.q, t.contacts, t.rate)

    @cached_property
    def dynamics(self) -> Dynamics | None:
        """Balance and torques; None for an upper body, or without masses."""
        t = self.whole
        step = -(-len(self.q) // MOST_DYNAMICS)
        return None if t is None else measure_dynamics(self.robot, self.q, t.contacts, t.rate, step)

    @cached_property
    def lacking(self) -> np.ndarray | None:
        """Frames (F,) of `dynamics` with a wrench that no contact can produce; None without dynamics.

        The motion is low-passed first.
        """
        t, raw = self.whole, self.dynamics
        if t is None or raw is None:
            return None
        q = self.q.copy()
        q[:, 3:7] = continuous_quaternions(q[:, 3:7])
        q = smoothed(q, SMOOTH, t.rate)
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        step = int(raw.frames[1] - raw.frames[0]) if len(raw.frames) > 1 else 1
        smooth = measure_dynamics(self.robot, q, t.contacts, t.rate, step)
        return None if smooth is None else lacking(smooth.missing, smooth.weight)

    @cached_property
    def nearest(self) -> np.ndarray:
        """Least shape distance (T,) [m], at most NEAREST."""
        pairs = self.robot.collision_monitor("shapes")
        return np.array([pairs.update(row, NEAREST).distance.min(initial=NEAREST) for row in self.q])

    def quality(self) -> ClipQuality:
        """Return numbers, verdict and grade."""
        numbers: dict[str, float] = {}
        for part in _NUMBERS:
            numbers |= part(self)
        return grade_numbers({k: round(float(v), 4) for k, v in numbers.items() if math.isfinite(v)})


def measure_clip(
    robot: Robot, trajectory: JointTrajectory, person: np.ndarray | None = None, meshes: MeshContacts | None = None
) -> ClipQuality:
    """Return numbers, verdict and grade of a trajectory on its robot; arguments as ClipMeasures."""
    return ClipMeasures(robot, trajectory, person, meshes).quality()


def grade_numbers(numbers: dict[str, float]) -> ClipQuality:
    """Grade numbers by name; the verdict names measures without a number."""
    found = [(m, m.grade(numbers[m.key])) for m in MEASURES if m.key in numbers]
    worst = max((g for _, g in found), default=len(GRADES) - 1)
    beyond = [f"{m.meaning} {numbers[m.key]:.3g} {m.unit}".rstrip() for m, g in found if g == worst] if worst else []
    if not found:
        beyond = ["nothing was measured"]
    told = f"{GRADES[worst]}: {', '.join(beyond) or 'every goal is met'}"
    if found and (lacking := dict.fromkeys(m.topic for m in MEASURES if m.key not in numbers)):
        told += f"; not graded: {', '.join(lacking)}"
    return ClipQuality(numbers, GRADES[worst], told, {m.key: GRADES[g] for m, g in found})


# -------- The numbers


def _size(m: ClipMeasures) -> dict[str, float]:
    return {"frames": len(m.trajectory.positions), "rate_hz": m.trajectory.rate}


def _errors(m: ClipMeasures) -> dict[str, float]:
    """Return point-target distances [cm]: over all frames, over the worst frames, and per point.

    Sole corners are excluded.
    """
    names = POINTS if m.whole is None else m.whole.point_names
    points = [k for k, name in enumerate(names) if name not in SOLE_POINTS]
    body = 100 * m.trajectory.errors[:, points]
    if np.isnan(body).all():
        return {}
    frames = body.mean(axis=1)
    out = {"error_cm": frames.mean(), "error_p95_cm": np.percentile(frames, 95), "error_max_cm": body.max()}
    return out | {f"error_{names[k]}_cm": body[:, i].mean() for i, k in enumerate(points)}


def _limits(m: ClipMeasures) -> dict[str, float]:
    """Return range, speed, acceleration and jerk of the joints, from position differences.

    Speed is relative to its limit. Acceleration and jerk are 99th percentiles over frames and moving joints.
    """
    robot, t = m.robot, m.trajectory
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


def _self_collision(m: ClipMeasures) -> dict[str, float]:
    """Return the share of frames with overlapping shapes or meshes [%], and the least distance [mm], at most 50."""
    out = {"colliding_percent": 100 * np.mean(m.nearest < 0), "closest_mm": 1000 * m.nearest.min(initial=NEAREST)}
    return out if m.meshes is None else out | {"meshes_percent": 100 * m.meshes.share}


def _ground(m: ClipMeasures) -> dict[str, float]:
    if m.ground is None or m.whole is None:
        return {}
    contacts, row = m.whole.contacts, m.ground.row()
    slip = 1000 * m.ground.slip if len(m.ground.slip) else np.zeros(1)
    out = {
        "contacts": row["contacts"],
        "contact_percent": 100 * float(contacts.any(axis=1).mean()),
        "slip_mm": float(np.percentile(slip, 95)),
        "slip_median_mm": row["slip_mm"],
        "slip_max_mm": row["slip_max_mm"],
        "slip_mm_s": row["slip_mm_s"],
        "skating_mm_s": row["skating_mm_s"],
        "penetration_mm": row["penetration_mm"],
        "floating_mm": row["floating_mm"],
    }
    if m.person is not None:
        like = contact_agreement(contacts, m.person)
        out |= {
            "contacts_agree_percent": 100 * like.frames,
            "contact_precision_percent": 100 * like.precision,
            "contact_recall_percent": 100 * like.recall,
        }
    return out


def _dynamics(m: ClipMeasures) -> dict[str, float]:
    """Return balance and torque numbers, as far as masses and limits are known.

    The helping hand is the force `Dynamics.missing` over the weight, in frames with contact.
    """
    d = m.dynamics
    if d is None:
        return {}
    held, lack, out = np.isfinite(d.outside), m.lacking, dict[str, float]()
    if lack is not None and m.whole is not None:
        rate = m.whole.rate * len(d.frames) / max(len(m.q) - 2, 1)
        share, begin = worst_part(lack, rate)
        out["infeasible_percent"] = 100 * float(np.mean(lack))
        out["infeasible_worst_second_percent"], out["infeasible_worst_second_s"] = 100 * share, begin
    if held.any():
        unsupported = d.outside[held] if lack is None else d.outside[held & lack]
        out["com_unsupported_cm"] = 100 * float(unsupported.max(initial=0.0))
        out["balanced_percent"] = 100 * d.balanced
        out["com_outside_cm"] = 100 * float(d.outside[held].max())
        out["missing_force_percent"] = 100 * float(np.linalg.norm(d.missing[held, :3], axis=1).mean()) / d.weight
    known = np.isfinite(d.effort)
    if known.any():
        worst = d.effort_share[:, known].max(axis=1)
        out["torque_p99_percent"] = 100 * float(np.percentile(worst, 99))
        out["torque_beyond_percent"] = 100 * float(np.mean(worst > 1.0))
    return out


_NUMBERS: tuple[Callable[[ClipMeasures], dict[str, Any]], ...] = (
    _size,
    _errors,
    _ground,
    _limits,
    _self_collision,
    _dynamics,
)
