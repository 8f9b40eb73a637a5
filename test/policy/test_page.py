"""The page of a policy: what is printed about it."""

import json

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("onnx")

from humanoid_control.cli.main import main
from humanoid_control.policy import examine, policy_data, policy_page, read_policy
from humanoid_control.terminal import ReportTable
from test.policy.networks import beyondmimic_network


def parts(path, robot=None):
    """Tables by title, and all sentences."""
    page = list(policy_page(examine(*read_policy(path), robot)))
    sentences = "\n".join(p for p in page if isinstance(p, str))
    return {p.title.split(":")[0].split(",")[0]: p for p in page if isinstance(p, ReportTable)}, sentences


def test_the_page_names_terms_with_slices_joints_and_assumptions(model_file, g1):
    tables, text = parts(model_file("policies/unitree_rl_lab_g1_velocity/params/deploy.yaml"), g1)
    rows = {row[1]: row for row in tables["input obs"].rows}
    assert rows["base_ang_vel"][0] == "0:15" and rows["last_action"][0] == "335:480"
    assert rows["joint_vel_rel"][3:] == ("0.05", "5 frames per term, oldest first")
    assert "rad/s, IMU link" in rows["base_ang_vel"][2]
    joints = {row[1]: row for row in tables["joints"].rows}
    assert joints["left_knee_joint"][2:7] == ("0.3", 9, "0.25", "150", "4") and len(joints) == 29
    assert [row[0] for row in tables["assumed"].rows] == ["joint names", "IMU"]
    assert "50 Hz" in text and "x -0.5 to 1 m/s" in text and "no contradictions" in text


def test_slices_of_frames_are_apart_by_a_frame(tmp_path):
    import yaml

    from test.policy.networks import JOINTS, linear_network

    linear_network(tmp_path / "p.onnx", {"obs": 21}, {"actions": 4})
    terms = [{"term": "gyro"}, {"term": "last_action"}]
    block = {"history": 3, "layout": "per frame", "order": "newest first", "terms": terms}
    d = {"schema": "humanoid_policy/1", "network": "p.onnx", "rate": 50, "joints": list(JOINTS), "default": 0.0}
    d |= {"action": {"scale": 0.25}, "gains": {"kp": 40, "kd": 2}, "inputs": {"obs": [block]}}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(d))
    tables, _ = parts(tmp_path / "p.yaml")
    assert [row[0] for row in tables["input obs"].rows] == ["0:3 + 7 k", "3:7 + 7 k"]
    assert tables["input obs"].rows[0][4] == "3 frames per frame, newest first"


def test_columns_that_say_nothing_are_left_out(model_file):
    """A page is as wide as a terminal: one input needs no column of its name, and no history none of histories."""
    tables, _ = parts(model_file("policies/holosoma/ppo_g1_29dof.onnx"))
    assert list(tables["input actor_obs"].columns) == ["slice", "term", "is", "scale"]
    tables, _ = parts(model_file("policies/agile_leapp/unitree_g1_velocity_e2e.yaml"))
    assert tables["inputs"].columns[0] == "input" and "without a history" in tables["inputs"].title


def test_gains_out_of_the_network_are_on_the_page(model_file):
    tables, _ = parts(model_file("policies/agile_leapp/unitree_g1_velocity_e2e.yaml"))
    joints = {row[1]: row for row in tables["joints"].rows}
    assert joints["left_knee_joint"][4:7] == ("", "200", "5") and joints["left_elbow_joint"][3] == ""
    assert "the last last_actions_out, at first 0" in [row[3] for row in tables["inputs"].rows]


def test_json_holds_what_the_page_holds(tmp_path, capsys):
    path = beyondmimic_network(tmp_path / "p.onnx")
    assert main(["policy", str(path), "--json"]) == 0
    d = json.loads(capsys.readouterr().out)
    data = policy_data(examine(*read_policy(path)))
    assert d["joints"] == list(data["joints"]) and d["kp"] == [40.0] * 4 and d["rate"] == 50
    assert d["inputs"][0]["blocks"][0]["terms"][0]["name"] == "command"
    assert np.allclose(d["torques_at_rest"], data["torques_at_rest"])
    assert d["contradictions"] == [] and {"what", "value", "known_by"} == set(d["assumed"][0])
