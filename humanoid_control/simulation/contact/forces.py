"""Contact of all points of a robot with the ground: compiled loops over flat arrays, without allocation.

The bodies, the points and what is known of the ground are in a `ContactTable`; the layers' deflections s (np, 3) [m]
and the forces (np, 3) on the points in world axes [N] belong to the state of whoever integrates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.layout import NW, OMEGA, POS, ROT, VEL
from humanoid_control.multibody.model import PinocchioBodies
from humanoid_control.multibody.spatial import turn
from humanoid_control.numerics.array_types import F1, F2, F3, I1
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
    """nb bodies with np points on a ground.

    Attributes:
        R (nb, 3, 3): body axes to world axes. r (nb, 3): origins in the world [m].
        V (nb, 6): angular velocity, then velocity of the origin, both in world axes.
        carriers: the bodies that carry points. body (np,): which body carries a point.
        points (np, 4): x y z in the frame of that body and a radius [m] (0: a corner, else the centre of a ball).
        ground, par: `Ground.array` and `ContactSettings.array`.
        wrench (nb, 6): written: on each body about its origin in its own axes, torque first, then force; zero for
            bodies without points.
        arms (np, 3), gains (np, 6): written by `contact_step`.
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
    """The table of points (np, 4) on bodies (np,), of `bodies` bodies that are nowhere yet."""
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
    """From the body's origin to its point, in world axes."""
    x, y, z = points[p, 0], points[p, 1], points[p, 2]
    return (
        R[b, 0, 0] * x + R[b, 0, 1] * y + R[b, 0, 2] * z,
        R[b, 1, 0] * x + R[b, 1, 1] * y + R[b, 1, 2] * z,
        R[b, 2, 0] * x + R[b, 2, 1] * y + R[b, 2, 2] * z,
    )


@inlined
def touching_point(ground: Array, r: Array, b: int, arm: Vec, radius: float) -> Vec:
    """From the body's origin to what of a ball touches: its point farthest down the normal of the ground below it.

    The ground is met where that point is, not where the middle of the ball is: the middle may be above the edge of a
    stair, whose slope does not continue beneath the ball.
    """
    cx, cy, cz = arm
    if radius == 0.0:
        return arm
    _, nx, ny, nz = ground_height(ground, r[b, 0] + cx, r[b, 1] + cy)
    return cx - radius * nx, cy - radius * ny, cz - radius * nz


class ContactFrame(NamedTuple):
    """Unit vectors in the world: upward normal of the ground, and two tangents.

    The first tangent is as world x seems from above, the second to its left.
    """

    normal: Vec
    first: Vec
    second: Vec


@inlined
def _contact_frame(nx: float, ny: float, nz: float) -> ContactFrame:
    c = 1.0 / np.sqrt(nx * nx + nz * nz)
    ax, az = c * nz, -c * nx
    return ContactFrame((nx, ny, nz), (ax, 0.0, az), (ny * az, nz * ax - nx * az, -ny * ax))


@inlined
def add_wrench(R: Array, b: int, arm: Vec, force: Vec, wrench: Array) -> None:
    """Add a force at an arm from the body's origin, both in world axes, to the body's wrench in its own axes."""
    cx, cy, cz = arm
    fx, fy, fz = force
    mx, my, mz = cy * fz - cz * fy, cz * fx - cx * fz, cx * fy - cy * fx
    for a in range(3):
        wrench[b, a] += R[b, 0, a] * mx + R[b, 1, a] * my + R[b, 2, a] * mz
        wrench[b, 3 + a] += R[b, 0, a] * fx + R[b, 1, a] * fy + R[b, 2, a] * fz


@kernel
def _all_points(c: ContactTable, s: Array, h: float, force: Array, out: Array) -> None:
    """Forces at all points; `out` gets the rates of s (h == 0) or the new s (h > 0, and may then be s itself)."""
    R, r, V, body, points, ground, par = c.R, c.r, c.V, c.body, c.points, c.ground, c.par
    wrench, arms, gains = c.wrench, c.arms, c.gains
    wrench[:] = 0.0
    for p in range(body.shape[0]):
        b = body[p]
        cx, cy, cz = arm_of(R, b, points, p)
        cx, cy, cz = touching_point(ground, r, b, (cx, cy, cz), points[p, 3])
        z, nx, ny, nz = ground_height(ground, r[b, 0] + cx, r[b, 1] + cy)
        gap = (r[b, 2] + cz - z) * nz
        if h > 0.0 and gap > 0.0 and s[p, 0] == 0.0 and s[p, 1] == 0.0 and s[p, 2] == 0.0:
            force[p, 0], force[p, 1], force[p, 2] = 0.0, 0.0, 0.0
            out[p, 0], out[p, 1], out[p, 2] = 0.0, 0.0, 0.0
            gains[p, :] = 0.0
            continue
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
    """Fall of the force for each m/s that the point gains, symmetric 3 x 3 in world axes [N s/m].

    Along the normal, and along the ground while the point sticks, that is d + h k. A sliding point has a force that
    only turns with its direction of motion.

    Args:
        force: along the frame's axes [N].
        sliding: velocity along its tangents [m/s].
    """
    fn, f1, f2 = force
    v1, v2 = sliding
    if fn <= 0.0:
        gains[p, :] = 0.0
        return
    dn = par[DAMPING] + h * par[STIFFNESS]
    dt = par[SHEAR_DAMPING] + h * par[SHEAR_STIFFNESS]
    size, along = np.sqrt(f1 * f1 + f2 * f2), 0.0
    c1, c2 = 1.0, 0.0
    if size > 0.9999 * par[KINETIC_FRICTION] * fn and size > 0.0:
        c1, c2 = f1 / size, f2 / size
        across = min(dt, size / max(np.sqrt(v1 * v1 + v2 * v2), 1e-6))
    else:
        along = across = dt
    # unit vectors in the world: u along the force, w across it
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
    """Fixed steps: move the deflections s to the end of the step of length h that led here, and give the forces.

    Call it once a step, with the present poses and velocities, before the accelerations are computed. Writes s, force
    and the table's wrench, and what a step needs that is implicit in the contact forces as well: its arms, from the
    body's origin to the point that touches, in world axes [m], and its gains, xx xy xz yy yz zz of a K in world axes
    [N s/m]. The force at the end of the step is force - h K (acceleration of the point); so h J^T K J is added to the
    inertia of the body, which keeps stiff ground under light feet stable at any step.
    """
    _all_points(c, s, h, force, s)


@kernel
def contact_forces(c: ContactTable, s: Array, force: Array, sdot: Array) -> None:
    """Forces and rates of the layers' deflections (np, 3) [m/s], for integrators that ask for rates.

    Writes force, sdot and the table's wrench.
    """
    _all_points(c, s, 0.0, force, sdot)


@kernel
def contact_settle(c: ContactTable, s: Array) -> None:
    """Deflections for a robot that was put here at rest: closed on the ground, nothing held along it. Writes s."""
    for p in range(c.body.shape[0]):
        b = c.body[p]
        cx, cy, cz = arm_of(c.R, b, c.points, p)
        cx, cy, cz = touching_point(c.ground, c.r, b, (cx, cy, cz), c.points[p, 3])
        z, _, _, nz = ground_height(c.ground, c.r[b, 0] + cx, c.r[b, 1] + cy)
        s[p, 0] = max(0.0, -(c.r[b, 2] + cz - z) * nz)
        s[p, 1], s[p, 2] = 0.0, 0.0


# -------- Contact points of a robot


def engine_links(model: pin.Model, tree: PinocchioBodies) -> dict[str, tuple[int, pin.SE3]]:
    """link -> (index of its body, pose of the link's frame in that body's frame), of all links that move."""
    out = {}
    for f in model.frames:
        if f.type == pin.FrameType.BODY and f.parentJoint > 0:
            Q = tree.turn[tree.bodies[f.parentJoint - 1].name].T
            out[f.name] = (int(f.parentJoint) - 1, pin.SE3(Q @ f.placement.rotation, Q @ f.placement.translation))
    return out


def contact_points(robot: Robot, links: Bodies, touching: Iterable[str] | str) -> ContactPoints | None:
    """Contact points of a robot with a floating base; None where its base is fixed.

    Args:
        links: of `engine_links`.
        touching: links next to the soles, see `ContactPoints`.
    """
    return ContactPoints(robot, links, touching) if robot.base == "floating" else None


def contact_table(points: ContactPoints | None, bodies: int, ground: Ground, settings: ContactSettings) -> ContactTable:
    """The contact points and the ground as the compiled steps read them.

    Args:
        bodies: number of bodies of the model.
    """
    body = np.zeros(0, np.int64) if points is None else points.body
    where = np.zeros((0, 4)) if points is None else points.points
    return contact_table_of(body, where, ground.array, settings.array(), bodies)


@kernel
def place_carriers(W: F1, c: ContactTable) -> None:
    """Poses and velocities of the bodies that carry contact points, in the world, after `kinematics_pass`."""
    for k in range(c.carriers.shape[0]):
        i = c.carriers[k]
        o = (i + 1) * NW
        for a in range(3):
            c.r[i, a] = W[o + POS + a]
            for b in range(3):
                c.R[i, a, b] = W[o + ROT + 3 * a + b]
        e = o + ROT
        c.V[i, 0], c.V[i, 1], c.V[i, 2] = turn(W, e, W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2])
        c.V[i, 3], c.V[i, 4], c.V[i, 5] = turn(W, e, W[o + VEL], W[o + VEL + 1], W[o + VEL + 2])
