"""Force elements: springs, dampers and muscles along paths through body points, and joint springs.

A path of length l pulls its ends together with F(l, dl/dt) > 0; its generalised force is -(dl/dq)^T F. A joint element
applies T to a body about its joint axis, and -T to the parent.

```python
import numpy as np

from humanoid_control.multibody import ForceElements, ForwardDynamics, Model, PathElement, SpringLaw, from_pinocchio
from humanoid_control.robots import load_robot

robot = load_robot("lola", "floating")
model = Model(from_pinocchio(robot.model).bodies)
dynamics = ForwardDynamics(model)
strap = PathElement("strap", [("", [0, 0, 2]), (model.bodies[0].name, [0, 0, 0])], SpringLaw(1e4, 0.5, 100.0, True))
elements = ForceElements(model, [strap])
q, v = robot.q(), np.zeros(robot.nv)
print(dynamics(q, v, wrench=elements.wrenches(dynamics, q, v)), elements.force)
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.errors import RobotError
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.couplings import Vector, checked_vector, joint_coordinate, positive
from humanoid_control.multibody.forward_dynamics import ForwardDynamics
from humanoid_control.multibody.kinematics_pass import kinematics_pass
from humanoid_control.multibody.layout import (
    FREE,
    MOTION,
    NW,
    OMEGA,
    ORIGIN,
    PARENT,
    POS,
    RATE,
    REVOLUTE,
    ROT,
    TURN,
    VEL,
)
from humanoid_control.multibody.model import ENVIRONMENT, Model
from humanoid_control.multibody.spatial import cross, turn, turn_back

# -------- Laws

SPRING, MUSCLE = 0, 1
LAW_SIZE = 4
# Thelen 2003, table 1: active width, passive strain, passive shape, velocity shape, maximum lengthening force.
WIDTH, PASSIVE_STRAIN, PASSIVE_SHAPE, SPEED_SHAPE, LENGTHENING = 0.45, 0.6, 4.0, 0.25, 1.4


@dataclass(frozen=True)
class SpringLaw:
    """F = stiffness (l - rest) + damping dl/dt + command.

    Attributes:
        stiffness: [N/m].
        rest: force-free length [m].
        damping: [N s/m].
        pulls_only: a rope: slack below the rest length, never pushes.
    """

    stiffness: float
    rest: float = 0.0
    damping: float = 0.0
    pulls_only: bool = False

    def numbers(self, name: str) -> tuple[int, tuple[float, ...]]:
        """Return kind and parameters for kernels."""
        given = (self.stiffness, self.rest, self.damping)
        if not (np.isfinite(given).all() and min(given) >= 0):
            raise RobotError(f"element '{name}': stiffness, rest and damping must be 0 or more, got {given}")
        return SPRING, (*given, float(self.pulls_only))


@dataclass(frozen=True)
class MuscleLaw:
    """Muscle with a rigid tendon, Thelen 2003, eq. (3), (4), (6) and (7).

    F = max_force (a f_l(x) f_v(u) + f_p(x)): activation a (the command), x = (l - slack) / optimal, u = dl/dt / (speed
    optimal).

    Attributes:
        max_force: [N].
        optimal: fibre length of the largest active force [m].
        slack: tendon length [m].
        speed: maximum, in optimal lengths per second.
    """

    max_force: float
    optimal: float
    slack: float = 0.0
    speed: float = 10.0

    def numbers(self, name: str) -> tuple[int, tuple[float, ...]]:
        """Return kind and parameters for kernels."""
        for what in ("max_force", "optimal", "speed"):
            positive(getattr(self, what), f"element '{name}': {what}")
        if not (np.isfinite(self.slack) and self.slack >= 0):
            raise RobotError(f"element '{name}': slack must be 0 or more, got {self.slack:g}")
        return MUSCLE, (self.max_force, self.optimal, self.slack, self.speed)


@kernel
def law_force(kind: int, par: np.ndarray, command: float, length: float, rate: float) -> float:
    """Return F(l, dl/dt) [N]; `par` (LAW_SIZE,) from `numbers`, command in [N] or activation."""
    if kind == SPRING:
        f = par[0] * (length - par[1]) + par[2] * rate
        # A rope transmits no compression, also not from its damper.
        if par[3] > 0.0 and (length <= par[1] or f < 0.0):
            f = 0.0
        return f + command
    # x is the fibre length less 1; the passive force is exponential in the strain.
    x, u = (length - par[2]) / par[1] - 1.0, rate / (par[3] * par[1])
    passive = (math.exp(PASSIVE_SHAPE * x / PASSIVE_STRAIN) - 1.0) / (math.exp(PASSIVE_SHAPE) - 1.0) if x > 0 else 0.0
    # Hyperbolic force-velocity curve: concentric, then eccentric with twice the slope at u = 0 and the limit
    # LENGTHENING.
    if u <= 0.0:
        by_speed = (1.0 + max(u, -1.0)) / (1.0 - max(u, -1.0) / SPEED_SHAPE)
    else:
        c = (2.0 + 2.0 / SPEED_SHAPE) / (LENGTHENING - 1.0)
        by_speed = (1.0 + u * c * LENGTHENING) / (1.0 + u * c)
    return par[0] * (command * math.exp(-x * x / WIDTH) * by_speed + passive)


@kernel
def law_energy(kind: int, par: np.ndarray, length: float) -> float:
    """Return the stored energy at a length [J]."""
    if kind == SPRING:
        stretch = length - par[1]
        return 0.0 if par[3] > 0.0 and stretch < 0.0 else 0.5 * par[0] * stretch * stretch
    x = (length - par[2]) / par[1] - 1.0
    if x <= 0.0:
        return 0.0
    # Integral of the passive force over the length; the active force stores nothing.
    k = PASSIVE_SHAPE / PASSIVE_STRAIN
    return par[0] * par[1] * ((math.exp(k * x) - 1.0) / k - x) / (math.exp(PASSIVE_SHAPE) - 1.0)


# -------- Elements


@dataclass(frozen=True)
class PathElement:
    """Spring, rope or muscle through at least two `points`: (body or environment, (3,) in engine body axes [m])."""

    name: str
    points: Sequence[tuple[str, Vector]]
    law: SpringLaw | MuscleLaw


@dataclass(frozen=True)
class JointElement:
    """Joint spring and damper: T = -stiffness (angle - rest) - damping rate.

    Attributes:
        body: body of the joint.
        stiffness: [N m/rad or N/m].
        rest: [rad or m].
        damping: [N m s/rad or N s/m].
    """

    name: str
    body: str
    stiffness: float
    rest: float = 0.0
    damping: float = 0.0


class ElementTable(NamedTuple):
    """Elements for kernels, paths first, then joints.

    Attributes:
        first: (paths + 1,) first point.
        body: (points,) work row.
        point: (points, 3) in body axes [m].
        kind: (paths,).
        par: (paths, LAW_SIZE).
        joint: (joints,) body.
        joint_par: (joints, 3) stiffness, rest, damping.
        command: (paths,).
        state: (elements, 3) length, rate, force; or angle, rate, torque.
        place: (points, 6) position, velocity.
    """

    first: I1
    body: I1
    point: F2
    kind: I1
    par: F2
    joint: I1
    joint_par: F2
    command: F1
    state: F2
    place: F2


class ForceElements:
    """Force elements of a model.

    Attributes:
        names: paths, then joints.
        command: (paths,) additional spring force [N] or muscle activation; changeable.
        table: for kernels.
    """

    def __init__(self, model: Model, elements: Sequence[PathElement | JointElement]) -> None:
        """Create the elements.

        Raises:
            UnknownNameError: if a body is unknown.
            RobotError: if a name repeats, a path is too short, a value is out of range, a body is a massless shaft, or
                a joint has several axes.
        """
        paths = [e for e in elements if isinstance(e, PathElement)]
        joints = [e for e in elements if isinstance(e, JointElement)]
        self.names = (*(e.name for e in paths), *(e.name for e in joints))
        if twice := [n for n in self.names if self.names.count(n) > 1]:
            raise RobotError(f"two elements are named '{twice[0]}'")
        first, body, point, laws = [0], list[int](), list[np.ndarray](), list[tuple[int, tuple[float, ...]]]()
        for path in paths:
            if len(path.points) < 2:
                raise RobotError(f"element '{path.name}': a path has two points or more, not {len(path.points)}")
            for link, r in path.points:
                body.append(0 if link == ENVIRONMENT else 1 + _felt(model, link, path.name))
                point.append(checked_vector(r, f"element '{path.name}': a point"))
            first.append(len(body))
            laws.append(path.law.numbers(path.name))
        for joint in joints:
            if model.bodies[_felt(model, joint.body, joint.name)].joint.motion >= FREE:
                raise RobotError(f"element '{joint.name}': the joint of '{joint.body}' has no single axis")
            if not np.isfinite([joint.stiffness, joint.rest, joint.damping]).all() or joint.damping < 0:
                raise RobotError(f"element '{joint.name}': a number is not finite, or its damping is negative")
        self.command = np.zeros(len(paths))
        self.table = ElementTable(
            np.array(first, dtype=np.int64),
            np.array(body, dtype=np.int64),
            np.array(point, dtype=float).reshape(-1, 3),
            np.array([kind for kind, _ in laws], dtype=np.int64),
            np.array([par for _, par in laws], dtype=float).reshape(-1, LAW_SIZE),
            np.array([model.body(j.body) for j in joints], dtype=np.int64),
            np.array([(j.stiffness, j.rest, j.damping) for j in joints], dtype=float).reshape(-1, 3),
            self.command,
            np.zeros((len(self.names), 3)),
            np.zeros((len(body), 6)),
        )
        self._wrench = np.zeros((len(model.bodies), 6))

    def wrenches(self, dynamics: ForwardDynamics, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return wrenches (bodies, 6) for `ForwardDynamics`; updates element states and the motion in `dynamics`."""
        a = dynamics.arrays
        kinematics_pass(a.tables, q, v, a.work)
        self._wrench[:] = 0.0
        add_element_wrenches(a.tables, a.work, self.table, q, v, self._wrench)
        return self._wrench.copy()

    @property
    def state(self) -> np.ndarray:
        """(elements, 3) length [m], rate, force [N]; for joints angle, rate, torque."""
        return self.table.state

    @property
    def force(self) -> np.ndarray:
        """(elements,) forces [N] or joint torques [N m]."""
        return self.table.state[:, 2]

    @property
    def power(self) -> np.ndarray:
        """(elements,) power into the bodies [W]."""
        n = len(self.command)
        return self.state[:, 1] * self.force * np.where(np.arange(len(self.names)) < n, -1.0, 1.0)

    @property
    def stored_energy(self) -> float:
        """Energy of springs and passive muscles [J]."""
        t, n = self.table, len(self.command)
        paths = [law_energy(t.kind[e], t.par[e], t.state[e, 0]) for e in range(n)]
        return float(sum(paths) + 0.5 * (t.joint_par[:, 0] @ (t.state[n:, 0] - t.joint_par[:, 1]) ** 2))


def _felt(model: Model, link: str, element: str) -> int:
    i = model.body(link)
    body = model.bodies[i]
    if body.inertia.mass == 0 and body.joint.motion == REVOLUTE and i not in model.parents:
        raise RobotError(
            f"element '{element}': '{link}' is a massless shaft, which cannot carry a force: use its parent"
        )
    return i


def routed_force(
    laws: Sequence[tuple[str, SpringLaw | MuscleLaw]],
    lengths: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    command: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the generalised force -G^T F (n,) of elements routed elsewhere, such as tendons, and F (M,).

    Args:
        laws: (M) names and laws.
        lengths: q (n,) to lengths (M,) [m] and G = dl/dq (M, n).
        command: (M,).
        q: (n,).
        v: (n,).
    """
    length, G = lengths(q)
    kinds = [law.numbers(name) for name, law in laws]
    states = zip(kinds, command, length, G @ v, strict=True)
    force = np.array([law_force(kind, np.array(par), c, x, rate) for (kind, par), c, x, rate in states])
    return -G.T @ force, force


# -------- Forces on the bodies


@kernel
def add_element_wrenches(t: Tables, w: Work, x: ElementTable, q: F1, v: F1, wrench: F2) -> None:
    """Add all element wrenches (bodies, 6) and fill states, after `kinematics_pass`."""
    W = w.W
    for e in range(x.kind.shape[0]):
        _measure(x, e, W)
        x.state[e, 2] = law_force(x.kind[e], x.par[e], x.command[e], x.state[e, 0], x.state[e, 1])
        # The environment, work row 0, feels no force.
        for p in range(x.first[e], x.first[e + 1]):
            if x.body[p] > 0:
                _pull(x, e, p, W, wrench)
    for k in range(x.joint.shape[0]):
        _turn_joint(t, W, x, k, q, v, wrench)


@inlined
def _measure(x: ElementTable, e: int, W: F1) -> None:
    length, rate = 0.0, 0.0
    for p in range(x.first[e], x.first[e + 1]):
        o = x.body[p] * NW
        px, py, pz = x.point[p, 0], x.point[p, 1], x.point[p, 2]
        # World position and velocity of a point: v + w x r in body axes, then rotated.
        rx, ry, rz = turn(W, o + ROT, px, py, pz)
        cx, cy, cz = cross(W[o + OMEGA], W[o + OMEGA + 1], W[o + OMEGA + 2], px, py, pz)
        ux, uy, uz = turn(W, o + ROT, W[o + VEL] + cx, W[o + VEL + 1] + cy, W[o + VEL + 2] + cz)
        x.place[p, 0], x.place[p, 1], x.place[p, 2] = W[o + POS] + rx, W[o + POS + 1] + ry, W[o + POS + 2] + rz
        x.place[p, 3], x.place[p, 4], x.place[p, 5] = ux, uy, uz
        if p > x.first[e]:
            dx, dy, dz, size = _segment(x, p)
            length += size
            # dl/dt is the relative velocity along the segment.
            for j, d in enumerate((dx, dy, dz)):
                rate += d * (x.place[p, 3 + j] - x.place[p - 1, 3 + j])
    x.state[e, 0], x.state[e, 1] = length, rate


@inlined
def _segment(x: ElementTable, p: int) -> tuple[float, float, float, float]:
    """Return direction and distance from the previous point to p; zero direction if coincident."""
    dx, dy, dz = x.place[p, 0] - x.place[p - 1, 0], x.place[p, 1] - x.place[p - 1, 1], x.place[p, 2] - x.place[p - 1, 2]
    size = math.sqrt(dx * dx + dy * dy + dz * dz)
    s = 1.0 / size if size > 1e-12 else 0.0
    return dx * s, dy * s, dz * s, size


@inlined
def _pull(x: ElementTable, e: int, p: int, W: F1, wrench: F2) -> None:
    fx, fy, fz, f, o, i = 0.0, 0.0, 0.0, x.state[e, 2], x.body[p] * NW, x.body[p] - 1
    # The net pull is towards both neighbouring points.
    if p > x.first[e]:
        dx, dy, dz, _ = _segment(x, p)
        fx, fy, fz = -dx, -dy, -dz
    if p < x.first[e + 1] - 1:
        dx, dy, dz, _ = _segment(x, p + 1)
        fx, fy, fz = fx + dx, fy + dy, fz + dz
    # In body axes at the body origin.
    fx, fy, fz = turn_back(W, o + ROT, f * fx, f * fy, f * fz)
    mx, my, mz = cross(x.point[p, 0], x.point[p, 1], x.point[p, 2], fx, fy, fz)
    for j, value in enumerate((mx, my, mz, fx, fy, fz)):
        wrench[i, j] += value


@inlined
def _turn_joint(t: Tables, W: F1, x: ElementTable, k: int, q: F1, v: F1, wrench: F2) -> None:
    i, e = x.joint[k], x.kind.shape[0] + k
    o, parent = (i + 1) * NW, t.ints[i, PARENT] - 1
    angle = joint_coordinate(t.ints, i, t.par, t.qpos, q, v, W, o)
    T = -x.joint_par[k, 0] * (angle - x.joint_par[k, 1]) - x.joint_par[k, 2] * W[o + RATE]
    x.state[e, 0], x.state[e, 1], x.state[e, 2] = angle, W[o + RATE], T
    a = o + TURN + 6  # joint axis in the parent
    ux, uy, uz = -T * W[a], -T * W[a + 1], -T * W[a + 2]
    # The joint axis is z of the body; the parent feels the opposite torque about the same axis.
    if t.ints[i, MOTION] == REVOLUTE:
        wrench[i, 2] += T
        if parent >= 0:
            wrench[parent, 0] += ux
            wrench[parent, 1] += uy
            wrench[parent, 2] += uz
        return
    wrench[i, 5] += T
    # Force along the axis: the reaction also has a moment about the parent's origin.
    if parent >= 0:
        mx, my, mz = cross(W[o + ORIGIN], W[o + ORIGIN + 1], W[o + ORIGIN + 2], ux, uy, uz)
        for j, value in enumerate((mx, my, mz, ux, uy, uz)):
            wrench[parent, j] += value
