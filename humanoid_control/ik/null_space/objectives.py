"""Null-space objectives: scalar costs H(q) with their gradients (Schwienbacher 2014, sections 4.3, 4.4 and chapter 5).

Single joints (away from the limits, towards a comfortable posture), self-collision by the repulsive law of eq. 5.15,
and manipulability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pair_distance import NearPairs, PairJoints, PairsFound, distance_rate
from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.jit import kernel
from humanoid_control.numerics.vec3 import cross, row
from humanoid_control.robots.robot import Robot, joint_columns

SAMPLED_RANGE = 3.0  # [rad] random postures bend no joint farther


class Objective(ABC):
    """A cost H(q) that is made smaller in the null space of the tasks (Liegeois, eq. 4.11)."""

    @abstractmethod
    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        """H(q), at what `prepare` has computed in `data`."""

    @abstractmethod
    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """dH / dv, (nv,)."""


# -------- Single joints (Fig. 4.2)


def band_depth(
    joints: np.ndarray, lower: np.ndarray, upper: np.ndarray, band: float, range_share: float = 0.5
) -> np.ndarray:
    """Depth of joints in the bands at the ends of their ranges (n,): positive at the upper end, 0 outside [rad].

    Args:
        joints: (n,) joint angles [rad].
        lower: (n,) lower ends of their ranges [rad].
        upper: (n,) upper ends of their ranges [rad].
        band: width of the bands [rad]; at most the share `range_share` of a joint's range.
    """
    out = np.empty(len(joints))
    fill_band_depth(joints, lower, upper, band, range_share, 1.0, out)
    return out


@kernel
def fill_band_depth(
    joints: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    band: float,
    range_share: float,
    scale: float,
    out: np.ndarray,
) -> None:
    """`band_depth` times `scale`, into out (n,)."""
    for i in range(joints.shape[0]):
        width = min(band, range_share * (upper[i] - lower[i]))
        above, below = joints[i] - (upper[i] - width), joints[i] - (lower[i] + width)
        out[i] = scale * (max(above, 0.0) + min(below, 0.0))


class JointLimitCost(Objective):
    """Zero in the middle of a joint's range, growing with the square of the depth in the band at either end.

    Attributes:
        band: width of the band inside each limit [rad]; at most half of a joint's range.
        weight: k_l; the gradient is weight times the depth in the band.
    """

    def __init__(self, band: float = 0.2, weight: float = 10.0) -> None:
        if not band > 0 or not weight >= 0:
            raise ConfigError(f"joint-limit cost: band > 0 and weight >= 0 are needed, got {band:g} and {weight:g}")
        self.band, self.weight = band, weight

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        return 0.5 * self.weight * float(np.sum(band_depth(robot.joints(q), robot.lower, robot.upper, self.band) ** 2))

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out = np.zeros(robot.nv)
        fill_band_depth(q[robot.iq :], robot.lower, robot.upper, self.band, 0.5, self.weight, out[robot.iv :])
        return out


class ComfortCost(Objective):
    """Half the weighted square of the distance to a comfortable posture: keeps free joints from drifting away.

    Attributes:
        posture: (n,) preferred angles [rad].
        weights: (n,) k_c of each joint.
    """

    def __init__(self, posture: np.ndarray, weights: float | np.ndarray = 1.0) -> None:
        self.posture = np.array(posture, dtype=float)
        self.weights = np.array(np.broadcast_to(np.asarray(weights, dtype=float), self.posture.shape))
        if (self.weights < 0).any():
            raise ConfigError("comfort cost: weights must not be negative")

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        return 0.5 * float(self.weights @ (robot.joints(q) - self.posture) ** 2)

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out = np.zeros(robot.nv)
        out[robot.iv :] = self.weights * (robot.joints(q) - self.posture)
        return out


# -------- Self-collision (chapter 5)

MIN_ACTIVATION = 0.002  # [m] activation distance of pairs that touch where the robot stands
MIN_PAIR_MOBILITY = 0.02  # [m^2/rad^2] pairs that hardly anything moves are not pushed the harder for it


def repulsion(
    d: np.ndarray, activation: float | np.ndarray, contact: float | np.ndarray, blend: float = 0.5
) -> np.ndarray:
    """g(d) >= 0, the repulsive law between two shapes (eq. 5.15): -g is dH/dd.

    With +g, as (5.10) prints it, the gradient descent of (4.12) would pull the shapes together.
    Linear near contact, quadratic towards the activation distance.

    Args:
        d: (k,) signed distances [m].
        activation: d_a > 0 from which on there is no push [m], one or (k,).
        contact: s_0 = g(0), one or (k,).
        blend: t, the share of d_a below which the law is a line: 0 makes it quadratic (5.12), 1 linear (5.11);
            Schwienbacher uses 0.4 to 0.6. Value and slope are continuous for t < 1.
    """
    d, a, s = np.broadcast_arrays(np.asarray(d, dtype=float), activation, contact)
    return np.array(
        [pair_repulsion(*each, blend) for each in zip(d.ravel(), a.ravel(), s.ravel(), strict=True)]
    ).reshape(d.shape)


@kernel
def pair_repulsion(d: float, activation: float, contact: float, blend: float) -> float:
    """`repulsion` of one pair."""
    if d >= activation:
        return 0.0
    if d < blend * activation or blend >= 1.0:
        return contact - 2.0 * contact / (activation * (1.0 + blend)) * d
    return contact * (activation - d) ** 2 / (activation * activation * (1.0 - blend * blend))


@kernel
def repulsion_gradient(
    J6: np.ndarray,
    found: PairsFound,
    joints: PairJoints,
    activation: np.ndarray,
    contact: np.ndarray,
    blend: float,
    out: np.ndarray,
) -> None:
    """The gradient -sum g(d) dd/dv of all near pairs: eq. 5.9, with the sign of `repulsion`.

    Args:
        J6: (6, nv) twists of the velocities at the world origin.
        found: see `NearPairs`.
        joints: see `NearPairs`.
        activation: (P,) activation distances [m].
        contact: (P,) contact distances [m].
        blend: as of `repulsion`.
        out: (nv,) filled.
    """
    out[:] = 0.0
    moves = joints.ancestor_mask
    for k in range(found.pair.shape[0]):
        pair = found.pair[k]
        g = pair_repulsion(found.distance[k], activation[pair], contact[pair], blend)
        if g == 0.0:
            continue
        n, i, j = row(found.normal, k), joints.first[pair], joints.second[pair]
        moment_1, moment_2 = cross(row(found.point_1, k), n), cross(row(found.point_2, k), n)
        for c in range(out.shape[0]):
            if moves[i, c] != moves[j, c]:  # else both move as one, or neither: the distance stays
                out[c] -= g * distance_rate(n, moment_1, moment_2, moves[i, c], moves[j, c], J6, c)


def repulsion_potential(
    d: np.ndarray, activation: float | np.ndarray, contact: float | np.ndarray, blend: float = 0.5
) -> np.ndarray:
    """H_C(d) with dH_C/dd = -g(d) and H_C = 0 from the activation distance on; arguments as of `repulsion`."""
    a, s, t = activation, contact, blend
    start = s * a * (1 - t) ** 2 / (3 * (1 + t))
    line = start + s * (t * a - d) - s * (t**2 * a**2 - d**2) / (a * (1 + t))
    if t >= 1:
        return np.where(d < a, line, 0.0)
    curve = s * (a - d) ** 3 / (3 * a**2 * (1 - t**2))
    return np.where(d < t * a, line, np.where(d < a, curve, 0.0))


def stable_contact_gradient(
    null_gain: float, dt: float, activation: float | np.ndarray, blend: float, mobility: float | np.ndarray
) -> float | np.ndarray:
    """The largest s_0 for which an Euler step of one active pair does not overshoot; twice it is the edge of stability.

    From alpha_N dt 2 s_0 / (d_a (1 + t)) m < 1, the steepest slope of the law times what a push moves.

    Args:
        null_gain: alpha_N.
        dt: [s].
        activation: d_a [m].
        blend: t.
        mobility: m = grad d N W^-1 grad d^T; with N left out it is at least that, hence on the safe side.
    """
    return activation * (1 + blend) / (2 * null_gain * dt * mobility)


def activation_distances(robot: Robot, maximum: float = 0.05, share: float = 0.8) -> np.ndarray:
    """Activation distance (P,) of each pair [m]: below its clearance in the neutral posture, so that this is at rest.

    Args:
        robot: whose pairs.
        maximum: [m].
        share: of the clearance in the neutral posture.
    """
    pairs = robot.collision_monitor()
    near, clearance = pairs.update(robot.q("neutral"), np.inf), np.empty(pairs.count)
    clearance[near.pair] = near.distance
    return np.clip(share * clearance, MIN_ACTIVATION, maximum)


class SelfCollisionCost(Objective):
    """The sum over all pairs of the blended repulsive potential; near pairs are pushed apart.

    The tasks come first: where they leave no freedom to a pair, it is not kept apart.

    Attributes:
        activation: (P,) distance below which a pair is pushed [m].
        contact: (P,) push s_0 at contact [rad/s per m/rad, with a null-space gain of 1].
        blend: t of the law, 0 quadratic, 1 linear.
    """

    def __init__(
        self,
        robot: Robot,
        activation: float | np.ndarray | None = None,
        contact: float | np.ndarray = 2.0,
        blend: float = 0.5,
    ) -> None:
        """Monitor all pairs of a robot: of its volumes where it has a file of them, else of its shapes.

        Args:
            robot: the robot.
            activation: [m] of all pairs or of each; default: `activation_distances`.
            contact: s_0 of all pairs or of each.
            blend: 0..1.

        Raises:
            ConfigError: a value outside its range.
        """
        self.blend, self.pairs = blend, robot.collision_monitor()
        a = activation_distances(robot) if activation is None else activation
        self.activation = np.array(np.broadcast_to(np.asarray(a, dtype=float), (self.pairs.count,)))
        self.contact = np.array(np.broadcast_to(np.asarray(contact, dtype=float), (self.pairs.count,)))
        if not (self.activation > 0).all() or not (self.contact >= 0).all() or not 0 <= blend <= 1:
            raise ConfigError("self-collision cost: activation > 0, contact >= 0 and a blend from 0 to 1 are needed")
        self._near_now: NearPairs | Callable[[], NearPairs] | None = None

    @property
    def near(self) -> NearPairs | None:
        """The pairs within their activation distance at the last gradient."""
        if callable(self._near_now):
            self._near_now = self._near_now()
        return self._near_now

    @near.setter
    def near(self, value: NearPairs | Callable[[], NearPairs] | None) -> None:
        self._near_now = value

    def _near(self, q: np.ndarray) -> NearPairs:
        return self.pairs.update(q, float(self.activation.max(initial=0.0)))

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        near = self._near(q)
        a, s = self.activation[near.pair], self.contact[near.pair]
        return float(np.sum(repulsion_potential(near.distance, a, s, self.blend)))

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out = np.zeros(robot.nv)
        self.near = near = self.pairs.update(q, self.activation)
        if len(near):
            repulsion_gradient(
                joint_columns(data), near.found, near.joints.record, self.activation, self.contact, self.blend, out
            )
        return out

    def stiffness(self, data: pin.Data, q: np.ndarray, mobility: np.ndarray | None = None) -> float:
        """Stiffness of all active pairs together [m/s per m].

        The largest eigenvalue of G W^-1 G^T diag(slope): an Euler step is stable while null_gain dt times it is below
        2, and overshoots nothing below 1 (as `stable_contact_gradient`). The null-space projector can only lower it.

        Args:
            data: after `prepare` at q.
            q: (nq,).
            mobility: (nv,) inverse joint weights; default 1.
        """
        near = self._near(q)
        active = near.distance < self.activation[near.pair]
        if not active.any():
            return 0.0
        k = near.pair[active]
        G = near.gradient(joint_columns(data))[active]
        slope = 2 * self.contact[k] / (self.activation[k] * (1 + self.blend))
        M = (G if mobility is None else G * mobility) @ G.T
        return float(np.abs(np.linalg.eigvals(M * slope)).max())

    def limit_contact(self, robot: Robot, dt: float, null_gain: float = 1.0, share: float = 0.2, seed: int = 0) -> None:
        """Set the push at contact to a share of what one Euler step allows, pair by pair (`stable_contact_gradient`).

        The mobility of a pair is the largest over random postures.

        Args:
            robot: the robot.
            dt: [s].
            null_gain: alpha_N.
            share: 1 does not overshoot alone, 2 is the edge of stability; several pairs together need less.
            seed: of the postures.
        """
        rng, data = np.random.default_rng(seed), robot.model.createData()
        mobility = np.full(self.pairs.count, MIN_PAIR_MOBILITY)
        for _ in range(50):
            q = robot.q(rng.uniform(*robot.range_within(SAMPLED_RANGE)))
            prepare(robot, data, q)
            near = self.pairs.update(q, np.inf)
            G = near.gradient(joint_columns(data))
            mobility[near.pair] = np.maximum(mobility[near.pair], np.einsum("ij,ij->i", G, G))
        stable = stable_contact_gradient(null_gain, dt, self.activation, self.blend, mobility)
        self.contact = share * np.asarray(stable)


# -------- Manipulability (section 4.4)

STEP = 1e-6  # of the finite differences


def manipulability(J: np.ndarray) -> float:
    """Yoshikawa's measure sqrt(det(J J^T)), the product of the singular values (4.22); 0 for a tall J."""
    if J.shape[0] > J.shape[1]:
        return 0.0
    return float(np.sqrt(max(np.linalg.det(J @ J.T), 0.0)))


def condition_number(J: np.ndarray) -> float:
    """Largest over smallest singular value; infinite where the rows depend on each other."""
    sigma = np.linalg.svd(J, compute_uv=False)
    if not len(sigma) or J.shape[0] > J.shape[1] or sigma[-1] <= np.finfo(float).eps * sigma[0] * max(J.shape):
        return float("inf")
    return float(sigma[0] / sigma[-1])


class ManipulabilityCost(Objective):
    """H = -weight w(q), so that minimising it leads away from the singularities of some tasks.

    The gradient is by central differences over the joints that are given: two forward kinematics a joint, some 10 us
    each. For a floating base name the joints of the limb; the base would make every limb look regular.
    """

    def __init__(
        self, robot: Robot, tasks: Sequence[Task], joints: Sequence[str] | None = None, weight: float = 1.0
    ) -> None:
        """Make the cost.

        Args:
            robot: the robot.
            tasks: whose stacked Jacobian is measured.
            joints: the joints by which the tasks are to be done; default: all.
            weight: of the measure.

        Raises:
            UnknownNameError: a joint the robot does not have.
        """
        self.tasks, self.weight = list(tasks), weight
        names = robot.joint_names if joints is None else joints
        self.columns = np.array([robot.iv + robot.joint_index(n) for n in names], dtype=int)
        self._data = robot.model.createData()

    def measure(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        """w(q)."""
        J = np.vstack([t.weight * t.rows(robot, data, q)[0] for t in self.tasks])
        return manipulability(J[:, self.columns])

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        return -self.weight * self.measure(robot, data, q)

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out, dv = np.zeros(robot.nv), np.zeros(robot.nv)
        for k in self.columns:
            w = []
            for sign in (1.0, -1.0):
                dv[k] = sign * STEP
                there = pin.integrate(robot.model, q, dv)
                prepare(robot, self._data, there)
                w.append(self.measure(robot, self._data, there))
            dv[k] = 0.0
            out[k] = -self.weight * (w[0] - w[1]) / (2 * STEP)
        return out
