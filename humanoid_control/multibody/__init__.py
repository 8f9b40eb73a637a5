"""Multibody dynamics in minimal coordinates: O(n) with sub-systems for small loops, and solvers to compare with."""

from humanoid_control.multibody.forward_dynamics import SOLVERS, ForwardDynamics
from humanoid_control.multibody.model import (
    ENVIRONMENT,
    Body,
    Inertia,
    Joint,
    Loop,
    Model,
    free,
    prismatic,
    quadratic,
    revolute,
    rotor,
)

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
