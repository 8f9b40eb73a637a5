"""The axes of a robot's joints as lines in space, in one posture, and the points where such lines meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from humanoid_control.robots.robot import Robot
from humanoid_control.robots.urdf_tree import UrdfTree, link_of


@dataclass
class JointAxis:
    """A moving joint in the zero posture.

    Attributes:
        name: of the joint; parent_link, child_link: as the URDF has them.
        point, direction: (3,) origin and unit axis in the world [m].
        slides: a prismatic joint.
        above: the next moving joint toward the root, None at the root.
        below: the next moving joints toward the tips.
    """

    name: str
    parent_link: str
    child_link: str
    point: np.ndarray
    direction: np.ndarray
    slides: bool
    above: JointAxis | None = None
    below: list[JointAxis] = field(default_factory=list)

    def subtree(self) -> list[JointAxis]:
        """This joint and all below."""
        return [self, *(j for child in self.below for j in child.subtree())]

    def distance(self, point: np.ndarray) -> float:
        """Distance of a point to the axis [m]."""
        return float(np.linalg.norm(np.cross(point - self.point, self.direction)))


def joint_axes(robot: Robot, tree: UrdfTree) -> dict[str, JointAxis]:
    """All moving joints of a robot in its zero posture, root first, without those that mimic another one."""
    poses = robot.link_poses(robot.q("zero"))
    parent_joint = {link_of(j, "child"): j for j in tree.joints}
    out: dict[str, JointAxis] = {}
    waiting = [tree.root]
    while waiting:
        link = waiting.pop(0)
        for element in (j for j in tree.joints if link_of(j, "parent") == link):
            child = link_of(element, "child")
            waiting.append(child)
            if element.get("type") == "fixed" or element.find("mimic") is not None:
                continue
            e = element.find("axis")
            a = np.array([float(v) for v in (e.get("xyz", "1 0 0") if e is not None else "1 0 0").split()])
            X = poses[child]
            # The axis does not change under the joint's own rotation, so the child's frame shows it as well.
            direction = X.rotation @ (a / np.linalg.norm(a))
            name = element.get("name", "")
            axis = JointAxis(name, link, child, np.array(X.translation), direction, element.get("type") == "prismatic")
            at = link
            while at in parent_joint and parent_joint[at].get("name") not in out:
                at = link_of(parent_joint[at], "parent")
            if at in parent_joint:
                axis.above = out[parent_joint[at].get("name", "")]
                axis.above.below.append(axis)
            out[name] = axis
    return out


def meeting_point(axes: Sequence[JointAxis]) -> np.ndarray | None:
    """The point (3,) with the least sum of squared distances to some axes; None where they are parallel."""
    A, b = np.zeros((3, 3)), np.zeros(3)
    for axis in axes:
        P = np.eye(3) - np.outer(axis.direction, axis.direction)
        A, b = A + P, b + P @ axis.point
    if np.linalg.eigvalsh(A)[0] < 0.05:
        return None
    return np.linalg.solve(A, b)


def ball_centre(axes: Sequence[JointAxis], near: float) -> tuple[np.ndarray, list[JointAxis]]:
    """Where the axes of a joint group meet, and those that do, taken in order while they pass near.

    The first two that are not parallel decide; a later one belongs to the group when it passes the point within `near`
    [m]. Of a single axis, or of parallel ones, the first one's origin is the point.
    """
    for k in range(1, len(axes)):
        point = meeting_point(axes[: k + 1])
        if point is None:
            continue
        group = list(axes[: k + 1])
        for axis in axes[k + 1 :]:
            if axis.distance(point) > near:
                break
            group.append(axis)
        centre = meeting_point(group)
        return (point if centre is None else centre), group
    return axes[0].point, [axes[0]]


def nearest_on(axis: JointAxis, other: JointAxis) -> np.ndarray:
    """The point (3,) of an axis that is nearest to another axis; its origin where they are parallel."""
    n = np.cross(other.direction, axis.direction)
    if n @ n < 0.05:
        return axis.point
    t = float((axis.point - other.point) @ np.cross(other.direction, n)) / float(n @ n)
    return axis.point + t * axis.direction
