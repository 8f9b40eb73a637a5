"""Centre-of-mass motion of a whole clip by one quadratic program.

For a centre of mass c of height z, gamma = g + z'', and angular momentum L about it, the zero-moment point is

    p = c_xy - (z / gamma) c_xy'' + (-L_y', L_x') / (m gamma)                                                       (1)

Height and momentum are given, so p is linear in c. At knots of 20 ms, with differences D2, D3,

    minimise  w |c - c_ref|^2 + 2e-7 |D3 c|^2 + 0.3 |p - middle|^2 + 30 |s|^2 + 0.05 s + 3e4 |h|^2 + h
    subject to  n_i . p_k <= b_i - margin + s_k + h_k  for each side of the support,  0 <= s <= margin - least,  h >= 0

over c, s (into the margin) and h (beyond the support, the measure of infeasibility).

Solver: primal-dual interior point method (Mehrotra 1992). Eliminating s and h leaves a banded matrix, in O(N).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import cho_solve_banded, cholesky_banded

from humanoid_control.errors import ClipError
from humanoid_control.performing.contact_plan import ContactPlan
from humanoid_control.performing.foot_paths import SolePaths
from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.performing.source_motion import RigidSoles, smoothed
from humanoid_control.walking.gait import GRAVITY
from humanoid_control.walking.support import convex_hull

KNOT = 0.02  # [s]
JERK, MIDDLE = 2e-7, 0.3  # prices of the third difference [s^6] and of the distance to the middle of the support
INTO, INTO_LINEAR, BEYOND, BEYOND_LINEAR = 30.0, 0.05, 3e4, 1.0  # prices of s and h
BOUNDS_OF_GAMMA = (4.0, 20.0)  # [m/s^2] keeps the division by gamma regular
MOMENTUM_CUTOFF = 6.0  # [Hz] filter of the angular momentum before differentiation
# tolerances: EXACT for complementarity and slacks, DUAL for the gradient, limited by round-off
SELF_CUTOFF = 8.0  # [Hz] filter of a centre of mass without program
ITERATIONS, EXACT, DUAL = 60, 1e-9, 1e-5
REGULAR = (0.0, 1e-14, 1e-12, 1e-10)  # of the largest diagonal, added if round-off makes the matrix indefinite
COLLINEAR = 1e-9  # [m^2] cross product of sides below which a corner is none
NOWHERE = 1e3  # [m] offset of an inactive side
BAND = 7  # diagonals on each side: three knots of two numbers, and one


class CenterReference(NamedTuple):
    """Inputs of the program.

    Attributes:
        center: target x, y, given height z (T, 3) [m].
        momentum: angular (T, 3) [N m s].
        mass: [kg].
        weight: price w.
    """

    center: np.ndarray
    momentum: np.ndarray
    mass: float
    weight: float = 1.0


@dataclass(frozen=True)
class CenterMotion:
    """Solution (T, .) at the frames of the result.

    Attributes:
        center: [m].
        velocity: [m/s].
        acceleration: [m/s^2].
        momentum: angular, low-passed [N m s].
        momentum_rate: [N m].
        zmp: [m].
        infeasible: h [m].
    """

    center: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    momentum: np.ndarray
    momentum_rate: np.ndarray
    zmp: np.ndarray
    infeasible: np.ndarray
    iterations: int


class SupportSides(NamedTuple):
    """Support sides: outward normals n (N, S, 2), offsets b (N, S) [m], middle (N, 2) [m]."""

    n: np.ndarray
    b: np.ndarray
    middle: np.ndarray

    @classmethod
    def of(cls, soles: RigidSoles, plan: ContactPlan, paths: SolePaths, step: int) -> SupportSides:
        """Return hulls of corners that stand from the previous to the next knot; `step` in frames."""
        knots = np.arange(0, len(plan.stands), step)
        corners = standing_corners(plan)
        all_of = np.array([corners[max(0, k - step) : k + step + 1].all(axis=0) for k in knots])
        for i in np.flatnonzero(~all_of.any(axis=1)).tolist():
            all_of[i] = corners[knots[i]]
        # standing feet do not move: one hull serves all knots with the same corners of the same stances
        number = np.array([[_stance_number(plan, f, int(k)) for f in (0, 1)] for k in knots])
        n, b = np.zeros((len(knots), 8, 2)), np.full((len(knots), 8), NOWHERE)
        middle, known = np.zeros((len(knots), 2)), dict[tuple, tuple[np.ndarray, np.ndarray, np.ndarray]]()
        for i, k in enumerate(knots.tolist()):
            key = (*all_of[i], *np.where(all_of[i].reshape(2, 4).any(axis=1), number[i], -1))
            if key not in known:
                known[key] = _sides(_places(soles, plan, k, all_of[i], paths))
            sides_n, sides_b, middle[i] = known[key]
            n[i, : len(sides_n)], b[i, : len(sides_b)] = sides_n, sides_b
        return cls(n, b, middle)


def standing_corners(plan: ContactPlan) -> np.ndarray:
    """Return loaded corners (T, 8): heel left, right, toe left, right, of left, then right foot."""
    heel = plan.stands & ~plan.toe_only
    return np.stack([np.repeat(np.stack([heel[:, f], plan.stands[:, f]], 1), 2, axis=1) for f in (0, 1)], 1).reshape(
        -1, 8
    )


def _stance_number(plan: ContactPlan, f: int, frame: int) -> int:
    stance = plan.stance_at(f, frame)
    return -1 if stance is None else stance.first


def _places(soles: RigidSoles, plan: ContactPlan, frame: int, on: np.ndarray, paths: SolePaths) -> np.ndarray:
    """Return standing corners (m, 2); a single foot counts as far as its ankle can load it."""
    out = []
    for f in (0, 1):
        stance = plan.stance_at(f, frame)
        flat = on[4 * f : 4 * f + 4]
        if stance is None:
            if flat.any():
                out.append((soles.corners[f][flat] @ paths.R[frame, f].T + paths.p[frame, f])[:, :2])
            continue
        c, s = np.cos(stance.yaw), np.sin(stance.yaw)
        alone = not on[4 - 4 * f : 8 - 4 * f].any()
        out.append(
            (soles.pressed if alone else soles.corners)[f][flat][:, :2] @ np.array([[c, s], [-s, c]]) + stance.place
        )
    return np.vstack(out)


def _sides(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normals, offsets and middle of the hull of points (m, 2)."""
    offset = points.mean(axis=0)
    hull = convex_hull(np.ascontiguousarray(points - offset))
    along = np.roll(hull, -1, axis=0) - hull
    corner = np.abs(np.roll(along, 1, axis=0)[:, 0] * along[:, 1] - np.roll(along, 1, axis=0)[:, 1] * along[:, 0])
    if (corner > COLLINEAR).sum() > 2:  # corners of nearly 180 degrees come and go by round-off
        hull = hull[corner > COLLINEAR]
        along = np.roll(hull, -1, axis=0) - hull
    n = np.stack([along[:, 1], -along[:, 0]], axis=1)
    if len(hull) == 2:
        n, hull = np.vstack([n, along]), np.vstack([hull, hull[::-1]])
    n = n / np.linalg.norm(n, axis=1, keepdims=True)
    return n, np.einsum("ij,ij->i", n, hull + offset), _area_middle(hull) + offset


def _area_middle(hull: np.ndarray) -> np.ndarray:
    """Return the area centroid (2,) of a polygon (k, 2), or an edge's middle."""
    following = np.roll(hull, -1, axis=0)
    cross = hull[:, 0] * following[:, 1] - hull[:, 1] * following[:, 0]
    if not abs(cross.sum()) > 1e-9:
        return np.asarray(hull.mean(axis=0))
    return np.asarray((cross[:, None] * (hull + following)).sum(axis=0) / (3.0 * cross.sum()))


# -------- The program


def free_motion(center: np.ndarray, momentum: np.ndarray, mass: float, rate: float) -> CenterMotion:
    """Return the motion of a given centre of mass (T, 3) [m], with zero-moment point (1).

    Args:
        momentum: angular (T, 3) [N m s].
        mass: [kg].
        rate: [Hz].
    """
    c, L = smoothed(center, SELF_CUTOFF, rate), smoothed(momentum, MOMENTUM_CUTOFF, rate)
    velocity, change = np.gradient(c, 1.0 / rate, axis=0), np.gradient(L, 1.0 / rate, axis=0)
    acceleration = np.stack([_second(c[:, i], 1.0 / rate) for i in range(3)], axis=1)
    gamma = np.clip(GRAVITY + acceleration[:, 2], *BOUNDS_OF_GAMMA)
    zmp = c[:, :2] - (c[:, 2] / gamma)[:, None] * acceleration[:, :2]
    zmp += np.stack([-change[:, 1], change[:, 0]], axis=1) / (mass * gamma)[:, None]
    return CenterMotion(c, velocity, acceleration, L, change, zmp, np.zeros(len(c)), 0)


class CenterProgram:
    """Program of one plan, for several references.

    Attributes:
        knots: frames (N,).
        rate: [Hz].
    """

    def __init__(self, soles: RigidSoles, plan: ContactPlan, paths: SolePaths, settings: FeasibilitySettings) -> None:
        step = max(1, settings.frames(KNOT))
        self.sides, self.rate, self.settings = SupportSides.of(soles, plan, paths, step), settings.rate, settings
        self.knots = np.arange(0, len(plan.stands), step)
        self.frames, self.dt = len(plan.stands), step / settings.rate

    def solve(self, reference: CenterReference) -> CenterMotion:
        """Solve for a reference.

        Raises:
            ClipError: if values are not finite.
        """
        k, dt = self.knots, self.dt
        L = smoothed(reference.momentum, MOMENTUM_CUTOFF, self.rate)
        rate = np.gradient(L, 1.0 / self.rate, axis=0)
        z = reference.center[:, 2]
        gamma = np.clip(GRAVITY + _second(z, 1.0 / self.rate), *BOUNDS_OF_GAMMA)
        shift = np.stack([-rate[:, 1], rate[:, 0]], axis=1) / (reference.mass * gamma)[:, None]
        origin = reference.center[0, :2].copy()  # keeps digits far from the world origin
        sides = SupportSides(self.sides.n, self.sides.b - self.sides.n @ origin, self.sides.middle - origin)
        knots = _Knots(
            (z / gamma)[k], shift[k], reference.center[k, :2] - origin, reference.weight, dt, sides, self.settings
        )
        c, p, h, iterations = knots.solve()
        t, at = k / self.rate, np.arange(self.frames) / self.rate
        spline = CubicSpline(t, c, axis=0, bc_type="clamped")
        at = np.minimum(at, t[-1])
        center = np.column_stack([spline(at) + origin, z])
        velocity = np.column_stack([spline(at, 1), np.gradient(z, 1.0 / self.rate)])
        # between knots the zero-moment point is linear and the acceleration follows from (1): the spline's curvature
        # overshoots at changes of support
        # spline overshoots where the support changes, and would take the point out of it.
        zmp = np.column_stack([np.interp(at, t, p[:, i]) for i in (0, 1)]) + origin
        flat = (gamma / z)[:, None] * (center[:, :2] + shift - zmp)
        acceleration = np.column_stack([flat, gamma - GRAVITY])
        return CenterMotion(center, velocity, acceleration, L, rate, zmp, np.interp(at, t, h), iterations)


def _second(z: np.ndarray, dt: float) -> np.ndarray:
    """Return second differences (T,), constant at both ends."""
    out = np.empty_like(z)
    out[1:-1] = (z[2:] - 2 * z[1:-1] + z[:-2]) / dt**2
    out[0], out[-1] = out[1], out[-2]
    return out


class _Rows(NamedTuple):
    """Values of all inequalities: sides (N, S); s below, s above, h (N, 3)."""

    side: np.ndarray
    own: np.ndarray


class _Knots:
    """Program at N knots."""

    def __init__(
        self,
        height: np.ndarray,
        shift: np.ndarray,
        wanted: np.ndarray,
        weight: float,
        dt: float,
        sides: SupportSides,
        settings: FeasibilitySettings,
    ) -> None:
        N = len(height)
        # p = sum_j alpha_j c_(k+j) + shift; c rests beyond both ends
        r = height / dt**2
        self.alpha = np.stack([-r, 1 + 2 * r, -r], axis=1)
        self.alpha[0] = [0.0, 1 + r[0], -r[0]]
        self.alpha[-1] = [-r[-1], 1 + r[-1], 0.0]
        self.shift, self.wanted, self.sides, self.weight = shift, wanted, sides, weight
        self.most = max(settings.margin - settings.margin_least, 0.0)
        self.limit = sides.b - settings.margin
        self.third = _third_differences(N) * (JERK / dt**6)

    def solve(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return c, p (N, 2) [m], h (N,) [m], iterations."""
        n, N = self.sides.n, len(self.shift)
        c, s, h = self.wanted.copy(), np.full(N, 0.5 * self.most), np.full(N, 0.1)
        t, lam = self._slack(c, s, h), _Rows(np.ones(self.limit.shape), np.ones((N, 3)))
        t = _Rows(np.maximum(t.side, 0.1), np.maximum(t.own, 1e-2))
        count, iterations = t.side.size + t.own.size, 0
        while iterations < ITERATIONS:
            iterations += 1
            gc, gs, gh = self._gradient(c, s, h, lam)
            slack = self._slack(c, s, h)
            off = _Rows(t.side - slack.side, t.own - slack.own)
            mu = (float((t.side * lam.side).sum()) + float((t.own * lam.own).sum())) / count
            worst = max(np.abs(gc).max(), np.abs(gs).max(), np.abs(gh).max())
            if mu < EXACT and worst < DUAL and max(np.abs(off.side).max(), np.abs(off.own).max()) < EXACT:
                break
            W = _Rows(lam.side / t.side, lam.own / t.own)
            solver = _Newton(self, W)
            # predictor: full Newton step; corrector: second-order term and smaller mu (Mehrotra 1992)
            target = _Rows(t.side * lam.side, t.own * lam.own)
            step = solver.step((gc, gs, gh), off, target, t, lam)
            most = _largest(t, lam, step)
            after = (
                float(((t.side + most * step.t.side) * (lam.side + most * step.lam.side)).sum())
                + float(((t.own + most * step.t.own) * (lam.own + most * step.lam.own)).sum())
            ) / count
            sigma = (after / mu) ** 3
            target = _Rows(
                t.side * lam.side + step.t.side * step.lam.side - sigma * mu,
                t.own * lam.own + step.t.own * step.lam.own - sigma * mu,
            )
            step = solver.step((gc, gs, gh), off, target, t, lam)
            most = min(1.0, 0.995 * _largest(t, lam, step))
            c, s, h = c + most * step.c, s + most * step.s, h + most * step.h
            t = _Rows(t.side + most * step.t.side, t.own + most * step.t.own)
            lam = _Rows(lam.side + most * step.lam.side, lam.own + most * step.lam.own)
            if not (np.isfinite(c).all() and np.isfinite(h).all()):
                raise ClipError("the program of the centre of mass has no solution: its references are not finite")
        zmp = self._zmp(c)
        beyond = np.einsum("ksi,ki->ks", n, zmp) - self.sides.b
        return c, zmp, np.maximum(beyond.max(axis=1), 0.0), iterations

    def _zmp(self, c: np.ndarray) -> np.ndarray:
        out = self.alpha[:, 1:2] * c + self.shift
        out[1:] += self.alpha[1:, 0:1] * c[:-1]
        out[:-1] += self.alpha[:-1, 2:3] * c[1:]
        return out

    def back(self, f: np.ndarray) -> np.ndarray:
        """Return P' f (N, 2)."""
        out = self.alpha[:, 1:2] * f
        out[:-1] += self.alpha[1:, 0:1] * f[1:]
        out[1:] += self.alpha[:-1, 2:3] * f[:-1]
        return out

    def _slack(self, c: np.ndarray, s: np.ndarray, h: np.ndarray) -> _Rows:
        side = self.limit + (s + h)[:, None] - np.einsum("ksi,ki->ks", self.sides.n, self._zmp(c))
        return _Rows(side, np.stack([s, self.most - s, h], axis=1))

    def _gradient(
        self, c: np.ndarray, s: np.ndarray, h: np.ndarray, lam: _Rows
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        force = 2 * MIDDLE * (self._zmp(c) - self.sides.middle)
        force += np.einsum("ks,ksi->ki", lam.side, self.sides.n)
        gc = 2 * self.weight * (c - self.wanted) + 2 * _banded_product(self.third, c) + self.back(force)
        pressed = lam.side.sum(axis=1)
        gs = 2 * INTO * s + INTO_LINEAR - pressed - lam.own[:, 0] + lam.own[:, 1]
        gh = 2 * BEYOND * h + BEYOND_LINEAR - pressed - lam.own[:, 2]
        return gc, gs, gh


class _Step(NamedTuple):
    c: np.ndarray
    s: np.ndarray
    h: np.ndarray
    t: _Rows
    lam: _Rows


class _Newton:
    """Newton system for weights W = lambda / t."""

    def __init__(self, knots: _Knots, W: _Rows) -> None:
        self.knots, self.W, n = knots, W, knots.sides.n
        # each knot: p'Ap - 2 p'B (s + h) + ...; s and h are eliminated
        self.B = np.einsum("ks,ksi->ki", W.side, n)
        total = W.side.sum(axis=1)
        ss = 2 * INTO + W.own[:, 0] + W.own[:, 1]
        hh = 2 * BEYOND + W.own[:, 2]
        # inverse of [[ss + total, total], [total, hh + total]]
        det = ss * hh + total * (ss + hh)
        self.inverse = np.stack([(hh + total) / det, -total / det, (ss + total) / det], axis=1)
        # A - B B' (sum of the inverse) about the weighted mean of the rows avoids cancellation
        mean = self.B / total[:, None]
        spread = n - mean[:, None, :]
        M = np.einsum("ks,ksi,ksj->kij", W.side, spread, spread)
        M += (total * (ss * hh / det))[:, None, None] * mean[:, :, None] * mean[:, None, :]
        M[:, 0, 0] += 2 * MIDDLE
        M[:, 1, 1] += 2 * MIDDLE
        self.M = M
        band = _congruent(knots.alpha, M) + 2 * _doubled(knots.third)
        band[0] += 2 * knots.weight
        for share in REGULAR:
            band[0] += share * float(band[0].max())
            try:
                self.factor = cholesky_banded(band, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                continue
        raise ClipError(
            "the program of the centre of mass is singular: its references are not finite, or far too large"
        )

    def step(self, gradient: tuple, off: _Rows, target: _Rows, t: _Rows, lam: _Rows) -> _Step:
        """Return the step that zeroes gradient and `off`, and lowers t lam by `target`."""
        k, W, n = self.knots, self.W, self.knots.sides.n
        gc, gs, gh = gradient
        # d lam = W (G d - ...): right-hand sides of the rows
        q = _Rows(W.side * off.side - target.side / t.side, W.own * off.own - target.own / t.own)
        rs = -gs + q.side.sum(axis=1) + q.own[:, 0] - q.own[:, 1]
        rh = -gh + q.side.sum(axis=1) + q.own[:, 2]
        rc = -gc - k.back(np.einsum("ks,ksi->ki", q.side, n))
        i = self.inverse
        s0, h0 = i[:, 0] * rs + i[:, 1] * rh, i[:, 1] * rs + i[:, 2] * rh
        rc = rc + k.back(self.B * (s0 + h0)[:, None])
        dc = self._solve(rc)
        # iterative refinement, as the weights of active rows differ by many orders
        dc += self._solve(rc - self._product(dc))
        dp = k._zmp(dc) - k.shift
        along = np.einsum("ki,ki->k", self.B, dp)
        ds, dh = s0 + (i[:, 0] + i[:, 1]) * along, h0 + (i[:, 1] + i[:, 2]) * along
        moved = _Rows((ds + dh)[:, None] - np.einsum("ksi,ki->ks", n, dp), np.stack([ds, -ds, dh], axis=1))
        dt = _Rows(moved.side - off.side, moved.own - off.own)
        dlam = _Rows(-(target.side + lam.side * dt.side) / t.side, -(target.own + lam.own * dt.own) / t.own)
        return _Step(dc, ds, dh, dt, dlam)

    def _solve(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(
            cho_solve_banded((self.factor, True), r.reshape(-1), check_finite=False).reshape(-1, 2), dtype=float
        )

    def _product(self, c: np.ndarray) -> np.ndarray:
        k = self.knots
        force = np.einsum("kij,kj->ki", self.M, k._zmp(c) - k.shift)
        return 2 * k.weight * c + 2 * _banded_product(k.third, c) + k.back(force)


def _largest(t: _Rows, lam: _Rows, step: _Step) -> float:
    pairs = ((t.side, step.t.side), (t.own, step.t.own), (lam.side, step.lam.side), (lam.own, step.lam.own))
    return min([1.0, *(float(-1.0 / min(-1e-300, (d / x).min())) for x, d in pairs)])


def _third_differences(N: int) -> np.ndarray:
    """Return D3' D3, lower banded (4, N)."""
    D = np.array([-1.0, 3.0, -3.0, 1.0])
    band = np.zeros((4, N))
    for i in range(4):
        for j in range(i, 4):
            band[j - i, i : i + max(N - 3, 0)] += D[i] * D[j]
    return band


def _banded_product(band: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Multiply c (N, 2) by a symmetric lower banded matrix (4, N)."""
    out = band[0][:, None] * c
    for d in range(1, 4):
        out[d:] += band[d, :-d, None] * c[:-d]
        out[:-d] += band[d, :-d, None] * c[d:]
    return out


def _doubled(band: np.ndarray) -> np.ndarray:
    """Expand (4, N) to both alternating axes (8, 2 N)."""
    out = np.zeros((BAND + 1, 2 * band.shape[1]))
    for d in range(4):
        out[2 * d] = np.repeat(band[d], 2)
    return out


def _congruent(alpha: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return P' M P, lower banded (8, 2 N)."""
    N = len(alpha)
    out = np.zeros((BAND + 1, 2 * N))
    for i in range(3):
        for j in range(i + 1):  # rows of knot k + i - 1, columns of knot k + j - 1
            k = np.arange(max(0, 1 - j), N - max(0, i - 1))
            part = (alpha[k, i] * alpha[k, j])[:, None, None] * M[k]
            for a in (0, 1):
                for b in (0, 1):
                    d = 2 * (i - j) + a - b
                    if d >= 0:
                        np.add.at(out[d], 2 * (k + j - 1) + b, part[:, a, b])
    return out
