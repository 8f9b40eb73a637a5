"""Faults that other people reported, each a folder of small inputs with the right value in its README.

`python test/outside_faults.py` runs them all and prints a table. The data are not part of the repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from test.conftest import DATA, REPOSITORY

FAULTS = DATA / "faults"


def pytest_collection_modifyitems(items):
    """Other tests of the suite show each kind in less time; the table of this folder is for a nightly run."""
    for item in items:
        if item.get_closest_marker("fault"):
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(autouse=True)
def named(request, record_property):
    """Keep the id and the right value of a fault for the table."""
    name, right = request.node.get_closest_marker("fault").args
    record_property("id", name)
    record_property("right", right)


@pytest.fixture
def folder(request) -> Path:
    """The folder of a fault; skips where it is absent."""
    path = FAULTS / request.node.get_closest_marker("fault").args[0]
    if not path.is_dir():
        pytest.skip(f"{path.name}: set HUMANOID_TEST_DATA to the folder that holds faults/{path.name}")
    return path


@pytest.fixture
def result(record_property):
    """Return a function that keeps the observed value for the table, before it is compared."""

    def keep(*values: object) -> None:
        text = " ".join(v if isinstance(v, str) else plain(v) for v in values)
        record_property("result", text.replace(f"{FAULTS}{os.sep}", ""))

    return keep


def plain(value: object) -> str:
    """A short text of numbers."""
    if isinstance(value, (list, tuple)):
        return ", ".join(plain(v) for v in value)
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


@pytest.fixture
def script(folder, tmp_path):
    """Return a function that runs a script of the folder in a copy of it and returns its output."""

    def run(name: str, *arguments: str, timeout: float = 300.0) -> str:
        place = tmp_path / folder.name
        shutil.copytree(folder, place, dirs_exist_ok=True)
        done = subprocess.run(
            [sys.executable, name, *arguments], cwd=place, env=with_package(), capture_output=True, text=True,
            timeout=timeout,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-500:]
        return done.stdout

    return run


@pytest.fixture
def humanoid(tmp_path):
    """Return a function that runs the command `humanoid` in an empty folder: exit code, output, errors."""

    def run(*arguments: object, timeout: float = 300.0) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "humanoid_control", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, env=with_package(), capture_output=True, text=True, timeout=timeout
        )
        return done.returncode, done.stdout, done.stderr

    return run


def with_package() -> dict[str, str]:
    """The environment of a process that imports this repository's package, whatever its folder is."""
    path = os.pathsep.join(p for p in (str(REPOSITORY), os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture
def graph(tmp_path, warm_process):
    """A node of the test's own and the nodes it starts; skips without ROS 2."""
    nodes = pytest.importorskip("test.nodes.conftest")
    made = nodes.Graph(tmp_path, warm_process, nodes.RATES)
    yield made
    made.close()
