"""Geometry of the tendons as a joint-muscle mapping: exact, and what all others are fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.tendons.mappings.mapping import Array, FitTarget, Geometry, JointMuscleMapping
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup, TendonSet

_STEP = 1e-5  # [rad] a central difference of an analytic Jacobian is then right to about 1e-10


class GeometryMapping(JointMuscleMapping):
    """Lengths and moment arms by the routing of the tendons, zeroed at the zero posture.

    Args:
        geometry: path lengths (S, M) [m] and their Jacobians (S, M, D) [m/rad] for angles (S, D) [rad].
        into: the same for one posture without allocation: (theta, lengths, jacobian); else `geometry` is used.
        directional: writes d(G v)/dtheta, (theta, v, out); else a central difference of the Jacobian is taken.
    """

    kind = "geometry"

    def __init__(
        self,
        geometry: Geometry,
        joint_names: Sequence[str],
        muscle_names: Sequence[str],
        limits: Array,
        model_hash: str = "",
        into: Callable[[Array, Array, Array], object] | None = None,
        directional: Callable[[Array, Array, Array], object] | None = None,
    ) -> None:
        super().__init__(joint_names, muscle_names, limits, model_hash)
        self._geometry = geometry
        self._into, self._directional = into, directional
        self.zero_lengths = geometry(np.zeros((1, len(self.joint_names))))[0][0].copy()  # (M,) [m]
        shape = (len(self.muscle_names), len(self.joint_names))
        self._lengths = np.empty(shape[0])
        self._minus = np.empty(shape)

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        """As the interface says."""
        if self._into is not None:
            self._into(theta, lengths, jacobian)
        else:
            rows, jacobians = self._geometry(theta[None])
            lengths[:] = rows[0]
            jacobian[:] = jacobians[0]
        lengths -= self.zero_lengths

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        """As the interface says."""
        if self._directional is not None:
            self._directional(theta, v, out)
            return
        size = float(np.sqrt(v @ v))
        if size == 0.0:
            out[:] = 0.0
            return
        step = v * (_STEP / size)
        self.evaluate_into(theta - step, self._lengths, self._minus)
        self.evaluate_into(theta + step, self._lengths, out)
        out -= self._minus
        out *= size / (2.0 * _STEP)

    def _evaluate_rows(self, rows: Array) -> tuple[Array, Array]:
        lengths, jacobians = self._geometry(rows)
        return lengths - self.zero_lengths, jacobians


def exact_mapping(geometry: TendonGeometry) -> GeometryMapping:
    """l = f(theta) of eq. (3) by the routing itself, with exact derivatives of both orders."""
    return GeometryMapping(
        geometry.raw,
        geometry.joint_names,
        geometry.tendon_names,
        geometry.limits,
        geometry.model_hash,
        into=geometry.raw_into,
        directional=geometry.jacobian_directional,
    )


def fit_target(geometry: TendonGeometry) -> FitTarget:
    """The geometry to fit a mapping to: lengths of many postures (S, D) -> (S, M) since zero, no Jacobians."""

    def lengths(postures: Array) -> tuple[Array, Array]:
        return geometry.lengths_of(postures), np.empty(0)

    names = (geometry.joint_names, geometry.tendon_names)
    return FitTarget(lengths, *names, geometry.limits, geometry.model_hash)


def group_mappings(model: pin.Model, tendons: TendonSet, groups: Sequence[TendonGroup]) -> dict[str, GeometryMapping]:
    """The geometry of each group by its name; joints that a group neither owns nor borrows are held at zero.

    Raises:
        UnknownNameError: a group names a joint or a tendon that the robot does not have.
    """
    return {g.name: exact_mapping(TendonGeometry(model, tendons.only(g.tendons), g.joints)) for g in groups}
