"""Learned policies: networks with metadata, YAML files beside networks without; only where onnx is installed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import yaml

from humanoid_control.policy import examine, policy_data, policy_page, read_policy
from test.good_files.kinds import FileKind
from test.policy.networks import JOINTS, asap_folder, beyondmimic_network, deploy_yaml, linear_network, maker_file


def use_policy(path: Path) -> None:
    """Read it, check it and print it; the network itself is run by tests of its own, in a process of its own."""
    model, _ = read_policy(path)
    found = examine(model, None)
    list(policy_page(found))
    policy_data(found)


def _holosoma(folder: Path) -> None:
    said = {"dof_names": list(JOINTS), "kp": [40.0] * 4, "kd": [2.0] * 4, "command_ranges": {"lin_vel_x": [-1, 1]}}
    sizes = {"actor_obs": 25}, {"action": 4}
    linear_network(folder / "a.onnx", *sizes, {k: json.dumps(v) for k, v in said.items()})


def _deploy(folder: Path) -> None:
    linear_network(folder / "policy.onnx", {"obs": 96}, {"actions": 29})
    (folder / "deploy.yaml").write_text(yaml.safe_dump(deploy_yaml()))


def _description(folder: Path) -> None:
    linear_network(folder / "p.onnx", {"obs": 25, "back": 4}, {"actions": 4, "state": 4})
    terms = [{"term": "gyro", "scale": 0.25, "clip": [-5, 5]}, {"term": "joint_pos_rel"}]
    block = {"history": 3, "layout": "per frame", "order": "newest first", "terms": terms}
    d = {
        "schema": "humanoid_policy/1",
        "network": "p.onnx",
        "rate": 50,
        "joints": list(JOINTS),
        "default": {"left_knee_joint": 0.6},
        "action": {"scale": 0.25, "clip": [-10, 10]},
        "gains": {"kp": 40, "kd": [2, 2, 3, 3]},
        "commands": {"x": [-1, 1]},
        "gait": {"period": 0.8, "rest": "zero"},
        "inputs": {"obs": [block, {"term": "last_action"}], "back": {"feedback": "state"}},
        "outputs": {"actions": "action", "state": "feedback"},
    }
    (folder / "p.yaml").write_text(yaml.safe_dump(d))


def _rl_sar(folder: Path) -> None:
    d = {
        "model_name": "p.onnx",
        "num_observations": 10,
        "observations": ["ang_vel", "commands", "dof_pos"],
        "observations_history": [2, 1, 0],
        "observations_history_priority": "time",
        "num_of_dofs": 4,
        "rl_kp": 40.0,
        "rl_kd": 2.0,
        "default_dof_pos": [0, 0, 0, 0],
        "action_scale": 0.25,
        "joint_names": list(JOINTS),
    }
    linear_network(folder / "p.onnx", {"obs": 30}, {"actions": 4})
    (folder / "config.yaml").write_text(yaml.safe_dump({"robot/walk": d}))


def _leapp(folder: Path) -> None:
    named = {"dtype": "float32", "element_names": [list(JOINTS)]}
    rotation = {"kind": "state/body/rotation", "element_names": [["pelvis"], ["w", "x", "y", "z"]]}
    inputs = [
        {"name": "quat", "shape": [1, 4], **rotation},
        {"name": "q", "shape": [1, 4], "kind": "state/joint/position", **named},
        {"name": "back", "shape": [1, 4], "is_state": True},
    ]
    outputs = [
        {"name": "target", "shape": [1, 4], "kind": "target/joint/position", **named},
        {"name": "stiff", "shape": [1, 4], "kind": "kp", **named},
        {"name": "damp", "shape": [1, 4], "kind": "kd", **named},
        {"name": "back_out", "shape": [1, 4], "is_state": True},
    ]
    linear_network(folder / "p.onnx", {i["name"]: 4 for i in inputs}, {o["name"]: 4 for o in outputs})
    model = {"inputs": inputs, "outputs": outputs, "parameters": {"model_path": "p.onnx"}}
    (folder / "p.yaml").write_text(yaml.safe_dump({"models": {"walk": model}, "semantic": {"scene": {"dt": 0.02}}}))


POLICY_KINDS: dict[str, FileKind] = {
    "policy onnx": FileKind(lambda f: beyondmimic_network(f / "a.onnx") and None, ("a.onnx",), "a.onnx", use_policy),
    "policy json": FileKind(_holosoma, ("a.onnx",), "a.onnx", use_policy),
    "deploy": FileKind(_deploy, ("deploy.yaml",), "deploy.yaml", use_policy),
    "rl_sar": FileKind(_rl_sar, ("config.yaml",), "config.yaml", use_policy),
    "leapp": FileKind(_leapp, ("p.yaml",), "p.yaml", use_policy),
    **{
        f"policy {m}": FileKind(lambda f, m=m: maker_file(f, m) and None, ("p.yaml",), "p.yaml", use_policy)
        for m in ("berkeley", "booster", "falcon", "gym")
    },
    "policy asap": FileKind(
        lambda f: asap_folder(f) and None, ("config/g1.yaml",), "models/mimic/kick/model.onnx", use_policy
    ),
    "description": FileKind(_description, ("p.yaml", "p.onnx"), "p.yaml", use_policy),
}
if importlib.util.find_spec("onnx") is None:
    POLICY_KINDS = {}
