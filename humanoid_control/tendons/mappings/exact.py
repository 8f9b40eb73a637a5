"""Tendon geometry as an exact joint-muscle mapping, to which others are fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.tendons.mappings.mapping import Array, FitTarget, Geometry, JointMuscleMapping
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup, TendonSet

_STEP = 1e-5  # [rad] central differences of an analytic Jacobian are accurate to about 1e-10


class GeometryMapping(JointMuscleMapping):
    """Lengths and moment arms from tendon routing, zero at the zero posture.

    Without its optional functions `into` and `directional` it evaluates `geometry`, and differences the Jacobian.
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
        if self._into is not None:
            self._into(theta, lengths, jacobian)
        else:
            rows, jacobians = self._geometry(theta[None])
            lengths[:] = rows[0]
            jacobian[:] = jacobians[0]
        lengths -= self.zero_lengths

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
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
    """Return eq. (3) from the routing, with exact first and second derivatives."""
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
    """Return the fit target of a geometry: lengths (S, M) since zero at postures (S, D), no Jacobians."""

    def lengths(postures: Array) -> tuple[Array, Array]:
        return geometry.lengths_of(postures), np.empty(0)

    names = (geometry.joint_names, geometry.tendon_names)
    return FitTarget(lengths, *names, geometry.limits, geometry.model_hash)


def group_mappings(model: pin.Model, tendons: TendonSet, groups: Sequence[TendonGroup]) -> dict[str, GeometryMapping]:
    """Return the exact mapping of each group; joints outside the group are held at zero.

    Raises:
        UnknownNameError: if a joint or tendon is unknown.
    """
    return {g.name: exact_mapping(TendonGeometry(model, tendons.only(g.tendons), g.joints)) for g in groups}
