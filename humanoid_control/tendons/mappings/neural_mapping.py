"""The neural joint-muscle mapping: a small smooth network, whose last layer can go on learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array, FitReport, JointMuscleMapping
from humanoid_control.tendons.mappings.neural_kernels import directional, evaluate, hidden


@dataclass(frozen=True)
class Weights:
    """Two hidden layers of tanh units and a linear output; angles are scaled to [-1, 1], lengths are in metres.

    Attributes:
        W1: (h1, D), b1: (h1,), W2: (h2, h1), b2: (h2,), W3: (M, h2) [m].
    """

    W1: Array
    b1: Array
    W2: Array
    b2: Array
    W3: Array


class NeuralMapping(JointMuscleMapping):
    """f(theta) = W3 (a(theta) - a(0)) with a the second hidden layer: f(0) = 0 whatever the weights are."""

    kind = "neural"

    def __init__(
        self,
        weights: Weights,
        joint_names: Sequence[str],
        muscle_names: Sequence[str],
        limits: Array,
        model_hash: str = "",
        fit: FitReport | None = None,
    ) -> None:
        super().__init__(joint_names, muscle_names, limits, model_hash, fit)
        w = weights
        d, m, h1, h2 = len(self.joint_names), len(self.muscle_names), len(w.b1), len(w.b2)
        if (w.W1.shape, w.W2.shape, w.W3.shape) != ((h1, d), (h2, h1), (m, h2)):
            raise ConfigError(f"neural mapping: weights do not fit {d} joints, layers of {h1} and {h2}, {m} tendons")
        self.centre = self.limits.mean(axis=1)
        self.scale = 2.0 / (self.limits[:, 1] - self.limits[:, 0])
        self._w = Weights(*(np.ascontiguousarray(a, float).copy() for a in (w.W1, w.b1, w.W2, w.b2, w.W3)))
        self._a1, self._a2 = np.empty(h1), np.empty(h2)
        self._J1, self._J2 = np.empty((h1, d)), np.empty((h2, d))
        self._at_zero = np.empty(h2)
        hidden(np.zeros(d), self.centre, self.scale, w.W1, w.b1, w.W2, w.b2, self._a1, self._at_zero)
        self._b3 = -self._w.W3 @ self._at_zero

    @property
    def weights(self) -> Weights:
        """The network's weights."""
        return self._w

    def features(self, theta: Array) -> Array:
        """(S, h2) what the last layer sees, zero at the zero posture, for angles (S, D) [rad]."""
        x = (np.asarray(theta, float) - self.centre) * self.scale
        w = self._w
        return np.tanh(np.tanh(x @ w.W1.T + w.b1) @ w.W2.T + w.b2) - self._at_zero

    def set_last_layer(self, W3: Array) -> None:
        """Put new output weights (M, h2) [m] in place, for learning while running."""
        self._w.W3[:] = W3
        self._b3[:] = -W3 @ self._at_zero

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        """As the interface says."""
        w, room = self._w, (self._a1, self._a2, self._J1, self._J2)
        evaluate(
            theta, self.centre, self.scale, w.W1, w.b1, w.W2, w.b2, w.W3, self._b3, *room, lengths, jacobian
        )  # fmt: skip

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        """As the interface says, exact."""
        w, room = self._w, (self._a1, self._a2, self._J1, self._J2)
        directional(theta, v, self.centre, self.scale, w.W1, w.b1, w.W2, w.b2, w.W3, *room, out)
