"""Models as flat arrays: tables and memory of the compiled recursions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1, I2
from humanoid_control.multibody import layout as at
from humanoid_control.multibody.couplings import IDENTITY
from humanoid_control.multibody.model import Model
from humanoid_control.multibody.subsystems import TreeNode


class Tables(NamedTuple):
    """Input of the recursions.

    Attributes:
        ints: (bodies, NI), columns of `layout`.
        floats: (bodies * NF,), columns of `layout`.
        par: coupling parameters.
        qpos: (nv,) entry of q.
        single: (nv,) 1 where its rate is the velocity.
        columns: (bodies,) coordinates of the group.
        nodes: (nodes, NN) tree with sub-systems.
        members: bodies of the nodes.
        group_columns: coordinates of the nodes.
        rank: (nv,) place in tree order.
        lam: (nv,) parent of a rank, or -1.
    """

    ints: I2
    floats: F1
    par: F1
    qpos: I1
    single: I1
    columns: I1
    nodes: I2
    members: I1
    group_columns: I1
    rank: I1
    lam: I1


class Work(NamedTuple):
    """Memory of the recursions.

    Attributes:
        W: ((bodies + 1) * NW,), columns of `layout`.
        J: (6, n) Jacobians of sub-system members, column by column.
        S: per sub-system a matrix (n, n) and seven numbers a coordinate.
        M: (nv, nv) mass matrix in tree order; empty for the O(n) solver.
        rhs: (nv,) in tree order.
    """

    W: F1
    J: F1
    S: F1
    M: F2
    rhs: F1


class Arrays:
    """Tables and memory of a model."""

    def __init__(
        self, model: Model, gravity: tuple[float, float, float] = (0.0, 0.0, -9.81), with_matrix: bool = False
    ) -> None:
        """Create the arrays; gravity [m/s^2] in environment axes."""
        nb = len(model.bodies)
        self.model = model
        self.ints = np.zeros((nb, at.NI), dtype=np.int64)
        self.floats = np.zeros(nb * at.NF)
        self.columns = np.zeros(nb, dtype=np.int64)
        par: list[float] = []
        for i, body in enumerate(model.bodies):
            self._body(i)
            self.ints[i, at.PAR] = len(par)
            par += body.joint.parameters
        self._nodes()
        self._ranks()
        quaternions = {k + c for _, k in model.free for c in range(6)}
        self.tables = Tables(
            self.ints,
            self.floats,
            np.array(par or [0.0]),
            model.qpos,
            np.array([int(c not in quaternions) for c in range(model.nv)]),
            self.columns,
            self.nodes,
            self.members,
            self.group_columns,
            self.rank,
            self.lam,
        )
        n = model.nv if with_matrix else 0
        W = np.zeros((nb + 1) * at.NW)
        for k in (0, 4, 8):
            W[at.ROT + k] = W[at.TURN + k] = 1.0
        self.work = Work(
            W, np.zeros(max(1, self._jacobians)), np.zeros(max(1, self._works)), np.zeros((n, n)), np.zeros(n)
        )
        self.set_gravity(gravity)

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        self.work.W[at.GRAVITY : at.GRAVITY + 3] = gravity

    def _body(self, i: int) -> None:
        model, body, row = self.model, self.model.bodies[i], self.ints[i]
        row[at.PARENT] = model.parents[i] + 1
        row[at.MOTION], row[at.COUPLING] = body.joint.motion, body.joint.coupling
        own = model.coords[i]
        row[at.NC] = len(own)
        row[at.COORD : at.COORD + len(own)] = own
        row[at.QPOS] = model.qpos[own[0]]
        row[at.GROUP] = -1
        f = self.floats[i * at.NF : (i + 1) * at.NF]
        f[at.TURN_0 : at.TURN_0 + 9], f[at.ORIGIN_0 : at.ORIGIN_0 + 3] = body.A.ravel(), body.r
        f[at.MASS], f[at.FIRST_MOMENT : at.FIRST_MOMENT + 3] = body.inertia.mass, body.inertia.mass * body.inertia.com
        inertia, upper = body.inertia.about_origin, np.triu_indices(3)
        f[at.BODY_INERTIA : at.BODY_INERTIA + 6] = inertia[upper]
        f[at.PARENT_INERTIA : at.PARENT_INERTIA + 6] = (body.A.T @ inertia @ body.A)[upper]
        # A massless symmetric leaf needs no pose: its angle moves no inertia.
        d = np.diag(inertia)
        symmetric = np.count_nonzero(inertia - np.diag(d)) == 0 and d[0] == d[1]
        leaf = i not in model.parents
        plain = body.inertia.mass == 0 and body.joint.motion == at.REVOLUTE
        row[at.SPIN] = int(symmetric and leaf and plain)

    def _nodes(self) -> None:
        rows: list[list[int]] = []
        members: list[int] = []
        columns: list[int] = []
        work = jacobian = 0
        for node in self.model.nodes[1:]:
            inside = [self.model.index[m.name] for m in node.members] or [self.model.index[node.name]]
            first = self._first_level(node, inside)
            kind = self._kind(node, inside, first)
            if kind == at.GEARED:
                inside.sort(key=lambda i: self.ints[i, at.SPIN])
            outside = int(self.ints[inside[0] if inside[0] in first else first[0], at.PARENT])
            n = len(node.coordinates)
            rows.append([kind, len(members), len(members) + len(inside), len(columns), n, outside, work])
            members += inside
            columns += node.coordinates
            if kind == at.SUBSYSTEM:
                work += n * n + 7 * n
                for i in inside:
                    own = [node.coordinates.index(k) for k in self.model.coords[i]]
                    self.ints[i, at.LOCAL : at.LOCAL + len(own)] = own
                    self.ints[i, at.GROUP], self.ints[i, at.LEVEL] = len(rows) - 1, int(i not in first)
                    self.ints[i, at.GROUP_JACOBIAN], self.columns[i] = jacobian, n
                    jacobian += 6 * n
        self.nodes = np.array(rows, dtype=np.int64)
        self.members = np.array(members, dtype=np.int64)
        self.group_columns = np.array(columns, dtype=np.int64)
        self._works, self._jacobians = work, jacobian

    def _first_level(self, node: TreeNode, inside: list[int]) -> list[int]:
        """Return the members on the outside parent; deeper spinning leaves become ordinary bodies."""
        own = {i + 1 for i in inside}
        first = [i for i in inside if int(self.ints[i, at.PARENT]) not in own]
        for i in set(inside) - set(first):
            self.ints[i, at.SPIN] = 0
        return first

    def _kind(self, node: TreeNode, inside: list[int], first: list[int]) -> int:
        spins = [i for i in inside if self.ints[i, at.SPIN]]
        if not node.members:
            return at.ROTOR if spins else at.SINGLE
        links = [i for i in inside if not self.ints[i, at.SPIN]]
        plain = len(links) == 1 and self.ints[links[0], at.COUPLING] == IDENTITY
        plain = plain and self.ints[links[0], at.MOTION] <= at.PRISMATIC and links[0] in first
        return at.GEARED if plain and len(node.coordinates) == 1 else at.SUBSYSTEM

    def _ranks(self) -> None:
        nv = self.model.nv
        self.rank, self.lam = np.full(nv, -1, dtype=np.int64), np.full(nv, -1, dtype=np.int64)
        tip = np.full(len(self.model.bodies) + 1, -1, dtype=np.int64)
        k = 0
        for row in self.nodes:
            last = tip[row[at.OUTSIDE]]
            for c in self.group_columns[row[at.COLUMNS] : row[at.COLUMNS] + row[at.NCOLUMNS]]:
                self.rank[c], self.lam[k], last = k, last, k
                k += 1
            for i in self.members[row[at.FIRST] : row[at.LAST]]:
                tip[i + 1] = last
