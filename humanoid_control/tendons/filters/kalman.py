"""Kalman updates, one scalar measurement after the other, and the test that finds a lying tendon.

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
        at[count] = a  # without a branch, which would be guessed wrongly most of the time
        count += h[a] != 0.0
    return count


@kernel
def _left(nu, h, x, x0, at, count):
    """What is left of the innovation nu at x0 when the state has moved to x."""
    for c in range(count):
        nu -= h[at[c]] * (x[at[c]] - x0[at[c]])
    return nu


@kernel
def _absorb(x, P, h, e, r, w, at, count):
    """Take in one measurement: e = h (truth - x) + noise of variance r.

    P <- P - v v^T with v = P h^T / sqrt(h P h^T + r): Joseph's form of it, with the best gain put in. Every entry has
    the same product as its mirror image, so that P stays symmetric to the last digit.

    Args:
        x: (n,) state; P: (n, n) covariance; both changed. w: (n,) room. at, count: where h (n,) is not zero.

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
    gain, root = e / s, 1.0 / s**0.5
    for j in range(n):
        x[j] += w[j] * gain
        w[j] *= root
    for a in range(n):
        v, row = w[a], P[a]
        for j in range(n):
            row[j] -= v * w[j]
    return s


@kernel
def _variance(P, h, at, count):
    """h P h^T of a symmetric P."""
    total = 0.0
    for c in range(count):
        g, row = h[at[c]], P[at[c]]
        total += g * g * row[at[c]]
        for d in range(c + 1, count):
            total += 2.0 * g * h[at[d]] * row[at[d]]
    return total


@kernel
def update(x, P, H, nu, r, use, gate, most, x0, P0, w, at, score):
    """Take in all measurements in use, and leave out those that contradict the rest.

    Each measurement is compared with what all others together say of it (leave-one-out innovation, from the residual
    after the update). While the worst one exceeds the gate it is left out and the update is made again.

    Args:
        x: (n,), P: (n, n): prior, becoming posterior. H: (M, n), nu: (M,) innovations at the prior, r: (M,) variances.
        use: (M,) 1 to use, 0 to leave out; cleared where the gate closes.
        gate: largest admitted |innovation| in standard deviations; most: how many may be left out by it.
        x0: (n,), P0: (n, n), w: (n,), at: (n,) integers: room.
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
                s = _absorb(x, P, H[i], e, r[i], w, at, held)
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
                score[i] = e / ((1.0 + share) * r[i]) ** 0.5
                continue
            free = 1.0 - share
            if free < 1e-9:  # nothing else speaks of what this tendon measures
                score[i] = 0.0
                continue
            score[i] = e / (free * r[i]) ** 0.5
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
