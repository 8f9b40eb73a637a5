"""Kernels of tendons compiled ahead, for a quick first estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.compiled.packed import Packed
from humanoid_control.numerics.finite import all_finite_in
from humanoid_control.simulation.drives.winches import explicit_tensions_at
from humanoid_control.simulation.worlds.winch_step import run_winch_steps
from humanoid_control.tendons.control.distribution import distribute_at
from humanoid_control.tendons.control.laws import bound_tensions_at, forward_at, hybrid_at
from humanoid_control.tendons.control.winch_loop import winch_forces_at
from humanoid_control.tendons.estimator import diagnosis, group_filter, observations, prediction
from humanoid_control.tendons.mappings import neural, polynomial
from humanoid_control.tendons.routing.kernels import measure_at, moment_arm_derivative_at
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the tendons for this machine, only the first time: about half a minute"
KERNELS: tuple[Any, ...] = (
    measure_at,
    moment_arm_derivative_at,
    prediction.linearisation_variance,
    observations.moved_angles_at,
    observations.compare_instants_at,
    group_filter.predict_by_lengths_at,
    group_filter.predict_still_at,
    group_filter.update_at,
    group_filter.widen_at,
    group_filter.is_honest_at,
    group_filter.hold_limits_at,
    group_filter.copy_angles_at,
    diagnosis.count_rejections,
    polynomial.evaluate_at,
    polynomial.directional_at,
    neural.evaluate_at,
    neural.directional_at,
    distribute_at,
    winch_forces_at,
    explicit_tensions_at,
    run_winch_steps,
    all_finite_in,
    bound_tensions_at,
    hybrid_at,
    forward_at,
)
SMALL = 4  # grid values per joint, degree and width of dummy mappings


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by steps of each kind of filter and mapping."""
    from humanoid_control.robots.catalogue import load_robot
    from humanoid_control.robots.tendons import tendon_geometry, tendons_of
    from humanoid_control.simulation.drives.tendon_plant import TendonPlant
    from humanoid_control.simulation.settings import WorldSettings
    from humanoid_control.simulation.worlds.winch_world import WinchWorld
    from humanoid_control.tendons.control.commands import no_states
    from humanoid_control.tendons.control.laws import TendonController, reference_at
    from humanoid_control.tendons.control.settings import LAWS
    from humanoid_control.tendons.estimator.estimator import TendonEstimator
    from humanoid_control.tendons.estimator.group_filter import GroupFilter
    from humanoid_control.tendons.estimator.settings import OBSERVATIONS, EstimatorSettings
    from humanoid_control.tendons.mappings.exact import exact_mapping, fit_target, group_mappings
    from humanoid_control.tendons.mappings.neural import fit_neural
    from humanoid_control.tendons.mappings.polynomial import fit_polynomial
    from humanoid_control.tendons.mappings.postures import random_postures
    from humanoid_control.tendons.routing.geometry import TendonGeometry
    from humanoid_control.tendons.tendon import TendonGroup, complete_groups
    from humanoid_control.tendons.unit import MuscleUnit

    robot = load_robot("kengoro_upper", "fixed")
    whole, tendons = tendon_geometry(robot), tendons_of(robot)
    groups = complete_groups(tuple(tendons.groups.values()), whole.crossed, whole.joint_names, whole.tendon_names)
    mappings = group_mappings(robot.model, tendons, groups)
    for observation in OBSERVATIONS:
        estimator = TendonEstimator(groups, mappings, EstimatorSettings(observation, every=1))
        order = [whole.tendon_names.index(t) for t in estimator.muscle_names]
        for q in random_postures(whole.limits, 3):
            estimator.step(whole.lengths(q)[order])
    joint = whole.joint_names.index("l_elbow_pitch")
    crossing = tuple(t for t, row in zip(whole.tendon_names, whole.crossed, strict=True) if row[joint])
    elbow = TendonGeometry(robot.model, tendons.only(crossing), whole.joint_names[joint : joint + 1])
    exact_mapping(elbow)
    target = fit_target(elbow)
    postures = random_postures(elbow.limits, 20)
    group = TendonGroup("elbow", elbow.joint_names, (), elbow.tendon_names)
    for mapping in (fit_polynomial(target, postures, SMALL), fit_neural(target, postures, SMALL, 2)):
        GroupFilter(group, mapping, EstimatorSettings("r1")).step(mapping.lengths(np.zeros(1)))
    control = TendonController(robot.model, whole, [MuscleUnit()] * len(whole.tendon_names))
    middle, states = np.clip(0.0, *whole.limits.T), no_states(len(whole.tendon_names))
    control.reset(middle, states)
    for law in LAWS:
        control.with_law(law)
        control.step(reference_at(middle), middle, states)
    plant = TendonPlant(robot)
    plant.states(robot.postures["neutral"], np.zeros(robot.n))
    whole.paths(np.clip(0.0, *whole.limits.T))
    world = WinchWorld(robot, WorldSettings(drives="winches"))
    world.step(2)
    world.winches.loop.run(world.winch_states(), world.settings.step)
    explicit_tensions_at(Packed(world.winches.record).table, world.settings.step, 1, np.zeros(len(whole.zero)))


if __name__ == "__main__":
    compile_here(compile_kernels)
