"""Steps of the simulated world, many per compiled call: drives, contact, dynamics, integration.

Semi-implicit Euler, implicit in drives, limits, stops and contact. `run_steps`: ideal drives; `run_driven_steps`:
motors and gears.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.multibody.acceleration_pass import acceleration_pass
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.force_elements import ElementTable, add_element_wrenches
from humanoid_control.multibody.inertia_pass import inertia_pass
from humanoid_control.multibody.kinematics_pass import add_wrenches, integrate_configuration, kinematics_pass
from humanoid_control.multibody.layout import ACC, COORD, NW, RATE, ROT
from humanoid_control.multibody.spatial import add_point_inertia, cross, symmetric_up, turn, turn_back
from humanoid_control.simulation.contact.forces import ContactTable, add_wrench, contact_step, place_carriers
from humanoid_control.simulation.contact.ground import ground_height
from humanoid_control.simulation.contact.points import DAMPING, FRICTION, STIFFNESS
from humanoid_control.simulation.drives.motors_gears import (
    RATIO,
    ShaftTable,
    current_controlled_step,
    desired_currents,
    limit_joint_torques,
    shaft_forces,
)
from humanoid_control.simulation.drives.position_control import (
    MOTOR,
    MOTOR_GAIN,
    SLOWLY,
    STOP,
    STOP_GAIN,
    DriveTable,
    ReferenceLimits,
    advance_drive_references,
    drive_terms,
    stop_piece,
    switch_drives,
    switch_stop,
    switching_rule,
)

FASTEST = 1e4  # [rad/s] or [m/s]: faster means a failed integration
FINE = -1
CONTACT_ROUNDS = 2  # last round with contact correction, below NEWTON_ROUNDS: line searches need fixed equations

# -------- Records


class WorldArrays(NamedTuple):
    """Bodies, contact points and force elements of a robot for kernels."""

    tables: Tables
    work: Work
    contact: ContactTable
    elements: ElementTable


class WorldState(NamedTuple):
    """State of a world.

    Attributes:
        torque: (n,) of the motors [N m].
        layers: (np, 3) contact deflections [m].
        forces: (np, 3) of the ground on the points [N].
    """

    q: F1
    v: F1
    acceleration: F1
    torque: F1
    layers: F2
    forces: F2


class PushTable(NamedTuple):
    """Pushes (k,): body, end time [s], point in the body frame (3,), force and torque in the world (6,)."""

    body: I1
    until: F1
    point: F2
    wrench: F2


def push_table(rows: Sequence[tuple[int, float, np.ndarray, np.ndarray]]) -> PushTable:
    """Pack rows (body, until, point, wrench)."""
    n = len(rows)
    return PushTable(
        np.array([r[0] for r in rows], dtype=np.int64),
        np.array([r[1] for r in rows], dtype=float),
        np.array([r[2] for r in rows], dtype=float).reshape(n, 3),
        np.array([r[3] for r in rows], dtype=float).reshape(n, 6),
    )


class Schedule(NamedTuple):
    """Steps of one call.

    Attributes:
        time: now [s].
        since: last command [s].
        coast: [s], see `WorldSettings`.
        h: step [s].
        steps: number of steps.
    """

    time: float
    since: float
    coast: float
    h: float
    steps: int


class MotorWiring(NamedTuple):
    """Joints as model coordinates, and the electrical state.

    Attributes:
        joint: (k,) of each moving coordinate after the base.
        held: joints without dynamics.
        speed: (n,) limits [rad/s].
        motor_side: (k,) shaft with the encoder of the position loop, -1: joint encoder.
        angles: (n,) [rad].
        rates: (n,) [rad/s].
        current: (m,) [A].
        desired: (m,) [A].
        turning: (m,) [rad/s].
    """

    joint: I1
    held: I1
    speed: F1
    motor_side: I1
    angles: F1
    rates: F1
    current: F1
    desired: F1
    turning: F1


class Motors(NamedTuple):
    """Shafts, wiring to the joints, and `decays` (m, 2) in a step."""

    shafts: ShaftTable
    wiring: MotorWiring
    decay: F2


# -------- Ideal drives


@kernel(allocates=True)
def run_steps(
    world: Table[WorldArrays],
    state: Table[WorldState],
    drives: Table[DriveTable],
    pushes: Table[PushTable],
    schedule: Schedule,
) -> tuple[int, int]:
    """Advance the world; the arguments are packed records, the state changes.

    Returns:
        Number of steps, and FINE or the diverged velocity coordinate; then the last good state is kept.
    """
    memory = np.zeros((3, unpack(state, WorldState).v.shape[0]))
    done, bad = _run_steps(world, state, drives, pushes, schedule, memory)
    memory[0] = 0.0  # it is kept until here
    return done, bad


@kernel
def _run_steps(
    world: Table[WorldArrays],
    state: Table[WorldState],
    drives: Table[DriveTable],
    pushes: Table[PushTable],
    schedule: Schedule,
    memory: F2,
) -> tuple[int, int]:
    """`run_steps` with zeroed memory (3, nv)."""
    t, w, c, elements = unpack(world, WorldArrays)
    x, impulses, d = unpack(state, WorldState), unpack(pushes, PushTable), unpack(drives, DriveTable)
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
        drive_terms(d, joints, speed, a, h, force, inertia)
        impressed_forces(t, w, x, c, elements, impulses, now, h)
        solve_step(t, w, x, c, tau, armature, h)
        rounds = 1
        while True:
            # Solve, correct the active pieces of drives and contact, solve again until nothing changes.
            again = switch_drives(d, joints, speed, a, h, force, inertia, switching_rule(rounds))
            if rounds == 1 or (again and rounds <= CONTACT_ROUNDS):
                again = correct_contact(w.W, x, c, h) or again
            if not again:
                break
            kinematics_pass(t, x.q, x.v, w)
            solve_step(t, w, x, c, tau, armature, h)
            rounds += 1
        forces_at_the_end(w.W, x, c, h)
        bad = integrate_state(t, x, moved, h, FASTEST)
        if bad != FINE:
            return done, bad
        for k in range(n):
            # Implicit motor torque t - g a at the end of the step.
            x.torque[k] = d.scratch[MOTOR, k] - d.scratch[MOTOR_GAIN, k] * a[k]
        done += 1
        now = schedule.time + done * h
    return done, FINE


@inlined(allocates=True)
def integrate_state(t: Tables, x: WorldState, moved: F1, h: float, fastest: float) -> int:
    """Integrate velocities, then positions; return FINE, or the first coordinate beyond `fastest`, without changes."""
    for k in range(moved.shape[0]):
        # All velocities are checked before any is stored: the last good state survives; NaN fails the test too.
        moved[k] = x.v[k] + h * x.acceleration[k]
        if not abs(moved[k]) < fastest:
            return k
    x.v[:] = moved
    integrate_configuration(t, x.q, x.v, h)
    return FINE


# -------- Forces on the bodies


@inlined
def impressed_forces(
    t: Tables, w: Work, x: WorldState, c: ContactTable, elements: ElementTable, pushes: PushTable, now: float, h: float
) -> None:
    """Compute kinematics, then impressed forces: contact, pushes, force elements."""
    kinematics_pass(t, x.q, x.v, w)
    if c.body.shape[0] > 0:
        place_carriers(w.W, c)
        contact_step(c, x.layers, h, x.forces)
    else:
        c.wrench[:] = 0.0
    for k in range(pushes.body.shape[0]):
        if now < pushes.until[k] - 1e-9:
            _push(w.W, pushes, k, c.wrench)
    if elements.state.shape[0] > 0:
        add_element_wrenches(t, w, elements, x.q, x.v, c.wrench)


@inlined
def _push(W: F1, p: PushTable, k: int, wrench: F2) -> None:
    i = p.body[k]
    e = (i + 1) * NW + ROT
    fx, fy, fz = turn_back(W, e, p.wrench[k, 0], p.wrench[k, 1], p.wrench[k, 2])
    mx, my, mz = turn_back(W, e, p.wrench[k, 3], p.wrench[k, 4], p.wrench[k, 5])
    x, y, z = p.point[k, 0], p.point[k, 1], p.point[k, 2]
    # Moment about the body origin: torque + point x force, in body axes.
    wrench[i, 0] += mx + y * fz - z * fy
    wrench[i, 1] += my + z * fx - x * fz
    wrench[i, 2] += mz + x * fy - y * fx
    wrench[i, 3] += fx
    wrench[i, 4] += fy
    wrench[i, 5] += fz


@inlined
def solve_step(t: Tables, w: Work, x: WorldState, c: ContactTable, tau: F1, armature: F1, h: float) -> None:
    """Compute accelerations; contact acts with its force at the end of the step."""
    add_wrenches(t, c.wrench, w)
    stiffen_contacts(w.W, c, h)
    inertia_pass(t, tau, armature, w)
    acceleration_pass(t, w, x.acceleration)


@inlined
def stiffen_contacts(W: F1, c: ContactTable, h: float) -> None:
    """Add h J^T K J of all contact points to the body inertias."""
    for k in range(c.body.shape[0]):
        if c.gains[k, 0] + c.gains[k, 3] + c.gains[k, 5] > 0.0:
            _stiffen(W, c, k, h)


@inlined
def _stiffen(W: F1, c: ContactTable, k: int, h: float) -> None:
    o = (c.body[k] + 1) * NW
    e, g = o + ROT, c.gains
    # Arms are in world axes, inertias in body axes.
    point = turn_back(W, e, c.arms[k, 0], c.arms[k, 1], c.arms[k, 2])
    xx, xy, xz, yy, yz, zz = symmetric_up(W, e, (g[k, 0], g[k, 1], g[k, 2], g[k, 3], g[k, 4], g[k, 5]))
    add_point_inertia(W, o, point, (h * xx, h * xy, h * xz, h * yy, h * yz, h * zz))


@inlined
def _fall(W: F1, c: ContactTable, k: int, h: float) -> tuple[float, float, float]:
    """Return the fall of a contact force during the step in the world, h K a."""
    o = (c.body[k] + 1) * NW
    a, e = o + ACC, o + ROT
    x, y, z = turn(W, e, W[a], W[a + 1], W[a + 2])
    u, v, w = turn(W, e, W[a + 3], W[a + 4], W[a + 5])
    # Acceleration of the point, a + alpha x arm, without the centripetal term.
    cx, cy, cz = cross(x, y, z, c.arms[k, 0], c.arms[k, 1], c.arms[k, 2])
    u, v, w = h * (u + cx), h * (v + cy), h * (w + cz)
    g = c.gains
    return (
        g[k, 0] * u + g[k, 1] * v + g[k, 2] * w,
        g[k, 1] * u + g[k, 3] * v + g[k, 4] * w,
        g[k, 2] * u + g[k, 4] * v + g[k, 5] * w,
    )


@inlined
def correct_contact(W: F1, x: WorldState, c: ContactTable, h: float) -> bool:
    """Correct forces that would leave the friction cone at the end of the step; True if any.

    Pulling points release; points held beyond the cone slide.
    """
    corrected = False
    f, mu = x.forces, c.par[FRICTION]
    for k in range(c.body.shape[0]):
        if c.gains[k, 0] + c.gains[k, 3] + c.gains[k, 5] > 0.0:
            b = c.body[k]
            dx, dy, dz = _fall(W, c, k, h)
            _, nx, ny, nz = ground_height(c.ground, c.r[b, 0] + c.arms[k, 0], c.r[b, 1] + c.arms[k, 1])
            ex, ey, ez = f[k, 0] - dx, f[k, 1] - dy, f[k, 2] - dz
            normal = nx * ex + ny * ey + nz * ez
            tx, ty, tz = ex - normal * nx, ey - normal * ny, ez - normal * nz
            held = math.sqrt(tx * tx + ty * ty + tz * tz)
            # Pull: release. Without gain the point is a free one in the next solution.
            if normal < 0.0:
                gx, gy, gz = 0.0, 0.0, 0.0
                c.gains[k, :] = 0.0
            elif held > 1.0001 * mu * normal:
                # Slip: the tangential force is cut to the cone; only the normal stays implicit.
                now, s = nx * f[k, 0] + ny * f[k, 1] + nz * f[k, 2], mu * normal / held
                gx, gy, gz = now * nx + s * tx, now * ny + s * ty, now * nz + s * tz
                d = c.par[DAMPING] + h * c.par[STIFFNESS]
                c.gains[k, 0], c.gains[k, 1], c.gains[k, 2] = d * nx * nx, d * nx * ny, d * nx * nz
                c.gains[k, 3], c.gains[k, 4], c.gains[k, 5] = d * ny * ny, d * ny * nz, d * nz * nz
            else:
                continue
            corrected = True
            # The wrench already contains the old force: add the difference.
            arm = (c.arms[k, 0], c.arms[k, 1], c.arms[k, 2])
            add_wrench(c.R, b, arm, (gx - f[k, 0], gy - f[k, 1], gz - f[k, 2]), c.wrench)
            f[k, 0], f[k, 1], f[k, 2] = gx, gy, gz
    return corrected


@inlined
def forces_at_the_end(W: F1, x: WorldState, c: ContactTable, h: float) -> None:
    """Reduce the contact forces to those at the end of the step."""
    for k in range(c.body.shape[0]):
        if c.gains[k, 0] + c.gains[k, 3] + c.gains[k, 5] > 0.0:
            dx, dy, dz = _fall(W, c, k, h)
            x.forces[k, 0] -= dx
            x.forces[k, 1] -= dy
            x.forces[k, 2] -= dz


# -------- Motors and gears


@kernel(allocates=True)
def run_driven_steps(
    world: Table[WorldArrays],
    state: Table[WorldState],
    drives: Table[DriveTable],
    pushes: Table[PushTable],
    motors: Table[Motors],
    schedule: Schedule,
) -> tuple[int, int]:
    """Advance a robot with motors and gears by short steps; see `run_steps`."""
    memory = np.zeros((8, unpack(state, WorldState).v.shape[0]))
    done, bad = _run_driven_steps(world, state, drives, pushes, motors, schedule, memory)
    memory[0] = 0.0  # it is kept until here
    return done, bad


@kernel(allocates=True)
def _run_driven_steps(
    world: Table[WorldArrays],
    state: Table[WorldState],
    drives: Table[DriveTable],
    pushes: Table[PushTable],
    motors: Table[Motors],
    schedule: Schedule,
    memory: F2,
) -> tuple[int, int]:
    """`run_driven_steps` with zeroed memory (8, nv)."""
    t, w, c, elements = unpack(world, WorldArrays)
    x, impulses, d = unpack(state, WorldState), unpack(pushes, PushTable), unpack(drives, DriveTable)
    s, e, decay = unpack(motors, Motors)
    W, limits = w.W, ReferenceLimits(d.lower, d.upper, d.lead)
    h, moving = schedule.h, e.joint.shape[0]
    iv, iq = _first_joint(x)
    tau, armature, goal, moved = memory[0], memory[1], memory[2], memory[3]
    free, light = memory[4], memory[5]  # tau and armature without the stops
    limit, given = memory[6], memory[7]  # motor torques at the joints
    limit[:] = np.inf
    for k in range(moving):
        limit[iv + k] = d.torque_limit[e.joint[k]]
    done, now = 0, schedule.time
    for _ in range(schedule.steps):
        for k in range(moving):
            e.angles[e.joint[k]], e.rates[e.joint[k]] = x.q[iq + k], x.v[iv + k]
        silent = now - schedule.since >= schedule.coast
        advance_drive_references(d.mode, d.q_ref, d.v_ref, limits, e.angles, silent, h)
        for j in e.held:
            most = h * e.speed[j]
            # Held joints have no dynamics: they follow their references at most at their speed limit.
            change = min(max(d.q_ref[j] - e.angles[j], -most), most)
            e.angles[j] += change
            e.rates[j] = change / h
        impressed_forces(t, w, x, c, elements, impulses, now, h)
        tau[:] = 0.0
        armature[:] = 0.0
        # Cascade: position loop -> joint torque -> motor current -> voltage -> mean torque over the step.
        _joint_loops(t, x, d, s, e, goal)
        desired_currents(t, W, s, goal, e.desired)
        for k in range(s.body.shape[0]):
            e.turning[k] = W[(s.body[k] + 1) * NW + RATE]
        current_controlled_step(e.current, e.desired, e.turning, decay, s.motor, s.torque)
        limit_joint_torques(W, s, limit, e.current, given)
        shaft_forces(t, W, s, x.q, x.v, h, tau, armature)
        # Only stops and contact change between solutions; motors and gears are fixed for the step.
        free[:], light[:] = tau, armature
        _choose_stops(x, d, e, h)
        rounds = 0
        while True:
            _add_stops(d, e, iv, free, light, tau, armature)
            solve_step(t, w, x, c, tau, armature, h)
            rounds += 1
            again = _switch_stops(x, d, e, h, switching_rule(rounds))
            if rounds == 1 or (again and rounds <= CONTACT_ROUNDS):
                again = correct_contact(W, x, c, h) or again
            if not again:
                break
            kinematics_pass(t, x.q, x.v, w)
        forces_at_the_end(w.W, x, c, h)
        bad = integrate_state(t, x, moved, h, 200 * FASTEST)  # rotors exceed joint speeds by their gear ratio
        if bad != FINE:
            return done, bad
        for k in range(moving):
            x.torque[e.joint[k]] = given[iv + k]
        done += 1
        now = schedule.time + done * h
    return done, FINE


@inlined
def _first_joint(x: WorldState) -> tuple[int, int]:
    # A floating base has one more q (quaternion) than v.
    iv = 6 if x.q.shape[0] > x.v.shape[0] else 0
    return iv, iv + x.q.shape[0] - x.v.shape[0]


@inlined
def _joint_loops(t: Tables, x: WorldState, d: DriveTable, s: ShaftTable, e: MotorWiring, goal: F1) -> None:
    """Compute the torques of the position loops, goal (nv,)."""
    iv, iq = _first_joint(x)
    for k in range(e.joint.shape[0]):
        j, q, v = e.joint[k], x.q[iq + k], x.v[iv + k]
        seen, rate, m = q, v, e.motor_side[k]
        if m >= 0:
            o = t.ints[s.body[m], COORD]  # coordinate of the rotor
            # Motor encoder: position and speed at the joint side of the gear's reduction.
            seen, rate = x.q[t.qpos[o]] / s.gear[m, RATIO], x.v[o] / s.gear[m, RATIO]
        torque = d.driven[j] * (d.kp[j] * (d.q_ref[j] - seen) + d.kd[j] * (d.v_ref[j] - rate)) + d.effort[j]
        goal[iv + k] = min(max(torque, -d.torque_limit[j]), d.torque_limit[j])


@inlined
def _choose_stops(x: WorldState, d: DriveTable, e: MotorWiring, h: float) -> None:
    iv, iq = _first_joint(x)
    for k in range(e.joint.shape[0]):
        j = e.joint[k]
        a = x.acceleration[iv + k]
        d.scratch[STOP, j], d.scratch[STOP_GAIN, j] = stop_piece(d, j, x.q[iq + k], x.v[iv + k], a, h)


@inlined
def _add_stops(d: DriveTable, e: MotorWiring, iv: int, free: F1, light: F1, tau: F1, armature: F1) -> None:
    for k in range(e.joint.shape[0]):
        j = e.joint[k]
        tau[iv + k] = free[iv + k] + d.scratch[STOP, j]
        armature[iv + k] = light[iv + k] + d.scratch[STOP_GAIN, j]


@inlined
def _switch_stops(x: WorldState, d: DriveTable, e: MotorWiring, h: float, way: int) -> bool:
    """Select the stop pieces at the present accelerations; True if one changes."""
    iv, iq = _first_joint(x)
    changed = False
    for k in range(e.joint.shape[0]):
        a = x.acceleration[iv + k]
        if switch_stop(d, e.joint[k], x.q[iq + k], x.v[iv + k], a, h, way):
            changed = True
            if way == SLOWLY:  # one by one, lowest index first: Murty's rule for complementarity problems
                break
    return changed
