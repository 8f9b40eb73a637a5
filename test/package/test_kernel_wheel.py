"""A wheel with compiled kernels: what starts from it compiles nothing, on another processor it compiles as usual."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from humanoid_control.compiled.jit import config
from humanoid_control.ik import target_filter
from humanoid_control.warm_up.kernel_files import are_compiled

ROOT = Path(__file__).resolve().parents[2]
START = """
import numba.core.event as event
made = []

class Compiled(event.Listener):
    def on_start(self, e): made.append(e.data["dispatcher"].py_func.__qualname__)
    def on_end(self, e): pass

event.register("numba:compile", Compiled())
import humanoid_control
from humanoid_control.ik.target_filter import TargetFilter
import numpy as np
f = TargetFilter()
row = f.add(np.zeros(3))
for k in range(5):
    f.update(np.array([row]), np.array([[0.01 * k, 0.0, 0.0]]), 0.1 * k)
    f.step(0.1 * k, 0.1)
print(humanoid_control.__file__, len(made), f"{f.x[0, 0]:.6f}")
"""


def started(folder):
    """Where the package was found, how many kernels were compiled, and a number, of a fresh process."""
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", START], env=env, capture_output=True, text=True, cwd=folder, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    path, count, number = done.stdout.split()
    return path, int(count), float(number)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The wheel with the kernels of this checkout, unpacked as pip does."""
    if config.DISABLE_JIT or os.environ.get("NUMBA_CACHE_DIR"):
        pytest.skip("the kernels of the checkout are not next to their sources in this mode")
    assert started(ROOT)[0].startswith(str(ROOT)), "which also compiles what this test needs"
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # setuptools leaves a folder `build` next to what it builds
    for name in ("humanoid_control", "launch", "config", "urdf", "resource"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "package.xml", "README.md"):
        shutil.copy(ROOT / name, source)
    argv = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*argv, str(source)], check=True, env={**os.environ, "HUMANOID_KERNELS": "yes"}, timeout=600)
    (wheel,) = folder.glob("*.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{python}-{python}-linux_" in wheel.name, "machine code is of one Python and one platform"
    with zipfile.ZipFile(wheel) as z:
        z.extractall(folder / "site")
    return folder / "site"


@pytest.mark.nightly
def test_what_starts_from_a_wheel_with_kernels_compiles_nothing_and_computes_the_same(unpacked, monkeypatch):
    path, count, number = started(unpacked)
    assert path.startswith(str(unpacked)) and count == 0
    assert number == started(ROOT)[2] > 0.0
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    path, count, other = started(unpacked)
    assert count > 0 and other == pytest.approx(number, abs=1e-9), "of another processor: compiled as usual"


def test_kernels_for_another_processor_do_not_count_as_compiled(monkeypatch):
    if config.DISABLE_JIT:
        pytest.skip("nothing is compiled in this mode")
    kernels = [k for k in vars(target_filter).values() if hasattr(k, "py_func") and hasattr(k, "_cache")]
    one = kernels[0]
    index = {("signature", one.targetctx.codegen().magic_tuple(), "types", "cells"): "data"}
    other = {("signature", ("x86_64", "another", "+none"), "types", "cells"): "data"}
    for kept, wanted in ((index, True), (other, False), ({}, False)):
        monkeypatch.setattr(one._cache._cache_file, "_load_index", lambda kept=kept: kept)
        assert are_compiled([one]) is (wanted or bool(one.signatures))
