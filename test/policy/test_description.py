"""Our own description of policies: those of public networks, mistakes in it, and its draft."""

from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("onnx")

from humanoid_control.cli.main import main
from humanoid_control.errors import PolicyError
from humanoid_control.policy import draft_description, examine, read_network, read_policy
from humanoid_control.policy.model import FILL_ZERO, PER_FRAME
from test.policy.networks import JOINTS, beyondmimic_network, linear_network

HERE = Path(__file__).parent / "descriptions"
TWIST2 = Path(__file__).parents[2] / "config" / "policies" / "twist2.yaml"
DESCRIBED = {
    TWIST2: ("twist2/twist2_1017_20k.onnx", 29, 29),
    HERE / "mujoco_playground.yaml": ("mujoco_playground/g1_policy.onnx", 29, 29),
    HERE / "falcon.yaml": ("falcon/dec_loco_g1_29dof.onnx", 29, 15),
    HERE / "berkeley_biped.yaml": ("berkeley_lite/checkpoints/policy_biped_50hz.onnx", 12, 12),
    HERE / "berkeley_humanoid.yaml": ("berkeley_lite/checkpoints/policy_humanoid.onnx", 22, 22),
}
SMALL = {
    "schema": "humanoid_policy/1",
    "network": "p.onnx",
    "rate": 50,
    "joints": list(JOINTS),
    "default": {"left_knee_joint": 0.6, "right_knee_joint": 0.6},
    "action": {"scale": 0.25},
    "gains": {"kp": 40, "kd": [2, 2, 3, 3]},
    "inputs": {"obs": [{"term": "gyro"}, {"term": "joint_pos_rel"}, {"term": "last_action"}]},
}


def small(folder, **changed):
    """Path of a small description beside its network."""
    linear_network(folder / "p.onnx", {"obs": 11}, {"actions": 4})
    path = folder / "p.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in {**SMALL, **changed}.items() if v is not None}))
    return path


@pytest.mark.parametrize("path", DESCRIBED, ids=lambda p: p.stem)
def test_public_networks_without_words_are_described(model_file, path):
    network, joints, acted = DESCRIBED[path]
    found = examine(*read_policy(path, model_file(f"policies/{network}")))
    assert found.contradictions == [] and (len(found.model.joints), len(found.model.acted)) == (joints, acted)
    assert found.model.inputs[0].size == sum(b.size for b in found.model.inputs[0].blocks)


def test_values_of_descriptions_are_those_of_the_makers_files(model_file):
    d = yaml.safe_load(model_file("policies/falcon/g1_29dof.yaml").read_text())
    model, _ = read_policy(HERE / "falcon.yaml", model_file("policies/falcon/dec_loco_g1_29dof.onnx"))
    assert np.array_equal(model.kp, d["JOINT_KP"][:15]) and np.array_equal(model.kd, d["JOINT_KD"][:15])
    assert np.array_equal(model.default, d["DEFAULT_DOF_ANGLES"]) and model.gait.period == d["GAIT_PERIOD"]
    sizes = {t.name: t.size for t in model.terms}
    expected = {n: d["obs_dims"][n] for n in d["obs_dict"]["actor_obs"]}
    renamed = {"command_stand": 1, "last_action": 15}
    assert {k: v for k, v in sizes.items() if k not in renamed} == {
        k: v for k, v in expected.items() if k not in renamed
    }
    assert [t.name for t in model.terms] == sorted(sizes)
    for name in ("policy_humanoid", "policy_biped_50hz"):
        d = yaml.safe_load(model_file(f"policies/berkeley_lite/configs/{name}.yaml").read_text())
        path = HERE / f"berkeley_{'humanoid' if 'humanoid' in name else 'biped'}.yaml"
        model, _ = read_policy(path, model_file(f"policies/berkeley_lite/checkpoints/{name}.onnx"))
        assert list(model.joints) == d["joints"] and np.array_equal(model.kp, d["joint_kp"])
        assert np.array_equal(model.kd, d["joint_kd"]) and np.array_equal(model.torque_limit, d["effort_limits"])
        assert np.array_equal(model.default, d["default_joint_positions"]) and model.period == d["policy_dt"]
        assert set(model.scale) == {d["action_scale"]}


def test_twist2s_input_is_motion_state_ten_frames_and_the_motion_again(model_file):
    model, _ = read_policy(TWIST2, model_file("policies/twist2/twist2_1017_20k.onnx"))
    sizes = [b.size for b in model.inputs[0].blocks]
    assert sizes == [35 + 92, 1270, 35]
    history = model.inputs[0].blocks[1]
    assert (history.layout, history.delayed, history.fill) == (PER_FRAME, True, FILL_ZERO)
    speeds = next(t for t in model.terms if t.kind == "joint_vel")
    still = [j for j, s in zip(speeds.joints, speeds.scale, strict=True) if s == 0.0]
    assert still == [f"{s}_ankle_{a}_joint" for s in ("left", "right") for a in ("pitch", "roll")]


def test_a_small_description_is_read(tmp_path):
    found = examine(*read_policy(small(tmp_path)))
    model = found.model
    assert found.contradictions == [] and model.period == 0.02
    assert np.array_equal(model.offset, [0, 0.6, 0, 0.6]) and np.array_equal(model.kd, [2, 2, 3, 3])
    assert [t.kind for t in model.terms] == ["base_ang_vel", "joint_pos_rel", "last_action"]


MISTAKES = [
    ({"schema": "humanoid_policy/2"}, "the schema 'humanoid_policy/2' is not supported"),
    ({"rtae": 50}, "unknown key 'rtae': did you mean rate"),
    ({"rate": None}, "'rate' must be a number, got None"),
    ({"rate": -50}, "1 / 'rate' must be a period"),
    ({"network": "../p.onnx"}, "is outside its folder: rejected"),
    ({"network": None}, "'network' must be a text"),
    ({"joints": ["a", "a"]}, "'joints' has 'a' twice"),
    ({"default": {"left_kne_joint": 1}}, "unknown key 'left_kne_joint': did you mean left_knee_joint"),
    ({"default": [0, 0, 0]}, "'default' must be 4 numbers, got 3"),
    ({"action": {"scale": 0.25, "joints": ["left_kne_joint"]}}, "'left_kne_joint': did you mean left_knee_joint"),
    ({"action": {"scale": 0.25, "clip": [1, -1]}}, "'clip' must be a range [low, high]"),
    ({"action": {}}, "'scale' is missing"),
    ({"gains": {"kp": 40}}, "'kd' is missing"),
    ({"gains": {"kp": 40, "kd": 2, "ki": 1}}, "unknown key 'ki'"),
    ({"inputs": {"obs": [{"term": "gyroo"}]}}, "the observation 'gyroo' is not supported: did you mean gyro"),
    ({"inputs": {"obs": [{"term": "gyro", "scael": 1}]}}, "unknown key 'scael': did you mean scale"),
    ({"inputs": {"obs": [{"term": "gyro", "scale": [1, 2]}]}}, "'scale' must be 3 numbers, got 2"),
    ({"inputs": {"obss": []}}, "unknown input 'obss': did you mean obs"),
    ({"inputs": {"obs": [{"term": "gyro"}]}}, "takes 11 numbers, but its terms have 3"),
    ({"inputs": {"obs": [{"terms": [{"term": "gyro"}], "order": "newest"}]}}, "unknown order 'newest'"),
    ({"inputs": {"obs": [{"terms": [{"term": "gyro"}], "history": 1000}]}}, "'history' must be 0 to 200 frames"),
    ({"inputs": {"obs": [{"terms": [{"term": "gyro"}], "delayed": "yes"}]}}, "'delayed' must be true or false"),
    ({"inputs": {"obs": {"feedback": "back", "x": 1}}}, "unknown key 'x'"),
    ({"outputs": {"actions": "torque"}}, "unknown actions 'torque'"),
    ({"outputs": {"action": "action"}}, "unknown output 'action': did you mean actions"),
    ({"gait": {"period": 0.8, "rest": "stand"}}, "unknown rest 'stand'"),
    ({"may_touch": "hands"}, "'may_touch' must be a list of pairs of links"),
    ({"may_touch": [["l_hand", "r_hand", "head"]]}, "'may_touch' must be pairs of links"),
    ({"may_touch": [["l_hand", "l_hand"]]}, "'may_touch' has 'l_hand' twice"),
    ({"inputs": {"obs": [{"term": "sin_phase", "size": 11}]}}, "the term 'sin_phase' needs a gait"),
]


@pytest.mark.parametrize(("changed", "says"), MISTAKES, ids=[k for _, k in MISTAKES])
def test_mistakes_are_named_with_what_was_meant(tmp_path, changed, says):
    path = small(tmp_path, **changed)
    try:
        lines = examine(*read_policy(path)).contradictions
    except PolicyError as e:
        lines = [str(e)]
    assert any(says in line and str(path) in line for line in lines), lines


# -------- The draft


def test_a_draft_asks_for_what_is_missing_and_can_be_completed(tmp_path, capsys):
    linear_network(tmp_path / "p.onnx", {"obs": 21}, {"actions": 4})
    assert main(["policy", "new", str(tmp_path / "p.onnx"), "-o", str(tmp_path / "p.yaml")]) == 0
    assert "questions; keep it next to p.onnx" in capsys.readouterr().err
    text = (tmp_path / "p.yaml").read_text()
    asked = [line for line in text.splitlines() if "# ?" in line]
    for word in ("rate:", "joints:", "default:", "scale:", "gains:", "must be 21 numbers, and are 21"):
        assert any(word in line for line in asked), word
    found = examine(*read_policy(tmp_path / "p.yaml"))  # the usual terms happen to fit
    assert found.contradictions == [] and len(found.model.joints) == 4
    assert main(["policy", "new", str(tmp_path / "p.onnx")]) == 0 and "# ?" in capsys.readouterr().out


def test_a_draft_of_what_is_described_keeps_its_facts(tmp_path):
    path = beyondmimic_network(tmp_path / "dance.onnx")
    model, network = read_policy(path)
    plain = linear_network(tmp_path / "walk.onnx", {"obs": 11}, {"actions": 4})
    (tmp_path / "again.yaml").write_text(draft_description(network, model))
    d = yaml.safe_load((tmp_path / "again.yaml").read_text())
    assert d["joints"] == list(model.joints) and d["gains"]["kp"] == [40.0] * 4
    assert [row["term"] for row in d["inputs"]["obs"]] == [t.kind for t in model.terms]
    assert d["inputs"]["time_step"] == "time_step"
    assert "obs [1, 11]" in draft_description(read_network(plain))


@pytest.mark.parametrize("name", ["mujoco_playground/g1_policy.onnx", "unitree_rl_lab_g1_velocity/params/deploy.yaml"])
def test_drafts_of_public_networks_are_yaml(model_file, name):
    from humanoid_control.policy.formats.reader import refuse_code

    path = model_file(f"policies/{name}")
    try:
        model, network = read_policy(path)
    except PolicyError:
        refuse_code(path)
        model, network = None, read_network(path)
    d = yaml.safe_load(draft_description(network, model))
    assert d["schema"] == "humanoid_policy/1" and set(d["inputs"]) == {i.name for i in network.inputs}
    assert len(d["joints"]) == 29


def test_what_does_not_go_together_is_refused(tmp_path, capsys):
    path = str(small(tmp_path))
    assert main(["policy", path, path]) == 2
    assert "give one file, or 'new' and one file" in capsys.readouterr().err
    assert main(["policy", path, "-o", "x.yaml"]) == 2
    assert "--output applies to the draft" in capsys.readouterr().err
    assert main(["policy", "new", path, "--json"]) == 2
    assert "--json applies to existing policies, not to `new`" in capsys.readouterr().err
    assert main(["policy", str(tmp_path / "p.onnx"), "--network", path]) == 2
    assert main(["policy", path, "--network", str(tmp_path / "p.onnx"), "--json"]) == 0
