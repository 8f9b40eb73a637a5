"""LEAPP: YAML with kinds and element names of all tensors (NVIDIA AGILE)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import PolicyError, first_few, shown
from humanoid_control.policy.formats.parts import TRAINER, make_term, plain_shape
from humanoid_control.policy.formats.values import MOST_NUMBERS, Fields, beside, checked_period, names
from humanoid_control.policy.model import (
    DAMPING,
    FEEDBACK,
    STIFFNESS,
    TARGET,
    Assumption,
    Block,
    Input,
    Output,
    PolicyModel,
)
from humanoid_control.policy.network import PolicyNetwork

FORM = "LEAPP"
MOST_DIMENSIONS = 8
JOINT_KINDS = {"state/joint/position": "joint_pos_abs", "state/joint/velocity": "joint_vel"}
BODY_KINDS = {
    "state/body/angular_velocity": ("base_ang_vel", ("x", "y", "z")),
    "state/body/linear_velocity": ("base_lin_vel", ("x", "y", "z")),
    "state/body/projected_gravity": ("projected_gravity", ("x", "y", "z")),
}
OUTPUT_KINDS = {"target/joint/position": TARGET, "kp": STIFFNESS, "kd": DAMPING}
QUATERNIONS = {("w", "x", "y", "z"): "base_quat_wxyz", ("x", "y", "z", "w"): "base_quat_xyzw"}
COMMANDS = {
    ("lin_x", "lin_y", "ang_z"): "velocity_command",
    ("lin_vel_x", "lin_vel_y", "ang_vel_z"): "velocity_command",
    ("lin_x", "lin_y"): "command_lin_vel",
    ("ang_z",): "command_ang_vel",
}


def is_leapp(values: dict[str, Any]) -> bool:
    """Return True for a LEAPP description."""
    models = values.get("models")
    return isinstance(models, dict) and all(isinstance(m, dict) and "inputs" in m for m in models.values())


def network_path(path: Path, values: dict[str, Any]) -> Path:
    """Return the path of the named network.

    Raises:
        PolicyError: if not exactly one network, inside the folder.
    """
    parameters = _model(path, values).within("parameters")
    return beside(path, parameters.text("model_path"), "model_path")


def _model(path: Path, values: dict[str, Any]) -> Fields:
    models = Fields(values, str(path)).within("models")
    if len(models.values) != 1:
        found = shown(", ".join(models.values))
        raise PolicyError(f"{path}: it describes {len(models.values)} networks ({found}), but only one can run")
    return models.within(next(iter(models.values)))


def read_leapp(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read a LEAPP description.

    Raises:
        PolicyError: if a value is invalid.
    """
    model = _model(path, values)
    name = next(iter(values["models"]))
    contradictions: list[str] = []
    imu: set[str] = set()
    rows = model.rows("inputs")
    outputs = [_output(row, contradictions) for row in model.rows("outputs")]
    joints = next(
        (_joints(row) for row in rows if row.text("kind", "") in JOINT_KINDS),
        next(iter(_acted(model.rows("outputs"))), ()),
    )
    inputs = [_input(row, outputs, imu, contradictions) for row in rows]
    acted = next(iter(_acted(model.rows("outputs"))), ())
    if not joints or not acted:
        raise PolicyError(f"{path}: no tensor of the kind 'target/joint/position' with names of joints")
    if unknown := [joint for joint in acted if joint not in joints]:
        names = first_few(shown(joint) for joint in unknown)
        raise PolicyError(f"{path}: its targets name joints that its states do not: {names}")
    if len({_.name for _ in outputs if _.kind == TARGET}) != 1:
        contradictions.append(f"{path}: it must have one output of the kind 'target/joint/position'")
    if len(imu) > 1:
        contradictions.append(
            f"{path}: rotation and angular velocity are of different links ({', '.join(sorted(imu))})"
        )
    _compare(path, model, network, (inputs, outputs), contradictions)
    semantic = values.get("semantic")
    scene = semantic.get("scene") if isinstance(semantic, dict) else None
    period = Fields(scene or {}, f"{path}: semantic: scene").number("dt", 0.0)
    assumed = [Assumption("rest posture", "all joints 0, or the nearest in range", TRAINER)]
    if not period:
        period = 0.02
        assumed.append(Assumption("period", f"{period:g} s", TRAINER))
    gains = [np.full(len(acted), np.nan) for _ in range(2)]
    for kind in (STIFFNESS, DAMPING):
        if not any(o.kind == kind for o in outputs):
            contradictions.append(f"{path}: no output of the kind '{kind}', and no other source of gains")
    return PolicyModel(
        path=path,
        form=FORM,
        name=str(name),
        network=network.path if network else None,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        joints=joints,
        acted=acted,
        default=np.zeros(len(joints)),
        scale=np.ones(len(acted)),
        offset=np.zeros(len(acted)),
        kp=gains[0],
        kd=gains[1],
        period=checked_period(period, f"{path}: semantic: scene: dt"),
        imu=next(iter(imu), ""),
        facts={"history": f"in the network ({sum(bool(i.feedback) for i in inputs)} outputs fed back)"},
        assumed=tuple(assumed),
        contradictions=tuple(contradictions),
    )


def _shape(row: Fields) -> tuple[int, ...]:
    shape = row.values.get("shape")
    if not isinstance(shape, list) or not all(isinstance(d, int) and 0 < d < 10_000 for d in shape):
        raise PolicyError(f"{row.where}: 'shape' must be a list of sizes, got {shown(shape)}")
    if not 0 < len(shape) <= MOST_DIMENSIONS or math.prod(shape) > MOST_NUMBERS:
        raise PolicyError(f"{row.where}: 'shape' is not a policy's, at most {MOST_NUMBERS} numbers: {shown(shape)}")
    return tuple(shape)


def _elements(row: Fields, level: int = -1) -> tuple[str, ...]:
    found = row.values.get("element_names")
    if not isinstance(found, list) or not found or not isinstance(found[level], list):
        raise PolicyError(f"{row.where}: 'element_names' must name the elements, got {shown(found)}")
    return names(found[level], f"{row.where}: 'element_names'")


def _joints(row: Fields) -> tuple[str, ...]:
    joints = _elements(row)
    if len(joints) != _shape(row)[-1]:
        raise PolicyError(f"{row.where}: {len(joints)} names for {_shape(row)[-1]} numbers")
    return joints


def _acted(rows: list[Fields]) -> list[tuple[str, ...]]:
    return [_joints(row) for row in rows if row.text("kind", "") == "target/joint/position"]


def _input(row: Fields, outputs: list[Output], imu: set[str], contradictions: list[str]) -> Input:
    name, shape, kind = row.text("name"), _shape(row), row.text("kind", "")
    size = int(np.prod(shape))
    if row.values.get("is_state") is True:
        back = f"{name}_out"
        source = next((o for o in outputs if o.name == back), None)
        if source is None or source.size != size:
            contradictions.append(f"{row.where}: '{name}' is fed back, but there is no output '{back}' of its shape")
        return Input(name, shape, feedback=back)
    if kind in JOINT_KINDS:
        term = make_term(name, JOINT_KINDS[kind], _joints(row), size)
    elif kind == "velocity_command":
        words = _elements(row)
        found = COMMANDS.get(words)
        if found is None:
            raise PolicyError(f"{row.where}: a velocity command of {shown(', '.join(words))} is not supported")
        term = make_term(name, found, (), size)
    elif kind == "state/body/rotation":
        words = _elements(row)
        if words not in QUATERNIONS:
            raise PolicyError(
                f"{row.where}: a rotation must be a quaternion w, x, y, z or x, y, z, w, got {shown(words)}"
            )
        imu.add(_elements(row, 0)[0])
        term = make_term(name, QUATERNIONS[words], (), size)
    elif kind in BODY_KINDS:
        word, order = BODY_KINDS[kind]
        if _elements(row) != order:
            raise PolicyError(f"{row.where}: its elements must be {', '.join(order)}, got {shown(_elements(row))}")
        imu.add(_elements(row, 0)[0])
        term = make_term(name, word, (), size)
    else:
        contradictions.append(f"{row.where}: the kind '{shown(kind)}' of the input '{shown(name)}' is not supported")
        return Input(name, shape)
    return Input(name, shape, (Block((term,)),))


def _output(row: Fields, contradictions: list[str]) -> Output:
    name, shape, kind = row.text("name"), _shape(row), row.text("kind", "")
    if row.values.get("is_state") is True:
        return Output(name, shape, FEEDBACK)
    if kind not in OUTPUT_KINDS:
        contradictions.append(f"{row.where}: the kind '{shown(kind)}' of the output '{shown(name)}' is not supported")
        return Output(name, shape, FEEDBACK)
    return Output(name, shape, OUTPUT_KINDS[kind])


def _compare(
    path: Path,
    model: Fields,
    network: PolicyNetwork | None,
    tensors: tuple[list[Input], list[Output]],
    contradictions: list[str],
) -> None:
    if network is None:
        return
    digest = model.within("parameters").text("sha256sum", "")
    if digest and digest.lower() != network.sha256:
        contradictions.append(f"{path}: sha256sum does not match {network.path.name}: it is another network")
    for kind, ours, theirs in (("input", tensors[0], network.inputs), ("output", tensors[1], network.outputs)):
        found = {t.name: plain_shape(t) for t in theirs}
        for one in ours:
            if found.get(one.name) != one.shape:
                has = f"the shape {list(found[one.name])}" if one.name in found else "none of this name"
                contradictions.append(
                    f"{path}: the {kind} '{one.name}' is {list(one.shape)}, but the network has {has}"
                )
        for other in sorted(set(found) - {one.name for one in ours}):
            contradictions.append(f"{path}: the {kind} '{shown(other)}' of the network is not described")
