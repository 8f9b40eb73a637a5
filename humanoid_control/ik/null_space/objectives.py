"""Null-space objectives: scalar costs H(q) with gradients (Schwienbacher 2014, sections 4.3, 4.4 and chapter 5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pair_distance import NearPairs, PairJoints, PairsFound, distance_rate
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.numerics.vec3 import cross, row
from humanoid_control.robots.robot import Robot, joint_columns

SAMPLED_RANGE = 3.0  # [rad] largest joint angle of random postures


class Objective(ABC):
    """Cost H(q) that is reduced in the null space of the tasks (Liegeois, eq. 4.11)."""

    @abstractmethod
    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        """Return H(q), with `data` from `prepare`."""

    @abstractmethod
    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Return dH / dv (nv,)."""


# -------- Single joints (Fig. 4.2)


def band_depth(
    joints: np.ndarray, lower: np.ndarray, upper: np.ndarray, band: float, range_share: float = 0.5
) -> np.ndarray:
    """Return the depth of joints in the bands at their range ends (n,) [rad]: positive at the upper end.

    Args:
        range_share: largest width as a share of the range.
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
    """Write `band_depth` times `scale` into out (n,)."""
    for i in range(joints.shape[0]):
        # In narrow ranges the bands shrink, so that they do not overlap.
        width = min(band, range_share * (upper[i] - lower[i]))
        above, below = joints[i] - (upper[i] - width), joints[i] - (lower[i] + width)
        out[i] = scale * (max(above, 0.0) + min(below, 0.0))


class JointLimitCost(Objective):
    """Cost of the squared depth in bands at the range ends.

    Attributes:
        weight: k_l; the gradient is weight times depth.
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
    """Half the weighted squared distance to a comfortable posture; prevents drift.

    Attributes:
        weights: k_c of each joint (n,).
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

MIN_ACTIVATION = 0.002  # [m] activation distance of pairs in contact in the neutral posture
MIN_PAIR_MOBILITY = 0.02  # [m^2/rad^2] lower bound of the mobility: nearly immobile pairs are not pushed harder


def repulsion(
    d: np.ndarray, activation: float | np.ndarray, contact: float | np.ndarray, blend: float = 0.5
) -> np.ndarray:
    """Return the repulsive law g(d) >= 0 of two shapes (eq. 5.15): -g is dH/dd.

    With +g as printed in (5.10), gradient descent (4.12) would attract the shapes. Linear near contact, quadratic
    towards the activation distance.

    Args:
        activation: d_a > 0 [m], scalar or (k,).
        contact: s_0 = g(0), scalar or (k,).
        blend: t, linear share of d_a: 0 quadratic (5.12), 1 linear (5.11); Schwienbacher uses 0.4 to 0.6. Value and
            slope are continuous for t < 1.
    """
    d, a, s = np.broadcast_arrays(np.asarray(d, dtype=float), activation, contact)
    return np.array(
        [pair_repulsion(*each, blend) for each in zip(d.ravel(), a.ravel(), s.ravel(), strict=True)]
    ).reshape(d.shape)


@kernel
def pair_repulsion(d: float, activation: float, contact: float, blend: float) -> float:
    """Return `repulsion` of one pair."""
    if d >= activation:
        return 0.0
    # Linear part, continued into penetration.
    if d < blend * activation or blend >= 1.0:
        return contact - 2.0 * contact / (activation * (1.0 + blend)) * d
    # Quadratic part, with zero value and slope at the activation distance.
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
    """Compute the gradient -sum g(d) dd/dv of near pairs: eq. 5.9, with the sign of `repulsion`."""
    out[:] = 0.0
    moves = joints.ancestor_mask
    for k in range(found.pair.shape[0]):
        pair = found.pair[k]
        g = pair_repulsion(found.distance[k], activation[pair], contact[pair], blend)
        if g == 0.0:
            continue
        n, i, j = row(found.normal, k), joints.first[pair], joints.second[pair]
        # Moments of the normal about the world origin, see `distance_rate`.
        moment_1, moment_2 = cross(row(found.point_1, k), n), cross(row(found.point_2, k), n)
        for c in range(out.shape[0]):
            if moves[i, c] != moves[j, c]:  # otherwise both move as one, or neither: the distance stays
                out[c] -= g * distance_rate(n, moment_1, moment_2, moves[i, c], moves[j, c], J6, c)


def repulsion_potential(
    d: np.ndarray, activation: float | np.ndarray, contact: float | np.ndarray, blend: float = 0.5
) -> np.ndarray:
    """Return H_C(d) with dH_C/dd = -g(d), zero beyond activation; arguments as in `repulsion`."""
    a, s, t = activation, contact, blend
    # Value at the end of the quadratic part: the integral of the law over it.
    start = s * a * (1 - t) ** 2 / (3 * (1 + t))
    line = start + s * (t * a - d) - s * (t**2 * a**2 - d**2) / (a * (1 + t))
    if t >= 1:
        return np.where(d < a, line, 0.0)
    curve = s * (a - d) ** 3 / (3 * a**2 * (1 - t**2))
    return np.where(d < t * a, line, np.where(d < a, curve, 0.0))


def stable_contact_gradient(
    null_gain: float, dt: float, activation: float | np.ndarray, blend: float, mobility: float | np.ndarray
) -> float | np.ndarray:
    """Return the largest s_0 without overshoot in Euler steps of one pair; twice it is the stability limit.

    alpha_N dt 2 s_0 / (d_a (1 + t)) m < 1, from the steepest slope of the law.

    Args:
        activation: d_a [m].
        mobility: m = grad d N W^-1 grad d^T; omitting N is safe.
    """
    return activation * (1 + blend) / (2 * null_gain * dt * mobility)


def activation_distances(robot: Robot, maximum: float = 0.05, share: float = 0.8) -> np.ndarray:
    """Return the activation distance of each pair (P,) [m], below its neutral clearance."""
    pairs = robot.collision_monitor()
    near, clearance = pairs.update(robot.q("neutral"), np.inf), np.empty(pairs.count)
    clearance[near.pair] = near.distance
    return np.clip(share * clearance, MIN_ACTIVATION, maximum)


class SelfCollisionCost(Objective):
    """Sum of the repulsive potentials of all pairs; tasks have precedence.

    Attributes:
        activation: distance of first push (P,) [m].
        contact: push s_0 at contact (P,) [rad/s per m/rad, with a null-space gain of 1].
    """

    def __init__(
        self,
        robot: Robot,
        activation: float | np.ndarray | None = None,
        contact: float | np.ndarray = 2.0,
        blend: float = 0.5,
    ) -> None:
        """Monitor the volumes of a robot if it has a file of them, otherwise its shapes."""
        self.blend, self.pairs = blend, robot.collision_monitor()
        a = activation_distances(robot) if activation is None else activation
        self.activation = np.array(np.broadcast_to(np.asarray(a, dtype=float), (self.pairs.count,)))
        self.contact = np.array(np.broadcast_to(np.asarray(contact, dtype=float), (self.pairs.count,)))
        if not (self.activation > 0).all() or not (self.contact >= 0).all() or not 0 <= blend <= 1:
            raise ConfigError("self-collision cost: activation > 0, contact >= 0 and a blend from 0 to 1 are needed")
        self._near_now: NearPairs | Callable[[], NearPairs] | None = None

    @property
    def near(self) -> NearPairs | None:
        """Pairs within their activation distance at the last gradient."""
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
        """Return the stiffness of all active pairs together [m/s per m].

        Largest eigenvalue of G W^-1 G^T diag(slope), an upper bound without the null-space projector. Euler steps are
        stable for null_gain dt times it below 2, without overshoot below 1.

        Args:
            data: after `prepare` at q.
            mobility: inverse joint weights (nv,); default 1.
        """
        near = self._near(q)
        active = near.distance < self.activation[near.pair]
        if not active.any():
            return 0.0
        k = near.pair[active]
        G = near.gradient(joint_columns(data))[active]
        # The linear part of the law is its steepest one.
        slope = 2 * self.contact[k] / (self.activation[k] * (1 + self.blend))
        M = (G if mobility is None else G * mobility) @ G.T
        return float(np.abs(np.linalg.eigvals(M * slope)).max())

    def limit_contact(self, robot: Robot, dt: float, null_gain: float = 1.0, share: float = 0.2, seed: int = 0) -> None:
        """Set the push at contact to a share of `stable_contact_gradient`, with mobilities of random postures.

        Args:
            share: 1 avoids overshoot of one pair, 2 is its stability limit; several pairs need less.
        """
        rng, data = np.random.default_rng(seed), robot.model.createData()
        mobility = np.full(self.pairs.count, MIN_PAIR_MOBILITY)
        for _ in range(50):
            q = robot.q(rng.uniform(*robot.range_within(SAMPLED_RANGE)))
            prepare(robot, data, q)
            near = self.pairs.update(q, np.inf)
            G = near.gradient(joint_columns(data))
            # |grad d|^2: the mobility without null-space projector.
            mobility[near.pair] = np.maximum(mobility[near.pair], np.einsum("ij,ij->i", G, G))
        stable = stable_contact_gradient(null_gain, dt, self.activation, self.blend, mobility)
        self.contact = share * np.asarray(stable)


# -------- Manipulability (section 4.4)

STEP = 1e-6  # [rad] of the finite differences


def manipulability(J: np.ndarray) -> float:
    """Return Yoshikawa's measure sqrt(det(J J^T)) (4.22); 0 for a tall J."""
    if J.shape[0] > J.shape[1]:
        return 0.0
    return float(np.sqrt(max(np.linalg.det(J @ J.T), 0.0)))


def condition_number(J: np.ndarray) -> float:
    """Return the ratio of largest to smallest singular value; infinite for dependent rows."""
    sigma = np.linalg.svd(J, compute_uv=False)
    if not len(sigma) or J.shape[0] > J.shape[1] or sigma[-1] <= np.finfo(float).eps * sigma[0] * max(J.shape):
        return float("inf")
    return float(sigma[0] / sigma[-1])


class ManipulabilityCost(Objective):
    """Cost H = -weight w(q), against singularities of the tasks.

    For a floating base name the limb's joints: the base would make every limb look regular.
    """

    def __init__(
        self, robot: Robot, tasks: Sequence[Task], joints: Sequence[str] | None = None, weight: float = 1.0
    ) -> None:
        """Set the tasks and joints.

        Raises:
            UnknownNameError: if the robot has no such joint.
        """
        self.tasks, self.weight = list(tasks), weight
        names = robot.joint_names if joints is None else joints
        self.columns = np.array([robot.iv + robot.joint_index(n) for n in names], dtype=int)
        self._data = robot.model.createData()

    def measure(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        """Return w(q)."""
        J = np.vstack([t.weight * t.rows(robot, data, q)[0] for t in self.tasks])
        return manipulability(J[:, self.columns])

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        return -self.weight * self.measure(robot, data, q)

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out, dv = np.zeros(robot.nv), np.zeros(robot.nv)
        for k in self.columns:
            w = []
            # Central difference along one joint.
            for sign in (1.0, -1.0):
                dv[k] = sign * STEP
                there = pin.integrate(robot.model, q, dv)
                prepare(robot, self._data, there)
                w.append(self.measure(robot, self._data, there))
            dv[k] = 0.0
            out[k] = -self.weight * (w[0] - w[1]) / (2 * STEP)
        return out
