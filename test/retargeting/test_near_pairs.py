"""Distances that are carried on by their gradients between measurements, against measuring everything anew."""

import numpy as np
import pytest

from humanoid_control.retargeting import WholeBodyRetargeter
from humanoid_control.retargeting.frame_solver import clearance
from humanoid_control.retargeting.problem import (
    FAR_OFF,
    STRAIGHT,
    TIGHT,
    carried_rows,
    distance_rows,
    measure,
    near_pairs,
    place_points,
    scratch_for,
)
from humanoid_control.robots import load_robot

NEAR = 0.1  # [m]


@pytest.fixture(params=["hrp2", "suralp"])
def whole(request):
    """Problem of a whole body, a posture that is not neutral, and a direction of its joints whose largest is one."""
    problem, rng = WholeBodyRetargeter(load_robot(request.param, "floating")).problem, np.random.default_rng(3)
    span = np.minimum(problem.upper - problem.lower, 1.0)
    span[: problem.base] = 0.0
    x = np.clip(problem.rest + 0.2 * span * rng.uniform(-1, 1, len(span)), problem.lower, problem.upper)
    direction = rng.uniform(-1, 1, len(span))
    direction[: problem.base] = 0.0
    return problem, x, direction / np.abs(direction).max()


def carried(problem, w, x, threshold=NEAR):
    """Distances and gradients by pair."""
    place_points(problem, x, w)
    count = carried_rows(problem, x, threshold, w)
    return {int(w.near.pair[k]): (w.b[k], w.G[k].copy()) for k in range(count)}


def exact(problem, x, threshold=np.inf):
    """Distances and gradients by pair, measured at x."""
    w = scratch_for(problem)
    place_points(problem, x, w)
    count = near_pairs(problem, w, threshold)
    distance_rows(problem, w, count, w.G)
    return {int(w.near.pair[k]): (w.near.distance[k], w.G[k].copy()) for k in range(count)}


def remembered(problem, x):
    w = scratch_for(problem)
    place_points(problem, x, w)
    assert measure(problem, x, NEAR, w) >= 3
    return w


def test_where_they_were_measured_distances_are_exact(whole):
    problem, x, _ = whole
    found, true = carried(problem, remembered(problem, x), x), exact(problem, x, NEAR)
    assert found.keys() == true.keys()
    for pair, (distance, gradient) in found.items():
        assert distance == true[pair][0]
        np.testing.assert_array_equal(gradient, true[pair][1])


def test_nearby_their_error_goes_with_the_square_of_the_way(whole):
    problem, x, direction = whole
    w, errors = remembered(problem, x), []
    for step in (STRAIGHT, STRAIGHT / 2):
        true = exact(problem, x + step * direction)
        found = carried(problem, w, x + step * direction)
        errors.append(np.array([found[pair][0] - true[pair][0] for pair in found]))
    assert w.measured.found[0] >= 3 and np.all(w.measured.x == x)  # nothing was measured in between
    assert 0.0 < np.abs(errors[0]).max() < 3e-3
    curved = np.abs(errors[0]) > 1e-9
    assert curved.sum() >= 3 and np.median(np.abs(errors[1][curved] / errors[0][curved])) == pytest.approx(
        0.25, abs=0.05
    )


def test_farther_off_what_is_close_is_measured_again(whole):
    problem, x, direction = whole
    close = 0
    for step in (2.0 * STRAIGHT, 0.15, -0.15):
        assert step < FAR_OFF
        w, true = remembered(problem, x), exact(problem, x + step * direction)
        start = exact(problem, x)
        for pair, (distance, gradient) in carried(problem, w, x + step * direction).items():
            line = start[pair][0] + start[pair][1] @ (step * direction)
            if line < TIGHT:
                close += 1
                assert distance == pytest.approx(true[pair][0], abs=1e-12)
                np.testing.assert_allclose(gradient, true[pair][1], atol=1e-12)
            else:
                assert distance == pytest.approx(line, abs=1e-12)
    assert close >= 3


def test_far_off_it_is_found_anew_which_are_near(whole):
    problem, x, direction = whole
    there = x + 1.01 * FAR_OFF * direction
    found, true = carried(problem, remembered(problem, x), there), exact(problem, there, NEAR)
    assert {p: d for p, (d, _) in found.items()} == {p: d for p, (d, _) in true.items()}


def test_a_floating_base_moves_no_pair(whole):
    problem, x, _ = whole
    w, moved = remembered(problem, x), x.copy()
    moved[: problem.base] = (3.0, -2.0, 1.0, 0.4, -0.3, 0.2)
    before, after = exact(problem, x, NEAR), carried(problem, w, moved)
    assert np.all(w.measured.x == x)  # nothing was measured again
    assert before.keys() == after.keys()
    for pair, (distance, gradient) in after.items():
        assert distance == pytest.approx(before[pair][0], abs=1e-12)
        np.testing.assert_allclose(gradient, before[pair][1], atol=1e-12)


def test_what_was_measured_of_other_pairs_or_by_others_is_not_carried_on(whole):
    problem, x, direction = whole
    w, there = remembered(problem, x), x + 0.5 * STRAIGHT * direction
    fewer = problem.with_pairs(np.arange(len(problem.pairs)) % 2 == 0)
    true = exact(fewer, there, NEAR)
    assert {p: d for p, (d, _) in carried(fewer, w, there).items()} == {p: d for p, (d, _) in true.items()}
    w = remembered(problem, x)
    assert set(carried(problem, w, there, 0.03)) == set(exact(problem, there, 0.03))
    w = remembered(problem, x)
    clearance(problem, x, w)  # it looks for pairs nearer than 5 cm only
    assert set(carried(problem, w, there)) == set(exact(problem, there, NEAR))
