"""A G1 and public policies for tests of nodes; the files are read where they lie."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def g1_urdf(model_file, tmp_path_factory):
    """Path of a G1's URDF with the project's robot file beside it."""
    folder = tmp_path_factory.mktemp("g1")
    shutil.copyfile(model_file("policies/twist2/g1_29dof.urdf"), folder / "g1_29dof.urdf")
    shutil.copyfile(ROOT / "config" / "robots" / "g1.yaml", folder / "g1_29dof.yaml")
    return folder / "g1_29dof.urdf"


@pytest.fixture(scope="session")
def policy_file(model_file):
    """Return a function that gives the path of a public policy."""
    names = {
        "holosoma": "policies/holosoma/ppo_g1_29dof.onnx",
        "unitree": "policies/unitree_rl_lab_g1_velocity/params/deploy.yaml",
        "agile": "policies/agile_leapp/unitree_g1_velocity_e2e.yaml",
        "playground": "policies/mujoco_playground/g1_policy.onnx",
        "twist2": "policies/twist2/twist2_1017_20k.onnx",
    }
    return lambda name: model_file(names[name])
