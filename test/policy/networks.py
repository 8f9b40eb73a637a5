"""Small networks for tests: one matrix from inputs to outputs, with the metadata of anybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

PROPRIOCEPTION = "base_ang_vel,joint_pos,joint_vel,actions"
JOINTS = ("left_hip_pitch_joint", "left_knee_joint", "right_hip_pitch_joint", "right_knee_joint")


def linear_network(
    path: Path,
    inputs: dict[str, int],
    outputs: dict[str, int],
    metadata: dict[str, str] | None = None,
    weights: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    integers: str = "",
) -> Path:
    """Write a network whose outputs are W x + b of all inputs, one after the other.

    Args:
        inputs, outputs: name -> numbers.
        weights: (sum of outputs, sum of inputs); default: zeros. bias: (sum of outputs,); default: zeros.
        integers: an input that takes 64 bit integers.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    wide, tall = sum(inputs.values()), sum(outputs.values())
    W = np.zeros((tall, wide)) if weights is None else weights
    b = np.zeros(tall) if bias is None else bias
    store = [
        numpy_helper.from_array(np.asarray(W.T, np.float32), "W"),
        numpy_helper.from_array(np.asarray(b, np.float32), "b"),
    ]
    nodes: list[Any] = [helper.make_node("Cast", [integers], ["cast"], to=TensorProto.FLOAT)] if integers else []
    names = ["cast" if n == integers else n for n in inputs]
    nodes += [helper.make_node("Concat", names, ["x"], axis=1), helper.make_node("Gemm", ["x", "W", "b"], ["y"])]
    store.append(numpy_helper.from_array(np.array(list(outputs.values()), np.int64), "sizes"))
    nodes.append(helper.make_node("Split", ["y", "sizes"], list(outputs), axis=1))
    graph = helper.make_graph(
        nodes,
        "policy",
        [
            helper.make_tensor_value_info(n, TensorProto.INT64 if n == integers else TensorProto.FLOAT, [1, k])
            for n, k in inputs.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, k]) for n, k in outputs.items()],
        store,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, str(path))
    return path


def joined(values: Any) -> str:
    """Values as texts separated by commas."""
    return ",".join(str(v) for v in values)


def beyondmimic_metadata(joints: tuple[str, ...] = JOINTS, **changed: str) -> dict[str, str]:
    """Metadata of a tracker of BeyondMimic's, with values other than usual."""
    n = len(joints)
    said = {
        "run_path": "lab/run/dance",
        "joint_names": joined(joints),
        "joint_stiffness": joined([40.0] * n),
        "joint_damping": joined([2.5] * n),
        "default_joint_pos": joined([-0.3, 0.6] * (n // 2)),
        "command_names": "motion",
        "observation_names": f"command,motion_anchor_pos_b,motion_anchor_ori_b,base_lin_vel,{PROPRIOCEPTION}",
        "observation_history_lengths": joined([1] * 8),
        "action_scale": joined([0.5] * n),
        "anchor_body_name": "torso_link",
        "body_names": "pelvis,torso_link",
    }
    return {k: v for k, v in {**said, **changed}.items() if v != "-"}


def beyondmimic_network(
    path: Path, joints: tuple[str, ...] = JOINTS, width: int = 0, integers: str = "", **changed: str
) -> Path:
    """Write a tracker with the inputs and outputs of BeyondMimic's."""
    n = len(joints)
    outputs = {"actions": n, "joint_pos": n, "joint_vel": n, "body_pos_w": 6, "body_quat_w": 8}
    sizes = {"obs": width or 5 * n + 15, "time_step": 1}
    bias = np.zeros(3 * n + 14)
    bias[[3 * n + 6, 3 * n + 10]] = 1.0  # w of both quaternions
    metadata = beyondmimic_metadata(joints, **changed)
    return linear_network(path, sizes, outputs, metadata, bias=bias, integers=integers)


def deploy_yaml(joints: int = 29, **changed: Any) -> dict[str, Any]:
    """Values of a deploy.yaml of Unitree's for so many motors, in the SDK's order."""
    size = {"base_ang_vel": 3, "projected_gravity": 3, "velocity_commands": 3, "joint_pos_rel": joints}
    size |= {"joint_vel_rel": joints, "last_action": joints}
    rows = {n: {"scale": [1.0] * k, "clip": None, "history_length": 1} for n, k in size.items()}
    d = {
        "joint_ids_map": list(range(joints)),
        "step_dt": 0.02,
        "stiffness": [100.0] * joints,
        "damping": [2.0] * joints,
        "default_joint_pos": [0.0] * joints,
        "commands": {"base_velocity": {"ranges": {"lin_vel_x": [-0.5, 1.0]}}},
        "actions": {"JointPositionAction": {"clip": None, "joint_names": [".*"], "scale": 0.25, "offset": 0.0}},
        "observations": rows,
    }
    return d | changed


def maker_yaml(maker: str, **changed: Any) -> dict[str, Any]:
    """Values of a small YAML file of a maker: 'berkeley' (4 joints), 'asap', 'booster', 'falcon' (29) or 'gym' (12)."""
    d: dict[str, Any]
    if maker == "berkeley":
        d = {"policy_checkpoint_path": "checkpoints/p.onnx", "joints": list(JOINTS), "joint_kp": [20.0] * 4}
        d |= {"joint_kd": [2.0] * 4, "effort_limits": [6.0] * 4, "default_joint_positions": [-0.2, 0.4, -0.2, 0.4]}
        d |= {"policy_dt": 0.04, "num_observations": 21, "history_length": 0, "num_actions": 4, "action_scale": 0.25}
        d |= {"action_indices": [0, 1, 2, 3], "action_limit_lower": -100, "action_limit_upper": 100}
    elif maker == "falcon":
        sizes = {"base_ang_vel": 3, "command_stand": 1, "dof_pos": 29, "actions": 15, "ref_upper_dof_pos": 14}
        d = {"model_path": "models/loco/p.onnx", "dof_names": [f"j{k}" for k in range(29)], "NUM_JOINTS": 29}
        d |= {"JOINT_KP": list(range(20, 49)), "JOINT_KD": [2.0] * 29, "DEFAULT_DOF_ANGLES": [0.0] * 29}
        d |= {"NUM_UPPER_BODY_JOINTS": 14, "GAIT_PERIOD": 0.9, "history_length_dict": {"actor_obs": 1}}
        d |= {"obs_dict": {"actor_obs": list(sizes)}, "obs_dims": sizes, "obs_scales": {"base_ang_vel": 0.25}}
    elif maker == "booster":
        common = {"dt": 0.002, "stiffness": list(range(20, 43)), "damping": [2.0] * 23, "torque_limit": [60.0] * 23}
        common |= {"default_qpos": [0.01 * k for k in range(23)]}
        scale = {"gravity": 1.0, "lin_vel": 2.0, "ang_vel": 0.5, "dof_pos": 1.0, "dof_vel": 0.1, "clip_actions": 1.0}
        policy = {"policy_path": "./models/T1.pt", "num_actions": 12, "num_observations": 47, "gait_frequency": 1.25}
        policy |= {"normalization": scale, "control": {"action_scale": 0.5, "decimation": 10}}
        d = {"common": common, "policy": policy, "mech": {}, "prepare": {}}
    elif maker == "asap":
        words = {"base_ang_vel": 2, "projected_gravity": 2, "dof_pos": 2, "dof_vel": 2, "actions": 2}
        walking = words | {"command_lin_vel": 2, "command_stand": 2, "ref_upper_dof_pos": 2, "sin_phase": 2}
        d = {"NUM_JOINTS": 29, "JOINT_KP": list(range(20, 49)), "JOINT_KD": [2.0] * 29, "GAIT_PERIOD": 0.9}
        d |= {
            "DEFAULT_DOF_ANGLES": [0.01 * k for k in range(29)],
            "obs_loco_dims": {},
            "motion_length_s": {"kick": 4.0},
        }
        d |= {"history_loco_config": walking, "history_mimic_config": words | {"ref_motion_phase": 2}}
        d |= {"history_loco_height_config": walking | {"command_base_height": 2}}
        d |= {"obs_scales": {"base_ang_vel": 0.25, "dof_vel": 0.05, "command_base_height": 2.0}}
        d |= {"mimic_robot_types": {"kick": "small"}, "robot_dofs": {"small": [1] * 19 + [0] * 3 + [1] * 4 + [0] * 3}}
        d |= {"start_upper_dof_pos": {"kick": [0.1] * 17}, "loco_upper_body_dof_pos": [0.2] * 17}
        d |= {"motor_pos_lower_limit_list": [-1.0] * 29, "motor_pos_upper_limit_list": [2.0] * 29}
    else:
        d = {"policy_path": "{LEGGED_GYM_ROOT_DIR}/deploy/pre_train/g1/motion.pt", "control_dt": 0.02}
        d |= {"num_actions": 12, "num_obs": 47, "kps": [100.0] * 12, "kds": [2.0] * 12, "default_angles": [0.0] * 12}
        d |= {"cmd_scale": [2.0, 2.0, 0.25], "ang_vel_scale": 0.25, "dof_vel_scale": 0.05, "action_scale": 0.25}
        d |= {"max_cmd": [0.8, 0.5, 1.57]}
    return {key: value for key, value in (d | changed).items() if value is not None}


def maker_file(folder: Path, maker: str, **changed: Any) -> Path:
    """Write such a file with a network where its player would find it."""
    import yaml

    path, inputs, outputs = {
        "berkeley": ("checkpoints/p.onnx", 21, 4),
        "booster": ("models/T1.onnx", 47, 12),
        "falcon": ("other.onnx", 62, 15),
        "gym": ("motion.onnx", 47, 12),
    }[maker]
    (folder / path).parent.mkdir(exist_ok=True)
    linear_network(folder / path, {"obs": inputs}, {"actions": outputs})
    (folder / "p.yaml").write_text(yaml.safe_dump(maker_yaml(maker, **changed)))
    return folder / "p.yaml"


def asap_folder(folder: Path, **changed: Any) -> Path:
    """Write folders of ASAP: `config`, and networks of walking, of walking at a height and of a motion."""
    import yaml

    (folder / "config").mkdir()
    (folder / "config" / "g1.yaml").write_text(yaml.safe_dump(maker_yaml("asap", **changed)))
    sizes = {"walk/a": (3 * 97, 12), "walk/b": (3 * 98, 12), "mimic/kick": (3 * 76, 23)}
    for name, (observed, driven) in sizes.items():
        (folder / "models" / name).mkdir(parents=True)
        linear_network(folder / "models" / name / "model.onnx", {"actor_obs": observed}, {"action": driven})
    return folder
