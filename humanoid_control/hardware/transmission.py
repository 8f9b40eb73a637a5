"""Transmissions between joints and actuators, in both directions.

Gear: q_joint = sign q_actuator / ratio + offset. Linkage, e.g. the two screws of an ankle: phi(q) = sign q_actuator +
offset, with phi from the drive mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, I1, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import BoundRecord, Table, unpack
from humanoid_control.errors import RobotError
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, Flag
from humanoid_control.multibody.mechanisms import DriveMechanism

FRESH, ENABLED, FAULT = int(Flag.FRESH), int(Flag.ENABLED), int(Flag.FAULT)
Words = Annotated[np.ndarray, np.uint32, 1]
Bytes = Annotated[np.ndarray, np.uint8, 1]


@dataclass(frozen=True)
class Gear:
    """One actuator that moves one joint.

    Attributes:
        ratio: actuator angle per joint angle, positive.
        offset: joint angle where the actuator reads zero [rad].
    """

    joint: int
    actuator: int
    ratio: float = 1.0
    sign: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Linkage:
    """Mechanism between m actuators and m joints.

    Attributes:
        mechanism: motor angles phi of joint angles q.
        offsets: motor angle phi where the actuator reads zero (m,) [rad].
    """

    mechanism: DriveMechanism
    joints: tuple[int, ...]
    actuators: tuple[int, ...]
    signs: np.ndarray
    offsets: np.ndarray


class JointReading:
    """State of n joints; the worst actuator of a joint counts.

    Arrays (n,): q [rad], v [rad/s], tau [N m]; NaN: not measured.

    Attributes:
        temperature: hottest (n,) [deg C].
        voltage: lowest (n,) [V].
        stamp: oldest (n,) [s].
        code: a drive's fault code (n,).
        fresh: all samples are new (n,).
        enabled: all drives have power (n,).
        failed: any drive failed (n,).
    """

    def __init__(self, n: int) -> None:
        self.q, self.v, self.tau, self.temperature, self.voltage, self.stamp = np.full((6, n), np.nan)
        self.code = np.zeros(n, np.uint32)
        self.fresh, self.enabled, self.failed = np.zeros((3, n), dtype=bool)


class GearTable(NamedTuple):
    """g gears of a robot as arrays.

    Attributes:
        of_joint: actuators of every joint, linkages included, padded by repetition (n, widest).
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
    """Arguments of `read_gears`."""

    gears: GearTable
    state: ActuatorColumns
    joints: JointColumns


class GearCommand(NamedTuple):
    """Arguments of `command_gears`: n joints and m actuators (out_)."""

    gears: GearTable
    q: F1
    v: F1
    tau: F1
    out_q: F1
    out_v: F1
    out_tau: F1


class GearGains(NamedTuple):
    """Arguments of `gain_gears`: n joints and m actuators (out_)."""

    gears: GearTable
    kp: F1
    kd: F1
    out_kp: F1
    out_kd: F1


@kernel
def read_gears(table: Table[GearReading]) -> None:
    """Fill q, v, tau of geared joints, and the worst status of every joint."""
    r = unpack(table, GearReading)
    g, a, j = r.gears, r.state, r.joints
    # q_joint = q_actuator / r + offset; power is conserved: tau_joint = r tau_actuator
    for k in range(g.joint.shape[0]):
        joint, actuator, ratio = g.joint[k], g.actuator[k], g.ratio[k]
        j.q[joint] = a.q[actuator] / ratio + g.offset[k]
        j.v[joint], j.tau[joint] = a.v[actuator] / ratio, a.tau[actuator] * ratio
    # the worst actuator decides: hottest, lowest voltage, oldest sample
    for i in range(j.q.shape[0]):
        # padding by repetition changes no minimum or maximum
        own = g.of_joint[i]
        j.temperature[i], j.voltage[i], j.stamp[i] = a.temperature[own[0]], a.voltage[own[0]], a.stamp[own[0]]
        j.code[i], both, either = a.code[own[0]], a.flags[own[0]], a.flags[own[0]]
        for m in own[1:]:  # np.maximum and np.minimum propagate NaN: an unmeasured actuator makes the joint unmeasured
            j.temperature[i] = np.maximum(j.temperature[i], a.temperature[m])
            j.voltage[i] = np.minimum(j.voltage[i], a.voltage[m])
            j.stamp[i] = np.minimum(j.stamp[i], a.stamp[m])
            j.code[i] = max(j.code[i], a.code[m])
            # fresh and enabled need all actuators, a fault only one
            both, either = both & a.flags[m], either | a.flags[m]
        j.fresh[i], j.enabled[i], j.failed[i] = both & FRESH != 0, both & ENABLED != 0, either & FAULT != 0


@kernel
def command_gears(table: Table[GearCommand]) -> None:
    """Fill q, v, tau of geared actuators."""
    r = unpack(table, GearCommand)
    g = r.gears
    # inverse of `read_gears`
    for k in range(g.joint.shape[0]):
        joint, actuator, ratio = g.joint[k], g.actuator[k], g.ratio[k]
        r.out_q[actuator] = (r.q[joint] - g.offset[k]) * ratio
        r.out_v[actuator], r.out_tau[actuator] = r.v[joint] * ratio, r.tau[joint] / ratio


@kernel
def gain_gears(table: Table[GearGains]) -> None:
    """Fill kp, kd of geared actuators."""
    r = unpack(table, GearGains)
    g = r.gears
    # k_actuator = k_joint / r^2, from tau_actuator = tau_joint / r and dq_actuator = r dq_joint
    for k in range(g.joint.shape[0]):
        joint, actuator, square = g.joint[k], g.actuator[k], g.ratio[k] * g.ratio[k]
        r.out_kp[actuator], r.out_kd[actuator] = r.kp[joint] / square, r.kd[joint] / square


class Transmission:
    """Gears and linkages between n joints and m actuators."""

    def __init__(self, n: int, gears: Sequence[Gear], linkages: Sequence[Linkage]) -> None:
        """Build the tables.

        Raises:
            RobotError: if a joint is not moved by exactly one gear or linkage.
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
                # np.resize repeats the actuators up to the common width
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
        """Update joints from actuators; NaN if a linkage has no solution."""
        read_gears(self._reading.table(state, joints))
        for link in self._linkages:
            self._read_linkage(link, state, joints)

    @staticmethod
    def _read_linkage(link: Linkage, state: ActuatorState, joints: JointReading) -> None:
        j, a = list(link.joints), list(link.actuators)
        # motor angles; a start at the last joint angles keeps the branch of the solution
        phi = link.signs * state.q[a] + link.offsets
        try:
            q = link.mechanism.joint(phi, start=joints.q[j]) if np.isfinite(phi).all() else np.full(len(j), np.nan)
        except RobotError:
            q = np.full(len(j), np.nan)
        joints.q[j] = q
        if not np.isfinite(q).all():
            joints.v[j], joints.tau[j] = np.nan, np.nan
            return
        # phi_dot = J v, tau_joint = J^T tau_motor
        jacobian = link.mechanism.jacobian(q)
        joints.v[j] = np.linalg.solve(jacobian, link.signs * state.v[a])
        joints.tau[j] = jacobian.T @ (link.signs * state.tau[a])

    def command(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, out: ActuatorCommand) -> None:
        """Compute the actuator command from q (n,) [rad], v (n,) [rad/s], feed-forward tau (n,) [N m]."""
        command_gears(self._commanding.table(q, v, tau, out))
        for link in self._linkages:
            own, motors = list(link.joints), list(link.actuators)
            phi, jacobian = link.mechanism.motor(q[own]), link.mechanism.jacobian(q[own])
            if np.isfinite(phi).all():  # else keep the last command: the permitted range was checked to have solutions
                # phi_dot = J v, tau_motor = J^-T tau_joint
                out.q[motors] = link.signs * (phi - link.offsets)
                out.v[motors] = link.signs * (jacobian @ v[own])
                out.tau[motors] = link.signs * np.linalg.solve(jacobian.T, tau[own])

    def gains(self, kp: np.ndarray, kd: np.ndarray, out: ActuatorCommand) -> None:
        """Compute actuator gains from kp (n,) [N m/rad], kd (n,) [N m s/rad]."""
        gain_gears(self._gaining.table(kp, kd, out))

    def actuators_of(self, joint: int) -> tuple[int, ...]:
        """Return the actuators that move a joint."""
        return tuple(sorted(set(self._of_joint[joint].tolist())))

    def zero_offsets(self, joint: int, angle: float, state: ActuatorState) -> dict[int, float]:
        """Return the offset by actuator that makes a geared joint read `angle` now [rad].

        Raises:
            RobotError: if the joint belongs to a linkage; see `linkage_offsets`.
        """
        for g in self._gears:
            if g.joint == joint:
                return {g.actuator: float(angle - g.sign * state.q[g.actuator] / g.ratio)}
        raise RobotError("all joints of a linkage must be calibrated together")

    def linkage_offsets(self, angles: np.ndarray, state: ActuatorState) -> dict[int, float]:
        """Return offsets by actuator of linkages at joint `angles` (n,) [rad]; NaN: skip."""
        out: dict[int, float] = {}
        for link in self._linkages:
            phi = link.mechanism.motor(angles[list(link.joints)])
            if np.isfinite(phi).all():
                read = link.signs * state.q[list(link.actuators)]
                out |= dict(zip(link.actuators, (phi - read).tolist(), strict=True))
        return out
