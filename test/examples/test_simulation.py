"""The examples of the simulator run, and say what they should."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def told(name, *arguments):
    """Output of an example."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(REPOSITORY / "examples" / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_a_pushed_robot_sways_comes_back_and_carries_its_weight(tmp_path):
    picture = tmp_path / "sway.png"
    sway, rest, load, weight = map(float, re.findall(r"-?[\d.]+(?= mm| N[,\n])", told("stand_push_and_plot", picture)))
    assert 1.0 < sway < 100.0 and abs(rest) < 0.2 * sway
    assert abs(load - weight) < 0.01 * weight
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_integrators_agree_on_a_robot_without_voltage():
    sunk = [float(x) for x in re.findall(r"sank ([\d.]+) mm", told("drop_a_robot_with_any_integrator"))]
    assert len(sunk) == 3 and min(sunk) > 0.1
    assert max(sunk) - min(sunk) < 0.02 * max(sunk)
