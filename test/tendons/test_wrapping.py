"""Ways around solids by their geometry: tangent to them, never through them, continuous where they lift off."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.tendons.routing.wrapping import APART, AROUND, FREE, SIDED, THROUGH, TOUCH, wrap

coordinate = st.floats(-0.2, 0.2)
point = st.tuples(coordinate, coordinate, coordinate)
R = 0.04


def meet(ball, mode, side, p0, p1):
    met, arc, t0, t1, sense = wrap(ball, mode, R, side, p0, p1)
    return met, arc, np.array(t0), np.array(t1), sense


def flat(ball, x):
    """What is left of a vector without its part along a cylinder."""
    return np.array(x) * (1, 1, 1 if ball else 0)


@settings(max_examples=200)
@given(st.booleans(), st.sampled_from([FREE, SIDED, THROUGH]), point, point, point)
def test_a_tendon_touches_a_solid_tangentially_and_never_gets_shorter(ball, mode, side, p0, p1):
    met, arc, t0, t1, _ = meet(ball, mode, side, p0, p1)
    a, b = np.array(p0), np.array(p1)
    assert np.isfinite([arc, *t0, *t1]).all()
    if met == APART:
        if mode == FREE and min(np.linalg.norm(flat(ball, a)), np.linalg.norm(flat(ball, b))) > R:
            s = np.linspace(0, 1, 101)[:, None]
            assert np.linalg.norm(flat(ball, a + s * (b - a)), axis=1).min() > R - 1e-9, "it would cut through"
        return
    for t in (t0, t1):
        assert abs(np.linalg.norm(flat(ball, t)) - R) < 1e-12
    whole = np.linalg.norm(a - t0) + arc + np.linalg.norm(t1 - b)
    assert whole >= np.linalg.norm(a - b) - 1e-12
    assert (met == TOUCH) == (mode == THROUGH)
    if met == AROUND:
        for t, p in ((t0, a), (t1, b)):
            assert abs(flat(ball, t) @ flat(ball, p - t)) < 1e-12, "a tangent"
        assert arc >= np.linalg.norm(t1 - t0) - 1e-12
    else:
        angles = [flat(ball, t0) @ flat(ball, t0 - p) / np.linalg.norm(t0 - p) for p in (a, b)]
        assert abs(angles[0] - angles[1]) < 1e-9, "both parts make the same angle with the ring"


def test_a_cylinder_is_wrapped_in_a_helix_of_one_pitch():
    met, arc, t0, t1, _ = meet(False, FREE, (0.0, 0.0, 0.0), (-0.1, 0.01, -0.05), (0.1, -0.005, 0.08))
    p0, p1 = np.array([-0.1, 0.01, -0.05]), np.array([0.1, -0.005, 0.08])
    assert met == AROUND
    climbs = [(t0 - p0)[2] / np.linalg.norm((t0 - p0)[:2]), (p1 - t1)[2] / np.linalg.norm((p1 - t1)[:2])]
    climbs.append((t1 - t0)[2] / np.sqrt(arc**2 - (t1 - t0)[2] ** 2))
    np.testing.assert_allclose(climbs, climbs[0], rtol=1e-9)


def test_the_length_has_no_jump_where_a_tendon_lifts_off():
    lengths = []
    heights = np.linspace(0.02, 0.06, 2001)
    for h in heights:
        p0, p1 = (-0.1, float(h), 0.0), (0.1, float(h), 0.03)
        met, arc, t0, t1, _ = meet(True, SIDED, (0.0, 0.1, 0.0), p0, p1)
        straight = np.linalg.norm(np.subtract(p1, p0))
        lengths.append(straight if met == APART else np.linalg.norm(p0 - t0) + arc + np.linalg.norm(t1 - p1))
    assert np.abs(np.diff(lengths)).max() < 2e-5 and min(lengths) < max(lengths) - 1e-3


def test_the_side_decides_which_way_round():
    ends = ((-0.1, 0.01, 0.0), (0.1, 0.01, 0.0))
    above = meet(True, SIDED, (0.0, 0.1, 0.0), *ends)
    below = meet(True, SIDED, (0.0, -0.1, 0.0), *ends)
    short = meet(True, FREE, (0.0, 0.0, 0.0), *ends)
    assert above[2][1] > 0 > below[2][1] and above[1] < below[1] and above[4] == -below[4]
    assert short[1] == above[1]
