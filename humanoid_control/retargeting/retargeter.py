"""Retargeting of targets to a joint trajectory within all limits."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.compiled.packed import BoundRecord
from humanoid_control.errors import ClipError, ConfigError, UnknownNameError, check_time_step
from humanoid_control.files import whole_file
from humanoid_control.kinematics.forward_kinematics import Followers
from humanoid_control.retargeting.differential_methods import DifferentialMethod, JointShift
from humanoid_control.retargeting.frame_solver import (
    FAR,
    FrameBefore,
    SolvedFrames,
    SolverConstants,
    StepTables,
    clearance,
    fit_first_frame,
    solve_frame,
    solve_frames,
    step_frame,
)
from humanoid_control.retargeting.problem import (
    forearm_levers,
    mean_error,
    place_points,
    point_jacobian,
    problem_of,
    scratch_for,
)
from humanoid_control.retargeting.scaling import POINTS, Targets
from humanoid_control.robots import Robot

SLACK_WEIGHT = 1e6  # of a violated distance, relative to 1 for a tracking error
CHUNK = 64  # frames between progress reports
CONSTRAINED, CONSTRAINTS = "constrained", "constraints"

METHODS = {
    CONSTRAINED: "constrained least squares: range, speed, acceleration and self-collision in every step",
    "weighted_dls": "damped least squares with joint-limit weights (Dube 2012, eq. 4.19 and 4.25)",
    "dls": "damped least squares (eq. 4.18)",
    "pinv": "pseudo-inverse (eq. 4.16)",
}
AVOIDANCE = {
    CONSTRAINTS: "distances are constraints of the solver; only with method 'constrained'",
    "shift": "shoulder abduction and elbow flexion of a colliding arm are shifted afterwards (eq. 4.58)",
    "none": "self-collision is ignored",
}


ENDLESS_SETTINGS = (
    "velocity_scale",
    "acceleration",
    "acceleration_scale",
    "root_acceleration",
)  # may be infinite: no limit


@dataclass(frozen=True)
class RetargetSettings:
    """Method, collision avoidance and parameters of retargeting.

    Attributes:
        method: one of METHODS.
        avoidance: one of AVOIDANCE; empty: 'constraints' for method 'constrained', else 'none'.
        iterations: solver steps per frame; 0: 3 for 'constrained', else 1.
        damping: lambda of the damped methods, or Gauss-Newton damping [m/rad]; 0: 0.01 for 'constrained', else 0.03.
        keep_ranges: False: no joint ranges.
        velocity_scale: share of the joint speed limits; infinite: no limit.
        acceleration: joint limit, method 'constrained' [rad/s^2].
        acceleration_scale: share of `Robot.acceleration_limits` as a second limit; infinite: off.
        root_acceleration: limit of a moving root per axis, frame by frame [m/s^2].
        posture: pull to the rest posture, method 'constrained' [m/rad].
        smoothing: cost of a joint velocity change, method 'constrained' [m/rad].
        forearms: lever length at each wrist, which weights the forearm rotation if shown [m]; 0: off.
        margin: shape distance for 'constraints'; less for shapes closer at rest [m].
        activation: distance below which a pair becomes a constraint [m].
        barrier_gain: maximum relative loss rate of the distance above the margin [1/s].
        pair_recovery_speed: separation speed within the margin [m/s].
        feed_forward: open loop of Dube 2012, by target changes instead of errors: it drifts.
    """

    method: str = CONSTRAINED
    avoidance: str = ""
    iterations: int = 0
    damping: float = 0.0
    keep_ranges: bool = True
    velocity_scale: float = 1.0
    acceleration: float = 200.0
    acceleration_scale: float = 1.0
    root_acceleration: float = 40.0
    posture: float = 0.01
    smoothing: float = 0.05
    forearms: float = 0.05
    margin: float = 0.01
    activation: float = 0.1
    barrier_gain: float = 30.0
    pair_recovery_speed: float = 0.3
    feed_forward: bool = False

    def __post_init__(self) -> None:
        constrained = self.method == CONSTRAINED
        if self.method not in METHODS:
            raise UnknownNameError("method", self.method, METHODS)
        if self.avoidance and self.avoidance not in AVOIDANCE:
            raise UnknownNameError("avoidance", self.avoidance, AVOIDANCE)
        object.__setattr__(self, "avoidance", self.avoidance or (CONSTRAINTS if constrained else "none"))
        if self.avoidance == CONSTRAINTS and not constrained:
            raise ConfigError(
                f"avoidance '{CONSTRAINTS}' is part of method '{CONSTRAINED}', not of '{self.method}': use 'shift'"
            )
        if self.feed_forward and constrained:
            raise ConfigError(f"feed_forward is an option of the differential methods, not of '{CONSTRAINED}'")
        object.__setattr__(self, "iterations", self.iterations or (3 if constrained else 1))
        object.__setattr__(self, "damping", self.damping or (0.01 if constrained else 0.03))
        for f in fields(self):
            value = getattr(self, f.name)
            endless = f.name in ENDLESS_SETTINGS and value == math.inf
            if isinstance(value, float) and not endless and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{f.name} must not be negative, got {value}")
        if self.iterations < 1 or any(getattr(self, name) == 0 for name in ENDLESS_SETTINGS):
            raise ConfigError(f"iterations, {', '.join(ENDLESS_SETTINGS)} must be positive")


@dataclass(frozen=True)
class JointTrajectory:
    """Joint angles over time.

    Attributes:
        positions: (T, n) [rad]
        velocities: (T, n) forward differences [rad/s].
        errors: (T, 7) target distances [m].
        saturated: (T,) share of moving joints at their speed limit.
        clearance: (T,) least shape distance [m]; infinite above 5 cm.
        used_fallback: (T,) 0 none, 1 acceleration limit relaxed, 2 step shortened, 3 posture held; always 0 for
            differential methods.
    """

    joint_names: tuple[str, ...]
    rate: float
    positions: np.ndarray
    velocities: np.ndarray
    errors: np.ndarray
    saturated: np.ndarray
    clearance: np.ndarray
    used_fallback: np.ndarray

    def write_csv(self, path: str | Path) -> None:
        """Write time [s] and joints [rad] as columns, atomically.

        Raises:
            ConfigError: if the file cannot be written.
        """
        with whole_file(Path(path)) as part, part.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["time", *self.joint_names])
            for k, q in enumerate(self.positions):
                rows.writerow([f"{k / self.rate:.6f}", *(f"{v:.6f}" for v in q)])

    def write_npz(self, path: str | Path, targets: np.ndarray) -> None:
        """Write names, rate, positions, velocities, errors and targets (T, 7, 3) [m], atomically.

        Raises:
            ConfigError: if the file cannot be written.
        """
        with whole_file(Path(path)) as part:
            np.savez_compressed(part, targets=targets, **self._arrays())

    def _arrays(self) -> dict[str, Any]:
        return {
            "joint_names": np.array(self.joint_names),
            "rate": self.rate,
            "positions": self.positions,
            "velocities": self.velocities,
            "errors": self.errors,
        }


class Retargeter:
    """Frame-by-frame posture solver for clips and live input.

    Only the imitation joints move; the others stay neutral.

    Attributes:
        saturated: as in JointTrajectory, of the last frame, like `clearance` [m] and `used_fallback`.
    """

    def __init__(self, robot: Robot, settings: RetargetSettings | None = None, forearms: bool = False) -> None:
        """Create the solver.

        Args:
            robot: fixed base.
            forearms: whether targets include forearm rotation, as in `goals`.
        """
        self.robot, self.settings = robot, settings or RetargetSettings()
        s = self.settings
        self.joints = robot.postures["neutral"].copy()
        self.moving = robot.imitation_joints
        self.lever = s.forearms if forearms and forearm_levers(robot, 1.0) else 0.0
        self.problem = problem_of(robot, self.lever)
        velocity = np.minimum(s.velocity_scale * self.problem.velocity, 1e6)
        self.problem = self.problem._replace(velocity=velocity)
        if not s.keep_ranges:
            endless = np.full(len(velocity), np.inf)
            self.problem = self.problem._replace(lower=-endless, upper=endless)
        self.shift = JointShift(robot, self.problem) if s.avoidance == "shift" else None
        self.solved = self.problem
        if s.avoidance != CONSTRAINTS:
            self.solved = self.problem.with_pairs(np.zeros(len(self.problem.pairs), dtype=bool))
        most = robot.accelerations_within(s.acceleration, s.acceleration_scale)
        self.constants = SolverConstants(
            s.damping,
            s.posture,
            s.smoothing,
            most.acceleration[self.moving],
            most.braking[self.moving],
            s.margin,
            s.activation,
            s.barrier_gain,
            s.pair_recovery_speed,
            SLACK_WEIGHT,
            1.0,
            s.iterations,
        )
        self.scratch = scratch_for(self.problem)
        self.differential: DifferentialMethod | None = None
        if s.method != CONSTRAINED:
            self.differential = DifferentialMethod(self.problem, s.method, s.damping, s.iterations, s.feed_forward)
        self._goal, self._errors = np.empty_like(self.problem.point), np.empty(len(POINTS))
        self._followers, self._packed = Followers.of(robot.mimic), BoundRecord(StepTables)
        self._begin(self.joints[self.moving])
        self.saturated, self.used_fallback = 0.0, 0
        self.clearance = self._clearance_before = FAR

    def _begin(self, x: np.ndarray) -> None:
        self._x, self._v = x.copy(), np.zeros(len(x))
        if self.differential is not None:
            self.differential.begin()

    def points(self, moving: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the seven points (7, 3) and their Jacobian (21, D) at imitation joint angles (D,)."""
        J = np.empty((3 * len(self.problem.point), len(self.moving)))
        place_points(self.problem, np.ascontiguousarray(moving, dtype=float), self.scratch)
        point_jacobian(self.problem, self.scratch, J)
        return self.scratch.points[: len(POINTS)].copy(), J[: 3 * len(POINTS)]

    def goals(self, targets: Targets) -> np.ndarray:
        """Return solver goals (T, K, 3): the seven points, and lever ends if forearms are used."""
        points = np.ascontiguousarray(targets.positions, dtype=float)
        if not self.lever:
            return points
        if targets.forearms is None:
            raise ClipError(f"{targets.name}: does not show the forearm rotation")
        return np.concatenate([points, points[:, 5:7] + self.lever * targets.forearms], axis=1)

    def start(self, targets: np.ndarray, name: str = "clip") -> np.ndarray:
        """Return the first posture (n,) for targets (7, 3), or a row of `goals`.

        Raises:
            ClipError: if targets are not finite, or no posture converges.
        """
        goal = np.ascontiguousarray(targets, dtype=float)
        self._begin(fit_first_frame(self.solved, self.constants, goal, self.scratch, name))
        self.saturated, self.used_fallback = 0.0, 0
        return self._publish(self._x)

    def start_at(self, joints: np.ndarray) -> None:
        """Start at rest from a posture (n,), clipped to the range, for live input."""
        self._begin(np.clip(joints[self.moving], self.problem.lower, self.problem.upper))
        self._publish(self._x)

    def step(self, targets: np.ndarray, dt: float) -> np.ndarray:
        """Return the next posture (n,) toward targets (7, 3), within all limits; NaN holds.

        Raises:
            ConfigError: if `dt` is not positive and finite; the state is unchanged.
        """
        check_time_step(dt, "retargeting")
        if self.differential is None and self.solved is self.problem and self.shift is None:
            return self._step_in_one_call(targets, dt)
        goal = np.ascontiguousarray(targets, dtype=float)
        if self.differential is not None:
            x = self.differential.step(goal, self._x, dt)
        else:
            x, errors = np.empty(len(self._x)), np.empty(len(POINTS))
            before = FrameBefore(self._x, self._v, self._clearance_before)
            solved = solve_frame(self.solved, self.constants, goal, before, dt, x, errors, self.scratch)
            self.used_fallback = solved[1]
        self.saturated = float(np.mean(np.abs(x - self._x) >= self.problem.velocity * dt - 1e-9))
        self._v = (x - self._x) / dt
        self._x = x
        return self._publish(x)

    def _step_in_one_call(self, targets: np.ndarray, dt: float) -> np.ndarray:
        self._goal[:] = targets
        table = self._packed.table(
            self.problem,
            self.constants,
            self._goal,
            self._x,
            self._v,
            self._errors,
            self.joints,
            self.moving,
            self._followers,
            self.scratch,
        )
        distance, self.used_fallback, self.saturated = step_frame(table, dt, self._clearance_before)
        self._clearance_before = distance
        self.clearance = distance if distance < FAR else np.inf
        return self.joints.copy()

    def _publish(self, x: np.ndarray) -> np.ndarray:
        """Return the published posture (n,) of x (D,), and update its clearance."""
        shown = x if self.shift is None else self.shift(x)
        self.joints[self.moving] = shown
        self.robot.follow(self.joints)
        self._clearance_before = clearance(self.problem, shown, self.scratch)
        self.clearance = self._clearance_before if self._clearance_before < FAR else np.inf
        return self.joints.copy()

    def errors(self, targets: np.ndarray) -> np.ndarray:
        """Return target distances (7,) at the current posture [m]."""
        return np.linalg.norm(self.points(self.joints[self.moving])[0] - targets, axis=1)

    def solve(self, targets: Targets, progress: Callable[[int, int], None] | None = None) -> JointTrajectory:
        """Solve a whole clip from its own first posture.

        Raises:
            ClipError: if the first posture does not converge.
        """
        goals = self.goals(targets)
        T, dt = len(goals), 1.0 / targets.rate
        self.start(goals[0], targets.name)
        x, errors = np.empty((T, len(self._x))), np.empty((T, len(POINTS)))
        distance, used_fallback = np.empty(T), np.zeros(T, dtype=np.int64)
        frames = SolvedFrames(x, errors, distance, used_fallback)
        x[0], distance[0] = self._x, self._clearance_before
        mean_error(self.scratch, goals[0], errors[0])
        for first in range(1, T, CHUNK):
            last = min(first + CHUNK, T)
            if self.differential is None:
                solve_frames(self.solved, self.constants, goals, dt, first, last, frames, self.scratch)
            else:
                for t in range(first, last):
                    x[t] = self.differential.step(goals[t], x[t - 1], dt)
            if progress is not None:
                progress(last, T)
        saturated = np.zeros(T)
        saturated[1:] = np.mean(np.abs(np.diff(x, axis=0)) >= self.problem.velocity * dt - 1e-9, axis=1)
        shown = x if self.shift is None else np.array([self.shift(row) for row in x])
        if self.solved.pairs is not self.problem.pairs:  # the solver ignores some pairs: measure afterwards
            for t in range(T):
                distance[t] = clearance(self.problem, shown[t], self.scratch)
                mean_error(self.scratch, goals[t], errors[t])
        distance[distance >= FAR] = np.inf
        q = np.tile(self.robot.postures["neutral"], (T, 1))
        q[:, self.moving] = shown
        if self.robot.mimic:
            for row in q:
                self.robot.follow(row)
        v = np.zeros_like(q)
        v[:-1] = np.diff(q, axis=0) * targets.rate
        self._begin(x[-1])
        return JointTrajectory(self.robot.joint_names, targets.rate, q, v, errors, saturated, distance, used_fallback)


def retarget_clip(
    targets: Targets,
    robot: Robot,
    settings: RetargetSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JointTrajectory:
    """Return the joint trajectory of a clip.

    Args:
        robot: fixed base.
        progress: called with (frames done, all frames).

    Raises:
        ClipError: if the first posture does not converge.
    """
    return Retargeter(robot, settings, targets.forearms is not None).solve(targets, progress)
