"""Faces of the rooms: every name is there, the example of the docstring runs, no room loads more than it needs."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import humanoid_control
from test.package.violations import assert_none
from test.robots_under_test import nightly

ROOMS = [
    name
    for _, name, package in pkgutil.walk_packages(humanoid_control.__path__, "humanoid_control.")
    if package and hasattr(importlib.import_module(name), "__all__")
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
SERVES = ("nodes", "viewer")  # their examples start processes or a server and go on: see test/nodes, test/viewer
LONG = ("session", "performing", "evaluation.report")  # some seconds of a stack, of a dance, of a whole clip
NOT_LOADED = {
    "ik": ("scipy.optimize", "humanoid_control.mocap", "humanoid_control.retargeting"),
    "retargeting": ("humanoid_control.ik", "matplotlib"),
    "mocap": ("numba", "pinocchio"),
    "collision": ("numba", "pinocchio"),
    "simulation": ("mujoco", "matplotlib"),
    "tendons": ("mujoco", "numba"),
    "robots": ("numba", "coal"),
    "evaluation": ("matplotlib",),
}


def room(name):
    return name.removeprefix("humanoid_control.")


def test_every_name_of_a_face_is_there():
    found = []
    for name in ROOMS:
        face, at = importlib.import_module(name), f"{name.replace('.', '/')}/__init__.py"
        names, shown = set(face.__all__), set(dir(face))
        modules = {m.name for m in pkgutil.iter_modules(face.__path__)}
        if not names or len(names) != len(face.__all__):
            found.append(f"{at}: __all__ is empty, or holds a name twice")
        found += [f"{at}: {one} is not there" for one in sorted(shown) if getattr(face, one, None) is None]
        found += [f"{at}: {one} is not in dir()" for one in sorted(names - shown)]
        found += [f"{at}: importing the module {one} would hide what the face gives" for one in sorted(shown & modules)]
    assert_none(found)


@pytest.mark.parametrize(
    "name", [nightly(r) if room(r) in LONG else r for r in ROOMS if room(r).split(".")[0] not in SERVES], ids=room
)
def test_the_example_of_a_face_runs(name):
    blocks = BLOCK.findall(inspect.getdoc(importlib.import_module(name)) or "")
    seen = {"__name__": "__example__"}
    for block in blocks:
        exec(compile(block, name, "exec"), seen)


@pytest.mark.parametrize("name", NOT_LOADED, ids=str)
def test_a_room_loads_no_more_than_it_needs(name):
    code = f"import sys, humanoid_control.{name}; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & set(NOT_LOADED[name])
