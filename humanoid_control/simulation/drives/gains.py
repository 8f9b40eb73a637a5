"""Gains of the position loops of all joints, and the inertia of the rotors behind them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.robots.drive_file import drives_of
from humanoid_control.simulation.drives.mechanisms import ZeroFrames, mechanism_of


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
    """Gains for a robot whose drives are not published: our choice, the same rule for all.

    `stiffness` is the proportional gain as a multiple of the effort limit, so a joint that carries a third of its
    effort limit sags by 0.3 degrees. Damping is set for the inertia that the joint moves in the neutral posture. The
    rotor inertia is 1 g m^2 for each N m of effort limit, the order of a brushless motor behind a harmonic drive.
    """
    return _gains(robot, 1e-3 * robot.effort, stiffness, damping_ratio)


def driven_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """The same with the rotors of the robot's file of drives."""
    return _gains(robot, reflected_inertia(robot), stiffness, damping_ratio)


def reflected_inertia(robot: Robot) -> np.ndarray:
    """Inertia (n,) of the rotors as the joints feel it in the neutral posture: sum of (dphi/dq)^2 J [kg m^2].

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
