"""YAML files of makers, read unedited: beside descriptions written by hand, and with mistakes."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("onnx")

from pathlib import Path

from humanoid_control.errors import HumanoidError
from humanoid_control.policy import RobotState, examine, load_policy, read_policy
from test.policy.networks import asap_folder, linear_network, maker_file, maker_yaml

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
    for maker in ("berkeley", "booster", "falcon", "gym"):
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
    ("booster", {"common": {"dt": 0.002}}, "'default_qpos' must be 23 numbers"),
    ("booster", {"policy": {"policy_path": "p.pt", "num_actions": 24, "normalization": {}, "control": {}}}, "got 24"),
    ("booster", {"policy": 3}, "policy"),
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


def test_booster_gyms_walking_observes_its_legs_and_a_gait_that_is_silent_at_rest(tmp_path):
    """Sizes, order and scales of `deploy/utils/policy.py`; the last action is observed as it was clipped."""
    model, _ = read_policy(maker_file(tmp_path, "booster"))
    words = ["projected_gravity", "base_ang_vel", "velocity_command", "cos_phase", "sin_phase", "joint_pos_rel"]
    assert [t.kind for t in model.terms] == [*words, "joint_vel", "last_action"]
    terms = {t.kind: t for t in model.terms}
    assert terms["velocity_command"].scale == (2.0, 2.0, 0.5) and terms["last_action"].clip == (-1.0, 1.0)
    assert model.acted[0] == "Left_Hip_Pitch" and model.acted == terms["joint_vel"].joints == model.joints[11:]
    assert model.offset[0] == pytest.approx(0.11) and model.kp[0] == 31 and model.held_gains[0, 10] == 30
    assert model.period == pytest.approx(0.02) and model.gait == (0.8, (0.0,), "silent")


# -------- ASAP: one file, many networks


def test_a_motion_of_asap_is_described_by_the_file_above_it(tmp_path):
    """Terms sorted by name, past frames of all at the place of 'history', as its player concatenates them."""
    folder = asap_folder(tmp_path)
    found = examine(*read_policy(folder / "models" / "mimic" / "kick" / "model.onnx"))
    model = found.model
    assert found.contradictions == [] and model.path == folder / "config" / "g1.yaml"
    now, past, after = model.inputs[0].blocks
    assert [t.name for t in now.terms] == ["actions", "base_ang_vel", "dof_pos", "dof_vel"]
    assert [t.name for t in past.terms] == [*(t.name for t in now.terms), *(t.name for t in after.terms)]
    assert [t.name for t in after.terms] == ["projected_gravity", "ref_motion_phase"]
    assert (
        past.delayed and past.order == "newest first" and past.fill == "zero" and {t.history for t in past.terms} == {2}
    )
    assert len(model.acted) == 23 and model.acted == model.joints and model.joints[18] == "left_elbow_joint"
    assert model.joints[19] == "right_shoulder_pitch_joint" and model.default[19] == pytest.approx(0.22)
    assert model.kp[19] == 42 and list(model.target_clip[:, 0]) == [-1.0, 2.0]
    assert model.motion_length == 4.0 and model.start[12] == pytest.approx(0.12 + 0.1) and model.start[0] == 0.0


def test_asaps_walking_is_read_with_and_without_a_commanded_height(tmp_path):
    folder = asap_folder(tmp_path)
    flat, high = (read_policy(folder / "models" / "walk" / name / "model.onnx")[0] for name in "ab")
    for model in (flat, high):
        assert examine(*read_policy(model.path, model.network)).contradictions == []
        assert len(model.acted) == 12 and len(model.joints) == 29 and model.gait.period == 0.9
        assert model.held[12] == pytest.approx(0.12 + 0.2) and model.held_gains[0, 28] == 48
        target = next(t for t in model.terms if t.kind == "joint_target")
        assert target.joints == model.joints[12:]
    assert "command_base_height" not in {t.name for t in flat.terms} and "command_base_height" in {
        t.name for t in high.terms
    }
    assert high.height_command == 0.78


def test_a_motions_progress_is_observed_and_its_last_moment_held(g1, tmp_path):
    folder = asap_folder(tmp_path, motion_length_s={"kick": 0.1})
    robot = g1
    policy = load_policy(folder / "models" / "mimic" / "kick" / "model.onnx", robot)
    place = [t.name for t in policy.observed_terms].index("ref_motion_phase")
    k = sum(t.size for t in policy.observed_terms[:place])
    seen = []
    for _ in range(8):
        q = policy.start_posture
        policy.step(RobotState(q, 0 * q, np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3)))
        seen.append(policy.terms[k])
    assert seen == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0])
    assert policy.start_posture[robot.index["waist_yaw_joint"]] == pytest.approx(0.22)


def test_joints_that_asaps_walking_does_not_drive_are_held_by_its_gains(g1, tmp_path):
    robot = g1
    policy = load_policy(asap_folder(tmp_path) / "models" / "walk" / "b" / "model.onnx", robot)
    q = policy.start_posture
    out = policy.step(RobotState(q, 0 * q, np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3)))
    waist = robot.index["waist_yaw_joint"]
    assert out.kp[waist] == 32 and out.kd[waist] == 2 and out.q[waist] == pytest.approx(0.32)


ASAP_BAD = [
    ({"NUM_JOINTS": 30}, "no known robot has 30 joints"),
    ({"robot_dofs": {"small": [0] * 29}}, "'small' has no joint"),
    ({"mimic_robot_types": {"kick": "smal"}}, "smal"),
    ({"motion_length_s": {"kick": 0}}, "'kick' must be above 0"),
    ({"start_upper_dof_pos": {"kick": [0.1] * 16}}, "must be 17 numbers"),
    ({"history_mimic_config": {"camera": 2}}, "'camera' is not supported"),
    ({"history_mimic_config": {"actions": -2}}, "'actions'"),
    ({"JOINT_KP": [1, 2]}, "'JOINT_KP' must be 29 numbers"),
]


@pytest.mark.parametrize(("changed", "words"), ASAP_BAD, ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_a_mistake_in_asaps_file_is_one_line(tmp_path, changed, words):
    text = told(asap_folder(tmp_path, **changed) / "models" / "mimic" / "kick" / "model.onnx")
    assert words in text and "g1.yaml" in text


def test_a_broken_file_in_a_folder_config_above_is_no_business_of_a_network(tmp_path):
    folder = asap_folder(tmp_path)
    (folder / "config" / "a_broken.yaml").write_text("{[")
    model, _ = read_policy(folder / "models" / "walk" / "a" / "model.onnx")
    assert model.path.name == "g1.yaml"
    (folder / "config" / "g1.yaml").unlink()
    text = told(folder / "models" / "walk" / "a" / "model.onnx")
    assert "describes its inputs" in text and "a_broken.yaml" not in text


def test_asaps_file_alone_asks_for_a_network(tmp_path):
    assert "name the network of one by --network" in told(asap_folder(tmp_path) / "config" / "g1.yaml")
