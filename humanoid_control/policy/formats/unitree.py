"""Unitree `deploy.yaml` (unitree_rl_lab, unitree_rl_mjlab), with motor places instead of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.errors import PolicyError, shown
from humanoid_control.hardware.unitree.models import MODELS, UnitreeModel
from humanoid_control.policy.formats.parts import make_term, plain_input, plain_output, unknown_term
from humanoid_control.policy.formats.values import (
    Fields,
    checked_period,
    command_ranges,
    history_length,
    names,
    numbers,
    pairs,
)
from humanoid_control.policy.model import RUNNING, Assumption, Block, GaitSignal, PolicyModel, Term
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import kind_of, size_of

FORM = "Unitree deploy.yaml"
PLACES = ("../exported/policy.onnx", "exported/policy.onnx", "policy.onnx")  # relative to the file's folder
MOST_MOTORS = 64
ANCHOR = "torso_link"  # of its motion trackers


def sdk_joints(count: int) -> tuple[str, tuple[str, ...]] | None:
    """Return Unitree robot and joints in SDK order by number of motors, or None."""
    for model in MODELS.values():
        if len(model.motors) == count:
            return model.name, _sorted_joints(model)
    return None


def _sorted_joints(model: UnitreeModel) -> tuple[str, ...]:
    return tuple(f"{m.name}_joint" for m in sorted(model.motors, key=lambda m: m.id))


class MotorOrder(NamedTuple):
    """Motors of a policy.

    Attributes:
        places: indices in SDK frames, policy order (n,).
        ranks: places without gaps: 0 .. n - 1 (n,).
    """

    places: np.ndarray
    ranks: np.ndarray
    robot: str = ""
    joints: tuple[str, ...] = ()


def motor_order(value: Any, what: str) -> MotorOrder:
    """Read `joint_ids_map`: consecutive numbers, or places with gaps.

    Raises:
        PolicyError: if not a list of distinct places.
    """
    count = len(value) if isinstance(value, list) else 0
    if not 0 < count <= MOST_MOTORS:
        raise PolicyError(f"{what} must be a list of motors, got {shown(value)}")
    places = [int(v) if isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e6 else -1 for v in value]
    if sorted(places) == list(range(count)):
        found = sdk_joints(count) or ("", ())
        return MotorOrder(np.array(places), np.array(places), *found)
    model = next((m for m in MODELS.values() if {motor.id for motor in m.motors} == set(places)), None)
    if len(set(places)) < count or min(places) < 0 or max(places) >= MOST_MOTORS or model is None:
        raise PolicyError(
            f"{what} must hold each of 0 to {count - 1} once, or the motor indices of a Unitree robot, got "
            f"{shown(value)}"
        )
    order = np.array(places)
    return MotorOrder(order, np.argsort(np.argsort(order)), model.name, _sorted_joints(model))


def find_network(path: Path) -> Path | None:
    """Return the network of a deploy.yaml, or None."""
    return next((found for p in PLACES if (found := (path.parent / p).resolve()).is_file()), None)


def read_unitree(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read a deploy.yaml.

    Raises:
        PolicyError: if a value is invalid.
    """
    d = Fields(values, str(path))
    motors = motor_order(d.values.get("joint_ids_map"), f"{path}: 'joint_ids_map'")
    count = len(motors.places)
    assumed: list[Assumption] = []
    contradictions: list[str] = []
    joints = _joints(d, motors, assumed)
    action = d.within("actions")
    kind = next(iter(action.values), "")
    if kind != "JointPositionAction" or len(action.values) != 1:
        raise PolicyError(f"{path}: actions must be one JointPositionAction, got {shown(', '.join(action.values))}")
    action = action.within(kind)
    default = d.numbers("default_joint_pos", count)
    terms = []
    rows = d.within("observations")
    grouped = next((k for k in ("policy", "actor", "obs") if isinstance(rows.values.get(k), dict)), None)
    if grouped is not None and "scale" not in rows.values[grouped]:
        rows = rows.within(grouped)
    for name in rows.values:
        term = _term(name, rows.within(name), joints, contradictions)
        if term is not None:
            terms.append(term)
    gait = _gait(rows, terms)
    if any(t.kind.startswith("reference_") for t in terms):
        assumed.append(Assumption("anchor", ANCHOR, "the training environment"))
    commands = d.values.get("commands") or {}
    ranges = commands.get("base_velocity", {}).get("ranges", {}) if _nested(commands) else {}
    assumed.append(Assumption("IMU", "in the root link (pelvis)", "the training environment"))
    block = (Block(tuple(terms)),)
    return PolicyModel(
        path=path,
        form=FORM,
        name=path.resolve().parent.parent.name,
        network=network.path if network else None,
        inputs=plain_input(network, block, contradictions),
        outputs=plain_output(network, count, contradictions),
        joints=joints,
        acted=joints,
        default=default,
        scale=action.numbers("scale", count, 1.0),
        offset=action.numbers("offset", count, 0.0),
        target_clip=_clip(action, count),
        kp=_gains(d, "stiffness", motors),
        kd=_gains(d, "damping", motors),
        period=checked_period(d.number("step_dt"), f"{path}: 'step_dt'"),
        commands=command_ranges(ranges, f"{path}: base_velocity") if isinstance(ranges, dict) else {},
        gait=gait,
        anchor=ANCHOR if any(t.kind.startswith("reference_anchor") for t in terms) else "",
        facts={"history": "per term, oldest frame first"},
        assumed=tuple(assumed),
        contradictions=tuple(contradictions),
    )


def _gait(rows: Fields, terms: list[Term]) -> GaitSignal | None:
    named = next((t.name for t in terms if t.kind in ("phase", "sin_phase", "cos_phase")), None)
    if named is None or not isinstance(rows.within(named).values.get("params"), dict):
        return None
    parameters = rows.within(named).within("params")
    if "period" not in parameters:
        return None
    return GaitSignal(checked_period(parameters.number("period"), f"{parameters.where}: 'period'"), (0.0,), RUNNING)


def _nested(commands: Any) -> bool:
    return isinstance(commands, dict) and isinstance(commands.get("base_velocity"), dict)


def _joints(d: Fields, motors: MotorOrder, assumed: list[Assumption]) -> tuple[str, ...]:
    """Return joint names in policy order."""
    stated = d.values.get("joint_names")
    count = len(motors.places)
    if isinstance(stated, list) and len(stated) == count:
        return names(stated, f"{d.where}: 'joint_names'")
    if not motors.joints:
        known = ", ".join(f"{m.name} {len(m.motors)}" for m in MODELS.values())
        raise PolicyError(
            f"{d.where}: lists no joints, and no Unitree humanoid has {count} motors ({known}): "
            "add 'joint_names' in the policy's order"
        )
    assumed.append(Assumption("joint names", f"the SDK's order of {motors.robot}", "the maker of the robot"))
    return tuple(motors.joints[k] for k in motors.ranks)


def _gains(d: Fields, key: str, motors: MotorOrder) -> np.ndarray:
    """Return gains (n,) in policy order from SDK order."""
    value = d.values.get(key)
    places = int(motors.places.max()) + 1
    if isinstance(value, list) and len(value) == places > len(motors.places):
        return d.numbers(key, places)[motors.places]
    return d.numbers(key, len(motors.places))[motors.ranks]


def _term(name: str, row: Fields, joints: tuple[str, ...], contradictions: list[str]) -> Term | None:
    kind = kind_of(name)
    if kind is None:
        contradictions.append(unknown_term(row.where, name))
        return None
    scale = row.values.get("scale")
    size = size_of(kind, len(joints), len(joints)) or (len(scale) if isinstance(scale, list) else 2)
    factors = numbers(1.0 if scale is None else scale, size, f"{row.where}: 'scale'")
    clip = pairs(row.values.get("clip"), f"{row.where}: 'clip'")
    if clip is not None and factors.min() == factors.max() and factors[0] > 0:  # the clip acts before the scale
        clip = (clip[0] * float(factors[0]), clip[1] * float(factors[0]))
    history = history_length(row.values.get("history_length"), f"{row.where}: 'history_length'")
    return make_term(name, kind, joints, size=size, scale=factors, clip=clip, history=history)


def _clip(action: Fields, count: int) -> np.ndarray | None:
    rows = action.values.get("clip")
    if rows is None:
        return None
    what = f"{action.where}: 'clip'"
    if isinstance(rows, dict):
        rows = list(rows.values())
    if not isinstance(rows, list) or len(rows) not in (1, count):
        raise PolicyError(f"{what} must be one range, or one per joint, got {shown(rows)}")
    if None in rows:
        raise PolicyError(f"{what} must be ranges [low, high], got {shown(rows)}")
    limits = [pairs(row, what) for row in rows] * (count if len(rows) == 1 else 1)
    return np.array(limits, dtype=float).T
