"""Free velocities of a solver and their cost: held joints left out, mimicking ones tied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, I1
from humanoid_control.robots.robot import Robot


class DofMap(NamedTuple):
    """S of v = S u for kernels: v_c = factor_c u_column(c).

    Attributes:
        column: (nv,) the free velocity that moves each, -1 for none.
        factor: (nv,) how many times as fast.
    """

    column: I1
    factor: F1


class Bounds(NamedTuple):
    """Bounds (k,) of the free velocities, lower <= upper."""

    lower: F1
    upper: F1


class DofSelection:
    """The free velocities u (k,) of a robot, v = S u, with the diagonal weights W of the norm that is kept small.

    Attributes:
        mobility: (k,) inverse weights W^-1.
        column_of: (nv,) free velocity that moves each joint, -1 for none.
        factor: (nv,) its factor.
        map: both, for kernels.
        k: number of free velocities.
        free: (k,) their indices in v.
    """

    def __init__(self, robot: Robot, held: Iterable[str] = (), weights: Mapping[str, float] | None = None) -> None:
        """Choose.

        Args:
            robot: the robot.
            held: joints that do not move.
            weights: joint name -> weight > 0, 1 where not named: a heavy joint moves less. `base` weighs all six
                velocities of a floating base.

        Raises:
            UnknownNameError: a joint the robot does not have. ConfigError: a weight that is not positive.
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
        for f, (leader, multiplier) in followers.items():
            if robot.iv + leader in free:
                S[robot.iv + f, free.index(robot.iv + leader)] = multiplier
        self.k, self.mobility = len(free), 1.0 / (W @ S**2)
        self.free = np.array(free, dtype=int)
        self.column_of = np.where(S.any(axis=1), np.abs(S).argmax(axis=1) if len(free) else 0, -1)
        self.factor = S.sum(axis=1)
        self.map = DofMap(self.column_of, self.factor)
        tied = np.count_nonzero(S) > len(free)
        self._S = S if tied else None
        self._nv = robot.nv

    def reduce(self, J: np.ndarray) -> np.ndarray:
        """Rows or a gradient by v, (..., nv), to the same by u, (..., k)."""
        if self._S is not None:
            return J @ self._S
        return J if self.k == self._nv else J[..., self.free]

    def reduce_limits(self, limits: np.ndarray) -> np.ndarray:
        """Limits (nv,) on the size of v, or of its change, to those (k,) of u which keep all of v within them."""
        if self._S is None:
            return np.ascontiguousarray(self.reduce(limits))
        with np.errstate(divide="ignore"):
            own = limits[:, None] / np.abs(self._S)
        return np.where(self._S != 0.0, own, np.inf).min(axis=0, initial=np.inf)

    def downhill(self, gain: float, gradient: np.ndarray) -> np.ndarray:
        """- gain W^-1 gradient^T (k,) for a gradient by v (nv,)."""
        out = np.zeros(self.k)
        fill_downhill(gain, gradient, self.column_of, self.factor, self.mobility, out)
        return out

    def expand(self, u: np.ndarray) -> np.ndarray:
        """v (nv,) of u (k,)."""
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
    """As `DofSelection.downhill`, into out (k,) of zeros."""
    for i in range(gradient.shape[0]):
        c = column_of[i]
        if c >= 0:
            out[c] -= gain * mobility[c] * factor[i] * gradient[i]
