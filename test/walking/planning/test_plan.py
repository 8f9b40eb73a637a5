"""The plan of a walk: no jump where it is made anew, soles that stand still while they carry, momentum in it."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import quad, solve_ivp

from humanoid_control.numerics.butterworth import low_pass
from humanoid_control.walking.planning.dynamics_filter import DynamicsFilter
from humanoid_control.walking.planning.lipm import ZmpPath, follow_dcm
from humanoid_control.walking.planning.plan import (
    DcmPlanner,
    MomentumShift,
    WalkPlan,
    continued,
    mean_heading,
    schedule,
    standing_point,
)
from test.walking.stubs import OMEGA, geometry, request, soles, steps


def test_nothing_jumps_where_the_plan_is_made_anew():
    """xi, c and c' to 1e-9 over twenty plans, each made in the middle of the one before with other footsteps."""
    rng = np.random.default_rng(1)
    r = request()
    path, phases = DcmPlanner().plan(r)
    c, t = r.center, r.t
    for k in range(20):
        plan = WalkPlan(r.feet, phases, path)
        until = phases[1].lift if k % 2 else phases[0].land + rng.uniform(0.0, 0.16)
        for a, b in pairwise(np.linspace(t, until, 60)):
            c = follow_dcm(c, path.dcm(a), path.dcm(b), OMEGA, b - a)
        feet, xi = plan.soles(until), path.dcm(until)
        foot = phases[1].step.foot
        r = request(
            until,
            max(until, phases[1].lift),
            list(feet),
            command=rng.uniform([-0.3, -0.15, -0.3], [0.5, 0.15, 0.3]),
            foot=foot,
            center=c,
            xi=xi,
            zmp=path.zmp(until),
        )
        path, phases = DcmPlanner().plan(r)
        assert np.abs(path.dcm(until) - xi).max() < 1e-9
        before, after = OMEGA * (xi - c), OMEGA * (path.dcm(until) - c)
        assert np.abs(after - before).max() < 1e-9
        assert np.abs(path.dcm(until + 1e-9) - xi).max() < 1e-7
        t = until


def test_what_is_left_fades_and_touches_nothing_later():
    path = ZmpPath.of(np.array([0.0, 0.3, 0.9, 1.4, 2.0]), np.random.default_rng(2).uniform(-0.2, 0.2, (5, 2)), OMEGA)
    xi = path.xi[0] + [0.02, -0.03]
    for until in (0.9, 0.7, 2.0):
        new = continued(path, xi, until)
        assert np.abs(new.xi[0] - xi).max() < 1e-12
        for t in np.linspace(until, 2.4, 9):
            assert np.allclose(new.zmp(t), path.zmp(t), atol=1e-12)
            assert np.allclose(new.dcm(t), path.dcm(t), atol=1e-12)
        off = [np.linalg.norm(new.zmp(t) - path.zmp(t)) for t in np.linspace(0, until, 30)]
        assert (np.diff(off) < 1e-12).all()
    assert continued(path, xi, 0.0) is path


def test_the_plan_is_a_solution_of_the_pendulum():
    """c'' = w^2 (c - p), integrated from the plan's own start in short pieces."""
    r = request()
    path, _ = DcmPlanner().plan(r)
    c = r.center
    for a, b in pairwise(np.linspace(0, path.t[-1], 120)):
        v = OMEGA * (path.dcm(a) - c)

        def rhs(t, y):
            return np.concatenate([y[2:], OMEGA**2 * (y[:2] - path.zmp(t))])

        run = solve_ivp(rhs, (a, b), np.concatenate([c, v]), rtol=1e-9, atol=1e-11, max_step=0.02).y[:, -1]
        assert np.abs(run[:2] + run[2:] / OMEGA - path.dcm(b)).max() < 1e-6
        c = run[:2]
    assert np.abs(path.dcm(path.t[-1]) - path.p[-1]).max() < 1e-12  # what can run away is at rest where the plan ends
    assert np.linalg.norm(c - path.p[-1]) < 0.05


def test_the_point_stands_on_the_foot_that_stands_and_ends_between_both():
    r = request(command=(0.3, 0.05, 0.2))
    path, phases = DcmPlanner().plan(r)
    plan = WalkPlan(r.feet, phases, path)
    for k, phase in enumerate(phases):
        stand = standing_point(r.soles, plan.soles(0.5 * (phase.lift + phase.land)), 1 - phase.step.foot)
        for t in np.linspace(phase.lift, phase.land, 5) if k else []:
            assert np.allclose(path.zmp(t), stand, atol=1e-9)
    last = plan.soles(plan.end)
    middle = 0.5 * (standing_point(r.soles, last, 0) + standing_point(r.soles, last, 1))
    assert np.allclose(path.zmp(plan.end), middle)
    assert plan.end == pytest.approx(phases[-1].land + r.rest)


def test_soles_move_only_while_they_swing_and_without_a_jump():
    r = request(command=(0.4, 0.0, 0.2))
    plan = WalkPlan(r.feet, r.phases, DcmPlanner().plan(r)[0])
    times = np.arange(0.0, plan.end, 0.004)
    at = [plan.at(t) for t in times]
    for a, b in pairwise(at):
        for k in (0, 1):
            moved = np.linalg.norm(b.soles[k].translation - a.soles[k].translation)
            assert moved < 0.025
            if k not in (a.swinging, b.swinging):
                assert moved < 1e-12
    assert {x.swinging for x in at} == {None, 0, 1}
    assert all(-1e-9 <= x.u <= 1 for x in at)
    for phase in r.phases:
        assert plan.at(phase.lift).swinging == phase.step.foot
        assert plan.at(phase.land).swinging is None
        assert np.allclose(plan.soles(phase.land)[phase.step.foot].homogeneous, phase.step.X.homogeneous)
    assert plan.index(-1) == -1
    assert plan.index(1e9) == len(r.phases) - 1


def test_phases_follow_each_other_with_their_own_times():
    made = schedule(soles(), steps(count=3), 2.0)
    assert [p.lift for p in made] == pytest.approx([2.0, 2.8, 3.6])
    assert [p.land - p.lift for p in made] == pytest.approx([0.64] * 3)
    assert [p.end - p.land for p in made] == pytest.approx([0.16] * 3)
    assert np.allclose(made[2].swing.start.homogeneous, made[0].step.X.homogeneous)


@pytest.mark.parametrize("turn", [0.0, 1.0, 3.1, -3.1, np.pi])
def test_heading_between_the_feet_has_no_branch(turn):
    feet = [pin.SE3(pin.exp3(np.array([0, 0, turn + s * 0.2])), np.zeros(3)) for s in (1, -1)]
    assert np.allclose(mean_heading(feet), pin.exp3(np.array([0, 0, turn])), atol=1e-12)


def shift_of(L, t0, dt, count):
    """The shift that the dynamics filter makes of an angular momentum L(t) (3,)."""
    f = object.__new__(DynamicsFilter)
    f.dt, f.robot, f._t0 = dt, SimpleNamespace(mass=60.0), t0
    f._filter = low_pass(12.0, dt)
    f._past = [np.array(L(t0 - k * dt)) for k in range(8, 0, -1)]
    f._L = [np.array(L(t0 + k * dt)) for k in range(count)]
    f._plan = SimpleNamespace(path=SimpleNamespace(omega=OMEGA))
    return f.result()


def test_the_shift_for_the_momentum_is_its_integral():
    """xi_L(t) = w int_t^end exp(-w (s - t)) (L'_y, -L'_x)(s) ds / (m g) by quadrature."""
    w, end, t0 = 2 * np.pi * 1.25, 2.0, 0.3

    def L(t):
        return 4 * np.sin(w * t), 3 * np.cos(w * t) + 1, 7 * t

    def rate(s):
        return np.array([-3 * w * np.sin(w * s), -4 * w * np.cos(w * s)]) / (60 * 9.81)

    dt = 0.005
    shift = shift_of(L, t0, dt, round((end - t0) / dt) + 1)
    for t in (0.3, 0.55, 0.8, 1.2):
        for k in (0, 1):
            exact = quad(lambda s, k=k, t=t: OMEGA * np.exp(-OMEGA * (s - t)) * rate(s)[k], t, end)[0]
            assert shift.at(t)[k] == pytest.approx(exact, abs=2e-3 * 4 * w / 589 * 5)
    assert np.abs(shift.shift).max() > 0.02


def test_a_shift_is_linear_between_samples_and_held_outside():
    shift = MomentumShift(1.0, 0.5, np.array([[0.0, 0], [1, 2], [3, 2]]))
    assert shift.at(0.0).tolist() == [0, 0]
    assert shift.at(1.25).tolist() == [0.5, 1]
    assert shift.at(1.75).tolist() == [2, 2]
    assert shift.at(9.0).tolist() == [3, 2]
    assert MomentumShift.none().at(3.0).tolist() == [0, 0]
    plan = WalkPlan(soles(), [], ZmpPath.of(np.array([0.0, 1.0]), np.zeros((2, 2)), OMEGA), shift)
    assert plan.at(1.25).dcm.tolist() == [0.5, 1]


def test_geometry_of_the_stub_is_as_of_feet():
    shape = geometry()
    assert (shape.lower < shape.middle).all()
    assert (shape.middle < shape.upper).all()
