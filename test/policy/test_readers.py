"""Readers of policy files, on the public files themselves: what was read beside what the file says in plain."""

import csv
import hashlib
import json

import numpy as np
import pytest
import yaml

pytest.importorskip("onnx", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")

import onnx

from humanoid_control.errors import PolicyError
from humanoid_control.hardware.unitree.models import G1
from humanoid_control.policy import kind_of, read_policy
from humanoid_control.policy.formats.reader import refuse_code
from humanoid_control.policy.model import ACTION, DAMPING, OLDEST_FIRST, PER_FRAME, PER_TERM, STIFFNESS, TARGET
from test.policy.networks import JOINTS, beyondmimic_metadata, beyondmimic_network, deploy_yaml, linear_network

LAB = "policies/unitree_rl_lab_g1_velocity"
SDK = [f"{m.name}_joint" for m in sorted(G1.motors, key=lambda m: m.id)]


def terms(model):
    return {t.name: t for t in model.terms}


def test_leapp_is_read_by_kinds_and_element_names(model_file):
    path = model_file("policies/agile_leapp/unitree_g1_velocity_e2e.yaml")
    d = yaml.safe_load(path.read_text())["models"]["Velocity-G1-History-v0"]
    model, network = read_policy(path)
    assert model.contradictions == () and model.period == 0.02 and model.imu == "pelvis"
    assert list(model.joints) == d["inputs"][3]["element_names"][0] and len(model.joints) == 29
    assert list(model.acted) == d["outputs"][0]["element_names"][0] and len(model.acted) == 14
    assert terms(model)["root_link_quat_w"].kind == "base_quat_wxyz"
    assert terms(model)["joint_pos"].kind == "joint_pos_abs"
    assert {o.kind for o in model.outputs} >= {TARGET, STIFFNESS, DAMPING}
    fed = {i.name: i.feedback for i in model.inputs if i.feedback}
    assert fed == {r["name"]: f"{r['name']}_out" for r in d["inputs"] if r.get("is_state")} and len(fed) == 7
    assert network.sha256 == hashlib.sha256(path.with_suffix(".onnx").read_bytes()).hexdigest()
    assert [a.what for a in model.assumed] == ["rest posture"]
    assert read_policy(path.with_suffix(".onnx"))[0].joints == model.joints


@pytest.mark.parametrize(("name", "scale"), [("ppo_g1_29dof", 0.25), ("fastsac_g1_29dof_dancing", 1.0)])
def test_holosoma_is_read_with_its_terms_sorted_by_name(model_file, name, scale):
    path = model_file(f"policies/holosoma/{name}.onnx")
    said = {p.key: p.value for p in onnx.load(path).metadata_props}
    model, _ = read_policy(path)
    assert list(model.joints) == json.loads(said["dof_names"]) and model.contradictions == ()
    assert np.array_equal(model.kp, json.loads(said["kp"])) and np.array_equal(model.kd, json.loads(said["kd"]))
    names = [t.name for t in model.terms]
    assert names == sorted(names) and set(model.scale) == {scale}
    assert "action scale" in [a.what for a in model.assumed]
    assert sum(t.size for t in model.terms) == model.inputs[0].size
    if scale == 0.25:
        assert terms(model)["dof_vel"].scale[0] == 0.05 and terms(model)["base_ang_vel"].scale[0] == 0.25
        assert model.commands["x"] == (-1.0, 1.0) and model.gait.period == 1.0
    else:
        assert model.tracks and model.inputs[1].time_step and model.output("reference.anchor_quat_xyzw") is not None


def test_unitrees_file_is_read_in_the_policys_order_and_its_tag_is_data(model_file):
    path = model_file(f"{LAB}/params/deploy.yaml")
    text = path.read_text()
    assert "!!python/object/apply" in text
    d = yaml.load(text.replace("!!python/object/apply:builtins.slice", ""), yaml.SafeLoader)
    model, network = read_policy(path)
    assert [SDK[k] for k in d["joint_ids_map"]] == list(model.joints) and model.contradictions == ()
    for k, joint in enumerate(model.joints):  # gains stand in the SDK's order, the rest posture in the policy's
        assert model.kp[k] == d["stiffness"][SDK.index(joint)] and model.kd[k] == d["damping"][SDK.index(joint)]
        assert model.default[k] == d["default_joint_pos"][k]
    assert [t.name for t in model.terms] == list(d["observations"]) and {t.history for t in model.terms} == {5}
    assert model.inputs[0].blocks[0].layout == PER_TERM and model.inputs[0].blocks[0].order == OLDEST_FIRST
    assert network.inputs[0].size == sum(t.size * t.history for t in model.terms) == 480
    assert model.commands == {"x": (-0.5, 1.0), "y": (-0.3, 0.3), "yaw": (-0.2, 0.2)}
    assert read_policy(path.parents[1])[0].joints == model.joints
    assert read_policy(path.parents[1] / "exported" / "policy.onnx")[0].joints == model.joints


def test_rl_sar_is_explained_although_its_network_is_refused(model_file):
    path = model_file("policies/rl_sar/dance_102/config.yaml")
    d = next(iter(yaml.safe_load(path.read_text()).values()))
    model, network = read_policy(path)
    assert (
        network is None
        and "TorchScript" in model.contradictions[0]
        and "torch.zeros(1, 154)" in model.contradictions[0]
    )
    assert [SDK[k] for k in d["joint_mapping"]] == list(model.joints)
    assert np.array_equal(model.kp, d["rl_kp"]) and np.array_equal(model.scale, d["action_scale"])
    assert sum(t.size for t in model.terms) == d["num_observations"] == 154
    assert {t.clip for t in model.terms} == {(-100.0, 100.0)} and model.facts["motion"].endswith(".csv")


def test_rl_sars_history_is_that_of_its_list(tmp_path):
    d = {
        "model_name": "p.onnx",
        "num_observations": 20,
        "observations": ["ang_vel", "gravity_vec", "commands"],
        "observations_history": [2, 1, 0],
        "observations_history_priority": "time",
        "num_of_dofs": 4,
        "rl_kp": 40.0,
        "rl_kd": 2.0,
        "default_dof_pos": [0, 0, 0, 0],
        "action_scale": 0.25,
        "joint_names": list(JOINTS),
        "commands_scale": [2.0, 2.0, 0.25],
        "ang_vel_scale": 0.5,
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"robot/walk": d}))
    linear_network(tmp_path / "p.onnx", {"obs": 27}, {"actions": 4})
    model, _ = read_policy(tmp_path / "config.yaml")
    block = model.inputs[0].blocks[0]
    assert (block.layout, block.order, block.size) == (PER_FRAME, OLDEST_FIRST, 27)
    assert terms(model)["commands"].scale == (2.0, 2.0, 0.25) and terms(model)["ang_vel"].scale == (0.5,) * 3
    assert "num_observations is 20, but its terms have 9" in model.contradictions[0]


def test_beyondmimic_is_read_from_its_texts(tmp_path):
    path = beyondmimic_network(tmp_path / "dance.onnx", observation_history_lengths="1,1,1,1,1,1,1,1")
    model, _ = read_policy(path)
    assert model.joints == JOINTS and model.contradictions == () and model.anchor == "torso_link"
    assert terms(model)["command"].kind == "reference_motion" and terms(model)["command"].size == 8
    assert [t.size for t in model.terms] == [8, 3, 6, 3, 3, 4, 4, 4]
    assert model.output("reference.body_quat_wxyz").size == 8 and model.output(ACTION).name == "actions"
    assert np.array_equal(model.offset, [-0.3, 0.6, -0.3, 0.6]) and set(model.scale) == {0.5}
    assert {"period", "IMU"} <= {a.what for a in model.assumed}


def test_a_policy_of_mjlab_without_history_lengths_follows_a_velocity(tmp_path):
    changed = {"observation_names": "base_ang_vel,projected_gravity,command,joint_pos,joint_vel,actions"}
    said = beyondmimic_metadata(observation_history_lengths="-", anchor_body_name="-", body_names="-", **changed)
    model, _ = read_policy(linear_network(tmp_path / "walk.onnx", {"obs": 21}, {"actions": 4}, said))
    assert terms(model)["command"].kind == "velocity_command" and model.contradictions == ()
    assert "history" in [a.what for a in model.assumed] and not model.tracks


@pytest.mark.parametrize("name", ["rl_sar/dance_102/policy.pt", "unitree_rl_gym/h1/motion.pt"])
def test_torchscript_is_refused_with_the_command_that_exports_it(model_file, name):
    path = model_file(f"policies/{name}")
    with pytest.raises(PolicyError) as told:
        read_policy(path)
    text = str(told.value)
    assert "never loaded" in text and "torch.onnx.export" in text and text.startswith(str(path)) and "\n" not in text
    assert ("hidden state" in text) == ("motion" in name)


def test_pickles_are_refused_whatever_they_are_called(model_file, tmp_path):
    pickled = model_file("policies/twist2/walk_001.pkl")
    disguised = tmp_path / "policy.onnx"
    disguised.write_bytes(pickled.read_bytes())
    for path in (pickled, disguised):
        with pytest.raises(PolicyError, match="a pickle, which is code"):
            refuse_code(path)


def test_a_network_of_a_policy_that_is_described_here_leads_to_its_description(model_file):
    with pytest.raises(PolicyError, match=r"of twist2.yaml: `humanoid policy .*twist2.yaml --network .*20k.onnx`"):
        read_policy(model_file("policies/twist2/twist2_1017_20k.onnx"))


def test_a_network_without_words_leads_to_the_draft(model_file):
    with pytest.raises(PolicyError, match=r"obs \[1, 103\]\): `humanoid policy new .*g1_policy.onnx` drafts"):
        read_policy(model_file("policies/mujoco_playground/g1_policy.onnx"))


@pytest.mark.parametrize("count", [19, 23, 27, 29])
def test_motors_that_are_counted_get_the_names_of_the_robot_with_as_many(tmp_path, count):
    linear_network(tmp_path / "policy.onnx", {"obs": 9 + 3 * count}, {"actions": count})
    d = deploy_yaml(count)
    d["joint_ids_map"] = d["joint_ids_map"][::-1]
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(d))
    model, _ = read_policy(tmp_path / "deploy.yaml")
    assert model.contradictions == () and len(set(model.joints)) == count
    assert (model.joints[-1] == "left_hip_pitch_joint") == (count in (23, 29))


G1_23_PLACES = [0, 6, 12, 1, 7, 15, 22, 2, 8, 16, 23, 3, 9, 17, 24, 4, 10, 18, 25, 5, 11, 19, 26]


@pytest.mark.parametrize("gains", [23, 27])
def test_places_that_a_g1_of_23_motors_leaves_empty_are_no_joints(tmp_path, gains):
    """Unitree's exporter writes the places of the motors; its gains are one a motor, or one a place with zeros."""
    linear_network(tmp_path / "policy.onnx", {"obs": 9 + 3 * 23}, {"actions": 23})
    d = deploy_yaml(23) | {"joint_ids_map": G1_23_PLACES}
    by_place = {place: 10.0 + place for place in G1_23_PLACES}
    order = sorted(G1_23_PLACES)
    d["stiffness"] = [by_place[p] for p in order] if gains == 23 else [by_place.get(p, 0.0) for p in range(27)]
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(d))
    model, _ = read_policy(tmp_path / "deploy.yaml")
    assert model.contradictions == () and list(model.joints) == [SDK[p] for p in G1_23_PLACES]
    assert model.kp.tolist() == [by_place[p] for p in G1_23_PLACES]


@pytest.mark.parametrize("places", [[0, 0, 2], [0, 1, 40], [-1, 0, 1], [0, 1, "x"], [0, 1, 1e9], [True, 0, 2]])
def test_places_of_no_robots_motors_are_named(tmp_path, places):
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(deploy_yaml(3) | {"joint_ids_map": places}))
    with pytest.raises(PolicyError, match="'joint_ids_map' must hold each of 0 to 2 once, or the motor indices"):
        read_policy(tmp_path / "deploy.yaml")


def rl_sar_block(**changed):
    """Parameters of a policy of rl_sar for four joints."""
    d = {"model_name": "p.onnx", "num_observations": 3, "observations": ["ang_vel"], "num_of_dofs": 4}
    return d | {"rl_kp": 40.0, "rl_kd": 2.0, "default_dof_pos": [0.1, 0.2, 0.3, 0.4], "action_scale": 0.5} | changed


def test_what_rl_sar_says_of_the_robot_is_in_its_folder(tmp_path):
    """Names, in the order that the policy maps; torque limits; the period."""
    folder = tmp_path / "robot" / "gym" / "walk"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({"robot/gym/walk": rl_sar_block(joint_mapping=[2, 3, 0, 1])}))
    linear_network(folder / "p.onnx", {"obs": 3}, {"actions": 4})
    with pytest.raises(PolicyError, match=r"lists no joints, and the folder of its robot has no base.yaml"):
        read_policy(folder / "config.yaml")
    base = {"joint_names": list(JOINTS), "dt": 0.001, "decimation": 10, "torque_limits": [1, 2, 3, 4]}
    (tmp_path / "robot" / "base.yaml").write_text(yaml.safe_dump({"robot": base}))
    model, _ = read_policy(folder)
    assert model.joints == (*JOINTS[2:], *JOINTS[:2]) and model.period == pytest.approx(0.01)
    assert model.torque_limit.tolist() == [1, 2, 3, 4] and "joint names" not in [a.what for a in model.assumed]


@pytest.mark.parametrize("mapping", [[0, 1], [0, 1, 2, 2], "ab"])
def test_a_mapping_of_other_joints_is_named(tmp_path, mapping):
    folder = tmp_path / "robot" / "walk"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({"robot/walk": rl_sar_block(joint_mapping=mapping)}))
    linear_network(folder / "p.onnx", {"obs": 3}, {"actions": 4})
    (tmp_path / "robot" / "base.yaml").write_text(yaml.safe_dump({"robot": {"joint_names": list(JOINTS)}}))
    with pytest.raises(PolicyError, match="'joint_mapping' must hold each of 0 to 3 once"):
        read_policy(folder)


def test_bounds_of_actions_that_differ_are_bounds_of_the_targets(tmp_path):
    block = rl_sar_block(joint_names=list(JOINTS), clip_actions_lower=[-1, -2, -3, -4], clip_actions_upper=1.0)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"robot/walk": block}))
    linear_network(tmp_path / "p.onnx", {"obs": 3}, {"actions": 4})
    model, _ = read_policy(tmp_path)
    assert model.action_clip is None
    assert np.allclose(model.target_clip, [[-0.4, -0.8, -1.2, -1.6], [0.6, 0.7, 0.8, 0.9]])


def test_a_folder_with_a_program_alone_says_the_way_out(model_file):
    with pytest.raises(PolicyError, match=r"motion.pt: a TorchScript program, .* with its hidden state"):
        read_policy(model_file("policies/unitree_rl_gym/h1/motion.pt").parent)


def test_the_rest_posture_of_holosomas_other_robot_is_known():
    from humanoid_control.policy.formats.holosoma import rest_posture

    joints = ("AAHead_yaw", "Left_Shoulder_Roll", "Right_Shoulder_Roll", "Left_Knee_Pitch", "Right_Hip_Pitch")
    rest, robot = rest_posture(joints)
    assert robot == "T1" and rest.tolist() == [0.0, -1.35, 1.35, 0.4, -0.2]
    assert rest_posture(("l_knee", "r_knee"))[1] == ""


def test_the_reference_of_rl_sar_has_as_many_columns_as_the_policy_has_joints(model_file):
    """The motion that config.yaml names: root position, quaternion, joints."""
    path = model_file("policies/rl_sar/dance_102/config.yaml")
    model, _ = read_policy(path)
    with open(path.parent / model.facts["motion"]) as file:
        row = next(csv.reader(file))
    assert len(row) == 7 + len(model.joints)


# -------- What files of other makers have


def test_states_of_recurrent_policies_are_fed_back(tmp_path):
    """The names that exporters of LSTM and GRU policies give to their hidden states."""
    sizes = {"obs": 96, "h_in": 8, "c_in": 8}, {"actions": 29, "h_out": 8, "c_out": 8}
    linear_network(tmp_path / "policy.onnx", *sizes)
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(deploy_yaml()))
    model, _ = read_policy(tmp_path / "deploy.yaml")
    assert model.contradictions == ()
    assert {i.name: i.feedback for i in model.inputs} == {"obs": "", "h_in": "h_out", "c_in": "c_out"}
    assert [o.kind for o in model.outputs] == ["action", "feedback", "feedback"]


def test_further_words_in_metadata_are_no_trouble(tmp_path):
    said = {"dof_names": json.dumps(list(JOINTS)), "kp": "[40, 40, 40, 40]", "kd": "[2, 2, 2, 2]", "run": "of monday"}
    path = linear_network(
        tmp_path / "a.onnx", {"actor_obs": 25}, {"action": 4}, said | {"action_scale": "0.5,0.5,0.5,0.5"}
    )
    model, _ = read_policy(path)
    assert set(model.scale) == {0.5} and "action scale" not in [a.what for a in model.assumed]
    said["kp"] = "forty"
    with pytest.raises(PolicyError, match="'kp' is not JSON: forty"):
        read_policy(linear_network(tmp_path / "b.onnx", {"actor_obs": 25}, {"action": 4}, said))


def test_the_clock_of_unitrees_gait_is_that_of_its_term(tmp_path):
    d = deploy_yaml()
    d["observations"]["gait_phase"] = {"params": {"period": 0.8}, "scale": None, "history_length": 1}
    linear_network(tmp_path / "policy.onnx", {"obs": 98}, {"actions": 29})
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(d, sort_keys=False))
    model, _ = read_policy(tmp_path / "deploy.yaml")
    assert model.contradictions == () and (model.gait.period, model.gait.rest) == (0.8, "running")
    assert list(model.terms)[-1].size == 2


def test_a_tracker_of_unitrees_follows_a_motion_that_is_given(tmp_path):
    d = deploy_yaml()
    names = ("motion_command", "motion_anchor_ori_b", "base_ang_vel", "joint_pos_rel", "joint_vel_rel", "last_action")
    d["observations"] = {n: {"scale": None, "history_length": 1} for n in names}
    linear_network(tmp_path / "policy.onnx", {"obs": 154}, {"actions": 29})
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(d, sort_keys=False))
    model, _ = read_policy(tmp_path / "deploy.yaml")
    assert model.tracks and model.contradictions == () and model.anchor == "torso_link"
    assert [t.size for t in model.terms] == [58, 6, 3, 29, 29, 29]


def test_terms_are_known_with_the_name_of_their_group():
    assert kind_of("policy/base_ang_vel") == "base_ang_vel" and kind_of("obs_joint_vel") == "joint_vel"
    assert kind_of("base_lin_vel_b") == "base_lin_vel" and kind_of("torque") is None
