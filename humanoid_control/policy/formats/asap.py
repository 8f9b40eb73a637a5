"""ASAP: one YAML file for a walking policy and many motions, each a network of its own.

The observation is that of its player (`deepmimic_dec_loco_height.py`): terms sorted by name, and past frames of all,
newest first, at the place of a term `history`.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import PolicyError, UnknownNameError, shown
from humanoid_control.policy.formats.parts import TRAINER, make_term, plain_input, plain_output, unknown_term
from humanoid_control.policy.formats.unitree import sdk_joints
from humanoid_control.policy.formats.values import (
    Fields,
    checked_period,
    history_length,
    names,
    numbers,
    positive,
    read_file,
)
from humanoid_control.policy.model import (
    FILL_ZERO,
    NEWEST_FIRST,
    ZERO,
    Assumption,
    Block,
    GaitSignal,
    PolicyModel,
    Term,
)
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import kind_of, size_of

FORM = "ASAP YAML"
KEYS = frozenset({"history_loco_config", "obs_loco_dims", "motion_length_s", "JOINT_KP"})
PERIOD, SCALE, CLIP = 0.02, 0.25, (-100.0, 100.0)  # of the player: [s], [rad], bounds of an action
HEIGHT = 0.78  # [m] commanded by the player
LEGS = 12  # joints that the walking policy drives
PAST = "history"  # place of the past frames among the sorted terms
MOTION_TERMS, WALKING_TERMS = "history_mimic_config", ("history_loco_height_config", "history_loco_config")
LIMITS = (("lower", -np.inf), ("upper", np.inf))
LEVELS = 4  # folders above a network in which `config` may lie
PLAYER = "the player beside the file"


def is_asap(values: dict[str, Any]) -> bool:
    """Return True for ASAP parameters."""
    return set(values) >= KEYS


def file_of(network: Path) -> Path | None:
    """Return the file in a folder `config` above a network that describes it, or None."""
    for folder in network.resolve().parents[:LEVELS]:
        for path in sorted((folder / "config").glob("*.yaml")):
            with contextlib.suppress(PolicyError):  # another file of that folder
                if is_asap(read_file(path)):
                    return path
    return None


def read_asap(path: Path, values: dict[str, Any], network: PolicyNetwork) -> PolicyModel:
    """Read the policy of a network: a motion if its folder is named so in the file, otherwise walking.

    Raises:
        PolicyError: if a value is invalid.
    """
    d, wrong = Fields(values, str(path)), list[str]()
    n = int(d.number("NUM_JOINTS"))
    robot = sdk_joints(n)
    if robot is None:
        raise PolicyError(f"{path}: no known robot has {n} joints ('NUM_JOINTS'): write a description file")
    folder = network.path.resolve().parent.name
    performs = folder in d.within("mimic_robot_types") if "mimic_robot_types" in d else False
    used = _used(d, folder, n) if performs else np.arange(n)
    joints = tuple(robot[1][k] for k in used)
    acted = used if performs else np.arange(LEGS)
    driven = tuple(robot[1][k] for k in acted)
    if performs:
        terms = _terms(d, MOTION_TERMS, joints, driven, wrong)
    else:
        found = [_terms(d, key, joints, driven, wrong) for key in WALKING_TERMS if key in d]
        taken = [i.size for i in network.inputs]
        terms = next((one for one in found if [sum(t.size * (1 + t.history) for t in one)] == taken), found[0])
    default = d.numbers("DEFAULT_DOF_ANGLES", n)
    limits = [d.numbers(f"motor_pos_{end}_limit_list", n, far)[acted] for end, far in LIMITS]
    return PolicyModel(
        path=path,
        form=FORM,
        name=folder if performs else path.stem,
        network=network.path,
        inputs=plain_input(network, _blocks(terms), wrong),
        outputs=plain_output(network, len(acted), wrong),
        joints=joints,
        acted=driven,
        default=default[used],
        scale=np.full(len(acted), SCALE),
        offset=default[acted],
        action_clip=CLIP,
        target_clip=np.array(limits),
        kp=d.numbers("JOINT_KP", n)[acted],
        kd=d.numbers("JOINT_KD", n)[acted],
        torque_limit=d.numbers("motor_effort_limit_list", n)[acted] if "motor_effort_limit_list" in d else None,
        period=PERIOD,
        gait=None if performs else _gait(d),
        motion_length=positive(d.within("motion_length_s"), folder) if performs else 0.0,
        height_command=np.nan if performs else HEIGHT,
        held_gains=None if performs else np.array([d.numbers(f"JOINT_{g}", n) for g in ("KP", "KD")]),
        start=_posture(d, "start_upper_dof_pos", folder, default)[used] if performs else None,
        held=None if performs else _posture(d, "loco_upper_body_dof_pos", "", default),
        assumed=(
            Assumption("joint names", f"the SDK's order of {robot[0]}", "the maker of the robot"),
            Assumption("terms", "sorted by name, past frames as 'history'", PLAYER),
            Assumption("action scale", f"{SCALE:g}, clipped to {CLIP[0]:g} to {CLIP[1]:g}", PLAYER),
            Assumption("period", f"{PERIOD:g} s", PLAYER),
            Assumption("IMU", "in the root link (pelvis)", TRAINER),
        ),
        contradictions=tuple(dict.fromkeys(wrong)),
    )


def _gait(d: Fields) -> GaitSignal:
    period = checked_period(d.number("GAIT_PERIOD"), f"{d.where}: 'GAIT_PERIOD'")
    return GaitSignal(period, (0.0,), ZERO)


def _used(d: Fields, motion: str, n: int) -> np.ndarray:
    """Return the joints of a motion's robot: places of 1 in `robot_dofs`."""
    robot, masks = d.within("mimic_robot_types").text(motion), d.within("robot_dofs")
    if robot not in masks:
        raise PolicyError(f"{masks.where}: {UnknownNameError('robot', robot, sorted(map(str, masks.values)))}")
    found = np.flatnonzero(masks.numbers(robot, n))
    if not len(found):
        raise PolicyError(f"{masks.where}: '{shown(robot)}' has no joint")
    return found


def _posture(d: Fields, key: str, motion: str, default: np.ndarray) -> np.ndarray:
    """Return the default posture (n,) with the stated joints above the legs, of a motion or of all."""
    out, where = default.copy(), f"{d.where}: '{key}'"
    stated = d.values.get(key)
    if motion:
        stated, where = (stated.get(motion) if isinstance(stated, dict) else None), f"{where}: '{shown(motion)}'"
    if stated is not None:
        out[LEGS:] = default[LEGS:] + numbers(stated, len(out) - LEGS, where)
    return out


def _terms(d: Fields, key: str, joints: tuple[str, ...], driven: tuple[str, ...], wrong: list[str]) -> tuple[Term, ...]:
    """Return the terms of a frame, sorted by name; their `history` counts past frames."""
    rows, scales, out = d.within(key), d.within("obs_scales"), []
    for word in sorted(names(list(rows.values), f"{d.where}: '{key}'")):
        if (kind := kind_of(word)) is None:
            wrong.append(unknown_term(d.where, word))
            continue
        own = joints[len(driven) :] if kind == "joint_target" else joints
        size = len(own) if kind == "joint_target" else size_of(kind, len(joints), len(driven)) or 1
        past = history_length(rows.values[word], f"{rows.where}: '{shown(word)}'")
        out.append(make_term(word, kind, own, size, scales.numbers(word, size, 1.0), None, past))
    return tuple(out)


def _blocks(terms: tuple[Term, ...]) -> tuple[Block, ...]:
    """Return the present frame, with the past frames of all terms at the place of their name."""
    before = tuple(replace(t, history=1) for t in terms if t.name < PAST)
    after = tuple(replace(t, history=1) for t in terms if t.name >= PAST)
    past = Block(terms, order=NEWEST_FIRST, delayed=True, fill=FILL_ZERO)
    return tuple(b for b in (Block(before), past, Block(after)) if b.terms)
