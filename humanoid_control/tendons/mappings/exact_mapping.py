"""The routing of the tendons as a joint-muscle mapping, beside those that are fitted to it."""

from __future__ import annotations

from humanoid_control.tendons.mappings.geometry_mapping import GeometryMapping
from humanoid_control.tendons.routing.geometry import TendonGeometry


def exact_mapping(geometry: TendonGeometry) -> GeometryMapping:
    """The mapping l = f(theta) of eq. (3) by the geometry itself: exact, with exact derivatives of both orders.

    The other mappings are made from it: from `geometry.raw`, with the same names, limits and `geometry.model_hash`.
    """
    return GeometryMapping(
        geometry.raw,
        geometry.joint_names,
        geometry.tendon_names,
        geometry.limits,
        geometry.model_hash,
        into=geometry.raw_into,
        directional=geometry.jacobian_directional,
    )
