"""Kalman updates, one scalar measurement after the other, and the test that finds a lying tendon.

Taking independent measurements one by one is the same as taking them together, needs no matrix inverse, leaves out a
tendon by leaving out its row, and yields whitened innovations whose squares add up to the NIS.


Also here:

* The prediction of the angles from the change of lengths, eq. (7): a pseudo-inverse that forgets weak directions.
* The small sums of a filter step: changes of length, how much moved, which tendons may be used, what is lent.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.cholesky import cholesky

# -------- Kalman updates, one scalar measurement after the other, and the test that finds a lying tendon


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


# -------- The prediction of the angles from the change of lengths, eq. (7)


@kernel
def _inverse_by_cholesky(A, out, L):
    """out = A^-1 (D, D) by Cholesky; False when a pivot is not positive."""
    n = A.shape[0]
    if not cholesky(A, n, L):
        return False
    for col in range(n):
        for i in range(n):
            s = 1.0 if i == col else 0.0
            for c in range(col, i):
                s -= L[i, c] * out[c, col]
            out[i, col] = s / L[i, i] if i >= col else 0.0
        for i in range(n - 1, -1, -1):
            s = out[i, col]
            for c in range(i + 1, n):
                s -= L[c, i] * out[c, col]
            out[i, col] = s / L[i, i]
    return True


@kernel
def squared_pseudo_inverse(G, use, cutoff, A, out, L):
    """(G^T G)^+ (D, D), singular values of G below cutoff times the largest counted as zero; returns the rank.

    Args:
        G: (M, D). use: (M,) rows with 0 are left out. A, L: (D, D) room. out: (D, D), written.
    """
    m, n = G.shape
    A[:] = 0.0
    for i in range(m):
        if use[i] != 0:
            for a in range(n):
                g = G[i, a]
                if g != 0.0:
                    for b in range(n):
                        A[a, b] += g * G[i, b]
    if _inverse_by_cholesky(A, out, L):
        size, inverse = 0.0, 0.0
        for a in range(n):
            for b in range(n):
                size += A[a, b] * A[a, b]
                inverse += out[a, b] * out[a, b]
        # The product of the Frobenius norms bounds the condition number: nothing to cut off.
        if (size * inverse) ** 0.5 * max(cutoff * cutoff, 1e-13) < 1.0:
            return n
    values, vectors = np.linalg.eigh(A)
    out[:] = 0.0
    rank = 0
    # Squaring leaves zero singular values at the root of the rounding error, 1e-8; a smaller cut-off cannot be told.
    least = max(cutoff * cutoff, 1e-15 * n) * values[n - 1]
    for c in range(n):
        if values[c] > least:
            rank += 1
            for a in range(n):
                for b in range(n):
                    out[a, b] += vectors[a, c] * vectors[b, c] / values[c]
    return rank


@kernel
def _worst(G, dz, use, r, bend, gate, delta, inverse):
    """The tendon whose change of length contradicts the others most, or -1 when none is beyond the gate."""
    m, n = G.shape
    worst, at = gate, -1
    for i in range(m):
        if use[i] != 0:
            e, own = dz[i], 0.0
            for a in range(n):
                e -= G[i, a] * delta[a]
                for b in range(n):
                    own += G[i, a] * inverse[a, b] * G[i, b]
            free = 1.0 - own
            if free > 1e-9:
                score = abs(e) / free / (r / free + bend[i]) ** 0.5
                if score > worst:
                    worst, at = score, i
    return at


@kernel
def predict(x, P, G, dz, use, owned, step, r, motion, cutoff, bend, gate, most, A, B, L, delta):
    """theta += S G^+ dz, eq. (7), and P += diag(step^2 + S motion) + S G^+ r G^+T S.

    The measured changes move the angles here and are compared with them once more afterwards. `motion` keeps that from
    counting twice, and stands for the error of G, which grows with the motion.

    Equation (7) as printed has rows for the owned angles only; S keeps the borrowed ones in place with zeros.
    A tendon whose change cannot be explained together with the others' is left out.

    Args:
        x: (n,), P: (n, n): changed in their first D entries. G: (M, D) at the last estimate. dz: (M,) [m].
        use: (M,) 1 where dz may be used, cleared where it contradicts. owned: (D,) 1 for estimated angles, else 0.
        step: (D,) [rad]. r: variance of dz [m^2]. motion: (D,) [rad^2]. cutoff: of the pseudo-inverse.
        bend: (M,) variance that the gate grants the error of G [m^2]. gate [standard deviations], most: how many
            tendons may be left out.
        A, B, L: (D, D) room. delta: (D,), written: the change of the angles [rad].

    Returns:
        Rank of G.
    """
    m, n = G.shape
    dropped = 0
    while True:
        rank = squared_pseudo_inverse(G, use, cutoff, A, B, L)
        for a in range(n):
            A[0, a] = 0.0
            for i in range(m):
                if use[i] != 0:
                    A[0, a] += G[i, a] * dz[i]
        for a in range(n):
            delta[a] = 0.0
            for b in range(n):
                delta[a] += B[a, b] * A[0, b]
        at = _worst(G, dz, use, r, bend, gate, delta, B) if dropped < most else -1
        if at < 0:
            break
        use[at] = 0
        dropped += 1
    for a in range(n):
        delta[a] *= owned[a]
        x[a] += delta[a]
    for a in range(n):
        P[a, a] += step[a] * step[a] + owned[a] * motion[a]
        for b in range(n):
            # (a, b) and (b, a) of B may differ in the last digit; their mean keeps P symmetric
            P[a, b] += owned[a] * owned[b] * r * 0.5 * (B[a, b] + B[b, a])
    return rank


# -------- The small sums of a filter step: changes of length, how much moved, which tendons may be used, what is lent


@kernel
def increments(z, last, asked, use, dz):
    """Change of each length since it was last seen; tendons not measured or not wanted are not used.

    Args:
        z, last: (M,) lengths now and when last seen [m], NaN where missing. asked: (M,) 1 where wanted.
        use, dz: (M,), written; dz is 0 where it is not known. last: brought up to date.
    """
    for i in range(z.shape[0]):
        change = z[i] - last[i]
        known = change - change == 0.0  # neither NaN nor infinite
        use[i] = asked[i] if known else 0
        dz[i] = change if known else 0.0
        if z[i] - z[i] == 0.0:
            last[i] = z[i]


@kernel
def motions(G, dz, fastest, out):
    """Mean square change of each angle that changes dz (M,) of the lengths admit, (D,) [rad^2].

    Each angle as if it alone had moved the tendons that cross it, so that angles and shifts can be mixed.

    Args:
        fastest: no angle changes by more than this in one step, whatever a lying tendon says [rad].
    """
    for a in range(G.shape[1]):
        gain, size = 1e-12, 0.0
        for i in range(G.shape[0]):
            if G[i, a] != 0.0:
                gain += G[i, a] * G[i, a]
                size += dz[i] * dz[i]
        out[a] = min(size / gain, fastest * fastest)


@kernel
def bent(curvature, u, v, factor, r, out):
    """Variance of lengths with what a linear filter neglects of them: r + factor sum K_ae^2 u_a v_e, (M,) [m^2].

    Args:
        curvature: (M, D, D) mean squares of the second derivatives [m^2/rad^4]. u, v: (D,) squares of angles [rad^2].
        r: (M,) [m^2]. out: (M,), written.
    """
    m, d = curvature.shape[0], curvature.shape[1]
    for i in range(m):
        total = 0.0
        for a in range(d):
            if curvature[i, a, a] > 0.0:
                for e in range(d):
                    total += curvature[i, a, e] * u[a] * v[e]
        out[i] = r[i] + factor * total


@kernel
def wanted(nu, asked, use):
    """use: (M,) 1 where the innovation nu is a number and the tendon is wanted."""
    for i in range(nu.shape[0]):
        use[i] = asked[i] if nu[i] - nu[i] == 0.0 else 0


@kernel
def overwrite(x, P, at, other_x, other_P, there):
    """Copy angles and their covariance from another filter, eqs (8)-(10); what tied them to the rest is dropped.

    Args:
        x: (n,), P: (n, n): changed at positions at (k,). other_x, other_P: the owner's, at positions there (k,).
    """
    for i in range(at.shape[0]):
        x[at[i]] = other_x[there[i]]
        for j in range(x.shape[0]):
            P[at[i], j] = 0.0
            P[j, at[i]] = 0.0
    for i in range(at.shape[0]):
        for j in range(at.shape[0]):
            P[at[i], at[j]] = other_P[there[i], there[j]]
