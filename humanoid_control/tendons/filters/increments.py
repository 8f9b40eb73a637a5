"""The small sums of a filter step: changes of length, how much moved, which tendons may be used, what is lent."""

from __future__ import annotations

from humanoid_control.jit import kernel


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
