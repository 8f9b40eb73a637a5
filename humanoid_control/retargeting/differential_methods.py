"""Methods of Dube 2012: differential methods (section 4.2.2), collision avoidance by joint shift (eq. 4.58)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.retargeting.frame_solver import clearance
from humanoid_control.retargeting.problem import RetargetingProblem, place_points, point_jacobian, scratch_for
from humanoid_control.robots.robot import Robot

# -------- pseudo-inverse and damped least squares

RANK = 1e-3  # relative singular value treated as zero in the pseudo-inverse


def limit_gradient(joints: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return the gradient (n,) of the joint-limit cost, eq. (4.23): 0 in mid-range, unbounded at a limit.

    dH/dq = (qM - qm)^2 (2 q - qM - qm) / (4 (qM - q)^2 (q - qm)^2), with q clipped just inside its range. Joints
    without limits have gradient 0.
    """
    width = upper - lower
    ends = np.isfinite(width)
    lower, upper, width = (np.where(ends, x, y) for x, y in ((lower, -1.0), (upper, 1.0), (width, 2.0)))
    q = np.clip(joints, lower + 1e-4 * width, upper - 1e-4 * width)
    gradient = 0.25 * width**2 * (2 * q - upper - lower) / ((upper - q) ** 2 * (q - lower) ** 2)
    return np.where(ends, gradient, 0.0)


def limit_weights(gradient: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Return the weights (n,) of eq. (4.25): 1 + |gradient| for joints that approach a limit, 1 for others.

    Args:
        previous: (n,) at the previous step; NaN at the first, where all joints are weighted.
    """
    size = np.abs(gradient)
    return np.where(size < np.abs(previous), 1.0, 1.0 + size)


def dls_step(J: np.ndarray, e: np.ndarray, weights: np.ndarray, damping: float) -> np.ndarray:
    """Return the joint step (n,) of eq. (4.19) in the cheaper form (J^T J + lambda^2 W)^-1 J^T e, W = diag(weights)."""
    H = J.T @ J
    H[np.arange(len(weights)), np.arange(len(weights))] += damping**2 * weights
    return np.linalg.solve(H, J.T @ e)


def pinv_step(J: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Return the joint step of eq. (4.16)-(4.17) by pseudo-inverse, without nearly singular directions."""
    return np.linalg.pinv(J, rcond=RANK) @ e


@dataclass
class DifferentialMethod:
    """Frame-by-frame Euler steps, eq. (4.12), clipped to range and speed.

    Attributes:
        name: 'pinv', 'dls' or 'weighted_dls'.
        damping: lambda [m/rad].
        feed_forward: step by the target change, as printed, not by the error: it drifts.
    """

    problem: RetargetingProblem
    name: str
    damping: float
    iterations: int
    feed_forward: bool

    def __post_init__(self) -> None:
        self._J = np.empty((3 * len(self.problem.point), len(self.problem.lower)))
        self._scratch = scratch_for(self.problem)
        self.begin()

    def begin(self) -> None:
        """Discard the previous frame."""
        self._gradient = np.full(len(self.problem.lower), np.nan)
        self._targets_before: np.ndarray | None = None

    def step(self, target: np.ndarray, before: np.ndarray, dt: float) -> np.ndarray:
        """Return the posture (D,) of the next frame.

        Args:
            target: (K, 3) [m]; not finite: hold.
        """
        x = before.copy()
        if not np.isfinite(target).all():
            return x
        p, w = self.problem, self._scratch
        furthest = p.velocity * dt
        low, high = np.maximum(p.lower, before - furthest), np.minimum(p.upper, before + furthest)
        for _ in range(self.iterations):
            place_points(p, x, w)
            point_jacobian(p, w, self._J)
            start = self._targets_before if self.feed_forward and self._targets_before is not None else w.points
            x = np.clip(x + self._step((target - start).ravel(), x), low, high)
        self._targets_before = target.copy()
        return x

    def _step(self, e: np.ndarray, x: np.ndarray) -> np.ndarray:
        if self.name == "pinv":
            return pinv_step(self._J, e)
        weights = np.ones(len(x))
        if self.name == "weighted_dls":
            gradient = limit_gradient(x, self.problem.lower, self.problem.upper)
            weights = limit_weights(gradient, self._gradient)
            self._gradient = gradient
        return dls_step(self._J, e, weights, self.damping)


# -------- joint shift of a colliding arm

STEP = np.radians(10.0)
REPETITIONS = 18
SIDES = ("l", "r")


@dataclass(frozen=True)
class ArmPairs:
    """Collision pairs of an arm.

    Attributes:
        columns: shifted coordinates, shoulder first.
    """

    columns: list[int]
    whole: RetargetingProblem
    forearm: RetargetingProblem


class JointShift:
    """Shift of colliding arms out of the body, one posture at a time.

    theta := theta +- 10 deg (|d| + 1) with the collision depth d [m], repeated until the arm is free. The best
    shift of shoulder abduction is taken, or of elbow flexion if forearm or hand collides. If stuck, the smallest
    combination of whole steps is used. Joint ranges are kept, speeds are not.
    Only arms against trunk, pelvis and legs count.

    Attributes:
        failures: number of postures that no shift could free.
    """

    def __init__(self, robot: Robot, problem: RetargetingProblem) -> None:
        self.problem, self.failures = problem, 0
        self._scratch = scratch_for(problem)
        self._lower, self._upper = problem.lower, problem.upper
        column = {int(j): k for k, j in enumerate(robot.imitation_joints)}
        joints = {s: [robot.joint_for(f"{s}_{m}") for m in ("shoulder_abduction", "elbow_flexion")] for s in SIDES}
        known = {s: [column[robot.index[j]] for j in js if j and robot.index[j] in column] for s, js in joints.items()}
        moved = {s: [self._moved_by(c) for c in columns] for s, columns in known.items() if columns}
        trunk = self._trunk(robot, [rows[0] for rows in moved.values()])
        self._arms = [self._arm(known[s], rows, trunk) for s, rows in moved.items()]

    def _moved_by(self, column: int) -> np.ndarray:
        joints = np.flatnonzero(self.problem.tree.coordinate == column)
        return self.problem.tree.moves[self.problem.shapes.joint][:, joints].any(axis=1)

    def _trunk(self, robot: Robot, arms: list[np.ndarray]) -> np.ndarray:
        moves = self.problem.tree.moves[self.problem.shapes.joint] > 0
        shared = np.ones(moves.shape[1], dtype=bool)
        for arm in arms:
            shared &= moves[arm].all(axis=0)
        frames = [robot.model.frames[robot.model.getFrameId(s.link, pin.FrameType.BODY)] for s in robot.shapes]
        held_by = robot.ancestor_mask[[f.parentJoint for f in frames]][:, robot.iv :]
        on_arm = np.flatnonzero(np.stack(arms).any(axis=0)) if arms else np.zeros(0, dtype=int)
        below_arms = held_by[on_arm].any(axis=0)  # WABIAN-2 turns its pelvis by an optional joint
        neck = [j for j in robot.optional_joints if not below_arms[j]]
        on_neck = held_by[:, neck].any(axis=1)
        return ~(moves & ~shared).any(axis=1) & ~on_neck

    def _arm(self, columns: list[int], moved: list[np.ndarray], trunk: np.ndarray) -> ArmPairs:
        i, j = self.problem.pairs[:, 0], self.problem.pairs[:, 1]
        against_trunk = (moved[0][i] & trunk[j]) | (moved[0][j] & trunk[i])
        beyond = moved[-1][i] | moved[-1][j]
        return ArmPairs(
            columns, self.problem.with_pairs(against_trunk), self.problem.with_pairs(against_trunk & beyond)
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return a copy of posture x (D,) with the arms free, as far as possible."""
        out = x.copy()
        free = [self._free(arm, out) for arm in self._arms]
        self.failures += not all(free)
        return out

    def _free(self, arm: ArmPairs, x: np.ndarray) -> bool:
        for _ in range(REPETITIONS):
            depth = clearance(arm.whole, x, self._scratch)
            if depth >= 0:
                return True
            columns = arm.columns if clearance(arm.forearm, x, self._scratch) < 0 else arm.columns[:1]
            trials = [self._shifted(x, c, sign * STEP * (abs(depth) + 1)) for c in columns for sign in (1, -1)]
            gains = [clearance(arm.whole, t, self._scratch) for t in trials]
            if max(gains) <= depth + 1e-6:
                break
            x[:] = trials[int(np.argmax(gains))]
        return clearance(arm.whole, x, self._scratch) >= 0 or self._search(arm, x)

    def _search(self, arm: ArmPairs, x: np.ndarray) -> bool:
        """Apply the smallest combination of whole steps that frees the arm; return whether one does."""
        steps = range(-REPETITIONS, REPETITIONS + 1)
        combinations = sorted(itertools.product(steps, repeat=len(arm.columns)), key=lambda c: sum(abs(k) for k in c))
        for combination in combinations:
            trial = x
            for column, k in zip(arm.columns, combination, strict=True):
                trial = self._shifted(trial, column, k * STEP)
            if clearance(arm.whole, trial, self._scratch) >= 0:
                x[:] = trial
                return True
        return False

    def _shifted(self, x: np.ndarray, column: int, angle: float) -> np.ndarray:
        out = x.copy()
        out[column] = np.clip(out[column] + angle, self._lower[column], self._upper[column])
        return out
