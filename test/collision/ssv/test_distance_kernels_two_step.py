"""The two-step line-triangle distance of Schwienbacher 2014: the same as the unified one, in all its cases."""

import numpy as np
import pytest

from evidence.benchmarks.ssv_distance import line_triangle_two_step, measure_blocks_two_step, region
from humanoid_control.collision.ssv.distance import from_blocks, to_blocks
from humanoid_control.collision.ssv.distance import volume_distances as distances


def two_step(v0, r0, v1, r1):
    blocks = to_blocks(v0, r0, v1, r1)
    measure_blocks_two_step(blocks, len(r0))
    return from_blocks(blocks, len(r0))


@pytest.mark.parametrize("spread", [0.01, 0.5])
def test_two_steps_give_the_unified_distance(reference, rng, spread):
    args = reference.random_pairs("lt", 20000, rng, spread)
    a, b = two_step(*args), distances("lt", *args)
    assert np.abs(a.core - b.core).max() < 1e-9


def test_parallel_and_degenerate_cases_go_to_the_unified_form(reference, rng):
    v0, r0, v1, r1 = reference.random_pairs("lt", 3000, rng)
    e = v1[:, 1:] - v1[:, :1]
    v0[:1000, 1] = v0[:1000, 0] + (rng.normal(size=(1000, 2, 1)) * e[:1000]).sum(1)  # parallel to the plane
    v1[1000:2000, 2] = v1[1000:2000, 0] + 0.4 * e[1000:2000, 0]  # no area
    v0[2000:, 1] = v0[2000:, 0]  # no length
    assert np.abs(two_step(v0, r0, v1, r1).core - distances("lt", v0, r0, v1, r1).core).max() < 1e-9


def test_all_twenty_one_cases_occur(rng):
    """Three states of the line (start, between, end) times seven of the triangle."""
    seen = set()
    e0, e1 = (1.0, 0.0, 0.0), (0.2, 1.0, 0.0)
    for w, u in 1.5 * rng.normal(size=(3000, 2, 3)):
        s = np.clip(-w[2] / u[2], 0, 1)
        y = w + s * u
        b = y[1]
        where = region(y[0] - 0.2 * b, b)
        seen.add((where, int(s > 0) + int(s == 1)))
        dd = line_triangle_two_step(tuple(w), tuple(u), e0, e1)[0]
        vertices = np.array([[0.0, 0, 0], e0, e1])
        line = np.array([w, w + u])
        zero = np.zeros(1)
        assert np.sqrt(dd) == pytest.approx(distances("lt", line[None], zero, vertices[None], zero).core[0], abs=1e-9)
    assert len(seen) == 21
