"""Faults put into a policy on purpose: in its file, between its sensors and it, or in its timing; each by a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.policy import PolicyModel, RobotState
from humanoid_control.policy.model import NEWEST_FIRST, OLDEST_FIRST, Block

Random = np.random.Generator
Senses = Callable[[RobotState, float], RobotState]
ONSET = 1.5  # [s] at which what is not a number begins
LATE = 0.030  # [s]
TICK = "observation one tick old"


class PolicyFault(NamedTuple):
    """A fault.

    Attributes:
        kind: of KINDS. detail: which joint, which factor.
        model: of the policy, with what is wrong in its file. senses: changes what the policy senses; None: nothing.
        mirrored: places of joints in the robot's order that are sensed and driven with the other sign.
        delay: periods by which all that is sensed is old. late: by which inferences are late [s].
        onset: when it begins [s].
    """

    kind: str
    detail: str
    model: PolicyModel
    senses: Senses | None = None
    mirrored: tuple[int, ...] = ()
    delay: int = 0
    late: float = 0.0
    onset: float = 0.0


def _renamed(model: PolicyModel, names: dict[str, str]) -> PolicyModel:
    """The same file with other names of joints."""

    def of(joints: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(j, j) for j in joints)

    def block(b: Block) -> Block:
        return replace(b, terms=tuple(replace(t, joints=of(t.joints)) for t in b.terms))

    inputs = tuple(replace(one, blocks=tuple(block(b) for b in one.blocks)) for one in model.inputs)
    return replace(model, joints=of(model.joints), acted=of(model.acted), inputs=inputs)


def _swap(model: PolicyModel, random: Random) -> PolicyFault:
    """Two joints that stand in each other's place in the file."""
    a, b = random.choice(len(model.acted), 2, replace=False)
    names = {model.acted[a]: model.acted[b], model.acted[b]: model.acted[a]}
    return PolicyFault("two joints swapped", " and ".join(names), _renamed(model, names))


def _sign(model: PolicyModel, random: Random) -> PolicyFault:
    joint = int(random.integers(len(model.acted)))
    return PolicyFault("sign of a joint", model.acted[joint], model, mirrored=(joint,))


def _scaled(factor: float) -> Callable[[PolicyModel, Random], PolicyFault]:
    def make(model: PolicyModel, random: Random) -> PolicyFault:
        return PolicyFault(f"scale x {factor:g}", "", replace(model, scale=factor * model.scale))

    return make


def _unit_gains(model: PolicyModel, random: Random) -> PolicyFault:
    return PolicyFault("kp 1", "", replace(model, kp=np.ones_like(model.kp)))


def _other_gains(model: PolicyModel, random: Random) -> PolicyFault:
    """Stiffness and damping of a robot that is lighter, or heavier."""
    name, kp, kd = (("a small robot", 20.0, 2.0), ("a large robot", 300.0, 6.0))[int(random.integers(2))]
    n = len(model.acted)
    return PolicyFault("gains of another robot", name, replace(model, kp=np.full(n, kp), kd=np.full(n, kd)))


def _quaternion(model: PolicyModel, random: Random) -> PolicyFault:
    def senses(state: RobotState, time: float) -> RobotState:
        return state._replace(orientation=state.orientation[[3, 0, 1, 2]])

    return PolicyFault("quaternion order", "w first", model, senses)


def _turned(model: PolicyModel, random: Random) -> PolicyFault:
    axis, angle = int(random.integers(3)), float(random.choice([0.5, -0.5, 1.0])) * np.pi
    R = pin.AngleAxis(angle, np.eye(3)[axis]).toRotationMatrix()

    def senses(state: RobotState, time: float) -> RobotState:
        turned = pin.Quaternion(pin.Quaternion(state.orientation).toRotationMatrix() @ R).coeffs()
        return state._replace(orientation=turned, angular_velocity=R.T @ state.angular_velocity)

    return PolicyFault("IMU turned", f"{np.degrees(angle):.0f} deg about {'xyz'[axis]}", model, senses)


def _other_link(model: PolicyModel, random: Random) -> PolicyFault:
    link = str(random.choice(["torso_link", "left_hip_yaw_link", "left_shoulder_pitch_link"]))
    return PolicyFault("IMU in another link", link, replace(model, imu=link))


def _old(model: PolicyModel, random: Random) -> PolicyFault:
    return PolicyFault(TICK, "", model, delay=1)


def _slow(model: PolicyModel, random: Random) -> PolicyFault:
    return PolicyFault("inference of 30 ms", "", model, late=LATE, onset=ONSET)


def _not_a_number(model: PolicyModel, random: Random) -> PolicyFault:
    field = str(random.choice(["q", "v", "orientation", "angular_velocity"]))
    place = float(random.random())

    def senses(state: RobotState, time: float) -> RobotState:
        if time < ONSET:
            return state
        values = getattr(state, field).copy()
        values[int(place * len(values))] = np.nan
        return state._replace(**{field: values})

    return PolicyFault("not a number", field, model, senses, onset=ONSET)


def _wrong_robot(model: PolicyModel, random: Random) -> PolicyFault:
    return PolicyFault("wrong robot", "names of another one", _renamed(model, {j: f"l_{j}" for j in model.joints}))


def _history(model: PolicyModel, random: Random) -> PolicyFault:
    """Histories in the other order; that of the observation a tick ago where the policy has none."""

    def turned(block: Block) -> Block:
        return replace(block, order=NEWEST_FIRST if block.order == OLDEST_FIRST else OLDEST_FIRST)

    if not any(t.history > 1 for t in model.terms):
        return _old(model, random)
    inputs = tuple(replace(i, blocks=tuple(turned(b) for b in i.blocks)) for i in model.inputs)
    return PolicyFault("history order", "", replace(model, inputs=inputs))


KINDS: tuple[Callable[[PolicyModel, Random], PolicyFault], ...] = (
    *(_swap, _sign, _scaled(2.0), _scaled(0.5), _unit_gains, _other_gains, _quaternion),
    *(_turned, _other_link, _old, _slow, _not_a_number, _wrong_robot, _history),
)


def fault_of(model: PolicyModel, number: int) -> PolicyFault:
    """A fault by its number: kinds follow each other, and the number is the seed of what is random.

    Args:
        model: of a policy without a fault.
    """
    return KINDS[number % len(KINDS)](model, np.random.default_rng(number))
