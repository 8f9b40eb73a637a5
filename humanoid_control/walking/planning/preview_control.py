"""Preview control of the centre of mass (Katayama 1985; Kajita 2003): a servo that knows the zero-moment point to come.

The state is x = (c, c', c''), driven by a jerk u held over each sample, and p = c - z / g c'' its output. With the
error e = p - p_ref in the state, the cost sum Q e^2 + R (u_k - u_(k-1))^2 has the optimal control

    u_k = -K_I sum_(i<=k) e_i - K_x x_k + sum_(j=1..N) G_j p_ref(k + j).

Unlike the closed form it bends the corners of the zero-moment point, which therefore leads and trails each change.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, check_time_step
from humanoid_control.walking.planning.lipm import SampledPath
from humanoid_control.walking.planning.plan import CenterRequest, Phase, request_corners

NEAR = 0.03  # of the divergent component to the last plan's, for this one to go on from it [m]


class PreviewGains(NamedTuple):
    """Gains of the servo.

    Attributes:
        dt: of a sample [s].
        integral: K_I. state: (3,) K_x. preview: (N,) G_j.
        A: (3, 3), B: (3,), C: (3,): x' = A x + B u, p = C x.
    """

    dt: float
    integral: float
    state: np.ndarray
    preview: np.ndarray
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray


@lru_cache(maxsize=16)
def preview_gains(omega: float, dt: float, horizon: float, error_weight: float, jerk_weight: float) -> PreviewGains:
    """Gains for a pendulum.

    Args:
        omega: [1/s]. dt: of a sample [s]. horizon: that is known [s].
        error_weight: Q of the zero-moment point. jerk_weight: R.

    Raises:
        ConfigError: dt is not positive and finite.
    """
    check_time_step(dt, "preview control")
    A = np.array([[1.0, dt, 0.5 * dt * dt], [0.0, 1.0, dt], [0.0, 0.0, 1.0]])
    B = np.array([dt**3 / 6, dt * dt / 2, dt])
    C = np.array([1.0, 0.0, -1.0 / omega**2])
    big_A, big_B = np.zeros((4, 4)), np.concatenate([[C @ B], B])[:, None]
    big_A[0, 0], big_A[0, 1:], big_A[1:, 1:] = 1.0, C @ A, A
    from scipy.linalg import solve_discrete_are  # slow to import, and seldom needed

    P = solve_discrete_are(big_A, big_B, np.diag([error_weight, 0.0, 0.0, 0.0]), np.array([[jerk_weight]]))
    scale = 1.0 / (jerk_weight + (big_B.T @ P @ big_B).item())
    K = scale * (big_B.T @ P @ big_A)[0]
    closed = big_A - big_B @ K[None]
    count = max(round(horizon / dt), 1)
    preview, X = np.empty(count), P[:, 0]
    for j in range(count):
        preview[j] = scale * (big_B[:, 0] @ X)
        X = closed.T @ X
    # Beyond the horizon the reference is taken to stay: then the law is the same wherever the world begins.
    preview[-1] += K[1] - preview.sum()
    return PreviewGains(dt, float(K[0]), K[1:], preview, A, B, C)


class PreviewControl:
    """Plans the centre of mass by preview control.

    Attributes:
        dt: of a sample [s]. horizon: that the control sees [s]. settle: time after the last step until all rests [s].
    """

    def __init__(
        self,
        dt: float = 0.01,
        horizon: float = 1.6,
        error_weight: float = 1.0,
        jerk_weight: float = 1e-6,
        settle: float = 0.5,
    ) -> None:
        """Make it.

        Raises:
            ConfigError: numbers that are not positive.
        """
        for name, value in (
            ("dt", dt),
            ("horizon", horizon),
            ("error_weight", error_weight),
            ("jerk_weight", jerk_weight),
        ):
            if not value > 0:
                raise ConfigError(f"preview control: {name} must be positive, got {value:g}")
        self.dt, self.horizon, self.settle = dt, horizon, settle
        self._weights = (error_weight, jerk_weight)
        self._before: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # times, xi and sums of the last plan

    def plan(self, request: CenterRequest) -> tuple[SampledPath, list[Phase]]:
        """The path from the state of the request on, and its phases as they are.

        The first acceleration follows from centre of mass and zero-moment point, so that both go on without a jump. A
        plan that goes on from the last one also goes on with the sum of its errors.
        """
        times, corners = request_corners(request)
        g = preview_gains(request.omega, self.dt, self.horizon, *self._weights)
        count, ahead = int(np.ceil((times[-1] + self.settle - times[0]) / self.dt)) + 1, len(g.preview)
        at = times[0] + self.dt * np.arange(count + ahead)
        origin = corners[-1]
        p_ref = np.column_stack([np.interp(at, times, c) for c in corners.T]) - origin
        seen = np.column_stack([np.correlate(p, g.preview, "valid") for p in p_ref[1:].T])  # (count, 2)
        w = request.omega
        x = np.array(
            [request.center - origin, w * (request.xi - request.center), w * w * (request.center - request.zmp)]
        )
        total = self._sum_before(request)
        if total is None:  # the jerk was none until now; what is ahead has not been seen coming
            change = np.array([g.preview @ d for d in np.diff(p_ref[: ahead + 1], axis=0).T])
            error, moved = g.C @ x - p_ref[0], x - np.linalg.solve(g.A, x)
            total = (seen[0] - g.state @ x - (change - g.integral * error - g.state @ moved)) / g.integral
        # All at once: z = (sum, x) goes on by z' = M z + what is seen and asked for at each sample.
        M = np.empty((4, 4))
        M[1:, 0], M[1:, 1:] = -g.B * g.integral, g.A - np.outer(g.B, g.state)
        M[0] = g.C @ M[1:] + [1.0, 0.0, 0.0, 0.0]
        push = np.concatenate([[g.C @ g.B], g.B])[:, None] * seen[:, None]
        push[:, 0] -= p_ref[1 : count + 1]
        z = np.empty((count, 4, 2))
        z[0, 0], z[0, 1:] = total, x
        for k in range(count - 1):
            z[k + 1] = M @ z[k] + push[k]
        p, xi, totals = np.einsum("i,kij->kj", g.C, z[:, 1:]), z[:, 1] + z[:, 2] / w, z[:, 0]
        self._before = (at[:count], xi + origin, totals)
        return SampledPath(at[:count], p + origin, xi + origin, w), list(request.phases)

    def _sum_before(self, request: CenterRequest) -> np.ndarray | None:
        """Sum of errors (2,) of the last plan, where this one goes on from it; else none."""
        if self._before is None or not self._before[0][0] < request.t < self._before[0][-1]:
            return None
        times, xi, totals = self._before
        then = np.array([np.interp(request.t, times, c) for c in xi.T])
        if np.linalg.norm(then - request.xi) > NEAR:
            return None
        return np.array([np.interp(request.t, times, c) for c in totals.T])
