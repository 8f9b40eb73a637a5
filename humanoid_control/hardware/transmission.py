"""Transmissions: joints of the robot on one side, actuators of the buses on the other, in both directions.

A gear moves one joint: q_joint = sign q_actuator / ratio + offset. Where several actuators move several joints, as the
two screws of an ankle do, the mechanism of the robot's drives says how: phi(q) = sign q_actuator + offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorState, Flag
from humanoid_control.multibody.mechanisms import DriveMechanism


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
        homed: (n,) all encoders know their zero.
    """

    def __init__(self, n: int) -> None:
        self.q, self.v, self.tau, self.temperature, self.voltage, self.stamp = np.full((6, n), np.nan)
        self.code = np.zeros(n, np.uint32)
        self.fresh, self.enabled, self.failed, self.homed = np.zeros((4, n), dtype=bool)


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
        self._joints = np.array([g.joint for g in gears], dtype=int)
        self._actuators = np.array([g.actuator for g in gears], dtype=int)
        self._ratio = np.array([g.sign * g.ratio for g in gears], dtype=float)
        self._offset = np.array([g.offset for g in gears], dtype=float)
        widest = max((len(link.actuators) for link in linkages), default=1)
        self._of_joint = np.zeros((n, widest), dtype=int)
        for g in gears:
            self._of_joint[g.joint] = g.actuator
        for link in linkages:
            for j in link.joints:
                self._of_joint[j] = np.resize(link.actuators, widest)

    def read(self, state: ActuatorState, joints: JointReading) -> None:
        """Joints from actuators; a linkage whose loop does not close at its motor angles is not measured.

        Args:
            state: of the m actuators. joints: changed in place; the last angles are where the search begins.
        """
        a, j, r = self._actuators, self._joints, self._ratio
        joints.q[j], joints.v[j], joints.tau[j] = state.q[a] / r + self._offset, state.v[a] / r, state.tau[a] * r
        for link in self._linkages:
            self._read_linkage(link, state, joints)
        own = self._of_joint
        joints.temperature[:], joints.voltage[:] = state.temperature[own].max(axis=1), state.voltage[own].min(axis=1)
        joints.stamp[:], joints.code[:] = state.stamp[own].min(axis=1), state.code[own].max(axis=1)
        joints.fresh[:], joints.enabled[:], joints.homed[:] = (
            state.have(f)[own].all(axis=1) for f in (Flag.FRESH, Flag.ENABLED, Flag.HOMED)
        )
        joints.failed[:] = state.have(Flag.FAULT)[own].any(axis=1)

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
        a, j, r = self._actuators, self._joints, self._ratio
        out.q[a], out.v[a], out.tau[a] = (q[j] - self._offset) * r, v[j] * r, tau[j] / r
        for link in self._linkages:
            own, motors = list(link.joints), list(link.actuators)
            phi, jacobian = link.mechanism.motor(q[own]), link.mechanism.jacobian(q[own])
            if np.isfinite(phi).all():  # else the last command stays: the range was checked to close when it was read
                out.q[motors] = link.signs * (phi - link.offsets)
                out.v[motors] = link.signs * (jacobian @ v[own])
                out.tau[motors] = link.signs * np.linalg.solve(jacobian.T, tau[own])

    def gains(self, kp: np.ndarray, kd: np.ndarray, out: ActuatorCommand) -> None:
        """Gains of impedance drives from those at the joints: kp (n,) [N m/rad], kd (n,) [N m s/rad]."""
        a, j, square = self._actuators, self._joints, self._ratio**2
        out.kp[a], out.kd[a] = kp[j] / square, kd[j] / square

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

    def gear_offsets(self, angles: np.ndarray, state: ActuatorState) -> dict[int, float]:
        """Offsets by actuator of all gears whose joints are at these angles (n,) now [rad]; NaN: leave it out."""
        known = [g.joint for g in self._gears if np.isfinite(angles[g.joint])]
        return {a: o for k in known for a, o in self.zero_offsets(k, float(angles[k]), state).items()}

    def linkage_offsets(self, angles: np.ndarray, state: ActuatorState) -> dict[int, float]:
        """Offsets by actuator of all linkages whose joints are at these angles (n,) now [rad]; NaN: leave it out."""
        out: dict[int, float] = {}
        for link in self._linkages:
            phi = link.mechanism.motor(angles[list(link.joints)])
            if np.isfinite(phi).all():
                read = link.signs * state.q[list(link.actuators)]
                out |= dict(zip(link.actuators, (phi - read).tolist(), strict=True))
        return out
