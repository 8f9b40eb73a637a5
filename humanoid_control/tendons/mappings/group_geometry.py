"""The geometry of a robot's tendons as mappings, one for each group, and as what mappings are fitted to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.tendons.mappings.exact_mapping import exact_mapping
from humanoid_control.tendons.mappings.geometry_mapping import GeometryMapping
from humanoid_control.tendons.mappings.mapping import Array, Geometry
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup, TendonSet


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
    return {g.name: exact_mapping(TendonGeometry(model, tendons.only(g.tendons), g.joints)) for g in groups}
