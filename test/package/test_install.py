"""An installed package, not the source tree, holds all that its commands need."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLEAN = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}  # the suite may run below make
LEFT_OUT = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "shared")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The package installed from a copy of the tree, without its dependencies."""
    if importlib.util.find_spec("setuptools") is None or importlib.util.find_spec("pip") is None:
        pytest.skip("needs pip and setuptools")
    folder = tmp_path_factory.mktemp("install")
    shutil.copytree(ROOT, folder / "source", ignore=LEFT_OUT)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--ignore-installed",
        "--no-compile",
    ]
    done = subprocess.run([*command, "--prefix", str(folder / "prefix"), "."], cwd=folder / "source", text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "prefix"


def run(prefix, *words):
    """What a command says; without compilation, which would take longer than all else."""
    site = next(prefix.glob("lib/python*/site-packages"))
    env = os.environ | {"PYTHONPATH": str(site), "NUMBA_DISABLE_JIT": "1"}
    return subprocess.run([prefix / "bin" / "humanoid", *words], cwd=prefix, env=env, text=True, capture_output=True,
                          check=False)  # fmt: skip


def test_every_shared_file_is_installed(prefix):
    share = prefix / "share" / "humanoid_control"
    for folder in ("launch", "config", "urdf"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert (share / path.relative_to(ROOT)).is_file(), f"{path.relative_to(ROOT)} is not installed"
    assert (share / "package.xml").is_file()
    assert (prefix / "share" / "ament_index" / "resource_index" / "packages" / "humanoid_control").is_file()


def test_the_installed_command_works_away_from_the_source_tree(prefix):
    shown = run(prefix, "robots", "dh", "hrp2")
    assert shown.returncode == 0, shown.stderr
    refused = run(prefix, "retarget", "missing.trc", "--robot", "hrp2")
    assert refused.returncode == 2 and len(refused.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["study", "bench", "soak"])
def test_studies_and_benchmarks_need_a_checkout(prefix, command):
    site = next(prefix.glob("lib/python*/site-packages"))
    assert not (site / "evidence").exists()
    refused = run(prefix, command, "--help")
    assert refused.returncode == 2 and not refused.stdout
    assert refused.stderr.startswith(f"humanoid {command}: needs a checkout") and len(refused.stderr.splitlines()) == 1


def test_a_picture_of_evidence_needs_a_checkout(prefix, tmp_path):
    words = ["from humanoid_control.cli.checkout import evidence_module", "evidence_module('benchmarks')"]
    site = next(prefix.glob("lib/python*/site-packages"))
    env = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", "; ".join(words)], cwd=tmp_path, env=env, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert "EnvironmentProblem: needs a checkout" in done.stderr


def test_every_node_has_its_command(prefix):
    for node in ("trajectory_streamer", "whole_body_ik", "simulator", "state_estimator", "viewer"):
        assert (prefix / "bin" / node).is_file()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_every_target_of_the_makefile_is_one():
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    targets = phony[1].split() if phony else []
    assert "boundscheck" in targets and "test" in targets
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, env=CLEAN)
        assert done.returncode == 0 and not done.stderr, f"make {target}: {done.stderr}"
        assert re.search(rf"^{target}:", makefile, re.M), target
