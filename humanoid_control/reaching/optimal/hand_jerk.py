"""Hand jerk by exact kinematics, with derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.reaching.optimal.inverse_dynamics import ArmMotion, place_joint
from humanoid_control.reaching.optimal.spatial_motion import ArmModel, Six, Vec, add, along, cross, cross_motion, six


class HandJerk(NamedTuple):
    """Hand jerk (3,) [m/s^3] and its derivatives (3, N)."""

    jerk: np.ndarray
    by_q: np.ndarray
    by_v: np.ndarray
    by_a: np.ndarray
    by_jerk: np.ndarray


@kernel
def hand_position(arm: ArmModel, q: np.ndarray, s: ArmMotion, x: np.ndarray) -> None:
    """Fill the hand position x (3,) from the first joint [m], and poses and S."""
    n = q.shape[0]
    for j in range(n):
        place_joint(arm, j, q[j], s)
    for i in range(3):
        r = s.R[n - 1, i]
        x[i] = s.o[n - 1, i] + r[0] * arm.hand[0] + r[1] * arm.hand[1] + r[2] * arm.hand[2]


@kernel
def _linear(S: Six, x: Vec) -> Vec:
    # Velocity of a point x of a body that moves by S: v + w x x.
    c = cross((S[0], S[1], S[2]), x)
    return (S[3] + c[0], S[4] + c[1], S[5] + c[2])


@kernel(allocates=True)
def hand_jerk(arm: ArmModel, motion: np.ndarray, s: ArmMotion, out: HandJerk) -> None:
    """Fill `out` for a motion (4, N) of q, v, a and jerk; s is memory."""
    q, v, a, jerk = motion[0], motion[1], motion[2], motion[3]
    n = q.shape[0]
    # x''' = J jerk + 2 J' a + J'' v; as d/dt commutes with derivatives, d x''' / d (q, v, a, jerk) = (J''', 3 J'', 3
    # J', J).
    x0 = np.empty(3)
    hand_position(arm, q, s, x0)
    x = (x0[0], x0[1], x0[2])
    V = A = Z = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    rates = np.empty((3, n, 6))
    for j in range(n):
        # Columns of J move with their joints: S' = V x S, S'' = A x S + V x S', S''' = Z x S + 2 A x S' + V x S''; V,
        # A, Z are velocity, acceleration and jerk of the previous body.
        S = six(s.S, j)
        S1 = cross_motion(V, S)
        S2 = add(cross_motion(A, S), cross_motion(V, S1))
        S3 = add(along(cross_motion(Z, S), 2.0, cross_motion(A, S1)), cross_motion(V, S2))
        V, A, Z = (
            along(V, v[j], S),
            along(along(A, a[j], S), v[j], S1),
            along(along(along(Z, jerk[j], S), 2.0 * a[j], S1), v[j], S2),
        )
        for i in range(6):
            rates[0, j, i], rates[1, j, i], rates[2, j, i] = S1[i], S2[i], S3[i]
    # Velocity, acceleration and jerk of the hand from those of the last body.
    x1 = _linear(V, x)
    c1, c2 = _linear(A, x), cross((V[0], V[1], V[2]), x1)
    x2 = (c1[0] + c2[0], c1[1] + c2[1], c1[2] + c2[2])
    d1, d2, d3 = _linear(Z, x), cross((A[0], A[1], A[2]), x1), cross((V[0], V[1], V[2]), x2)
    x3 = (d1[0] + 2.0 * d2[0] + d3[0], d1[1] + 2.0 * d2[1] + d3[1], d1[2] + 2.0 * d2[2] + d3[2])
    for i in range(3):
        out.jerk[i] = x3[i]
    for j in range(n):
        S, S1, S2, S3 = six(s.S, j), six(rates[0], j), six(rates[1], j), six(rates[2], j)
        w, w1, w2 = (S[0], S[1], S[2]), (S1[0], S1[1], S1[2]), (S2[0], S2[1], S2[2])
        J, J1, J2, J3 = _linear(S, x), _linear(S1, x), _linear(S2, x), _linear(S3, x)
        a1, a2, a3 = cross(w, x1), cross(w, x2), cross(w, x3)
        b1, b2, b3 = cross(w1, x1), cross(w1, x2), cross(w2, x1)
        for i in range(3):
            out.by_jerk[i, j] = J[i]
            out.by_a[i, j] = 3.0 * (J1[i] + a1[i])
            out.by_v[i, j] = 3.0 * (J2[i] + 2.0 * b1[i] + a2[i])
            out.by_q[i, j] = J3[i] + 3.0 * b3[i] + 3.0 * b2[i] + a3[i]
