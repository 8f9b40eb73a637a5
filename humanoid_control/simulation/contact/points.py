"""Where a robot can touch the ground: the corners of its soles and, if wanted, points of other links' shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import Robot
from humanoid_control.robots.shapes import Box, Capsule, Cylinder, Ellipsoid, EllipticCapsule, Shape, Sphere
from humanoid_control.simulation.contact.law import STATES_PER_POINT

Bodies = Mapping[str, tuple[int, pin.SE3]]
RIM = 8  # points around the rim of a round shape


def pinocchio_bodies(robot: Robot) -> dict[str, tuple[int, pin.SE3]]:
    """link -> (index of its joint in the pinocchio model, pose of the link's frame in that joint's frame)."""
    frames = (f for f in robot.model.frames if f.type == pin.FrameType.BODY)
    return {f.name: (int(f.parentJoint), f.placement) for f in frames}


class ContactPoints:
    """Contact points of a robot as flat arrays, in the layout of `contact_forces`.

    Attributes:
        names: (np,) of the points, such as l_foot_2.
        body: (np,) index of the body that carries a point. points: (np, 4) x y z in its frame and a radius [m].
        sole: (np,) index into `robot.feet`, -1 for points of other links.
    """

    def __init__(self, robot: Robot, bodies: Bodies | None = None, links: Iterable[str] | str = ()) -> None:
        """Gather the points.

        Args:
            robot: with soles, shapes and links.
            bodies: link -> (index of the body, pose of the link's frame in the body's frame); default: the joints of
                the robot's pinocchio model.
            links: other links whose shapes may touch the ground, or 'all'.

        Raises:
            UnknownNameError: a link that the robot or `bodies` does not have.
            ConfigError: a link without shapes.
        """
        self.bodies = pinocchio_bodies(robot) if bodies is None else bodies
        self.names: list[str] = []
        rows: list[np.ndarray] = []
        body: list[int] = []
        sole: list[int] = []

        def add(name: str, link: str, points: np.ndarray, foot: int) -> None:
            index, X = self._body(link)
            for k, row in enumerate(points):
                self.names.append(f"{name}_{k}")
                rows.append(np.append(X.act(row[:3]), row[3]))
                body.append(index)
                sole.append(foot)

        for k, foot in enumerate(robot.feet):
            add(foot.name, foot.link, np.column_stack([foot.corners(), np.zeros(4)]), k)
        soles = {foot.link for foot in robot.feet}
        shapes = [s for s in robot.shapes if s.link not in soles]
        if links == "all":
            links = {s.link for s in shapes}
        for link in [links] if isinstance(links, str) else sorted(links):
            self._body(link)
            if not any(s.link == link for s in robot.shapes):
                raise ConfigError(f"link '{link}' of {robot.name} has no collision shape that could touch the ground")
            for s in shapes:
                if s.link == link:
                    add(s.name, link, shape_points(s.shape), -1)
        self.points = np.array(rows, dtype=float).reshape(-1, 4)
        self.body = np.array(body, dtype=np.int64)
        self.sole = np.array(sole, dtype=np.int64)

    def _body(self, link: str) -> tuple[int, pin.SE3]:
        try:
            return self.bodies[link]
        except KeyError:
            raise UnknownNameError("link", link, self.bodies) from None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_states(self) -> int:
        """How many first-order states the layers have (Table 2.3: 48 for two feet with toes)."""
        return STATES_PER_POINT * len(self)

    def new_state(self) -> np.ndarray:
        """Layers at rest and unloaded, (np, 3)."""
        return np.zeros((len(self), STATES_PER_POINT))


def shape_points(shape: Shape) -> np.ndarray:
    """Points (n, 4) of a shape that may touch the ground: x y z in the link frame and a radius [m].

    Balls and capsules are exact; the others are represented by their corners or by points around their rims.
    """
    if isinstance(shape, Sphere):
        return np.array([[*shape.center, shape.radius]])
    if isinstance(shape, Capsule):
        return np.array([[*shape.p0, shape.radius], [*shape.p1, shape.radius]])
    if isinstance(shape, Box):
        signs = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
        xyz = np.array(shape.center) + signs * (np.array(shape.size) / 2) @ pin.rpy.rpyToMatrix(*shape.rpy).T
    elif isinstance(shape, Cylinder):
        p0, p1 = np.array(shape.p0), np.array(shape.p1)
        R = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), p1 - p0).toRotationMatrix()
        ring = shape.radius * _circle() @ R.T
        xyz = np.vstack([p0 + ring, p1 + ring])
    elif isinstance(shape, Ellipsoid):
        ball = np.vstack([_circle(), _circle()[:, [0, 2, 1]], _circle()[:, [2, 0, 1]]])
        xyz = np.array(shape.center) + np.unique(ball.round(12), axis=0) * np.array(shape.semi_axes)
    else:
        assert isinstance(shape, EllipticCapsule)
        top, down = np.array(shape.top_center), np.array([0.0, 0.0, -shape.l])
        ring, cap = _circle() * np.array([shape.b, shape.a, 0.0]), np.array([0.0, 0.0, shape.c])
        xyz = np.vstack([top + ring, top + down + ring, top + cap, top + down - cap])
    return np.column_stack([xyz, np.zeros(len(xyz))])


def _circle() -> np.ndarray:
    angle = 2 * np.pi * np.arange(RIM) / RIM
    return np.column_stack([np.cos(angle), np.sin(angle), np.zeros(RIM)])
