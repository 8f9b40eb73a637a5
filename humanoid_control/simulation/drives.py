"""Position-controlled joint drives, integrated implicitly so that stiff gains stay stable at a fixed step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot


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
    data = robot.model.createData()
    M = pin.crba(robot.model, data, robot.q("neutral"))
    rotor = 1e-3 * robot.effort
    inertia = np.diag(M)[robot.iv :] + rotor
    kp = stiffness * robot.effort
    kd = 2 * damping_ratio * np.sqrt(kp * inertia)
    return DriveGains(kp, kd, rotor, robot.effort.copy(), 10 * kp)


@dataclass
class DriveStep:
    """The drives' part of one implicit step: the torque at the old velocity and the inertia that stands for the rest.

    The torque at the end of the step, kp (q_ref - q - h v+) + kd (v_ref - v+) with v+ = v + h a, equals
    `torque - armature_gain a`; so the equations of motion are solved with `armature` added to the joint inertias.
    """

    torque: np.ndarray
    gain: np.ndarray
    armature: np.ndarray

    def reached(self, acceleration: np.ndarray) -> np.ndarray:
        """Motor torque (n,) at the end of the step [N m]."""
        return self.torque - self.gain * acceleration


def drive_step(
    gains: DriveGains,
    joints: np.ndarray,
    velocity: np.ndarray,
    q_ref: np.ndarray,
    v_ref: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    h: float,
) -> tuple[DriveStep, DriveStep]:
    """Motors and mechanical stops for one step of length h; all arrays (n,).

    Returns:
        The motors (whose torque is to be clipped) and the stops (which are as strong as they need to be).
    """
    gain = h * gains.kd + h * h * gains.kp
    torque = gains.kp * (q_ref - joints - h * velocity) + gains.kd * (v_ref - velocity)
    motors = DriveStep(torque, gain, gains.rotor + gain)
    beyond = np.clip(joints, lower, upper) - joints
    pressed = beyond != 0
    k = np.where(pressed, gains.stop, 0.0)
    c = np.where(pressed, gains.kd, 0.0)
    stop_gain = h * c + h * h * k
    stops = DriveStep(k * (beyond - h * velocity) - c * velocity, stop_gain, stop_gain)
    return motors, stops
