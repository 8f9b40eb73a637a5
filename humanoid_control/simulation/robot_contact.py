"""The contact points of a robot, in the axes of the multibody engine's bodies."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.multibody.from_pinocchio import Tree
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact_forces import ContactTable, contact_table_of
from humanoid_control.simulation.contact_points import Bodies, ContactPoints
from humanoid_control.simulation.settings import WorldSettings


def engine_links(model: pin.Model, tree: Tree) -> dict[str, tuple[int, pin.SE3]]:
    """link -> (index of its body, pose of the link's frame in that body's frame), of all links that move."""
    out = {}
    for f in model.frames:
        if f.type == pin.FrameType.BODY and f.parentJoint > 0:
            Q = tree.turn[tree.bodies[f.parentJoint - 1].name].T
            out[f.name] = (int(f.parentJoint) - 1, pin.SE3(Q @ f.placement.rotation, Q @ f.placement.translation))
    return out


def contact_points(robot: Robot, links: Bodies, settings: WorldSettings) -> ContactPoints | None:
    """Where a robot with a floating base can touch the ground; None where its base is fixed.

    Args:
        links: of `engine_links`.
    """
    return ContactPoints(robot, links, settings.touching) if robot.base == "floating" else None


def contact_table(points: ContactPoints | None, bodies: int, settings: WorldSettings) -> ContactTable:
    """The contact points and the ground as the compiled steps read them.

    Args:
        bodies: number of bodies of the model.
    """
    body = np.zeros(0, np.int64) if points is None else points.body
    where = np.zeros((0, 4)) if points is None else points.points
    return contact_table_of(body, where, settings.ground.array, settings.contact.array(), bodies)
