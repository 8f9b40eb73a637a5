"""The geometry of a robot's tendons as mappings, one for each group, and the hash that tells models apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.tendons.geometry import TendonGeometry
from humanoid_control.tendons.geometry_mapping import GeometryMapping
from humanoid_control.tendons.mapping import Array, Geometry
from humanoid_control.tendons.tendon import TendonGroup, TendonSet

_DIGITS = 9  # places of metres that count for the hash


def model_hash(geometry: TendonGeometry) -> str:
    """A name for a routing over its joints: other points, other joints or other tendons have another."""
    digest = hashlib.sha256("\n".join((*geometry.joint_names, "", *geometry.tendon_names)).encode())
    for array in (*geometry.routing, geometry.limits):
        digest.update(np.ascontiguousarray(np.round(np.asarray(array, float), _DIGITS) + 0.0).tobytes())
    return digest.hexdigest()


def geometry_mapping(geometry: TendonGeometry) -> GeometryMapping:
    """The geometry as a joint-muscle mapping, exact and without allocation."""
    return GeometryMapping(
        geometry.raw,
        geometry.joint_names,
        geometry.tendon_names,
        geometry.limits,
        model_hash(geometry),
        geometry.raw_into,
        geometry.jacobian_directional,
    )


def lengths_only(geometry: TendonGeometry) -> Geometry:
    """The geometry for fitting: lengths of many postures (S, D) -> (S, M) since zero, and no Jacobians."""

    def lengths(postures: Array) -> tuple[Array, Array]:
        return geometry.lengths_of(postures), np.empty(0)

    return lengths


def group_mappings(model: pin.Model, tendons: TendonSet, groups: Sequence[TendonGroup]) -> dict[str, GeometryMapping]:
    """The geometry of each group by its name; joints that a group neither owns nor borrows are held at neutral.

    Raises:
        UnknownNameError: a group names a joint or a tendon that the robot does not have.
    """
    return {g.name: geometry_mapping(TendonGeometry(model, tendons.only(g.tendons), g.joints)) for g in groups}
