"""booster_gym: the YAML file of its player for a Booster T1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import PolicyError
from humanoid_control.policy.formats.parts import TRAINER, make_term, plain_input, plain_output
from humanoid_control.policy.formats.values import Fields, checked_period
from humanoid_control.policy.model import SILENT, Assumption, Block, GaitSignal, PolicyModel, Term
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import size_of

FORM = "booster_gym YAML"
SIDES, ARM = ("Left", "Right"), ("Shoulder_Pitch", "Shoulder_Roll", "Elbow_Pitch", "Elbow_Yaw")
LEG = ("Hip_Pitch", "Hip_Roll", "Hip_Yaw", "Knee_Pitch", "Ankle_Pitch", "Ankle_Roll")
JOINTS = (
    *("AAHead_yaw", "Head_pitch"),
    *(f"{side}_{joint}" for side in SIDES for joint in ARM),
    "Waist",
    *(f"{side}_{joint}" for side in SIDES for joint in LEG),
)
TERMS = {  # in the order of the player, with the key of the scale
    "projected_gravity": "gravity",
    "base_ang_vel": "ang_vel",
    "velocity_command": "lin_vel",
    "cos_phase": "",
    "sin_phase": "",
    "joint_pos_rel": "dof_pos",
    "joint_vel": "dof_vel",
    "last_action": "",
}
PLAYER = "the player beside the file"


def read_booster(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read a configuration of booster_gym's player: it observes and drives the legs.

    Raises:
        PolicyError: if a value is invalid.
    """
    d, wrong = Fields(values, str(path)), list[str]()
    common, policy = d.within("common"), d.within("policy")
    scales, control = policy.within("normalization"), policy.within("control")
    n, count = len(JOINTS), int(policy.number("num_actions"))
    if not 0 < count <= n:
        raise PolicyError(f"{policy.where}: 'num_actions' must be 1 to {n}, got {count}")
    legs, clip = JOINTS[n - count :], scales.number("clip_actions", np.inf)
    if clip <= 0:
        raise PolicyError(f"{scales.where}: 'clip_actions' must be above 0, got {clip:g}")
    bounds = (-clip, clip) if np.isfinite(clip) else None

    def term(kind: str, key: str) -> Term:
        size = size_of(kind, count, count) or 1
        scale = np.full(size, scales.number(key, 1.0) if key else 1.0)
        if kind == "velocity_command":
            scale[2] = scales.number("ang_vel", 1.0)
        return make_term(kind, kind, legs, size, scale, bounds if kind == "last_action" else None)

    terms = tuple(term(kind, key) for kind, key in TERMS.items())
    stated = policy.number("num_observations")
    if (total := sum(t.size for t in terms)) != stated:
        wrong.append(f"{path}: num_observations is {stated:g}, but its terms have {total} numbers")
    rate = policy.number("gait_frequency")
    if rate <= 0:
        raise PolicyError(f"{policy.where}: 'gait_frequency' must be above 0, got {rate:g}")
    default = common.numbers("default_qpos", n)
    gains = np.array([common.numbers(key, n) for key in ("stiffness", "damping")])
    return PolicyModel(
        path=path,
        form=FORM,
        name=path.stem,
        network=network.path if network else None,
        inputs=plain_input(network, (Block(terms),), wrong),
        outputs=plain_output(network, count, wrong),
        joints=JOINTS,
        acted=legs,
        default=default,
        scale=control.numbers("action_scale", count),
        offset=default[n - count :],
        action_clip=bounds,
        kp=gains[0, n - count :],
        kd=gains[1, n - count :],
        held_gains=gains,
        torque_limit=common.numbers("torque_limit", n)[n - count :] if "torque_limit" in common else None,
        period=checked_period(common.number("dt") * control.number("decimation"), f"{path}: dt x decimation"),
        gait=GaitSignal(checked_period(1.0 / rate, f"{policy.where}: 1 / 'gait_frequency'"), (0.0,), SILENT),
        assumed=(
            Assumption("joint names", "those of the T1's URDF", PLAYER),
            Assumption("terms", ", ".join(TERMS), PLAYER),
            Assumption("IMU", "in the root link (Trunk)", TRAINER),
        ),
        contradictions=tuple(wrong),
    )
