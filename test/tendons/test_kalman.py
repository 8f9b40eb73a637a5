"""Compiled filter steps against dense formulas and filterpy (TE-10, TE-11)."""

import numpy as np
import pytest

from humanoid_control.numerics.cholesky import cholesky
from humanoid_control.tendons.estimator.kalman import (
    AngleLimits,
    Estimate,
    Gate,
    hold_limits,
    update,
)
from humanoid_control.tendons.estimator.prediction import (
    LengthChanges,
    PredictionMemory,
    ProcessNoise,
    predict,
    squared_pseudo_inverse,
)
from humanoid_control.tendons.estimator.tiled_update import Measurements, UpdateMemory


def covariance(rng, n):
    A = rng.standard_normal((n, n))
    return A @ A.T + 0.1 * np.eye(n)


def run_update(x, P, H, nu, r, gate=np.inf, most=0):
    """The update of x and P in place; NIS and number of those used, how many were left out, scores, which were used."""
    m, n = H.shape
    measured = Measurements(H, nu, r, np.ones(m, dtype=np.int64), np.zeros(m))
    memory = UpdateMemory.of(m, n)
    out = update(Estimate(x, P), measured, Gate(gate, most), memory)
    return (*out[3:], measured.score, measured.use)


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


def dense_update(P, H, nu, r, gate, most):
    """What `update` promises, by inverses of dense matrices: correction, covariance, scores, which were used, NIS."""
    known = np.isfinite(nu)
    use = known.copy()
    while True:
        Hu, nu_u = H[use], nu[use]
        inverse = np.linalg.inv(Hu @ P @ Hu.T + np.diag(r[use]))
        x, after = P @ Hu.T @ inverse @ nu_u, P - P @ Hu.T @ inverse @ Hu @ P
        score = np.zeros(len(nu))
        score[use] = inverse @ nu_u / np.sqrt(np.diag(inverse))
        left = known & ~use
        score[left] = (nu[left] - H[left] @ x) / np.sqrt(np.diag(H[left] @ after @ H[left].T) + r[left])
        worst = np.argmax(np.abs(np.where(use, score, 0.0)))
        if abs(score[worst]) <= gate or np.count_nonzero(known & ~use) >= most:
            return x, after, score, use, nu_u @ inverse @ nu_u
        use[worst] = False


@pytest.mark.parametrize("crossed", [1.0, 0.5, 0.25, 0.1])
@pytest.mark.parametrize("n,m", [(1, 1), (3, 5), (7, 9), (8, 8), (9, 17), (16, 24), (20, 7), (31, 40), (70, 33)])
def test_the_update_is_that_of_dense_matrices_whatever_the_size_and_the_zeros(n, m, crossed):
    """With lies, lengths not measured, and a prior that is singular; full rows and such with few entries."""
    rng = np.random.default_rng(n + 100 * m)
    H = rng.standard_normal((m, n)) * (rng.uniform(size=(m, n)) < crossed)
    A = rng.standard_normal((n, max(1, n // 2)))
    P = A @ A.T if n > 2 else np.eye(n)
    r = rng.uniform(0.5, 2.0, m) * 1e-2
    nu = H @ (A @ rng.standard_normal(A.shape[1])) + np.sqrt(r) * rng.standard_normal(m)
    nu[:: max(3, m // 4)] += 30.0 * rng.choice([-1, 1], len(nu[:: max(3, m // 4)]))
    if m > 4:
        nu[[1, m - 1]] = np.nan
        H[1] = np.nan  # of what was not measured not even the Jacobian counts
    wanted_x, wanted_P, wanted_score, wanted_use, wanted_nis = dense_update(
        P, np.nan_to_num(H), nu, r, 5.0, max(1, m // 3)
    )
    measured = Measurements(H, nu, r, np.isfinite(nu).astype(np.int64), np.full(m, np.nan))
    x, after = np.zeros(n), P.copy()
    memory = UpdateMemory.of(m, n)
    found = update(Estimate(x, after), measured, Gate(5.0, max(1, m // 3)), memory)
    assert np.array_equal(measured.use, wanted_use)
    assert np.abs(x - wanted_x).max() < 1e-9 * max(1.0, np.abs(wanted_x).max())
    assert np.abs(after - wanted_P).max() < 1e-9 * np.abs(P).max()
    assert np.abs(measured.score - wanted_score).max() < 1e-6 * max(1.0, np.abs(wanted_score).max())
    assert found.used_nis == pytest.approx(wanted_nis, rel=1e-6) and found.used == wanted_use.sum()
    assert np.array_equal(after, after.T) and np.array_equal(memory.P0, P)
    again = np.zeros(n), P.copy()  # nothing is left in the memory
    measured.use[:] = np.isfinite(nu)
    assert update(Estimate(*again), measured, Gate(5.0, max(1, m // 3)), memory) == found
    assert np.array_equal(again[0], x) and np.array_equal(again[1], after)


def test_the_innovations_before_the_gate_are_those_of_all_tendons_and_of_all_but_the_one_that_lies():
    """Without the largest leave-one-out innovation the NIS is the least that all measurements but one have."""
    rng = np.random.default_rng(7)
    H, r, P = rng.standard_normal((10, 4)), rng.uniform(0.1, 2, 10), covariance(rng, 4)
    nu = rng.standard_normal(10)
    nu[[2, 5]] += 100.0
    S = H @ P @ H.T + np.diag(r)

    def nis_of(rows):
        return nu[rows] @ np.linalg.solve(S[np.ix_(rows, rows)], nu[rows])

    measured = Measurements(H, nu, r, np.ones(10, dtype=np.int64), np.zeros(10))
    memory = UpdateMemory.of(10, 4)
    found = update(Estimate(np.zeros(4), P.copy()), measured, Gate(6.0, 3), memory)
    every = np.arange(10)
    assert found.nis == pytest.approx(nis_of(every)) and found.degrees == 10
    assert found.nis - found.largest == pytest.approx(min(nis_of(np.delete(every, i)) for i in every))
    assert found.dropped == 2 and found.used == 8 and found.used_nis == pytest.approx(nis_of(np.delete(every, [2, 5])))


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
    assert hold_limits(Estimate(x, P), AngleLimits(-np.ones(2), np.ones(2), 0.01)) == 1
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
    x, P, delta, use = np.zeros(4), np.eye(4), np.zeros(4), np.ones(7, dtype=np.int64)
    changes = LengthChanges(np.zeros(7), np.zeros(7), use, use, G, dz, delta)
    process = ProcessNoise(owned, np.full(4, 0.1), np.full(4, 0.07), 1.0, 1.0, 0.5, 1e-3)
    memory = PredictionMemory(*(np.zeros((4, 4)) for _ in range(3)), np.zeros(7))
    predict(Estimate(x, P), changes, process, Gate(np.inf, 0), memory)
    plus, S = np.linalg.pinv(G), np.diag(owned)
    assert np.abs(x - S @ plus @ dz).max() < 1e-12 and np.array_equal(x, delta)
    assert np.abs(P - (1.01 * np.eye(4) + 0.07 * S + 0.5 * S @ plus @ plus.T @ S)).max() < 1e-12
