"""Position-controlled joint drives, integrated implicitly so that stiff gains stay stable at a fixed step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.jit import kernel
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
    for k in range(joints.shape[0]):
        q, v = joints[k], speed[k]
        kp, kd = d.driven[k] * d.kp[k], d.driven[k] * d.kd[k]
        torque = kp * (d.q_ref[k] - q - h * v) + kd * (d.v_ref[k] - v) + d.effort[k]
        gain = h * kd + h * h * kp
        beyond = min(max(q, d.lower[k]), d.upper[k]) - q
        stop, stop_gain = 0.0, 0.0
        if beyond != 0.0:
            stop = d.stop[k] * (beyond - h * v) - d.kd[k] * v
            stop_gain = h * d.kd[k] + h * h * d.stop[k]
        d.scratch[0, k], d.scratch[1, k], d.scratch[2, k], d.scratch[3, k] = torque, gain, stop, stop_gain
        tau[iv + k] = torque + stop
        armature[iv + k] = d.rotor[k] + gain + stop_gain
