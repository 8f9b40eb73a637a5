"""Position-controlled joint drives, integrated implicitly so that stiff gains stay stable at a fixed step."""

from __future__ import annotations

from humanoid_control.jit import kernel


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
