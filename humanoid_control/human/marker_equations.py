"""Cost of a posture relative to markers, with gradient and Hessian from sums over subtrees.

    cost = 1/2 sum_m w_m |r_m|^2 + 1/2 sum_c u_c (q_c - ref_c)^2 + 1/2 h |q - q_hold|^2,    r_m = measured - model

A point x of a subtree moves with a coordinate by omega x x + v, its screw (omega, v). No marker Jacobian is formed:
gradient and Gauss-Newton Hessian need only sum w, sum w x, sum w x x^T, sum w r and sum w x r^T. The second part of the
exact Hessian is - omega_e . sum w (omega_f x x + v_f) x r for e at or before f in a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.human.kinematics import Chain, Pose, place_some

SUMS = 22  # per body: w, w x (3), w x x^T (6), w r (3), w x r^T (9)


class MarkerLayout(NamedTuple):
    """Markers on a chain, and nf free coordinates, limbs first, so zeros between limbs stay in the factor of H.

    Attributes:
        body: (M,).
        place: (M, 3) body frame [m].
        used: bodies with markers in their subtree, parents first.
        first: (nb + 1,) first screw of each body.
        rank: (rows,) coordinate of each screw and sum.
        screw: (na,) of each axis; -1: constant or not free.
        parts: (k, 2) rows of sum k: screws of one coordinate.
        above: rows before each body, one a coordinate.
        start: (nb + 1,) index in `above`.
        entry: (nf,) index in q.
        skyline: (nf,) first non-zero column of H.
        lower: (nf,) -inf: none.
        upper: (nf,) inf: none.
    """

    body: I1
    place: F2
    used: I1
    first: I1
    rank: I1
    screw: I1
    parts: I2
    above: I1
    start: I1
    entry: I1
    skyline: I1
    lower: F1
    upper: F1


class Equations(NamedTuple):
    """Work memory.

    Attributes:
        omega: (rows, 3) of screws and sums.
        v: (rows, 3) of screws and sums.
        sums: (nb, SUMS).
        H: (nf, nf) lower triangle.
        L: (nf, nf) its factor.
        g: (nf,) negative gradient.
        step: (nf,).
    """

    omega: F2
    v: F2
    sums: F2
    H: F2
    L: F2
    g: F1
    step: F1


class Prior(NamedTuple):
    """Cost terms that hold coordinates.

    Attributes:
        u: (nf,) weights [m^2; 1 for lengths].
        reference: (nf,) targets.
        hold: small common weight.
        q_hold: (n,).
    """

    u: F1
    reference: F1
    hold: float
    q_hold: F1


def lay_out_markers(
    chain: Chain, bodies: np.ndarray, places: np.ndarray, free: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> MarkerLayout:
    """Return the layout of markers.

    Args:
        bodies: (M,).
        places: (M, 3) body frame [m].
        free: (n,) True: fitted.
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
    # Reverse order of appearance: limbs before the root, so little of the factor fills in.
    entry = np.array([*(c for c in np.flatnonzero(free) if c not in order), *order[::-1]], dtype=np.int64)
    place_of = {int(c): k for k, c in enumerate(entry)}
    parts, above, start = _rows_above(chain.parent, first, entries)
    rank = np.array([place_of[c] for c in entries], dtype=np.int64)
    lower, upper = (np.ascontiguousarray(side[entry], dtype=float) for side in bounds)
    return MarkerLayout(
        np.ascontiguousarray(bodies, dtype=np.int64),
        np.ascontiguousarray(places, dtype=float).reshape(-1, 3),
        np.flatnonzero(used).astype(np.int64),
        np.array(first, dtype=np.int64),
        np.concatenate([rank, rank[[_screw_of(row, parts, len(rank)) for row, _ in parts]]]),
        screw,
        np.array(parts, dtype=np.int64).reshape(-1, 2),
        np.array(above, dtype=np.int64),
        np.array(start, dtype=np.int64),
        entry,
        _skyline(chain.parent, first, rank, len(entry)),
        lower,
        upper,
    )


def _rows_above(
    parent: np.ndarray, first: Sequence[int], entries: Sequence[int]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Return the sums of screws, and the rows before each body."""
    parts, above, start = list[tuple[int, int]](), list[int](), [0]
    behind: list[dict[int, int]] = []  # body -> coordinate -> row that moves its descendants
    for b in range(len(parent)):
        rows = dict(behind[parent[b]]) if parent[b] >= 0 else {}
        above += rows.values()
        start.append(len(above))
        for s in range(first[b], first[b + 1]):
            c = entries[s]
            # The coordinate also acts above: descendants move by the sum of its screws.
            if c in rows:
                parts.append((rows[c], s))
            rows[c] = len(entries) + len(parts) - 1 if c in rows else s
        behind.append(rows)
    return parts, above, start


def _screw_of(row: int, parts: Sequence[tuple[int, int]], screws: int) -> int:
    """Return a screw of the coordinate of a row."""
    return row if row < screws else parts[row - screws][1]


def _skyline(parent: np.ndarray, first: Sequence[int], rank: np.ndarray, n: int) -> np.ndarray:
    """Return the first coordinate in a chain with each."""
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


@kernel(allocates=True)
def make_equations(chain: Chain, layout: MarkerLayout) -> Equations:
    """Return work memory for a layout."""
    ns, n = len(layout.rank), len(layout.entry)
    return Equations(
        np.zeros((ns, 3)),
        np.zeros((ns, 3)),
        np.zeros((len(chain.parent), SUMS)),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros(n),
        np.zeros(n),
    )


@kernel
def add_markers(
    layout: MarkerLayout, pose: Pose, target: np.ndarray, weight: np.ndarray, centre: np.ndarray, sums: np.ndarray
) -> float:
    """Fill the sums of each body's markers; return their cost."""
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
        # Position about the centre: small numbers keep the second moments accurate far from the origin.
        x = p[0] - centre[0] + R[0, 0] * r[0] + R[0, 1] * r[1] + R[0, 2] * r[2]
        y = p[1] - centre[1] + R[1, 0] * r[0] + R[1, 1] * r[1] + R[1, 2] * r[2]
        z = p[2] - centre[2] + R[2, 0] * r[0] + R[2, 1] * r[1] + R[2, 2] * r[2]
        ex, ey, ez = target[m, 0] - centre[0] - x, target[m, 1] - centre[1] - y, target[m, 2] - centre[2] - z
        cost += 0.5 * w * (ex * ex + ey * ey + ez * ez)
        wx, wy, wz = w * x, w * y, w * z
        # Order of SUMS: w, w x, w x x^T (upper triangle), w r, w x r^T (by rows).
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
    """Fill the screws about the centre."""
    for s in range(len(layout.rank) - len(layout.parts)):
        for i in range(3):
            eq.omega[s, i] = eq.v[s, i] = 0.0
    for b in layout.used:
        o = pose.pivot[b]
        x, y, z = o[0] - centre[0], o[1] - centre[1], o[2] - centre[2]
        for a in range(chain.first[b], chain.first[b + 1]):
            s = layout.screw[a]
            if s < 0:
                continue
            # A rotation about W through o is (f' W, o x f' W), a translation (0, f' W).
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
    # A coordinate with several joints in a chain moves the rest of the chain by the sum of its screws.
    row = len(layout.rank) - len(layout.parts)
    for k in range(len(layout.parts)):
        d, s = layout.parts[k, 0], layout.parts[k, 1]
        for i in range(3):
            eq.omega[row + k, i] = eq.omega[d, i] + eq.omega[s, i]
            eq.v[row + k, i] = eq.v[d, i] + eq.v[s, i]


@inlined
def twist_of_force(
    sums: np.ndarray, b: int, w: tuple[float, float, float], v: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return sum w (omega x x + v) x r = (sum w x r^T - trace) omega + v x sum w r over the subtree of body b."""
    t = sums[b, 13] + sums[b, 17] + sums[b, 21]
    kx = sums[b, 13] * w[0] + sums[b, 14] * w[1] + sums[b, 15] * w[2] - t * w[0]
    ky = sums[b, 16] * w[0] + sums[b, 17] * w[1] + sums[b, 18] * w[2] - t * w[1]
    kz = sums[b, 19] * w[0] + sums[b, 20] * w[1] + sums[b, 21] * w[2] - t * w[2]
    kx += v[1] * sums[b, 12] - v[2] * sums[b, 11]
    ky += v[2] * sums[b, 10] - v[0] * sums[b, 12]
    kz += v[0] * sums[b, 11] - v[1] * sums[b, 10]
    return kx, ky, kz


@inlined
def add_body(layout: MarkerLayout, b: int, eq: Equations, exact: float) -> None:
    """Add gradient and Hessian of a body's screws."""
    # Both indices instead of row views: a view costs more than the arithmetic on it.
    s, omega, velocity = eq.sums, eq.omega, eq.v
    w0, w1, w2, w3 = s[b, 0], s[b, 1], s[b, 2], s[b, 3]
    xx, xy, xz, yy, yz, zz = s[b, 4], s[b, 5], s[b, 6], s[b, 7], s[b, 8], s[b, 9]
    rx, ry, rz = s[b, 10], s[b, 11], s[b, 12]
    nx, ny, nz = s[b, 18] - s[b, 20], s[b, 19] - s[b, 15], s[b, 14] - s[b, 16]  # sum w x x r
    trace = xx + yy + zz
    for f in range(layout.first[b], layout.first[b + 1]):
        c = layout.rank[f]
        wx, wy, wz = omega[f, 0], omega[f, 1], omega[f, 2]
        vx, vy, vz = velocity[f, 0], velocity[f, 1], velocity[f, 2]
        eq.g[c] += wx * nx + wy * ny + wz * nz + vx * rx + vy * ry + vz * rz
        # l = sum w (omega x x + v), m = sum w x x (omega x x + v): entry (e, f) of H is v_e . l_f + omega_e . m_f.
        lx = wy * w3 - wz * w2 + w0 * vx
        ly = wz * w1 - wx * w3 + w0 * vy
        lz = wx * w2 - wy * w1 + w0 * vz
        mx = trace * wx - xx * wx - xy * wy - xz * wz + w2 * vz - w3 * vy
        my = trace * wy - xy * wx - yy * wy - yz * wz + w3 * vx - w1 * vz
        mz = trace * wz - xz * wx - yz * wy - zz * wz + w1 * vy - w2 * vx
        for e in range(layout.first[b], f + 1):
            value = velocity[e, 0] * lx + velocity[e, 1] * ly + velocity[e, 2] * lz
            value += omega[e, 0] * mx + omega[e, 1] * my + omega[e, 2] * mz
            add_pair(eq.H, c, layout.rank[e], value, e != f)
        # Second derivatives only for pairs along the chain: those within the joint are in `add_curvature`.
        if exact != 0.0:
            kx, ky, kz = twist_of_force(s, b, (wx, wy, wz), (vx, vy, vz))
            mx, my, mz = mx - exact * kx, my - exact * ky, mz - exact * kz
        for k in range(layout.start[b], layout.start[b + 1]):
            e = layout.above[k]
            value = velocity[e, 0] * lx + velocity[e, 1] * ly + velocity[e, 2] * lz
            value += omega[e, 0] * mx + omega[e, 1] * my + omega[e, 2] * mz
            add_pair(eq.H, c, layout.rank[e], value, True)


@inlined
def add_pair(H: np.ndarray, c: int, d: int, value: float, two: bool) -> None:
    """Add to the lower triangle; different screws of a coordinate count twice."""
    if c > d:
        H[c, d] += value
    elif d > c:
        H[d, c] += value
    else:
        H[c, c] += 2.0 * value if two else value


@inlined
def add_curvature(chain: Chain, layout: MarkerLayout, b: int, pose: Pose, centre: np.ndarray, eq: Equations) -> None:
    """Add second derivatives within a joint."""
    s, W = eq.sums, pose.W
    x, y, z = pose.pivot[b, 0] - centre[0], pose.pivot[b, 1] - centre[1], pose.pivot[b, 2] - centre[2]
    nx, ny, nz = s[b, 18] - s[b, 20], s[b, 19] - s[b, 15], s[b, 14] - s[b, 16]
    rx, ry, rz = s[b, 10], s[b, 11], s[b, 12]
    for f in range(chain.first[b], chain.first[b + 1]):
        if layout.screw[f] < 0:
            continue
        wx, wy, wz, c = W[f, 0], W[f, 1], W[f, 2], layout.rank[layout.screw[f]]
        if not chain.turns[f]:
            # - f'' W . sum w r for a translation, and with the moment of r for a rotation.
            eq.H[c, c] -= pose.d2[f] * (wx * rx + wy * ry + wz * rz)
            continue
        vx, vy, vz = y * wz - z * wy, z * wx - x * wz, x * wy - y * wx
        if pose.d2[f] != 0.0:
            eq.H[c, c] -= pose.d2[f] * (wx * nx + wy * ny + wz * nz + vx * rx + vy * ry + vz * rz)
        kx, ky, kz = twist_of_force(s, b, (wx, wy, wz), (vx, vy, vz))
        for e in range(chain.first[b], f + 1):
            if layout.screw[e] >= 0 and chain.turns[e]:
                value = -pose.d1[f] * pose.d1[e] * (W[e, 0] * kx + W[e, 1] * ky + W[e, 2] * kz)
                add_pair(eq.H, c, layout.rank[layout.screw[e]], value, e != f)


@kernel
def build(
    chain: Chain,
    layout: MarkerLayout,
    work: tuple[Pose, Equations],
    q: np.ndarray,
    measured: tuple[np.ndarray, np.ndarray, np.ndarray],
    prior: Prior,
    exact: bool | np.bool_,
) -> tuple[float, float]:
    """Fill g and H at q; return the whole cost and the marker cost.

    Args:
        measured: markers (M, 3), weights (M,) (0: not visible), centre (3,) near them.
        exact: exact Hessian, else Gauss-Newton.
    """
    pose, eq = work
    target, weight, centre = measured
    place_some(chain, layout.used, q, pose)
    markers = add_markers(layout, pose, target, weight, centre, eq.sums)
    find_screws(chain, layout, pose, centre, eq)
    cost = markers
    # Start from the priors; entries left of the skyline are never read.
    for r in range(len(layout.entry)):
        for k in range(layout.skyline[r], r):
            eq.H[r, k] = 0.0
        c = layout.entry[r]
        off, back = prior.reference[r] - q[c], prior.q_hold[c] - q[c]
        eq.H[r, r] = prior.u[r] + prior.hold
        eq.g[r] = prior.u[r] * off + prior.hold * back
        cost += 0.5 * (prior.u[r] * off * off + prior.hold * back * back)
    # Leaves before roots: the sums of a body are complete before its screws use them.
    for k in range(len(layout.used) - 1, -1, -1):
        b = layout.used[k]
        # No visible marker in the subtree.
        if eq.sums[b, 0] == 0.0:
            continue
        add_body(layout, b, eq, 1.0 if exact else 0.0)
        if exact:
            add_curvature(chain, layout, b, pose, centre, eq)
        up = chain.parent[b]
        if up >= 0:
            for i in range(SUMS):
                eq.sums[up, i] += eq.sums[b, i]
    return cost, markers
