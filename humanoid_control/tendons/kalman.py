"""Kalman updates, one scalar measurement after the other in Joseph's form, and the test that finds a lying tendon.

Taking independent measurements one by one is the same as taking them together, needs no matrix inverse, leaves out a
tendon by leaving out its row, and yields whitened innovations whose squares add up to the NIS.
"""

from __future__ import annotations

from humanoid_control.jit import kernel


@kernel
def _crossed(h, at):
    """Positions of the entries of h that are not zero, into at; their number. Most tendons cross few joints."""
    count = 0
    for a in range(h.shape[0]):
        if h[a] != 0.0:
            at[count] = a
            count += 1
    return count


@kernel
def _left(nu, h, x, x0, at, count):
    """What is left of the innovation nu at x0 when the state has moved to x."""
    for c in range(count):
        nu -= h[at[c]] * (x[at[c]] - x0[at[c]])
    return nu


@kernel
def _absorb(x, P, h, e, r, w, k, at, count):
    """Take in one measurement: e = h (truth - x) + noise of variance r.

    P <- (I - k h) P (I - k h)^T + k r k^T, written so that P stays exactly symmetric.

    Args:
        x: (n,) state; P: (n, n) covariance; both changed. w, k: (n,) room. at, count: where h (n,) is not zero.

    Returns:
        Variance of e.
    """
    n = x.shape[0]
    for j in range(n):
        w[j] = 0.0
    for c in range(count):
        g, row = h[at[c]], P[at[c]]
        for j in range(n):
            w[j] += g * row[j]
    s = r
    for c in range(count):
        s += h[at[c]] * w[at[c]]
    for j in range(n):
        k[j] = w[j] / s
        x[j] += k[j] * e
        w[j] -= 0.5 * s * k[j]
    for a in range(n):
        ka, ua = k[a], w[a]
        for j in range(n):
            P[a, j] -= ka * w[j] + ua * k[j]
    return s


@kernel
def _variance(P, h, at, count):
    """h P h^T."""
    total = 0.0
    for c in range(count):
        row = P[at[c]]
        for d in range(count):
            total += h[at[c]] * h[at[d]] * row[at[d]]
    return total


@kernel
def update(x, P, H, nu, r, use, bend, gate, most, x0, P0, w, k, at, score):
    """Take in all measurements in use, and leave out those that contradict the rest.

    Each measurement is compared with what all others together say of it (leave-one-out innovation, from the residual
    after the update). While the worst one exceeds the gate it is left out and the update is made again.

    Args:
        x: (n,), P: (n, n): prior, becoming posterior. H: (M, n), nu: (M,) innovations at the prior, r: (M,) variances.
        use: (M,) 1 to use, 0 to leave out; cleared where the gate closes.
        bend: (M,) variance that the gate grants the curvature of the measurement [like r]; the update ignores it.
        gate: largest admitted |innovation| in standard deviations; most: how many may be left out by it.
        x0: (n,), P0: (n, n), w, k: (n,), at: (n,) integers: room.
        score: (M,), written: leave-one-out innovation in standard deviations.

    Returns:
        NIS of the measurements used, their number, and how many the gate left out.
    """
    n, m = x.shape[0], nu.shape[0]
    for a in range(n):
        x0[a] = x[a]
        for b in range(n):
            P0[a, b] = P[a, b]
    dropped = 0
    while True:
        nis, count = 0.0, 0
        for i in range(m):
            if use[i] != 0:
                held = _crossed(H[i], at)
                e = _left(nu[i], H[i], x, x0, at, held)
                s = _absorb(x, P, H[i], e, r[i], w, k, at, held)
                nis += e * e / s
                count += 1
        worst, liar = gate, -1
        for i in range(m):
            if nu[i] != nu[i]:
                score[i] = 0.0
                continue
            held = _crossed(H[i], at)
            e = _left(nu[i], H[i], x, x0, at, held)
            share = _variance(P, H[i], at, held) / r[i]
            if use[i] == 0:
                score[i] = e / ((1.0 + share) * r[i] + bend[i]) ** 0.5
                continue
            free = 1.0 - share
            if free < 1e-9:  # nothing else speaks of what this tendon measures
                score[i] = 0.0
                continue
            score[i] = e / free / (r[i] / free + bend[i]) ** 0.5
            if abs(score[i]) > worst:
                worst, liar = abs(score[i]), i
        if liar < 0 or dropped >= most:
            return nis, count, dropped
        use[liar] = 0
        dropped += 1
        for a in range(n):
            x[a] = x0[a]
            for b in range(n):
                P[a, b] = P0[a, b]


@kernel
def hold_limits(x, P, lower, upper, r):
    """Where an angle is beyond its limit, pull the state back as a measurement of variance r [rad^2] would; count them.

    The covariance stays: a limit that is touched step after step says nothing new, and a filter that takes it for news
    becomes sure of a wrong posture.

    Args:
        x: (n,), changed. P: (n, n). lower, upper: (D,) of the first D states, the angles.
    """
    count = 0
    for d in range(lower.shape[0]):
        e = 0.0
        if x[d] < lower[d]:
            e = lower[d] - x[d]
        elif x[d] > upper[d]:
            e = upper[d] - x[d]
        if e != 0.0:
            gain = e / (P[d, d] + r)
            for a in range(x.shape[0]):
                x[a] += gain * P[a, d]
            count += 1
    return count


@kernel
def smallest_pivot(P, L):
    """Smallest pivot of the Cholesky factors of P (n, n); not positive when P is no covariance. L: (n, n) room."""
    n = P.shape[0]
    least = P[0, 0]
    for i in range(n):
        for j in range(i + 1):
            s = P[i, j]
            for c in range(j):
                s -= L[i, c] * L[j, c]
            if i == j:
                if not s > 0.0:
                    return s
                least = min(least, s)
                L[i, i] = s**0.5
            else:
                L[i, j] = s / L[j, j]
    return least
