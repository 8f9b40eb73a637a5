"""Checks of a policy before it runs.

A contradiction prevents running; a note is a hint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import PolicyError, first_few, nearest_names, shown
from humanoid_control.policy.model import (
    ACTION,
    DAMPING,
    REFERENCE,
    STIFFNESS,
    TARGET,
    Input,
    PolicyModel,
)
from humanoid_control.policy.network import PolicyNetwork, try_network
from humanoid_control.policy.observation import rest_inputs
from humanoid_control.policy.terms import KINDS, size_of
from humanoid_control.robots import Robot

CONTRADICTION, NOTE = "contradiction", "note"
DRIVE_RATE = 500.0  # [Hz] of the drives' position loop
LEAST_SHARE, MOST_SHARE = 0.02, 4.0  # range of scale * kp / torque limit; covers all public policies
MOST_AT_REST = 1.5  # median share of torque limits; public policies of a 16 kg robot reach 1.0 for some joints
UNIT_SLACK = 0.1  # deviation of a quaternion's length from 1
STIFFEST = 5000.0  # [N m/rad]
RANGE_SLACK = 0.01  # [rad] excess of joint ranges in rest postures of public policies
SIDE_SLACK, LEAST_OF_SIDES = 0.05, 0.05  # permitted relative difference of sides, and smallest compared value
LEVEL, SAME_HEIGHT = 0.25, 0.06  # [rad], [m] tolerance of soles in a rest posture; public policies: 0.05, 0.0
UNITS = {"kp": "N m/rad", "kd": "N m s/rad"}


class PolicyRemark(NamedTuple):
    """Result of a check: CONTRADICTION or NOTE, and text."""

    level: str
    text: str


@dataclass(frozen=True)
class Examination:
    """Policy with the results of all checks.

    Attributes:
        network: None: unreadable.
        targets: first inference at rest (len(acted),) [rad], or None.
        torques: requested at rest (len(acted),) [N m], or None.
    """

    model: PolicyModel
    network: PolicyNetwork | None
    findings: tuple[PolicyRemark, ...]
    targets: np.ndarray | None
    kp: np.ndarray
    kd: np.ndarray
    torques: np.ndarray | None

    @property
    def contradictions(self) -> list[str]:
        """Reasons not to run it."""
        return [f.text for f in self.findings if f.level == CONTRADICTION]


def examine(model: PolicyModel, network: PolicyNetwork | None, robot: Robot | None = None) -> Examination:
    """Check a policy, and against a robot if given.

    Raises:
        ModuleNotFoundError: if onnxruntime is not installed.
    """
    found = [PolicyRemark(CONTRADICTION, text) for text in model.contradictions]
    found += _check_inputs(model) + _check_outputs(model)
    if network is not None and network.bad_weights:
        names = first_few(shown(n or "a constant") for n in network.bad_weights)
        found.append(_wrong(model, f"non-numeric weights: {names}; export it again"))
    outputs: dict[str, np.ndarray] | None = None
    if network is not None and not any(f.level == CONTRADICTION for f in found):
        try:
            outputs = try_network(network.path, rest_inputs(model, {t.name: t.dtype for t in network.inputs}))
        except PolicyError as e:
            found.append(PolicyRemark(CONTRADICTION, str(e)))
    kp, kd = model.kp, model.kd
    targets = None
    if outputs is not None:
        bad = [name for name, values in outputs.items() if not np.isfinite(values).all()]
        if bad:
            found.append(_wrong(model, f"at rest the output {shown(bad[0])} is non-numeric: the policy cannot run"))
        else:
            targets, kp, kd = _targets_of(model, outputs)
            found += _check_rotations(model, outputs)
    found += _check_gains(model, kp, kd) + _check_sides(model, kp, kd) + _check_rate(model) + _check_commands(model)
    limits = model.torque_limit
    if robot is not None:
        missing = _check_names(model, robot)
        found += missing
        if not missing:
            index = [robot.index[j] for j in model.acted]
            limits = robot.effort[index]
            found += _check_posture(model, robot) + _check_soles(model, robot) + _check_links(model, robot)
    torques = None
    if targets is not None:
        torques = kp * (targets - np.array([model.rest_of(j) for j in model.acted]))
        found += _check_torques(model, torques, limits)
    if limits is not None and np.isfinite(kp).all():
        found += _check_scales(model, kp, limits)
    found.sort(key=lambda f: f.level != CONTRADICTION)
    return Examination(model, network, tuple(found), targets, kp, kd, torques)


def _wrong(model: PolicyModel, text: str) -> PolicyRemark:
    return PolicyRemark(CONTRADICTION, f"{model.path}: {text}")


def _note(model: PolicyModel, text: str) -> PolicyRemark:
    return PolicyRemark(NOTE, f"{model.path}: {text}")


def _targets_of(model: PolicyModel, outputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets, kp and kd of one inference."""
    kp, kd = model.kp, model.kd
    for output in model.outputs:
        values = outputs[output.name].ravel()
        if output.kind == ACTION:
            action = values if model.action_clip is None else np.clip(values, *model.action_clip)
            targets = model.offset + model.scale * action
        elif output.kind == TARGET:
            targets = values
        elif output.kind == STIFFNESS:
            kp = values
        elif output.kind == DAMPING:
            kd = values
    if model.target_clip is not None:
        targets = np.clip(targets, *model.target_clip)
    return targets, kp, kd


def _check_rotations(model: PolicyModel, outputs: dict[str, np.ndarray]) -> list[PolicyRemark]:
    """Check that embedded motions hold unit quaternions."""
    found = []
    for output in model.outputs:
        if "quat" in output.kind:
            size = np.linalg.norm(outputs[output.name].reshape(-1, 4), axis=1) if output.size % 4 == 0 else np.zeros(1)
            if np.abs(size - 1.0).max() > UNIT_SLACK:
                found.append(_wrong(model, f"the output '{shown(output.name)}' does not contain unit quaternions"))
    return found


# -------- The file by itself


def _check_inputs(model: PolicyModel) -> list[PolicyRemark]:
    found = []
    for one in model.inputs:
        if one.blocks and (size := sum(b.size for b in one.blocks)) != one.size:
            found.append(_wrong(model, _size_mismatch(model, one, size)))
        for term in (t for b in one.blocks for t in b.terms):
            expected = size_of(term.kind, len(term.joints) or len(model.joints), len(model.acted))
            if expected and expected != term.size:
                found.append(_wrong(model, f"the term '{shown(term.name)}' has {term.size} numbers, not {expected}"))
            if reason := KINDS[term.kind].refused:
                found.append(_wrong(model, f"the term '{shown(term.name)}' is required, but {reason}"))
            if term.kind in ("phase", "sin_phase", "cos_phase") and model.gait is None:
                found.append(_wrong(model, f"the term '{shown(term.name)}' needs a gait: state its period"))
            if term.kind == "motion_phase" and not model.motion_length:
                text = f"the term '{shown(term.name)}' needs the length of its motion: state motion_length [s]"
                found.append(_wrong(model, text))
            if term.kind == "command_height" and np.isnan(model.height_command):
                text = f"the term '{shown(term.name)}' needs a commanded height: state height_command [m]"
                found.append(_wrong(model, text))
            if term.kind == "base_lin_vel":
                found.append(
                    _note(model, f"the term '{term.name}' needs the base velocity, which only an estimator provides")
                )
    found += _check_reference(model)
    if not any(one.blocks for one in model.inputs):
        found.append(_wrong(model, "it has no observation input"))
    return found


def _check_reference(model: PolicyModel) -> list[PolicyRemark]:
    """Check that reference terms have a source."""
    held = {o.kind.partition(".")[2] for o in model.outputs if o.kind.startswith(f"{REFERENCE}.")}
    needs = {t.kind for t in model.terms}
    if held:
        missing = sorted({"joint_pos", "joint_vel"} - held)
        return [_wrong(model, f"the network gives no '{missing[0]}' of its motion")] if missing else []
    if "reference_anchor_pos" in needs:
        return [_wrong(model, "the pose of an anchor link is known only for motions stored in the network")]
    return []


def _size_mismatch(model: PolicyModel, one: Input, size: int) -> str:
    terms = ", ".join(f"{t.name} {t.size}" + (f" x {t.history}" if t.history > 1 else "") for t in model.terms)
    return (
        f"the input '{shown(one.name)}' takes {one.size} numbers, but its terms have {size} ({shown(terms, 300)}): a "
        "term, a joint or the history is wrong"
    )


def _check_outputs(model: PolicyModel) -> list[PolicyRemark]:
    found, n = [], len(model.acted)
    asked = [o for o in model.outputs if o.kind in (ACTION, TARGET)]
    if len(asked) != 1:
        found.append(_wrong(model, f"it must have one output with an action or targets, got {len(asked)}"))
    for output in model.outputs:
        width = n if output.kind in (ACTION, TARGET, STIFFNESS, DAMPING) else output.size
        if output.kind in (f"{REFERENCE}.joint_pos", f"{REFERENCE}.joint_vel"):
            width = len(model.joints)
        if output.size != width:
            found.append(
                _wrong(
                    model,
                    f"the output '{shown(output.name)}' has {output.size} numbers for {width} joints: the joints do "
                    "not match",
                )
            )
    return found


def _check_gains(model: PolicyModel, kp: np.ndarray, kd: np.ndarray) -> list[PolicyRemark]:
    if not np.isfinite(np.concatenate([kp, kd])).all():
        return []
    found = []
    for name, gains in (("kp", kp), ("kd", kd)):
        k = int(np.argmin(gains))
        joint, value = model.acted[k], gains[k]
        if value < 0 or (name == "kp" and value == 0) or np.signbit(gains).any():
            found.append(
                _wrong(model, f"{name} of {joint} is {value:g} {UNITS[name]}: gains must be positive; export it again")
            )
        elif name == "kp" and np.all(gains == 1.0):  # every kd may be 1
            found.append(
                _wrong(
                    model, f"every {name} is 1 {UNITS[name]}: a placeholder; mjlab wrote such files: export it again"
                )
            )
        elif gains.max() > STIFFEST:
            worst = model.acted[int(np.argmax(gains))]
            found.append(
                _wrong(
                    model,
                    f"{name} of {worst} is {gains.max():g} {UNITS[name]}: implausible for a drive; check the units",
                )
            )
    if not found and not np.any(kd):
        found.append(_wrong(model, "every kd is 0: nothing damps the joints; export it again"))
    return found


def _check_sides(model: PolicyModel, kp: np.ndarray, kd: np.ndarray) -> list[PolicyRemark]:
    """Compare left and right joints."""
    rows = [("kp", UNITS["kp"], kp), ("kd", UNITS["kd"], kd)]
    if model.output(ACTION) is not None:
        rows.append(("action scale", "rad", np.abs(model.scale)))
    rows.append(("rest posture", "rad", np.abs([model.rest_of(j) for j in model.acted])))
    found = []
    for what, unit, values in rows:
        by_name = dict(zip(model.acted, values.tolist(), strict=True))
        odd = [
            f"{joint} {value:.4g}, {other} {by_name[other]:.4g}"
            for joint, value in by_name.items()
            if (other := _other_side(joint)) in by_name
            and abs(value - by_name[other]) > SIDE_SLACK * max(value, by_name[other], LEAST_OF_SIDES)
        ]
        if odd:
            text = f"{what} [{unit}] differs between left and right: {first_few(odd)}: is the joint order different?"
            found.append(_note(model, text))
    return found


def _other_side(joint: str) -> str:
    """Return the right-side joint of a left-side one, or ''."""
    for left, right in (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT")):
        if left in joint:
            return joint.replace(left, right)
    for left, right in (("l_", "r_"), ("L_", "R_")):
        if joint.startswith(left):
            return right + joint.removeprefix(left)
    return ""


def _check_rate(model: PolicyModel) -> list[PolicyRemark]:
    ticks = model.period * DRIVE_RATE
    if abs(ticks - round(ticks)) < 1e-6 and ticks >= 1:
        return []
    return [
        _note(
            model,
            f"its rate, {1 / model.period:g} Hz, does not divide that of the drives, {DRIVE_RATE:g} Hz: targets jitter",
        )
    ]


def _check_commands(model: PolicyModel) -> list[PolicyRemark]:
    return [
        _note(
            model, f"the range of the command '{axis}', {low:g} to {high:g}, does not contain 0: the robot cannot stand"
        )
        for axis, (low, high) in model.commands.items()
        if not low <= 0.0 <= high
    ]


# -------- Against the robot


def _check_names(model: PolicyModel, robot: Robot) -> list[PolicyRemark]:
    missing = [j for j in model.joints if j not in robot.index]
    if not missing:
        return []
    near = nearest_names(missing[0], robot.joint_names)
    offer = f"did you mean {near[0]}? " if near else ""
    return [
        _wrong(
            model,
            f"{len(missing)} of its {len(model.joints)} joints are not joints of {robot.name}, which has {robot.n}: "
            f"{first_few(missing)}: {offer}it belongs to another robot, or to another version of it",
        )
    ]


def _check_posture(model: PolicyModel, robot: Robot) -> list[PolicyRemark]:
    index = [robot.index[j] for j in model.joints]
    low, high = robot.lower[index], robot.upper[index]
    excess = np.maximum(low - model.default, model.default - high)
    k = int(np.argmax(excess))
    if excess[k] <= RANGE_SLACK:
        return []
    joint = model.joints[k]
    return [
        _wrong(
            model,
            f"the rest posture of {joint}, {model.default[k]:.3g} rad, is outside its range "
            f"{low[k]:.3g} to {high[k]:.3g}: the joint order or the robot is different",
        )
    ]


def _check_soles(model: PolicyModel, robot: Robot) -> list[PolicyRemark]:
    q = robot.joints(robot.q("neutral")).copy()
    index = [robot.index[j] for j in model.joints]
    q[index] = np.clip(model.default, robot.lower[index], robot.upper[index])
    tilts, heights = sole_tilts(robot, q, np.eye(3))
    if not len(tilts):
        return []
    k = int(np.argmax(tilts))
    if tilts[k] > LEVEL:
        said = f"the sole of {robot.feet[k].name} is tilted by {tilts[k]:.2f} rad"
    elif np.ptp(heights) > SAME_HEIGHT:
        said = f"one sole is {1000 * np.ptp(heights):.0f} mm above the other"
    else:
        return []
    return [_note(model, f"in its rest posture {said}: is the joint order or the robot different?")]


def sole_tilts(robot: Robot, q: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sole tilts [rad] and heights from the root link [m] (feet,).

    Args:
        q: (n,) [rad].
        R: root link in the world (3, 3).
    """
    model, data = robot.model, robot.data
    pin.framesForwardKinematics(model, data, robot.q(q, pin.SE3(R, np.zeros(3))))
    placements = [data.oMf[model.getFrameId(f.link, pin.FrameType.BODY)] for f in robot.feet]
    tilts = [np.arccos(np.clip(X.rotation[2, 2], -1.0, 1.0)) for X in placements]
    heights = [X.act(f.corners().mean(axis=0))[2] for X, f in zip(placements, robot.feet, strict=True)]
    return np.array(tilts), np.array(heights)


def _check_links(model: PolicyModel, robot: Robot) -> list[PolicyRemark]:
    found = []
    touching = [("may_touch", link) for pair in model.may_touch for link in pair]
    for what, link in (("IMU", model.imu), ("anchor", model.anchor), *touching):
        if link and not robot.model.existFrame(link):
            near = nearest_names(link, [f.name for f in robot.model.frames])
            offer = f": did you mean {near[0]}?" if near else ""
            found.append(_wrong(model, f"{what}: {robot.name} has no link '{shown(link)}'{offer}"))
    return found


def _check_torques(model: PolicyModel, torques: np.ndarray, limits: np.ndarray | None) -> list[PolicyRemark]:
    if limits is None:
        return []
    share = np.abs(torques) / limits
    over = [f"{model.acted[k]} {torques[k]:.0f} of {limits[k]:.0f}" for k in np.argsort(-share) if share[k] > 1.0]
    if not over:
        return []
    text = f"at rest it exceeds the torque limits of {len(over)} joints [N m]: {first_few(over)}"
    if np.median(share) > MOST_AT_REST:
        return [_wrong(model, f"{text}: a scale, the gains or the joint order is wrong")]
    return [_note(model, f"{text}: the drives clip it")]


def _check_scales(model: PolicyModel, kp: np.ndarray, limits: np.ndarray) -> list[PolicyRemark]:
    if model.output(ACTION) is None:
        return []
    share = np.abs(model.scale) * kp / limits
    k = int(np.argmax(np.abs(np.log(np.maximum(share, 1e-9)))))
    if LEAST_SHARE <= share[k] <= MOST_SHARE:
        return []
    return [
        _note(
            model,
            f"an action of 1 asks {model.acted[k]} for {share[k] * limits[k]:.3g} N m, {share[k]:.2g} of its limit: "
            "the action scale or the gains may belong to another policy",
        )
    ]
