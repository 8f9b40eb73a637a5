"""Steps of a robot on winches: dense equations of motion, implicit in the tendons.

Tendons couple joints across the tree, so the O(n) recursion of `step` does not apply: h G^T alpha G is added to the
mass matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.kinematics_pass import add_wrenches, kinematics_pass
from humanoid_control.multibody.layout import (
    ACC,
    COORD,
    DRIFT,
    FREE,
    GROUP_JACOBIAN,
    MOTION,
    NC,
    NW,
    PARENT,
    REVOLUTE,
)
from humanoid_control.multibody.mass_matrix import dense_solve, fill_mass_matrix
from humanoid_control.multibody.spatial import acceleration_down
from humanoid_control.simulation.contact.forces import ContactTable
from humanoid_control.simulation.drives.position_control import (
    MOTOR,
    MOTOR_GAIN,
    DriveTable,
    ReferenceLimits,
    advance_drive_references,
    drive_terms,
    switch_drives,
    switching_rule,
)
from humanoid_control.simulation.drives.winches import (
    WinchTable,
    add_tendons,
    correct_lengths,
    joint_torques,
    move_winches,
    path_rates,
    predict_tensions,
    release_slack,
    run_drives,
)
from humanoid_control.simulation.worlds.step import (
    CONTACT_ROUNDS,
    FASTEST,
    FINE,
    PushTable,
    Schedule,
    WorldArrays,
    WorldState,
    correct_contact,
    forces_at_the_end,
    impressed_forces,
    integrate_state,
    stiffen_contacts,
)
from humanoid_control.tendons.routing.kernels import RoutingTables, measure

SLACK_ROUNDS = 4  # last solution that may release tendons


class WinchWiring(NamedTuple):
    """Tendons as coordinates of the model, and working memory.

    Attributes:
        joint: (D,) crossed joints in the robot's order.
        row: (D,) their rows in M (tree order).
        theta: (D,) their angles [rad].
        rate: (D,) their velocities [rad/s].
        A: (nv, nv) equations with drives and tendons (tree order).
        x: (nv,) right-hand side.
        none: (nv,) zeros.
        pull: (D,) tendon torques [N m].
    """

    routing: RoutingTables
    winches: WinchTable
    joint: I1
    row: I1
    theta: F1
    rate: F1
    A: F2
    x: F1
    none: F1
    pull: F1


@kernel(allocates=True)
def run_winch_steps(
    world: Table[WorldArrays],
    state: Table[WorldState],
    drives: Table[DriveTable],
    pushes: Table[PushTable],
    wiring: Table[WinchWiring],
    schedule: Schedule,
) -> tuple[int, int]:
    """Advance a robot with winches; see `step.run_steps`."""
    memory = np.zeros((3, unpack(state, WorldState).v.shape[0]))
    return _run_winch_steps(world, state, drives, pushes, wiring, schedule, memory)


@kernel
def _run_winch_steps(
    world: Table[WorldArrays],
    state: Table[WorldState],
    drives: Table[DriveTable],
    pushes: Table[PushTable],
    wiring: Table[WinchWiring],
    schedule: Schedule,
    memory: F2,
) -> tuple[int, int]:
    """`run_winch_steps` with zeroed memory (3, nv)."""
    t, w, c, elements = unpack(world, WorldArrays)
    x, impulses, d = unpack(state, WorldState), unpack(pushes, PushTable), unpack(drives, DriveTable)
    g = unpack(wiring, WinchWiring)
    h, limits = schedule.h, ReferenceLimits(d.lower, d.upper, d.lead)
    n, nv = d.kp.shape[0], x.v.shape[0]
    iv, iq = nv - n, x.q.shape[0] - n
    tau, armature, moved = memory[0], memory[1], memory[2]
    joints, speed, a = x.q[iq:], x.v[iv:], x.acceleration[iv:]
    force, inertia = tau[iv:], armature[iv:]
    done, now = 0, schedule.time
    for _ in range(schedule.steps):
        silent = now - schedule.since >= schedule.coast
        advance_drive_references(d.mode, d.q_ref, d.v_ref, limits, joints, silent, h)
        _measure_paths(g, joints, speed)
        # Winch loops act on the last tension; all other winch terms are implicit in the step.
        run_drives(g.winches, h)
        predict_tensions(g.winches, h)
        drive_terms(d, joints, speed, a, h, force, inertia)
        impressed_forces(t, w, x, c, elements, impulses, now, h)
        _fill(t, w, c, g, h)
        rounds = 1
        while True:
            _solve(t, w, g, (tau, armature), h, x.acceleration)
            again = switch_drives(d, joints, speed, a, h, force, inertia, switching_rule(rounds))
            _end_rates(g, speed, a, h)
            # A limit, since tendons are only released within a step, but released ones change the rates of others.
            if rounds <= SLACK_ROUNDS and release_slack(g.winches, g.rate):
                again = True
            if c.body.shape[0] > 0 and (rounds == 1 or (again and rounds <= CONTACT_ROUNDS)):
                _accelerate_bodies(t, w, x.acceleration)
                if correct_contact(w.W, x, c, h):
                    again = True
                    # Contact has changed: its wrench and gains enter M and rhs again.
                    kinematics_pass(t, x.q, x.v, w)
                    _fill(t, w, c, g, h)
            if not again:
                break
            rounds += 1
        if c.body.shape[0] > 0:
            _accelerate_bodies(t, w, x.acceleration)
            forces_at_the_end(w.W, x, c, h)
        bad = integrate_state(t, x, moved, h, FASTEST)
        if bad != FINE:
            return done, bad
        joint_torques(g.winches, g.rate, g.pull)
        move_winches(g.winches, g.rate, h)
        for k in range(n):
            x.torque[k] = d.scratch[MOTOR, k] - d.scratch[MOTOR_GAIN, k] * a[k]
        for k in range(g.joint.shape[0]):
            # Crossed joints have no motor: the reported torque is the tendons'.
            x.torque[g.joint[k]] = g.pull[k]
        done += 1
        now = schedule.time + done * h
    return done, FINE


@inlined
def _measure_paths(g: WinchWiring, joints: np.ndarray, speed: np.ndarray) -> None:
    for k in range(g.joint.shape[0]):
        g.theta[k], g.rate[k] = joints[g.joint[k]], speed[g.joint[k]]
    measure(g.routing.routing, g.theta, g.routing.placed, g.winches.length, g.winches.arms, True)
    correct_lengths(g.winches)
    path_rates(g.winches, g.rate)


@inlined
def _end_rates(g: WinchWiring, speed: np.ndarray, a: np.ndarray, h: float) -> None:
    for k in range(g.joint.shape[0]):
        g.rate[k] = speed[g.joint[k]] + h * a[g.joint[k]]


@inlined
def _fill(t: Tables, w: Work, c: ContactTable, g: WinchWiring, h: float) -> None:
    """Fill M and rhs under contact and pushes alone, after `kinematics_pass`."""
    add_wrenches(t, c.wrench, w)
    stiffen_contacts(w.W, c, h)
    w.M[:] = 0.0
    fill_mass_matrix(t, g.none, g.none, w)


@inlined
def _solve(t: Tables, w: Work, g: WinchWiring, force: tuple[np.ndarray, np.ndarray], h: float, out: np.ndarray) -> None:
    tau, armature = force
    n = tau.shape[0]
    for i in range(n):
        # The lower triangle suffices; M is kept for further solutions of the step.
        for j in range(i + 1):
            g.A[i, j] = w.M[i, j]
    for k in range(n):
        # rank: row of a coordinate in tree order.
        r = t.rank[k]
        g.A[r, r] += armature[k]
        g.x[r] = w.rhs[r] + tau[k]
    # Implicit tendons: h G^T alpha G and -G^T (T0 + alpha G v).
    add_tendons(g.winches, g.row, h, g.A, g.x)
    dense_solve(g.A, g.x)
    for k in range(n):
        out[k] = g.x[t.rank[k]]


@inlined
def _accelerate_bodies(t: Tables, w: Work, qdd: np.ndarray) -> None:
    ints, W, J = t.ints, w.W, w.J
    for i in range(ints.shape[0]):
        o, po = (i + 1) * NW, ints[i, PARENT] * NW
        # Outward recursion: parent's acceleration, velocity-product drift, then the joint's own part J qdd.
        x = acceleration_down(W, o, po)
        b, p = o + DRIFT, o + ACC
        for e in range(6):
            W[p + e] = x[e] + W[b + e]
        if ints[i, MOTION] >= FREE:
            for c in range(ints[i, NC]):
                for e in range(6):
                    W[p + e] += J[ints[i, GROUP_JACOBIAN] + 6 * c + e] * qdd[ints[i, COORD + c]]
        else:
            W[p + (2 if ints[i, MOTION] == REVOLUTE else 5)] += qdd[ints[i, COORD]]
