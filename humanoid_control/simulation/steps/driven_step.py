"""Steps of a robot with its motors and gears: currents, friction, loops and elastic gears, in one compiled call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.layout import COORD, GRAD, NW, RATE
from humanoid_control.multibody.motion import forward1
from humanoid_control.simulation.drives.commands import advance_references
from humanoid_control.simulation.drives.motor import current_controlled_step
from humanoid_control.simulation.drives.shafts import shaft_forces, wanted_currents
from humanoid_control.simulation.steps.step import FASTEST, FINE, move
from humanoid_control.simulation.steps.step_forces import (
    correct_contact,
    forces_at_the_end,
    impressed_forces,
    solve_step,
)


class Wiring(NamedTuple):
    """Which joint of the robot is which coordinate, and the electrical state.

    Attributes:
        joint: (k,) joint of the robot of each moving joint, in the order of the coordinates after the base.
        held: joints that follow their command without dynamics. speed: (n,) limits of all joints [rad/s].
        motor_side: (k,) shaft whose encoder the position loop reads, behind an elastic gear; -1: the joint's own.
        angles, rates: (n,) of all joints. current, wanted, turning: (m,) of all shafts.
    """

    joint: np.ndarray
    held: np.ndarray
    speed: np.ndarray
    motor_side: np.ndarray
    angles: np.ndarray
    rates: np.ndarray
    current: np.ndarray
    wanted: np.ndarray
    turning: np.ndarray


@kernel
def run_driven_steps(t, w, x, d, c, p, s, e, clock, since, coast, h, steps):
    """Advance by some short steps; arguments and results as for `step.run_steps`.

    Args:
        s: `ShaftTable`. e: `Wiring`.
    """
    n, nv, moving = d.kp.shape[0], x.v.shape[0], e.joint.shape[0]
    iv = 6 if x.q.shape[0] > nv else 0
    iq = iv + x.q.shape[0] - nv
    tau, armature, goal, moved = np.zeros(nv), np.zeros(nv), np.zeros(nv), np.empty(nv)
    done, now = 0, clock
    for _ in range(steps):
        for k in range(moving):
            e.angles[e.joint[k]], e.rates[e.joint[k]] = x.q[iq + k], x.v[iv + k]
        advance_references(d.mode, d.q_ref, d.v_ref, d.lead, d.lower, d.upper, e.angles, now - since >= coast, h)
        for j in e.held:
            most = h * e.speed[j]
            way = min(max(d.q_ref[j] - e.angles[j], -most), most)
            e.angles[j] += way
            e.rates[j] = way / h
        impressed_forces(t, w, x, c, p, now, h)
        tau[:] = 0.0
        armature[:] = 0.0
        _joint_loops(t, w.W, x, d, s, e, iv, iq, h, goal, tau, armature)
        wanted_currents(t, w.W, s, goal, e.wanted)
        for k in range(s.body.shape[0]):
            e.turning[k] = w.W[(s.body[k] + 1) * NW + RATE]
        current_controlled_step(e.current, e.wanted, e.turning, h, s.motor, s.torque)
        shaft_forces(t, w.W, s, x.q, x.v, h, tau, armature)
        for k in range(n):
            x.torque[k] = 0.0
        _torque_at_joints(t, w.W, s, e, iv, x.torque)
        solve_step(t, w, x, c, tau, armature, h)
        if correct_contact(w.W, x, c, h):
            forward1(t, x.q, x.v, w)
            solve_step(t, w, x, c, tau, armature, h)
        forces_at_the_end(w.W, x, c, h)
        bad = move(t, x, moved, h, 200 * FASTEST)  # rotors are fast
        if bad != FINE:
            return done, bad
        done += 1
        now = clock + done * h
    return done, FINE


@inlined
def _joint_loops(t, W, x, d, s, e, iv, iq, h, goal, tau, armature):
    """What the position loops ask of the motors, into goal (nv,), and the mechanical stops, into tau and armature."""
    for k in range(e.joint.shape[0]):
        j, q, v = e.joint[k], x.q[iq + k], x.v[iv + k]
        seen, rate, m = q, v, e.motor_side[k]
        if m >= 0:
            o = t.ints[s.body[m], COORD]  # the rotor's own
            seen, rate = x.q[t.qpos[o]] / s.gear[m, 0], x.v[o] / s.gear[m, 0]
        torque = d.driven[j] * (d.kp[j] * (d.q_ref[j] - seen) + d.kd[j] * (d.v_ref[j] - rate)) + d.effort[j]
        goal[iv + k] = min(max(torque, -d.limit[j]), d.limit[j])
        beyond = min(max(q, d.lower[j]), d.upper[j]) - q
        if beyond != 0.0:
            tau[iv + k] += d.stop[j] * (beyond - h * v) - d.kd[j] * v
            armature[iv + k] += h * d.kd[j] + h * h * d.stop[j]


@inlined
def _torque_at_joints(t, W, s, e, iv, torque):
    """Torques of the motors as the joints (n,) would feel them without friction."""
    for k in range(s.body.shape[0]):
        i = s.body[k]
        o = (i + 1) * NW + GRAD
        if s.gear[k, 1] > 0.0:
            torque[e.joint[s.joints[k, 0] - iv]] += s.gear[k, 0] * s.torque[k]
        else:
            for c in range(2):
                if s.joints[k, c] >= 0:
                    torque[e.joint[s.joints[k, c] - iv]] += W[o + c] * s.torque[k]
