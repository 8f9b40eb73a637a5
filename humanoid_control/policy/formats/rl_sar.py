"""rl_sar `config.yaml`: a parameter block under the policy's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import PolicyError, shown
from humanoid_control.policy.formats.parts import TRAINER, make_term, plain_input, plain_output, unknown_term
from humanoid_control.policy.formats.unitree import sdk_joints
from humanoid_control.policy.formats.values import (
    MOST_HISTORY,
    MOST_NAMES,
    Fields,
    beside,
    checked_period,
    indices,
    names,
    numbers,
    read_file,
)
from humanoid_control.policy.model import (
    NEWEST_FIRST,
    OLDEST_FIRST,
    PER_FRAME,
    PER_TERM,
    Assumption,
    Block,
    PolicyModel,
    Term,
)
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import kind_of, size_of

FORM = "rl_sar config.yaml"
PROGRESS = "RoboMimic_Deploy/phase"  # term for the share of a motion that is over
PROGRESS_LENGTH = 18.0  # [s] of that motion
PERIOD = 0.02  # [s] of all its robots: dt x decimation in base.yaml
# keys that base.yaml supplies if missing
SHARED = ("dt", "decimation", "num_of_dofs", "torque_limits", "default_dof_pos")
SCALES = {
    "base_ang_vel": "ang_vel_scale",
    "base_lin_vel": "lin_vel_scale",
    "velocity_command": "commands_scale",
    "joint_pos_rel": "dof_pos_scale",
    "joint_vel": "dof_vel_scale",
}


def is_rl_sar(values: dict[str, Any]) -> bool:
    """Return True for rl_sar parameters."""
    return _block(values) is not None


def _block(values: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    rows = [*values.items(), ("", values)]
    found = [(k, v) for k, v in rows if isinstance(v, dict) and {"num_observations", "rl_kp", "observations"} <= set(v)]
    return (str(found[0][0]), found[0][1]) if found else None


def network_path(path: Path, values: dict[str, Any]) -> Path:
    """Return the path of the named network.

    Raises:
        PolicyError: if missing or outside the folder.
    """
    found = _block(values)
    assert found is not None
    d = Fields(found[1], f"{path}: {found[0]}")
    return beside(path, d.text("model_name"), "model_name")


def _robot_values(path: Path, name: str) -> dict[str, Any]:
    """Read the robot's `base.yaml`; empty if missing.

    Raises:
        PolicyError: if unreadable.
    """
    parts = tuple(p for p in name.split("/") if p)
    folder = path.resolve().parent
    if len(parts) < 2 or folder.parts[-len(parts) :] != parts:
        return {}
    base = folder.parents[len(parts) - 2] / "base.yaml"
    if not base.is_file():
        return {}
    values = read_file(base).get(parts[0])
    return values if isinstance(values, dict) else {}


def read_rl_sar(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read rl_sar parameters; the robot's values fill gaps.

    Raises:
        PolicyError: if a value is invalid.
    """
    found = _block(values)
    assert found is not None
    name, block = found
    robot = Fields(_robot_values(path, name), f"{path}: base.yaml")
    own = Fields(block, f"{path}: {shown(name)}")
    d = Fields({k: v for k, v in robot.values.items() if k in SHARED} | block, own.where)
    stated_default = d.values.get("default_dof_pos")
    count = int(d.number("num_of_dofs", len(stated_default) if isinstance(stated_default, list) else None))
    if not 0 < count <= MOST_NAMES:
        raise PolicyError(f"{d.where}: 'num_of_dofs' must be 1 to {MOST_NAMES}, got {count}")
    assumed = [Assumption("IMU", "in the root link", TRAINER)]
    contradictions: list[str] = []
    joints = _joints(own, robot, count, assumed)
    terms = [t for one in d.names("observations") if (t := _term(d, one, joints, contradictions)) is not None]
    performs = any(t.name == PROGRESS for t in terms)
    if performs:
        assumed.append(Assumption("length of the motion", f"{PROGRESS_LENGTH:g} s", "fsm_g1.hpp of rl_sar"))
    if "dt" not in d:
        assumed.append(Assumption("period", f"{PERIOD:g} s", "base.yaml of rl_sar: dt x decimation"))
    lower = d.numbers("clip_actions_lower", count, -np.inf)
    upper = d.numbers("clip_actions_upper", count, np.inf)
    same = bool((lower == lower[0]).all() and (upper == upper[0]).all())  # otherwise each joint has its own bounds
    default = d.numbers("default_dof_pos", count)
    blocks = (_history(d, tuple(terms)),)
    stated = int(d.number("num_observations"))
    frame = sum(t.size for t in terms)
    if not contradictions and stated != frame:
        contradictions.append(f"{d.where}: num_observations is {stated}, but its terms have {frame} numbers")
    facts = {"motion": d.text("motion_file")} if "motion_file" in d else {}
    return PolicyModel(
        path=path,
        form=FORM,
        name=name or path.parent.name,
        network=network.path if network else None,
        inputs=plain_input(network, blocks, contradictions),
        outputs=plain_output(network, count, contradictions),
        joints=joints,
        acted=joints,
        default=default,
        scale=d.numbers("action_scale", count),
        offset=default.copy(),
        action_clip=(float(lower[0]), float(upper[0])) if same else None,
        target_clip=None if same else default + d.numbers("action_scale", count) * np.array([lower, upper]),
        kp=d.numbers("rl_kp", count),
        kd=d.numbers("rl_kd", count),
        torque_limit=d.numbers("torque_limits", count) if "torque_limits" in d else None,
        period=checked_period(d.number("dt", PERIOD) * d.number("decimation", 1.0), f"{path}: dt x decimation"),
        anchor="torso_link" if any(t.kind == "reference_anchor_ori" for t in terms) else "",
        motion_length=PROGRESS_LENGTH if performs else 0.0,
        facts=facts,
        assumed=tuple(assumed),
        contradictions=tuple(contradictions),
    )


def _joints(d: Fields, robot: Fields, count: int, assumed: list[Assumption]) -> tuple[str, ...]:
    """Return joints in policy order: own, robot or SDK names."""
    if "joint_names" in d:
        stated = names(d.values["joint_names"], f"{d.where}: 'joint_names'")
        if len(stated) != count:
            raise PolicyError(f"{d.where}: 'joint_names' has {len(stated)} names for {count} joints")
        return stated
    mapping = d.values.get("joint_mapping") or robot.values.get("joint_mapping") or list(range(count))
    order = indices(mapping, count, f"{d.where}: 'joint_mapping'")
    if "joint_names" in robot:
        known = names(robot.values["joint_names"], f"{robot.where}: 'joint_names'")
        if len(known) == count:
            return tuple(known[k] for k in order)
    found = sdk_joints(count)
    if found is None:
        raise PolicyError(
            f"{d.where}: lists no joints, and the folder of its robot has no base.yaml: "
            "add 'joint_names' in the policy's order"
        )
    assumed.append(Assumption("joint names", f"the SDK's order of {found[0]}", "base.yaml of rl_sar: joint_names"))
    return tuple(found[1][k] for k in order)


def _term(d: Fields, name: str, joints: tuple[str, ...], contradictions: list[str]) -> Term | None:
    kind = "motion_phase" if name == PROGRESS else kind_of(name)
    if kind is None:
        contradictions.append(unknown_term(d.where, name))
        return None
    size = size_of(kind, len(joints), len(joints)) or 1
    scale = d.numbers(SCALES[kind], size, 1.0) if kind in SCALES else np.ones(size)
    clip = d.number("clip_obs", np.inf) if "clip_obs" in d else np.inf
    return make_term(name, kind, joints, size, scale, (-clip, clip) if np.isfinite(clip) else None)


def _history(d: Fields, terms: tuple[Term, ...]) -> Block:
    """Return terms with history; the file counts frames from the newest, 0."""
    frames = d.values.get("observations_history") or [0]
    what = f"{d.where}: 'observations_history'"
    counts = numbers(frames, len(frames) if isinstance(frames, list) else 1, what)
    n = len(counts)
    up = np.arange(n)
    if n > MOST_HISTORY or not (np.array_equal(counts, up) or np.array_equal(counts, up[::-1])):
        raise PolicyError(f"{what} must be consecutive frames starting or ending at 0, got {shown(frames)}")
    layout = d.one_of("observations_history_priority", ("time", "term"), "time")
    several = tuple(Term(t.name, t.kind, t.size, t.scale, t.clip, n, t.joints) for t in terms)
    order = OLDEST_FIRST if counts[0] > 0 else NEWEST_FIRST
    return Block(several, PER_FRAME if layout == "time" else PER_TERM, order)
