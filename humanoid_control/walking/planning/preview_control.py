"""Preview control of the centre of mass (Katayama 1985; Kajita 2003).

The state x = (c, c', c'') is driven by a jerk u, constant over a sample; its output is p = c - z / g c''. With e = p -
p_ref, the cost sum Q e^2 + R (u_k - u_(k-1))^2 has the optimal control

    u_k = -K_I sum_(i<=k) e_i - K_x x_k + sum_(j=1..N) G_j p_ref(k + j).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, check_time_step
from humanoid_control.walking.planning.lipm import SampledPath
from humanoid_control.walking.planning.plan import CenterRequest, Phase, request_corners

NEAR = 0.03  # [m] distance of the divergent component from the last plan, to continue it


class PreviewGains(NamedTuple):
    """Gains of the controller.

    Attributes:
        integral: K_I.
        state: (3,) K_x.
        preview: (N,) G_j.
        A: (3, 3) in x' = A x + B u.
        C: (3,) in p = C x.
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
    """Compute the gains for a pendulum.

    Args:
        horizon: preview time [s].

    Raises:
        ConfigError: if `dt` is not positive and finite.
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
    # The reference is constant beyond the horizon; this makes the law independent of the origin.
    preview[-1] += K[1] - preview.sum()
    return PreviewGains(dt, float(K[0]), K[1:], preview, A, B, C)


class PreviewControl:
    """Planner of the CoM by preview control.

    Attributes:
        horizon: preview time [s].
        settle: time to rest after the last step [s].
    """

    def __init__(
        self,
        dt: float = 0.01,
        horizon: float = 1.6,
        error_weight: float = 1.0,
        jerk_weight: float = 1e-6,
        settle: float = 0.5,
    ) -> None:
        """Store the settings.

        Raises:
            ConfigError: if a value is not positive.
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
        # times, xi and error sums of the last plan
        self._before: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def plan(self, request: CenterRequest) -> tuple[SampledPath, list[Phase]]:
        """Return the path from the requested state, and its unchanged phases.

        Acceleration and ZMP are continuous. A continued plan keeps its error sum.
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
        if total is None:  # new plan: the jerk was zero before, so u_0 is the increment of the control law
            change = np.array([g.preview @ d for d in np.diff(p_ref[: ahead + 1], axis=0).T])
            error, moved = g.C @ x - p_ref[0], x - np.linalg.solve(g.A, x)
            total = (seen[0] - g.state @ x - (change - g.integral * error - g.state @ moved)) / g.integral
        # Recursion of z = (sum, x): z' = M z + preview - reference.
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
        """Return the error sum (2,) of the last plan, None if not continued."""
        if self._before is None or not self._before[0][0] < request.t < self._before[0][-1]:
            return None
        times, xi, totals = self._before
        then = np.array([np.interp(request.t, times, c) for c in xi.T])
        if np.linalg.norm(then - request.xi) > NEAR:
            return None
        return np.array([np.interp(request.t, times, c) for c in totals.T])
