"""Interface of joint-muscle mappings: lengths, muscle Jacobian and its directional derivative."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from humanoid_control.errors import ConfigError

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
# (S, D) angles [rad] -> (S, M) lengths [m], (S, M, D) Jacobians [m/rad].
Geometry = Callable[[Array], tuple[Array, Array]]
# Called with the completed fraction 0..1; returning False interrupts.
Progress = Callable[[float], bool | None]


class MappingInterrupted(ConfigError):
    """Interruption of a fit by its progress callback; no result is kept."""


@dataclass(frozen=True)
class FitReport:
    """Accuracy of a fitted mapping.

    Attributes:
        samples: number of fitted postures.
        rms: length error over postures and muscles [m].
        zero_error: largest length at the zero posture before offset removal [m].
        seconds: build time [s].
    """

    samples: int
    rms: float
    zero_error: float
    seconds: float


class FitTarget(NamedTuple):
    """Lengths of M tendons over D joints to fit.

    Attributes:
        geometry: angles (S, D) [rad] to path lengths (S, M) [m] and Jacobians, which may be empty.
        joint_names: (D,).
        muscle_names: (M,).
        limits: (D, 2) [rad].
        model_hash: source model.
    """

    geometry: Geometry
    joint_names: tuple[str, ...]
    muscle_names: tuple[str, ...]
    limits: Array
    model_hash: str = ""


class JointMuscleMapping(ABC):
    """l = f(theta) (Kawaharazuka 2018, eq. (3)): lengths of M tendons over D joint angles, f(0) = 0.

    Shortened tendons have negative lengths; G = + dl/dtheta.

    Attributes:
        joint_names: (D,).
        muscle_names: (M,).
        limits: (D, 2) valid range [rad].
        model_hash: source model.
        fit: accuracy; None if exact.
    """

    kind = ""

    def __init__(
        self,
        joint_names: Sequence[str],
        muscle_names: Sequence[str],
        limits: Array,
        model_hash: str = "",
        fit: FitReport | None = None,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.muscle_names = tuple(muscle_names)
        self.limits = np.ascontiguousarray(limits, float)
        self.model_hash = model_hash
        self.fit = fit
        for what, names in (("joint", self.joint_names), ("muscle", self.muscle_names)):
            if len(set(names)) != len(names):
                twice = next(n for n in names if names.count(n) > 1)
                raise ConfigError(f"mapping: {what} '{twice}' is given twice; give each {what} once")
        shape = (len(self.joint_names), 2)
        if self.limits.shape != shape or not (self.limits[:, 0] < self.limits[:, 1]).all():
            raise ConfigError(f"mapping: limits must be {shape} with lower below upper, got shape {self.limits.shape}")

    @abstractmethod
    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        """Write lengths (M,) [m] and Jacobian (M, D) [m/rad] at theta (D,) [rad]."""

    @abstractmethod
    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        """Write d(G(theta) v)/dtheta (M, D), equal to the derivative of G along v (D,)."""

    def lengths(self, theta: Array) -> Array:
        """Return lengths (M,) or (S, M) [m] at angles (D,) or (S, D) [rad]."""
        return self.evaluate(theta)[0]

    def jacobian(self, theta: Array) -> Array:
        """Return G = dl/dtheta (M, D) or (S, M, D) [m/rad]."""
        return self.evaluate(theta)[1]

    def evaluate(self, theta: Array) -> tuple[Array, Array]:
        """Return lengths and Jacobian at angles (D,) or (S, D).

        Raises:
            ConfigError: if the shape is wrong or an angle is not finite.
        """
        rows, single = self._rows(theta)
        lengths, jacobians = self._evaluate_rows(rows)
        return (lengths[0], jacobians[0]) if single else (lengths, jacobians)

    def jacobian_directional(self, theta: Array, v: Array) -> Array:
        """Return d(G(theta) v)/dtheta (M, D) or (S, M, D) [m/rad^2], v shaped as theta."""
        rows, single = self._rows(theta)
        along, _ = self._rows(v)
        out = np.empty((len(rows), len(self.muscle_names), len(self.joint_names)))
        for row, direction, into in zip(rows, along, out, strict=True):
            self.directional_into(row, direction, into)
        return out[0] if single else out

    def _evaluate_rows(self, rows: Array) -> tuple[Array, Array]:
        lengths = np.empty((len(rows), len(self.muscle_names)))
        jacobians = np.empty((*lengths.shape, len(self.joint_names)))
        for row, length, jacobian in zip(rows, lengths, jacobians, strict=True):
            self.evaluate_into(row, length, jacobian)
        return lengths, jacobians

    def _rows(self, theta: Array) -> tuple[Array, bool]:
        rows = np.ascontiguousarray(theta, float)
        single = rows.ndim == 1
        rows = rows[None] if single else rows
        d = len(self.joint_names)
        if rows.ndim != 2 or rows.shape[1] != d:
            raise ConfigError(f"mapping: expected {d} angles ({', '.join(self.joint_names)}), got shape {theta.shape}")
        if not np.isfinite(rows).all():
            bad = self.joint_names[int(np.argwhere(~np.isfinite(rows))[0, 1])]
            raise ConfigError(f"mapping: angle of '{bad}' is not finite")
        return rows, single
