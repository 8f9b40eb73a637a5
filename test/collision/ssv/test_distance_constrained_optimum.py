"""The constrained optimiser of section 6.4.7 against the six functions, and on shapes that have none."""

import numpy as np
import pytest

from humanoid_control.collision.ssv.distance import volume_distances as distances
from test.reference.ssv_general import ConvexSet, constrained_minimum, core


@pytest.mark.parametrize("function", ["pp", "pl", "pt", "ll", "lt", "tt"])
def test_six_functions_agree_with_the_constrained_optimiser(reference, rng, function):
    v0, r0, v1, r1 = reference.random_pairs(function, 150, rng)
    ours = distances(function, v0, r0, v1, r1)
    for k in range(len(r0)):
        least = constrained_minimum(core(v0[k]), core(v1[k]))
        assert least.violation < 1e-8
        assert abs(least.distance - ours.core[k]) < 1e-6
        assert least.stationarity < 1e-5


def test_a_point_that_is_not_the_nearest_breaks_the_multiplier_rule(rng):
    """Stopped too early, the verifier says so."""
    v0, v1 = rng.normal(size=(2, 3, 3))
    v1 += [4.0, 0, 0]
    assert constrained_minimum(core(v0), core(v1), tolerance=1e9).stationarity > 0.1
    assert constrained_minimum(core(v0), core(v1)).stationarity < 1e-6


def disc(radius):
    """A flat disc in the x-y plane: a linear set with a nonlinear constraint (table 6.8, second row)."""
    P = np.array([[1.0, 0], [0, 1], [0, 0]])
    return ConvexSet(
        np.zeros(2),
        lambda x: P @ x,
        lambda x: P,
        lambda x: np.array([x @ x - radius**2]),
        lambda x: 2 * x[None],
    )


def test_works_for_sets_without_a_closed_form(rng):
    """A point's distance from a disc is known; so is that of a line above it."""
    for x in rng.normal(size=(50, 3)):
        rho = np.hypot(x[0], x[1])
        least = constrained_minimum(disc(0.7), core(x[None]))
        assert least.distance == pytest.approx(np.hypot(max(0.0, rho - 0.7), x[2]), abs=1e-6)
    line = np.array([[0.2, -1, 0.3], [0.2, 1, 0.5]])
    x = line[0] + np.linspace(0, 1, 200001)[:, None] * (line[1] - line[0])
    dense = np.hypot(np.maximum(0, np.hypot(x[:, 0], x[:, 1]) - 0.7), x[:, 2]).min()
    assert constrained_minimum(disc(0.7), core(line)).distance == pytest.approx(dense, abs=1e-6)
