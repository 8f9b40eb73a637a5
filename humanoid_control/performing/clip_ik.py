"""Whole-body inverse kinematics of a clip.

minimise  sum_k w_k |corner_k - target_k|^2 + |C (c(x) - c_ref)|^2 + w_R |R(x) - R_ref|^2
          + sum_j w_j (x_j - ref_j)^2 + warm |x - x_start|^2
subject to  range and speed of every joint (bounds), near pairs of shapes keep their distance (rows)

per frame by Gauss-Newton steps (quadratic programs). Damping grows with the foot error, so nearly stretched legs make
small steps (Sugihara 2011).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2, F3, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import uncounted
from humanoid_control.kinematics.forward_kinematics import KinematicTree
from humanoid_control.numerics.box_qp import BoxQp, solve_box_qp_from
from humanoid_control.performing.foot_paths import SolePaths
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.retargeting.problem import (
    Followed,
    RetargetingProblem,
    Scratch,
    carried_rows,
    closest,
    near_pairs,
    place_points,
    point_jacobian,
    problem_with,
    scratch_for,
)
from humanoid_control.retargeting.whole_body.frames import move_base
from humanoid_control.robots import Robot

CORNERS, ROOT_AXES = 8, 3
# weights of a sole corner: in the air it may lag behind a slow knee rather than lower the trunk
STANDING, SWINGING = 1e5, 300.0
# ramps of this weight [s]: a posture that a standing sole has bent snaps back where the weight falls too quickly
LIFT_OFF, LANDING = 0.3, 0.08
CENTER = (400.0, 400.0, 400.0)  # centre of mass along x, y, z
ROOT, JOINTS, LEGS = 4.0, 1.0, 0.02  # rotation of the root, joints, leg joints [1/rad^2]
WARM, DAMPING, CAUTION = 0.05, 1e-3, 0.3  # weights of the start, of a step, of the foot error in the damping
FOOT_ERROR = 1e4  # weight of the foot error for the damping
AHEAD = 0.9  # share of the last step used for the prediction
FIRST, EACH = 30, 6  # Gauss-Newton steps of the first frame, and of all others
CONVERGED = 1e-4  # [rad, m] step size of convergence
LEAST_KNEE = 0.15  # [rad] minimum flexion: a straight leg is singular
MARGIN, ACTIVATION = 0.01, 0.05  # [m] distance to keep; distance of active pairs
APPROACH, RECOVERY, SLACK = 30.0, 0.3, 1e5  # [1/s] approach rate; [m/s] recovery; price of a violated row
FAR, CLOSE = 1e9, 0.05  # [m] no near pair; distance of measured pairs
HALVINGS = 5  # of a step that would cause penetration
BASE_SPEED = 20.0  # [m/s, rad/s]


class MassPoints(NamedTuple):
    """Centres of mass of B bodies: body (B,), place in it (B, 3) [m], mass share (B,)."""

    body: I1
    point: F2
    share: F1


class IkReference(NamedTuple):
    """References of T frames.

    Attributes:
        target: sole corners [m], then root axes (T, 11, 3).
        weight: (T, 11).
        center: (T, 3) [m].
        joints: coordinates, base ignored (T, D).
        own: their weights (D,).
        pull: weights of the centre of mass (3,).
    """

    target: F3
    weight: F2
    center: F2
    joints: F2
    own: F1
    pull: F1


class IkResults(NamedTuple):
    """Results of T frames: x (T, D), root R (T, 3, 3), p (T, 3), center (T, 3), clearance (T,) [m]."""

    x: F2
    R: F3
    p: F2
    center: F2
    clearance: F1


@kernel
def center_of(points: MassPoints, w: Scratch, out: np.ndarray) -> None:
    """Return the centre of mass (3,), after `place_points`."""
    R, p = w.bodies.R, w.bodies.p
    out[:] = 0.0
    for k in range(points.body.shape[0]):
        b, share = points.body[k], points.share[k]
        # share-weighted sum of body points p + R a
        for i in range(3):
            out[i] += share * (
                p[b, i]
                + R[b, i, 0] * points.point[k, 0]
                + R[b, i, 1] * points.point[k, 1]
                + R[b, i, 2] * points.point[k, 2]
            )


@kernel
def center_jacobian(points: MassPoints, tree: KinematicTree, w: Scratch, J: np.ndarray) -> None:
    """Fill the Jacobian (3, D) of the centre of mass, after `place_points`."""
    R, p, axes = w.bodies.R, w.bodies.p, w.bodies.axes
    J[:] = 0.0
    for j in range(axes.shape[0]):
        # mass share and first moment of all bodies that joint j moves
        mass, x, y, z = 0.0, 0.0, 0.0, 0.0
        for k in range(points.body.shape[0]):
            b = points.body[k]
            if tree.moves[b, j] == 0.0:
                continue
            share, a = points.share[k], points.point[k]
            mass += share
            x += share * (p[b, 0] + R[b, 0, 0] * a[0] + R[b, 0, 1] * a[1] + R[b, 0, 2] * a[2])
            y += share * (p[b, 1] + R[b, 1, 0] * a[0] + R[b, 1, 1] * a[1] + R[b, 1, 2] * a[2])
            z += share * (p[b, 2] + R[b, 2, 0] * a[0] + R[b, 2, 1] * a[1] + R[b, 2, 2] * a[2])
        c, gain = tree.coordinate[j], tree.gain[j]
        # a sliding joint translates its mass along the axis
        if tree.joints.slides[j]:
            for i in range(3):
                J[i, c] += gain * mass * axes[j, i]
            continue
        # a turning joint moves it by axis x (first moment about the joint)
        x, y, z = x - mass * p[j + 1, 0], y - mass * p[j + 1, 1], z - mass * p[j + 1, 2]
        J[0, c] += gain * (axes[j, 1] * z - axes[j, 2] * y)
        J[1, c] += gain * (axes[j, 2] * x - axes[j, 0] * z)
        J[2, c] += gain * (axes[j, 0] * y - axes[j, 1] * x)


@kernel
def add_squares(weight: float, error: np.ndarray, J: np.ndarray, first: int, H: np.ndarray, g: np.ndarray) -> None:
    """Add weight/2 |error - J[first : first + 3] step|^2 to H (lower triangle) and gradient g."""
    d = g.shape[0]
    for i in range(d):
        s0, s1, s2 = weight * J[first, i], weight * J[first + 1, i], weight * J[first + 2, i]
        # many joints do not move this point: skip their zero columns
        if s0 == 0.0 and s1 == 0.0 and s2 == 0.0:
            continue
        # g = -w J^T e, H = w J^T J
        g[i] -= s0 * error[0] + s1 * error[1] + s2 * error[2]
        for j in range(i + 1):
            H[i, j] += s0 * J[first, j] + s1 * J[first + 1, j] + s2 * J[first + 2, j]


@kernel(allocates=True)
def frame_equations(
    problem: RetargetingProblem,
    masses: MassPoints,
    reference: IkReference,
    t: int,
    x: np.ndarray,
    start: np.ndarray,
    w: Scratch,
    Jc: np.ndarray,
) -> None:
    """Fill Hessian (`w.curvature`, lower triangle) and gradient (`w.vectors[0]`) at x."""
    H, g, J, e, d = w.curvature, w.vectors[0], w.J, np.empty(3), x.shape[0]
    place_points(problem, x, w)
    point_jacobian(problem, w, J)
    center_jacobian(masses, problem.tree, w, Jc)
    # joint references and warm start are diagonal
    for i in range(d):
        for j in range(i):
            H[i, j] = 0.0
        H[i, i] = reference.own[i] + WARM + DAMPING
        g[i] = reference.own[i] * (x[i] - reference.joints[t, i]) + WARM * (x[i] - start[i])
    feet = 0.0
    for k in range(reference.target.shape[1]):
        for i in range(3):
            e[i] = reference.target[t, k, i] - w.points[k, i]
            if k < CORNERS:
                feet += FOOT_ERROR / 4.0 * e[i] * e[i]
        add_squares(reference.weight[t, k], e, J, 3 * k, H, g)
    center_of(masses, w, e)
    # the square root of the weight scales error and rows, so that one call adds all three axes
    for i in range(3):
        pull = np.sqrt(reference.pull[i])
        e[i] = pull * (reference.center[t, i] - e[i])
        for j in range(d):
            Jc[i, j] *= pull
    add_squares(1.0, e, Jc, 0, H, g)
    # Levenberg-Marquardt damping proportional to the foot error
    for i in range(d):
        H[i, i] += CAUTION * feet


@kernel
def distance_bounds(problem: RetargetingProblem, x: np.ndarray, dt: float, w: Scratch) -> int:
    """Fill the rows of near pairs; return their number."""
    count, keep = carried_rows(problem, x, ACTIVATION, w), np.exp(-APPROACH * dt)
    for k in range(count):
        limit = min(MARGIN, problem.at_rest[w.near.pair[k]])
        over = w.b[k] - limit
        # distances above the limit decay exponentially, those below recover at a bounded speed
        w.b[k] = (keep - 1.0) * over if over > 0.0 else min(-over, RECOVERY * dt)
    return count


@kernel(allocates=True)
def follow_clip(
    problem: RetargetingProblem,
    masses: MassPoints,
    reference: IkReference,
    begin: np.ndarray,
    dt: float,
    out: IkResults,
    w: Scratch,
) -> None:
    """Solve all frames in sequence; the tree's base frame is the initial root pose.

    Args:
        begin: start of the first frame (D,).
    """
    problem, reference, out, w = uncounted(problem), uncounted(reference), uncounted(out), uncounted(w)
    d = begin.shape[0]
    x, start, last, v, Jc = begin.copy(), begin.copy(), begin.copy(), np.zeros(d), np.empty((3, d))
    low, high, step = w.vectors[2], w.vectors[3], w.vectors[1]
    floor = 0.0
    for t in range(out.x.shape[0]):
        last[:] = x
        # predict from the last step, within range and speed
        for i in range(d):
            x[i] += AHEAD * v[i]
        for i in range(d):
            # the first frame has no predecessor and so no speed limit
            reach = problem.velocity[i] * dt if t > 0 else np.inf
            x[i] = min(max(x[i], problem.lower[i], last[i] - reach), problem.upper[i], last[i] + reach)
        start[:] = x
        # a new frame: measure the near pairs again
        w.measured.found[0] = -1
        for _ in range(EACH if t > 0 else FIRST):
            frame_equations(problem, masses, reference, t, x, start, w, Jc)
            for i in range(d):
                reach = problem.velocity[i] * dt if t > 0 else np.inf
                low[i] = max(problem.lower[i], last[i] - reach) - x[i]
                high[i] = min(problem.upper[i], last[i] + reach) - x[i]
                # zero must stay admissible: bounds never exclude the present posture
                low[i], high[i] = min(low[i], 0.0), max(high[i], 0.0)
            count = distance_bounds(problem, x, dt, w)
            # start without active rows: the near pairs may have changed
            w.guess.works[:] = False
            program = BoxQp(w.curvature, w.vectors[0], low, high, w.G, w.b)
            solve_box_qp_from(program, count, SLACK, step, w.price, w.guess)
            size = 0.0
            for i in range(d):
                x[i] += step[i]
                size = max(size, abs(step[i]))
            if size < CONVERGED:
                break
        place_points(problem, x, w)
        # the rows were linearised: measure the true distance
        distance = closest(w, near_pairs(problem, w, CLOSE), FAR)
        share = 1.0
        for _ in range(HALVINGS if t > 0 else 0):
            if distance >= floor:
                break
            share *= 0.5  # the linearised rows were too rough: a shorter step from a posture that was free
            for i in range(d):
                x[i] = last[i] + (x[i] - last[i]) * 0.5
            place_points(problem, x, w)
            distance = closest(w, near_pairs(problem, w, CLOSE), FAR)
        # an unavoidable penetration is permitted in the next frame too
        floor = min(0.0, distance)
        out.x[t], out.clearance[t] = x, distance
        center_of(masses, w, out.center[t])
        v[:] = x - last
        # the step to the first frame is no motion
        if t == 0:
            v[:] = 0.0
        move_base(problem, w, x, v)
        out.R[t], out.p[t] = problem.tree.joints.R[0], problem.tree.joints.p[0]


class ClipIk:
    """Inverse kinematics of clips on one robot.

    Attributes:
        legs: coordinates of leg joints (D,) bool.
    """

    def __init__(self, robot: Robot, soles: RigidSoles, moving: np.ndarray) -> None:
        """Set up.

        Args:
            robot: floating base.
            moving: joints moved by the clip; legs and waist are added.
        """
        followers = [follower for follower, *_ in robot.mimic]
        self.robot, self.soles = robot, soles
        self.moving = np.setdiff1d(np.union1d(moving, soles.legs.moving), followers)
        corners = [
            Followed(soles.joints[f], soles.X_joint_sole[f].act(corner)) for f in (0, 1) for corner in soles.corners[f]
        ]
        root = [Followed(1, axis, free=True) for axis in np.eye(3)]
        p = problem_with(robot, self.moving, corners + root)
        velocity = p.velocity.copy()
        velocity[: p.base] = BASE_SPEED
        lower, upper = p.lower.copy(), p.upper.copy()
        self._bend_knees(lower, upper)
        self.problem = p._replace(velocity=velocity, lower=lower, upper=upper)
        self.masses = self._masses()
        self.scratch = scratch_for(self.problem)
        groups = np.isin(self.moving, np.concatenate(_leg_joints(robot)))
        self.legs = np.concatenate([np.zeros(p.base, dtype=bool), groups])

    def _bend_knees(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Keep knees bent towards their own side."""
        model = self.robot.model
        for joint in self.soles.legs.joints[1:3]:
            k = model.joints[joint].idx_v - self.robot.iv
            if k not in self.moving:
                continue
            i = 6 + int(np.searchsorted(self.moving, k))
            if upper[i] > -lower[i]:
                lower[i] = max(lower[i], min(LEAST_KNEE, upper[i]))
            else:
                upper[i] = min(upper[i], max(-LEAST_KNEE, lower[i]))

    def _masses(self) -> MassPoints:
        robot = self.robot
        _, body = KinematicTree.of(robot.model, robot.q(), self.moving, robot.mimic)
        total: dict[int, list] = {}
        for joint in range(1, robot.model.njoints):
            inertia = robot.model.inertias[joint]
            if inertia.mass > 0:
                b, X = body.place(joint, pin.SE3.Identity())
                found = total.setdefault(b, [0.0, np.zeros(3)])
                found[0] += inertia.mass
                found[1] = found[1] + inertia.mass * X.act(inertia.lever)
        bodies = sorted(total)
        mass = np.array([total[b][0] for b in bodies])
        points = np.array([total[b][1] / total[b][0] for b in bodies])
        return MassPoints(np.array(bodies, dtype=np.int64), points, mass / mass.sum())

    def solve(
        self,
        paths: SolePaths,
        stands: np.ndarray,
        center: np.ndarray,
        q_ref: np.ndarray,
        rate: float,
        own: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q (T, nq), centre of mass (T, 3) [m] and clearance (T,) [m] of a clip.

        Args:
            center: centre of mass (T, 3) [m].
            q_ref: joint and root rotation reference (T, nq).
            own: joint weights (D,); default: JOINTS, LEGS for legs.
        """
        p, robot, T = self.problem, self.robot, len(center)
        d = len(p.rest)
        R = np.array([pin.Quaternion(x).toRotationMatrix() for x in q_ref[:, 3:7]])
        corners = np.einsum("tfij,fkj->tfki", paths.R, self.soles.corners) + paths.p[:, :, None]
        target = np.concatenate([corners.reshape(T, CORNERS, 3), np.swapaxes(R, 1, 2)], axis=1)
        weight = np.full((T, CORNERS + ROOT_AXES), 0.5 * ROOT)
        weight[:, :CORNERS] = np.repeat(sole_weights(stands, rate), 4, axis=1)
        joints = np.zeros((T, d))
        joints[:, 6:] = q_ref[:, robot.iq :][:, self.moving]
        if own is None:
            own = np.where(self.legs, LEGS, JOINTS)
        own = own.copy()
        own[:6] = 0.0
        frames = p.tree.joints
        frames.R[0], frames.p[0] = R[0], q_ref[0, :3]
        begin = joints[0].copy()
        begin[6:] = np.clip(begin[6:], p.lower[6:], p.upper[6:])
        reference = IkReference(
            np.ascontiguousarray(target), weight, np.ascontiguousarray(center), joints, own, np.array(CENTER)
        )
        out = IkResults(np.empty((T, d)), np.empty((T, 3, 3)), np.empty((T, 3)), np.empty((T, 3)), np.empty(T))
        follow_clip(p, self.masses, reference, begin, 1.0 / rate, out, self.scratch)
        q = np.tile(robot.q("neutral"), (T, 1))
        q[:, robot.iq + self.moving] = out.x[:, 6:]
        for row in q if robot.mimic else ():
            robot.follow(row[robot.iq :])
        q[:, :3], q[:, 3:7] = out.p, np.array([pin.Quaternion(x).coeffs() for x in out.R])
        return q, out.center, np.where(out.clearance < FAR, out.clearance, np.inf)


def sole_weights(stands: np.ndarray, rate: float) -> np.ndarray:
    """Return corner weights (T, 2): falling after a lift-off, low in the air, rising before a landing."""
    T = len(stands)
    t = np.arange(T)[:, None]
    last = np.maximum.accumulate(np.where(stands, t, -T), axis=0)
    following = np.minimum.accumulate(np.where(stands, t, 2 * T)[::-1], axis=0)[::-1]
    away = np.minimum((t - last) / (LIFT_OFF * rate), (following - t) / (LANDING * rate))
    return np.asarray(STANDING * (SWINGING / STANDING) ** np.minimum(away, 1.0))


def _leg_joints(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    from humanoid_control.robots.joint_groups import JointGroups

    groups = JointGroups.of(robot)
    return groups.l_leg, groups.r_leg
