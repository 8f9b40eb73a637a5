"""The example of the room runs: a robot of the catalogue, and a MuJoCo model given as its argument."""

import re
import runpy
import sys

import pytest

from test.conftest import REPOSITORY


def errors(monkeypatch, capsys, *args):
    """Median and worst error [deg] of each estimator that the example prints."""
    monkeypatch.setattr(sys, "argv", ["example", *map(str, args)])
    runpy.run_path(str(REPOSITORY / "examples" / "tendon_lengths_to_angles.py"))
    found = re.findall(r"median error ([\d.]+) deg, worst ([\d.]+)", capsys.readouterr().out)
    return [tuple(map(float, pair)) for pair in found]


def test_angles_of_a_robot_are_estimated_from_its_tendons(monkeypatch, capsys):
    (absolute, worst), (relative, _) = errors(monkeypatch, capsys, "kengoro_upper")
    assert absolute < 0.5 and worst < 2.0 and relative < 5.0


def test_angles_of_a_mujoco_model_are_estimated_from_its_tendons(monkeypatch, capsys, model_file):
    pytest.importorskip("mujoco", reason="needs the package mujoco, which reads the model")
    path = model_file("muscles/myo_sim_meshfree/myoelbow_2dof6muscles_meshfree.xml")
    (absolute, worst), (relative, _) = errors(monkeypatch, capsys, path)
    assert absolute < 0.5 and worst < 2.0 and relative < 5.0
