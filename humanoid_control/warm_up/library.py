"""Kernels for callers of the package compiled ahead: dynamics, volumes, solvers, reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.collision.ssv.distance import measure_blocks, nearest_at
from humanoid_control.ik.null_space.compiled_rate import rate_tick
from humanoid_control.ik.null_space.weighted_step import factored_rows
from humanoid_control.multibody.forward_dynamics import articulated_body_at, dense_at, sparse_at
from humanoid_control.reaching.optimal.cost import reach_cost, reach_cost_derivatives
from humanoid_control.reaching.optimal.inverse_dynamics import torque_derivatives
from humanoid_control.simulation.state_space.model import full_rates, reduced_rates
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = (
    "compiling dynamics, distances and reaches for this machine, only the first time: up to three minutes on two cores"
)
KERNELS: tuple[Any, ...] = (
    articulated_body_at,
    sparse_at,
    dense_at,
    full_rates,
    reduced_rates,
    nearest_at,
    measure_blocks,
    rate_tick,
    factored_rows,
    reach_cost,
    reach_cost_derivatives,
    torque_derivatives,
)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by one call each."""
    from humanoid_control.collision.ssv import volume_distances
    from humanoid_control.ik import DofSelection, lola_tasks
    from humanoid_control.ik.null_space import DampedLeastSquares, ResolvedRate, SelfCollisionCost
    from humanoid_control.multibody import SOLVERS, ForwardDynamics, Model, from_pinocchio, joint_wrenches, totals
    from humanoid_control.reaching import ReachSettings, robot_arm, synthesise
    from humanoid_control.robots import load_robot
    from humanoid_control.robots.volumes import segment_pairs, volumes_of
    from humanoid_control.simulation.state_space import StateSpaceModel

    robot = load_robot("lola", "floating")
    q, v = robot.q("neutral"), np.zeros(robot.nv)
    for solver in SOLVERS:
        dynamics = ForwardDynamics(Model(from_pinocchio(robot.model).bodies), solver)
        qdd = dynamics(q, v)
    totals(dynamics, q, v)
    joint_wrenches(dynamics, qdd)
    for depth in ("reduced", "rigid"):
        model = StateSpaceModel(robot, depth)
        model.rates(0.0, model.initial(), np.zeros(model.inputs))
    tasks = lola_tasks(robot)
    tasks.take_targets(q)
    dofs = DofSelection(robot, tasks.held)
    for ik in (ResolvedRate(robot, [SelfCollisionCost(robot)], dofs=dofs), DampedLeastSquares(robot, dofs=dofs)):
        ik.step(q, tasks.all(), 0.01)  # single call and step by step
    robot.collision_monitor().update(q, 0.05)
    pairs = segment_pairs(robot, volumes_of(robot), 0.2)
    pairs.nearest()
    corner = np.zeros((1, 1, 3))
    volume_distances("pp", corner, np.zeros(1), corner + 1.0, np.zeros(1))
    arm = robot_arm(load_robot("lola", "fixed"), "right")
    synthesise(arm, np.zeros(arm.n), np.full(arm.n, -0.3), 1.0, ReachSettings({"torque": 1.0}, starts=2))


if __name__ == "__main__":
    compile_here(compile_kernels)
