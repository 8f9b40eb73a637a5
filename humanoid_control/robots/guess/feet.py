"""A guess at the soles of an unknown URDF: what of each leg is lowest, standing in the zero posture.

A sole is the rectangle around the lowest points of a body below the ankle, a few millimetres deep, as rounded edges and
four small balls under a foot are; where a body has no geometry, around the box that has its mass and inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.robots.description.robot_file import Foot
from humanoid_control.robots.description.urdf import UrdfTree
from humanoid_control.robots.guess.bodies import Bodies, bodies_of
from humanoid_control.robots.guess.limbs import JointAxis, LimbPair, ball_centre
from humanoid_control.robots.robot import Robot

DEEP = 0.006  # [m] above the lowest point within which a point is on the ground
LEAST = 0.03  # [m] a side of a sole is at least so long
LEVEL = 1e-3  # sine of the angle between an axis of a link and one of the robot
FLAT = 0.03  # [m] by which a body may be above the lowest one and still be a sole, as toes are
ANKLE = 0.06  # [m] axes that pass within this are an ankle


@dataclass(frozen=True)
class GuessedFoot:
    """What one leg stands on.

    Attributes:
        soles: rectangles, that of the ankle first. place: (3,) of the point `SIDE_foot_tcp` on it, in its link [m].
        how: it was found. weak: it is not from geometry.
    """

    soles: tuple[Foot, ...]
    place: np.ndarray
    how: str
    weak: bool


def guess_feet(robot: Robot, tree: UrdfTree, legs: LimbPair, bodies: Bodies, yaw: float) -> tuple[GuessedFoot, ...]:
    """The feet of both legs, the left one first; none where a link's axes lie across the robot's.

    Args:
        robot: with all joints at zero. tree: its URDF. legs: of it. bodies: their surfaces.
        yaw: turn about the vertical by which the robot looks along x [rad].
    """
    poses = {name: pin.SE3(X) for name, X in robot.link_poses(robot.q("zero")).items()}
    X_robot_world = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.zeros(3))
    poses = {name: X_robot_world * X for name, X in poses.items()}
    of = bodies_of(tree)
    out = []
    for side, way in zip("lr", (legs.left, legs.right), strict=True):
        ends = _below_ankle(way)
        surfaces = {of[j.child_link][0]: _surface(robot, tree, bodies, poses, of[j.child_link][0]) for j in ends}
        lowest = min(float(points[:, 2].min()) for points, _ in surfaces.values())
        soles: list[Foot] = []
        weak = False
        for joint in ends:
            body = of[joint.child_link][0]
            points, guessed = surfaces[body]
            if float(points[:, 2].min()) - lowest > FLAT:
                continue
            link = _level_link(body, of, poses)
            if link is None:
                continue
            sole = _rectangle(points, poses[link], f"{side}_{'foot' if not soles else 'toe'}", link)
            if sole is not None:
                soles.append(sole)
                weak = weak or guessed
        if not soles:
            return ()
        first = soles[0]
        ankle = X_robot_world.act(ends[0].point)
        at = poses[first.link].actInv(ankle)
        place = np.array([np.clip(at[0], first.x_min, first.x_max), np.clip(at[1], first.y_min, first.y_max), first.z])
        how = "the box of its inertia" if weak else "its lowest points"
        out.append(GuessedFoot(tuple(soles), place, how, weak))
    return tuple(out)


def _below_ankle(way: Sequence[JointAxis]) -> list[JointAxis]:
    """The last joint of the ankle, and toes after it: hinges of the end of a leg that do not meet the ankle's axes."""
    for k in range(len(way) - 1, 1, -1):
        _, group = ball_centre([way[k], way[k - 1]], ANKLE)
        if len(group) == 2 and abs(way[k].direction @ way[k - 1].direction) < 0.5:
            return list(way[k:])
    return [way[-1]]


def _surface(
    robot: Robot, tree: UrdfTree, bodies: Bodies, poses: dict[str, pin.SE3], body: str
) -> tuple[np.ndarray, bool]:
    """Points (n, 3) of a body in the world, and whether they are only those of the box of its inertia."""
    if body in bodies.surfaces:
        X = poses[body]
        return bodies.surfaces[body].vertices @ X.rotation.T + X.translation, False
    frame = robot.model.frames[robot.model.getFrameId(body, pin.FrameType.BODY)]
    inertia = robot.model.inertias[frame.parentJoint]
    moments, R = np.linalg.eigh(inertia.inertia)
    half = np.sqrt(np.maximum(1.5 / inertia.mass * (moments.sum() - 2 * moments), 0.0))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    corners = inertia.lever + (signs * half) @ R.T
    X = poses[body] * frame.placement.inverse()
    return corners @ X.rotation.T + X.translation, True


def _level_link(body: str, of: dict[str, tuple[str, pin.SE3]], poses: dict[str, pin.SE3]) -> str | None:
    """A link of the body whose axes are those of the robot: robot files have soles along the axes of their link."""
    links = [link for link, (b, _) in of.items() if b == body]
    level = [link for link in links if np.abs(poses[link].rotation - np.eye(3)).max() < LEVEL]
    return level[0] if level else None


def _rectangle(points: np.ndarray, X: pin.SE3, name: str, link: str) -> Foot | None:
    """The rectangle around the lowest points of a body, in the axes of a link."""
    low = points[points[:, 2] < points[:, 2].min() + DEEP]
    local = (low - X.translation) @ X.rotation
    (x0, y0, z), (x1, y1, _) = local.min(axis=0), local.max(axis=0)
    if min(x1 - x0, y1 - y0) < LEAST:
        return None
    return Foot(name, link, *(round(float(v), 4) for v in (x0, x1, y0, y1, z)))
