"""After the warm-up nothing is left to compile: neither for a node nor for any filter or mapping."""

import importlib
import pkgutil

import numpy as np
from numba.core.dispatcher import Dispatcher

import humanoid_control.tendons
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.settings import OBSERVATIONS, EstimatorSettings
from humanoid_control.warm_up.tendons import KERNELS, compile_kernels, compiled


def signatures():
    """How many versions of each kernel of the tendons there are in memory."""
    modules = [
        importlib.import_module(m.name)
        for m in pkgutil.walk_packages(humanoid_control.tendons.__path__, "humanoid_control.tendons.")
    ]
    found = {v for m in modules for v in vars(m).values() if isinstance(v, Dispatcher)}
    return {f"{k.py_func.__module__}.{k.py_func.__name__}": len(k.signatures) for k in found}


def test_nothing_is_compiled_after_the_warm_up():
    compile_kernels()
    before = signatures()
    assert compiled() and all(k.signatures for k in KERNELS) and len(before) > 40
    robot = load_robot("hrp2", "floating")
    groups, geometry = tendon_groups(robot, "completed"), tendon_geometry(robot)
    for observation in OBSERVATIONS:
        mappings = tendon_mappings(robot, groups, None)
        estimator = TendonEstimator(groups, mappings, EstimatorSettings(observation, every=2))
        order = [geometry.tendon_names.index(t) for t in estimator.muscle_names]
        for share in (0.3, 0.4, 0.5, 0.6):
            q = geometry.limits @ [1 - share, share]
            lengths = geometry.lengths(q)[order]
            lengths[0] = np.nan  # a missing tendon
            estimator.step(lengths, np.full(len(lengths), 20.0))
        estimator.observability()
    geometry.paths(q)
    assert signatures() == before
