"""What connects a robot's contact points with the multibody engine: its bodies, their axes, their rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pinocchio as pin

from humanoid_control.jit import kernel
from humanoid_control.multibody.from_pinocchio import Tree
from humanoid_control.multibody.layout import NW, OMEGA, POS, ROT, VEL
from humanoid_control.multibody.spatial import turn
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact.forces import ContactTable, contact_table_of
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.law import ContactSettings
from humanoid_control.simulation.contact.points import Bodies, ContactPoints


def engine_links(model: pin.Model, tree: Tree) -> dict[str, tuple[int, pin.SE3]]:
    """link -> (index of its body, pose of the link's frame in that body's frame), of all links that move."""
    out = {}
    for f in model.frames:
        if f.type == pin.FrameType.BODY and f.parentJoint > 0:
            Q = tree.turn[tree.bodies[f.parentJoint - 1].name].T
            out[f.name] = (int(f.parentJoint) - 1, pin.SE3(Q @ f.placement.rotation, Q @ f.placement.translation))
    return out


def contact_points(robot: Robot, links: Bodies, touching: Iterable[str] | str) -> ContactPoints | None:
    """Where a robot with a floating base can touch the ground; None where its base is fixed.

    Args:
        links: of `engine_links`. touching: links beside the soles, see `ContactPoints`.
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
def place_carriers(W, c):
    """Poses and velocities of the bodies that carry contact points, in the world, from the rows of `forward1`."""
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
