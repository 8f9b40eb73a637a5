"""BeyondMimic (whole_body_tracking) and mjlab metadata: comma-separated texts in the ONNX file."""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import PolicyError, shown
from humanoid_control.policy.formats.parts import TRAINER, make_term, network_inputs, network_outputs, unknown_term
from humanoid_control.policy.formats.values import MOST_NAMES, history_length, joined, joined_numbers, names
from humanoid_control.policy.model import (
    ACTION,
    REFERENCE,
    Assumption,
    Block,
    PolicyModel,
    Term,
)
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import kind_of, size_of

FORM = "BeyondMimic / mjlab metadata"
PERIOD = 0.02  # [s] of all public policies
OUTPUTS = {
    "actions": ACTION,
    "action": ACTION,
    "joint_pos": f"{REFERENCE}.joint_pos",
    "joint_vel": f"{REFERENCE}.joint_vel",
    "body_pos_w": f"{REFERENCE}.body_pos",
    "body_quat_w": f"{REFERENCE}.body_quat_wxyz",
    "body_lin_vel_w": f"{REFERENCE}.body_lin_vel",
    "body_ang_vel_w": f"{REFERENCE}.body_ang_vel",
}


def read_beyondmimic(network: PolicyNetwork) -> PolicyModel:
    """Read a network with this metadata.

    Raises:
        PolicyError: if a value is invalid.
    """
    said, where = network.metadata, str(network.path)
    joints = _names(said, "joint_names", where)
    n = len(joints)
    assumed = [
        Assumption("period", f"{PERIOD:g} s", f"{TRAINER} (decimation x physics step)"),
        Assumption("IMU", "in the root link", TRAINER),
    ]
    contradictions: list[str] = []
    tracks = any(i.name == "time_step" for i in network.inputs)
    outputs = network_outputs(network, OUTPUTS, contradictions)
    words = _words(said, "observation_names", where)
    lengths = _lengths(said, words, where, assumed)
    terms = [
        t
        for word, length in zip(words, lengths, strict=True)
        if (t := _term(where, word, length, joints, tracks, contradictions)) is not None
    ]
    blocks = (Block(tuple(terms)),)
    inputs = network_inputs(network, blocks, contradictions)
    default = _numbers(said, "default_joint_pos", n, where)
    anchor, bodies = said.get("anchor_body_name", ""), tuple(joined(said.get("body_names", ""), where)[:MOST_NAMES])
    if any(t.kind.startswith("reference_anchor") for t in terms):
        if not anchor:
            contradictions.append(f"{where}: 'anchor_body_name' is missing, but an observation needs it")
        elif anchor not in bodies:
            contradictions.append(f"{where}: the anchor '{shown(anchor)}' is not one of 'body_names'")
        assumed.append(Assumption("yaw of the motion", "aligned with the robot's at the start", "the maker's player"))
    return PolicyModel(
        path=network.path,
        form=FORM,
        name=said.get("run_path", "").rpartition("/")[2] or network.path.stem,
        network=network.path,
        inputs=inputs,
        outputs=outputs,
        joints=joints,
        acted=joints,
        default=default,
        scale=_numbers(said, "action_scale", n, where),
        offset=default.copy(),
        kp=_numbers(said, "joint_stiffness", n, where),
        kd=_numbers(said, "joint_damping", n, where),
        period=PERIOD,
        anchor=anchor,
        bodies=bodies,
        facts={"command": said["command_names"]} if said.get("command_names") else {},
        assumed=tuple(assumed),
        contradictions=tuple(contradictions),
    )


def _names(said: dict[str, str], key: str, where: str) -> tuple[str, ...]:
    return names(_words(said, key, where), f"{where}: '{key}'")


def _words(said: dict[str, str], key: str, where: str) -> list[str]:
    if key not in said:
        raise PolicyError(f"{where}: its metadata has no '{key}': export it again, or write a description file")
    return joined(said[key], f"{where}: '{key}'")[:MOST_NAMES]


def _numbers(said: dict[str, str], key: str, count: int, where: str) -> np.ndarray:
    if key not in said:
        raise PolicyError(f"{where}: its metadata has no '{key}': export it again, or write a description file")
    return joined_numbers(said[key], count, f"{where}: '{key}'")


def _lengths(said: dict[str, str], words: list[str], where: str, assumed: list[Assumption]) -> list[int]:
    what = f"{where}: 'observation_history_lengths'"
    if not said.get("observation_history_lengths"):
        assumed.append(Assumption("history", "the present frame alone", TRAINER))
        return [1] * len(words)
    counts = joined_numbers(said["observation_history_lengths"], len(words), what)
    if counts.max(initial=0.0) > 1:
        assumed.append(Assumption("layout of the history", "per term, oldest frame first", "Isaac Lab and mjlab"))
    return [history_length(c, what) for c in counts.tolist()]


def _term(
    where: str, word: str, length: int, joints: tuple[str, ...], tracks: bool, contradictions: list[str]
) -> Term | None:
    n = len(joints)
    kind = "reference_motion" if tracks and word == "command" else kind_of(word)
    if kind is None:
        contradictions.append(unknown_term(where, word))
        return None
    size = size_of(kind, n, n) or 1
    return make_term(word, kind, joints, size, history=length)
