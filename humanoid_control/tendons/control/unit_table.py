"""Muscle units as kernels read them: tension of a wire, force of a motor, friction of a winch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.jit import inlined
from humanoid_control.numerics.array_types import F1
from humanoid_control.tendons.unit import MuscleUnit


class UnitTable(NamedTuple):
    """Units of M tendons for kernels: the attributes of `MuscleUnit`, (M,) each."""

    mass: F1
    viscous: F1
    friction: F1
    force: F1
    speed: F1
    stiffness: F1
    damping: F1
    stiffening: F1


def unit_table(units: Sequence[MuscleUnit]) -> UnitTable:
    """Return the units of M tendons as arrays."""
    return UnitTable(*(np.array([getattr(u, name) for u in units], dtype=float) for name in UnitTable._fields))


SLOWEST = 1e-3  # [m/s] below which Coulomb friction acts like viscous friction


@inlined
def wire_tension(unit: UnitTable, k: int, s: float) -> tuple[float, float]:
    """Tension of the wire of tendon k at rest at a stretch s [m], and its slope: [N], [N/m].

    A slack wire has no tension; its slope is that with which it begins to pull.
    """
    stiffness, s1 = unit.stiffness[k], unit.stiffening[k]
    if s1 > 0.0 and s > 0.0:
        return stiffness * s * (1.0 + s / s1), stiffness * (1.0 + 2.0 * s / s1)
    return stiffness * s, stiffness


@inlined
def motor_force(unit: UnitTable, k: int, asked: float, w: float) -> float:
    """Force of the motor of tendon k [N]: the force asked for, as far as the motor can give it at the speed w [m/s]."""
    most, fall = unit.force[k], unit.force[k] / unit.speed[k]
    ahead, back = min(most, fall * (unit.speed[k] - w)), min(most, fall * (unit.speed[k] + w))
    return min(max(asked, -max(back, 0.0)), max(ahead, 0.0))


@inlined
def friction_rate(unit: UnitTable, k: int, w: float) -> float:
    """Viscous and Coulomb friction of tendon k as one damping at the speed w [N s/m]."""
    return unit.viscous[k] + unit.friction[k] / max(abs(w), SLOWEST)
