"""YAML files that makers run their own policies with: Berkeley Humanoid Lite, FALCON, unitree_rl_gym; booster_gym's
reader is in `booster`.

Each fixes the terms of its observation in its own player, and names the network by a path of its own repository.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.errors import PolicyError, shown
from humanoid_control.hardware.unitree.models import MODELS
from humanoid_control.policy.formats import booster
from humanoid_control.policy.formats.parts import TRAINER, make_term, plain_input, plain_output, unknown_term
from humanoid_control.policy.formats.unitree import sdk_joints
from humanoid_control.policy.formats.values import (
    Fields,
    checked_period,
    command_ranges,
    history_length,
    is_file,
    names,
    pairs,
)
from humanoid_control.policy.model import RUNNING, ZERO, Assumption, Block, GaitSignal, PolicyModel, Term
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import kind_of, size_of

PERIOD = 0.02  # [s] of FALCON's player
SCALE, CLIP = 0.25, (-100.0, 100.0)  # of FALCON's player: action scale [rad], bounds of an action
STEP_CYCLE = 0.8  # [s] of unitree_rl_gym's players
# motors of the simulated player of unitree_rl_gym
GYM_LEGS = {"g1": range(12), "h1_2": range(12), "h1": (7, 3, 4, 5, 10, 8, 0, 1, 2, 11)}
IMU = Assumption("IMU", "in the root link (pelvis)", TRAINER)
CONTENT = "the player beside the file"
WORDS = ("velocity_command", "base_ang_vel", "projected_gravity", "joint_pos_rel", "joint_vel", "last_action")
Reader = Callable[[Path, dict[str, Any], PolicyNetwork | None], PolicyModel]


class MakerFile(NamedTuple):
    """Kind of file.

    Attributes:
        form: for the page.
        keys: top-level keys that recognise it; all must occur.
        network: keys of the network's path, separated by dots.
    """

    form: str
    keys: frozenset[str]
    network: str
    read: Reader


def maker_of(values: dict[str, Any]) -> MakerFile | None:
    """Return the kind of a file, or None."""
    return next((m for m in MAKERS if m.keys <= set(values)), None)


def network_of(path: Path, values: dict[str, Any], maker: MakerFile) -> Path:
    """Return the network: that of the path below the folder or its parent, or of its name; else the only one there.

    Raises:
        PolicyError: if the path is not a text.
    """
    *outer, key = maker.network.split(".")
    d = Fields(values, str(path))
    for part in outer:
        d = d.within(part)
    stated = PurePosixPath(d.text(key).replace("\\", "/"))
    folder = path.resolve().parent
    parts = [p for p in stated.parts if p not in ("..", ".", "/") and not p.startswith("{")]
    if not parts or any("\0" in p or len(p) > 200 for p in parts):
        raise PolicyError(f"{path}: '{key}' is not a path: {shown(stated)}")
    places = [folder.joinpath(*parts), folder.parent.joinpath(*parts), folder / parts[-1]]
    for place in places:
        for one in (place.with_suffix(".onnx"), place):
            if is_file(one) and one.resolve().is_relative_to(folder.parent):
                return one
    alone = sorted(folder.glob("*.onnx"))
    return alone[0] if len(alone) == 1 else places[-1]


def _terms(
    where: str, words: Sequence[str], sizes: tuple[int, int], of: Callable[[str, str, int], Term], wrong: list[str]
) -> tuple[Term, ...]:
    """Return terms by name.

    Args:
        sizes: numbers of joints and of actions.
        of: makes a term from its name, kind and size.
    """
    out = []
    for word in words:
        if (kind := kind_of(word)) is None:
            wrong.append(unknown_term(where, word))
        else:
            out.append(of(word, kind, size_of(kind, *sizes) or 1))
    return tuple(out)


# -------- Berkeley Humanoid Lite


def read_berkeley(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read a policy configuration of Berkeley Humanoid Lite.

    Raises:
        PolicyError: if a value is invalid.
    """
    d, wrong = Fields(values, str(path)), list[str]()
    joints = d.names("joints")
    n = len(joints)
    places = d.numbers("action_indices", int(d.number("num_actions", n)))
    if not all(p == int(p) and 0 <= p < n for p in places) or len(set(places)) < len(places):
        raise PolicyError(f"{path}: 'action_indices' must be distinct joints 0 to {n - 1}, got {shown(list(places))}")
    acted = places.astype(int)
    if history_length(d.values.get("history_length"), f"{path}: 'history_length'") > 1:
        wrong.append(f"{path}: 'history_length' above 1 is not supported: write a description file")
    terms = _terms(d.where, WORDS, (n, len(acted)), lambda w, k, s: make_term(w, k, joints, s), wrong)
    stated = d.number("num_observations")
    if (total := sum(t.size for t in terms)) != stated:
        wrong.append(f"{path}: num_observations is {stated:g}, but its terms have {total} numbers")
    default = d.numbers("default_joint_positions", n)
    low, high = d.number("action_limit_lower", -np.inf), d.number("action_limit_upper", np.inf)
    return PolicyModel(
        path=path,
        form=BERKELEY,
        name=path.stem,
        network=network.path if network else None,
        inputs=plain_input(network, (Block(terms),), wrong),
        outputs=plain_output(network, len(acted), wrong),
        joints=joints,
        acted=tuple(joints[k] for k in acted),
        default=default,
        scale=d.numbers("action_scale", len(acted)),
        offset=default[acted],
        action_clip=pairs([low, high], f"{path}: 'action_limit'") if np.isfinite([low, high]).all() else None,
        kp=d.numbers("joint_kp", n)[acted],
        kd=d.numbers("joint_kd", n)[acted],
        torque_limit=d.numbers("effort_limits", n)[acted] if "effort_limits" in d else None,
        period=checked_period(d.number("policy_dt"), f"{path}: 'policy_dt'"),
        assumed=(Assumption("terms", ", ".join(WORDS), CONTENT), IMU),
        contradictions=tuple(wrong),
    )


# -------- FALCON


def read_falcon(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read FALCON's configuration: joints in SDK order, terms sorted by name.

    Raises:
        PolicyError: if a value is invalid.
    """
    d, wrong = Fields(values, str(path)), list[str]()
    n = int(d.number("NUM_JOINTS", len(d.names("dof_names"))))
    found = sdk_joints(n)
    assumed = [
        Assumption("terms", "sorted by name", CONTENT),
        Assumption("action scale", f"{SCALE:g}, clipped to {CLIP[0]:g} to {CLIP[1]:g}", CONTENT),
        Assumption("period", f"{PERIOD:g} s", CONTENT),
        IMU,
    ]
    if found is None:
        joints = d.names("dof_names")
    else:  # its dof_names begin with hip yaw, its default angles, gains and motors with hip pitch
        joints = found[1]
        assumed.insert(0, Assumption("joint names", f"the SDK's order of {found[0]}, not dof_names", CONTENT))
    if len(joints) != n:
        raise PolicyError(f"{path}: 'dof_names' has {len(joints)} names for {n} joints")
    sizes, scales = d.within("obs_dims"), d.within("obs_scales")
    count = int(sizes.number("actions", n))
    if not 0 < count <= n:
        raise PolicyError(f"{path}: obs_dims: 'actions' must be 1 to {n}, got {count}")
    upper = joints[n - int(d.number("NUM_UPPER_BODY_JOINTS", n - count)) :]

    def term(word: str, kind: str, size: int) -> Term:
        own = upper if kind == "joint_target" else joints
        size = len(own) if kind == "joint_target" else size
        return make_term(word, kind, own, size, scales.numbers(word, size, 1.0))

    words = sorted(names(d.within("obs_dict").values.get("actor_obs"), f"{path}: 'actor_obs'"))
    terms = _terms(d.where, words, (n, count), term, wrong)
    for t in terms:
        if (stated := sizes.number(t.name, t.size)) != t.size:
            wrong.append(f"{path}: obs_dims of '{shown(t.name)}' is {stated:g}, but the term has {t.size} numbers")
    frames = d.values.get("history_length_dict")
    if isinstance(frames, dict) and history_length(frames.get("actor_obs"), f"{path}: 'history_length_dict'") > 1:
        wrong.append(f"{path}: a history above 1 is not supported: write a description file")
    default = d.numbers("DEFAULT_DOF_ANGLES", n)
    period = checked_period(d.number("GAIT_PERIOD"), f"{path}: 'GAIT_PERIOD'") if "GAIT_PERIOD" in d else None
    return PolicyModel(
        path=path,
        form=FALCON,
        name=path.stem,
        network=network.path if network else None,
        inputs=plain_input(network, (Block(terms),), wrong),
        outputs=plain_output(network, count, wrong),
        joints=joints,
        acted=joints[:count],
        default=default,
        scale=np.full(count, SCALE),
        offset=default[:count],
        action_clip=CLIP,
        kp=d.numbers("JOINT_KP", n)[:count],
        kd=d.numbers("JOINT_KD", n)[:count],
        torque_limit=d.numbers("motor_effort_limit_list", n)[:count] if "motor_effort_limit_list" in d else None,
        period=PERIOD,
        gait=None if period is None else GaitSignal(period, (0.0,), ZERO),
        assumed=tuple(assumed),
        contradictions=tuple(wrong),
    )


# -------- unitree_rl_gym

GYM_WORDS = (
    *("base_ang_vel", "projected_gravity", "velocity_command", "joint_pos_rel", "joint_vel", "last_action"),
    *("sin_phase", "cos_phase"),
)
GYM_SCALES = {
    "base_ang_vel": "ang_vel_scale",
    "velocity_command": "cmd_scale",
    "joint_pos_rel": "dof_pos_scale",
    "joint_vel": "dof_vel_scale",
}


def read_gym(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read a configuration of unitree_rl_gym, of its real or its simulated player.

    Raises:
        PolicyError: if a value is invalid.
    """
    d, wrong = Fields(values, str(path)), list[str]()
    n = int(d.number("num_actions"))
    if not 0 < n <= 64:
        raise PolicyError(f"{path}: 'num_actions' must be 1 to 64, got {n}")
    robot, joints = _gym_joints(d, n)

    def term(word: str, kind: str, size: int) -> Term:
        scale = d.numbers(GYM_SCALES[kind], size, 1.0) if kind in GYM_SCALES else 1.0
        return make_term(word, kind, joints, size, scale)

    terms = _terms(d.where, GYM_WORDS, (n, n), term, wrong)
    stated = d.number("num_obs")
    if (total := sum(t.size for t in terms)) != stated:
        wrong.append(f"{path}: num_obs is {stated:g}, but its terms have {total} numbers")
    default = d.numbers("default_angles", n)
    most = d.numbers("max_cmd", 3) if "max_cmd" in d else None
    ranges = (
        {} if most is None else {k: [-abs(m), abs(m)] for k, m in zip(("x", "y", "yaw"), most.tolist(), strict=True)}
    )
    period = d.number("control_dt", d.number("simulation_dt", 0.002) * d.number("control_decimation", 10.0))
    return PolicyModel(
        path=path,
        form=GYM,
        name=path.stem,
        network=network.path if network else None,
        inputs=plain_input(network, (Block(terms),), wrong),
        outputs=plain_output(network, n, wrong),
        joints=joints,
        acted=joints,
        default=default,
        scale=d.numbers("action_scale", n),
        offset=default.copy(),
        kp=d.numbers("kps", n),
        kd=d.numbers("kds", n),
        period=checked_period(period, f"{path}: period"),
        commands=command_ranges(ranges, f"{path}: 'max_cmd'"),
        gait=GaitSignal(STEP_CYCLE, (0.0,), RUNNING),
        assumed=(
            Assumption("joint names", f"the SDK's order of {robot}", "the maker of the robot"),
            Assumption("terms", ", ".join(GYM_WORDS), CONTENT),
            Assumption("gait", f"{STEP_CYCLE:g} s, running at rest", CONTENT),
            IMU,
        ),
        contradictions=tuple(wrong),
    )


def _gym_joints(d: Fields, n: int) -> tuple[str, tuple[str, ...]]:
    """Return robot and driven joints, by motor places or the first ones of the robot.

    Raises:
        PolicyError: if the robot is unknown, or a place is not a motor.
    """
    paths = "/".join(str(d.values.get(k, "")) for k in ("xml_path", "policy_path")).lower()
    words = {w.removesuffix("_description") for w in f"{paths}/{Path(d.where).stem}".split("/")}
    robot = next((name for name in GYM_LEGS if name in words), "")
    if not robot:
        raise PolicyError(f"{d.where}: its paths name none of {', '.join(GYM_LEGS)}: write a description file")
    motors = {m.id: f"{m.name}_joint" for m in MODELS[robot].motors}
    places = d.values.get("leg_joint2motor_idx", list(GYM_LEGS[robot]))
    if (
        not isinstance(places, list)
        or len(places) != n
        or len({str(p) for p in places}) < n
        or not set(map(str, places)) <= set(map(str, motors))
    ):
        raise PolicyError(f"{d.where}: the legs must be {n} distinct motors of {robot}, got {shown(places)}")
    return robot, tuple(motors[int(p)] for p in places)


BERKELEY, FALCON, GYM = "Berkeley Humanoid Lite YAML", "FALCON YAML", "unitree_rl_gym YAML"
MAKERS = (
    MakerFile(
        BERKELEY,
        frozenset({"policy_checkpoint_path", "joints", "joint_kp", "default_joint_positions"}),
        "policy_checkpoint_path",
        read_berkeley,
    ),
    MakerFile(
        booster.FORM, frozenset({"common", "policy", "prepare", "mech"}), "policy.policy_path", booster.read_booster
    ),
    MakerFile(FALCON, frozenset({"obs_dict", "obs_dims", "obs_scales", "JOINT_KP"}), "model_path", read_falcon),
    MakerFile(
        GYM,
        frozenset({"policy_path", "num_obs", "num_actions", "kps", "default_angles", "cmd_scale"}),
        "policy_path",
        read_gym,
    ),
)
