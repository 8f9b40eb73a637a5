"""The small sums of a filter step: changes of length, which tendons may be used, and what the gates grant."""

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
def granted_to_change(P, G, dz, curvature, bend):
    """bend: (M,) variance that an error of the angles adds to the changes, (|f''| |error| |change of angles|)^2.

    The change of the angles is taken from that of the lengths by the mean gain of G (M, D).
    """
    m, d = G.shape
    error, gain, size = 0.0, 1e-12, 0.0
    for a in range(d):
        error += P[a, a]
    for i in range(m):
        size += dz[i] * dz[i]
        for a in range(d):
            gain += G[i, a] * G[i, a]
    for i in range(m):
        bend[i] = curvature[i] ** 2 * error * size / gain


@kernel
def granted_to_update(x, P, absolute, delta, curvature, bend):
    """bend: (M,) variance of the second-order term that an update neglects.

    Absolute: (|f''| |error|^2 / 2)^2. Relative: (|f''| |error| |change|)^2 with the change delta (D,), or with the
    difference between both moments where the state x (2 D,) has two.
    """
    d = delta.shape[0]
    error, change = 0.0, 0.0
    for a in range(d):
        error += P[a, a]
        step = x[a] - x[d + a] if x.shape[0] > d else delta[a]
        change += step * step
    for i in range(bend.shape[0]):
        bend[i] = curvature[i] ** 2 * error * (0.25 * error if absolute else change)


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
