"""Learning the joint-muscle mapping while running, from the estimates themselves: the antagonism updater.

The updater of the source's reference is not described there. This one is a project algorithm in its place: the output
weights of the neural mapping move toward those that explain the lengths measured at the estimated angles, held by
replayed samples of the geometry; f(0) = 0 holds by the form of the mapping. What is held is the shape of each length: a
factor on all of it, as of another radius or gear, is taken from the measured lengths. Where no sample is, the mapping
would else keep the old factor, and bend in between.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.neural_mapping import NeuralMapping

STILL = 0.01  # squared length beside the mean of all replayed ones, below which it tells little of a tendon's factor


class AntagonismUpdater:
    """Corrects a neural mapping by (angles estimated, lengths measured), when switched on.

    Args:
        mapping: corrected in place.
        replay: (R, D) angles at which the mapping as it is now is to be remembered [rad].
        weight: of all replayed samples together beside all measured ones.
        rate: share of the way to the new weights taken by one `update`, 0..1; limits how fast the mapping changes.
        size: measured samples kept; the oldest goes first.
        tension: samples with a tendon of less tension are not learnt from [N].
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
        """Begin to learn."""
        self.running = True

    def stop(self) -> None:
        """Freeze the mapping as it is."""
        self.running = False

    def revert(self) -> None:
        """Take all that was learnt back."""
        self.mapping.set_last_layer(self._initial)
        self._filled = self._next = self.updates = 0

    def add(self, theta: Array, lengths: Array, tensions: Array | None = None) -> bool:
        """Keep a sample: estimated angles (D,) [rad] and calibrated lengths (M,) [m]; whether it was taken."""
        taut = tensions is None or bool((np.asarray(tensions) >= self.tension).all())
        if not (self.running and taut and np.isfinite(lengths).all() and np.isfinite(theta).all()):
            return False
        self._theta[self._next], self._z[self._next] = theta, lengths
        self._next = (self._next + 1) % len(self._z)
        self._filled = max(self._filled, self._next or len(self._z))
        return True

    def update(self) -> float:
        """Move the output weights toward the least squares of both sets; the RMS misfit before it [m], or NaN.

        Nothing happens while it is stopped or has fewer samples than the layer has units.
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
        """(M,) by what to multiply the initial lengths to come nearest to measured ones; near 1 for tendons at rest."""
        lengths = features @ self._initial.T
        moved = np.mean(lengths**2, axis=0)
        return (np.mean(lengths * z, axis=0) + self._still) / (moved + self._still)
