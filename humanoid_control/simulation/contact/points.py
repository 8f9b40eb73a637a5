"""Contact points: the law of one point, a massless visco-elastic layer, and the points of a robot that may touch.

Each point carries three states, the deflections of its layer: s_n along the normal (positive: compressed) and
s_t along two tangents (the point ahead of where its layer touches the ground). The layer has no mass, so the force
that the ground gives is the one that spring and damper pass on, f = k s + d ds/dt. The ground gives any force in the
friction cone: it never pulls, and holds tangentially up to friction times the normal force. Both together leave one
answer without any case to remember, so nothing can chatter:

* the force that would keep the layer's surface where it is, projected on the cone, is the force;
* the layer moves by what is left, ds/dt = (f - k s) / d; without contact it relaxes with the time constant d / k.

The force is a continuous function of position, velocity and deflection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
import pinocchio as pin

from humanoid_control.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, EllipticCapsule, Shape, Sphere
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.jit import inlined, kernel
from humanoid_control.robots.robot import Robot

# Entries of `ContactSettings.array`.
STIFFNESS, DAMPING, SHEAR_STIFFNESS, SHEAR_DAMPING, FRICTION, KINETIC_FRICTION, STRIBECK_SPEED, CLOSURE_RATE = range(8)
AT_REST = 1e-12  # [m] deflection below which the layer of a point in the air counts as relaxed
Six = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class ContactSettings:
    """Stiffness, damping and friction of ground and soles. None are published with the law: the numbers are chosen.

    Attributes:
        stiffness [N/m], damping [N s/m]: of each point along the normal.
        shear_stiffness [N/m], shear_damping [N s/m]: of each point along the ground.
        friction: Coulomb coefficient of a point that sticks.
        kinetic_friction: of a point that slides faster than `stribeck_speed`; None: the same.
        stribeck_speed: where the lower coefficient is reached [m/s]; taken larger where the force would jump else.
        closure_rate: how fast the layer's surface closes on the ground [1/s]; it acts from 1/closure_rate seconds
            before a touch-down, which keeps the force continuous. Only the continuous law needs it.
    """

    stiffness: float = 1.0e5
    damping: float = 1.0e3
    shear_stiffness: float = 1.0e5
    shear_damping: float = 1.0e3
    friction: float = 0.8
    kinetic_friction: float | None = None
    stribeck_speed: float = 0.05
    closure_rate: float = 500.0

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "kinetic_friction" and value is None:
                continue
            low = 0.0 if "friction" in f.name else 1e-6
            if not (np.isfinite(value) and low <= value <= 1e9):
                what = "0 or more" if low == 0.0 else "positive"
                raise ConfigError(f"contact {f.name} must be {what}, got {value:g}")
        if self.kinetic_friction is not None and self.kinetic_friction > self.friction:
            raise ConfigError(
                f"contact kinetic_friction must not exceed friction {self.friction:g}, got {self.kinetic_friction:g}"
            )

    def array(self) -> np.ndarray:
        """The numbers as kernels read them (8,)."""
        kinetic = self.friction if self.kinetic_friction is None else self.kinetic_friction
        return np.array(
            [
                self.stiffness,
                self.damping,
                self.shear_stiffness,
                self.shear_damping,
                self.friction,
                kinetic,
                self.stribeck_speed,
                self.closure_rate,
            ]
        )


@inlined
def friction_share(trial: float, normal: float, damping: float, mu: float, kinetic: float, speed: float) -> float:
    """Share of the tangential force that sticking would need, and that the ground can give, 0 to 1.

    A surface that slides with w gives mu(w) N, while the layer's damper takes damping * w of the trial force:
    trial = mu(w) N + damping w. mu falls linearly from `mu` to `kinetic` over `speed`; the fall is never so steep
    that a trial force would have two answers.
    """
    most = mu * normal
    if trial <= most or trial <= 0.0:
        return 1.0
    drop = (mu - kinetic) * normal
    if drop <= 0.0:
        return most / trial
    v = max(speed, 2.0 * drop / damping)
    w = (trial - most) / (damping - drop / v)
    if w < v:
        return (most - drop * w / v) / trial
    return (most - drop) / trial


@inlined
def tangential_force(
    s1: float, s2: float, v1: float, v2: float, normal: float, k: float, d: float, par: np.ndarray
) -> tuple[float, float]:
    """Force of the point on its layer along the two tangents; the ground's force on the point is the opposite.

    Args:
        s1, s2 [m], v1, v2 [m/s]: deflections, and velocities of the point along the tangents.
        normal: normal force [N].
        k, d: stiffness and damping that count (of a step: d + h k).
        par: `ContactSettings.array`.
    """
    f1, f2 = k * s1 + d * v1, k * s2 + d * v2
    share = friction_share(
        np.sqrt(f1 * f1 + f2 * f2), normal, d, par[FRICTION], par[KINETIC_FRICTION], par[STRIBECK_SPEED]
    )
    return share * f1, share * f2


@kernel
def contact_point(gap: float, vn: float, v1: float, v2: float, s: np.ndarray, par: np.ndarray) -> Six:
    """The law in continuous time, for integrators that ask for rates.

    Args:
        gap: distance of the point from the ground along the normal, negative below it [m].
        vn, v1, v2: velocity of the point along normal and tangents [m/s].
        s: (3,) deflections s_n, s_1, s_2 [m].
        par: `ContactSettings.array`.

    Returns:
        Force on the point along normal and tangents (3 numbers) [N], and the rates of s (3 numbers) [m/s].
    """
    k, d, kt, dt = par[STIFFNESS], par[DAMPING], par[SHEAR_STIFFNESS], par[SHEAR_DAMPING]
    normal = max(0.0, k * s[0] - d * (vn + par[CLOSURE_RATE] * (gap + s[0])))
    f1, f2 = tangential_force(s[1], s[2], v1, v2, normal, kt, dt, par)
    return normal, -f1, -f2, (normal - k * s[0]) / d, (f1 - kt * s[1]) / dt, (f2 - kt * s[2]) / dt


@kernel
def contact_point_step(gap: float, v1: float, v2: float, h: float, s: np.ndarray, par: np.ndarray) -> Six:
    """The law over one fixed step that has just ended (implicit Euler for the layer): closure and cone hold exactly.

    Args:
        gap [m], v1, v2 [m/s]: of the point now, at the end of the step.
        h: length of the step [s].
        s: (3,) deflections at the start of the step [m].
        par: `ContactSettings.array`.

    Returns:
        Force on the point along normal and tangents (3 numbers) [N], and the new deflections (3 numbers) [m].
    """
    k, d, kt, dt = par[STIFFNESS], par[DAMPING], par[SHEAR_STIFFNESS], par[SHEAR_DAMPING]
    free = s[0] / (1.0 + h * k / d)
    if gap > 0.0 and free < AT_REST and abs(s[1]) + abs(s[2]) < AT_REST:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    sn = max(-gap, free)
    normal = (k + d / h) * (sn - free)
    f1, f2 = tangential_force(s[1], s[2], v1, v2, normal, kt, dt + h * kt, par)
    # f = k s+ + d (s+ - s) / h, solved for s+
    a, b = 1.0 / (1.0 + h * kt / dt), h / (dt + h * kt)
    return normal, -f1, -f2, sn, a * s[1] + b * f1, a * s[2] + b * f2


# -------- Points of a robot

Bodies = Mapping[str, tuple[int, pin.SE3]]
RIM = 8  # points around the rim of a round shape


def pinocchio_bodies(robot: Robot) -> dict[str, tuple[int, pin.SE3]]:
    """link -> (index of its joint in the pinocchio model, pose of the link's frame in that joint's frame)."""
    frames = (f for f in robot.model.frames if f.type == pin.FrameType.BODY)
    return {f.name: (int(f.parentJoint), f.placement) for f in frames}


class ContactPoints:
    """Contact points of a robot as flat arrays, in the layout of `contact_forces`; each has three states of its layer.

    Attributes:
        names: (np,) of the points, such as l_foot_2.
        body: (np,) index of the body that carries a point.
        points: (np, 4) x y z in its frame and a radius [m].
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
