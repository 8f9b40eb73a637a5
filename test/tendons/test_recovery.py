"""Filters that are sure of a wrong posture: the test that tells, the search that mends it; neither in nominal use."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize
from scipy.special import huber

from humanoid_control.tendons import EstimatorSettings, TendonGroup, read_mjcf
from humanoid_control.tendons.estimator import diagnosis, group_filter, recovery
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.recovery import (
    CAP,
    HUBER,
    ITERATIONS,
    LONGEST_STEP,
    PAUSE,
    SPACING,
    MeasuredPosture,
    PostureFit,
    PostureSearch,
    is_better,
)
from humanoid_control.tendons.mappings.exact import exact_mapping
from test.reference.straight_tendons import EXACT, JOINTS, LIMITS, MUSCLES, random_walk

GROUP = TendonGroup("arm", JOINTS, (), MUSCLES)
START, WRONG = np.deg2rad([30.0, -30.0, 30.0, -30.0]), np.deg2rad([-10.0, 20.0, -30.0, -90.0])
NOISE = 1e-4


def walk(steps, seed, sigma=1.0):
    """Angles (T, 4) [rad] and lengths with noise (T, 10) [m]."""
    q = random_walk(LIMITS, START, steps, np.deg2rad(sigma), seed)
    z = np.array([EXACT.lengths(a) for a in q])
    return q, z + NOISE * np.random.default_rng(seed).standard_normal(z.shape)


def run(f, q, z):
    """(T,) largest error of each step [deg], and the same in deviations that the filter gives."""
    errors = []
    for angles, row in zip(q, z, strict=True):
        off = np.abs(f.step(row) - angles)
        errors.append((np.rad2deg(off.max()), (off / np.sqrt(f.variance)).max()))
    return np.array(errors).T


@pytest.fixture
def linear(monkeypatch):
    """A filter whose update is linear and neither made again nor widened: only a search is left to find a posture."""
    monkeypatch.setattr(group_filter, "ITERATIONS", 0)
    monkeypatch.setattr(diagnosis, "SURPRISING", 0.0)


def test_a_filter_that_is_sure_of_a_wrong_posture_finds_the_right_one(linear):
    """60 deg off with a deviation of 0.1 deg: by a search, or once the deviation is inflated by itself."""
    recoveries = 0
    for seed in range(3):
        q, z = walk(300, seed)
        f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute", length_noise=NOISE))
        f.reset(WRONG, np.full(4, np.deg2rad(0.1)))
        error, ratio = run(f, q, z)
        assert f.search.alarms >= 1, "doubted"
        recoveries += f.recoveries
        assert np.median(error[-200:]) < 2.0 and np.median(ratio[-200:]) < 5.0
        assert error[25:].max() < 10.0, "it took longer than a quarter of a second at 100 Hz"
    assert recoveries >= 1, "a search finds it"


def test_an_honest_filter_is_never_doubted():
    """No alarm and no search in hundreds of steps, from a start 20 deg off."""
    q, z = walk(600, 10, 0.5)
    f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute", length_noise=NOISE))
    f.reset(np.clip(q[0] + np.deg2rad(20), *LIMITS.T))
    run(f, q, z)
    assert f.honest and f.search.alarms == 0 and f.recoveries == 0


def test_lying_tendons_are_no_reason_to_go_elsewhere():
    """Two of ten that read 8 mm too long are left out, and the posture stays."""
    q, z = walk(400, 3, 0.5)
    z[100:, 1] += 8e-3
    z[150:, 7] += 8e-3
    f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute", length_noise=NOISE))
    f.reset(q[0])
    error, _ = run(f, q, z)
    assert f.recoveries == 0 and np.median(error[-200:]) < 1.0


def test_the_estimator_takes_the_tendons_back_that_a_wrong_posture_made_it_leave_out(linear):
    q, z = walk(200, 4)
    estimator = TendonEstimator([GROUP], {"arm": EXACT}, EstimatorSettings("absolute", length_noise=NOISE))
    (f,) = estimator.filters
    f.reset(WRONG, np.full(4, np.deg2rad(0.1)))
    estimate = np.array([estimator.step(row) for row in z])
    assert f.recoveries >= 1 and not estimator.faults.excluded.any()
    assert np.rad2deg(np.abs(estimate - q)[50:].max()) < 5.0


def test_the_posture_of_lengths_is_scipys_least_squares():
    """The same minimum, and the covariance of its Jacobian."""
    rng = np.random.default_rng(1)
    z = EXACT.lengths(START) + NOISE * rng.uniform(-1, 1, 10)
    near, start = START + np.deg2rad(8) * rng.standard_normal(4), np.full(4, np.deg2rad(30))
    fit = PostureFit(EXACT, MeasuredPosture(z, NOISE, LIMITS, 0.03, near, start), near)
    for _ in fit.converge():
        pass

    def residual(theta):
        return np.concatenate([(z - EXACT.lengths(theta)) / NOISE, (theta - near) / start])

    found = least_squares(residual, START, xtol=1e-14, ftol=1e-14, gtol=1e-12)
    assert fit.cost == pytest.approx(2 * found.cost, abs=0.05)
    P = np.linalg.inv(found.jac.T @ found.jac)
    off = fit.theta - found.x
    assert off @ np.linalg.solve(P, off) < 0.05
    np.testing.assert_allclose(fit.covariance(), P, rtol=0.15, atol=0.05 * np.abs(P).max())


def test_the_thumb_of_a_human_hand_is_found_again(model_file):
    """23 joints and 39 tendons walk by 4 deg a step: the thumb was lost, and surely, for a tenth of the time."""
    pytest.importorskip("mujoco", reason="needs the package mujoco, to read the model")
    geometry = read_mjcf(model_file("muscles/myo_sim/hand/myohand.xml")).geometry()
    group = TendonGroup("hand", geometry.joint_names, (), geometry.tendon_names)
    lost = []
    for seed in range(2):
        rng, (low, high) = np.random.default_rng(seed), geometry.limits.T
        q, v = geometry.limits.mean(axis=1), np.zeros(len(low))
        f = GroupFilter(group, exact_mapping(geometry), EstimatorSettings("absolute", length_noise=NOISE))
        f.reset(q)
        for _ in range(500):
            v = 0.9 * v + np.sqrt(0.19) * np.deg2rad(4) * rng.standard_normal(len(q))
            q = np.clip(q + v, low, high)
            f.step(geometry.lengths(q) + NOISE * rng.standard_normal(len(group.tendons)))
            off = np.abs(f.theta - q)
            lost.append(((off > np.deg2rad(10)) & (off > 5 * np.sqrt(f.variance))).any())
    assert np.mean(lost) < 0.03, "five tendons see its four joints, and leave two postures now and then"


# -------- The fit, piece by piece

NEAR, WIDE = START + np.deg2rad([4.0, -5.0, 3.0, 6.0]), np.full(4, np.deg2rad(30))


def fitted(z, near=NEAR, start=WIDE, held=None, limit_noise=0.03):
    fit = PostureFit(EXACT, MeasuredPosture(z, NOISE, LIMITS, limit_noise, near, start), near, held)
    for _ in fit.converge():
        pass
    return fit


def written_out(z, theta, near=NEAR, start=WIDE, held=None, limit_noise=0.03):
    """The cost by SciPy's Huber loss."""
    e = ((z - EXACT.lengths(theta)) / NOISE)[np.isfinite(z)]
    prior = np.diag(1 / start**2) + (0 if held is None else held)
    beyond = theta - np.clip(theta, *LIMITS.T)
    return 2 * huber(HUBER, e).sum() + (theta - near) @ prior @ (theta - near) + np.sum((beyond / limit_noise) ** 2)


LIES = EXACT.lengths(START) + np.where(np.arange(10) == 2, 4e-3, 0.0)
MISSES = np.where(np.arange(10) == 5, np.nan, EXACT.lengths(START))
OUT = EXACT.lengths(np.append(START[:3], LIMITS[3, 0] - 0.15))
HELD = np.diag(1 / np.deg2rad([0.2, 5.0, 5.0, 5.0])) ** 2


@pytest.mark.parametrize(
    ("z", "more"),
    [(LIES, {}), (MISSES, {}), (OUT, {"limit_noise": 1e-3}), (LIES, {"held": HELD})],
    ids=["lies", "misses", "beyond a limit", "held"],
)
def test_a_fit_is_where_no_other_posture_costs_less(z, more):
    """By the cost as it is written, whose value it gives; a local one is enough."""
    fit = fitted(z, **more)
    assert fit.cost == pytest.approx(written_out(z, fit.theta, **more), rel=1e-9, abs=1e-9)
    best = minimize(
        lambda theta: written_out(z, theta, **more),
        fit.theta,
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-7, "maxiter": 4000},
    )
    assert fit.cost < best.fun + 0.02 * (1 + best.fun)
    prior = fit.cost - 2 * huber(HUBER, ((z - EXACT.lengths(fit.theta)) / NOISE)[np.isfinite(z)]).sum()
    assert fit.prior_cost == pytest.approx(prior, abs=1e-6)
    if z is LIES:
        assert np.rad2deg(np.abs(fit.theta - START).max()) < (1.0 if not more else 8.0)
        assert fit.squares[2] == CAP
    if more.get("held") is not None:
        assert abs(fit.theta[0] - NEAR[0]) < 0.8 * abs(fitted(z).theta[0] - NEAR[0])
    if z is MISSES:
        assert fit.squares[5] == 0.0 and np.rad2deg(np.abs(fit.theta - START).max()) < 0.1
    if z is OUT:
        assert LIMITS[3, 0] - 0.02 < fit.theta[3] < LIMITS[3, 0]


def test_the_covariance_of_a_fit_counts_what_was_known_beforehand():
    fit = fitted(EXACT.lengths(START), near=START, held=HELD)
    G = EXACT.jacobian(fit.theta) / NOISE
    np.testing.assert_allclose(fit.covariance(), np.linalg.inv(G.T @ G + HELD + np.diag(1 / WIDE**2)), rtol=1e-6)


def test_no_joint_goes_far_in_one_iteration_and_a_fit_ends():
    fit = PostureFit(EXACT, MeasuredPosture(EXACT.lengths(START), NOISE, LIMITS, 0.03, WRONG, WIDE), WRONG)
    count, before = 0, fit.theta
    for _ in fit.converge():
        assert np.abs(fit.theta - before).max() <= LONGEST_STEP + 1e-12
        count, before = count + 1, fit.theta
    assert 2 < count <= ITERATIONS


def of(squares, prior=0.0):
    return SimpleNamespace(squares=np.array(squares, float), prior_cost=prior)


@pytest.mark.parametrize(
    ("found", "estimate", "better"),
    [
        (of([1] * 9), of([36] * 9), True),
        (of([1] * 9), of([36] + [1] * 8), False),  # one tendon says so
        (of([1] * 9), of([30, 30] + [1] * 7), True),  # two do, and it is more than the margin
        (of([1] * 9), of([28, 26] + [1] * 7), False),  # less than the margin
        (of([1] * 9), of([36, 25] + [1] * 7), False),  # all but one of them say less than half the margin
        (of([1] * 9, 60.0), of([36, 36] + [1] * 7), False),  # it is where nobody expected it
        (of([1] * 9), of([20, 20] + [1] * 7, 20.0), True),  # the estimate is where nobody expected it
        (of([5] * 9), of([36] * 9), False),  # it does not explain them either
        (of([36] * 3 + [1] * 6), of([36] * 9), True),  # a third of the tendons may lie
        (of([36] * 4 + [1] * 5), of([36] * 9), False),  # not more
        (of([36] * 3 + [2] * 6 + [0] * 3), of([36] * 6 + [2] * 6), False),  # not by half
    ],
    ids=range(11),
)
def test_a_posture_is_better_by_what_several_tendons_say(found, estimate, better):
    assert is_better(found, estimate) is better


# -------- The search, piece by piece


def search_of():
    return PostureSearch(EXACT, EstimatorSettings("absolute", length_noise=NOISE), 4, WIDE)


def ended(search, step, z, doubted=True):
    """Watch the same lengths until the search ends: what it found, the step after it, how many it took."""
    first = step
    while True:
        found = search.advance()
        step += 1
        search.watch(step, z, START, doubted)
        if not search.running:
            return found, step, step - first
        assert step - first < 100


def test_searches_pause_for_longer_each_time_and_no_longer_after_a_calm():
    """Lengths outside all postures, so that each search ends with nothing; 40 deg on a joint that is sure."""
    search = search_of()
    z = EXACT.lengths(START) + 0.01 * (-1.0) ** np.arange(10)
    pauses, step = [], 0
    for _ in range(4):
        search.watch(step, z, START, True)
        assert search.due
        search.begin(z, START, np.diag(np.full(4, 1e-6)), np.ones(10, bool))
        assert not search.due and search.running
        found, step, took = ended(search, step, z)
        assert found is None and took > 3
        began = step
        while not search.due:
            step += 1
            search.watch(step, z, START, True)
        pauses.append(step - began + 1)
    assert pauses == [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE] and search.alarms == 4
    search.begin(z, START, np.diag(np.full(4, 1e-6)), np.ones(10, bool))
    _, step, _ = ended(search, step, z)
    for _ in range(6 * SPACING):
        step += 1
        search.watch(step, z, START, False)
    calm = step
    while not search.due:
        step += 1
        search.watch(step, z, START, True)
    assert step - calm <= PAUSE, "after a calm of 60 steps"


def test_a_search_takes_the_last_trusted_posture_and_draws_only_the_joints_of_its_suspects():
    """A suspect that moves one joint alone: the others stay, and the rest of the range is tried."""
    mapping = SimpleNamespace(limits=LIMITS, jacobian=lambda theta: np.eye(4))
    search = PostureSearch(mapping, EstimatorSettings("absolute"), 3, WIDE)
    for step, doubted in ((SPACING, False), (SPACING + 1, False), (2 * SPACING, True)):
        search.watch(step, np.zeros(4), START + step, doubted)
    seen = []
    search._sought = lambda measured, held, free: seen.append((measured, held, free))
    for suspects in ([False, True, False, False], [False, False, False, True], [False] * 4):
        search.begin(np.zeros(4), START, np.diag([1.0, 4.0, 0.0, 1.0]), np.array(suspects))
    assert [free.tolist() for *_, free in seen] == [
        [False, True, False, False],
        [True] * 3 + [False],
        [True] * 3 + [False],
    ]
    np.testing.assert_allclose(seen[0][1], np.diag([1.0, 0.25, 0.0, 1.0]), atol=1e-12)
    free = seen[0][2]
    starts = np.array([search._start_of(k, START, free) for k in range(40)])
    np.testing.assert_array_equal(starts[0], START)
    np.testing.assert_array_equal(starts[1], START + SPACING)
    np.testing.assert_array_equal(starts[2:][:, ~free], np.tile(START[~free], (38, 1)))
    assert (starts[2:, 1] >= LIMITS[1, 0]).all() and (starts[2:, 1] <= LIMITS[1, 1]).all()
    assert np.ptp(starts[2:, 1]) > 0.8 * np.ptp(LIMITS[1])


def test_what_is_found_is_led_along_the_lengths_that_came_meanwhile(monkeypatch):
    """The joints go on while it is sought: found is the posture now. Lengths outside all postures end it."""
    monkeypatch.setattr(recovery, "BUDGET", 4)
    for lie, there in ((0.0, True), (0.05, False)):
        search, q, step = search_of(), START.copy(), 0
        search.watch(step, EXACT.lengths(q), WRONG, True)
        search.begin(EXACT.lengths(q), WRONG, np.diag(np.full(4, 1e-6)), np.ones(10, bool))
        found = None
        while search.running:
            found = search.advance()
            if not search.running:
                break
            q, step = q + np.deg2rad(0.2), step + 1
            search.watch(step, EXACT.lengths(q) + (lie * (-1.0) ** np.arange(10) if step == 2 else 0.0), WRONG, True)
        assert step >= 2
        assert (found is not None) is there
        if there:
            assert np.rad2deg(np.abs(found.theta - q).max()) < 0.1
            assert np.sqrt(np.diag(found.P)).max() < np.deg2rad(1.0)
