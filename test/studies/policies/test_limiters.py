"""Limiters side by side: runs behind each, cells of the worst numbers, and falls that are the gate's."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("mujoco")

from evidence.studies.policies.limiters import engine_table, fall_line, run_once, run_study
from evidence.studies.policies.trials import NOISE_Q, chosen_policies, noisy, policy_name
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.policy import RobotState


@pytest.fixture(scope="module")
def ppo(model_file):
    return str(model_file("policies/holosoma/ppo_g1_29dof.onnx"))


def test_limits_on_targets_fell_a_walk_that_the_gate_leaves_alone(ppo, g1_urdf):
    gate, rate = (run_once(ppo, str(g1_urdf), "multibody", n, 4.0, 0) for n in ("gate", "rate20"))
    assert gate["fell"] is None and gate["gate"] == 0.0 and gate["distance_m"] > 0.5
    assert rate["fell"] is not None and rate["gate"] is None


def test_noise_changes_the_run_and_is_that_of_its_seed(ppo, g1_urdf):
    a, b, c = (run_once(ppo, str(g1_urdf), "mujoco", "none", 1.5, seed) for seed in (0, 1, 1))
    assert b == c and b["distance_m"] != a["distance_m"] and b["fell"] is None
    still = RobotState(np.zeros(2000), np.zeros(2000), np.array([0, 0, 0, 1.0]), np.zeros(3))
    sensed = noisy(3).change(still, 0.0)
    assert np.std(sensed.q) == pytest.approx(NOISE_Q, rel=0.1) and np.linalg.norm(sensed.orientation) == pytest.approx(
        1
    )


def rows():
    keys = ("policy", "engine", "limiter", "seed", "fell", "gate")
    told = [
        ("a/p.onnx", "mujoco", "none", 0, None, None),
        ("a/p.onnx", "mujoco", "none", 1, None, None),
        ("a/p.onnx", "mujoco", "gate", 0, None, 0.01),
        ("a/p.onnx", "mujoco", "gate", 1, 7.0, 0.05),
        ("b/q.onnx", "mujoco", "none", 0, 3.0, None),
        ("b/q.onnx", "mujoco", "gate", 0, 4.0, 0.5),
    ]
    numbers = {"why": "", "excess_rad": 0.01, "speed_share": 0.9, "apart_mm": 12.0, "distance_m": 1.0}
    return [dict(zip(keys, row, strict=True)) | numbers for row in told]


def test_cells_hold_falls_and_the_worst_numbers():
    cells = {row[0]: row[1:] for row in engine_table(rows(), "mujoco", ["none", "gate", "freeze"]).rows}
    assert cells["p"] == ["stands; 0.010; 0.90; 12 mm", "falls no, 7.0 s; 0.010; 0.90; 12 mm; 5.0 %", "-"]
    assert cells["q"][0].startswith("falls 3.0 s")


def test_falls_of_the_gate_alone_are_counted():
    assert fall_line(rows()).endswith("Falls only with the gate: 1 of 2: p (mujoco, seed 1).")


def test_policies_are_named_by_their_files_and_missing_ones_refused(ppo, tmp_path):
    assert policy_name(ppo) == "ppo_g1_29dof" and policy_name("x/lab/params/deploy.yaml") == "lab"
    assert chosen_policies([ppo, ppo]) == [ppo] and chosen_policies([f"{ppo},{ppo}"]) == [f"{ppo},{ppo}"]
    with pytest.raises(ConfigError, match=r"no file nowhere\.onnx"):
        chosen_policies([f"{ppo},nowhere.onnx"])
    for bad in ({"seconds": 0.0}, {"seconds": float("nan")}, {"seeds": -1}):
        with pytest.raises(ConfigError, match="--seconds must be 1 to"):
            run_study(robot="hrp2", policies=[ppo], **bad)
    with pytest.raises(UnknownNameError, match="did you mean rate20"):
        run_study(limiter=["rate02"])
