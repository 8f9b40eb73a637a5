"""Bad and hostile policy files: each is one line that says what, where and what to do; nothing of them runs."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from humanoid_control.cli.main import main
from humanoid_control.errors import HumanoidError, PolicyError
from humanoid_control.policy import examine, read_policy
from humanoid_control.policy.checks import NOTE
from humanoid_control.policy.network import read_network, try_network
from test.policy.networks import JOINTS, beyondmimic_metadata, beyondmimic_network, deploy_yaml, linear_network


def told(path, robot=None):
    """All lines about a policy: the refusal, or what contradicts."""
    try:
        found = examine(*read_policy(path), robot)
    except HumanoidError as e:
        lines = [str(e)]
    else:
        lines = found.contradictions
    assert all(line.isprintable() and len(line) <= 1100 for line in lines)
    return "\n".join(lines)


def saved(path, nodes, store=(), inputs=21, opsets=(("", 17),)):
    """A network of one input and one output out of these nodes."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, inputs])],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, 4])],
        list(store),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=9)
    onnx.save(model, str(path))
    return path


# -------- Metadata

METADATA = [
    ({"joint_stiffness": "1,1,1,1"}, "every kp is 1 N m/rad: a placeholder"),
    ({"joint_damping": "-0.0,-0.0,-0.0,-0.0"}, "kd of left_hip_pitch_joint is -0 N m s/rad: gains must be positive"),
    ({"joint_stiffness": "40,-40,40,40"}, "kp of left_knee_joint is -40"),
    ({"joint_stiffness": "40,40,0,40"}, "kp of right_hip_pitch_joint is 0"),
    ({"joint_stiffness": "40,40,90000,40"}, "kp of right_hip_pitch_joint is 90000 N m/rad: implausible for a drive"),
    ({"joint_damping": "0,0,0,0"}, "every kd is 0: nothing damps the joints"),
    ({"joint_stiffness": "40,40,40"}, "'joint_stiffness' must be 4 numbers, got 3"),
    ({"joint_stiffness": "40,40,nan,40"}, "'joint_stiffness' must be finite numbers"),
    ({"action_scale": "half,1,1,1"}, "'action_scale' must be numbers, got half"),
    ({"joint_names": "a,b,a,c"}, "'joint_names' has 'a' twice"),
    ({"joint_names": ""}, "'joint_names' must be a list of 1 to 200 names"),
    ({"observation_names": "command,joint_pos,joint_vel,actoins", "observation_history_lengths": "1,1,1,1"}, "actions"),
    ({"observation_history_lengths": "1,1,1,1,1,1,1,900"}, "must be 0 to 200 frames"),
    ({"observation_history_lengths": "1,2,3"}, "'observation_history_lengths' must be 8 numbers, got 3"),
    ({"anchor_body_name": "chest"}, "the anchor 'chest' is not one of 'body_names'"),
    ({"default_joint_pos": "-"}, "its metadata has no 'default_joint_pos'"),
    ({"observation_names": "height_scan,joint_pos,joint_vel,actions", "observation_history_lengths": "1,1,1,1"},
     "height_scan' is required, but no sensor measures the terrain"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "says"), METADATA, ids=[k for _, k in METADATA])
def test_wrong_metadata_is_named(tmp_path, changed, says):
    assert says in told(beyondmimic_network(tmp_path / "p.onnx", **changed))


def test_the_unchanged_file_has_no_contradiction(tmp_path):
    assert told(beyondmimic_network(tmp_path / "p.onnx")) == ""


def test_sums_that_do_not_fit_the_network_are_named_with_the_terms(tmp_path):
    text = told(beyondmimic_network(tmp_path / "p.onnx", width=34))
    assert "takes 34 numbers, but its terms have 35 (command 8, motion_anchor_pos_b 3" in text


def test_outputs_for_other_joints_are_named(tmp_path):
    sizes = {"actions": 5, "joint_pos": 4, "joint_vel": 4, "body_pos_w": 6, "body_quat_w": 8}
    path = linear_network(tmp_path / "p.onnx", {"obs": 35, "time_step": 1}, sizes, beyondmimic_metadata())
    assert "the output 'actions' has 5 numbers for 4 joints" in told(path)


def test_weights_that_are_not_numbers_are_named(tmp_path):
    W = np.zeros((4, 21))
    W[1, 3] = np.nan
    changed = {"observation_names": "base_ang_vel,projected_gravity,command,joint_pos,joint_vel,actions"}
    said = beyondmimic_metadata(observation_history_lengths="-", **changed)
    assert "non-numeric weights: W" in told(
        linear_network(tmp_path / "p.onnx", {"obs": 21}, {"actions": 4}, said, weights=W)
    )


def test_a_first_step_that_asks_for_more_than_the_torque_limits_is_named(g1, tmp_path):
    joints = tuple(j for j in g1.joint_names if "hip" in j or "knee" in j)
    n = len(joints)
    changed = {"observation_names": "base_ang_vel,projected_gravity,command,joint_pos,joint_vel,actions"}
    changed["default_joint_pos"] = ",".join(["0.0"] * n)
    said = beyondmimic_metadata(joints, observation_history_lengths="-", **changed)
    path = linear_network(tmp_path / "p.onnx", {"obs": 9 + 3 * n}, {"actions": n}, said, bias=np.full(n, 12.0))
    text = told(path, g1)
    assert "at rest it exceeds the torque limits of 8 joints" in text and "240 of 88" in text
    assert told(path) == ""  # its own torque limits are not known


def test_another_robot_is_named(g1, tmp_path):
    joints = tuple(j.replace("hip_pitch_joint", "hip_pich_joint") for j in JOINTS)
    text = told(beyondmimic_network(tmp_path / "p.onnx", joints), g1)
    assert "2 of its 4 joints are not joints of g1, which has 29: left_hip_pich_joint" in text
    assert "did you mean left_hip_pitch_joint?" in text


def test_joints_in_another_order_are_seen_in_the_rest_posture(g1, tmp_path):
    """Names of a knee and an ankle exchanged: the ankle cannot bend as far as the knee rests."""
    joints = ("left_hip_pitch_joint", "left_ankle_roll_joint", "right_hip_pitch_joint", "right_knee_joint")
    text = told(beyondmimic_network(tmp_path / "p.onnx", joints), g1)
    assert "the rest posture of left_ankle_roll_joint, 0.6 rad, is outside its range -0.262 to 0.262" in text


def noted(path, robot=None):
    """All notes about a policy."""
    found = examine(*read_policy(path), robot)
    return "\n".join(f.text for f in found.findings if f.level == NOTE)


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("joint_stiffness", "40,99,40,40", "kp [N m/rad] differs between left and right: left_knee_joint 99, right_k"),
        ("joint_damping", "2,2,3,2", "kd [N m s/rad] differs between left and right: left_hip_pitch_joint 2, right_h"),
        ("action_scale", "0.5,0.25,0.5,0.5", "action scale [rad] differs between left and right: left_knee_joint 0.2"),
        ("default_joint_pos", "-0.3,0.6,-0.3,0.3", "rest posture [rad] differs between left and right: left_knee"),
    ],
    ids=["kp", "kd", "scale", "rest"],
)
def test_sides_that_differ_are_named(tmp_path, key, values, said):
    """Names in another order than the gains show where a left joint has not those of the right one."""
    assert said in noted(beyondmimic_network(tmp_path / "p.onnx", **{key: values}))
    assert "differs between left and right" not in noted(beyondmimic_network(tmp_path / "p.onnx"))


def test_a_rest_posture_that_is_none_to_stand_in_is_named(g1, tmp_path):
    """Soles are level where hip and knee cancel each other; at one height where both legs are bent alike."""
    rest = "default_joint_pos"
    assert "in its rest posture" not in noted(
        beyondmimic_network(tmp_path / "p.onnx", **{rest: "-0.3,0.3,-0.3,0.3"}), g1
    )
    tilted = noted(beyondmimic_network(tmp_path / "p.onnx", **{rest: "-0.3,0.6,-0.3,0.6"}), g1)
    assert "in its rest posture the sole of l_foot is tilted by 0.30 rad" in tilted
    raised = noted(beyondmimic_network(tmp_path / "p.onnx", **{rest: "-0.3,0.3,-0.8,0.9"}), g1)
    assert "in its rest posture one sole is" in raised


def test_an_anchor_that_the_robot_has_not_is_named(g1, tmp_path):
    path = beyondmimic_network(tmp_path / "p.onnx", anchor_body_name="torso_lnk", body_names="pelvis,torso_lnk")
    assert "g1 has no link 'torso_lnk': did you mean torso_link?" in told(path, g1)


def test_rotations_of_a_motion_must_be_unit_quaternions(tmp_path):
    sizes = {"actions": 4, "joint_pos": 4, "joint_vel": 4, "body_pos_w": 6, "body_quat_w": 8}
    path = linear_network(tmp_path / "p.onnx", {"obs": 35, "time_step": 1}, sizes, beyondmimic_metadata())
    assert "the output 'body_quat_w' does not contain unit quaternions" in told(path)


# -------- YAML

DEPLOY = [
    ({"joint_ids_map": [0, 0, *range(2, 29)]}, "'joint_ids_map' must hold each of 0 to 28 once"),
    ({"joint_ids_map": "all"}, "'joint_ids_map' must be a list of motors, got all"),
    ({"step_dt": 0}, "'step_dt' must be a period of 0.001 to 2 s, got 0"),
    ({"step_dt": "soon"}, "'step_dt' must be a number, got soon"),
    ({"stiffness": [1.0] * 29}, "every kp is 1 N m/rad"),
    ({"stiffness": [40.0] * 28}, "'stiffness' must be 29 numbers, got 28"),
    ({"damping": {"a": 1}}, "'damping' must be 29 numbers, got {'a': 1}"),
    ({"default_joint_pos": [float("inf")] * 29}, "'default_joint_pos' must be finite numbers"),
    ({"commands": {"base_velocity": {"ranges": {"lin_vel_x": [1.0, -1.0]}}}}, "a range [low, high], got [1.0, -1.0]"),
    ({"actions": {"JointVelocityAction": {}}}, "actions must be one JointPositionAction, got JointVelocityAction"),
    ({"observations": {"base_ang_vel": {"history_length": -1}}}, "'history_length' must be 0 to 200 frames, got -1"),
    ({"observations": {"base_ang_vle": {}}}, "'base_ang_vle' is not supported: did you mean base_ang_vel"),
    ({"observations": {"base_ang_vel": {"scale": [1, 2]}}}, "'scale' must be 3 numbers, got 2"),
    ({"observations": [1, 2]}, "observations: must be a mapping, got [1, 2]"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "says"), DEPLOY, ids=[k for _, k in DEPLOY])
def test_wrong_values_of_a_deploy_file_are_named(tmp_path, changed, says):
    linear_network(tmp_path / "policy.onnx", {"obs": 96}, {"actions": 29})
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(deploy_yaml(**changed)))
    assert says in told(tmp_path / "deploy.yaml")


def test_the_unchanged_deploy_file_has_no_contradiction(tmp_path):
    linear_network(tmp_path / "policy.onnx", {"obs": 96}, {"actions": 29})
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(deploy_yaml()))
    assert told(tmp_path / "deploy.yaml") == ""


def test_a_rate_and_a_command_that_make_one_look_are_notes(tmp_path):
    linear_network(tmp_path / "policy.onnx", {"obs": 96}, {"actions": 29})
    ranges = {"base_velocity": {"ranges": {"lin_vel_x": [0.5, 1.0]}}}
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(deploy_yaml(step_dt=0.0333, commands=ranges)))
    found = examine(*read_policy(tmp_path / "deploy.yaml"))
    notes = [f.text for f in found.findings]
    assert found.contradictions == [] and len(notes) == 2
    assert "does not divide that of the drives" in notes[0] and "does not contain 0" in notes[1]


LEAPP_CHANGES = [
    ("sha256sum: 8995f2", "sha256sum: 8995f3", "sha256sum does not match"),
    ("model_path: unitree_g1", "model_path: ../unitree_g1", "is outside its folder: rejected"),
    ("model_path: unitree_g1_velocity_e2e.onnx", "model_path: /etc/passwd", "is outside its folder: rejected"),
    ("[[pelvis], [w, x, y, z]]", "[[pelvis], [w, z, y, x]]", "a rotation must be a quaternion"),
    ("[lin_x, lin_y, ang_z]", "[lin_x, ang_z, lin_y]", "a velocity command of lin_x, ang_z, lin_y is not supported"),
    ("kind: state/joint/position", "kind: state/joint/torque", "the kind 'state/joint/torque' of the input"),
    ("kind: velocity_command", "kind: gamepad", "the kind 'gamepad' of the input 'velocity_commands' is not supported"),
    ("kind: kp", "kind: stiffness", "no output of the kind 'kp'"),
    ("name: last_actions_out", "name: last_actions_back", "there is no output 'last_actions_out' of its shape"),
    ("shape: [1, 14]", "shape: [1, 15]", "14 names for 15 numbers"),
    ("shape: [1, 5, 14]", "shape: [1, 14, 5]", "but the network has the shape [1, 5, 14]"),
    ("dt: 0.02\n", "dt: -0.02\n", "must be a period"),
]


@pytest.mark.parametrize(("old", "new", "says"), LEAPP_CHANGES, ids=[k for _, _, k in LEAPP_CHANGES])
def test_wrong_values_of_a_leapp_file_are_named(model_file, tmp_path, old, new, says):
    source = model_file("policies/agile_leapp/unitree_g1_velocity_e2e.yaml")
    text = source.read_text()
    assert old in text
    (tmp_path / source.name).write_text(text.replace(old, new))
    (tmp_path / "unitree_g1_velocity_e2e.onnx").symlink_to(source.with_suffix(".onnx"))
    if "outside" not in says:  # a link leads out of the folder: the network itself must lie there
        (tmp_path / "unitree_g1_velocity_e2e.onnx").unlink()
        (tmp_path / "unitree_g1_velocity_e2e.onnx").write_bytes(source.with_suffix(".onnx").read_bytes())
    assert says in told(tmp_path / source.name)


HOSTILE = [
    ("a: !!python/object/apply:os.system ['touch /tmp/never']", "not a known kind of policy"),
    ("a: &a [x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
     "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\n"
     "f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]\ng: [*f, *f, *f, *f, *f, *f]", "contains more than"),
    ("a: " + "[" * 200 + "]" * 200, "nested more than"),
    ("a: &a [*a]", "refers to itself"),
    ("- 1\n- 2", "must contain keys with values"),
    ("a: 1\na: 2", "appears twice"),
    ("\x00", "not a readable YAML file"),
    ("schema: humanoid_policy/9", "the schema 'humanoid_policy/9' is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), HOSTILE, ids=[k for _, k in HOSTILE])
def test_hostile_yaml_is_one_line(tmp_path, text, says):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    begin = time.process_time()  # its own: this process may have to wait for a processor
    assert says in told(path) and time.process_time() - begin < 2.0
    assert not Path("/tmp/never").exists()


# -------- Networks


def test_operators_of_other_libraries_and_loops_are_refused(tmp_path):
    own = helper.make_node("Shell", ["obs"], ["actions"], domain="evil.ops")
    path = saved(tmp_path / "a.onnx", [own], opsets=(("", 17), ("evil.ops", 1)))
    assert "'Shell' is of 'evil.ops', a custom library, which is never loaded" in told(path)
    inner = helper.make_graph([helper.make_node("Identity", ["obs"], ["i"])], "i", [], [])
    loop = helper.make_node("Loop", ["", "", "obs"], ["actions"], body=inner)
    assert "contains a 'Loop', which may not terminate" in told(saved(tmp_path / "b.onnx", [loop]))


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("../secret", "outside its folder: rejected"),
        ("/etc/passwd", "outside its folder: rejected"),
        ("", "outside its folder: rejected"),
        ("policy.onnx.data", "is missing: copy it, too"),
        ("short.data", "is shorter than its network requires"),
    ],
)
def test_weights_elsewhere_are_refused(tmp_path, location, says):
    path = linear_network(tmp_path / "p.onnx", {"obs": 21}, {"actions": 4})
    (tmp_path / "short.data").write_bytes(b"123")
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "336")):
        tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    assert says in told(path)


def test_weights_beside_the_file_are_read_and_checked(tmp_path):
    path = linear_network(tmp_path / "p.onnx", {"obs": 96}, {"actions": 29}, bias=np.full(29, np.nan))
    onnx.save(onnx.load(path), str(path), save_as_external_data=True, location="p.onnx.data", size_threshold=0)
    assert (tmp_path / "p.onnx.data").is_file()
    assert read_network(path).bad_weights == ("b",)


def test_what_the_runtime_cannot_bear_is_one_line(tmp_path):
    """A network that asks for a terabyte; an operator that nobody has; a wrong shape."""
    many = numpy_helper.from_array(np.array([1_000_000, 1_000_000], np.int64), "many")
    nodes = [helper.make_node("ConstantOfShape", ["many"], ["x"]), helper.make_node("ReduceMax", ["x"], ["actions"])]
    path = saved(tmp_path / "a.onnx", nodes, [many])
    begin = time.monotonic()
    with pytest.raises(PolicyError, match=r"a\.onnx: the runtime (rejects|crashed)"):
        try_network(path, {"obs": np.zeros((1, 21))})
    assert time.monotonic() - begin < 100.0
    with pytest.raises(PolicyError, match=r"b\.onnx: the runtime rejects it"):
        try_network(
            saved(tmp_path / "b.onnx", [helper.make_node("Nope", ["obs"], ["actions"])]), {"obs": np.zeros((1, 21))}
        )
    with pytest.raises(PolicyError, match=r"c\.onnx: the runtime rejects it"):
        c = linear_network(tmp_path / "c.onnx", {"obs": 21}, {"actions": 4})
        try_network(c, {"obs": np.zeros((1, 22))})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an ONNX file"),
        (b"hello", "not an ONNX file"),
        (b"\x80\x04\x95", "a pickle, which is code"),
        (b"PK\x03\x04", "a pickle, which is code"),
        (b"\x08\x09", "not an ONNX file: contains no network"),
    ],
)
def test_other_files_are_named(tmp_path, content, says):
    (tmp_path / "p.onnx").write_bytes(content)
    assert says in told(tmp_path / "p.onnx")


def test_files_that_are_not_there_or_too_large_are_named(tmp_path):
    assert "file not found" in told(tmp_path / "p.onnx")
    assert "cannot be read" in told(tmp_path / ("x" * 5000))
    assert "is a folder with neither an ONNX file" in told(tmp_path)
    with open(tmp_path / "p.onnx", "wb") as file:
        file.truncate(65_000_000)
    assert "larger than 64 MB: not a policy's network" in told(tmp_path / "p.onnx")


def test_a_negative_size_is_no_size(tmp_path):
    onnx = pytest.importorskip("onnx")
    path = linear_network(tmp_path / "p.onnx", {"obs": 35}, {"actions": 4})
    model = onnx.load(str(path))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -35
    onnx.save(model, str(path))
    assert "'obs' has the shape [1, -35]: not a policy's" in told(path)


def test_mutated_networks_are_refused_in_one_line_or_read(tmp_path):
    """Bytes of a network changed, cut, repeated: what reads it raises nothing else, in little time."""
    source = beyondmimic_network(tmp_path / "good.onnx")
    good, rng, path = source.read_bytes(), np.random.default_rng(5), tmp_path / "p.onnx"
    counts = [0, 0]
    begin = time.process_time()
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(int(rng.integers(1, 6))):
            at = int(rng.integers(len(data)))
            kind = rng.integers(4)
            if kind == 0:
                data[at] = int(rng.integers(256))
            elif kind == 1:
                del data[at : at + int(rng.integers(1, 50))]
            elif kind == 2:
                data[at:at] = data[at : at + int(rng.integers(1, 50))]
            else:
                data[at : at + 4] = b"\xff\xff\xff\x7f"
        path.write_bytes(bytes(data))
        try:
            read_policy(path)
        except PolicyError as e:
            assert str(path) in str(e) and str(e).isprintable()
            counts[1] += 1
        else:
            counts[0] += 1
    assert min(counts) > 100 and time.process_time() - begin < 60.0


# -------- The command


def test_the_command_ends_with_the_line_and_its_code(tmp_path, capsys):
    assert main(["policy", str(tmp_path / "p.onnx")]) == 2
    assert capsys.readouterr().err == f"humanoid policy: {tmp_path}/p.onnx: file not found\n"
    path = beyondmimic_network(tmp_path / "p.onnx", joint_stiffness="1,1,1,1")
    assert main(["policy", str(path)]) == 2
    assert "contradictions: 1; this policy cannot run" in capsys.readouterr().out
    assert main(["policy", str(beyondmimic_network(tmp_path / "q.onnx"))]) == 0
    assert "no contradictions" in capsys.readouterr().out


def test_gains_of_a_network_that_are_placeholders_are_named(model_file):
    """Gains out of an output are those of its first inference."""
    model, network = read_policy(model_file("policies/agile_leapp/unitree_g1_velocity_e2e.yaml"))
    found = examine(model, network)
    assert found.contradictions == [] and found.kp[8] == 200.0 and found.kd[0] == 2.5
    swapped = [replace(o, kind={"kp": "kd", "kd": "kp"}.get(o.kind, o.kind)) for o in model.outputs]
    assert examine(replace(model, outputs=tuple(swapped)), network).kp[0] == 2.5
