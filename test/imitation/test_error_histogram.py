"""Histogram and grades against numpy, scipy and the examples of the source."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from humanoid_control.evaluation.tracking_error import (
    BIN,
    HEIGHT_STEP,
    HEIGHTS,
    SPREAD_STEP,
    SPREADS,
    error_histogram,
    grade,
    shape_name,
    skewness,
)

errors = st.lists(st.floats(0, 1.5), min_size=1, max_size=200).map(np.array)


@given(errors)
def test_every_frame_is_in_exactly_one_bin(e):
    h = error_histogram(e)
    assert h.counts.sum() == len(e) and len(h.edges) == len(h.counts) + 1
    assert np.diff(h.edges) == pytest.approx(0.02)
    assert h.edges[0] == 0 and h.edges[-1] > e.max() - 1e-12 and h.counts[-1] > 0
    assert h.height == h.counts.max() == h.counts[round(h.mode / 0.02)]


def test_counts_are_numpys():
    e = np.random.default_rng(0).gamma(2.0, 0.03, 3000)
    h = error_histogram(e)
    assert h.counts.tolist() == np.histogram(e, h.edges)[0].tolist()


@given(errors)
def test_skewness_is_scipys(e):
    ours = skewness(e)
    if e.std() < 1e-6:
        assert abs(ours) < 50  # all but equal: rounding decides
    else:
        assert ours == pytest.approx(stats.skew(e), rel=1e-6, abs=1e-6)


def test_equal_errors_have_no_skew_and_no_spread():
    h = error_histogram(np.full(300, 0.05))
    assert (h.skewness, h.spread, h.shape, h.spread_grade) == (0.0, 0.0, "almost symmetrical", "very low")
    assert (h.mode, h.height, h.height_share, h.height_grade) == (pytest.approx(0.04), 300, 1.0, "very low")


@pytest.mark.parametrize(
    ("skew", "name"),
    [
        (0.0, "almost symmetrical"),
        (-0.2, "almost symmetrical"),
        (0.3, "slight right skew"),
        (0.7, "right skew"),
        (1.0, "distinct right skew"),
        (9.0, "distinct right skew"),
        (-0.7, "left skew"),
    ],
)
def test_a_shape_is_named_by_its_skewness(skew, name):
    assert shape_name(skew) == name


def test_mirrored_errors_lean_to_the_other_side():
    e = np.random.default_rng(1).gamma(2.0, 0.03, 2000)
    assert error_histogram(e).shape == "distinct right skew"
    assert error_histogram(e.max() - e).shape == "distinct left skew"


def test_grades_of_spread_go_in_steps_of_10_cm_and_of_height_in_200_frames():
    assert [grade(v, SPREAD_STEP, SPREADS) for v in (0, 0.09, 0.15, 0.25, 0.35, 0.45, 0.55, 3)] == [
        "very low",
        "very low",
        "low",
        "moderate",
        "high",
        "very high",
        "extremely high",
        "extremely high",
    ]
    assert [grade(v, HEIGHT_STEP, HEIGHTS) for v in (0, 199, 200, 400, 600, 999, 1000, 5000)] == [
        "extremely low",
        "extremely low",
        "very low",
        "low",
        "medium",
        "high",
        "very high",
        "very high",
    ]


def test_the_mode_is_an_even_number_of_centimetres():
    h = error_histogram(np.array([0.061, 0.0799, 0.065, 0.2]))
    assert 100 * h.mode == pytest.approx(6) and BIN == 0.02
