"""From tendons and the joints they cross to flat arrays."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pinocchio as pin

from humanoid_control.tendons.routing.routing import Routing
from humanoid_control.tendons.routing.tree import JointTree, joint_axis
from humanoid_control.tendons.routing.wrapping import FREE, SIDED, THROUGH
from humanoid_control.tendons.tendon import SPHERE, Point, TendonSet, Wrap


def compiled(tree: JointTree, tendons: TendonSet) -> Routing:
    """The flat arrays for some tendons on a mechanism.

    Raises:
        UnknownNameError: a link that the mechanism does not have.
    """
    paths = _Paths(tree)
    for tendon in tendons:
        for branch, divisor in zip(tendon.branches(), tendon.divisors(), strict=True):
            paths.add(branch, 1.0 / divisor, f"tendon '{tendon.name}'")
        paths.first.append(len(paths.start))
    return Routing(*_bodies(tree), *paths.arrays())


def _bodies(tree: JointTree) -> tuple[np.ndarray, ...]:
    """The first six fields: parent, coordinate, R0, p0, axis, slides."""
    count = len(tree.ids) + 1
    parent, coordinate = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    R0, p0 = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
    axis, slides = np.zeros((count, 3)), np.zeros(count, dtype=np.bool_)
    for k, j in enumerate(tree.ids, start=1):
        parent[k] = tree.body[tree.model.parents[j]]
        coordinate[k] = tree.names.index(tree.model.names[j])
        X = tree.pose(int(parent[k])).inverse() * tree.zero[j]
        R0[k], p0[k] = X.rotation, X.translation
        axis[k], slides[k] = joint_axis(tree.model, j)
    return parent, coordinate, R0, p0, axis, slides


class _Paths:
    """Points, stretches, levers and solids, one after the other."""

    def __init__(self, tree: JointTree) -> None:
        self.tree = tree
        self.points: dict[tuple[int, tuple[float, ...]], int] = {}
        self.first, self.start, self.end, self.solid = [0], list[int](), list[int](), list[int]()
        self.share: list[float] = []
        self.lever_first, self.levers = [0], list[tuple[int, float]]()
        self.solids: list[tuple[int, pin.SE3, bool, int, float, np.ndarray]] = []

    def add(self, branch: list[Point | Wrap], share: float, where: str) -> None:
        """Add the stretches of one branch."""
        at = [k for k, e in enumerate(branch) if isinstance(e, Point)]
        for a, b in pairwise(at):
            start, end = (self._point(branch[k], where) for k in (a, b))
            between = branch[a + 1] if b == a + 2 else None
            bodies = [list(self.points)[k][0] for k in (start, end)]
            self._lever(bodies[0], bodies[1])
            if isinstance(between, Wrap):
                body = self._solid(between, where)
                self._lever(bodies[0], body)
                self._lever(body, bodies[1])
                self.solid.append(len(self.solids) - 1)
            else:
                self.lever_first += [len(self.levers)] * 2
                self.solid.append(-1)
            self.start.append(start)
            self.end.append(end)
            self.share.append(share)

    def _point(self, point: Point | Wrap, where: str) -> int:
        assert isinstance(point, Point)
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

    def _lever(self, former: int, latter: int) -> None:
        """The list of joints between two bodies."""
        up, down = self._support(former), self._support(latter)
        self.levers += [(j, -1.0) for j in up if j not in down] + [(j, 1.0) for j in down if j not in up]
        self.lever_first.append(len(self.levers))

    def _support(self, body: int) -> list[int]:
        """The bodies whose joints move a body."""
        out = []
        while body:
            out.append(body)
            body = int(self.tree.body[self.tree.model.parents[self.tree.ids[body - 1]]])
        return out

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The fields after the first six."""
        ints = lambda x: np.array(x, dtype=np.int64)  # noqa: E731
        keys, W = list(self.points), len(self.solids)
        lever = np.array(self.levers, dtype=float).reshape(-1, 2)
        body, pose, ball, mode, radius, side = zip(*self.solids, strict=True) if W else ((),) * 6
        return (
            ints([k[0] for k in keys]),
            np.array([k[1] for k in keys], dtype=float).reshape(-1, 3),
            *(ints(x) for x in (self.first, self.start, self.end, self.solid)),
            np.array(self.share, dtype=float),
            ints(self.lever_first),
            lever[:, 0].astype(np.int64),
            np.ascontiguousarray(lever[:, 1]),
            ints(body),
            np.array([X.rotation for X in pose], dtype=float).reshape(-1, 3, 3),
            np.array([X.translation for X in pose], dtype=float).reshape(-1, 3),
            np.array(ball, dtype=np.bool_),
            ints(mode),
            np.array(radius, dtype=float),
            np.array(side, dtype=float).reshape(-1, 3),
        )
