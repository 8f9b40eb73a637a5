"""Costs that are minimised in the null space of the tasks: joint limits, comfort, manipulability, self-collision."""

from humanoid_control.ik.objectives.base import Objective
from humanoid_control.ik.objectives.joint_cost import ComfortCost, JointLimitCost
from humanoid_control.ik.objectives.manipulability import ManipulabilityCost, condition_number, manipulability
from humanoid_control.ik.objectives.repulsion import repulsion, repulsion_potential, stable_contact_gradient
from humanoid_control.ik.objectives.self_collision import SelfCollisionCost, activation_distances

__all__ = [
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
