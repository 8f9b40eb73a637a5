"""Position-controlled joint drives: their gains, their commands, and their law, integrated implicitly.

Implicit integration keeps stiff gains stable at a fixed step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.jit import kernel
from humanoid_control.robots.drives import drives_of
from humanoid_control.robots.robot import Robot
from humanoid_control.simulation.drives.drive_train import ZeroFrames, mechanism_of


@dataclass(frozen=True)
class DriveGains:
    """One drive a joint: torque = kp (q_ref - q) + kd (v_ref - v), clipped at the effort limit.

    Attributes:
        kp: (n,) [N m/rad]. kd: (n,) [N m s/rad].
        rotor: (n,) rotor inertia seen at the joint [kg m^2].
        effort: (n,) torque limit [N m].
        stop: (n,) stiffness of the mechanical stops at the ends of the range [N m/rad].
    """

    kp: np.ndarray
    kd: np.ndarray
    rotor: np.ndarray
    effort: np.ndarray
    stop: np.ndarray


def default_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """Gains for a robot whose drives are not published: one rule for all.

    `stiffness` is the proportional gain as a multiple of the effort limit, so a joint that carries a third of its
    effort limit sags by 0.3 degrees. Damping is set for the inertia that the joint moves in the neutral posture. The
    rotor inertia is 1 g m^2 for each N m of effort limit, the order of a brushless motor behind a harmonic drive.
    """
    return _gains(robot, 1e-3 * robot.effort, stiffness, damping_ratio)


def driven_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """The same with the rotors of the robot's file of drives."""
    return _gains(robot, reflected_inertia(robot), stiffness, damping_ratio)


def reflected_inertia(robot: Robot) -> np.ndarray:
    """Inertia (n,) of the rotors reflected to the joints in the neutral posture: sum of (dphi/dq)^2 J [kg m^2].

    Raises:
        RobotError, UnknownNameError: a bad file of drives.
    """
    frames, joints, out = ZeroFrames(robot), robot.joints(robot.q("neutral")), np.zeros(robot.n)
    for drive in drives_of(robot).drives:
        if drive.motor is not None:
            index = [robot.index[j] for j in drive.joints]
            G = mechanism_of(drive, robot, frames).jacobian(joints[index])
            out[index] += drive.motor.inertia[0] * (G**2).sum(axis=0)
    return out


def _gains(robot: Robot, rotor: np.ndarray, stiffness: float, damping_ratio: float) -> DriveGains:
    M = pin.crba(robot.model, robot.model.createData(), robot.q("neutral"))
    kp = stiffness * robot.effort
    kd = 2 * damping_ratio * np.sqrt(kp * (np.diag(M)[robot.iv :] + rotor))
    return DriveGains(kp, kd, rotor, robot.effort.copy(), 10 * kp)


# -------- Commands

POSITION, VELOCITY, EFFORT = 0, 1, 2


class ReferenceLimits(NamedTuple):
    """Limits of the references of all drives (n,).

    Attributes:
        lower, upper: ranges of the joints [rad].
        lead: how far a velocity drive's reference may be ahead of the joint [rad].
    """

    lower: np.ndarray
    upper: np.ndarray
    lead: np.ndarray


class DriveCommands:
    """The references of all drives. One rule for every engine.

    All three kinds are one law, torque = kp (q_ref - q) + kd (v_ref - v) + effort, clipped at the effort limit:

    * position: `q_ref` is held; between commands it moves on with the commanded velocity, for at most `coast`.
    * velocity: `q_ref` moves on with `v_ref` until the next command, so the drive carries a load without
      falling behind; it never runs further ahead of the joint than the effort limit can pull.
    * effort: kp = kd = 0.

    Attributes:
        mode: (n,) POSITION, VELOCITY or EFFORT.
        q_ref [rad], v_ref [rad/s], effort [N m]: (n,) references and feed-forward.
        limits: of the references.
        since: time of the last command [s].
        driven: (n,) 1 where kp and kd act, 0 for joints under effort command.
    """

    def __init__(self, robot: Robot, gains: DriveGains, coast: float) -> None:
        self.robot, self.coast, self._limit = robot, coast, gains.effort
        with np.errstate(divide="ignore"):
            lead = np.where(gains.kp > 0, gains.effort / gains.kp, np.inf)
        self.limits = ReferenceLimits(robot.lower, robot.upper, lead)
        self.reset(robot.joints(robot.q()))

    def reset(self, joints: np.ndarray, time: float = 0.0) -> None:
        """Hold a posture (n,) [rad] at rest from now on."""
        n = self.robot.n
        self.mode = np.full(n, POSITION)
        self.q_ref, self.v_ref, self.effort = np.array(joints, dtype=float), np.zeros(n), np.zeros(n)
        self.driven, self.since = np.ones(n), time

    def set(
        self,
        time: float,
        joints: np.ndarray,
        positions: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        efforts: np.ndarray | None = None,
    ) -> None:
        """Take a command; see `Engine.command`.

        Args:
            time: now [s]. joints: (n,) where they are [rad].
            positions, velocities, efforts: (n,) each or None; entries that are not numbers are not given.
        """
        r = self.robot
        q, v, tau = (
            np.full(r.n, np.nan) if x is None else np.asarray(x, float) for x in (positions, velocities, efforts)
        )
        by_q = np.isfinite(q)
        by_v = ~by_q & np.isfinite(v)
        by_tau = ~by_q & ~by_v & np.isfinite(tau)
        starts = by_v & (self.mode != VELOCITY)
        self.mode = np.select([by_q, by_v, by_tau], [POSITION, VELOCITY, EFFORT], self.mode)
        self.q_ref = np.where(by_q, np.clip(q, r.lower, r.upper), np.where(starts, joints, self.q_ref))
        given = by_q | by_v | by_tau
        speed = np.where(by_tau, 0.0, np.clip(np.nan_to_num(v, nan=0.0), -r.velocity, r.velocity))
        held = np.where(self.mode == POSITION, 0.0, self.v_ref)
        self.v_ref = np.where(given, speed, held)
        tau = np.clip(np.where(np.isfinite(tau), tau, 0.0), -self._limit, self._limit)
        self.effort = np.where(given, tau, self.effort)
        self.since = time
        self.driven = (self.mode != EFFORT).astype(float)

    @property
    def moving(self) -> bool:
        """True where a reference moves by itself."""
        return bool(self.v_ref.any())

    def advance(self, time: float, joints: np.ndarray, h: float) -> None:
        """Move the references on by a step of length h."""
        silent = time - self.since >= self.coast
        advance_drive_references(self.mode, self.q_ref, self.v_ref, self.limits, joints, silent, h)


@kernel
def advance_drive_references(mode, q_ref, v_ref, limits, joints, silent, h):
    """Move the references (n,) on by a step of length h, in place.

    Args:
        mode, q_ref, v_ref: see `DriveCommands`. limits: `ReferenceLimits`. joints: (n,) where they are [rad].
        silent: no command for longer than references of position drives coast.
    """
    lower, upper, lead = limits
    for k in range(mode.shape[0]):
        if silent and mode[k] != VELOCITY:
            v_ref[k] = 0.0
        if v_ref[k] != 0.0:
            q = min(max(q_ref[k] + h * v_ref[k], lower[k]), upper[k])
            if mode[k] == VELOCITY:
                q = min(max(q, joints[k] - lead[k]), joints[k] + lead[k])
            q_ref[k] = q


# -------- Law


@kernel
def drive_terms(d, joints, speed, h, tau, armature, iv):
    """Motors and mechanical stops for one implicit step: generalised forces, and inertia that stands for the rest.

    The motor's torque at the end of the step, kp (q_ref - q - h v+) + kd (v_ref - v+) + effort with v+ = v + h a, is
    `scratch[0] - scratch[1] a`; so the equations of motion are solved with scratch[1] added to the joint's inertia.
    A stop does the same with its own spring and the drive's damping, and is as strong as it needs to be.

    Args:
        d: `DriveTable`; its scratch is written: motor torque, motor gain, stop torque, stop gain.
        joints [rad], speed [rad/s]: (n,). h: length of the step [s].
        tau, armature: (nv,) written from `iv` on.
    """
    lower, upper = d.lower, d.upper
    for k in range(joints.shape[0]):
        q, v = joints[k], speed[k]
        kp, kd = d.driven[k] * d.kp[k], d.driven[k] * d.kd[k]
        torque = kp * (d.q_ref[k] - q - h * v) + kd * (d.v_ref[k] - v) + d.effort[k]
        gain = h * kd + h * h * kp
        beyond = min(max(q, lower[k]), upper[k]) - q
        stop, stop_gain = 0.0, 0.0
        if beyond != 0.0:
            stop = d.stop[k] * (beyond - h * v) - d.kd[k] * v
            stop_gain = h * d.kd[k] + h * h * d.stop[k]
        d.scratch[0, k], d.scratch[1, k], d.scratch[2, k], d.scratch[3, k] = torque, gain, stop, stop_gain
        tau[iv + k] = torque + stop
        armature[iv + k] = d.rotor[k] + gain + stop_gain
