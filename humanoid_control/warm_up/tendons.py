"""The tendons' kernels compiled ahead of time, so that no first estimate waits for the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.jit import are_compiled
from humanoid_control.tendons.estimator import (
    kalman,
)
from humanoid_control.tendons.estimator import (
    kalman as increments,
)
from humanoid_control.tendons.estimator import (
    kalman as prediction,
)
from humanoid_control.tendons.estimator import (
    observations as two_moments,
)
from humanoid_control.tendons.mappings import neural as neural_kernels
from humanoid_control.tendons.mappings import polynomial as polynomial_kernels
from humanoid_control.tendons.routing.kernels import bend_at, measure_at

ADVICE = "compiling the tendons for this machine, only this once: about half a minute"
KERNELS: tuple[Any, ...] = (
    measure_at,
    bend_at,
    prediction.predict,
    increments.bent,
    two_moments.moved_angles,
    two_moments.compare_moments,
    kalman.update,
    kalman.hold_limits,
    polynomial_kernels.evaluate,
    polynomial_kernels.directional,
    neural_kernels.evaluate,
    neural_kernels.directional,
)
SMALL = 4  # values per joint of the grid, degree and width of the mappings that are fitted for nothing but this


def compiled() -> bool:
    """Whether the kernels of geometry, mappings and filters are in memory or on disk."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile what tendons need, by some steps of each kind of filter and mapping; quick where it is done already."""
    from humanoid_control.robots.catalogue import load_robot
    from humanoid_control.simulation.drives.tendon_plant import TendonPlant
    from humanoid_control.studies.kawaharazuka.lab import TendonLab
    from humanoid_control.tendons.estimator.estimator import TendonEstimator
    from humanoid_control.tendons.estimator.group_filter import GroupFilter
    from humanoid_control.tendons.estimator.settings import OBSERVATIONS, FilterSettings
    from humanoid_control.tendons.mappings.exact import lengths_only
    from humanoid_control.tendons.mappings.neural import fit_neural
    from humanoid_control.tendons.mappings.polynomial import fit_polynomial
    from humanoid_control.tendons.mappings.postures import random_postures

    lab = TendonLab(load_robot("kengoro_upper", "fixed"))
    for observation in OBSERVATIONS:
        estimator = TendonEstimator(lab.groups, lab.mappings, FilterSettings(observation, every=1))
        order = [lab.whole.tendon_names.index(t) for t in estimator.muscle_names]
        for q in random_postures(lab.whole.limits, 3):
            estimator.step(lab.whole.lengths(q)[order])
    limb = lab.limb(("l_elbow_pitch",))
    data = (lengths_only(limb.geometry), limb.geometry.joint_names, limb.geometry.tendon_names, limb.geometry.limits)
    postures = random_postures(limb.geometry.limits, 20)
    for mapping in (fit_polynomial(*data, postures, SMALL), fit_neural(*data, postures, SMALL, 2)):
        GroupFilter(limb.group, mapping, FilterSettings("r1")).step(mapping.lengths(np.zeros(1)))
    plant = TendonPlant(lab.robot)
    plant.states(lab.robot.postures["neutral"], np.zeros(lab.robot.n))
    lab.whole.paths(lab.start)


if __name__ == "__main__":
    compile_kernels()
