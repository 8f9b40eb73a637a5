"""Null-space methods of inverse kinematics: tasks exactly or damped, objectives in the remaining freedom.

The solvers of Schwienbacher 2014, chapters 4, 5 and 7. They respect joint speeds and ranges, but the distance of
shapes only as an objective: on a robot use `humanoid_control.ik.WholeBodyIk`.

    from humanoid_control.ik import lola_tasks
    from humanoid_control.ik.null_space import ComfortCost, JointLimitCost, ResolvedRate
    from humanoid_control.robots import load_robot

    robot = load_robot("lola", "floating")
    biped = lola_tasks(robot)
    biped.tasks["center_of_mass"].target += [0.02, 0.0, -0.03]
    solver = ResolvedRate(robot, [JointLimitCost(), ComfortCost(robot.postures["neutral"])])
    q = robot.q("neutral")
    for _ in range(250):
        q, v, report = solver.step(q, biped.all(), dt=0.004)
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.ik.null_space.acceleration import ResolvedAcceleration as ResolvedAcceleration
    from humanoid_control.ik.null_space.least_squares import BoundedNorm as BoundedNorm
    from humanoid_control.ik.null_space.least_squares import DampedLeastSquares as DampedLeastSquares
    from humanoid_control.ik.null_space.least_squares import DampingSchedule as DampingSchedule
    from humanoid_control.ik.null_space.least_squares import Hierarchy as Hierarchy
    from humanoid_control.ik.null_space.least_squares import JacobianTranspose as JacobianTranspose
    from humanoid_control.ik.null_space.least_squares import ResolvedRate as ResolvedRate
    from humanoid_control.ik.null_space.least_squares import TruncatedSvd as TruncatedSvd
    from humanoid_control.ik.null_space.momentum_tracking import MomentumTracking as MomentumTracking
    from humanoid_control.ik.null_space.objectives import ComfortCost as ComfortCost
    from humanoid_control.ik.null_space.objectives import JointLimitCost as JointLimitCost
    from humanoid_control.ik.null_space.objectives import ManipulabilityCost as ManipulabilityCost
    from humanoid_control.ik.null_space.objectives import Objective as Objective
    from humanoid_control.ik.null_space.objectives import SelfCollisionCost as SelfCollisionCost
    from humanoid_control.ik.null_space.objectives import activation_distances as activation_distances
    from humanoid_control.ik.null_space.objectives import condition_number as condition_number
    from humanoid_control.ik.null_space.objectives import manipulability as manipulability
    from humanoid_control.ik.null_space.objectives import repulsion as repulsion
    from humanoid_control.ik.null_space.objectives import repulsion_potential as repulsion_potential
    from humanoid_control.ik.null_space.objectives import stable_contact_gradient as stable_contact_gradient
    from humanoid_control.ik.null_space.velocity_solver import SolverSettings as SolverSettings
    from humanoid_control.ik.null_space.velocity_solver import SwitchSettings as SwitchSettings
    from humanoid_control.ik.null_space.velocity_solver import VelocitySolver as VelocitySolver

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "acceleration": ["ResolvedAcceleration"],
        "least_squares": [
            "BoundedNorm",
            "DampedLeastSquares",
            "DampingSchedule",
            "Hierarchy",
            "JacobianTranspose",
            "ResolvedRate",
            "TruncatedSvd",
        ],
        "momentum_tracking": ["MomentumTracking"],
        "objectives": [
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
        ],
        "velocity_solver": ["SolverSettings", "SwitchSettings", "VelocitySolver"],
    },
    public=[
        "DampedLeastSquares",
        "Hierarchy",
        "JacobianTranspose",
        "JointLimitCost",
        "MomentumTracking",
        "ResolvedAcceleration",
        "ResolvedRate",
        "SolverSettings",
        "TruncatedSvd",
    ],
)
