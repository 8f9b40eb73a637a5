"""The source's avoidance: shift shoulder abduction or elbow flexion of a colliding arm (Dube 2012, eq. 4.58)."""

from __future__ import annotations

import itertools

import numpy as np

from humanoid_control.imitation.arrays import Problem, scratch_for
from humanoid_control.imitation.solve_frame import clearance
from humanoid_control.robots import Robot

STEP = np.radians(10.0)
REPETITIONS = 18
SIDES = ("l", "r")


class JointShift:
    """Moves the arms of one posture after the other out of the body; knows nothing of the postures before.

    theta := theta +- 10 deg (|d| + 1), d the depth of the collision [m], repeated until the arm is free. The source
    leaves open which joint, which sign and how often: of shoulder abduction, and elbow flexion where the forearm or the
    hand collides, each in both directions, the shift that brings most distance is taken. Where that gets stuck, the
    smallest combination of whole steps that frees the arm is. Joint ranges are kept, speeds are not: the rule looks at
    single postures. Only an arm against trunk, pelvis and legs counts: not one arm against the other, nor, as in the
    source, an arm against the head, which no shift frees from a raised shoulder.

    Attributes:
        failures: postures so far that no shift could free.
    """

    def __init__(self, robot: Robot, problem: Problem) -> None:
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
        """(S,) which shapes a coordinate moves."""
        joints = np.flatnonzero(self.problem.tree.coordinate == column)
        return self.problem.tree.moves[self.problem.shape_body][:, joints].any(axis=1)

    def _trunk(self, robot: Robot, arms: list[np.ndarray]) -> np.ndarray:
        """(S,) shapes that only those joints move which move all arms too; those on a neck left out."""
        moves = self.problem.tree.moves[self.problem.shape_body] > 0
        shared = np.ones(moves.shape[1], dtype=bool)
        for arm in arms:
            shared &= moves[arm].all(axis=0)
        frames = [robot.model.frames[robot.model.getFrameId(s.link)] for s in robot.shapes]
        held_by = robot.support[[f.parentJoint for f in frames]][:, robot.iv :]
        on_arm = np.flatnonzero(np.stack(arms).any(axis=0)) if arms else np.zeros(0, dtype=int)
        below_arms = held_by[on_arm].any(axis=0)  # WABIAN-2 turns its pelvis by an optional joint
        neck = [j for j in robot.optional_joints if not below_arms[j]]
        on_neck = held_by[:, neck].any(axis=1)
        return ~(moves & ~shared).any(axis=1) & ~on_neck

    def _arm(self, columns: list[int], moved: list[np.ndarray], trunk: np.ndarray) -> _Arm:
        i, j = self.problem.pairs[:, 0], self.problem.pairs[:, 1]
        against_trunk = (moved[0][i] & trunk[j]) | (moved[0][j] & trunk[i])
        beyond = moved[-1][i] | moved[-1][j]
        whole = self.problem._replace(pairs=np.ascontiguousarray(self.problem.pairs[against_trunk]))
        forearm = self.problem._replace(pairs=np.ascontiguousarray(self.problem.pairs[against_trunk & beyond]))
        return _Arm(columns, whole, forearm)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The posture (D,) with both arms free of the body, as far as shifting can do it; x is not changed."""
        out = x.copy()
        free = [self._free(arm, out) for arm in self._arms]
        self.failures += not all(free)
        return out

    def _free(self, arm: _Arm, x: np.ndarray) -> bool:
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

    def _search(self, arm: _Arm, x: np.ndarray) -> bool:
        """The smallest combination of whole steps, of all the arm's shiftable joints, that frees it."""
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


class _Arm:
    """One arm: its shiftable coordinates, its pairs against the body, and those of its forearm and hand."""

    def __init__(self, columns: list[int], whole: Problem, forearm: Problem) -> None:
        self.columns, self.whole, self.forearm = columns, whole, forearm
