"""The compiled filter updates against dense formulas and filterpy, and their consistency (TE-10, TE-13)."""

import numpy as np
import pytest

from humanoid_control.numerics.cholesky import cholesky
from humanoid_control.tendons.estimator.diagnosis import ChiSquareMean, nees
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.kalman import hold_limits, predict, squared_pseudo_inverse, update
from humanoid_control.tendons.estimator.settings import FilterSettings
from humanoid_control.tendons.mappings.exact import GeometryMapping
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.tendon import TendonGroup
from test.tendons.straight_lines import JOINTS, LIMITS, MUSCLES, arm, random_walk

GROUP = TendonGroup("arm", JOINTS, (), MUSCLES)


@pytest.fixture(scope="module")
def mapping():
    return fit_polynomial_on_grid(arm, JOINTS, MUSCLES, LIMITS, (7, 7, 7, 7), 5)


def covariance(rng, n):
    A = rng.standard_normal((n, n))
    return A @ A.T + 0.1 * np.eye(n)


def run_update(x, P, H, nu, r, use=None, gate=np.inf, most=0):
    m, n = H.shape
    use = np.ones(m, dtype=np.int64) if use is None else use
    score = np.zeros(m)
    room = (np.zeros(n), np.zeros((n, n)), np.zeros(n), np.zeros(n, dtype=np.int64))
    out = update(x, P, H, nu, r, use, gate, most, *room, score)
    return (*out, score, use)


@pytest.mark.parametrize("n,m", [(8, 10), (16, 10), (60, 80)])
def test_the_update_is_the_dense_joseph_form(n, m):
    rng = np.random.default_rng(n)
    H, nu, r, x, P = (
        rng.standard_normal((m, n)),
        rng.standard_normal(m),
        rng.uniform(0.1, 2, m),
        np.ones(n),
        covariance(rng, n),
    )
    H[rng.uniform(size=H.shape) < 0.5] = 0.0
    S = H @ P @ H.T + np.diag(r)
    K = P @ H.T @ np.linalg.inv(S)
    wanted_x = x + K @ nu
    L = np.eye(n) - K @ H
    wanted_P = L @ P @ L.T + K @ np.diag(r) @ K.T
    nis, count, _, _, _ = run_update(x, P, H, nu, r)
    assert np.abs(x - wanted_x).max() < 1e-9 and np.abs(P - wanted_P).max() < 1e-9
    assert nis == pytest.approx(nu @ np.linalg.solve(S, nu)) and count == m
    assert np.array_equal(P, P.T)


def test_the_update_is_filterpys():
    kalman = pytest.importorskip("filterpy.kalman", reason="needs filterpy to compare with")
    rng = np.random.default_rng(5)
    ekf = kalman.ExtendedKalmanFilter(dim_x=8, dim_z=10)
    x, P, H, z, r = (
        rng.standard_normal(8),
        covariance(rng, 8),
        rng.standard_normal((10, 8)),
        rng.standard_normal(10),
        np.full(10, 0.3),
    )
    ekf.x, ekf.P, ekf.R = x.copy(), P.copy(), np.diag(r)
    ekf.update(z, lambda _: H, lambda x: H @ x)
    run_update(x, P, H, z - H @ x, r)
    assert np.abs(x - ekf.x).max() < 1e-10 and np.abs(P - ekf.P).max() < 1e-10


def test_the_covariance_survives_a_hundred_thousand_precise_measurements():
    rng = np.random.default_rng(2)
    x, P = np.zeros(8), np.eye(8)
    for _ in range(10_000):
        H = rng.standard_normal((10, 8)) * 10.0 ** rng.integers(-4, 0, 8)
        run_update(x, P, H, np.zeros(10), np.full(10, 1e-10))
        P[np.diag_indices(8)] += 1e-12
        assert cholesky(P, 8, np.zeros((8, 8)))
    assert np.array_equal(P, P.T)


def test_the_score_is_the_innovation_against_all_others():
    rng = np.random.default_rng(3)
    x, P, H, nu, r = (
        np.zeros(4),
        covariance(rng, 4),
        rng.standard_normal((6, 4)),
        rng.standard_normal(6),
        np.full(6, 0.2),
    )
    wanted = []
    for i in range(6):
        rest = [j for j in range(6) if j != i]
        S = H[rest] @ P @ H[rest].T + 0.2 * np.eye(5)
        K = P @ H[rest].T @ np.linalg.inv(S)
        after = P - K @ H[rest] @ P
        e = nu[i] - H[i] @ (K @ nu[rest])
        wanted.append(e / np.sqrt(H[i] @ after @ H[i] + 0.2))
    assert np.allclose(run_update(x, P, H, nu, r)[3], wanted)


def test_the_gate_leaves_out_the_lying_tendon_and_nothing_else():
    rng = np.random.default_rng(4)
    for liar in range(10):
        x, P, H = np.zeros(4), np.eye(4), rng.standard_normal((10, 4))
        truth = rng.standard_normal(4)
        nu = H @ truth + 0.01 * rng.standard_normal(10)
        nu[liar] += 0.5
        use = run_update(x, P, H, nu, np.full(10, 1e-4), gate=6.0, most=3)[4]
        assert list(np.flatnonzero(use == 0)) == [liar] and np.abs(x - truth).max() < 0.05


def test_limits_pull_softly_and_only_what_is_beyond_them():
    x, P = np.array([0.5, 2.0, -3.0]), np.array([[0.04, 0.01, 0], [0.01, 0.09, 0.02], [0, 0.02, 0.05]])
    before = P.copy()
    assert hold_limits(x, P, np.array([-1.0, -1.0]), np.array([1.0, 1.0]), 0.01) == 1
    pull = -1.0 / (0.09 + 0.01)
    assert np.allclose(x, [0.5 + 0.01 * pull, 2.0 + 0.09 * pull, -3.0 + 0.02 * pull])
    assert np.array_equal(P, before)  # a limit touched again and again is no news


@pytest.mark.parametrize("rank", [4, 3, 2])
def test_the_pseudo_inverse_is_numpys_at_every_rank(rank):
    rng = np.random.default_rng(rank)
    G = rng.standard_normal((7, rank)) @ rng.standard_normal((rank, 4)) * 0.05
    out = np.zeros((4, 4))
    use = np.array([1, 1, 0, 1, 1, 1, 1])
    found = squared_pseudo_inverse(G, use, 1e-3, np.zeros((4, 4)), out, np.zeros((4, 4)))
    kept = G[use == 1]
    assert found == rank
    assert np.abs(out @ kept.T - np.linalg.pinv(kept, rcond=1e-3)).max() < 1e-9 * np.abs(out).max()


def test_the_prediction_moves_own_angles_only():
    rng = np.random.default_rng(1)
    G, dz, owned = rng.standard_normal((7, 4)), rng.standard_normal(7), np.array([1.0, 1, 0, 0])
    x, P, delta, room = np.zeros(4), np.eye(4), np.zeros(4), [np.zeros((4, 4)) for _ in range(3)]
    use = np.ones(7, dtype=np.int64)
    predict(x, P, G, dz, use, owned, np.full(4, 0.1), 0.5, np.full(4, 0.07), 1e-3, np.zeros(7), np.inf, 0, *room, delta)
    plus, S = np.linalg.pinv(G), np.diag(owned)
    assert np.abs(x - S @ plus @ dz).max() < 1e-12 and np.array_equal(x, delta)
    assert np.abs(P - (1.01 * np.eye(4) + 0.07 * S + 0.5 * S @ plus @ plus.T @ S)).max() < 1e-12


def test_the_absolute_filter_knows_how_wrong_it_is(mapping):
    """NEES over independent runs and NIS over all steps stay within the bounds of an honest filter."""
    step, noise = np.deg2rad(0.5), 1e-3
    settings = FilterSettings("absolute", length_noise=noise, step_noise=step, motion_noise=0.0, limits="off", gate=0.0)
    errors, innovations = ChiSquareMean(), ChiSquareMean()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        f = GroupFilter(GROUP, mapping, settings)
        q = LIMITS.mean(axis=1)
        f.reset(q + np.deg2rad(2) * rng.standard_normal(4), np.full(4, np.deg2rad(2)))
        for _ in range(30):
            q = q + step * rng.standard_normal(4)
            f.step(mapping.lengths(q) + noise * rng.standard_normal(10))
            innovations.add(f.nis, f.count)
        errors.add(nees(f.theta - q, f.covariance), 4)
    for mean in (errors, innovations):
        low, high = mean.bounds(0.999)
        assert low < mean.per_degree < high


def test_an_overconfident_filter_shows(mapping):
    settings = FilterSettings("absolute", length_noise=2e-4, step_noise=1e-3, predict="hold", limits="off", gate=0.0)
    f, innovations, rng = GroupFilter(GROUP, mapping, settings), ChiSquareMean(), np.random.default_rng(0)
    q = LIMITS.mean(axis=1)
    f.reset(q)
    for _ in range(50):
        f.step(mapping.lengths(q) + 1e-3 * rng.standard_normal(10))
        innovations.add(f.nis, f.count)
    assert innovations.per_degree > 2 * innovations.bounds(0.999)[1]


def test_calibrated_lengths_give_the_angles(mapping):
    """T2 for one group: below 1 deg after a start 10 deg off, without and with 0.1 mm of noise."""
    for noise in (0.0, 1e-4):
        start = np.deg2rad([30, -10, 10, -50])
        q = random_walk(LIMITS, start, 600, np.deg2rad(1), 7)
        f = GroupFilter(GROUP, mapping, FilterSettings("absolute", length_noise=max(noise, 1e-4)))
        f.reset(start + np.deg2rad(10))
        rng = np.random.default_rng(1)
        error = np.array([f.step(mapping.lengths(a) + noise * rng.standard_normal(10)) - a for a in q])
        assert np.rad2deg(np.sqrt(np.mean(error[100:] ** 2, axis=0))).max() < 1.0


def test_lengths_zeroed_at_a_known_posture_are_calibrated(mapping):
    exact = GeometryMapping(arm, JOINTS, MUSCLES, LIMITS)
    f = GroupFilter(GROUP, exact, FilterSettings("absolute"))
    q, counts = np.deg2rad([20, -10, 5, -60]), np.linspace(-0.3, 0.4, 10)  # encoders count from anywhere
    f.reset(q)
    f.zero(exact.lengths(q) + counts, q)
    there = np.deg2rad([25, -15, 10, -70])
    for _ in range(20):
        f.step(exact.lengths(there) + counts)
    assert np.abs(f.theta - there).max() < np.deg2rad(0.01)
