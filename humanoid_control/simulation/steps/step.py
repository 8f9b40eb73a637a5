"""One compiled call for many steps of the world: drives, ground contact, dynamics, integration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.configuration import integrate
from humanoid_control.multibody.motion import forward1
from humanoid_control.simulation.drives.commands import advance_references
from humanoid_control.simulation.drives.position_drives import drive_terms
from humanoid_control.simulation.steps.step_forces import (
    correct_contact,
    forces_at_the_end,
    impressed_forces,
    solve_step,
)

FASTEST = 1e4  # [rad/s] or [m/s]: nothing real moves faster, so the integration has failed
FINE = -1


class State(NamedTuple):
    """What changes: q (nq,), v, acceleration (nv,), motor torque (n,), deflections and forces of contacts (np, 3)."""

    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray
    torque: np.ndarray
    layers: np.ndarray
    forces: np.ndarray


class DriveTable(NamedTuple):
    """Drives (n,): references as in `DriveCommands`, gains as in `DriveGains`, ranges, and scratch rows (4, n)."""

    mode: np.ndarray
    q_ref: np.ndarray
    v_ref: np.ndarray
    effort: np.ndarray
    driven: np.ndarray
    lead: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    rotor: np.ndarray
    limit: np.ndarray
    stop: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scratch: np.ndarray


@kernel
def run_steps(t, w, x, d, c, p, clock, since, coast, h, steps):
    """Advance the world by some steps of semi-implicit Euler; position drives are implicit.

    Args:
        t, w: `Tables` and `Work` of the robot. x, d, c, p: `State` (moved in place), `DriveTable`, `ContactTable`,
            `PushTable`.
        clock: time now. since: of the last command. coast: how long references move on after it [s].
        h: length of a step [s]. steps: how many.

    Returns:
        How many steps were made, and FINE, or the coordinate whose velocity stopped being one: the state is then the
        last good one.
    """
    n, nv = d.kp.shape[0], x.v.shape[0]
    iv, iq = nv - n, x.q.shape[0] - n
    tau, armature, moved = np.zeros(nv), np.zeros(nv), np.empty(nv)
    done, now = 0, clock
    for _ in range(steps):
        joints, speed = x.q[iq:], x.v[iv:]
        advance_references(d.mode, d.q_ref, d.v_ref, d.lead, d.lower, d.upper, joints, now - since >= coast, h)
        drive_terms(d, joints, speed, h, tau, armature, iv)
        impressed_forces(t, w, x, c, p, now, h)
        solve_step(t, w, x, c, tau, armature, h)
        again = _clip(d, x, tau, armature, iv)
        if correct_contact(w.W, x, c, h) or again:
            forward1(t, x.q, x.v, w)
            solve_step(t, w, x, c, tau, armature, h)
        forces_at_the_end(w.W, x, c, h)
        bad = move(t, x, moved, h, FASTEST)
        if bad != FINE:
            return done, bad
        for k in range(n):
            reached = d.scratch[0, k] - d.scratch[1, k] * x.acceleration[iv + k]
            x.torque[k] = min(max(reached, -d.limit[k]), d.limit[k])
        done += 1
        now = clock + done * h
    return done, FINE


@inlined
def move(t, x, moved, h, fastest):
    """Velocities, then positions with them; or nothing, and the coordinate whose velocity stopped being one.

    Args:
        moved: (nv,) scratch. fastest: limit of all velocities.
    """
    for k in range(moved.shape[0]):
        moved[k] = x.v[k] + h * x.acceleration[k]
        if not abs(moved[k]) < fastest:
            return k
    x.v[:] = moved
    integrate(t, x.q, x.v, h)
    return FINE


@inlined
def _clip(d, x, tau, armature, iv):
    """Motors that would pass their limit give the limit instead, whatever the velocity does; True if there are any."""
    any_over = False
    for k in range(d.kp.shape[0]):
        reached = d.scratch[0, k] - d.scratch[1, k] * x.acceleration[iv + k]
        if abs(reached) > d.limit[k]:
            any_over = True
            limited = min(max(reached, -d.limit[k]), d.limit[k])
            d.scratch[0, k], d.scratch[1, k] = limited, 0.0
            tau[iv + k] = limited + d.scratch[2, k]
            armature[iv + k] = d.rotor[k] + d.scratch[3, k]
    return any_over
