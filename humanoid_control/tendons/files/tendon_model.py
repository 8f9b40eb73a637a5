"""A mechanism with its tendons, wherever they were read from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pinocchio as pin

from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonSet


@dataclass(frozen=True)
class TendonModel:
    """A pinocchio model (of a foreign file: kinematics only) and the tendons on its links."""

    name: str
    model: pin.Model
    tendons: TendonSet

    def geometry(self, joints: Iterable[str] | None = None) -> TendonGeometry:
        """Lengths and moment arms over some joints; default: all that the tendons cross."""
        return TendonGeometry(self.model, self.tendons, joints)
