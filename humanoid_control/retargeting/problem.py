"""Retargeting problem as plain arrays, with compiled kinematics of tracked points and collision shapes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import shape_arrays
from humanoid_control.collision.pair_distance import PairsFound, pair_distance, pair_distances, shape_poses
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.compiled.array_types import B1, F1, F2, F3, I1, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.kinematics.forward_kinematics import KinematicTree, WorldPoses, add_point_row, body_poses
from humanoid_control.numerics.box_program import Guess
from humanoid_control.numerics.vec3 import Vec, row
from humanoid_control.retargeting.scaling import POINTS
from humanoid_control.robots.robot import FLOATING, Robot

STRAIGHT = 0.02  # [rad, m] motion since the last measurement within which all distances are linearised
TIGHT = 0.03  # [m] distance below which pairs are measured again beyond that
FAR_OFF = 0.3  # [rad, m] motion after which near pairs are searched again
VECTORS = 6  # work vectors of length D
ENDLESS_BASE = 1e6  # [m, rad] range of a floating base; also its speed [m/s, rad/s]


class RetargetingProblem(NamedTuple):
    """Constant part of the problem. D coordinates, K points, S shapes, P pairs.

    Attributes:
        point_body: (K,) tree body of each tracked point: POINTS, then optional wrist levers for the forearm rotation.
        free: (K,) True: a vector that rotates with the body.
        shapes: `joint` is the tree body, R and p the pose in it.
        pairs: (P, 2) shapes that must not touch and can move relative to each other.
        at_rest: (P,) largest margin: the distance in the neutral posture [m].
        weight: (K,) of squared errors; frame-by-frame solvers may write to it.
        soles: (C,) points that stay above the floor z = 0; none with a fixed base.
        base: number of floating-base coordinates, which are first: 0 or 6.
    """

    tree: KinematicTree
    point_body: I1
    point: F2
    free: B1
    lower: F1
    upper: F1
    velocity: F1
    rest: F1
    shapes: ShapeArrays
    pairs: I2
    at_rest: F1
    weight: F1
    soles: I1
    base: int

    def with_pairs(self, chosen: np.ndarray) -> RetargetingProblem:
        """Return the problem with the pairs chosen by a mask (P,)."""
        pairs = np.ascontiguousarray(self.pairs[chosen])
        return self._replace(pairs=pairs, at_rest=np.ascontiguousarray(self.at_rest[chosen]))


class Measured(NamedTuple):
    """Last measurement of the near pairs of `Scratch.near`, for extrapolation.

    Attributes:
        rows: (P, D) distance gradients.
        found: (2,) number of near pairs (-1: invalid), and of all pairs.
    """

    x: F1
    rows: F2
    found: I1
    threshold: F1


class Scratch(NamedTuple):
    """Work memory of the kernels.

    Rows G (P + C, D) . step >= b (P + C,) of pairs and soles; curvature (D, D) of the cost at the last step, lower
    triangle, zero before the first; J (3 K, D) of the points; vectors (VECTORS, D), price (D + P + C,) and guess of a
    step; memory (D, D).
    """

    bodies: WorldPoses
    points: F2
    shape_R: F3
    shape_p: F2
    near: PairsFound
    measured: Measured
    G: F2
    b: F1
    curvature: F2
    J: F2
    vectors: F2
    price: F1
    guess: Guess
    memory: F2


def problem_of(robot: Robot, lever: float = 0.0) -> RetargetingProblem:
    """Return the problem of a fixed-base robot with moving imitation joints.

    Args:
        lever: length of the wrist levers [m]; 0: none.
    """
    return problem_with(robot, robot.imitation_joints, imitation_points(robot, lever))


class Followed(NamedTuple):
    """Tracked point: position in the frame of a pinocchio joint [m]; `free`: a vector of that frame."""

    joint: int
    point: np.ndarray
    free: bool = False


def imitation_points(robot: Robot, lever: float) -> list[Followed]:
    """Return the seven points, and the lever ends if `lever` > 0."""
    frames = [robot.model.frames[robot.point_frame(name)] for name in POINTS]
    points = [Followed(int(f.parentJoint), np.array(f.placement.translation)) for f in frames]
    return points + (forearm_levers(robot, lever) if lever > 0 else [])


def problem_with(robot: Robot, moving: np.ndarray, followed: list[Followed]) -> RetargetingProblem:
    """Return the problem of some joints (n,), and of a floating base; other joints stay neutral."""
    tree, body = KinematicTree.of(robot.model, robot.q(), moving, robot.mimic)
    base = 6 if robot.base == FLOATING else 0
    carried = [body.place(f.joint, pin.SE3.Identity()) for f in followed]
    places = [X.rotation @ f.point if f.free else X.act(f.point) for f, (_, X) in zip(followed, carried, strict=True)]
    shapes = shape_arrays(robot.model, robot.shapes)
    placed = [body.place(int(j), pin.SE3(R, p)) for j, R, p in zip(shapes.joint, shapes.R, shapes.p, strict=True)]
    shape_body = np.array([b for b, _ in placed], dtype=np.int64)
    apart = (tree.moves[shape_body[robot.pairs[:, 0]]] != tree.moves[shape_body[robot.pairs[:, 1]]]).any(axis=1)
    return RetargetingProblem(
        tree,
        np.array([b for b, _ in carried], dtype=np.int64),
        np.array(places),
        np.array([f.free for f in followed]),
        np.concatenate([np.full(base, -ENDLESS_BASE), robot.lower[moving]]),
        np.concatenate([np.full(base, ENDLESS_BASE), robot.upper[moving]]),
        np.concatenate([np.full(base, ENDLESS_BASE), robot.velocity[moving]]),
        np.concatenate([np.zeros(base), robot.postures["neutral"][moving]]),
        shapes._replace(
            joint=shape_body,
            R=np.array([X.rotation for _, X in placed]).reshape(-1, 3, 3),
            p=np.array([X.translation for _, X in placed]).reshape(-1, 3),
        ),
        np.ascontiguousarray(robot.pairs[apart], dtype=np.int64),
        robot.largest_margins()[apart],
        np.ones(len(followed)),
        np.zeros(0, dtype=np.int64),
        base,
    )


def forearm_levers(robot: Robot, lever: float) -> list[Followed]:
    """Return the left and right lever: the pronation joint, and the lever end in its frame.

    At zero, with a hanging arm and the palm toward the trunk, the lever points forward like the thumb. Empty if a robot
    cannot rotate its forearms.
    """
    ends = []
    for side in "lr":
        name = robot.joint_for(f"{side}_forearm_pronation")
        if name is None or robot.index[name] not in robot.imitation_joints:
            return []
        joint = robot.model.getJointId(name)
        wrist = robot.point_positions(robot.q("zero"), [f"{side}_wrist"])[0]
        pin.forwardKinematics(robot.model, robot.data, robot.q("zero"))
        ends.append(Followed(joint, robot.data.oMi[joint].actInv(wrist + np.array([lever, 0.0, 0.0]))))
    return ends


def scratch_for(problem: RetargetingProblem) -> Scratch:
    """Allocate kernel memory for one problem and one thread."""
    m, s = len(problem.tree.parent), len(problem.shapes.kinds)
    d, pairs = len(problem.rest), len(problem.pairs)
    nothing = Measured(np.zeros(d), np.zeros((pairs, d)), np.full(2, -1, dtype=np.int64), np.zeros(1))
    return Scratch(
        WorldPoses.of(m + 1, m),
        np.empty((len(problem.point), 3)),
        np.empty((s, 3, 3)),
        np.empty((s, 3)),
        PairsFound.buffer(pairs),
        nothing,
        np.empty((pairs + len(problem.soles), d)),
        np.empty(pairs + len(problem.soles)),
        np.zeros((d, d)),
        np.empty((3 * len(problem.point), d)),
        np.empty((VECTORS, d)),
        np.empty(d + pairs + len(problem.soles)),
        Guess.nothing(d, pairs + len(problem.soles)),
        np.empty((d, d)),
    )


# -------- kinematics


@kernel
def place_points(problem: RetargetingProblem, x: np.ndarray, w: Scratch) -> None:
    """Compute bodies, axes and tracked points (`w.points`) at coordinates x (D,)."""
    body_poses(problem.tree, x, w.bodies)
    R, p = w.bodies.R, w.bodies.p
    for k in range(problem.point.shape[0]):
        b = problem.point_body[k]
        for i in range(3):
            # R point + p; vectors only rotate
            w.points[k, i] = (
                (0.0 if problem.free[k] else p[b, i])
                + R[b, i, 0] * problem.point[k, 0]
                + R[b, i, 1] * problem.point[k, 1]
                + R[b, i, 2] * problem.point[k, 2]
            )


@kernel
def point_jacobian(problem: RetargetingProblem, w: Scratch, J: np.ndarray) -> None:
    """Compute the Jacobian (3 K, D) of the tracked points, after `place_points`."""
    tree, axes, p = problem.tree, w.bodies.axes, w.bodies.p
    J[:] = 0.0
    for k in range(problem.point.shape[0]):
        b, free = problem.point_body[k], problem.free[k]
        for j in range(axes.shape[0]):
            if tree.moves[b, j] == 0.0:
                continue
            # mimic joints share the coordinate of their leader, scaled by their gain
            c, gain = tree.coordinate[j], tree.gain[j]
            if tree.joints.slides[j]:
                if not free:  # a vector is translation invariant
                    for i in range(3):
                        J[3 * k + i, c] += gain * axes[j, i]
                continue
            x, y, z = w.points[k, 0], w.points[k, 1], w.points[k, 2]
            if not free:
                x, y, z = x - p[j + 1, 0], y - p[j + 1, 1], z - p[j + 1, 2]
            # revolute column: axis x (point - joint position)
            J[3 * k, c] += gain * (axes[j, 1] * z - axes[j, 2] * y)
            J[3 * k + 1, c] += gain * (axes[j, 2] * x - axes[j, 0] * z)
            J[3 * k + 2, c] += gain * (axes[j, 0] * y - axes[j, 1] * x)


@kernel
def near_pairs(problem: RetargetingProblem, w: Scratch, threshold: float) -> int:
    """Measure pairs closer than a threshold, after `place_points`; return their number."""
    # invalidates the extrapolation of `carried_rows`
    w.measured.found[0] = -1
    if problem.pairs.shape[0] == 0:
        return 0
    shape_poses(w.bodies.R, w.bodies.p, problem.shapes, w.shape_R, w.shape_p)
    return pair_distances(problem.shapes, w.shape_R, w.shape_p, problem.pairs, threshold, w.near)


@kernel
def distance_row(
    problem: RetargetingProblem, w: Scratch, pair: int, n: Vec, on_1: Vec, on_2: Vec, out: np.ndarray
) -> None:
    """Compute the gradient (D,) of a pair's distance from its normal and nearest points."""
    out[:] = 0.0
    i, j = problem.pairs[pair, 0], problem.pairs[pair, 1]
    # d(distance) = n . (d on_2 - d on_1), with n from shape i to shape j
    add_point_row(problem.tree, w.bodies, problem.shapes.joint[j], on_2, n, 1.0, out)
    add_point_row(problem.tree, w.bodies, problem.shapes.joint[i], on_1, n, -1.0, out)


@kernel
def distance_rows(problem: RetargetingProblem, w: Scratch, count: int, G: np.ndarray) -> None:
    """Compute gradients (count, D) of the near distances, after `near_pairs`."""
    near = w.near
    for k in range(count):
        distance_row(problem, w, near.pair[k], row(near.normal, k), row(near.point_1, k), row(near.point_2, k), G[k])


@kernel(allocates=True)
def measure(problem: RetargetingProblem, x: np.ndarray, threshold: float, w: Scratch) -> int:
    """Measure near pairs and gradients at x (D,), after `place_points`, for `carried_rows`; return their number."""
    m = w.measured
    count = near_pairs(problem, w, threshold)
    distance_rows(problem, w, count, m.rows)
    m.x[:] = x
    m.found[0], m.found[1], m.threshold[0] = count, problem.pairs.shape[0], threshold
    return count


@kernel
def carried_rows(problem: RetargetingProblem, x: np.ndarray, threshold: float, w: Scratch) -> int:
    """Compute distances (`w.b`) and gradients (`w.G`) of the near pairs at x (D,), after `place_points`.

    Near pairs are extrapolated by their gradients; beyond STRAIGHT, close pairs are measured again, beyond FAR_OFF all.
    """
    m, d, moved = w.measured, x.shape[0], 0.0
    # no valid measurement for these pairs and this threshold
    if m.found[0] < 0 or m.found[1] != problem.pairs.shape[0] or m.threshold[0] != threshold:
        measure(problem, x, threshold, w)
    for i in range(problem.base, d):
        moved = max(moved, abs(x[i] - m.x[i]))
    # also true for NaN
    if not moved <= FAR_OFF:
        measure(problem, x, threshold, w)
        moved = 0.0
    # shape poses are needed only for pairs measured again
    if moved > STRAIGHT:
        shape_poses(w.bodies.R, w.bodies.p, problem.shapes, w.shape_R, w.shape_p)
    for k in range(m.found[0]):
        # first-order extrapolation from the measured posture
        w.b[k] = w.near.distance[k]
        for i in range(d):
            w.G[k, i] = m.rows[k, i]
        for i in range(problem.base, d):
            w.b[k] += m.rows[k, i] * (x[i] - m.x[i])
        if moved > STRAIGHT and w.b[k] < TIGHT:
            pair = w.near.pair[k]
            i, j = problem.pairs[pair, 0], problem.pairs[pair, 1]
            w.b[k], n, on_1, on_2 = pair_distance(problem.shapes, w.shape_R, w.shape_p, i, j)
            distance_row(problem, w, pair, n, on_1, on_2, w.G[k])
    return m.found[0]


@kernel
def closest(w: Scratch, count: int, none: float) -> float:
    """Return the least near distance, or `none` without near pairs."""
    d = none
    for k in range(count):
        d = min(d, w.near.distance[k])
    return d


@kernel
def mean_error(w: Scratch, target: np.ndarray, out: np.ndarray) -> float:
    """Fill target distances (7,) of the first points [m], after `place_points`; return their mean."""
    total = 0.0
    for k in range(out.shape[0]):
        e = 0.0
        for i in range(3):
            e += (target[k, i] - w.points[k, i]) ** 2
        out[k] = np.sqrt(e)
        total += out[k]
    return total / out.shape[0]
