"""Preview control: its gains against another solution of the same problem, its walk against the closed form."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from humanoid_control.errors import ConfigError
from humanoid_control.walking.planning.plan import DcmPlanner, WalkPlan, request_corners
from humanoid_control.walking.planning.preview_control import PreviewControl, preview_gains
from test.walking.stubs import OMEGA, centers, request


def test_gains_solve_the_riccati_equation_and_stabilise():
    dt = 0.01
    g = preview_gains(OMEGA, dt, 1.6, 1.0, 1e-6)
    A = np.block([[np.eye(1), (g.C @ g.A)[None]], [np.zeros((3, 1)), g.A]])
    B = np.concatenate([[g.C @ g.B], g.B])[:, None]
    P = np.eye(4)  # by iteration, not by the solver in use
    Q = np.diag([1.0, 0, 0, 0])
    for _ in range(20000):
        K = np.linalg.solve(1e-6 + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
    assert np.allclose(P, solve_discrete_are(A, B, Q, [[1e-6]]), rtol=1e-6)
    assert np.allclose(K[0], [g.integral, *g.state], rtol=1e-6)
    assert np.abs(np.linalg.eigvals(A - B @ K)).max() < 1
    # The law asks nothing of a robot at rest where the reference is: all that is seen ahead adds up to its place.
    assert g.preview.sum() == pytest.approx(g.state[0], rel=1e-12)
    assert abs(g.preview[-1]) < 1e-2 * g.state[0]
    assert g.preview[0] == pytest.approx(g.integral, rel=1e-9)


def test_the_control_is_the_optimum_of_its_cost():
    """sum Q e^2 + R (du)^2 over a long horizon, by least squares over all jerks at once."""
    dt, n = 0.02, 320
    g = preview_gains(OMEGA, dt, 2.4, 1.0, 1e-6)
    p_ref = np.where(np.arange(n + 1) * dt > 3.0, 0.1, 0.0)
    # p_k for jerks u_0 .. u_(n-1) from rest.
    response, x = np.zeros(n + 1), g.B.copy()
    for k in range(1, n + 1):
        response[k], x = g.C @ x, g.A @ x
    G = np.array([[response[i - j] if i > j else 0.0 for j in range(n)] for i in range(1, n + 1)])
    D = np.eye(n) - np.eye(n, k=-1)
    u = np.linalg.lstsq(np.vstack([G, 1e-3 * D]), np.concatenate([p_ref[1:], np.zeros(n)]), rcond=None)[0]
    state, total, made = np.zeros(3), 0.0, []
    ahead = np.concatenate([p_ref, np.full(len(g.preview), 0.1)])
    for k in range(220):
        total += g.C @ state - p_ref[k]
        made.append(g.preview @ ahead[k + 1 : k + 1 + len(g.preview)] - g.integral * total - g.state @ state)
        state = g.A @ state + g.B * made[-1]
    assert np.abs(made - u[:220]).max() < 2e-2 * np.abs(u).max()


@pytest.mark.parametrize("command", [(0.5, 0, 0), (0.25, 0.1, 0), (0.2, 0.0, 0.25)])
def test_it_agrees_with_the_closed_form_in_steady_walking(command):
    r = request(count=8, command=command)
    closed, phases = DcmPlanner().plan(r)
    preview, same = PreviewControl().plan(r)
    assert same == phases
    times = np.arange(0, closed.t[-1], 0.01)
    a, b = centers(closed, r.center, times), centers(preview, r.center, times)
    steady = (times > phases[2].lift) & (times < phases[6].lift)
    assert np.linalg.norm(a - b, axis=1)[steady].max() < 3e-3
    p_ref = np.array(
        [
            np.interp(times, *np.column_stack([t, c]).T)
            for t, c in ((request_corners(r)[0], column) for column in request_corners(r)[1].T)
        ]
    ).T
    p = np.array([preview.zmp(t) for t in times])
    assert np.sqrt(((p - p_ref) ** 2).sum(axis=1)[steady].mean()) < 6e-3
    assert np.allclose(preview.zmp(preview.t[-1]), closed.p[-1], atol=2e-3)
    assert np.allclose(preview.dcm(preview.t[-1]), closed.p[-1], atol=2e-3)


def test_its_points_are_those_of_a_pendulum():
    r = request()
    path, _ = PreviewControl().plan(r)
    times = path.t
    c = centers(path, r.center, times)
    acceleration = np.gradient(np.gradient(c, times, axis=0), times, axis=0)
    assert np.abs(acceleration / OMEGA**2 - (c - path.p))[3:-3].max() < 5e-3


def test_nothing_jumps_where_it_plans_anew_and_the_walk_goes_on_as_before():
    r = request(count=8)
    planner = PreviewControl()
    path, phases = planner.plan(r)
    t = phases[2].lift
    times = np.arange(0, t + 1e-9, 0.01)
    c = centers(path, r.center, times)[-1]
    feet = WalkPlan(r.feet, phases, path).soles(t)
    now = r._replace(t=t, center=c, xi=path.dcm(t), zmp=path.zmp(t), feet=feet, phases=phases[2:])
    again, _ = planner.plan(now)
    assert np.abs(again.dcm(t) - path.dcm(t)).max() < 1e-9
    assert np.abs(again.zmp(t) - path.zmp(t)).max() < 1e-9
    later = np.arange(t, t + 2.0, 0.01)
    off = [np.linalg.norm(again.dcm(s) - path.dcm(s)) for s in later]
    assert max(off) < 6e-3


@pytest.mark.parametrize("name", ["dt", "horizon", "error_weight", "jerk_weight"])
def test_numbers_must_be_positive(name):
    with pytest.raises(ConfigError, match=name):
        PreviewControl(**{name: 0.0})
