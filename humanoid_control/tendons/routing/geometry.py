"""Exact lengths and moment arms of tendons on a mechanism, fast enough for every tick."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.kinematics.forward_kinematics import JointFrames, joint_axis
from humanoid_control.tendons.routing.kernels import (
    Placed,
    Routing,
    contact_of,
    from_solid,
    measure_at,
    moment_arm_derivative_at,
    place,
    routing_tables,
)
from humanoid_control.tendons.routing.wrapping import APART, AROUND, FREE, SIDED, THROUGH
from humanoid_control.tendons.tendon import SPHERE, TendonSet, ViaPoint, Wrap, root_couplings

PROBES = 16  # postures that identify a routing
STEP = 0.2  # [rad] between drawn points of an arc


class TendonGeometry:
    """Lengths and moment arms of M tendons over D joints.

    Lengths are l(theta) = raw(theta) - raw(0), negative for shortened tendons; moment arms are G = dl / dtheta. Use an
    instance in one thread. Outputs `out` must be contiguous.

    Attributes:
        tendon_names: (M,).
        joint_names: (D,) order of theta, without followers; moment arms include their motion.
        limits: (D, 2) [rad, m].
        zero: (M,) raw(0) [m].
        routing: arrays.
        tables: packed arrays for the kernels.
        tendons: source tendons.
        model: source model.
    """

    def __init__(
        self,
        model: pin.Model,
        tendons: TendonSet,
        joints: Iterable[str] | None = None,
        held: np.ndarray | Mapping[str, float] | None = None,
    ) -> None:
        """Create the geometry.

        Args:
            model: pinocchio model with the tendons' links, any base.
            tendons: tendons to measure.
            joints: moving joints, in the order of theta; default: all crossed joints, in model order.
            held: configuration (nq,) or values by name [rad, m] of other joints; default: zero. Couplings override it.

        Raises:
            UnknownNameError: if a link or joint is unknown.
            RobotError: if a joint has several degrees of freedom.
        """
        names = crossed_joints(model, tendons) if joints is None else tuple(joints)
        self.model, self.tendons = model, tendons
        self._tree = JointTree(model, names, _configuration(model, held), tendons)
        self.joint_names, self.tendon_names = self._tree.names, tendons.names
        self.routing = build_routing(self._tree, tendons)
        self.tables = routing_tables(self.routing)
        self._q = np.array([model.joints[model.getJointId(n)].idx_q for n in names], dtype=int)
        lower, upper = model.lowerPositionLimit[self._q], model.upperPositionLimit[self._q]
        ends = (lower, -np.pi), (upper, np.pi)  # a joint without limits is fitted over one turn
        self.limits = np.column_stack([np.where(np.isinf(end), turn, end) for end, turn in ends])
        self._l, self._shape = np.zeros((1, len(tendons))), (len(tendons), len(names))
        self._no_arms = np.zeros((0, *self._shape))
        self.zero = np.zeros(len(tendons))
        measure_at(self.tables.table, np.zeros((1, len(names))), self.zero[None], self._no_arms)

    # -- one posture ------------------------------------------------------------------------------------------

    def lengths(self, theta: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return lengths since zero (M,) [m]."""
        out = np.empty(len(self.zero)) if out is None else out
        measure_at(self.tables.table, _row(theta)[None], out[None], self._no_arms)
        out -= self.zero
        return out

    def jacobian(self, theta: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return moment arms (M, D) [m/rad, m/m]."""
        out = np.empty(self._shape) if out is None else out
        measure_at(self.tables.table, _row(theta)[None], self._l, out[None])
        return out

    def jacobian_directional(self, theta: np.ndarray, v: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return d(G(theta) v) / d theta (M, D), equal to dG/dt at velocity v (D,)."""
        out = np.empty(self._shape) if out is None else out
        moment_arm_derivative_at(self.tables.table, _row(theta), _row(v), out)
        return out

    def raw_into(self, theta: np.ndarray, lengths: np.ndarray, jacobian: np.ndarray) -> None:
        """Write path lengths (M,) [m] and moment arms (M, D)."""
        measure_at(self.tables.table, _row(theta)[None], lengths[None], jacobian[None])

    # -- many postures ----------------------------------------------------------------------------------------

    def raw(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return path lengths (N, M) [m] and moment arms (N, M, D) at postures (N, D)."""
        thetas = self._postures(thetas)
        lengths, G = np.empty((len(thetas), len(self.zero))), np.empty((len(thetas), *self._shape))
        measure_at(self.tables.table, thetas, lengths, G)
        return lengths, G

    def lengths_of(self, thetas: np.ndarray) -> np.ndarray:
        """Return lengths since zero (N, M) [m] at postures (N, D)."""
        thetas = self._postures(thetas)
        out = np.empty((len(thetas), len(self.zero)))
        measure_at(self.tables.table, thetas, out, self._no_arms)
        out -= self.zero
        return out

    def jacobians_of(self, thetas: np.ndarray) -> np.ndarray:
        """Return moment arms (N, M, D) at postures (N, D)."""
        return self.raw(thetas)[1]

    def _postures(self, thetas: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(thetas, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != len(self.joint_names):
            raise RobotError(f"postures must be (N, {len(self.joint_names)}), got {rows.shape}")
        return rows

    # -- description ---------------------------------------------------------------------------------------------

    @property
    def crossed(self) -> np.ndarray:
        """(M, D) True where a tendon crosses a joint."""
        out = np.zeros(self._shape, dtype=bool)
        r = self.routing
        for m in range(len(self.zero)):
            which = r.list_joint[r.list_first[3 * r.first[m]] : r.list_first[3 * r.first[m + 1]]]
            out[m, r.coordinate[which]] = True
        return out

    @property
    def model_hash(self) -> str:
        """SHA-256 of joint names, tendon names and lengths in some postures, to 10 nm; independent of the base."""
        D = len(self.joint_names)
        thetas = np.sin(1.0 + np.arange(PROBES * D, dtype=float) ** 2).reshape(PROBES, D)
        lengths = np.rint(self.raw(thetas)[0] * 1e8).astype(np.int64)
        names = "\n".join((*self.joint_names, "", *self.tendon_names))
        return hashlib.sha256(names.encode() + lengths.tobytes()).hexdigest()

    def theta(self, q: np.ndarray) -> np.ndarray:
        """Return the joint values (D,) in a configuration (nq,)."""
        return np.asarray(q, dtype=float)[self._q]

    def paths(self, theta: np.ndarray) -> list[np.ndarray]:
        """Return points (K, 3) to draw each tendon, in the world frame; rows of NaN separate branches."""
        return path_points(self.routing, _row(theta), self.tables.record.placed)


def _row(theta: np.ndarray) -> np.ndarray:
    # Another layout would compile the kernels again.
    return np.ascontiguousarray(theta, dtype=float)


def _configuration(model: pin.Model, held: np.ndarray | Mapping[str, float] | None) -> np.ndarray | None:
    if held is None or isinstance(held, np.ndarray):
        return held
    q = pin.neutral(model)
    for name, value in held.items():
        _one_value(model, name)
        q[model.joints[model.getJointId(name)].idx_q] = value
    return q


# -------- Mechanism


class JointTree:
    """Model reduced to its moving joints; all other joints are held.

    Attributes:
        names: moving joints.
        ids: sorted model indices of moving joints and followers.
        followed: index in `names` and polynomial, by model index.
        body: (njoints,) body of each model joint: 0 the world, k + 1 moved by ids[k].
        zero: world poses of all model joints, moving joints at zero.
    """

    def __init__(
        self,
        model: pin.Model,
        joints: Iterable[str],
        held: np.ndarray | None = None,
        tendons: TendonSet | None = None,
    ) -> None:
        """Create the tree; `held` (nq,) holds the other joints, default zero.

        Raises:
            UnknownNameError: if a joint is unknown.
            RobotError: if a joint is named twice, follows another, or is not one angle or distance.
        """
        self.model, self.names = model, tuple(joints)
        roots = root_couplings(tendons.couplings if tendons is not None else ())
        for k, name in enumerate(self.names):
            _one_value(model, name)
            if name in self.names[:k]:
                raise RobotError(f"joint '{name}' is named twice")
            if name in roots:
                root = f"follows '{roots[name].master}'; name that one" if roots[name].master else "is fixed"
                raise RobotError(f"joint '{name}' {root}")
        q = np.array(pin.neutral(model) if held is None else held, dtype=float)
        if q.shape != (model.nq,):
            raise RobotError(f"the configuration of the joints held still must be ({model.nq},), got {q.shape}")
        self.followed: dict[int, tuple[int, tuple[float, ...]]] = {
            _one_value(model, n): (k, (0.0, 1.0)) for k, n in enumerate(self.names)
        }
        for name, c in roots.items():
            j = _one_value(model, name)
            if c.master in self.names:
                self.followed[j] = (self.names.index(c.master), c.polynomial)
            else:
                at = q[model.joints[_one_value(model, c.master)].idx_q] if c.master else 0.0
                q[model.joints[j].idx_q] = c.value(float(at))
        self.ids = sorted(self.followed)
        q[[model.joints[j].idx_q for j in self.ids]] = 0.0
        data = model.createData()
        pin.forwardKinematics(model, data, q)
        self.zero = [X.copy() for X in data.oMi]
        self.body = np.zeros(model.njoints, dtype=np.int64)
        for j in range(1, model.njoints):
            self.body[j] = self.ids.index(j) + 1 if j in self.ids else self.body[model.parents[j]]

    def pose(self, body: int) -> pin.SE3:
        """Return the world pose of a body at zero."""
        return self.zero[self.ids[body - 1]] if body else pin.SE3.Identity()

    def link(self, name: str, where: str) -> tuple[int, pin.SE3]:
        """Return the body of a link, and the link pose in it."""
        frame = link_frame(self.model, name, where)
        body = int(self.body[frame.parentJoint])
        return body, self.pose(body).inverse() * self.zero[frame.parentJoint] * frame.placement


def _one_value(model: pin.Model, name: str) -> int:
    """Return the index of a joint of one degree of freedom."""
    known = tuple(model.names)[1:]
    if name not in known:
        raise UnknownNameError("joint", name, known, hint=f"(robot {model.name})")
    index = int(model.getJointId(name))
    joint = model.joints[index]
    if joint.nq != 1 or joint.nv != 1:
        raise RobotError(
            f"joint '{name}' has {joint.nv} degrees of freedom in {joint.nq} numbers; tendons may cross only revolute "
            "or prismatic joints with limits"
        )
    return index


def link_frame(model: pin.Model, name: str, where: str) -> pin.Frame:
    """Return the frame of a link; `where` completes the message.

    Raises:
        UnknownNameError: if the link is unknown.
    """
    if not model.existFrame(name, pin.FrameType.BODY):
        links = [f.name for f in model.frames if f.type == pin.FrameType.BODY]
        raise UnknownNameError("link", name, links, hint=f"({where})" if where else "")
    return model.frames[model.getFrameId(name, pin.FrameType.BODY)]


def crossed_joints(model: pin.Model, tendons: TendonSet) -> tuple[str, ...]:
    """Return the joints between successive links of paths, in model order, followers replaced by masters."""
    crossed: set[int] = set()
    for tendon in tendons:
        for branch in tendon.branches():
            joints = [link_frame(model, e.link, f"tendon '{tendon.name}'").parentJoint for e in branch]
            for a, b in pairwise(joints):
                crossed |= set(model.supports[a]) ^ set(model.supports[b])
    roots = root_couplings(tendons.couplings)
    masters = {roots[n].master if n in roots else n for n in (model.names[j] for j in crossed)}
    return tuple(n for n in model.names if n in masters)


# -------- Routing


def build_routing(tree: JointTree, tendons: TendonSet) -> Routing:
    """Return the routing of tendons on a mechanism as flat arrays."""
    paths = _Paths(tree)
    for tendon in tendons:
        for branch, divisor in zip(tendon.branches(), tendon.divisors(), strict=True):
            paths.add(branch, 1.0 / divisor, f"tendon '{tendon.name}'")
        paths.first.append(len(paths.start))
    return Routing(**_bodies(tree), **paths.arrays())


def _bodies(tree: JointTree) -> dict[str, Any]:
    count = len(tree.ids) + 1
    parent, coordinate = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    polynomial = np.zeros((count, max((len(c) for _, c in tree.followed.values()), default=2)))
    R0, p0 = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
    axis, slides = np.zeros((count, 3)), np.zeros(count, dtype=np.bool_)
    for k, j in enumerate(tree.ids, start=1):
        parent[k] = tree.body[tree.model.parents[j]]
        coordinate[k], c = tree.followed[j]
        polynomial[k, : len(c)] = c
        X = tree.pose(int(parent[k])).inverse() * tree.zero[j]
        R0[k], p0[k] = X.rotation, X.translation
        axis[k], slides[k] = joint_axis(tree.model, j)
    joints = JointFrames(R0, p0, axis, slides)
    return {"joints": joints, "parent": parent, "coordinate": coordinate, "polynomial": polynomial}


class _Paths:
    """Points, segments, joint lists and solids, in order."""

    def __init__(self, tree: JointTree) -> None:
        self.tree = tree
        self.points: dict[tuple[int, tuple[float, ...]], int] = {}
        self.first, self.start, self.end, self.solid = [0], list[int](), list[int](), list[int]()
        self.share: list[float] = []
        self.list_first, self.lists = [0], list[tuple[int, float]]()
        self.solids: list[tuple[int, pin.SE3, bool, int, float, np.ndarray]] = []

    def add(self, branch: list[ViaPoint | Wrap], share: float, where: str) -> None:
        at = [k for k, e in enumerate(branch) if isinstance(e, ViaPoint)]
        for a, b in pairwise(at):
            start, end = (self._point(branch[k], where) for k in (a, b))
            between = branch[a + 1] if b == a + 2 else None
            bodies = [list(self.points)[k][0] for k in (start, end)]
            self._list(bodies[0], bodies[1])
            if isinstance(between, Wrap):
                body = self._solid(between, where)
                self._list(bodies[0], body)
                self._list(body, bodies[1])
                self.solid.append(len(self.solids) - 1)
            else:
                self.list_first += [len(self.lists)] * 2
                self.solid.append(-1)
            self.start.append(start)
            self.end.append(end)
            self.share.append(share)

    def _point(self, point: ViaPoint | Wrap, where: str) -> int:
        assert isinstance(point, ViaPoint)
        body, X = self.tree.link(point.link, where)
        x = X.act(np.array(point.xyz, dtype=float))
        return self.points.setdefault((body, tuple(float(v) for v in x)), len(self.points))

    def _solid(self, wrap: Wrap, where: str) -> int:
        body, X = self.tree.link(wrap.link, where)
        z = np.array(wrap.axis, dtype=float) / np.linalg.norm(wrap.axis)
        R = np.eye(3) if wrap.kind == SPHERE else pin.Quaternion.FromTwoVectors(np.eye(3)[2], z).matrix()
        pose = pin.SE3(R, np.array(wrap.centre, dtype=float))
        side, mode = np.zeros(3), FREE
        if wrap.side is not None:
            side = pose.actInv(np.array(wrap.side, dtype=float))
            mode = THROUGH if np.linalg.norm(side) < wrap.radius else SIDED
        self.solids.append((body, X * pose, wrap.kind == SPHERE, mode, wrap.radius, side))
        return body

    def _list(self, former: int, latter: int) -> None:
        up, down = self._support(former), self._support(latter)
        self.lists += [(j, -1.0) for j in up if j not in down] + [(j, 1.0) for j in down if j not in up]
        self.list_first.append(len(self.lists))

    def _support(self, body: int) -> list[int]:
        out = []
        while body:
            out.append(body)
            body = int(self.tree.body[self.tree.model.parents[self.tree.ids[body - 1]]])
        return out

    def arrays(self) -> dict[str, Any]:
        keys, W = list(self.points), len(self.solids)
        lists = np.array(self.lists, dtype=float).reshape(-1, 2)
        body, pose, ball, mode, radius, side = zip(*self.solids, strict=True) if W else ((),) * 6
        whole = {
            "point_body": [k[0] for k in keys],
            "first": self.first,
            "start": self.start,
            "end": self.end,
            "solid": self.solid,
            "list_first": self.list_first,
            "list_joint": lists[:, 0],
            "solid_body": body,
            "mode": mode,
        }
        return {name: np.array(x, dtype=np.int64) for name, x in whole.items()} | {
            "point": np.array([k[1] for k in keys], dtype=float).reshape(-1, 3),
            "share": np.array(self.share, dtype=float),
            "list_sign": np.ascontiguousarray(lists[:, 1]),
            "solid_R": np.array([X.rotation for X in pose], dtype=float).reshape(-1, 3, 3),
            "solid_p": np.array([X.translation for X in pose], dtype=float).reshape(-1, 3),
            "ball": np.array(ball, dtype=np.bool_),
            "radius": np.array(radius, dtype=float),
            "side": np.array(side, dtype=float).reshape(-1, 3),
        }


# -------- Paths as points to draw


def path_points(routing: Routing, theta: np.ndarray, at: Placed) -> list[np.ndarray]:
    """Return points (K, 3) of each tendon in the frame of body 0."""
    place(routing, theta, at)
    out = []
    for m in range(len(routing.first) - 1):
        rows: list[np.ndarray] = []
        last = -1
        for s in range(routing.first[m], routing.first[m + 1]):
            start, end = int(routing.start[s]), int(routing.end[s])
            if start != last:
                rows += [np.full((1, 3), np.nan)] if rows else []
                rows.append(at.x[start].reshape(1, 3).copy())
            if routing.solid[s] >= 0:
                rows.append(_on_solid(routing, at, s))
            rows.append(at.x[end].reshape(1, 3).copy())
            last = end
        out.append(np.concatenate(rows))
    return out


def _on_solid(routing: Routing, at: Placed, s: int) -> np.ndarray:
    """Return points (K, 3) of a segment on its solid; empty without contact."""
    kind, arc, t0, t1, sense = contact_of(routing, at, s)
    if kind == APART:
        return np.empty((0, 3))
    k = int(routing.solid[s])
    if kind != AROUND:
        return np.array([from_solid(routing, at, k, t0)])
    a, b, r = np.array(t0), np.array(t1), float(routing.radius[k])
    if routing.ball[k]:
        angle = arc / r
        x, z = a / r, np.cross(a, b) * (1.0 if angle <= np.pi else -1.0)
        y = np.cross(z / max(float(np.linalg.norm(z)), 1e-300), x)
        height = np.zeros(2)
    else:
        angle = float(np.sqrt(max(arc**2 - (b[2] - a[2]) ** 2, 0.0))) / r
        x = np.array([a[0], a[1], 0.0]) / r
        y = -sense * np.array([-x[1], x[0], 0.0])
        height = np.array([a[2], b[2]])
    f = np.linspace(0.0, 1.0, 2 + int(angle / STEP))
    curve = r * (np.cos(f * angle)[:, None] * x + np.sin(f * angle)[:, None] * y)
    curve[:, 2] += height[0] + f * (height[1] - height[0])
    return np.array([from_solid(routing, at, k, (p[0], p[1], p[2])) for p in curve])
