"""Grids of postures and their cost (TE-06, TE-07), and random walks of joint angles (TE-17)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.postures import (
    check_cost,
    counts_by_range,
    fit_cost,
    grid_postures,
    random_walk,
)

LIMITS = np.deg2rad([[-20, 90], [-60, 40], [-110, -5]])
GRIDS = {
    "neck": ((5, 5, 5, 5, 5, 7, 7, 7), 1_071_875),
    "scapula": ((5, 5, 5, 5, 7, 7, 8, 9), 2_205_000),
    "shoulder": ((5, 5, 5, 6, 7, 7, 8, 9), 2_646_000),
}


def test_the_grids_of_table_one_have_its_sizes():
    for counts, size in GRIDS.values():
        assert fit_cost(counts, 5).postures == size and fit_cost(counts, 5).monomials == 1287
        axes = [np.arange(n, dtype=float) for n in counts]
        assert len(grid_postures(axes[:4])) * len(grid_postures(axes[4:])) == size


def test_a_group_beyond_the_limits_is_refused_before_it_is_built():
    with pytest.raises(ConfigError, match=r"9 joints in one group, at most 8"):
        check_cost([5] * 9, 5)
    with pytest.raises(ConfigError, match=r"43,046,721 postures is beyond"):
        check_cost([9] * 8, 5)


def test_a_walk_stays_within_its_limits_and_moves_as_asked():
    start, sigma = np.deg2rad([90, 0, -50]), np.deg2rad(1.0)
    q = random_walk(LIMITS, start, 20000, sigma, seed=3)
    assert np.array_equal(q[0], start) and q.shape == (20001, 3)
    assert (q >= LIMITS[:, 0]).all() and (q <= LIMITS[:, 1]).all()
    assert (np.ptp(q, axis=0) > 0.95 * np.ptp(LIMITS, axis=1)).all()  # it gets about
    step = np.diff(q, axis=0)
    assert np.allclose(step.std(axis=0), sigma, rtol=0.05)
    inside = [np.corrcoef(step[:-1, j], step[1:, j])[0, 1] for j in range(3)]
    assert all(0.8 < c < 0.92 for c in inside)  # 0.9 but for the reflections
    assert np.array_equal(q, random_walk(LIMITS, start, 20000, sigma, seed=3))


def test_a_walk_that_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="not within the joint limits"):
        random_walk(LIMITS, np.zeros(3), 10, 0.01)
    with pytest.raises(ConfigError, match="sigma"):
        random_walk(LIMITS, LIMITS.mean(axis=1), 10, 5.0)


@pytest.mark.parametrize(
    ("ranges", "counts"),
    [
        ([(-1.0, 1.0), (-0.5, 0.5), (0.0, 1.5)], (9, 5, 7)),
        ([(2.0, 4.0), (2.5, 3.5), (-9.0, -7.5)], (9, 5, 7)),
        ([(-1.0, 1.0), (0.0, 2.0)], (5, 5)),
        ([(0.0, 0.0)], (5,)),
    ],
)
def test_a_grid_has_more_values_of_a_joint_with_more_range_wherever_that_lies(ranges, counts):
    assert counts_by_range(np.array(ranges)) == counts
