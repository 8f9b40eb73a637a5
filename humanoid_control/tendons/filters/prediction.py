"""The prediction of the angles from the change of lengths, eq. (7): a pseudo-inverse that forgets weak directions."""

from __future__ import annotations

import numpy as np

from humanoid_control.cholesky import cholesky
from humanoid_control.jit import kernel


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
