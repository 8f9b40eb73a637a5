"""Self-collision as a cost in the null space: near pairs of shapes push each other apart (chapter 5)."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.collision import NearPairs
from humanoid_control.errors import ConfigError
from humanoid_control.ik.objectives.base import Objective
from humanoid_control.ik.objectives.repulsion import push_gradient, repulsion_potential, stable_contact_gradient
from humanoid_control.ik.tasks.base import prepare
from humanoid_control.robots import Robot
from humanoid_control.robots.pair_watch import PairWatch
from humanoid_control.robots.volume_pairs import near_pairs_of

LEAST = 0.002  # [m] activation distance of pairs that touch where the robot stands
LEAST_MOVED = 0.02  # [m^2/rad^2] pairs that hardly anything moves are not pushed the harder for it


def activation_distances(robot: Robot, most: float = 0.05, share: float = 0.8) -> np.ndarray:
    """Activation distance (P,) of each pair [m]: below its clearance where the robot stands, else it never rests.

    Args:
        robot: whose pairs.
        most: at the most [m].
        share: of the clearance in the neutral posture.
    """
    pairs = near_pairs_of(robot)
    near, clearance = pairs.near(robot.q("neutral"), np.inf), np.empty(pairs.count)
    clearance[near.pair] = near.distance
    return np.clip(share * clearance, LEAST, most)


class SelfCollisionCost(Objective):
    """The sum over all pairs of the blended repulsive potential; its gradient is one matrix product.

    The tasks come first: where they leave no freedom to a pair, it is not kept apart. The gradient of the source pulls
    pairs together as it is printed; here it is dH/dd = -g (erratum E-1).

    Attributes:
        activation: (P,) distance below which a pair is pushed [m].
        contact: (P,) push s_0 at contact [rad/s per m/rad, with a null-space gain of 1].
        blend: t of the law, 0 quadratic, 1 linear.
        near: the pairs within their activation distance at the last gradient.
    """

    def __init__(
        self,
        robot: Robot,
        activation: float | np.ndarray | None = None,
        contact: float | np.ndarray = 2.0,
        blend: float = 0.5,
    ) -> None:
        """Watch all pairs of a robot: of its volumes where it has a file of them, else of its shapes.

        Args:
            robot: whose.
            activation: [m] of all pairs or of each; default: `activation_distances`.
            contact: s_0 of all pairs or of each.
            blend: 0..1.

        Raises:
            ConfigError: a value outside its range.
        """
        self.blend, self.pairs = blend, near_pairs_of(robot)
        a = activation_distances(robot) if activation is None else activation
        self.activation = np.array(np.broadcast_to(np.asarray(a, dtype=float), (self.pairs.count,)))
        self.contact = np.array(np.broadcast_to(np.asarray(contact, dtype=float), (self.pairs.count,)))
        if not (self.activation > 0).all() or not (self.contact >= 0).all() or not 0 <= blend <= 1:
            raise ConfigError("self-collision cost: activation > 0, contact >= 0 and a blend from 0 to 1 are needed")
        self._most = float(self.activation.max(initial=0.0))
        self._watch = PairWatch(robot) if robot.volumes is None else None
        self._volumes: NearPairs | None = None

    @property
    def near(self) -> NearPairs | None:
        return self._volumes if self._watch is None else self._watch.near()

    def _near(self, q: np.ndarray) -> NearPairs:
        return self.pairs.near(q, self._most)

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        near = self._near(q)
        a, s = self.activation[near.pair], self.contact[near.pair]
        return float(np.sum(repulsion_potential(near.distance, a, s, self.blend)))

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out, w = np.zeros(robot.nv), self._watch
        if w is None:
            self._volumes = near = self._near(q)
            n, rows = len(near), (near.pair, near.distance, near.normal, near.point_1, near.point_2)
        else:
            n = w.look(q, self.activation)
            rows = (w.pair[:n], w.distance[:n], w.normal[:n], w.x1[:n], w.x2[:n])
        if n:
            first, second = self.pairs.supports
            push_gradient(data.J, first, second, *rows, self.activation, self.contact, self.blend, out)
        return out

    def stiffness(self, data: pin.Data, q: np.ndarray, mobility: np.ndarray | None = None) -> float:
        """How much faster than one pair's push alone all active pairs together may answer [m/s per m].

        The largest eigenvalue of G W^-1 G^T diag(slope): an Euler step is stable while null_gain dt times it is below
        2, and overshoots nothing below 1 (section 3.4 for one pair). The null-space projector can only lower it.

        Args:
            data: after `prepare` at q. q: (nq,).
            mobility: (nv,) inverse joint weights; default 1.
        """
        near = self._near(q)
        active = near.distance < self.activation[near.pair]
        if not active.any():
            return 0.0
        k = near.pair[active]
        G = self.pairs.gradient(data.J, near)[active]
        slope = 2 * self.contact[k] / (self.activation[k] * (1 + self.blend))
        M = (G if mobility is None else G * mobility) @ G.T
        return float(np.abs(np.linalg.eigvals(M * slope)).max())

    def limit_contact(self, robot: Robot, dt: float, null_gain: float = 1.0, share: float = 0.2, seed: int = 0) -> None:
        """Set the push at contact to a share of what one Euler step allows, pair by pair (rule of section 3.4).

        How much a push moves a pair is taken as the most seen over random postures.

        Args:
            robot: whose.
            dt: [s].
            null_gain: alpha_N.
            share: 1 does not overshoot alone, 2 is the edge of stability; several pairs together want less.
            seed: of the postures.
        """
        rng, data = np.random.default_rng(seed), robot.model.createData()
        moved = np.full(self.pairs.count, LEAST_MOVED)
        for _ in range(50):
            q = robot.q(rng.uniform(np.maximum(robot.lower, -3.0), np.minimum(robot.upper, 3.0)))
            prepare(robot, data, q)
            near = self.pairs.near(q, np.inf)
            G = self.pairs.gradient(data.J, near)
            moved[near.pair] = np.maximum(moved[near.pair], np.einsum("ij,ij->i", G, G))
        self.contact = share * np.asarray(stable_contact_gradient(null_gain, dt, self.activation, self.blend, moved))
