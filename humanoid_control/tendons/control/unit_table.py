"""Muscle units for kernels: wire tension, motor force, winch friction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import inlined
from humanoid_control.tendons.unit import MuscleUnit


class UnitTable(NamedTuple):
    """Attributes of M `MuscleUnit`s, (M,) each."""

    mass: F1
    viscous: F1
    friction: F1
    force: F1
    speed: F1
    stiffness: F1
    damping: F1
    stiffening: F1


def unit_table(units: Sequence[MuscleUnit]) -> UnitTable:
    return UnitTable(*(np.array([getattr(u, name) for u in units], dtype=float) for name in UnitTable._fields))


SLOWEST = 1e-3  # [m/s] below which Coulomb friction acts as viscous friction, to be smooth at rest


@inlined
def wire_tension(unit: UnitTable, k: int, s: float) -> tuple[float, float]:
    """Return static tension [N] and slope [N/m] of wire k at stretch s [m].

    The tension is negative at negative stretch; callers clip it.
    """
    stiffness, s1 = unit.stiffness[k], unit.stiffening[k]
    # T = k s (1 + s / s1), hence dT/ds = k (1 + 2 s / s1).
    if s1 > 0.0 and s > 0.0:
        return stiffness * s * (1.0 + s / s1), stiffness * (1.0 + 2.0 * s / s1)
    return stiffness * s, stiffness


@inlined
def motor_force(unit: UnitTable, k: int, asked: float, w: float) -> float:
    """Return the motor force of tendon k [N]: `asked`, limited at speed w [m/s]."""
    # Linear torque-speed line from the peak force; braking allows more, up to the peak force.
    most, fall = unit.force[k], unit.force[k] / unit.speed[k]
    ahead, back = min(most, fall * (unit.speed[k] - w)), min(most, fall * (unit.speed[k] + w))
    return min(max(asked, -max(back, 0.0)), max(ahead, 0.0))


@inlined
def friction_rate(unit: UnitTable, k: int, w: float) -> float:
    """Return viscous plus Coulomb friction as a damping at speed w [N s/m]."""
    return unit.viscous[k] + unit.friction[k] / max(abs(w), SLOWEST)
