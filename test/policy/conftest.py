"""Robots and files of the tests of policies; public files are read where they lie, and copied nowhere else."""

import shutil
from pathlib import Path

import pytest

from humanoid_control.robots import load_robot

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def g1_urdf(model_file, tmp_path_factory):
    """Path of a G1's URDF with the project's robot file beside it."""
    folder = tmp_path_factory.mktemp("g1")
    shutil.copyfile(model_file("policies/twist2/g1_29dof.urdf"), folder / "g1_29dof.urdf")
    shutil.copyfile(ROOT / "config" / "robots" / "g1.yaml", folder / "g1_29dof.yaml")
    return folder / "g1_29dof.urdf"


@pytest.fixture(scope="session")
def g1(g1_urdf):
    """A G1 with 29 joints, whose base floats."""
    return load_robot(g1_urdf, "floating")
