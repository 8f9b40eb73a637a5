"""Null-space objectives: gradients by finite differences, shapes of the costs, the repulsive law, manipulability."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik import PointTask
from humanoid_control.ik.null_space import (
    ComfortCost,
    JointLimitCost,
    ManipulabilityCost,
    ResolvedRate,
    condition_number,
    manipulability,
    repulsion,
    repulsion_potential,
    stable_contact_gradient,
)
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import load_robot


def random_q(robot, rng):
    return robot.q(rng.uniform(np.maximum(robot.lower, -2.5), np.minimum(robot.upper, 2.5)))


def left_hand(robot):
    task = PointTask(robot, "l_wrist", name="hand")
    task.set_target(np.zeros(3))
    joints = [n for n in robot.joint_names if n.startswith(("l_shoulder", "l_elbow"))]
    return task, joints


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("kind", ["limit", "comfort", "manipulability"])
def test_gradient_is_the_finite_difference(kind, base):
    robot, rng, h = load_robot("lola", base), np.random.default_rng(1), 1e-6
    task, joints = left_hand(robot)
    cost = {
        "limit": JointLimitCost(0.3, 7.0),
        "comfort": ComfortCost(robot.postures["neutral"], np.linspace(0, 3, robot.n)),
        "manipulability": ManipulabilityCost(robot, [task], joints, 20.0),
    }[kind]
    data = robot.model.createData()
    for _ in range(10):
        q, dv = random_q(robot, rng), rng.normal(size=robot.nv)
        values = []
        for s in (1, -1):
            moved = pin.integrate(robot.model, q, s * h * dv)
            prepare(robot, data, moved)
            values.append(cost.cost(robot, data, moved))
        prepare(robot, data, q)
        slope = cost.gradient(robot, data, q) @ dv
        assert slope == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-5, abs=1e-6)


def test_limit_cost_is_smooth_convex_and_zero_in_the_middle():
    robot = load_robot("lola", "fixed")
    cost, data = JointLimitCost(0.2, 5.0), robot.data
    middle = 0.5 * (robot.lower + robot.upper)
    assert cost.cost(robot, data, robot.q(middle)) == 0
    j = robot.joint_index("l_knee_flexion")
    slopes = []
    for angle in np.linspace(robot.lower[j] - 0.1, robot.upper[j] + 0.1, 500):
        q = middle.copy()
        q[j] = angle
        slopes.append(cost.gradient(robot, data, robot.q(q))[j])
    assert np.all(np.diff(slopes) >= 0), "convex"
    assert np.abs(np.diff(slopes)).max() < 0.03, "no jump of the gradient"
    assert slopes[0] == pytest.approx(-5 * 0.3) and slopes[-1] == pytest.approx(5 * 0.3)


def test_a_joint_of_small_range_rests_in_its_middle():
    """Bands wider than half the range meet there, and do not overlap to push both ways."""
    robot = load_robot("lola", "fixed")
    cost = JointLimitCost(2.0, 5.0)
    assert np.allclose(cost.gradient(robot, robot.data, robot.q(0.5 * (robot.lower + robot.upper))), 0, atol=1e-12)


def test_costs_lead_free_joints_from_their_limits_and_home():
    """In closed loop under a hand task: comfort ends drift, the limit cost leaves the band."""
    robot = load_robot("wabian2", "fixed")
    task, _ = left_hand(robot)
    neutral = robot.postures["neutral"]
    j, free = robot.joint_index("l_shoulder_rotation"), robot.joint_index("r_elbow_flexion")
    start = neutral.copy()
    start[j], start[free] = robot.upper[j] - 0.02, robot.upper[free] - 0.01
    q = robot.q(start)
    task.target = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0]
    solver = ResolvedRate(robot, [JointLimitCost(0.2, 20.0)])
    moved = q
    for _ in range(1000):
        moved = solver.step(moved, [task], 0.005)[0]
    assert moved[free] == pytest.approx(robot.upper[free] - 0.2, abs=1e-3), "a joint no task needs leaves the band"
    assert moved[j] < start[j] - 0.02
    assert np.allclose(robot.frame_positions(moved, [robot.point_frame("l_wrist")])[0], task.target, atol=1e-6)
    home = ResolvedRate(robot, [ComfortCost(neutral, 2.0)])
    for _ in range(1500):
        q = home.step(q, [task], 0.005)[0]
    assert q[free] == pytest.approx(neutral[free], abs=1e-3)
    assert np.allclose(robot.frame_positions(q, [robot.point_frame("l_wrist")])[0], task.target, atol=1e-6)


def test_null_space_motion_ends_where_the_cost_is_least_among_all_postures_that_do_the_task():
    """Liégeois (Schwienbacher 2014, eq. 4.11 and 4.12) against SciPy's constrained minimiser, with unequal weights."""
    robot, rng = load_robot("wabian2", "fixed"), np.random.default_rng(3)
    task, _ = left_hand(robot)
    hand, span = robot.point_frame("l_wrist"), robot.upper - robot.lower
    start, comfort = (robot.lower + rng.uniform(0.35, 0.65, robot.n) * span for _ in range(2))
    weights = rng.uniform(0.5, 2.0, robot.n)
    q = robot.q(start)
    task.target = robot.frame_positions(q, [hand])[0]
    cost = ComfortCost(comfort, weights)
    solver = ResolvedRate(robot, [cost])
    solver.dofs.mobility = rng.uniform(0.5, 2.0, solver.dofs.k)
    costs = []
    for _ in range(1200):
        costs.append(cost.cost(robot, robot.data, q))
        q = solver.step(q, [task], 0.02)[0]
    assert np.diff(costs).max() < 1e-9, "it never rises"

    def hand_error(joints):
        return robot.frame_positions(robot.q(joints), [hand])[0] - task.target

    best = minimize(
        lambda x: 0.5 * weights @ (x - comfort) ** 2,
        start,
        jac=lambda x: weights * (x - comfort),
        constraints={"type": "eq", "fun": hand_error},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert best.success and costs[0] > 2 * best.fun
    assert np.abs(hand_error(robot.joints(q))).max() < 1e-6
    assert costs[-1] == pytest.approx(best.fun, rel=1e-5)
    np.testing.assert_allclose(robot.joints(q), best.x, atol=2e-3)


def test_measure_is_the_product_and_the_condition_the_quotient_of_singular_values():
    rng = np.random.default_rng(2)
    for shape in ((3, 7), (6, 6), (22, 28)):
        J = rng.normal(size=shape)
        sigma = np.linalg.svd(J, compute_uv=False)
        assert manipulability(J) == pytest.approx(np.prod(sigma), rel=1e-9)
        assert condition_number(J) == pytest.approx(np.linalg.cond(J), rel=1e-9)
        J[-1] = J[0]
        assert manipulability(J) < 1e-5 * np.prod(sigma) and condition_number(J) == np.inf
    assert manipulability(rng.normal(size=(4, 3))) == 0 and condition_number(rng.normal(size=(4, 3))) == np.inf


def test_manipulability_is_found_again_after_a_stretched_arm():
    """A stretched elbow is singular: w is 0 there, and rises when it is what the free joints are for."""
    robot = load_robot("wabian2", "fixed")
    task, joints = left_hand(robot)
    cost = ManipulabilityCost(robot, [task], joints, 1.0)
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 0.05}))
    prepare(robot, robot.data, q)
    before = cost.measure(robot, robot.data, q)
    solver = ResolvedRate(robot, [cost])
    for _ in range(300):
        q = solver.step(q, [], 0.05)[0]
    prepare(robot, robot.data, q)
    assert cost.measure(robot, robot.data, q) > 5 * before


MISTAKES = [
    (lambda r: JointLimitCost(0.0), ConfigError, "band > 0"),
    (lambda r: ComfortCost(r.postures["neutral"], -1.0), ConfigError, "must not be negative"),
    (lambda r: ManipulabilityCost(r, [], ["l_elbow_flexoin"]), UnknownNameError, "did you mean l_elbow_flexion"),
]


@pytest.mark.parametrize(("make", "error", "words"), MISTAKES, ids=[m[2] for m in MISTAKES])
def test_a_mistake_is_one_clear_line(make, error, words):
    with pytest.raises(error, match=words):
        make(load_robot("lola", "fixed"))


A, S = st.floats(0.005, 0.3), st.floats(0.01, 100)


@pytest.mark.parametrize("t", [0.0, 0.4, 0.5, 0.6, 0.99])
def test_value_and_slope_are_continuous_and_the_law_is_s0_at_contact(t):
    """T-09, at the joint of line and curve and at the activation distance."""
    a, s, h = 0.05, 3.0, 1e-9
    assert repulsion(np.array([0.0]), a, s, t) == pytest.approx(s)
    assert repulsion(np.array([a, 2 * a]), a, s, t) == pytest.approx([0, 0])
    for d in (t * a, a):
        left, here, right = repulsion(np.array([d - h, d, d + h]), a, s, t)
        steepest = 2 * s / (a * (1 + t))
        assert abs(left - here) <= 1.01 * steepest * h and abs(here - right) <= 1.01 * steepest * h
        k = 1e-5
        before, at, after = repulsion(np.array([d - k, d, d + k]), a, s, t)
        bend = 2 * s / (a * a * (1 - t * t))
        assert abs((at - before) - (after - at)) <= 1.01 * bend * k * k + 1e-12


def test_blend_0_is_the_quadratic_law_and_blend_1_the_linear_one():
    d, a, s = np.linspace(-0.02, 0.08, 101), 0.05, 3.0
    inside = d < a
    assert np.allclose(repulsion(d, a, s, 1.0), np.where(inside, s * (1 - d / a), 0.0))
    assert np.allclose(repulsion(d, a, s, 1 - 1e-9), np.where(inside, s * (1 - d / a), 0.0), atol=1e-6)
    positive = d >= 0
    quadratic = np.where(inside, s / a**2 * (d - a) ** 2, 0.0)
    assert np.allclose(repulsion(d, a, s, 0.0)[positive], quadratic[positive])


def test_closed_forms_of_value_and_slope_at_the_joint():
    for t, share in ((0.4, 0.4286), (0.5, 0.3333), (0.6, 0.25)):
        assert repulsion(np.array([t]), 1.0, 1.0, t) == pytest.approx(share, abs=1e-4)
        line = repulsion(np.array([0.0, 0.1]), 1.0, 1.0, t)
        assert (line[0] - line[1]) / 0.1 == pytest.approx(2 / (1 + t))


@given(A, S, st.floats(0, 1), st.floats(-1, 1.5))
def test_law_is_minus_the_derivative_of_its_potential_and_never_attracts(a, s, t, x):
    d, h = np.array([x * a]), 1e-6 * a
    g = repulsion(d, a, s, t)
    assert g >= 0 and repulsion(d - 0.1 * a, a, s, t) >= g  # decreasing
    up, down = (repulsion_potential(d + e, a, s, t) for e in (h, -h))
    assert -(up - down) / (2 * h) == pytest.approx(g, rel=1e-4, abs=1e-4 * s)
    assert repulsion_potential(np.array([a]), a, s, t) == pytest.approx(0, abs=1e-12 * s)


@pytest.mark.parametrize(("share", "settles"), [(0.5, True), (0.99, True), (1.9, True), (2.1, False)])
def test_stability_rule_of_the_contact_gradient_has_the_edge_where_it_says(share, settles):
    """One pair on one joint, drawn to contact by a constant speed: it comes to rest below twice the rule, not above."""
    dt, a, t, mobility, gain = 0.004, 0.05, 0.5, 0.3, 1.0
    s = share * float(stable_contact_gradient(gain, dt, a, t, mobility))
    drawn = gain * mobility * s * 0.6  # rests on the line, where the law is steepest
    d, seen = 0.8 * a, []
    for _ in range(4000):
        d += dt * (gain * mobility * float(repulsion(np.array([d]), a, s, t)[0]) - drawn)
        seen.append(d)
    end = np.ptp(seen[-50:])
    assert end < 1e-9 if settles else end > 1e-4
    if share < 1:
        assert np.all(np.diff(seen) <= 1e-12), "no overshoot below the rule"
