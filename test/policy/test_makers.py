"""YAML files of makers, read unedited: beside descriptions written by hand, and with mistakes."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("onnx")

from pathlib import Path

from humanoid_control.errors import HumanoidError
from humanoid_control.policy import examine, read_policy
from test.policy.networks import linear_network, maker_file, maker_yaml

HERE = Path(__file__).parent / "descriptions"
BERKELEY = "berkeley_lite"
PUBLIC = {
    "berkeley_lite/configs/policy_biped_50hz.yaml": (
        "berkeley_biped",
        "berkeley_lite/checkpoints/policy_biped_50hz.onnx",
    ),
    "berkeley_lite/configs/policy_humanoid.yaml": (
        "berkeley_humanoid",
        "berkeley_lite/checkpoints/policy_humanoid.onnx",
    ),
    "falcon/g1_29dof.yaml": ("falcon", "falcon/dec_loco_g1_29dof.onnx"),
}


def told(path):
    """All lines about a policy: the refusal, or what contradicts."""
    try:
        return "\n".join(examine(*read_policy(path)).contradictions)
    except HumanoidError as e:
        return str(e)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_makers_own_file_says_what_a_description_by_hand_says(model_file, name):
    described, network = PUBLIC[name]
    mine, found = read_policy(model_file(f"policies/{name}"))
    other, _ = read_policy(HERE / f"{described}.yaml", model_file(f"policies/{network}"))
    assert found is not None and found.path.name == Path(network).name and mine.contradictions == ()
    assert (mine.joints, mine.acted, mine.period) == (other.joints, other.acted, other.period)
    assert [(t.kind, t.size, t.scale, t.joints) for t in mine.terms] == [
        (t.kind, t.size, t.scale, t.joints) for t in other.terms
    ]
    for key in ("default", "scale", "offset", "kp", "kd"):
        assert np.array_equal(getattr(mine, key), getattr(other, key)), key
    assert mine.gait == other.gait and mine.torque_limit is not None


def test_unitree_rl_gyms_torchscript_is_refused_and_its_exported_network_read(model_file, tmp_path):
    """The observation of its player, 41 numbers for an H1; with the network exported beside it, nothing is wrong."""
    path = model_file("policies/unitree_rl_gym/h1/h1.yaml")
    text = told(path)
    assert "TorchScript" in text and "hidden state" in text and "torch.zeros(1, 41)" in text
    network = linear_network(tmp_path / "p.onnx", {"obs": 41}, {"actions": 10})
    found = examine(*read_policy(path, network))
    model = found.model
    assert found.contradictions == [] and model.period == pytest.approx(0.02)
    assert model.joints[:5] == tuple(f"left_{j}_joint" for j in ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle"))
    scales = {t.kind: t.scale for t in model.terms}
    assert scales["velocity_command"] == (2.0, 2.0, 0.25) and set(scales["joint_vel"]) == {0.05}


def test_small_files_of_makers_are_read_with_the_network_of_their_player(tmp_path):
    for maker in ("berkeley", "falcon", "gym"):
        (tmp_path / maker).mkdir()
        found = examine(*read_policy(maker_file(tmp_path / maker, maker)))
        assert found.contradictions == [] and found.network is not None
    assert found.model.commands == {"x": (-0.8, 0.8), "y": (-0.5, 0.5), "yaw": (-1.57, 1.57)}
    placed = maker_yaml("gym", leg_joint2motor_idx=[6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5])
    model, _ = read_policy(maker_file(tmp_path / "gym", "gym", **placed))
    assert model.joints[0] == "right_hip_pitch_joint" and model.joints[6] == "left_hip_pitch_joint"
    moved, _ = read_policy(maker_file(tmp_path / "berkeley", "berkeley", action_indices=[3, 2, 1, 0]))
    assert moved.acted == moved.joints[::-1] and list(moved.offset) == [0.4, -0.2, 0.4, -0.2]


BAD = [
    ("berkeley", {"action_indices": [0, 1, 2, 2]}, "'action_indices' must be distinct joints 0 to 3"),
    ("berkeley", {"num_observations": 22}, "num_observations is 22, but its terms have 21 numbers"),
    ("berkeley", {"history_length": 5}, "'history_length' above 1 is not supported"),
    ("berkeley", {"joint_kd": None}, "'joint_kd' must be 4 numbers, got None"),
    ("berkeley", {"policy_dt": 0}, "'policy_dt' must be a period of"),
    ("berkeley", {"action_limit_lower": 5, "action_limit_upper": -5}, "'action_limit' must be a range"),
    ("berkeley", {"policy_checkpoint_path": ["a"]}, "'policy_checkpoint_path' must be a text"),
    ("berkeley", {"policy_checkpoint_path": "../.."}, "'policy_checkpoint_path' is not a path"),
    ("berkeley", {"policy_checkpoint_path": "../../../etc/passwd"}, "network not found"),
    ("falcon", {"obs_dims": {"actions": 40}}, "'actions' must be 1 to 29, got 40"),
    ("falcon", {"obs_dims": {"actions": 15, "dof_pos": 28}}, "obs_dims of 'dof_pos' is 28, but the term has 29"),
    ("falcon", {"obs_dict": {"actor_obs": ["camera"]}}, "the observation 'camera' is not supported"),
    ("falcon", {"history_length_dict": {"actor_obs": 4}}, "a history above 1 is not supported"),
    ("falcon", {"NUM_JOINTS": 28}, "'dof_names' has 29 names for 28 joints"),
    ("gym", {"policy_path": "go2/motion.pt"}, "its paths name none of g1, h1_2, h1"),
    ("gym", {"leg_joint2motor_idx": [0] * 12}, "the legs must be 12 distinct motors of g1"),
    ("gym", {"num_obs": 48}, "num_obs is 48, but its terms have 47 numbers"),
    ("gym", {"num_actions": -1}, "'num_actions' must be 1 to 64, got -1"),
    ("gym", {"cmd_scale": [1, 2]}, "'cmd_scale' must be 3 numbers, got 2"),
]


@pytest.mark.parametrize(("maker", "changed", "words"), BAD, ids=lambda v: v if isinstance(v, str) else "")
def test_a_mistake_in_a_makers_file_is_one_line(tmp_path, maker, changed, words):
    text = told(maker_file(tmp_path, maker, **changed))
    assert words in text and all(
        (line.isprintable() and "p.yaml" in line) or "passwd" in line for line in text.split("\n")
    )
