"""Optimal reaches: known optima, exact gradient and Hessian, limits, starts, and what is told."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from evidence.benchmarks.motion.reaching import pinocchio_model
from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.reaching import Parametrisation, ReachSettings, criteria_of, person_arm, robot_arm, synthesise
from humanoid_control.reaching.optimal.cost import Limits, reach_cost, reach_cost_derivatives
from humanoid_control.reaching.optimal.newton import band_width, limited_values
from humanoid_control.reaching.optimal.reach import folded_posture, mass_places, minimum_jerk_start, reach_problem
from humanoid_control.robots import load_robot
from test.reaching.arms import integrator

REST, UP = np.deg2rad([-18.0, -6.0, -13.0, 33.0]), np.deg2rad([-37.0, -76.0, -5.0, 56.0])
LONE = {"limits": False, "starts": 1}


def deviation(reach, expected, t):
    return float(np.abs(reach.at(t)[0][:, 0] - expected).max())


@pytest.mark.parametrize("kind", ["quintic", "ninth"])
@pytest.mark.parametrize(("way", "T"), [(1.0, 1.0), (-0.7, 1.7)])
def test_least_angle_jerk_is_the_known_quintic(kind, way, T):
    reach = synthesise(integrator(), [0.2], [0.2 + way], T, ReachSettings({"maj": 1.0}, kind, **LONE))
    assert 2 * reach.cost == pytest.approx(720 * way**2 / T**5, rel=1e-9)
    s = np.linspace(0, 1, 21)
    assert deviation(reach, 0.2 + way * (10 * s**3 - 15 * s**4 + 6 * s**5), s * T) < 1e-9


@pytest.mark.parametrize("kind", ["quintic", "cubic"])
def test_least_torque_of_a_double_integrator_is_twelve(kind):
    settings = ReachSettings({"torque": 1.0}, kind, free_acceleration=True, tolerance=1e-12, **LONE)
    reach = synthesise(integrator(), [0.0], [1.0], 1.0, settings)
    assert 2 * reach.cost == pytest.approx(12.0, rel=1e-9)
    s = np.linspace(0, 1, 21)
    assert deviation(reach, 3 * s**2 - 2 * s**3, s) < 1e-6


def test_the_quadrature_sees_what_lies_between_the_knots():
    """Random numbers at the knots: the costs are those of a fine sum, so no optimum can hide between the points."""
    arm, P = person_arm(4), Parametrisation("quintic", 3, 0.9)
    x = 0.3 * np.random.default_rng(0).normal(size=(P.numbers, 4))
    t = (np.arange(30_000) + 0.5) * 0.9 / 30_000
    q, v, a, jerk = P.evaluate(x, t)
    costs = criteria_of(arm, P, x)
    assert costs["maj"] == pytest.approx(0.5 * 0.9 * np.mean(np.sum(jerk**2, axis=1)), rel=1e-6)
    tau = arm.torque(q, v, a)
    assert costs["torque"] == pytest.approx(0.5 * 0.9 * np.mean(np.sum(tau**2, axis=1)), rel=0.02)
    rate = np.gradient(tau, t, axis=0)
    inside = np.abs(np.sin(3 * np.pi * t / 0.9)) > 0.01  # the jerk jumps at the knots
    assert costs["mtc"] == pytest.approx(0.5 * 0.9 * np.mean(np.sum(rate[inside] ** 2, axis=1)), rel=0.05)


def test_the_search_cannot_cheat_the_quadrature():
    """Seven joints find motions that are violent between few points: what is told is the cost of the motion."""
    rest, up = np.append(REST, [0.0, 0.0, 0.0]), np.append(UP, [0.3, 0.1, 0.2])
    settings = ReachSettings({"torque": 1.0}, free_acceleration=True, tolerance=3e-4, **LONE)
    arm = person_arm(7)
    reach = synthesise(arm, rest, up, 1.0, settings)
    fine = criteria_of(arm, Parametrisation("quintic", 8, 1.0, 40), reach.x)["torque"]
    assert reach.cost == pytest.approx(fine, rel=0.015)


@pytest.mark.parametrize("kind", ["quintic", "cubic", "ninth"])
def test_derivatives_go_through_the_quintic_basis(kind):
    """Position to jerk are derivatives of one another, and C2 (C1 of cubics) at the knots."""
    P = Parametrisation(kind, 3, 0.9)
    x = np.random.default_rng(1).normal(size=(P.numbers, 2))
    t = np.linspace(0.05, 0.85, 7)
    for k in range(3):
        slope = (P.evaluate(x, t + 1e-6)[k] - P.evaluate(x, t - 1e-6)[k]) / 2e-6
        assert np.allclose(slope, P.evaluate(x, t)[k + 1], rtol=1e-5, atol=1e-4)
    before, after = P.evaluate(x, np.array([0.3 - 1e-12, 0.3 + 1e-12])).transpose(1, 0, 2)
    smooth = 2 if kind == "cubic" else 3
    assert np.allclose(before[:smooth], after[:smooth], atol=1e-6)


@pytest.mark.parametrize("kind", ["quintic", "ninth", "cubic"])
@pytest.mark.parametrize("cost", ["torque", "mtc", "maj"])
def test_gradient_and_hessian_are_those_of_the_cost(kind, cost):
    arm = person_arm(4)
    P = Parametrisation(kind, 2, 0.8)
    free = kind != "cubic" or cost == "torque"
    settings = ReachSettings({cost: 1.0}, kind if free else "quintic")
    problem = reach_problem(arm, P, settings, REST, UP)
    rng = np.random.default_rng(2)
    x = minimum_jerk_start(P, REST, UP) + 0.1 * rng.normal(size=(P.numbers, 4))
    if cost == "torque":  # with all kinds of limits, some exceeded
        tight = np.array([0.6, 2.0, 5.0])[:, None] * np.ones(4)
        shape = problem.limits.above.shape
        multipliers = rng.uniform(0, 1, size=(2, *shape))
        problem = problem._replace(limits=Limits(-tight, tight, *multipliers, np.array([3.0, 0.2, 0.1])))
    table, rows = Packed(problem).table, np.flatnonzero(problem.column[:, 0] >= 0)
    n, q = 4 * len(rows), problem.quadrature
    H = np.zeros((n, band_width(problem.column, q.stride, q.phi.shape[1], q.segments) + 1))
    g, scratch = np.empty(n), np.empty(n)
    value = reach_cost_derivatives(table, x, 2, g, H)
    assert value == pytest.approx(reach_cost(table, x), rel=1e-12)
    whole = np.zeros((n, n))
    for d in range(H.shape[1]):
        whole += np.diag(H[: n - d, d], -d) + (np.diag(H[: n - d, d], d) if d else 0.0)
    direction, step = rng.normal(size=n), 1e-6

    def moved(s):
        y = x.copy()
        y[rows] += s * direction.reshape(-1, 4)
        reach_cost_derivatives(table, y, 1, scratch, H.copy())
        return reach_cost(table, y), scratch.copy()

    (high, g_high), (low, g_low) = moved(step), moved(-step)
    assert (high - low) / (2 * step) == pytest.approx(g @ direction, rel=1e-6)
    expected = (g_high - g_low) / (2 * step)
    assert np.allclose(whole @ direction, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("cost", ["mtc", "torque", "mchj"])
def test_nothing_near_an_optimum_costs_less(cost):
    reach = synthesise(person_arm(4), REST, UP, 0.8, ReachSettings({cost: 1.0}, segments=4, **LONE))
    assert reach.converged
    P, arm, rng = reach.parametrisation, reach.arm, np.random.default_rng(3)
    free = ~P.ends()
    for size in (1e-3, 1e-2, 5e-2):
        for _ in range(5):
            x = reach.x.copy()
            x[free] += size * rng.normal(size=x[free].shape)
            assert criteria_of(arm, P, x)[cost] >= reach.cost * (1 - 2e-5)
    straight = criteria_of(arm, P, minimum_jerk_start(P, REST, UP))[cost]
    assert reach.cost < 0.97 * straight


def test_ends_are_met_at_rest():
    reach = synthesise(person_arm(4), REST, UP, 0.8)
    ends = reach.at(np.array([0.0, 0.8]))
    assert np.allclose(ends[0], [REST, UP], atol=1e-12) and np.allclose(ends[1:3], 0.0, atol=1e-9)


def test_gravity_counts_and_can_be_left_out():
    settings = {"cost": {"mtc": 1.0}, "segments": 4, **LONE}
    with_it, without = (synthesise(person_arm(4), REST, UP, 0.8, ReachSettings(gravity=g, **settings)) for g in (1, 0))
    assert abs(with_it.cost / without.cost - 1) > 0.05
    assert np.allclose(without.torques(np.array([0.0, 0.8])), 0.0, atol=1e-9)
    assert np.abs(with_it.torques(np.array([0.8]))).max() > 1.0


def test_ranges_hold_and_cost():
    """Ranges that the free optimum leaves by far, on both sides."""
    arm, t = person_arm(4), np.linspace(0, 1, 401)
    settings = ReachSettings({"torque": 1.0}, starts=1)
    free = synthesise(arm, REST, UP, 1.0, replace(settings, limits=False))
    q = free.at(t)[0]
    ends = np.array([REST, UP])
    lower = np.minimum(ends.min(axis=0), 0.4 * ends.min(axis=0) + 0.6 * q.min(axis=0))
    upper = np.maximum(ends.max(axis=0), 0.4 * ends.max(axis=0) + 0.6 * q.max(axis=0))
    assert max((lower - q.min(axis=0)).max(), (q.max(axis=0) - upper).max()) > 0.1
    kept = synthesise(replace(arm, lower=lower, upper=upper), REST, UP, 1.0, settings)
    problem = reach_problem(kept.arm, kept.parametrisation, kept.settings, REST, UP)
    values = limited_values(problem, kept.x)[:, 0]
    assert (values > lower - 1.1e-3).all() and (values < upper + 1.1e-3).all() and not kept.notes
    between = kept.at(t)[0]
    assert (between > lower - 0.03).all() and (between < upper + 0.03).all()
    assert kept.cost > free.cost


def test_limits_of_speed_and_torque_hold():
    arm = robot_arm(load_robot("lola", "fixed"), "right")
    start = np.zeros(3).clip(arm.lower, arm.upper)
    goal = np.array([-1.0, -0.5, -1.2]).clip(arm.lower, arm.upper)
    endless = np.full(3, np.inf)
    arm, settings = replace(arm, velocity=endless, effort=endless), ReachSettings({"maj": 1.0})

    def most(of):
        reach = synthesise(of, start, goal, 0.6, settings)
        problem = reach_problem(arm, reach.parametrisation, replace(settings, limits=True), start, goal)
        problem.limits.high[2] = 1e6  # torques are computed only where they have limits
        assert not reach.notes
        return np.abs(limited_values(problem, reach.x)).max(axis=0)

    _, speed, tau = most(arm)
    slow, weak = replace(arm, velocity=0.8 * speed), replace(arm, effort=np.maximum(0.93 * tau, 0.1))
    assert (most(slow)[1] <= slow.velocity + 0.011).all()
    assert (most(weak)[2] <= weak.effort + 0.051).all()


def test_what_cannot_be_kept_is_told():
    arm = replace(person_arm(4), velocity=np.full(4, 0.5))
    reach = synthesise(arm, REST, UP, 0.5, ReachSettings({"maj": 1.0}))
    assert any("limits of speeds" in note for note in reach.notes)


def test_of_several_starts_the_best_is_taken_and_said():
    arm = person_arm(5)
    start, goal = np.append(REST, 0.0), np.append(UP, 0.3)
    reach = synthesise(arm, start, goal, 1.0, ReachSettings({"torque": 1.0}))
    assert len(reach.found) == 3 and reach.found[reach.start] == reach.cost
    straight = synthesise(arm, start, goal, 1.0, ReachSettings({"torque": 1.0}, starts=1))
    assert straight.start == "straight" and reach.cost < 0.9 * straight.cost
    assert len(synthesise(arm, start, goal, 1.0, ReachSettings({"maj": 1.0})).found) == 1


def test_a_folded_arm_is_easier_to_swing():
    """Its masses are nearer to the shoulder; their derivatives are finite differences."""
    arm = person_arm(7)
    q = np.deg2rad([-40.0, -60.0, 10.0, 30.0, 10.0, 5.0, 5.0])
    folded = folded_posture(arm, q)
    near, far = (np.sum(mass_places(arm, x)[0] ** 2) for x in (folded, q))
    assert near < 0.8 * far and (folded >= arm.lower).all() and (folded <= arm.upper).all()
    places, J = mass_places(arm, q)
    differences = [(mass_places(arm, q + 1e-6 * e)[0] - mass_places(arm, q - 1e-6 * e)[0]) / 2e-6 for e in np.eye(7)]
    assert np.allclose(J, np.transpose(differences), atol=1e-8)
    whole = pinocchio_model(arm)
    pin.centerOfMass(whole, data := whole.createData(), q)
    roots = np.sqrt(arm.model.mass)[:, None]
    mean = (roots * places.reshape(-1, 3)).sum(axis=0) / arm.model.mass.sum()
    assert np.allclose(mean, data.com[0], atol=1e-12), "pinocchio's centre of mass"


def test_a_mix_lies_between_its_criteria():
    arm = person_arm(4)
    P = Parametrisation("quintic", 4, 0.8)
    found = {
        w: synthesise(arm, REST, UP, 0.8, ReachSettings({"maj": w, "mtc": 1 - w}, **LONE)).costs for w in (0.2, 0.8)
    }
    straight = criteria_of(arm, P, minimum_jerk_start(P, REST, UP))
    alone = synthesise(arm, REST, UP, 0.8, ReachSettings({"mtc": 1.0}, **LONE)).costs
    assert straight["maj"] < found[0.8]["maj"] < found[0.2]["maj"] < alone["maj"]
    assert alone["mtc"] < found[0.2]["mtc"] < found[0.8]["mtc"] < straight["mtc"]


def test_bad_input_is_refused_and_oddities_are_noted():
    arm = person_arm(4)
    for T in (0.0, -1.0, np.nan):
        with pytest.raises(ConfigError, match="must be positive"):
            synthesise(arm, REST, UP, T)
    for q in (REST[:3], np.full(4, np.nan)):
        with pytest.raises(ConfigError, match="must be 4 numbers"):
            synthesise(arm, q, UP, 1.0)
    for cost in ("maj", "mtc", "mchj"):
        with pytest.raises(ConfigError, match="continuous accelerations"):
            ReachSettings({cost: 1.0}, "cubic")
    with pytest.raises(UnknownNameError, match="torque"):
        ReachSettings({"torqe": 1.0})
    with pytest.raises(UnknownNameError, match="quintic"):
        synthesise(arm, REST, UP, 1.0, ReachSettings(parametrisation="quintc"))
    with pytest.raises(ConfigError, match="must be positive"):
        ReachSettings({"mtc": -1.0})
    with pytest.raises(ConfigError, match="needs a cost"):
        ReachSettings({})
    same = synthesise(arm, UP, UP, 1.0)
    assert any("same posture" in note for note in same.notes)
    assert np.allclose(same.at(np.linspace(0, 1, 5))[0], UP)
    far = synthesise(arm, REST, UP + [0, 0, 0, 5.0], 1.0)
    assert any("elbow_flexion" in note and "150.0" in note for note in far.notes)
    assert far.at(np.ones(1))[0][0, 3] == pytest.approx(np.deg2rad(150.0))
    late = synthesise(arm, REST, UP, 2.5, ReachSettings({"maj": 1.0}, "ninth"))
    assert any("limited to 2 s" in note for note in late.notes)
    assert not synthesise(arm, REST, UP, 2.0, ReachSettings({"maj": 1.0}, "ninth")).notes
