"""The reference of a step: a cubic from where it is to what a rigid robot would have, without a jump."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline

from humanoid_control.errors import ConfigError
from humanoid_control.kinematics.centroidal import inertia_about_center
from humanoid_control.robots import load_robot
from humanoid_control.walking import CubicStep, MomentumReference

SMALL = st.floats(-5, 5)


@given(SMALL, SMALL, SMALL, SMALL, st.floats(0.1, 2), st.floats(-3, 3))
def test_the_cubic_is_the_hermite_cubic_of_its_ends(start, start_rate, end, end_rate, duration, begin):
    ours = CubicStep.between(begin, duration, start, start_rate, end, end_rate)
    theirs = CubicHermiteSpline([0.0, duration], [start, end], [start_rate, end_rate])
    for share in (0.0, 0.3, 0.7, 1.0):
        s = share * duration
        assert ours.value(begin + s) == pytest.approx(float(theirs(s)), abs=1e-8)
        assert ours.rate(begin + s) == pytest.approx(float(theirs(s, 1)), abs=1e-6)


def test_straight_on_it_is_zero_and_in_a_curve_it_ends_as_a_rigid_robot_that_turns_evenly():
    robot = load_robot("lola", "floating")
    inertia = inertia_about_center(robot.model, robot.data, robot.q("neutral"))[2, 2]
    reference, T, turn = MomentumReference(inertia), 0.8, np.radians(12)
    assert reference.value(0.0) == 0.0
    reference.begin_step(0.0, T)
    assert all(reference.value(t) == 0.0 for t in np.linspace(0, T, 20))
    curve = reference.begin_step(T, T, turn)
    assert curve.value(2 * T) == pytest.approx(inertia * turn / T, rel=1e-12)
    assert curve.rate(2 * T) == pytest.approx(0.0, abs=1e-12)
    assert curve.value(T) == 0.0 and curve.rate(T) == 0.0


@given(st.lists(st.tuples(st.floats(0.3, 1.5), st.floats(-0.5, 0.5), st.floats(0.2, 1.0)), min_size=2, max_size=6))
def test_steps_join_in_value_and_rate_even_where_one_is_cut_short(steps):
    reference, t = MomentumReference(1.3), 0.0
    reference.begin_step(t, 0.8, 0.2)
    for duration, turn, share in steps:
        t += share * reference.step.duration
        before = reference.step.value(t), reference.step.rate(t)
        after = reference.begin_step(t, duration, turn)
        assert (after.value(t), after.rate(t)) == pytest.approx(before, abs=1e-12)
        assert after.value(t + duration) == pytest.approx(1.3 * turn / duration, abs=1e-9)


def test_beyond_its_end_a_step_holds():
    step = CubicStep.between(1.0, 0.5, 0.0, 0.0, 2.0)
    assert step.value(9.0) == pytest.approx(2.0) and step.value(0.0) == 0.0


@pytest.mark.parametrize("make", [lambda: MomentumReference(0.0), lambda: CubicStep.between(0, 0.0, 0, 0, 1)])
def test_no_inertia_and_no_time_are_mistakes(make):
    with pytest.raises(ConfigError, match=r"must be positive|more than 0 s"):
        make()
