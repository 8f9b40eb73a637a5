"""Free velocities of a solver: held joints are left out, mimicking joints are coupled to their leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ConfigError
from humanoid_control.robots.robot import Robot


class DofMap(NamedTuple):
    """Selection v_c = factor_c u_column(c) for kernels."""

    column: I1
    factor: F1


class Bounds(NamedTuple):
    """Bounds of the free velocities (k,), lower <= upper."""

    lower: F1
    upper: F1


class DofSelection:
    """Free velocities u (k,) of a robot, v = S u, with the diagonal weights W of their norm.

    Attributes:
        mobility: W^-1 (k,).
        column_of: free velocity that moves each velocity (nv,), -1 for none.
        factor: ratio of the velocity to its free velocity (nv,).
    """

    def __init__(self, robot: Robot, held: Iterable[str] = (), weights: Mapping[str, float] | None = None) -> None:
        """Select the free velocities.

        Args:
            weights: joint name -> weight > 0, default 1; heavier joints move less. `base`: all six base velocities.

        Raises:
            UnknownNameError: if the robot has no such joint.
            ConfigError: if a weight is not positive and finite.
        """
        W = np.ones(robot.nv)
        for name, weight in (weights or {}).items():
            if not (weight > 0 and np.isfinite(weight)):
                raise ConfigError(f"weight of joint '{name}' must be positive, got {weight:g}")
            W[slice(0, robot.iv) if name == "base" else robot.iv + robot.joint_index(name)] = weight
        fixed = {robot.joint_index(n) for n in held}
        followers = {f: (leader, multiplier) for f, leader, multiplier, _ in robot.mimic}
        free = [*range(robot.iv), *(robot.iv + k for k in range(robot.n) if k not in fixed and k not in followers)]
        S = np.zeros((robot.nv, len(free)))
        S[free, np.arange(len(free))] = 1.0
        # A follower moves at a multiple of its leader's velocity.
        for f, (leader, multiplier) in followers.items():
            if robot.iv + leader in free:
                S[robot.iv + f, free.index(robot.iv + leader)] = multiplier
        # v^T W v = u^T (S^T W S) u: a free velocity has the weights of all velocities that it moves.
        self.k, self.mobility = len(free), 1.0 / (W @ S**2)
        self.free = np.array(free, dtype=int)
        self.column_of = np.where(S.any(axis=1), np.abs(S).argmax(axis=1) if len(free) else 0, -1)
        self.factor = S.sum(axis=1)
        self.map = DofMap(self.column_of, self.factor)
        # Without followers a selection of columns replaces the product with S.
        tied = np.count_nonzero(S) > len(free)
        self._S = S if tied else None
        self._nv = robot.nv

    def reduce(self, J: np.ndarray) -> np.ndarray:
        """Convert rows or a gradient by v (..., nv) to u (..., k)."""
        if self._S is not None:
            return J @ self._S
        return J if self.k == self._nv else J[..., self.free]

    def reduce_limits(self, limits: np.ndarray) -> np.ndarray:
        """Convert limits (nv,) on |v|, or on its change, to the limits (k,) on u that keep all of v within them."""
        if self._S is None:
            return np.ascontiguousarray(self.reduce(limits))
        with np.errstate(divide="ignore"):
            own = limits[:, None] / np.abs(self._S)
        return np.where(self._S != 0.0, own, np.inf).min(axis=0, initial=np.inf)

    def downhill(self, gain: float, gradient: np.ndarray) -> np.ndarray:
        """Return -gain W^-1 gradient^T (k,) for a gradient by v (nv,)."""
        out = np.zeros(self.k)
        fill_downhill(gain, gradient, self.column_of, self.factor, self.mobility, out)
        return out

    def expand(self, u: np.ndarray) -> np.ndarray:
        """Return v = S u (nv,)."""
        if self._S is not None:
            return self._S @ u
        v = np.zeros(self._nv)
        v[self.free] = u
        return v


@kernel
def fill_downhill(
    gain: float,
    gradient: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    mobility: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add `DofSelection.downhill` to out (k,)."""
    for i in range(gradient.shape[0]):
        # Chain rule through v = S u, then the inverse weight of the free velocity.
        c = column_of[i]
        if c >= 0:
            out[c] -= gain * mobility[c] * factor[i] * gradient[i]
