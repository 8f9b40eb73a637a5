"""Differential solvers: from task velocities, or accelerations, to joint velocities, one tick at a time."""

from humanoid_control.ik.free_velocities import Moving
from humanoid_control.ik.integrate import AdamsMoulton, explicit_euler
from humanoid_control.ik.null_space.acceleration import ResolvedAcceleration
from humanoid_control.ik.null_space.least_squares import (
    BoundedNorm,
    DampedLeastSquares,
    DampingSchedule,
    Hierarchy,
    JacobianTranspose,
    ResolvedRate,
    TruncatedSvd,
)
from humanoid_control.ik.null_space.momentum_tracking import MomentumTracking
from humanoid_control.ik.null_space.velocity_solver import (
    IkSolver,
    SolverSettings,
    StepReport,
    SwitchSettings,
    VelocitySolver,
)

__all__ = [
    "AdamsMoulton",
    "BoundedNorm",
    "DampedLeastSquares",
    "DampingSchedule",
    "Hierarchy",
    "IkSolver",
    "JacobianTranspose",
    "MomentumTracking",
    "Moving",
    "ResolvedAcceleration",
    "ResolvedRate",
    "SolverSettings",
    "StepReport",
    "SwitchSettings",
    "TruncatedSvd",
    "VelocitySolver",
    "explicit_euler",
]


from humanoid_control.ik.null_space.objectives import (
    ComfortCost,
    JointLimitCost,
    ManipulabilityCost,
    Objective,
    SelfCollisionCost,
    activation_distances,
    condition_number,
    manipulability,
    repulsion,
    repulsion_potential,
    stable_contact_gradient,
)

__all__ += [
    "ComfortCost",
    "JointLimitCost",
    "ManipulabilityCost",
    "Objective",
    "SelfCollisionCost",
    "activation_distances",
    "condition_number",
    "manipulability",
    "repulsion",
    "repulsion_potential",
    "stable_contact_gradient",
]
