"""Differential solvers: from task velocities, or accelerations, to joint velocities, one tick at a time."""

from humanoid_control.ik.solvers.acceleration import ResolvedAcceleration
from humanoid_control.ik.solvers.base import VelocitySolver
from humanoid_control.ik.solvers.damped import DampedLeastSquares, DampingSchedule
from humanoid_control.ik.solvers.hierarchy import Hierarchy
from humanoid_control.ik.solvers.integrate import AdamsMoulton, explicit_euler
from humanoid_control.ik.solvers.interface import IkSolver, SolverSettings, StepReport
from humanoid_control.ik.solvers.momentum_tracking import MomentumTracking
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.solvers.resolved_rate import ResolvedRate
from humanoid_control.ik.solvers.switching import SwitchSettings
from humanoid_control.ik.solvers.transpose import JacobianTranspose
from humanoid_control.ik.solvers.truncated import BoundedNorm, TruncatedSvd

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
