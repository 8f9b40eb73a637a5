"""Contact points: the force law of one point, a massless visco-elastic layer, and the points of a robot.

States of a point: deflections of its layer, s_n along the normal (positive: compressed) and s_t along two tangents
(point ahead of the layer's foot). The ground force is the one of spring and damper, f = k s + d ds/dt. It lies in the
friction cone: no pull, tangential at most friction times normal. Hence

* f is the force that would hold the layer's surface, projected on the cone;
* ds/dt = (f - k s) / d; without contact the layer relaxes with d / k.

f is unique and continuous in position, velocity and deflection: no chatter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
import pinocchio as pin

from humanoid_control.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, EllipticCapsule, Shape, Sphere
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots.robot import Robot

# Entries of `ContactSettings.array`.
STIFFNESS, DAMPING, SHEAR_STIFFNESS, SHEAR_DAMPING, FRICTION, KINETIC_FRICTION, STRIBECK_SPEED, CLOSURE_RATE = range(8)
AT_REST = 1e-12  # [m] deflection below which the layer of a point in the air counts as relaxed
Six = tuple[float, float, float, float, float, float]


@dataclass(frozen=True)
class ContactSettings:
    """Stiffness, damping and friction of a contact point; values chosen, not published.

    Attributes:
        stiffness: normal [N/m].
        damping: normal [N s/m].
        shear_stiffness: [N/m].
        shear_damping: [N s/m].
        friction: Coulomb coefficient, sticking.
        kinetic_friction: beyond `stribeck_speed`; None: `friction`.
        stribeck_speed: [m/s], raised if the force would jump.
        closure_rate: speed per gap at which the free layer closes [1/s], continuous law only.
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
        """Return the parameters for kernels (8,)."""
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
    """Return the feasible share, 0 to 1, of the tangential sticking force `trial`.

    Sliding at w: trial = mu(w) N + damping w, with mu falling from `mu` to `kinetic` over `speed`, or slower for a
    unique solution.
    """
    # Inside the cone (or without a demand): the point sticks.
    most = mu * normal
    if trial <= most or trial <= 0.0:
        return 1.0
    drop = (mu - kinetic) * normal
    if drop <= 0.0:
        return most / trial
    # Slope limit: drop / v <= damping / 2 keeps mu(w) N + damping w increasing, so w is unique.
    v = max(speed, 2.0 * drop / damping)
    # Sliding speed on the falling branch, w < v: trial = most - drop w / v + damping w.
    w = (trial - most) / (damping - drop / v)
    if w < v:
        return (most - drop * w / v) / trial
    return (most - drop) / trial


@inlined
def tangential_force(
    s1: float, s2: float, v1: float, v2: float, normal: float, k: float, d: float, par: np.ndarray
) -> tuple[float, float]:
    """Return the tangential force of a point on its layer: deflections s1, s2 [m], velocities v1, v2 [m/s].

    `k`, `d`: stiffness [N/m] and damping [N s/m], of a step d + h k.
    """
    f1, f2 = k * s1 + d * v1, k * s2 + d * v2
    share = friction_share(
        np.sqrt(f1 * f1 + f2 * f2), normal, d, par[FRICTION], par[KINETIC_FRICTION], par[STRIBECK_SPEED]
    )
    return share * f1, share * f2


@kernel
def contact_point(gap: float, vn: float, v1: float, v2: float, s: np.ndarray, par: np.ndarray) -> Six:
    """Evaluate the law in continuous time, with velocities vn, v1, v2 along normal and tangents [m/s].

    Args:
        gap: normal distance, negative in penetration [m].
        s: (3,) deflections s_n, s_1, s_2 [m].
        par: `ContactSettings.array`.

    Returns:
        Force along normal and tangents (3 numbers) [N], rates of s (3 numbers) [m/s].
    """
    k, d, kt, dt = par[STIFFNESS], par[DAMPING], par[SHEAR_STIFFNESS], par[SHEAR_DAMPING]
    # ds_n/dt = -(vn + closure (gap + s_n)): closure drives the surface onto the ground; the ground never pulls.
    normal = max(0.0, k * s[0] - d * (vn + par[CLOSURE_RATE] * (gap + s[0])))
    f1, f2 = tangential_force(s[1], s[2], v1, v2, normal, kt, dt, par)
    return normal, -f1, -f2, (normal - k * s[0]) / d, (f1 - kt * s[1]) / dt, (f2 - kt * s[2]) / dt


@kernel
def contact_point_step(gap: float, v1: float, v2: float, h: float, s: np.ndarray, par: np.ndarray) -> Six:
    """Evaluate the law over the past step h [s] by implicit Euler: closure and cone hold exactly at its end.

    Gap [m] and tangential velocities v1, v2 [m/s] are those at the end, the deflections s (3,) [m] those at the start.

    Returns:
        Force along normal and tangents (3 numbers) [N], new deflections (3 numbers) [m].
    """
    k, d, kt, dt = par[STIFFNESS], par[DAMPING], par[SHEAR_STIFFNESS], par[SHEAR_DAMPING]
    # Deflection at the end of the step if no force acted: implicit relaxation with d / k.
    free = s[0] / (1.0 + h * k / d)
    if gap > 0.0 and free < AT_REST and abs(s[1]) + abs(s[2]) < AT_REST:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    # The layer is compressed at least to the ground; the normal force is the excess over the free deflection.
    sn = max(-gap, free)
    normal = (k + d / h) * (sn - free)
    f1, f2 = tangential_force(s[1], s[2], v1, v2, normal, kt, dt + h * kt, par)
    # f = k s+ + d (s+ - s) / h, solved for s+.
    a, b = 1.0 / (1.0 + h * kt / dt), h / (dt + h * kt)
    return normal, -f1, -f2, sn, a * s[1] + b * f1, a * s[2] + b * f2


# -------- Points of a robot

Bodies = Mapping[str, tuple[int, pin.SE3]]
RIM = 8  # points around the rim of a round shape


def pinocchio_bodies(robot: Robot) -> dict[str, tuple[int, pin.SE3]]:
    """Return link -> (joint index, link pose in the joint frame)."""
    frames = (f for f in robot.model.frames if f.type == pin.FrameType.BODY)
    return {f.name: (int(f.parentJoint), f.placement) for f in frames}


class ContactPoints:
    """Contact points of a robot as flat arrays.

    Attributes:
        names: (np,) such as l_foot_2.
        body: (np,) carrying body.
        points: (np, 4) x y z in the body frame, radius [m].
        sole: (np,) index into `robot.feet`, or -1.
    """

    def __init__(self, robot: Robot, bodies: Bodies | None = None, links: Iterable[str] | str = ()) -> None:
        """Collect the points.

        Args:
            bodies: link -> (body index, link pose in it); default: pinocchio's joints.
            links: besides the soles, or 'all'.

        Raises:
            UnknownNameError: if a link is unknown.
            ConfigError: if a link has no shapes.
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
    """Return the contact points (n, 4) of a shape: x y z in the link frame, radius [m].

    Exact for spheres and capsules, else corners or rim points.
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
