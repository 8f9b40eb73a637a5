"""The predictive plan: against the same program solved densely in the world by SciPy, and against the closed form."""

import time
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import LinearConstraint, minimize

from humanoid_control.walking.planning.lipm import ZmpPath
from humanoid_control.walking.planning.model_predictive import ModelPredictive, PredictiveWeights, hat_integrals
from humanoid_control.walking.planning.plan import DcmPlanner, WalkPlan, request_corners
from humanoid_control.walking.planning.step import StepLimits
from test.walking.stubs import OMEGA, request

STRAIGHT, TURNING = (0.4, 0.0, 0.0), (0.2, 0.05, 0.25)


def steady(command=STRAIGHT, push=(0.0, 0.0), count=7):
    """A request at a lift-off in the middle of a walk, its divergent component pushed."""
    r = request(count=count, command=command)
    path, phases = DcmPlanner().plan(r)
    t = phases[2].lift
    feet = WalkPlan(r.feet, phases, path).soles(t)
    return r._replace(t=t, xi=path.dcm(t) + push, zmp=path.zmp(t), feet=feet, phases=phases[2:])


def nominal(r):
    return ZmpPath.of(*request_corners(r), OMEGA)


def test_weights_of_corners_are_the_integrals_of_their_hats():
    t = np.array([0.0, 0.1, 0.4, 0.4, 1.0])
    got = hat_integrals(t, OMEGA)
    rng = np.random.default_rng(0)
    p = rng.normal(size=5)
    p[3] = p[2]
    exact = quad(lambda s: OMEGA * np.exp(-OMEGA * s) * np.interp(s, t, p), 0, 1.0, points=t[1:4])[0]
    assert got @ p == pytest.approx(exact + p[-1] * np.exp(-OMEGA), abs=1e-9)
    assert got.sum() == pytest.approx(1)


@pytest.mark.parametrize("command", [STRAIGHT, TURNING])
def test_without_a_disturbance_it_is_the_closed_form(command):
    r = steady(command)
    path, phases = ModelPredictive().plan(r)
    closed, same = DcmPlanner().plan(r)
    assert phases == same
    for t in np.linspace(r.t, closed.t[-1] + 0.2, 200):
        assert np.allclose(path.zmp(t), closed.zmp(t), atol=1e-5)
        assert np.allclose(path.dcm(t), closed.dcm(t), atol=1e-5)


@pytest.mark.parametrize("push", [(0.03, 0), (-0.03, 0.02), (0.06, 0.04), (0.0, -0.05), (0.08, 0.05)])
@pytest.mark.parametrize("command", [STRAIGHT, TURNING])
def test_it_starts_at_the_divergent_component_and_stays_in_the_support(command, push):
    r = steady(command, push)
    planner = ModelPredictive()
    path, phases = planner.plan(r)
    assert planner.missed < 1e-6
    assert np.abs(path.dcm(r.t) - r.xi).max() < 1e-6
    assert np.allclose(path.dcm(path.t[-1]), path.zmp(path.t[-1]))  # bounded: at rest at the end
    plan = WalkPlan(r.feet, phases, path)
    for k, phase in enumerate(phases[:3]):
        stance = plan.soles(phase.lift + 0.01)[1 - phase.step.foot]
        # The planned point of the moment is where the last plan left it: only from the first node on it can be moved.
        for t in np.linspace(phase.lift + (0.17 if k == 0 else 0), phase.land - 1e-6, 9):
            p = stance.actInv(np.array([*path.zmp(t), stance.translation[2]]))[:2]
            low, high = r.soles.lower[0] + 0.01 - 1e-6, r.soles.upper[0] - 0.01 + 1e-6
            assert (p >= low).all()
            assert (p <= high).all()


def test_a_large_push_moves_footholds_the_way_it_goes_and_within_the_limits():
    limits = StepLimits(width=0.2, gap=0.15, forward=0.45, backward=0.3, sideways=0.15)
    planner = ModelPredictive(limits)
    for push in ((0.1, 0.0), (-0.1, 0.0), (0.0, 0.08), (0.0, -0.08)):
        r = steady(push=push)
        _, phases = planner.plan(r)
        moved = phases[0].step.X.translation[:2] - r.phases[0].step.X.translation[:2]
        assert moved @ push >= -1e-9
        for k in range(3):
            X = (r.feet[1 - phases[0].step.foot] if k == 0 else phases[k - 1].step.X).actInv(phases[k].step.X)
            side = 1 if phases[k].step.foot == 0 else -1
            assert -0.3 - 1e-6 <= X.translation[0] <= 0.45 + 1e-6
            assert 0.15 - 1e-6 <= side * X.translation[1] <= 0.2 + limits.spread + 1e-6


def test_what_cannot_be_caught_is_said():
    planner = ModelPredictive(StepLimits(width=0.2, gap=0.15))
    planner.plan(steady(push=(2.0, 0.0)))
    assert planner.missed > 0.1


@pytest.mark.parametrize("push", [(0.05, 0.03), (-0.06, 0.02)])
def test_it_is_the_optimum_of_the_dense_program(push):
    """The same cost in world coordinates, p and footholds as unknowns; integrals by quadrature, rows not bounds."""
    r = steady(TURNING, push)
    planner = ModelPredictive(footholds=2)
    path, phases = planner.plan(r)
    w, nodes = planner.weights, planner._nodes(r, *request_corners(r), r.phases[:2])
    n, base, times = len(nodes.t) - 1, nominal(r), path.t
    f = 2

    def point(z, s):
        p = np.vstack([nodes.p[:1], z[: 2 * n].reshape(n, 2)])
        moved = z[2 * n :].reshape(f, 2)
        late = np.array([base.zmp(t) + moved[-1] for t in times[n + 1 :]]).reshape(-1, 2)
        corners = np.vstack([p, late])
        return np.array([np.interp(s, times, c) for c in corners.T]).T

    def xi(z):
        fine = np.unique(np.concatenate([np.linspace(a, b, 41) for a, b in pairwise(times)]))
        values = point(z, fine) * (OMEGA * np.exp(-OMEGA * (fine - r.t)))[:, None]
        return np.trapezoid(values, fine, axis=0) + point(z, times[-1]) * np.exp(-OMEGA * (times[-1] - r.t))

    def cost(z):
        p, moved = np.vstack([nodes.p[:1], z[: 2 * n].reshape(n, 2)]), z[2 * n :].reshape(f, 2)
        y = p - nodes.p - nodes.share @ moved
        h = np.diff(nodes.t)
        d = np.vstack([moved[:1], np.diff(moved, axis=0)])
        smooth = (w.smooth * (np.diff(y, axis=0) ** 2).sum(axis=1) / h).sum()
        return (w.stay * (y[1:] ** 2).sum(axis=1) * h).sum() + smooth + w.step * (d**2).sum()

    zero = np.concatenate([nodes.p[1:].ravel(), np.zeros(2 * f)])
    E = np.array([xi(zero + e) - xi(zero) for e in np.eye(len(zero))]).T
    rows, low, high = [], [], []
    for k in range(n):
        for axis in (0, 1):
            row = np.zeros(len(zero))
            row[2 * k : 2 * k + 2] = nodes.R[k + 1][:, axis]
            for i in range(f):
                row[2 * (n + i) : 2 * (n + i) + 2] = -nodes.share[k + 1, i] * nodes.R[k + 1][:, axis]
            rest = nodes.R[k + 1][:, axis] @ nodes.p[k + 1]
            rows.append(row)
            low.append(nodes.lower[k + 1, axis] + rest)
            high.append(nodes.upper[k + 1, axis] + rest)
    constraints = [
        LinearConstraint(np.array(rows), low, high),
        LinearConstraint(E, r.xi - xi(zero) + E @ zero, r.xi - xi(zero) + E @ zero),
    ]
    assert planner.missed < 1e-6
    best = minimize(cost, zero, method="SLSQP", constraints=constraints, options={"maxiter": 400, "ftol": 1e-12})
    assert best.success
    moved = np.array(
        [b.step.X.translation[:2] - a.step.X.translation[:2] for a, b in zip(r.phases, phases, strict=True)]
    )
    made = np.concatenate([path.p[1 : n + 1].ravel(), moved[:f].ravel()])
    assert cost(made) <= cost(best.x) * (1 + 1e-3) + 1e-8
    assert np.abs(made - best.x).max() < 2e-3


def test_a_plan_is_quick_enough_for_a_tick():
    planner, r = ModelPredictive(StepLimits(width=0.2, gap=0.15)), steady(push=(0.06, 0.04))
    planner.plan(r)
    taken = []
    for _ in range(15):
        start = time.perf_counter()
        planner.plan(r)
        taken.append(time.perf_counter() - start)
    assert min(taken) < 8e-3  # 2 ms on a machine that does nothing else


def test_nothing_to_walk_is_the_rest_of_the_way():
    r = steady()._replace(phases=[])
    path, phases = ModelPredictive().plan(r)
    assert phases == []
    assert np.allclose(path.zmp(path.t[-1]), path.dcm(path.t[-1]))


@pytest.mark.parametrize("weights", [PredictiveWeights(step=-1.0), PredictiveWeights(smooth=np.nan)])
def test_a_program_without_a_solution_leaves_the_plan_as_it_is(weights):
    r = steady(push=(0.03, 0.02))
    planner = ModelPredictive(weights=weights)
    for count in (1, 2):
        path, phases = planner.plan(r)
        assert planner.unsolved == count and phases == r.phases
        same = nominal(r)
        assert np.array_equal(path.t, same.t) and np.array_equal(path.zmp(r.t + 0.3), same.zmp(r.t + 0.3))
    assert planner.missed > 0.01, "it does not start where the robot is"
    planner.weights = PredictiveWeights()
    planner.plan(r)
    assert planner.unsolved == 2 and planner.missed < 1e-6
