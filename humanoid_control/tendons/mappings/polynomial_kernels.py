"""A polynomial of all joint angles evaluated: value, gradient, and the gradient's change along a direction."""

from __future__ import annotations

from humanoid_control.jit import kernel


@kernel
def evaluate(theta, centre, scale, parent, variable, C, Cd, phi, lengths, jacobian):
    """Lengths and their gradients at one posture.

    Args:
        theta: (D,) [rad]. centre, scale: (D,) the variables are (theta - centre) * scale, within [-1, 1].
        parent, variable: (m,) of the monomials.
        C: (m, M) coefficients of the lengths; Cd: (low, M * D) of the gradients, scale included.
        phi: (m,) room for the monomials. lengths: (M,), jacobian: (M, D), written.
    """
    phi[0] = 1.0
    for a in range(1, phi.shape[0]):
        d = variable[a]
        phi[a] = phi[parent[a]] * ((theta[d] - centre[d]) * scale[d])
    _combine(phi, C, lengths)
    _combine(phi, Cd, jacobian.reshape(-1))


@kernel
def directional(theta, v, centre, scale, parent, variable, Cd, phi, dphi, out):
    """Derivative of the gradients along v, (M, D): the monomials are differentiated forward."""
    phi[0] = 1.0
    dphi[0] = 0.0
    for a in range(1, Cd.shape[0]):
        d, p = variable[a], parent[a]
        x = (theta[d] - centre[d]) * scale[d]
        phi[a] = phi[p] * x
        dphi[a] = dphi[p] * x + phi[p] * v[d] * scale[d]
    _combine(dphi, Cd, out.reshape(-1))


@kernel
def _combine(phi, C, out):
    """out = sum over the rows of C, each times its monomial."""
    n = out.shape[0]
    for i in range(n):
        out[i] = C[0, i] * phi[0]
    rows = C.shape[0]
    a = 1
    while a + 3 < rows:  # four rows at once: the sum is read and written a quarter as often
        p0, p1, p2, p3 = phi[a], phi[a + 1], phi[a + 2], phi[a + 3]
        for i in range(n):
            out[i] += (p0 * C[a, i] + p1 * C[a + 1, i]) + (p2 * C[a + 2, i] + p3 * C[a + 3, i])
        a += 4
    while a < rows:
        for i in range(n):
            out[i] += phi[a] * C[a, i]
        a += 1


@kernel
def evaluate_rows(theta, centre, scale, parent, variable, C, Cd, phi, lengths, jacobians):
    """`evaluate` at many postures (S, D)."""
    for s in range(theta.shape[0]):
        evaluate(theta[s], centre, scale, parent, variable, C, Cd, phi, lengths[s], jacobians[s])


@kernel
def legendre_rows(x, exponents, values, out):
    """Products of Legendre polynomials at many points, for the normal equations.

    Args:
        x: (S, D) within [-1, 1]. exponents: (m, D) degrees of the factors. values: (D, P + 1) room. out: (S, m).
    """
    degree = values.shape[1] - 1
    for s in range(x.shape[0]):
        for d in range(x.shape[1]):
            values[d, 0] = 1.0
            if degree > 0:
                values[d, 1] = x[s, d]
            for k in range(1, degree):
                values[d, k + 1] = ((2 * k + 1) * x[s, d] * values[d, k] - k * values[d, k - 1]) / (k + 1)
        for a in range(exponents.shape[0]):
            p = 1.0
            for d in range(x.shape[1]):
                if exponents[a, d] != 0:
                    p *= values[d, exponents[a, d]]
            out[s, a] = p
