"""Multibody dynamics in minimal coordinates: O(n) with sub-systems for small loops, and solvers to compare with."""

from humanoid_control.multibody.body import (
    ENVIRONMENT,
    Body,
    Inertia,
    Joint,
    free,
    prismatic,
    quadratic,
    revolute,
    rotor,
)
from humanoid_control.multibody.dynamics import SOLVERS, ForwardDynamics
from humanoid_control.multibody.model import Loop, Model

__all__ = [
    "ENVIRONMENT",
    "SOLVERS",
    "Body",
    "ForwardDynamics",
    "Inertia",
    "Joint",
    "Loop",
    "Model",
    "free",
    "prismatic",
    "quadratic",
    "revolute",
    "rotor",
]
