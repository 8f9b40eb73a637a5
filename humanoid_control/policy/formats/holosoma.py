"""holosoma metadata: JSON texts in the ONNX file; terms are sorted by name."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from humanoid_control.errors import PolicyError, shown
from humanoid_control.policy.formats.parts import TRAINER, make_term, network_inputs, network_outputs
from humanoid_control.policy.formats.values import Fields, command_ranges, joined_numbers, names, numbers
from humanoid_control.policy.model import (
    ACTION,
    REFERENCE,
    Assumption,
    Block,
    GaitSignal,
    PolicyModel,
    Term,
)
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import kind_of, size_of

FORM = "holosoma metadata"
PERIOD = 0.02  # [s]
GAIT = GaitSignal(1.0)
ANCHOR = "torso_link"
LOCO_SCALE, TRACKER_SCALE = 0.25, 1.0
LOCO = {"base_ang_vel": 0.25, "dof_vel": 0.05}  # scales other than 1
LOCO_TERMS = (
    *("actions", "base_ang_vel", "command_ang_vel", "command_lin_vel", "cos_phase", "dof_pos", "dof_vel"),
    *("projected_gravity", "sin_phase"),
)
TRACKER_TERMS = ("actions", "base_ang_vel", "dof_pos", "dof_vel", "motion_command", "motion_ref_ori_b")
OUTPUTS = {
    "action": ACTION,
    "actions": ACTION,
    "joint_pos": f"{REFERENCE}.joint_pos",
    "joint_vel": f"{REFERENCE}.joint_vel",
    "ref_pos_xyz": f"{REFERENCE}.anchor_pos",
    "ref_quat_xyzw": f"{REFERENCE}.anchor_quat_xyzw",
}
# Rest postures of holosoma's robots [rad], for both sides unless one is named; other joints are 0.
G1_REST = {
    "hip_pitch": -0.312,
    "knee": 0.669,
    "ankle_pitch": -0.363,
    "shoulder_pitch": 0.2,
    "left_shoulder_roll": 0.2,
    "right_shoulder_roll": -0.2,
    "elbow": 0.6,
}
T1_REST = {
    "Shoulder_Pitch": 0.2,
    "Left_Shoulder_Roll": -1.35,
    "Right_Shoulder_Roll": 1.35,
    "Left_Elbow_Yaw": -0.5,
    "Right_Elbow_Yaw": 0.5,
    "Hip_Pitch": -0.2,
    "Knee_Pitch": 0.4,
    "Ankle_Pitch": -0.25,
}
RESTS = {
    "G1": ({"left_knee", "right_hip_pitch", "left_ankle_roll"}, G1_REST),
    "T1": ({"Left_Knee_Pitch", "Right_Hip_Pitch", "AAHead_yaw"}, T1_REST),
}
"""Robot -> identifying joints, and rest posture."""
SIDES = ("left_", "right_", "Left_", "Right_")


def read_holosoma(network: PolicyNetwork) -> PolicyModel:
    """Read a network with holosoma metadata.

    Raises:
        PolicyError: if a value is invalid.
    """
    said, where = _metadata(network), str(network.path)
    joints = names(said.get("dof_names"), f"{where}: 'dof_names'")
    n = len(joints)
    contradictions: list[str] = []
    tracks = any(i.name == "time_step" for i in network.inputs)
    outputs = network_outputs(network, OUTPUTS, contradictions)
    terms = _terms(network, joints, tracks)
    inputs = network_inputs(network, (Block(terms),), contradictions)
    rest, robot = rest_posture(joints)
    assumed = [
        Assumption("terms", "sorted by name, scales of its own configuration", f"{TRAINER} (observation)"),
        Assumption("period", f"{PERIOD:g} s", f"{TRAINER} (rl_rate)"),
        Assumption("IMU", "in the root link", TRAINER),
    ]
    if robot:
        assumed.append(Assumption("rest posture", f"that of holosoma's {robot}", "its robot configuration"))
    else:
        contradictions.append(
            f"{where}: contains no rest posture, and only those of its {' and '.join(RESTS)} are known: "
            "write a description file"
        )
    scale = said.get("action_scale")
    if scale is None:
        factor = TRACKER_SCALE if tracks else LOCO_SCALE
        what = "of its trackers" if tracks else "of its locomotion"
        assumed.append(
            Assumption("action scale", f"{factor:g}, {what}", f"{TRAINER}: a wrong one is a fall within seconds")
        )
        scale = factor
    if tracks:
        assumed.append(Assumption("anchor", ANCHOR, "its robot configuration"))
        assumed.append(Assumption("yaw of the motion", "aligned with the robot's at the start", "its player"))
    else:
        assumed.append(Assumption("gait", f"{GAIT.period:g} s, both phases pi at rest", TRAINER))
    ranges = said.get("command_ranges")
    return PolicyModel(
        path=network.path,
        form=FORM,
        name=network.path.stem,
        network=network.path,
        inputs=inputs,
        outputs=outputs,
        joints=joints,
        acted=joints,
        default=rest,
        scale=numbers(scale, n, f"{where}: 'action_scale'"),
        offset=rest.copy(),
        action_clip=(-100.0, 100.0),
        kp=numbers(said.get("kp"), n, f"{where}: 'kp'"),
        kd=numbers(said.get("kd"), n, f"{where}: 'kd'"),
        period=PERIOD,
        commands=command_ranges(Fields(ranges, f"{where}: 'command_ranges'").values, where) if ranges else {},
        gait=None if tracks else GAIT,
        anchor=ANCHOR if tracks else "",
        facts={"robot": "a URDF is in the metadata"} if said.get("robot_urdf") else {},
        assumed=tuple(assumed),
        contradictions=tuple(contradictions),
    )


def rest_posture(joints: tuple[str, ...]) -> tuple[np.ndarray, str]:
    """Return rest posture [rad] and name of a holosoma robot; name empty if unknown."""
    out = np.zeros(len(joints))
    plain = [j.removesuffix("_joint") for j in joints]
    robot = next((name for name, (marks, _) in RESTS.items() if marks <= set(plain)), "")
    rest = RESTS[robot][1] if robot else {}
    for k, joint in enumerate(plain):
        side = next((s for s in SIDES if joint.startswith(s)), "")
        out[k] = rest.get(joint, rest.get(joint.removeprefix(side), 0.0))
    return out, robot


USED = ("dof_names", "kp", "kd", "command_ranges", "action_scale")


def _metadata(network: PolicyNetwork) -> dict[str, Any]:
    out: dict[str, Any] = {"robot_urdf": "robot_urdf" in network.metadata}
    for key in USED:
        value = network.metadata.get(key)
        if value is None:
            continue
        try:
            out[key] = json.loads(value)
        except (ValueError, RecursionError):
            if key != "action_scale":
                raise PolicyError(f"{network.path}: '{shown(key)}' is not JSON: {shown(value)}") from None
            out[key] = joined_numbers(value, value.count(",") + 1, f"{network.path}: '{key}'").tolist()
    return out


def _terms(network: PolicyNetwork, joints: tuple[str, ...], tracks: bool) -> tuple[Term, ...]:
    n = len(joints)
    words = sorted(TRACKER_TERMS if tracks else LOCO_TERMS)
    observed = next((i.size for i in network.inputs if i.name != "time_step"), 0)
    feet = 1 if not tracks and observed == 3 * n + 11 else 2  # one clock phase a foot
    out = []
    for word in words:
        kind = kind_of(word)
        assert kind is not None
        size = size_of(kind, n, n) or feet
        out.append(make_term(word, kind, joints, size, 1.0 if tracks else LOCO.get(word, 1.0)))
    return tuple(out)
