"""Splines of trajectories against SciPy; trajectories with a mistake are refused before anything moves."""

import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicHermiteSpline

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.commands.trajectory import LARGEST, TrajectoryPlayer, TrajectoryPoint, TrajectorySpline

NAMES = ["hip", "knee"]
rng = np.random.default_rng(5)
T = np.array([0.5, 0.8, 2.0, 3.1])
Q, V, A = rng.normal(size=(3, 4, 2))
Q0, V0 = rng.normal(size=(2, 2))


def spline(points, names=NAMES):
    return TrajectorySpline(names, points, Q0, V0, NAMES)


def sampled(s, times):
    q, v = zip(*(s.at(t) for t in times), strict=True)
    return np.array(q), np.array(v)


TIMES = np.linspace(0.0, 3.0999, 500)
ALL_T, ALL_Q, ALL_V = np.r_[0.0, T], np.vstack([Q0, Q]), np.vstack([V0, V])


def test_positions_are_joined_by_lines():
    q, v = sampled(spline([TrajectoryPoint(t, q) for t, q in zip(T, Q, strict=True)]), TIMES)
    np.testing.assert_allclose(q, np.array([np.interp(TIMES, ALL_T, ALL_Q[:, j]) for j in range(2)]).T, atol=1e-12)
    assert np.abs(v[:80] - (Q[0] - Q0) / 0.5).max() < 1e-12


def test_velocities_give_cubics():
    q, v = sampled(spline([TrajectoryPoint(*p) for p in zip(T, Q, V, strict=True)]), TIMES)
    reference = CubicHermiteSpline(ALL_T, ALL_Q, ALL_V)
    np.testing.assert_allclose(q, reference(TIMES), atol=1e-12)
    np.testing.assert_allclose(v, reference(TIMES, 1), atol=1e-11)


def test_accelerations_give_quintics():
    q, v = sampled(spline([TrajectoryPoint(*p) for p in zip(T, Q, V, A, strict=True)]), TIMES)
    all_a = np.vstack([np.zeros(2), A])
    for j in range(2):
        reference = BPoly.from_derivatives(ALL_T, np.stack([ALL_Q[:, j], ALL_V[:, j], all_a[:, j]], axis=1))
        np.testing.assert_allclose(q[:, j], reference(TIMES), atol=1e-12, rtol=1e-12)
        np.testing.assert_allclose(v[:, j], reference.derivative()(TIMES), atol=1e-11)


def test_it_begins_where_the_robot_is_and_holds_its_end():
    s = spline([TrajectoryPoint(T[0], Q[0], V[0])])
    np.testing.assert_array_equal(s.at(0.0)[0], Q0)
    np.testing.assert_array_equal(s.at(-1.0)[0], Q0)
    for t in (0.5, 99.0):
        np.testing.assert_array_equal(s.at(t)[0], Q[0])
        np.testing.assert_array_equal(s.at(t)[1], 0.0)
    assert s.duration == 0.5


def test_a_point_at_time_zero_is_the_start():
    s = spline([TrajectoryPoint(0.0, Q[0]), TrajectoryPoint(1.0, Q[1])])
    np.testing.assert_allclose(s.at(0.5)[0], (Q[0] + Q[1]) / 2)
    only = spline([TrajectoryPoint(0.0, Q[0])])
    np.testing.assert_array_equal(only.at(0.0)[0], Q[0])


@pytest.mark.parametrize(
    ("names", "points", "says"),
    [
        (["hip", "kne"], [TrajectoryPoint(1.0, [0, 0])], "did you mean knee"),
        (["hip", "hip"], [TrajectoryPoint(1.0, [0, 0])], "named once"),
        ([], [TrajectoryPoint(1.0, [])], "named once"),
        (NAMES, [], "no points"),
        (NAMES, [TrajectoryPoint(1.0, [0.0])], "point 0 needs 2 values"),
        (NAMES, [TrajectoryPoint(1.0, [0, 0], [1.0])], "point 0 needs 2 values"),
        (NAMES, [TrajectoryPoint(1.0, [0, 0]), TrajectoryPoint(1.0, [0, 0])], "the time of point 1"),
        (NAMES, [TrajectoryPoint(-1.0, [0, 0])], "the time of point 0"),
        (NAMES, [TrajectoryPoint(1.0, [0, np.nan])], "point 0 has a value that is not a number"),
        (NAMES, [TrajectoryPoint(1.0, [0, 0], [0, -2 * LARGEST])], "point 0 has a value beyond 1e\\+09"),
    ],
)
def test_a_trajectory_with_a_mistake_is_refused(names, points, says):
    with pytest.raises(HumanoidError, match=says):
        spline(points, names)


@pytest.mark.parametrize("seconds", [1e-9, 1.0, 2.0**31], ids=str)
@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_the_largest_values_in_the_shortest_and_the_longest_times_are_computed(seconds, kinds):
    rng = np.random.default_rng(0)
    points = [TrajectoryPoint(k * seconds, *rng.choice([-LARGEST, LARGEST], (kinds, 2)).tolist()) for k in range(1, 9)]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        made = spline(points)
        values = [made.at(x) for x in np.linspace(0.0, made.duration, 100)]
    assert np.isfinite(values).all()


def test_the_time_of_a_trajectory_begins_when_the_robot_follows():
    player = TrajectoryPlayer(["ankle", *NAMES])
    assert player.command(0.0, True) is None and player.over(0.0)
    q, v = np.array([9.0, 0.1, 0.2]), np.zeros(3)
    player.start(["knee"], [TrajectoryPoint(1.0, [1.2])], q, v)
    for now in (10.0, 15.0):
        c = player.command(now, follows=False)
        np.testing.assert_array_equal(c.q, [np.nan, np.nan, 0.2])
        assert c.v[2] == 0.0 and not player.over(now)
    player.command(20.0, follows=True)
    assert player.command(20.5, follows=True).q[2] == pytest.approx(0.7) and not player.over(20.9)
    assert player.command(30.0, follows=True).q[2] == 1.2 and player.over(30.0)
    with pytest.raises(HumanoidError):
        player.start(["kne"], [TrajectoryPoint(1.0, [1.2])], q, v)
    assert player.command(30.0, True).q[2] == 1.2, "a refused one changes nothing"
    player.stop()
    assert player.command(30.0, True) is None
