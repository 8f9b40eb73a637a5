"""A network of two hidden tanh layers evaluated: value, Jacobian, and the Jacobian's change along a direction."""

from __future__ import annotations

from math import tanh

from humanoid_control.jit import kernel


@kernel
def hidden(theta, centre, scale, W1, b1, W2, b2, a1, a2):
    """Activities of both layers, a1 (h1,) and a2 (h2,), at one posture (D,) [rad]."""
    for i in range(a1.shape[0]):
        s = b1[i]
        for d in range(theta.shape[0]):
            s += W1[i, d] * (theta[d] - centre[d]) * scale[d]
        a1[i] = tanh(s)
    for i in range(a2.shape[0]):
        s = b2[i]
        for j in range(a1.shape[0]):
            s += W2[i, j] * a1[j]
        a2[i] = tanh(s)


@kernel
def slopes(scale, W1, W2, a1, a2, J1, J2):
    """da1/dtheta (h1, D) and da2/dtheta (h2, D) from the activities."""
    d = scale.shape[0]
    for i in range(a1.shape[0]):
        for c in range(d):
            J1[i, c] = (1.0 - a1[i] * a1[i]) * W1[i, c] * scale[c]
    for i in range(a2.shape[0]):
        for c in range(d):
            J2[i, c] = 0.0
        for j in range(a1.shape[0]):
            for c in range(d):
                J2[i, c] += W2[i, j] * J1[j, c]
        for c in range(d):
            J2[i, c] *= 1.0 - a2[i] * a2[i]


@kernel
def _output(W3, J2, jacobian):
    for i in range(W3.shape[0]):
        for c in range(J2.shape[1]):
            jacobian[i, c] = 0.0
        for j in range(W3.shape[1]):
            for c in range(J2.shape[1]):
                jacobian[i, c] += W3[i, j] * J2[j, c]


@kernel
def evaluate(theta, centre, scale, W1, b1, W2, b2, W3, b3, a1, a2, J1, J2, lengths, jacobian):
    """Lengths (M,) = W3 a2 + b3 and their Jacobian (M, D), written."""
    hidden(theta, centre, scale, W1, b1, W2, b2, a1, a2)
    for i in range(W3.shape[0]):
        s = b3[i]
        for j in range(W3.shape[1]):
            s += W3[i, j] * a2[j]
        lengths[i] = s
    slopes(scale, W1, W2, a1, a2, J1, J2)
    _output(W3, J2, jacobian)


@kernel
def directional(theta, v, centre, scale, W1, b1, W2, b2, W3, a1, a2, J1, J2, out):
    """Derivative of the Jacobian along v (D,), (M, D), written; J1 and J2 are changed into their derivatives."""
    hidden(theta, centre, scale, W1, b1, W2, b2, a1, a2)
    slopes(scale, W1, W2, a1, a2, J1, J2)
    d = scale.shape[0]
    # J2 = (1 - a2^2) W2 J1, so dJ2 = -2 a2 da2 W2 J1 + (1 - a2^2) W2 dJ1
    for i in range(a2.shape[0]):
        da2 = 0.0
        for c in range(d):
            da2 += J2[i, c] * v[c]
        slope = 1.0 - a2[i] * a2[i]
        for c in range(d):
            J2[i, c] = 0.0
        for j in range(a1.shape[0]):
            da1 = 0.0
            for c in range(d):
                da1 += J1[j, c] * v[c]
            for c in range(d):
                change = -2.0 * a1[j] * da1 * W1[j, c] * scale[c]
                J2[i, c] += W2[i, j] * (slope * change - 2.0 * a2[i] * da2 * J1[j, c])
    _output(W3, J2, out)
