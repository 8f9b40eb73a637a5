"""Multibody dynamics the plain way, with none of the engine's formulas.

Poses by products of homogeneous transforms, Jacobians by complex steps through them, their rates by differences, and
the Newton-Euler equations of each body about its centre of gravity, in the environment's axes, projected on the
coordinates: M = sum Jc^T m Jc + Jw^T I Jw.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

from humanoid_control.multibody import Model
from humanoid_control.multibody.couplings import IDENTITY, LINEAR, POLYNOMIAL, QUADRATIC, SPLINE
from humanoid_control.multibody.layout import FREE, FREE_EULER, PRISMATIC


def rot_x(a):
    return np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])


def rot_z(a):
    return np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])


def quaternion_matrix(x, y, z, w):
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def hat(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def transform(R, p):
    X = np.eye(4, dtype=complex)
    X[:3, :3], X[:3, 3] = R, p
    return X


def coupled(joint, x):
    if joint.coupling == IDENTITY:
        return x[0]
    par = np.array(joint.parameters)
    if joint.coupling == LINEAR:
        return par[0] * x[0] + par[1]
    if joint.coupling == SPLINE:
        n = int(par[2])
        return par[0] * spline(par[3 : 3 + n], par[3 + n : 3 + n + 4 * (n - 1) : 4], par[-2], x[0]) + par[1]
    if joint.coupling == POLYNOMIAL:
        return par[0] * np.polyval(par[:2:-1], x[0]) + par[1]
    assert joint.coupling == QUADRATIC
    n = len(x)
    H = np.zeros((n, n))
    H[np.tril_indices(n)] = par[1 + n :]
    H = H + np.tril(H, -1).T
    return par[0] + par[1 : 1 + n] @ x + 0.5 * x @ H @ x


def spline(x, values, last, u):
    """The spline through these points, by SciPy, straight outside; u may be complex, with a small imaginary part."""
    y = np.append(values, last)
    assert len(x) >= 4

    def powers(a, b):
        return np.polynomial.polynomial.polyfit(a - a[0], b, 3)

    ends = [(3, 6 * powers(x[:4], y[:4])[3])], [(3, 6 * powers(x[-4:], y[-4:])[3])]
    f = make_interp_spline(x, y, k=3, bc_type=ends)
    at = min(max(u.real, x[0]), x[-1])
    inside = x[0] <= u.real <= x[-1]
    t = u - at
    return f(at) + t * f(at, 1) + (t**2 / 2 * f(at, 2) + t**3 / 6 * f(at, 3) if inside else 0.0)


def poses(model: Model, q: np.ndarray) -> np.ndarray:
    """Poses (bodies, 4, 4) in the environment; q may be complex."""
    out = []
    for body, own, p in zip(model.bodies, model.coords, model.parents, strict=True):
        X = (out[p] if p >= 0 else np.eye(4)) @ transform(body.A.T, body.r)
        at = model.qpos[own[0]]
        if body.joint.motion == FREE:
            X = X @ transform(quaternion_matrix(*q[at + 3 : at + 7]), q[at : at + 3])
        elif body.joint.motion == FREE_EULER:
            a, b, c = q[at : at + 3]
            X = X @ transform(rot_z(a) @ rot_x(b) @ rot_z(c), q[at + 3 : at + 6])
        else:
            angle = coupled(body.joint, q[model.qpos[list(own)]])
            if body.joint.motion == PRISMATIC:
                X = X @ transform(np.eye(3), [0, 0, angle])
            else:
                X = X @ transform(rot_z(angle), np.zeros(3))
        out.append(X)
    return np.array(out)


def moved(model: Model, q: np.ndarray, k: int, h: complex) -> np.ndarray:
    """The configuration after a small step along coordinate k, to first order."""
    out = q.astype(complex)
    for at, first in model.free:
        if first <= k < first + 3:
            out[at : at + 3] += h * quaternion_matrix(*q[at + 3 : at + 7])[:, k - first]
            return out
        if first <= k < first + 6:
            e = np.eye(3)[k - first - 3]
            v, w = q[at + 3 : at + 6], q[at + 6]
            out[at + 3 : at + 7] += 0.5 * h * np.array([*(w * e + np.cross(v, e)), -v @ e])
            return out
    euler = [own for b, own in zip(model.bodies, model.coords, strict=True) if b.joint.motion == FREE_EULER]
    at = next((model.qpos[own[0]] + k - own[0] for own in euler if own[0] <= k < own[0] + 6), model.qpos[k])
    out[at] += h
    return out


def flown(model: Model, q: np.ndarray, v: np.ndarray, h: float) -> np.ndarray:
    """The configuration after the time h at constant v, correct to fourth order."""

    def rate(x):
        return sum(moved(model, x, k, 1j).imag * v[k] for k in range(model.nv))

    k1 = rate(q)
    k2 = rate(q + 0.5 * h * k1)
    k3 = rate(q + 0.5 * h * k2)
    return q + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(q + h * k3))


def jacobians(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Jacobians (bodies, 3, nv) of the centres of gravity, of the origins, and of rotation; environment's axes."""
    nb, h = len(model.bodies), 1e-30
    Jc, Jo, Jw = np.zeros((3, nb, 3, model.nv))
    X0 = poses(model, q).real
    for k in range(model.nv):
        dX = poses(model, moved(model, q, k, 1j * h)).imag / h
        for i, body in enumerate(model.bodies):
            W = dX[i, :3, :3] @ X0[i, :3, :3].T
            Jw[i, :, k] = W[2, 1], W[0, 2], W[1, 0]
            Jo[i, :, k] = dX[i, :3, 3]
            Jc[i, :, k] = dX[i, :3, 3] + dX[i, :3, :3] @ body.inertia.com
    return Jc, Jo, Jw


def equations(model: Model, q: np.ndarray, v: np.ndarray, wrench: np.ndarray, gravity: np.ndarray):
    """M (nv, nv) and the right-hand side (nv,) without the generalised forces.

    Args:
        wrench: (bodies, 6) [moment, force] at each origin in each body's axes.
    """
    Jc, Jo, Jw = jacobians(model, q)
    h = 1e-4
    steps = [jacobians(model, flown(model, q, v, s * h)) for s in (-2, -1, 1, 2)]
    cdot, _, wdot = ((a - 8 * b + 8 * c - d) @ v / (12 * h) for a, b, c, d in zip(*steps, strict=True))
    X = poses(model, q).real
    M, rhs = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
    for i, body in enumerate(model.bodies):
        R, m, c = X[i, :3, :3], body.inertia.mass, body.inertia.com
        inertia = R @ (body.inertia.about_origin + m * hat(c) @ hat(c)) @ R.T
        w = Jw[i] @ v
        M += m * Jc[i].T @ Jc[i] + Jw[i].T @ inertia @ Jw[i]
        rhs += Jc[i].T @ (m * (gravity - cdot[i])) - Jw[i].T @ (inertia @ wdot[i] + np.cross(w, inertia @ w))
        rhs += Jw[i].T @ R @ wrench[i, :3] + Jo[i].T @ R @ wrench[i, 3:]
    return M, rhs
