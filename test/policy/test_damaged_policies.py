"""Damaged policies of every format: each is read, or rejected in one line, in little time and memory."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

onnx = pytest.importorskip("onnx", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")

from humanoid_control.errors import PolicyError
from test.damaged_contents import damaged_network, damaged_value
from test.good_files.policies import POLICY_KINDS
from test.policy.networks import beyondmimic_network

COMMAND = Path(__file__).resolve().parents[1] / "fuzz_files.py"


def test_damaged_policies_are_read_or_rejected_in_one_line():
    """A short run; `python test/fuzz_files.py -n 100000 --seed 48` with these kinds is the long one."""
    count = 20 * len(POLICY_KINDS)
    kinds = [word for kind in POLICY_KINDS for word in ("--kind", kind)]
    command = [sys.executable, str(COMMAND), "-n", str(count), "--seed", "7", *kinds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0 and f"{count} files, 0 failures" in done.stdout, done.stdout + done.stderr[-2000:]
    read = {m[1].strip(): int(m[2]) for m in re.finditer(r"(?m)^(.+?) loaded +(\d+) ", done.stdout)}
    assert set(read) == set(POLICY_KINDS) and sum(read.values()) > 20, "files that all are rejected try no reader"


def test_a_damaged_network_is_still_one_with_other_words_or_shapes(tmp_path):
    data = beyondmimic_network(tmp_path / "a.onnx").read_bytes()
    words = shapes = 0
    good = onnx.load_model_from_string(data)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = onnx.load_model_from_string(damaged_network(data, rng, lambda text: text[::-1]))
        words += list(found.metadata_props) != list(good.metadata_props)
        shapes += list(found.graph.input) != list(good.graph.input) or list(found.graph.output) != list(
            good.graph.output
        )
    assert words > 30 and shapes > 3
    assert damaged_network(b"no network", np.random.default_rng(0), bytes) == b"no network"


def test_a_damaged_value_leaves_a_document_that_can_be_read():
    text = yaml.safe_dump({"a": {"b": [1, 2], "c": "d"}, "e": 3}).encode()
    seen = {damaged_value(text, np.random.default_rng(seed)) for seed in range(200)}
    assert all(isinstance(yaml.safe_load(one), dict) for one in seen) and len(seen) > 60
    assert damaged_value(b"a: [", np.random.default_rng(0)) == b"a: ["


def test_a_document_of_aliases_is_damaged_in_no_time():
    """Each of its parts is visited once; it has 9^29 of them if aliases are followed."""
    rows = [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 30)]
    text = "\n".join(["a0: &a0 [x]", *rows]).encode()
    assert any(damaged_value(text, np.random.default_rng(seed)) != text for seed in range(5))


# -------- Files that ended in an exception, or took gigabytes

LONG, DEEP, MANY = "x" * 300, "a/" * 3000 + "b", 10**9
WALK = "robot/walk"
VALUES = [
    ("policy berkeley", {("num_actions",): MANY, ("action_indices",): [3]}, "'action_indices' must be at most 100000"),
    ("policy berkeley", {("num_actions",): -1, ("action_indices",): [3]}, "the file states -1"),
    ("policy berkeley", {("action_indices",): [0, 1, 2, 4]}, "'action_indices' must be distinct joints 0 to 3, got"),
    ("policy falcon", {("model_path",): DEEP}, ""),
    ("policy gym", {("policy_path",): DEEP, ("xml_path",): "g1/x"}, ""),
    ("rl_sar", {(WALK, "num_of_dofs"): MANY, (WALK, "joint_names"): None}, "'num_of_dofs' must be 1 to 200, got 10"),
    ("rl_sar", {(WALK, "default_dof_pos"): 0.1, (WALK, "num_of_dofs"): None}, "'num_of_dofs' must be"),
    ("rl_sar", {(WALK, "default_dof_pos"): 0.1}, ""),
    ("rl_sar", {(WALK, "model_name"): LONG}, ""),
    ("rl_sar", {(WALK, "model_name"): DEEP}, ""),
    ("leapp", {("models", "walk", "inputs", 1, "shape"): [9999, 999, 4]}, "'shape' is not a policy's"),
    ("leapp", {("models", "walk", "inputs", 1, "shape"): [9999] * 20}, "'shape' is not a policy's"),
    ("leapp", {("models", "walk", "inputs", 1, "shape"): []}, "'shape' is not a policy's"),
    ("leapp", {("models", "walk", "outputs", 0, "element_names"): [["a", "b", "c", "d"]]}, "targets name joints that"),
    ("deploy", {("actions", "JointPositionAction", "clip"): [None]}, "'clip' must be ranges"),
    ("deploy", {("actions", "JointPositionAction", "clip"): [[-1, 1]] * 28 + [None]}, "'clip' must be ranges"),
    ("description", {("gait", "phases"): []}, "'phases' must be one number a foot"),
    ("description", {("rate",): 16**5000}, "a number of thousands of digits"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changed", "says"), VALUES, ids=[f"{k} {n}" for n, (k, *_) in enumerate(VALUES)])
def test_a_value_that_no_policy_has_is_one_line(kind, changed, says, tmp_path):
    POLICY_KINDS[kind].make(tmp_path)
    path = tmp_path / POLICY_KINDS[kind].asked
    whole = yaml.safe_load(path.read_text())
    for (*keys, last), value in changed.items():
        part = whole
        for key in keys:
            part = part[key]
        part[last] = value if not isinstance(value, int) or value < 10**20 else "LONG"
    path.write_text(yaml.safe_dump(whole).replace("LONG", f"{16**5000:#x}"))
    try:
        POLICY_KINDS[kind].read(path)
    except PolicyError as error:
        assert says in str(error) and str(error).isprintable() and len(str(error)) <= 1100
    else:
        assert not says, "it was taken"


def outside(model):
    """Weights that lie in a file of a name that no system takes."""
    model.graph.initializer[0].data_location = 1
    model.graph.initializer[0].external_data.add(key="location", value=LONG)


def hidden(model):
    """Weights outside the folder that only an attribute names."""
    tensor = onnx.TensorProto(name="t", data_type=1, dims=[1], data_location=1)
    tensor.external_data.add(key="location", value="../../etc/passwd")
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("t", tensor))


def deep(model):
    """A loop within nine graphs within each other."""
    nodes = [onnx.helper.make_node("Loop", ["n"], ["m"])]
    for _ in range(9):
        graph = onnx.helper.make_graph(nodes, "g", [], [])
        nodes = [onnx.helper.make_node("If", ["c"], ["y"], then_branch=graph)]
    model.graph.node.extend(nodes)


def wordless(model):
    """No observation, but a length of its history."""
    said = {p.key: p for p in model.metadata_props}
    said["observation_names"].value, said["observation_history_lengths"].value = "", "1"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (outside, "outside its folder: rejected"),
        (hidden, "outside its folder: rejected"),
        (deep, "nested more than 8 deep"),
        (wordless, ""),
    ],
)
def test_a_network_with_something_hidden_is_one_line(change, says, tmp_path):
    path = beyondmimic_network(tmp_path / "a.onnx")
    model = onnx.load_model_from_string(path.read_bytes())
    change(model)
    path.write_bytes(model.SerializeToString())
    try:
        POLICY_KINDS["policy onnx"].read(path)
    except PolicyError as error:
        assert says in str(error) and str(error).isprintable()
    else:
        assert not says, "it was taken"
