"""Distribution of torques over tensions: the conditions of an optimum, SciPy's solution, published activations."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from humanoid_control.errors import ConfigError, NotANumberError, SizeError
from humanoid_control.tendons.control.distribution import EPS, TensionDistribution

KINDS = ("full", "deficient", "saturated", "equal bounds", "one tendon", "few tendons")


def drawn(rng, kind):
    """Return G (M, D), tau (D,), least, most (M,) and weight (M,) of one kind of problem."""
    D = int(rng.integers(1, 8))
    M = {"one tendon": 1, "few tendons": max(1, D - 1)}.get(kind, int(rng.integers(D + 1, 3 * D + 2)))
    G = rng.uniform(-0.08, 0.08, (M, D))
    if kind == "deficient":
        G[:, -1] = G[:, 0]
    least, weight = rng.uniform(0, 20, M), rng.uniform(0.1, 2.0, M)
    most = least + rng.uniform(1, 300, M)
    if kind == "equal bounds":
        most[::2] = least[::2]
    tau = -G.T @ rng.uniform(least, most) if kind != "saturated" else 100 * rng.standard_normal(D)
    return G, tau, least, most, weight


@pytest.mark.parametrize("kind", KINDS)
def test_the_solution_fulfils_the_conditions_of_an_optimum(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(170):
        G, tau, least, most, weight = drawn(rng, kind)
        d = TensionDistribution(G.shape[1], least, most, weight)
        bias = rng.uniform(0, 50, len(G))
        f = d.solve(G, tau, bias)
        assert d.used >= 0 and (f >= least).all() and (f <= most).all()
        assert d.missed == pytest.approx(G.T @ f + tau, abs=1e-9)
        w = weight / weight.mean()
        slope, size = w * (f - bias) + G @ d.missed / EPS, 1.0 + np.abs(G @ tau).max() / EPS
        free = (f > least) & (f < most)
        assert np.abs(slope[free]).max(initial=0.0) < 1e-7 * size
        assert (slope[(f == least) & (most > least)] > -1e-7 * size).all()
        assert (slope[(f == most) & (most > least)] < 1e-7 * size).all()


@pytest.mark.parametrize("kind", KINDS)
def test_objective_and_missed_torque_are_scipys(kind):
    rng = np.random.default_rng(20 + KINDS.index(kind))
    for _ in range(8):
        G, tau, least, most, weight = drawn(rng, kind)
        d = TensionDistribution(G.shape[1], least, most, weight)
        f = d.solve(G, tau)
        root = np.sqrt(weight / weight.mean())
        A = np.vstack([np.diag(root), G.T / np.sqrt(EPS)])
        b = np.concatenate([root * least, -tau / np.sqrt(EPS)])
        box = (least, np.where(most > least, most, least + 1e-9))
        theirs = lsq_linear(A, b, box, method="bvls", tol=1e-14).x
        mine, cost = (0.5 * float(np.sum((A @ x - b) ** 2)) for x in (f, theirs))
        assert mine == pytest.approx(cost, rel=1e-9, abs=1e-6)


def test_feasible_torques_are_met_and_infeasible_ones_missed_by_least_squares():
    rng = np.random.default_rng(3)
    G = rng.uniform(-0.05, 0.05, (46, 20))
    d = TensionDistribution(20, np.full(46, 10.0), np.full(46, 300.0))
    d.solve(G, -G.T @ rng.uniform(10, 100, 46))
    assert np.abs(d.missed).max() < 0.01
    tau = 60 * rng.standard_normal(20)
    d.solve(G, tau)
    least = lsq_linear(G.T, -tau, (10.0, 300.0), method="bvls", tol=1e-14)
    assert np.linalg.norm(d.missed) == pytest.approx(np.sqrt(2 * least.cost), rel=1e-4)
    assert np.linalg.norm(d.missed) > 100


def test_a_warm_start_changes_nothing_but_the_work():
    rng = np.random.default_rng(4)
    G = rng.uniform(-0.05, 0.05, (30, 12))
    warm, worked, cold_work = TensionDistribution(12, np.full(30, 5.0), np.full(30, 200.0)), 0, 0
    tau = -G.T @ rng.uniform(5, 200, 30)
    for k in range(50):
        now = tau * (1 + 0.1 * np.sin(0.2 * k))
        cold = TensionDistribution(12, np.full(30, 5.0), np.full(30, 200.0))
        assert warm.solve(G, now) == pytest.approx(cold.solve(G, now), abs=1e-5)
        worked, cold_work = worked + (warm.used if k else 0), cold_work + cold.used
    assert worked < 0.2 * cold_work, (worked, cold_work)


def test_a_tendon_that_is_left_out_gives_nothing_and_may_come_back():
    rng = np.random.default_rng(5)
    G = rng.uniform(-0.05, 0.05, (10, 4))
    d = TensionDistribution(4, np.full(10, 10.0), np.full(10, 300.0))
    tau = -G.T @ rng.uniform(10, 100, 10)
    whole = d.solve(G, tau).copy()
    k = int(np.argmax(whole))
    d.least[k] = d.most[k] = 0.0
    assert d.solve(G, tau)[k] == 0.0
    d.least[k], d.most[k] = 10.0, 300.0
    assert d.solve(G, tau) == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize(
    "change,error,words",
    [
        ({"least": [-1.0, 0.0, 0.0]}, ConfigError, "tendon 0 has a minimum tension below 0"),
        (
            {"most": [9.0, 9.0, 0.5], "least": [1.0, 1.0, 1.0]},
            ConfigError,
            "tendon 2 has a minimum tension above its maximum",
        ),
        ({"weight": [1.0, -1.0, 1.0]}, ConfigError, "tendon 1 has a weight below 0"),
        ({"least": [0.0, np.nan, 0.0]}, NotANumberError, "least of tendon 1 is not a number"),
        ({"weight": [1.0, 1.0]}, SizeError, r"weight must be \(3,\), got \(2,\)"),
    ],
    ids=["negative", "crossed", "weight", "nan", "size"],
)
def test_bad_ranges_are_refused_in_one_line(change, error, words):
    given = {"least": [0.0] * 3, "most": [100.0] * 3, "weight": [1.0] * 3} | change
    with pytest.raises(error, match=words) as caught:
        TensionDistribution(2, **{k: np.array(v) for k, v in given.items()})
    assert "\n" not in str(caught.value)


def test_bad_torques_and_ranges_changed_in_place_are_refused():
    d = TensionDistribution(2, np.zeros(3), np.full(3, 100.0))
    G = np.ones((3, 2))
    with pytest.raises(NotANumberError, match="tau contains a non-finite value"):
        d.solve(G, np.array([np.nan, 0.0]))
    with pytest.raises(NotANumberError, match="G contains"):
        d.solve(G * np.inf, np.zeros(2))
    with pytest.raises(SizeError, match=r"needs G \(3, 2\)"):
        d.solve(np.ones((2, 2)), np.zeros(2))
    d.most[1] = -1.0
    with pytest.raises(ConfigError, match="tendon 1 has a minimum tension above"):
        d.solve(G, np.zeros(2))


# Arm 26 of OpenSim's tutorial on computed muscle control, static optimisation without muscle physiology, at 0.333 and
# 0.667 s: opensim-models, Tutorials/Computed_Muscle_Control/OutputReference, NonphysiologicalResults. Torques of the
# shoulder and elbow [N m] by OpenSim 4.6 from the published kinematics, -moment arms [m] of the long and the other two
# heads of the triceps, long and short biceps and brachialis at the elbow, activations as published.
ARM26_ARMS = ((0.037463, -0.02157, -0.007441), (0.037467, -0.021569, -0.00738))
ARM26_ELBOW = ((0.024182, -0.022422, -0.013527), (0.020077, -0.043385, -0.018634))
ARM26_TORQUE = ((1.555595, 1.323185), (1.838743, 2.244577))
ARM26_MOST = (798.52, 624.3, 624.3, 624.3, 435.56, 987.26)
ARM26_ACTIVATION = (
    (0.000018, 0.0145, 0.0145, 0.110488, 0.021061, 0.000677),
    (0.000009, 0.058521, 0.058521, 0.136358, 0.000899, 0.000078),
)


@pytest.mark.parametrize("k", (0, 1), ids=("0.333 s", "0.667 s"))
def test_activations_are_those_that_opensim_published(k):
    (long, biceps, short), (triceps, flexor, brachialis) = ARM26_ARMS[k], ARM26_ELBOW[k]
    elbow = [triceps] * 3 + [flexor] * 2 + [brachialis]
    G = np.column_stack([[long, 0.0, 0.0, biceps, short, 0.0], elbow])
    most = np.array(ARM26_MOST)
    d = TensionDistribution(2, np.zeros(6), most, 1 / most**2)
    found = d.solve(G, np.array(ARM26_TORQUE[k]), np.zeros(6)) / most
    off = found - ARM26_ACTIVATION[k]
    assert np.abs(d.missed).max() < 0.01
    assert np.sqrt(np.mean(off**2)) < 0.002 and np.abs(off).max() < 0.004
