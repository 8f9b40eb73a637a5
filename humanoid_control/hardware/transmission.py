"""Transmissions: joints of the robot on one side, actuators of the buses on the other, in both directions.

A gear moves one joint: q_joint = sign q_actuator / ratio + offset. Where several actuators move several joints, as the
two screws of an ankle do, the mechanism of the robot's drives says how: phi(q) = sign q_actuator + offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, Flag
from humanoid_control.jit import kernel
from humanoid_control.multibody.mechanisms import DriveMechanism
from humanoid_control.numerics.array_types import B1, F1, I1, I2
from humanoid_control.numerics.packed import BoundRecord, Table, unpack

FRESH, ENABLED, FAULT = int(Flag.FRESH), int(Flag.ENABLED), int(Flag.FAULT)
Words = Annotated[np.ndarray, np.uint32, 1]
Bytes = Annotated[np.ndarray, np.uint8, 1]


@dataclass(frozen=True)
class Gear:
    """One actuator that moves one joint.

    Attributes:
        joint, actuator: indices. ratio: actuator by joint, above zero. sign: +1 or -1.
        offset: joint angle where the actuator reads zero [rad].
    """

    joint: int
    actuator: int
    ratio: float = 1.0
    sign: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Linkage:
    """As many actuators as joints, coupled by a mechanism.

    Attributes:
        mechanism: with motor angles phi of joint angles q. joints, actuators: indices.
        signs: (m,) +1 or -1. offsets: (m,) motor angle phi where the actuator reads zero [rad].
    """

    mechanism: DriveMechanism
    joints: tuple[int, ...]
    actuators: tuple[int, ...]
    signs: np.ndarray
    offsets: np.ndarray


class JointReading:
    """State of n joints out of the states of their actuators; of several, the worst counts.

    Attributes:
        q: (n,) [rad]. v: (n,) [rad/s]. tau: (n,) [N m]; NaN: not measured.
        temperature: (n,) of the hottest motor [deg C]. voltage: (n,) lowest [V]. stamp: (n,) oldest [s].
        code: (n,) fault code of a drive. fresh, enabled, failed: (n,) all samples new; all powered; any drive failed.
    """

    def __init__(self, n: int) -> None:
        self.q, self.v, self.tau, self.temperature, self.voltage, self.stamp = np.full((6, n), np.nan)
        self.code = np.zeros(n, np.uint32)
        self.fresh, self.enabled, self.failed = np.zeros((3, n), dtype=bool)


class GearTable(NamedTuple):
    """Gears of a robot as arrays.

    Attributes:
        joint, actuator: (g,) indices. ratio: (g,) with its sign. offset: (g,) [rad].
        of_joint: (n, widest) actuators of every joint, also those of linkages; repeated where there are fewer.
    """

    joint: I1
    actuator: I1
    ratio: F1
    offset: F1
    of_joint: I2


class ActuatorColumns(NamedTuple):
    """Arrays of an `ActuatorState`."""

    q: F1
    v: F1
    tau: F1
    temperature: F1
    voltage: F1
    stamp: F1
    code: Words
    flags: Bytes


class JointColumns(NamedTuple):
    """Arrays of a `JointReading`."""

    q: F1
    v: F1
    tau: F1
    temperature: F1
    voltage: F1
    stamp: F1
    code: Words
    fresh: B1
    enabled: B1
    failed: B1


class GearReading(NamedTuple):
    """Everything that reading takes."""

    gears: GearTable
    state: ActuatorColumns
    joints: JointColumns


class GearCommand(NamedTuple):
    """Everything that commanding takes: n joints (q, v, tau) and m actuators (out_q, out_v, out_tau)."""

    gears: GearTable
    q: F1
    v: F1
    tau: F1
    out_q: F1
    out_v: F1
    out_tau: F1


class GearGains(NamedTuple):
    """Gains of n joints and of m actuators."""

    gears: GearTable
    kp: F1
    kd: F1
    out_kp: F1
    out_kd: F1


@kernel
def read_gears(table: Table[GearReading]) -> None:
    """Angles, velocities and torques of joints with a gear; of every joint, what its worst actuator says."""
    r = unpack(table, GearReading)
    g, a, j = r.gears, r.state, r.joints
    for k in range(g.joint.shape[0]):
        joint, actuator, ratio = g.joint[k], g.actuator[k], g.ratio[k]
        j.q[joint] = a.q[actuator] / ratio + g.offset[k]
        j.v[joint], j.tau[joint] = a.v[actuator] / ratio, a.tau[actuator] * ratio
    for i in range(j.q.shape[0]):
        own = g.of_joint[i]
        j.temperature[i], j.voltage[i], j.stamp[i] = a.temperature[own[0]], a.voltage[own[0]], a.stamp[own[0]]
        j.code[i], both, either = a.code[own[0]], a.flags[own[0]], a.flags[own[0]]
        for m in own[1:]:  # NaN, not measured, is worse than any number
            j.temperature[i] = np.maximum(j.temperature[i], a.temperature[m])
            j.voltage[i] = np.minimum(j.voltage[i], a.voltage[m])
            j.stamp[i] = np.minimum(j.stamp[i], a.stamp[m])
            j.code[i] = max(j.code[i], a.code[m])
            both, either = both & a.flags[m], either | a.flags[m]
        j.fresh[i], j.enabled[i], j.failed[i] = both & FRESH != 0, both & ENABLED != 0, either & FAULT != 0


@kernel
def command_gears(table: Table[GearCommand]) -> None:
    """Actuators of joints with a gear."""
    r = unpack(table, GearCommand)
    g = r.gears
    for k in range(g.joint.shape[0]):
        joint, actuator, ratio = g.joint[k], g.actuator[k], g.ratio[k]
        r.out_q[actuator] = (r.q[joint] - g.offset[k]) * ratio
        r.out_v[actuator], r.out_tau[actuator] = r.v[joint] * ratio, r.tau[joint] / ratio


@kernel
def gain_gears(table: Table[GearGains]) -> None:
    """Gains of actuators of joints with a gear: they go with the square of the ratio."""
    r = unpack(table, GearGains)
    g = r.gears
    for k in range(g.joint.shape[0]):
        joint, actuator, square = g.joint[k], g.actuator[k], g.ratio[k] * g.ratio[k]
        r.out_kp[actuator], r.out_kd[actuator] = r.kp[joint] / square, r.kd[joint] / square


class Transmission:
    """All gears and linkages of a robot, between n joints and m actuators."""

    def __init__(self, n: int, gears: Sequence[Gear], linkages: Sequence[Linkage]) -> None:
        """Prepare.

        Raises:
            RobotError: a joint that nothing moves, or that two move.
        """
        self._linkages = tuple(linkages)
        self._gears = tuple(gears)
        driven = [g.joint for g in gears] + [j for link in linkages for j in link.joints]
        if sorted(driven) != list(range(n)):
            raise RobotError("every joint must be moved by one gear or one linkage")
        widest = max((len(link.actuators) for link in linkages), default=1)
        self._of_joint = np.zeros((n, widest), dtype=int)
        for g in gears:
            self._of_joint[g.joint] = g.actuator
        for link in linkages:
            for j in link.joints:
                self._of_joint[j] = np.resize(link.actuators, widest)
        self._table = GearTable(
            np.array([g.joint for g in gears], dtype=int),
            np.array([g.actuator for g in gears], dtype=int),
            np.array([g.sign * g.ratio for g in gears], dtype=float),
            np.array([g.offset for g in gears], dtype=float),
            self._of_joint,
        )
        self._reading = BoundRecord(self._reading_of)
        self._commanding = BoundRecord(self._commanding_of)
        self._gaining = BoundRecord(self._gaining_of)

    def _reading_of(self, state: ActuatorState, joints: JointReading) -> GearReading:
        columns = ActuatorColumns(*(getattr(state, name) for name in ActuatorColumns._fields))
        return GearReading(
            self._table, columns, JointColumns(*(getattr(joints, name) for name in JointColumns._fields))
        )

    def _commanding_of(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, out: ActuatorCommand) -> GearCommand:
        return GearCommand(self._table, q, v, tau, out.q, out.v, out.tau)

    def _gaining_of(self, kp: np.ndarray, kd: np.ndarray, out: ActuatorCommand) -> GearGains:
        return GearGains(self._table, kp, kd, out.kp, out.kd)

    def read(self, state: ActuatorState, joints: JointReading) -> None:
        """Joints from actuators; a linkage whose loop does not close at its motor angles is not measured.

        Args:
            state: of the m actuators. joints: changed in place; the last angles are where the search begins.
        """
        read_gears(self._reading.table(state, joints))
        for link in self._linkages:
            self._read_linkage(link, state, joints)

    @staticmethod
    def _read_linkage(link: Linkage, state: ActuatorState, joints: JointReading) -> None:
        j, a = list(link.joints), list(link.actuators)
        phi = link.signs * state.q[a] + link.offsets
        try:
            q = link.mechanism.joint(phi, start=joints.q[j]) if np.isfinite(phi).all() else np.full(len(j), np.nan)
        except RobotError:
            q = np.full(len(j), np.nan)
        joints.q[j] = q
        if not np.isfinite(q).all():
            joints.v[j], joints.tau[j] = np.nan, np.nan
            return
        jacobian = link.mechanism.jacobian(q)
        joints.v[j] = np.linalg.solve(jacobian, link.signs * state.v[a])
        joints.tau[j] = jacobian.T @ (link.signs * state.tau[a])

    def command(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, out: ActuatorCommand) -> None:
        """Actuators from joints.

        Args:
            q: (n,) [rad]. v: (n,) [rad/s]. tau: (n,) feed-forward [N m].
            out: of the m actuators; q, v, tau are changed in place.
        """
        command_gears(self._commanding.table(q, v, tau, out))
        for link in self._linkages:
            own, motors = list(link.joints), list(link.actuators)
            phi, jacobian = link.mechanism.motor(q[own]), link.mechanism.jacobian(q[own])
            if np.isfinite(phi).all():  # else the last command stays: the range was checked to close when it was read
                out.q[motors] = link.signs * (phi - link.offsets)
                out.v[motors] = link.signs * (jacobian @ v[own])
                out.tau[motors] = link.signs * np.linalg.solve(jacobian.T, tau[own])

    def gains(self, kp: np.ndarray, kd: np.ndarray, out: ActuatorCommand) -> None:
        """Gains of impedance drives from those at the joints: kp (n,) [N m/rad], kd (n,) [N m s/rad]."""
        gain_gears(self._gaining.table(kp, kd, out))

    def actuators_of(self, joint: int) -> tuple[int, ...]:
        """Indices of the actuators that move a joint."""
        return tuple(sorted(set(self._of_joint[joint].tolist())))

    def zero_offsets(self, joint: int, angle: float, state: ActuatorState) -> dict[int, float]:
        """Offsets by actuator with which a joint that is at an angle now [rad] would be read there.

        Raises:
            RobotError: the joint belongs to a linkage, whose joints are set together by `linkage_offsets`.
        """
        for g in self._gears:
            if g.joint == joint:
                return {g.actuator: float(angle - g.sign * state.q[g.actuator] / g.ratio)}
        raise RobotError("a linkage is calibrated with all its joints at once")

    def linkage_offsets(self, angles: np.ndarray, state: ActuatorState) -> dict[int, float]:
        """Offsets by actuator of all linkages whose joints are at these angles (n,) now [rad]; NaN: leave it out."""
        out: dict[int, float] = {}
        for link in self._linkages:
            phi = link.mechanism.motor(angles[list(link.joints)])
            if np.isfinite(phi).all():
                read = link.signs * state.q[list(link.actuators)]
                out |= dict(zip(link.actuators, (phi - read).tolist(), strict=True))
        return out
