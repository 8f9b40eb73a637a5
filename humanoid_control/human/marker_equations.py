"""Cost of a posture beside measured markers, its gradient and its Hessian, from sums over what hangs on each body.

    cost = 1/2 sum_m w_m |r_m|^2 + 1/2 sum_c u_c (q_c - ref_c)^2 + 1/2 h |q - q_hold|^2,    r_m = measured - model

A point x of a body, or of any that hangs on it, moves with a coordinate by omega x x + v, one screw (omega, v) of each
joint and coordinate. Therefore the Jacobian of a marker is never formed: gradient and Hessian of Gauss and Newton need
only sum w, sum w x, sum w x x^T, sum w r and sum w x r^T of the markers from the body outwards. With the latter, the
exact Hessian costs little more: its second part is - omega_e . sum w (omega_f x x + v_f) x r for e at or before f in a
chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.human.kinematics import Chain, Pose, place_some
from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2, I1

SUMS = 22  # per body: w, w x (3), w x x^T (6), w r (3), w x r^T (9)


class MarkerLayout(NamedTuple):
    """Markers on a chain, and the nf coordinates that are free to be fitted, limbs first.

    Limbs first, the Hessian has zeros between limbs that its factor keeps.

    Attributes:
        body (M,), place (M, 3): body of each marker, and where in it.
        used: bodies with a marker on them or on what hangs on them, parents first.
        first (nb + 1,): first screw of each body. rank (screws,): coordinate of each screw.
        screw (na,): screw of each axis, -1 for a constant or a coordinate that is not free.
        entry (nf,): entry of q of each free coordinate. skyline (nf,): first column of its row that is not zero.
        lower, upper (nf,): bounds; infinite where a range is none.
    """

    body: I1
    place: F2
    used: I1
    first: I1
    rank: I1
    screw: I1
    entry: I1
    skyline: I1
    lower: F1
    upper: F1


class Equations(NamedTuple):
    """Memory: screws omega, v (screws, 3), sums (nb, SUMS), Hessian H, factor L (nf, nf), descent g (nf,) and more."""

    omega: F2
    v: F2
    sums: F2
    H: F2
    L: F2
    g: F1
    step: F1
    R: F2


class Prior(NamedTuple):
    """What holds coordinates beside the markers.

    Attributes:
        u, reference (nf,): weights [m^2 and the like] and the values that they pull to.
        hold, q_hold (n,): one small weight on all, and the posture it holds.
    """

    u: F1
    reference: F1
    hold: float
    q_hold: F1


def lay_out_markers(
    chain: Chain, bodies: np.ndarray, places: np.ndarray, free: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> MarkerLayout:
    """Layout of markers.

    Args:
        chain: of the person.
        bodies (M,), places (M, 3): of the markers.
        free (n,): true for coordinates that may be fitted.
        bounds: lower and upper (n,).
    """
    nb = len(chain.parent)
    used = np.zeros(nb, dtype=bool)
    used[bodies] = True
    for b in range(nb - 1, -1, -1):
        if used[b] and chain.parent[b] >= 0:
            used[chain.parent[b]] = True
    first, screw, entries = [0], np.full(len(chain.turns), -1, dtype=np.int64), list[int]()
    for b in range(nb):
        seen: dict[int, int] = {}
        for a in range(chain.first[b], chain.first[b + 1]):
            c = int(chain.coordinate[a])
            if c >= 0 and free[c] and used[b]:
                screw[a] = seen.setdefault(c, len(entries) + len(seen))
        entries += seen
        first.append(len(entries))
    order = list(dict.fromkeys(entries))
    entry = np.array([*(c for c in np.flatnonzero(free) if c not in order), *order[::-1]], dtype=np.int64)
    place_of = {int(c): k for k, c in enumerate(entry)}
    rank = np.array([place_of[c] for c in entries], dtype=np.int64)
    lower, upper = (np.ascontiguousarray(side[entry], dtype=float) for side in bounds)
    return MarkerLayout(
        np.ascontiguousarray(bodies, dtype=np.int64),
        np.ascontiguousarray(places, dtype=float).reshape(-1, 3),
        np.flatnonzero(used).astype(np.int64),
        np.array(first, dtype=np.int64),
        rank,
        screw,
        entry,
        _skyline(chain.parent, first, rank, len(entry)),
        lower,
        upper,
    )


def _skyline(parent: np.ndarray, first: Sequence[int], rank: np.ndarray, n: int) -> np.ndarray:
    """First coordinate that shares a chain with each."""
    skyline = np.arange(n)
    above: list[set[int]] = []
    for b in range(len(parent)):
        own = set(rank[first[b] : first[b + 1]].tolist())
        above.append(own | (above[parent[b]] if parent[b] >= 0 else set()))
        if above[b]:
            least = min(above[b])
            for c in above[b]:
                skyline[c] = min(skyline[c], least)
    return skyline.astype(np.int64)


@kernel
def make_equations(chain: Chain, layout: MarkerLayout) -> Equations:
    """Memory for a layout."""
    ns, n = len(layout.rank), len(layout.entry)
    return Equations(
        np.zeros((ns, 3)),
        np.zeros((ns, 3)),
        np.zeros((len(chain.parent), SUMS)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros(n),
        np.zeros(n),
        np.zeros((3, 3)),
    )


@kernel
def add_markers(
    layout: MarkerLayout, pose: Pose, target: np.ndarray, weight: np.ndarray, centre: np.ndarray, sums: np.ndarray
) -> float:
    """Sums of the markers on each body itself, about a centre; returns their part of the cost."""
    for b in layout.used:
        for k in range(SUMS):
            sums[b, k] = 0.0
    cost = 0.0
    for m in range(len(layout.body)):
        w = weight[m]
        if w == 0.0:
            continue
        b = layout.body[m]
        R, p, r, s = pose.R[b], pose.p[b], layout.place[m], sums[b]
        x = p[0] - centre[0] + R[0, 0] * r[0] + R[0, 1] * r[1] + R[0, 2] * r[2]
        y = p[1] - centre[1] + R[1, 0] * r[0] + R[1, 1] * r[1] + R[1, 2] * r[2]
        z = p[2] - centre[2] + R[2, 0] * r[0] + R[2, 1] * r[1] + R[2, 2] * r[2]
        ex, ey, ez = target[m, 0] - centre[0] - x, target[m, 1] - centre[1] - y, target[m, 2] - centre[2] - z
        cost += 0.5 * w * (ex * ex + ey * ey + ez * ez)
        wx, wy, wz = w * x, w * y, w * z
        s[0] += w
        s[1] += wx
        s[2] += wy
        s[3] += wz
        s[4] += wx * x
        s[5] += wx * y
        s[6] += wx * z
        s[7] += wy * y
        s[8] += wy * z
        s[9] += wz * z
        s[10] += w * ex
        s[11] += w * ey
        s[12] += w * ez
        s[13] += wx * ex
        s[14] += wx * ey
        s[15] += wx * ez
        s[16] += wy * ex
        s[17] += wy * ey
        s[18] += wy * ez
        s[19] += wz * ex
        s[20] += wz * ey
        s[21] += wz * ez
    return cost


@kernel
def find_screws(chain: Chain, layout: MarkerLayout, pose: Pose, centre: np.ndarray, eq: Equations) -> None:
    """Screw of each joint and free coordinate, about the centre."""
    for s in range(len(layout.rank)):
        for i in range(3):
            eq.omega[s, i] = eq.v[s, i] = 0.0
    for b in layout.used:
        o = pose.pivot[b]
        x, y, z = o[0] - centre[0], o[1] - centre[1], o[2] - centre[2]
        for a in range(chain.first[b], chain.first[b + 1]):
            s = layout.screw[a]
            if s < 0:
                continue
            d, W = pose.d1[a], pose.W[a]
            omega, v = eq.omega[s], eq.v[s]
            wx, wy, wz = d * W[0], d * W[1], d * W[2]
            if chain.turns[a]:
                omega[0] += wx
                omega[1] += wy
                omega[2] += wz
                v[0] -= wy * z - wz * y
                v[1] -= wz * x - wx * z
                v[2] -= wx * y - wy * x
            else:
                v[0] += wx
                v[1] += wy
                v[2] += wz


@inlined
def twist_of_force(s: np.ndarray, wx: float, wy: float, wz: float, v: np.ndarray) -> tuple[float, float, float]:
    """sum w (omega x x + v) x r = (sum w x r^T - its trace) omega + v x sum w r."""
    t = s[13] + s[17] + s[21]
    kx = s[13] * wx + s[14] * wy + s[15] * wz - t * wx + v[1] * s[12] - v[2] * s[11]
    ky = s[16] * wx + s[17] * wy + s[18] * wz - t * wy + v[2] * s[10] - v[0] * s[12]
    kz = s[19] * wx + s[20] * wy + s[21] * wz - t * wz + v[0] * s[11] - v[1] * s[10]
    return kx, ky, kz


@inlined
def add_body(chain: Chain, layout: MarkerLayout, b: int, eq: Equations, exact: float) -> None:
    """Part of gradient and Hessian of the screws of a body, with those before them in its chain."""
    s = eq.sums[b]
    nx, ny, nz = s[18] - s[20], s[19] - s[15], s[14] - s[16]  # sum w x x r
    trace = s[4] + s[7] + s[9]
    for f in range(layout.first[b], layout.first[b + 1]):
        w, v, c = eq.omega[f], eq.v[f], layout.rank[f]
        wx, wy, wz = w[0], w[1], w[2]
        eq.g[c] += wx * nx + wy * ny + wz * nz + v[0] * s[10] + v[1] * s[11] + v[2] * s[12]
        lx = wy * s[3] - wz * s[2] + s[0] * v[0]
        ly = wz * s[1] - wx * s[3] + s[0] * v[1]
        lz = wx * s[2] - wy * s[1] + s[0] * v[2]
        mx = trace * wx - s[4] * wx - s[5] * wy - s[6] * wz + s[2] * v[2] - s[3] * v[1]
        my = trace * wy - s[5] * wx - s[7] * wy - s[8] * wz + s[3] * v[0] - s[1] * v[2]
        mz = trace * wz - s[6] * wx - s[8] * wy - s[9] * wz + s[1] * v[1] - s[2] * v[0]
        for e in range(layout.first[b], f + 1):
            o, u = eq.omega[e], eq.v[e]
            value = u[0] * lx + u[1] * ly + u[2] * lz + o[0] * mx + o[1] * my + o[2] * mz
            add_pair(eq.H, c, layout.rank[e], value, e != f)
        if exact != 0.0:
            kx, ky, kz = twist_of_force(s, wx, wy, wz, v)
            mx, my, mz = mx - exact * kx, my - exact * ky, mz - exact * kz
        a = chain.parent[b]
        while a >= 0:
            for e in range(layout.first[a], layout.first[a + 1]):
                o, u = eq.omega[e], eq.v[e]
                value = u[0] * lx + u[1] * ly + u[2] * lz + o[0] * mx + o[1] * my + o[2] * mz
                add_pair(eq.H, c, layout.rank[e], value, True)
            a = chain.parent[a]


@inlined
def add_pair(H: np.ndarray, c: int, d: int, value: float, two: bool) -> None:
    """Entry of two coordinates, in the lower triangle; two different screws of one coordinate count twice."""
    if c > d:
        H[c, d] += value
    elif d > c:
        H[d, c] += value
    else:
        H[c, c] += 2.0 * value if two else value


@inlined
def add_curvature(chain: Chain, layout: MarkerLayout, b: int, pose: Pose, centre: np.ndarray, eq: Equations) -> None:
    """Second part of the Hessian within one joint: rotations that turn those after them, and curved functions."""
    s, o = eq.sums[b], pose.pivot[b]
    x, y, z = o[0] - centre[0], o[1] - centre[1], o[2] - centre[2]
    nx, ny, nz = s[18] - s[20], s[19] - s[15], s[14] - s[16]
    v = eq.R[0]
    for f in range(chain.first[b], chain.first[b + 1]):
        if layout.screw[f] < 0:
            continue
        W, c = pose.W[f], layout.rank[layout.screw[f]]
        if not chain.turns[f]:
            eq.H[c, c] -= pose.d2[f] * (W[0] * s[10] + W[1] * s[11] + W[2] * s[12])
            continue
        v[0], v[1], v[2] = y * W[2] - z * W[1], z * W[0] - x * W[2], x * W[1] - y * W[0]
        if pose.d2[f] != 0.0:
            force = v[0] * s[10] + v[1] * s[11] + v[2] * s[12]
            eq.H[c, c] -= pose.d2[f] * (W[0] * nx + W[1] * ny + W[2] * nz + force)
        kx, ky, kz = twist_of_force(s, W[0], W[1], W[2], v)
        for e in range(chain.first[b], f + 1):
            if layout.screw[e] >= 0 and chain.turns[e]:
                U = pose.W[e]
                value = -pose.d1[f] * pose.d1[e] * (U[0] * kx + U[1] * ky + U[2] * kz)
                add_pair(eq.H, c, layout.rank[layout.screw[e]], value, e != f)


@kernel
def build(
    chain: Chain,
    layout: MarkerLayout,
    work: tuple[Pose, Equations],
    q: np.ndarray,
    measured: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: Prior,
    exact: bool,
) -> tuple[float, float]:
    """Cost at q, its descent -gradient g and its Hessian H; returns the whole cost and that of the markers alone.

    Args:
        measured: markers (M, 3), their weights (M,), 0 where one is not seen, and a centre (3,) near them.
        exact: the whole Hessian, else that of Gauss and Newton.
    """
    pose, eq = work
    target, weight, centre = measured
    place_some(chain, layout.used, q, pose, eq.R)
    markers = add_markers(layout, pose, target, weight, centre, eq.sums)
    find_screws(chain, layout, pose, centre, eq)
    cost = markers
    for r in range(len(layout.entry)):
        for k in range(layout.skyline[r], r):
            eq.H[r, k] = 0.0
        c = layout.entry[r]
        off, back = prior.reference[r] - q[c], prior.q_hold[c] - q[c]
        eq.H[r, r] = prior.u[r] + prior.hold
        eq.g[r] = prior.u[r] * off + prior.hold * back
        cost += 0.5 * (prior.u[r] * off * off + prior.hold * back * back)
    for k in range(len(layout.used) - 1, -1, -1):
        b = layout.used[k]
        if eq.sums[b, 0] == 0.0:
            continue
        add_body(chain, layout, b, eq, 1.0 if exact else 0.0)
        if exact:
            add_curvature(chain, layout, b, pose, centre, eq)
        up = chain.parent[b]
        if up >= 0:
            for i in range(SUMS):
                eq.sums[up, i] += eq.sums[b, i]
    return cost, markers
