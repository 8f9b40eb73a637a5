"""After the warm-up nothing is left to compile for a robot that walks (3 s)."""

import sys

from numba.core.dispatcher import Dispatcher

from evidence.studies.walking.trial import WalkConditions, steady, walk
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking import Walker
from humanoid_control.warm_up.walking import KERNELS, compile_kernels, compiled


def signatures():
    """How many versions of each kernel there are in memory."""
    modules = [m for name, m in sys.modules.items() if name.startswith("humanoid_control.")]
    found = {v for m in modules for v in vars(m).values() if isinstance(v, Dispatcher)}
    return {f"{k.py_func.__module__}.{k.py_func.__name__}": len(k.signatures) for k in found}


def test_nothing_is_compiled_for_a_walk_after_the_warm_up():
    compile_kernels()
    before = signatures()
    assert compiled() and all(k.signatures for k in KERNELS)
    robot = load_robot("hrp2", "floating")
    out = walk(SimulationConfig("hrp2", "floating").build(), Walker(robot), WalkConditions(steady((0.1, 0.0, 0.0)), 1))
    assert out.fell == "" and out.steps >= 1
    assert {name: n for name, n in signatures().items() if n != before.get(name, 0)} == {}
