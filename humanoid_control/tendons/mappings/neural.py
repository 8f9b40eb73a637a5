"""Joint-muscle mapping as a small smooth network: kernels, training, online learning."""

from __future__ import annotations

from collections.abc import Sequence
from math import tanh
from time import perf_counter
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import (
    Array,
    FitReport,
    FitTarget,
    JointMuscleMapping,
    MappingInterrupted,
    Progress,
)

STILL = 0.01  # squared length relative to its replay mean, below which a tendon's factor is poorly known

# -------- Evaluation


class Weights(NamedTuple):
    """Weights of two tanh layers and a linear output; angles scaled to [-1, 1].

    Attributes:
        W1: (h1, D).
        b1: (h1,).
        W2: (h2, h1).
        b2: (h2,).
        W3: (M, h2) [m].
    """

    W1: F2
    b1: F1
    W2: F2
    b2: F1
    W3: F2


class Scaling(NamedTuple):
    """Input scaling (theta - centre) * scale, both (D,)."""

    centre: F1
    scale: F1


class Layers(NamedTuple):
    """Activations a1 (h1,), a2 (h2,) and their Jacobians J1 (h1, D), J2 (h2, D) by the angles."""

    a1: F1
    a2: F1
    J1: F2
    J2: F2


class Network(NamedTuple):
    """Kernel arguments of a network; b3 (M,) [m] is the output offset."""

    scaling: Scaling
    w: Weights
    b3: F1
    layers: Layers


@kernel
def hidden(theta: np.ndarray, scaling: Scaling, w: Weights, a1: np.ndarray, a2: np.ndarray) -> None:
    """Fill the activations at theta (D,) [rad]."""
    # Inputs are scaled to [-1, 1], where tanh units are well conditioned.
    for i in range(a1.shape[0]):
        s = w.b1[i]
        for d in range(theta.shape[0]):
            s += w.W1[i, d] * (theta[d] - scaling.centre[d]) * scaling.scale[d]
        a1[i] = tanh(s)
    for i in range(a2.shape[0]):
        s = w.b2[i]
        for j in range(a1.shape[0]):
            s += w.W2[i, j] * a1[j]
        a2[i] = tanh(s)


@kernel
def slopes(scale: np.ndarray, w: Weights, layers: Layers) -> None:
    """Fill da1/dtheta (h1, D) and da2/dtheta (h2, D)."""
    a1, a2, J1, J2 = layers.a1, layers.a2, layers.J1, layers.J2
    d = scale.shape[0]
    # tanh' = 1 - tanh^2.
    for i in range(a1.shape[0]):
        for c in range(d):
            J1[i, c] = (1.0 - a1[i] * a1[i]) * w.W1[i, c] * scale[c]
    # J2 = diag(1 - a2^2) W2 J1.
    for i in range(a2.shape[0]):
        for c in range(d):
            J2[i, c] = 0.0
        for j in range(a1.shape[0]):
            for c in range(d):
                J2[i, c] += w.W2[i, j] * J1[j, c]
        for c in range(d):
            J2[i, c] *= 1.0 - a2[i] * a2[i]


@kernel
def _output(W3: np.ndarray, J2: np.ndarray, jacobian: np.ndarray) -> None:
    for i in range(W3.shape[0]):
        for c in range(J2.shape[1]):
            jacobian[i, c] = 0.0
        for j in range(W3.shape[1]):
            for c in range(J2.shape[1]):
                jacobian[i, c] += W3[i, j] * J2[j, c]


@kernel
def evaluate(
    theta: np.ndarray,
    scaling: Scaling,
    w: Weights,
    b3: np.ndarray,
    layers: Layers,
    lengths: np.ndarray,
    jacobian: np.ndarray,
) -> None:
    """Fill lengths (M,) = W3 a2 + b3 and their Jacobian (M, D)."""
    hidden(theta, scaling, w, layers.a1, layers.a2)
    # b3 = -W3 a2(0), so the lengths vanish at the zero posture.
    for i in range(w.W3.shape[0]):
        s = b3[i]
        for j in range(w.W3.shape[1]):
            s += w.W3[i, j] * layers.a2[j]
        lengths[i] = s
    slopes(scaling.scale, w, layers)
    _output(w.W3, layers.J2, jacobian)


@kernel
def directional(
    theta: np.ndarray, v: np.ndarray, scaling: Scaling, w: Weights, layers: Layers, out: np.ndarray
) -> None:
    """Fill the derivative of the Jacobian along v (D,), (M, D); J1 and J2 are overwritten."""
    hidden(theta, scaling, w, layers.a1, layers.a2)
    slopes(scaling.scale, w, layers)
    a1, a2, J1, J2, scale = layers.a1, layers.a2, layers.J1, layers.J2, scaling.scale
    d = scale.shape[0]
    # J2 = (1 - a2^2) W2 J1, so dJ2 = -2 a2 da2 W2 J1 + (1 - a2^2) W2 dJ1
    for i in range(a2.shape[0]):
        da2 = 0.0
        for c in range(d):
            da2 += J2[i, c] * v[c]
        slope = 1.0 - a2[i] * a2[i]
        for c in range(d):
            J2[i, c] = 0.0
        for j in range(a1.shape[0]):
            da1 = 0.0
            for c in range(d):
                da1 += J1[j, c] * v[c]
            for c in range(d):
                # dJ1 = -2 a1 da1 W1 scale.
                change = -2.0 * a1[j] * da1 * w.W1[j, c] * scale[c]
                J2[i, c] += w.W2[i, j] * (slope * change - 2.0 * a2[i] * da2 * J1[j, c])
    _output(w.W3, J2, out)


@kernel
def evaluate_at(theta: np.ndarray, table: Table[Network], lengths: np.ndarray, jacobian: np.ndarray) -> None:
    n = unpack(table, Network)
    evaluate(theta, n.scaling, n.w, n.b3, n.layers, lengths, jacobian)


@kernel
def directional_at(theta: np.ndarray, v: np.ndarray, table: Table[Network], out: np.ndarray) -> None:
    n = unpack(table, Network)
    directional(theta, v, n.scaling, n.w, n.layers, out)


# -------- The mapping


class NeuralMapping(JointMuscleMapping):
    """f(theta) = W3 (a(theta) - a(0)), a the second hidden layer; f(0) = 0 for any weights."""

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
        scaling = Scaling(self.centre, self.scale)
        layers = Layers(np.empty(h1), np.empty(h2), np.empty((h1, d)), np.empty((h2, d)))
        self._at_zero = np.empty(h2)
        hidden(np.zeros(d), scaling, self._w, layers.a1, self._at_zero)
        self._b3 = -self._w.W3 @ self._at_zero
        self._packed = Packed(Network(scaling, self._w, self._b3, layers))

    @property
    def weights(self) -> Weights:
        return self._w

    def features(self, theta: Array) -> Array:
        """Return inputs of the last layer (S, h2), zero at the zero posture, for angles (S, D) [rad]."""
        x = (np.asarray(theta, float) - self.centre) * self.scale
        w = self._w
        return np.tanh(np.tanh(x @ w.W1.T + w.b1) @ w.W2.T + w.b2) - self._at_zero

    def set_last_layer(self, W3: Array) -> None:
        """Replace the output weights (M, h2) [m]."""
        self._w.W3[:] = W3
        self._b3[:] = -W3 @ self._at_zero

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        evaluate_at(theta, self._packed.table, lengths, jacobian)

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        directional_at(theta, v, self._packed.table, out)


# -------- Training


def fit_neural(
    target: FitTarget,
    postures: Array,
    width: int = 32,
    iterations: int = 1500,
    seed: int = 0,
    progress: Progress | None = None,
) -> NeuralMapping:
    """Return a least-squares network with two hidden layers, fitted at postures (S, D) [rad].

    Layers and training are not from Kawaharazuka 2018: tanh units, lengths of unit variance, full-batch L-BFGS, then
    linear least squares for the output weights.

    Args:
        target: lengths to fit.
        postures: (S, D).
        width: units per hidden layer.
        iterations: maximum of L-BFGS.
        seed: of initial weights.

    Raises:
        ConfigError: if width or iterations are below 1, or postures too few.
        MappingInterrupted: by `progress`.
    """
    limits, muscles = np.asarray(target.limits, float), len(target.muscle_names)
    if width < 1 or iterations < 1 or len(postures) < 2 * width:
        raise ConfigError(
            f"neural mapping: width {width}, {iterations} iterations, {len(postures)} postures; "
            f"width and iterations from 1, at least {2 * max(width, 1)} postures"
        )
    begin = perf_counter()
    x = (postures - limits.mean(axis=1)) * 2.0 / (limits[:, 1] - limits[:, 0])
    lengths = target.geometry(postures)[0] - target.geometry(np.zeros((1, len(limits))))[0][0]
    W1, b1, W2, b2 = _train(x, lengths, width, iterations, seed, progress)
    weights = Weights(W1, b1, W2, b2, np.zeros((muscles, width)))
    mapping = NeuralMapping(weights, target.joint_names, target.muscle_names, limits, target.model_hash)
    # The offset is free in the fit and subtracted later, so the zero posture does not distort the fit.
    columns = np.hstack([mapping.features(postures), np.ones((len(postures), 1))])
    solved = np.linalg.lstsq(columns, lengths, rcond=1e-10)[0]
    mapping.set_last_layer(solved[:-1].T)
    rms = float(np.sqrt(np.mean((columns @ solved - lengths) ** 2)))
    zero = float(np.abs(solved[-1]).max())
    mapping.fit = FitReport(len(postures), rms, zero, perf_counter() - begin)
    if progress is not None:
        progress(1.0)
    return mapping


def _train(x: Array, lengths: Array, width: int, iterations: int, seed: int, progress: Progress | None) -> list[Array]:
    mean, size = lengths.mean(axis=0), np.maximum(lengths.std(axis=0), 1e-12)
    target, muscles = (lengths - mean) / size, lengths.shape[1]
    shapes = [(width, x.shape[1]), (width,), (width, width), (width,), (muscles, width), (muscles,)]
    rng = np.random.default_rng(seed)
    start = np.concatenate(
        [(rng.standard_normal(s) / np.sqrt(s[-1]) if len(s) > 1 else np.zeros(s)).ravel() for s in shapes]
    )
    done = 0

    def after(_: Array) -> None:
        nonlocal done
        done += 1
        if progress is not None and progress(done / iterations) is False:
            raise MappingInterrupted(f"mapping: interrupted after {done} of {iterations} iterations; nothing was kept")

    from scipy.optimize import minimize  # slow to import and rarely needed

    found = minimize(
        _loss, start, (x, target, shapes), "L-BFGS-B", jac=True, callback=after,
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 30, "ftol": 1e-14, "gtol": 1e-10},
    )  # fmt: skip
    return _split(found.x, shapes)[:4]


def _split(flat: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    ends = np.cumsum([int(np.prod(s)) for s in shapes])
    return [part.reshape(s) for part, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]


def _loss(flat: Array, x: Array, target: Array, shapes: list[tuple[int, ...]]) -> tuple[float, Array]:
    W1, b1, W2, b2, W3, b3 = _split(flat, shapes)
    a1 = np.tanh(x @ W1.T + b1)
    a2 = np.tanh(a1 @ W2.T + b2)
    e = a2 @ W3.T + b3 - target
    g3 = e * (2.0 / e.size)
    g2 = (g3 @ W3) * (1.0 - a2 * a2)
    g1 = (g2 @ W2) * (1.0 - a1 * a1)
    parts = (g1.T @ x, g1.sum(0), g2.T @ a1, g2.sum(0), g3.T @ a2, g3.sum(0))
    return float(np.mean(e * e)), np.concatenate([p.ravel() for p in parts])


# -------- Online learning


class AntagonismUpdater:
    """Online correction of a neural mapping from estimated angles and measured lengths.

    Replaces the undescribed antagonism updater of Kawaharazuka 2018 (V-B).

    Args:
        mapping: corrected in place.
        replay: (R, D) angles at which the present mapping is retained [rad].
        weight: of replayed samples, relative to measured ones.
        rate: fraction of each weight update, 0..1.
        size: stored samples.
        tension: minimum of every tendon in a sample [N].
    """

    def __init__(
        self,
        mapping: NeuralMapping,
        replay: Array,
        weight: float = 0.3,
        rate: float = 0.2,
        size: int = 1000,
        tension: float = 0.0,
    ) -> None:
        if not (0 < rate <= 1 and weight > 0 and size > 0):
            raise ConfigError(
                f"antagonism updater: rate {rate} in 0..1, weight {weight} and size {size} above 0 needed"
            )
        self.mapping, self.weight, self.rate, self.tension = mapping, weight, rate, tension
        self.running = False
        self.updates = 0
        self._initial = mapping.weights.W3.copy()
        self._features = mapping.features(replay)
        self._still = STILL * np.mean((self._features @ self._initial.T) ** 2, axis=0)
        self._theta, self._z = np.zeros((size, len(mapping.joint_names))), np.zeros((size, len(mapping.muscle_names)))
        self._filled = self._next = 0

    def start(self) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False

    def revert(self) -> None:
        """Discard all that was learnt."""
        self.mapping.set_last_layer(self._initial)
        self._filled = self._next = self.updates = 0

    def add(self, theta: Array, lengths: Array, tensions: Array | None = None) -> bool:
        """Store estimated angles (D,) [rad] and calibrated lengths (M,) [m]; return True if accepted."""
        taut = tensions is None or bool((np.asarray(tensions) >= self.tension).all())
        if not (self.running and taut and np.isfinite(lengths).all() and np.isfinite(theta).all()):
            return False
        self._theta[self._next], self._z[self._next] = theta, lengths
        self._next = (self._next + 1) % len(self._z)
        self._filled = max(self._filled, self._next or len(self._z))
        return True

    def update(self) -> float:
        """Move the output weights towards the joint least squares; return the prior RMS misfit [m].

        Returns NaN, without a change, if stopped or with fewer samples than units.
        """
        n, units = self._filled, self._features.shape[1]
        if not self.running or n < units:
            return float("nan")
        a, z = self.mapping.features(self._theta[:n]), self._z[:n]
        now = self.mapping.weights.W3
        misfit = float(np.sqrt(np.mean((a @ now.T - z) ** 2)))
        held = self.weight / len(self._features) * self._features.T @ self._features
        gram = a.T @ a / n + held
        ridge = 1e-9 * np.trace(gram) / units * np.eye(units)
        right = a.T @ z / n + (held + ridge) @ (self._factors(a, z) * self._initial.T)
        self.mapping.set_last_layer(now + self.rate * (np.linalg.solve(gram + ridge, right).T - now))
        self.updates += 1
        return misfit

    def _factors(self, features: Array, z: Array) -> Array:
        """Return best scale factors (M,) of the initial lengths, near 1 for resting tendons."""
        lengths = features @ self._initial.T
        moved = np.mean(lengths**2, axis=0)
        return (np.mean(lengths * z, axis=0) + self._still) / (moved + self._still)
