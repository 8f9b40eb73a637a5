"""Kernels of a person: all of the room are compiled ahead, and an analysis compiles nothing more."""

import importlib
import pkgutil

from numba.core.registry import CPUDispatcher

import humanoid_control.human
from humanoid_control.human import analyse, read_osim
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.mocap import load_clip
from humanoid_control.warm_up import GROUPS
from humanoid_control.warm_up.human import KERNELS, compile_kernels, compiled


def test_no_kernel_of_the_room_is_forgotten():
    """What only other kernels call is compiled into these."""
    found, room = {}, humanoid_control.human
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, CPUDispatcher) and value.py_func.__module__ == module.name:
                found[f"{module.name}.{value.py_func.__name__}"] = value
    called = {name for k in found.values() for name in k.py_func.__code__.co_names}
    forgotten = [name for name, k in found.items() if k not in KERNELS and k.py_func.__name__ not in called]
    assert len(found) > 15 and not forgotten and "human" in GROUPS


def test_an_analysis_compiles_nothing_more(model_file):
    compile_kernels()
    assert compiled() and all(k.signatures for k in KERNELS)
    before = {k.py_func.__name__: len(k.signatures) for k in KERNELS}
    walk = "human_motion/gait2354_walk"
    person = read_osim(model_file(f"{walk}/reference/subject01_simbody.osim"))
    clip = load_clip(model_file(f"{walk}/subject01_walk1.trc"))
    found = analyse(person, clip, read_loads(model_file(f"{walk}/subject01_walk1_grf.xml")), calibrate_by=[clip])
    assert found.explained.sum() > 100
    assert {k.py_func.__name__: len(k.signatures) for k in KERNELS} == before
