"""Momentum tracking: the formulas against dense inverses; in a tick, tasks untouched and less momentum."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.studies.schwienbacher2014.momentum_walkers import FreeJointGains
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik import DofSelection, lola_tasks
from humanoid_control.ik.null_space import ComfortCost, MomentumTracking, ResolvedRate, repulsion
from humanoid_control.ik.null_space.momentum_tracking import MODES, reducing_rates, weighting_inverse
from humanoid_control.ik.null_space.weighted_step import resolved_rate
from humanoid_control.ik.task_rows import stacked
from humanoid_control.ik.tasks import prepare
from humanoid_control.kinematics.centroidal import centroidal_momentum_map
from humanoid_control.robots import load_robot

DT = 0.004
VERTICAL = (False, False, True)


@cache
def lola():
    return load_robot("lola", "floating")


def arms():
    return [n for n in lola().joint_names if "shoulder" in n or "elbow" in n]


def walking_legs(seed=0):
    """Lola's tasks without its arms, a posture near standing, and feet that should move past each other."""
    robot, rng = lola(), np.random.default_rng(seed)
    tasks = lola_tasks(robot)
    joints = robot.postures["neutral"] + 0.2 * rng.normal(size=robot.n)
    q = robot.q(np.clip(joints, robot.lower, robot.upper))
    tasks.take_targets(q)
    tasks.tasks["left_foot_position"].velocity = np.array([0.6, 0.0, 0.1])
    tasks.tasks["right_foot_position"].velocity = np.array([-0.6, 0.0, 0.0])
    return robot, q, tasks.without("left_arm", "right_arm"), DofSelection(robot, held=tasks.held)


@pytest.mark.parametrize("axes", [VERTICAL, (True, True, True)])
@pytest.mark.parametrize("mode", MODES)
def test_velocity_is_the_formula_with_projector_and_pseudo_inverse(mode, axes):
    """Eq. (7.3) with (7.8) and (7.9), the producing joints' momentum from the particular solution (E-21)."""
    reference = np.array([0.3, -0.2, 0.1])
    for seed in range(5):
        robot, q, tasks, dofs = walking_legs(seed)
        comfort = ComfortCost(robot.postures["neutral"], 0.7)
        tracking = MomentumTracking(robot, arms(), reference, axes, mode)
        v, report = ResolvedRate(robot, [comfort], dofs=dofs, momentum=tracking).velocity(q, tasks, DT)
        data = robot.model.createData()
        prepare(robot, data, q)
        rows = stacked(robot, data, q, tasks, dofs, 1 / DT)
        sharp = np.linalg.pinv(rows.J)
        task = dofs.expand(sharp @ rows.v)
        J_L = centroidal_momentum_map(robot.model, robot.data, q).angular[list(axes)]
        reducing = [robot.iv + robot.joint_index(n) for n in arms()]
        others = task.copy()
        others[reducing] = 0.0
        y = comfort.gradient(robot, data, q)
        rates = reducing_rates(J_L[:, reducing], J_L @ others - reference[list(axes)], mode)
        share = np.abs(rates / (0.8 * robot.velocity[[robot.joint_index(n) for n in arms()]])).max()
        y[reducing] += rates / max(share, 1.0)
        assert tracking.demand == pytest.approx(0.8 * share)
        null = dofs.expand((np.eye(dofs.k) - sharp @ rows.J) @ -dofs.reduce(y))
        assert report.speed_scale == 1.0 and report.ok
        assert np.allclose(v, task + report.null_scale * null, atol=1e-8)


def test_arms_take_momentum_away_and_leave_the_tasks_alone():
    robot, q, tasks, dofs = walking_legs()
    without, report = ResolvedRate(robot, dofs=dofs).velocity(q, tasks, DT)
    tracking = MomentumTracking(robot, arms(), mode="damped", mu=0.0)
    with_arms, tracked = ResolvedRate(robot, dofs=dofs, momentum=tracking).velocity(q, tasks, DT)
    L = centroidal_momentum_map(robot.model, robot.data, q).angular[2]
    assert abs(L @ without) > 0.5, "the legs make momentum"
    assert abs(L @ with_arms) < 0.8 * abs(L @ without)
    assert report.task_residual < 1e-9 and tracked.task_residual < 1e-9


def test_a_full_task_vector_leaves_nothing_to_track_with():
    """With all 28 rows Lola has as many velocities as rows: momentum tracking changes nothing."""
    robot, q, _, dofs = walking_legs()
    tasks = lola_tasks(robot)
    plain = ResolvedRate(robot, dofs=dofs).velocity(q, tasks.all(), DT)[0]
    tracked = ResolvedRate(robot, dofs=dofs, momentum=MomentumTracking(robot, arms())).velocity(q, tasks.all(), DT)[0]
    assert np.allclose(plain, tracked, atol=1e-8)


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match="did you mean thesis"):
        MomentumTracking(lola(), arms(), mode="thesys")
    with pytest.raises(UnknownNameError, match="l_elbow"):
        MomentumTracking(lola(), ["l_elbow_flexon"])
    with pytest.raises(ConfigError, match="axes"):
        MomentumTracking(lola(), arms(), axes=(False, False, False))


@pytest.mark.parametrize("dense", [False, True])
def test_rates_are_those_of_inverse_and_projector(dense):
    """Eq. (4.12) with the weighted inverse and N formed explicitly; the task is met whatever the null-space vector."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        J, xdot, y = rng.normal(size=(22, 28)), rng.normal(size=22), rng.normal(size=28)
        w = rng.uniform(0.1, 3, 28)
        A = rng.normal(size=(28, 28))
        W_inverse = A @ A.T + np.eye(28) if dense else np.diag(w)
        inverse = W_inverse @ J.T @ np.linalg.inv(J @ W_inverse @ J.T)
        wanted = inverse @ xdot - (np.eye(28) - inverse @ J) @ W_inverse @ y
        found = resolved_rate(J, xdot, W_inverse if dense else w, y)
        assert np.allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())
        assert np.allclose(J @ found, xdot, atol=1e-8)


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 3), st.floats(0.01, 10))
def test_inverse_of_the_momentum_weighting_is_the_inverse(seed, n, axes, delta):
    """To 1e-10 of the largest entry, for one axis (rank one) and for more."""
    J = np.random.default_rng(seed).normal(size=(axes, n))
    W = delta * np.eye(n) + J.T @ J
    assert np.abs(weighting_inverse(J, delta) - np.linalg.inv(W)).max() < 1e-10 / delta


def test_one_axis_is_the_printed_formula_with_a_number_below():
    J = np.random.default_rng(2).normal(size=28)
    printed = (np.eye(28) - np.outer(J, J) / (0.5 + J @ J)) / 0.5
    assert np.abs(weighting_inverse(J[None], 0.5) - printed).max() < 1e-12


def test_modes_of_one_axis_are_their_formulas():
    rng = np.random.default_rng(3)
    for _ in range(20):
        J, e = rng.normal(size=6) * 0.3, float(rng.normal())
        size, surplus = np.linalg.norm(J), np.array([e])
        assert np.allclose(reducing_rates(J[None], surplus, "thesis"), J * e / size**3)
        assert np.allclose(reducing_rates(J[None], surplus, "unit"), J * e / size)
        assert np.allclose(reducing_rates(J[None], surplus, "damped", 0.2), J * e / (size**2 + 0.04))
        assert np.allclose(J @ reducing_rates(J[None], surplus, "damped", 0.0), e)


@pytest.mark.parametrize("mode", ["unit", "damped"])
def test_rates_stay_bounded_where_the_levers_vanish(mode):
    """The printed normalisation grows without bound there (which is why its rates are clamped); these two do not."""
    e = np.array([1.0])
    sizes = [np.linalg.norm(reducing_rates(np.full((1, 6), s), e, mode)) for s in (1e-1, 1e-3, 1e-6, 0.0)]
    assert max(sizes) <= 5.0 + 1e-9
    assert np.linalg.norm(reducing_rates(np.full((1, 6), 1e-3), e, "thesis")) > 1e4


@given(st.integers(0, 1000), st.floats(0.1, 100))
def test_clamped_rates_keep_limits_and_direction(seed, size):
    rng, robot = np.random.default_rng(seed), lola()
    columns = robot.iv + np.array([robot.joint_index(n) for n in arms()])
    limit, v = 0.5 * robot.velocity[columns - robot.iv], size * rng.normal(size=robot.nv)
    for axes in (VERTICAL, (True, True, True)):
        free = MomentumTracking(robot, arms(), axes=axes, speed_share=0.5, clamp=False)
        clamped = MomentumTracking(robot, arms(), axes=axes, speed_share=0.5)
        for tracking in (free, clamped):
            tracking.place(robot.q("neutral"))
        rates, kept = free.rates(v)[columns], clamped.rates(v)[columns]
        assert clamped.demand == free.demand == pytest.approx(0.5 * np.abs(rates / limit).max())
        assert (np.abs(kept) <= limit * (1 + 1e-12)).all()
        scale = np.linalg.norm(rates)
        assert np.allclose(kept * scale, rates * np.linalg.norm(kept), atol=1e-9 * scale**2)
        if (np.abs(rates) <= limit).all():
            assert np.array_equal(kept, rates)
        default = MomentumTracking(robot, arms(), axes=axes)
        default.place(robot.q("neutral"))
        assert (np.abs(default.rates(1e6 * v)[columns]) / limit).max() == pytest.approx(1.6), "0.8 of the speed limit"


def test_residual_is_the_momentum_that_the_rates_leave():
    """Nothing where an exact mode is not clamped; of clamped rates, what they lack."""
    robot, v = lola(), np.random.default_rng(4).normal(size=lola().nv)
    columns = [robot.iv + robot.joint_index(n) for n in arms()]
    exact = MomentumTracking(robot, arms(), (0.1, -0.2, 0.3), mode="damped", mu=0.0, clamp=False)
    weak = MomentumTracking(robot, arms(), (0.1, -0.2, 0.3), mode="damped", mu=0.0, speed_share=1e-3)
    for tracking in (exact, weak):
        tracking.place(robot.q("neutral"))
    L = centroidal_momentum_map(robot.model, robot.data, robot.q("neutral")).angular[2]
    assert np.allclose(exact.residual(v, exact.rates(v)), 0.0, atol=1e-12)
    rates, others = weak.rates(v), v.copy()
    others[columns] = 0.0
    assert weak.residual(v, rates) == pytest.approx(L @ others - L @ rates - 0.3)
    assert np.abs(weak.residual(v, rates)).max() > 0.1


def test_repulsion_starts_smoothly_and_is_given_at_contact():
    """Eq. (5.15): value and slope continuous at both joints, s0 at d = 0, linear growth inside."""
    g, h = FreeJointGains(), 1e-9
    a, t = g.activation, g.blend

    def law(d):
        return float(repulsion(np.array([d]), a, g.separation, t)[0])

    assert law(0.0) == pytest.approx(g.separation) and law(a) == 0.0 and law(2 * a) == 0.0
    for joint in (t * a, a):
        assert law(joint + h) == pytest.approx(law(joint - h), abs=1e-5)
        left, right = (law(joint) - law(joint - 1e-6)) / 1e-6, (law(joint + 1e-6) - law(joint)) / 1e-6
        assert left == pytest.approx(right, abs=0.05)
    assert law(-a) > law(0.0) > law(t * a) > 0


def test_mistakes_in_the_formulas_are_named():
    with pytest.raises(UnknownNameError, match="did you mean thesis"):
        reducing_rates(np.ones((1, 3)), np.ones(1), "thesys")
    with pytest.raises(ConfigError, match="delta must be positive"):
        weighting_inverse(np.ones((1, 3)), 0.0)
