"""Faces of retargeting and motion capture: what they load, in a process of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded(code: str) -> set[str]:
    """Modules in memory after running code in a fresh process."""
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    return set(told.stdout.split())


@pytest.mark.parametrize("name", ["*", "RetargetSettings", "LiveTargets"])
def test_retargeting_does_not_load_inverse_kinematics(name):
    modules = loaded(f"import humanoid_control.retargeting\nfrom humanoid_control.retargeting import {name}")
    above = ("ik", "simulation", "evaluation", "studies", "nodes")
    assert not [m for m in modules for room in above if m.startswith(f"humanoid_control.{room}")]


@pytest.mark.parametrize("name", ["retargeting", "mocap"])
def test_a_face_loads_nothing_until_it_is_asked(name):
    modules = loaded(f"import humanoid_control.{name}")
    assert {m for m in modules if m.startswith("humanoid_control.")} == {
        f"humanoid_control.{name}",
        "humanoid_control.lazy",
    }
    assert "numpy" not in modules


def test_a_clip_is_read_without_the_compiler_and_without_scipy():
    modules = loaded("from humanoid_control.mocap import *\nload_clip('dance')")
    assert not {"numba", "scipy", "pinocchio"} & modules
