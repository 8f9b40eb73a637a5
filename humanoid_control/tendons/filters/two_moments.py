"""What the change of the lengths between two moments tells, and what only the noise pretends that it does."""

from __future__ import annotations

from humanoid_control.jit import kernel


@kernel
def compare_moments(x, P, G, before, B, curvature, r, clear, H, R):
    """Jacobian and variance of f(c + d) - f(c): c the angles at the earlier moment, d how far they have moved.

    By (d, c) the Jacobian is G(c + d) and G(c + d) - G(c). The second tells where the robot is, and motion makes it.
    But where a joint rests, errors of d make it as well, and what a filter learns from that is wrong and never ends.
    So each entry keeps only what exceeds `clear` times the deviation that the uncertainty of d gives it: at rest
    nothing is learnt. That of d is what the lengths leave, (G^T G)^+ times their variance, to which the error of the
    moment arms adds: by K e_c d with the second derivatives K.

    The variance is that of the measurement, and of what a linear update neglects: e_c K e_d and
    e_c (K(c + d) - K(c)) e_c / 2. Derivatives by an angle are of about the same size in each order, so the latter is
    taken as |d| e_c K e_c / 2.

    Args:
        x: (2 D,) c + d, then c [rad]. P: (2 D, 2 D) its covariance. G, before: (M, D) Jacobians at both [m/rad].
        B: (D, D) (G^T G)^+. curvature: (M, D, D) mean squares of the second derivatives [m^2/rad^4].
        r: (M,) variance of the measured change [m^2]. clear: [standard deviations].
        H: (M, 2 D), R: (M,), written: Jacobian by x, and variance.
    """
    m, d = G.shape
    arms = 0.0  # mean over the tendons of the variance that wrong moment arms give the change
    for i in range(m):
        mixed, size = 0.0, 0.0
        for a in range(d):
            if curvature[i, a, a] > 0.0:
                move = (x[a] - x[d + a]) ** 2
                size += move
                for e in range(d):
                    mixed += curvature[i, a, e] * move * P[d + e, d + e]
        arms += (r[i] + mixed) / m
        R[i] = size
    for i in range(m):
        linear, square = 0.0, 0.0
        for a in range(d):
            change = G[i, a] - before[i, a]
            noise = 0.0
            if curvature[i, a, a] > 0.0:
                error = P[d + a, d + a]
                for e in range(d):
                    noise += curvature[i, a, e] * B[e, e] * arms
                    square += curvature[i, a, e] * error * P[d + e, d + e]
                linear += error * noise
            left = change * change - clear * clear * noise
            if left > 0.0:
                change = left**0.5 if change > 0.0 else -(left**0.5)
            else:
                change = 0.0
            H[i, a] = G[i, a]
            H[i, d + a] = change - G[i, a]
        R[i] = r[i] + linear + 0.5 * R[i] * square
