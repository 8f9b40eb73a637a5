"""What the entries of a state vector are: names for messages, velocities, fast states, quaternions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, SimulationError

Rates = Callable[[float, np.ndarray, Any], np.ndarray]  # (t, z, u) -> dz/dt, all of one length


class StateLayout:
    """Indices into a state z (n,) of a model dz/dt = f(t, z, u).

    Attributes:
        n: length of z. names: (n,) for messages.
        velocities: entries that semi-implicit Euler advances first; the rates of the others then see the new ones.
        fast: entries that multi-rate integration advances in smaller steps (rotors, currents, contact layers).
        quaternions: first entries of unit quaternions, which are normalised after every step.
    """

    def __init__(
        self,
        n: int,
        velocities: Sequence[int] | np.ndarray = (),
        fast: Sequence[int] | np.ndarray = (),
        quaternions: Sequence[int] = (),
        names: Sequence[str] = (),
    ) -> None:
        """Check and keep the indices.

        Raises:
            ConfigError: an index outside the state or named twice, a number of names other than n.
        """
        self.n = n
        self.velocities = _indices("velocities", velocities, n)
        self.fast = _indices("fast", fast, n)
        self.quaternions = _indices("quaternions", quaternions, n - 3)
        if names and len(names) != n:
            raise ConfigError(f"state layout: {n} states need {n} names, got {len(names)}")
        self.names = tuple(names) or tuple(f"z[{k}]" for k in range(n))

    def normalise(self, z: np.ndarray) -> np.ndarray:
        """Make the quaternions unit again, in place."""
        for k in self.quaternions:
            size = np.sqrt(z[k : k + 4] @ z[k : k + 4])
            if size > 0:
                z[k : k + 4] /= size
        return z

    def check(self, t: float, z: np.ndarray, limit: float, what: str = "state") -> None:
        """Refuse a state, or its rate, that is no number or beyond a limit.

        Raises:
            SimulationError: with the time and the name of the worst entry.
        """
        if np.abs(z).max(initial=0.0) <= limit:  # false for NaN as well
            return
        size = np.where(np.isnan(z), np.inf, np.abs(z))
        k = int(np.argmax(size))
        raise SimulationError(
            f"simulation diverged at t = {t:.6g} s: {what} '{self.names[k]}' is {z[k]:.3g}; "
            "take a smaller step or an implicit or adaptive method"
        )


def _indices(what: str, values: Sequence[int] | np.ndarray, n: int) -> np.ndarray:
    out = np.array(values, dtype=int).ravel()
    if out.size and (out.min() < 0 or out.max() >= n):
        raise ConfigError(f"state layout: {what} must be indices from 0 to {n - 1}, got {out.min()} to {out.max()}")
    if len(np.unique(out)) != len(out):
        raise ConfigError(f"state layout: {what} names an index twice")
    return out
