"""What the change of the lengths between two moments tells, and what only the noise pretends that it does."""

from __future__ import annotations

from humanoid_control.jit import kernel


@kernel
def moved_angles(x, P, B, curvature, r, least, later, doubt):
    """The later angles of two moments, without the motion that noise alone may have made; how many joints moved.

    At rest the noise of the lengths moves the estimate by (G^T G)^+ times its variance. A joint that moved by less than
    some deviations of that counts as resting: one test of all tendons together, which noise hardly ever passes.

    Args:
        x: (2 D, ...) angles now c + d, then those of the earlier moment c [rad]. P: its covariance.
        B: (D, D) (G^T G)^+ now. curvature: (M, D, D) mean squares of the second derivatives K [m^2/rad^4].
        r: (M,) variance of the change of the lengths [m^2]. least: [standard deviations].
        later: (D,), written: c + d, of resting joints c [rad].
        doubt: (D,), written: variance of d, to which the error of the moment arms adds, K e_c d [rad^2].
    """
    m, d = curvature.shape[0], B.shape[0]
    noise, arms = 0.0, 0.0  # mean over the tendons of the variance of a change, without and with wrong moment arms
    for i in range(m):
        mixed = 0.0
        for a in range(d):
            if curvature[i, a, a] > 0.0:
                move = (x[a] - x[d + a]) ** 2
                for e in range(d):
                    mixed += curvature[i, a, e] * move * P[d + e, d + e]
        noise += r[i] / m
        arms += (r[i] + mixed) / m
    count = 0
    for a in range(d):
        later[a] = x[d + a]
        if (x[a] - x[d + a]) ** 2 > least * least * B[a, a] * noise:
            later[a] = x[a]
            count += 1
        doubt[a] = B[a, a] * arms
    return count


@kernel
def compare_moments(x, P, G, later, before, doubt, curvature, r, clear, H, R):
    """Jacobian and variance of f(c + d) - f(c): c the angles at the earlier moment, d how far they have moved.

    By (d, c) the Jacobian is G(c + d) and G(c + d) - G(c). The second tells where the robot is, and motion makes it.
    But errors of d make it as well, and what a filter learns from that is wrong and never ends. So each entry keeps
    only what exceeds `clear` times the deviation that the doubt about d gives it.

    The variance is that of the measurement, and of what a linear update neglects: e_c K e_d and
    e_c (K(c + d) - K(c)) e_c / 2. Derivatives by an angle are of about the same size in each order, so the latter is
    taken as |d| e_c K e_c / 2.

    Args:
        x: (2 D, ...) c + d, then c [rad]. P: its covariance.
        G, later, before: (M, D) Jacobians at c + d, at the angles of `moved_angles`, and at c [m/rad].
        doubt: (D,) variance of d [rad^2]. curvature: (M, D, D) mean squares of the second derivatives [m^2/rad^4].
        r: (M,) variance of the measured change [m^2]. clear: [standard deviations].
        H: (M, 2 D, ...), R: (M,), written: Jacobian by x, and variance.
    """
    m, d = G.shape
    for i in range(m):
        size, linear, square = 0.0, 0.0, 0.0
        for a in range(d):
            change = later[i, a] - before[i, a]
            noise = 0.0
            if curvature[i, a, a] > 0.0:
                error = P[d + a, d + a]
                size += (x[a] - x[d + a]) ** 2
                for e in range(d):
                    noise += curvature[i, a, e] * doubt[e]
                    square += curvature[i, a, e] * error * P[d + e, d + e]
                linear += error * noise
            left = change * change - clear * clear * noise
            if left > 0.0:
                change = left**0.5 if change > 0.0 else -(left**0.5)
            else:
                change = 0.0
            H[i, a] = G[i, a]
            H[i, d + a] = change - G[i, a]
        R[i] = r[i] + linear + 0.5 * size * square
