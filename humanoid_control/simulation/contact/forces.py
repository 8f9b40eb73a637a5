"""Contact forces of all points of a robot: compiled loops over flat arrays.

The integrator owns layer deflections s (np, 3) [m] and forces (np, 3) on the points in world axes [N].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2, F3, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.multibody.layout import NW, OMEGA, POS, ROT, VEL
from humanoid_control.multibody.model import PinocchioBodies
from humanoid_control.multibody.spatial import turn
from humanoid_control.robots.robot import Robot
from humanoid_control.simulation.contact.ground import Ground, ground_height
from humanoid_control.simulation.contact.points import (
    DAMPING,
    KINETIC_FRICTION,
    SHEAR_DAMPING,
    SHEAR_STIFFNESS,
    STIFFNESS,
    Bodies,
    ContactPoints,
    ContactSettings,
    contact_point,
    contact_point_step,
)

Vec = tuple[float, float, float]
Array = np.ndarray


class ContactTable(NamedTuple):
    """Ground, nb bodies and np contact points.

    Attributes:
        R: (nb, 3, 3) body axes in the world.
        r: (nb, 3) body origins in the world [m].
        V: (nb, 6) angular, linear velocity of the origin in world axes.
        carriers: bodies with points.
        body: (np,) of each point.
        points: (np, 4) x y z in the body frame, radius [m]; 0: a corner, else a ball.
        ground: `Ground.array`.
        par: `ContactSettings.array`.
        wrench: (nb, 6) output: torque, force about the body origin, own axes.
        arms: (np, 3) output of `contact_step`.
        gains: (np, 6) output of `contact_step`.
    """

    R: F3
    r: F2
    V: F2
    carriers: I1
    body: I1
    points: F2
    ground: F1
    par: F1
    wrench: F2
    arms: F2
    gains: F2


def contact_table_of(body: Array, points: Array, ground: Array, par: Array, bodies: int) -> ContactTable:
    n = len(body)
    return ContactTable(
        np.zeros((bodies, 3, 3)),
        np.zeros((bodies, 3)),
        np.zeros((bodies, 6)),
        np.unique(body),
        body,
        points,
        ground,
        par,
        np.zeros((bodies, 6)),
        np.zeros((n, 3)),
        np.zeros((n, 6)),
    )


@inlined
def arm_of(R: Array, b: int, points: Array, p: int) -> Vec:
    """Return the vector from body origin to point in world axes."""
    x, y, z = points[p, 0], points[p, 1], points[p, 2]
    return (
        R[b, 0, 0] * x + R[b, 0, 1] * y + R[b, 0, 2] * z,
        R[b, 1, 0] * x + R[b, 1, 1] * y + R[b, 1, 2] * z,
        R[b, 2, 0] * x + R[b, 2, 1] * y + R[b, 2, 2] * z,
    )


@inlined
def touching_point(ground: Array, r: Array, b: int, arm: Vec, radius: float) -> Vec:
    """Return the vector from body origin to contact point: of a ball the lowest point along the ground normal."""
    cx, cy, cz = arm
    if radius == 0.0:
        return arm
    # The ground is evaluated at the contact point, not below the centre, which may be above a stair's edge.
    _, nx, ny, nz = ground_height(ground, r[b, 0] + cx, r[b, 1] + cy)
    return cx - radius * nx, cy - radius * ny, cz - radius * nz


class ContactFrame(NamedTuple):
    """Upward ground normal and two tangents, unit vectors in the world.

    Seen from above, the first tangent is along x.
    """

    normal: Vec
    first: Vec
    second: Vec


@inlined
def _contact_frame(nx: float, ny: float, nz: float) -> ContactFrame:
    # First tangent: unit vector normal to n and to world y; second: n x first.
    c = 1.0 / np.sqrt(nx * nx + nz * nz)
    ax, az = c * nz, -c * nx
    return ContactFrame((nx, ny, nz), (ax, 0.0, az), (ny * az, nz * ax - nx * az, -ny * ax))


@inlined
def add_wrench(R: Array, b: int, arm: Vec, force: Vec, wrench: Array) -> None:
    """Add a force at an arm, both in world axes, to the body's wrench in its own axes."""
    cx, cy, cz = arm
    fx, fy, fz = force
    # Moment about the body origin; R^T rotates world vectors into body axes.
    mx, my, mz = cy * fz - cz * fy, cz * fx - cx * fz, cx * fy - cy * fx
    for a in range(3):
        wrench[b, a] += R[b, 0, a] * mx + R[b, 1, a] * my + R[b, 2, a] * mz
        wrench[b, 3 + a] += R[b, 0, a] * fx + R[b, 1, a] * fy + R[b, 2, a] * fz


@kernel
def _all_points(c: ContactTable, s: Array, h: float, force: Array, out: Array) -> None:
    """Compute all forces; `out` gets the rates of s (h == 0) or the new s (h > 0)."""
    R, r, V, body, points, ground, par = c.R, c.r, c.V, c.body, c.points, c.ground, c.par
    wrench, arms, gains = c.wrench, c.arms, c.gains
    wrench[:] = 0.0
    for p in range(body.shape[0]):
        b = body[p]
        cx, cy, cz = arm_of(R, b, points, p)
        cx, cy, cz = touching_point(ground, r, b, (cx, cy, cz), points[p, 3])
        z, nx, ny, nz = ground_height(ground, r[b, 0] + cx, r[b, 1] + cy)
        # Distance along the normal to the local tangent plane, not the vertical clearance.
        gap = (r[b, 2] + cz - z) * nz
        # Point in the air with a relaxed layer: no force, nothing to integrate.
        if h > 0.0 and gap > 0.0 and s[p, 0] == 0.0 and s[p, 1] == 0.0 and s[p, 2] == 0.0:
            force[p, 0], force[p, 1], force[p, 2] = 0.0, 0.0, 0.0
            out[p, 0], out[p, 1], out[p, 2] = 0.0, 0.0, 0.0
            gains[p, :] = 0.0
            continue
        # Velocity of the point: v + omega x arm, in world axes.
        ux = V[b, 3] + V[b, 1] * cz - V[b, 2] * cy
        uy = V[b, 4] + V[b, 2] * cx - V[b, 0] * cz
        uz = V[b, 5] + V[b, 0] * cy - V[b, 1] * cx
        frame = _contact_frame(nx, ny, nz)
        (ax, _, az), (bx, by, bz) = frame.first, frame.second
        v1, v2 = ax * ux + az * uz, bx * ux + by * uy + bz * uz
        if h > 0.0:
            fn, f1, f2, o0, o1, o2 = contact_point_step(gap, v1, v2, h, s[p], par)
        else:
            fn, f1, f2, o0, o1, o2 = contact_point(gap, nx * ux + ny * uy + nz * uz, v1, v2, s[p], par)
        out[p, 0], out[p, 1], out[p, 2] = o0, o1, o2
        # Back to world axes; the first tangent has no y component.
        fx, fy, fz = nx * fn + ax * f1 + bx * f2, ny * fn + by * f2, nz * fn + az * f1 + bz * f2
        force[p, 0], force[p, 1], force[p, 2] = fx, fy, fz
        if fn > 0.0:
            add_wrench(R, b, (cx, cy, cz), (fx, fy, fz), wrench)
        if h > 0.0:
            arms[p, 0], arms[p, 1], arms[p, 2] = cx, cy, cz
            _set_gain(gains, par, p, frame, (fn, f1, f2), (v1, v2), h)


@inlined
def _set_gain(
    gains: Array, par: Array, p: int, frame: ContactFrame, force: Vec, sliding: tuple[float, float], h: float
) -> None:
    """Set the fall K of the force per velocity, symmetric 3 x 3 in world axes [N s/m].

    K = d + h k along the normal and, while sticking, along the ground; a sliding force only turns with the velocity.
    """
    fn, f1, f2 = force
    v1, v2 = sliding
    if fn <= 0.0:
        gains[p, :] = 0.0
        return
    # Implicit layer: a velocity change dv changes the spring force by h k dv and the damper force by d dv.
    dn = par[DAMPING] + h * par[STIFFNESS]
    dt = par[SHEAR_DAMPING] + h * par[SHEAR_STIFFNESS]
    size, along = np.sqrt(f1 * f1 + f2 * f2), 0.0
    c1, c2 = 1.0, 0.0
    # Sliding: |f| is fixed by the cone, so only its direction reacts, by |f| / |v| across the motion.
    if size > 0.9999 * par[KINETIC_FRICTION] * fn and size > 0.0:
        c1, c2 = f1 / size, f2 / size
        across = min(dt, size / max(np.sqrt(v1 * v1 + v2 * v2), 1e-6))
    else:
        along = across = dt
    # Unit vectors in the world: u along the tangential force, w across it.
    (nx, ny, nz), (ax, _, az), (bx, by, bz) = frame
    ux, uy, uz = c1 * ax + c2 * bx, c2 * by, c1 * az + c2 * bz
    wx, wy, wz = c1 * bx - c2 * ax, c1 * by, c1 * bz - c2 * az
    gains[p, 0] = dn * nx * nx + along * ux * ux + across * wx * wx
    gains[p, 1] = dn * nx * ny + along * ux * uy + across * wx * wy
    gains[p, 2] = dn * nx * nz + along * ux * uz + across * wx * wz
    gains[p, 3] = dn * ny * ny + along * uy * uy + across * wy * wy
    gains[p, 4] = dn * ny * nz + along * uy * uz + across * wy * wz
    gains[p, 5] = dn * nz * nz + along * uz * uz + across * wz * wz


@kernel
def contact_step(c: ContactTable, s: Array, h: float, force: Array) -> None:
    """Advance the deflections s over the past step of length h and compute the forces.

    Call it once per step before the accelerations. Output: s, force, wrench, arms (world axes [m]), gains K (xx xy xz
    yy yz zz, world axes [N s/m]). The force at the end of the step is force - h K a.
    """
    _all_points(c, s, h, force, s)


@kernel
def contact_forces(c: ContactTable, s: Array, force: Array, sdot: Array) -> None:
    """Compute forces and deflection rates (np, 3) [m/s] for integrators of rates; writes force, sdot and wrench."""
    _all_points(c, s, 0.0, force, sdot)


@kernel
def contact_settle(c: ContactTable, s: Array) -> None:
    """Write the deflections s of a robot placed at rest: normal penetration, no shear."""
    for p in range(c.body.shape[0]):
        b = c.body[p]
        cx, cy, cz = arm_of(c.R, b, c.points, p)
        cx, cy, cz = touching_point(c.ground, c.r, b, (cx, cy, cz), c.points[p, 3])
        z, _, _, nz = ground_height(c.ground, c.r[b, 0] + cx, c.r[b, 1] + cy)
        # s > 0 is compression, the negative gap.
        s[p, 0] = max(0.0, -(c.r[b, 2] + cz - z) * nz)
        s[p, 1], s[p, 2] = 0.0, 0.0


# -------- Contact points of a robot


def engine_links(model: pin.Model, tree: PinocchioBodies) -> dict[str, tuple[int, pin.SE3]]:
    """Return link -> (body index, link pose in it) for moving links."""
    out = {}
    for f in model.frames:
        if f.type == pin.FrameType.BODY and f.parentJoint > 0:
            # Bodies may be rotated against their pinocchio joints, so that each joint axis is z.
            Q = tree.turn[tree.bodies[f.parentJoint - 1].name].T
            out[f.name] = (int(f.parentJoint) - 1, pin.SE3(Q @ f.placement.rotation, Q @ f.placement.translation))
    return out


def contact_points(robot: Robot, links: Bodies, touching: Iterable[str] | str) -> ContactPoints | None:
    return ContactPoints(robot, links, touching) if robot.base == "floating" else None


def contact_table(points: ContactPoints | None, bodies: int, ground: Ground, settings: ContactSettings) -> ContactTable:
    """Pack contact points and ground for a model of `bodies` bodies."""
    body = np.zeros(0, np.int64) if points is None else points.body
    where = np.zeros((0, 4)) if points is None else points.points
    return contact_table_of(body, where, ground.array, settings.array(), bodies)


@kernel
def place_carriers(W: F1, c: ContactTable) -> None:
    """Copy poses and velocities of the carriers, after `kinematics_pass`."""
    for k in range(c.carriers.shape[0]):
        i = c.carriers[k]
        o = (i + 1) * NW
        for a in range(3):
            c.r[i, a] = W[o + POS + a]
            for b in range(3):
                c.R[i, a, b] = W[o + ROT + 3 * a + b]
        e = o + ROT
        # The recursion keeps velocities in body axes; contact needs them in world axes.
        c.V[i, 0], c.V[i, 1], c.V[i, 2] = turn(W, e, W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2])
        c.V[i, 3], c.V[i, 4], c.V[i, 5] = turn(W, e, W[o + VEL], W[o + VEL + 1], W[o + VEL + 2])
