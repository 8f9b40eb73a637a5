"""The rules of the study: what makes a hypothesis hold, fail, or stay open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.studies.dube2012 import (
    FAILS,
    HOLDS,
    HYPOTHESES,
    OPEN,
    Hypothesis,
    Part,
    girdle_waist,
    hypotheses,
)
from evidence.studies.dube2012.lab import ROBOTS
from evidence.studies.report import DEPENDS, conclude, decide, lower, over_clips, similar
from test.studies.dube2012.conftest import verdict

error = st.floats(0, 1)


def test_clips_that_differ_decide_nothing_together_and_open_ones_do_not_count():
    cases = {(HOLDS, OPEN): HOLDS, (FAILS, FAILS): FAILS, (OPEN, OPEN): OPEN, (HOLDS, OPEN, FAILS): DEPENDS, (): OPEN}
    assert {v: over_clips(v) for v in cases} == cases


class Made:
    """A trial whose error and collisions are given instead of measured."""

    def __init__(self, error=0.02, spread=0.01, hits=0):
        self._error, self._spread = error, spread
        self.joints = np.array([error, spread])
        self.collisions = type(
            "Count", (), {"total": hits, "arm_torso": dict.fromkeys(hypotheses.ARM_TORSO_COLUMNS, hits)}
        )

    def error(self, *links, frames=None):
        return self._error

    def std(self):
        return self._spread

    def limits(self, most=3):
        return "at no limit"


def test_all_hypotheses_are_there_with_a_rule_each():
    assert list(HYPOTHESES) == [f"H{k}" for k in range(1, 22)]
    for name, h in HYPOTHESES.items():
        assert h.name == name and len(h.rule) > 40 and len(h.reason) > 20 and h.statement[0].isupper()


@given(error, error)
def test_of_two_errors_at_most_one_is_clearly_lower(a, b):
    assert [lower(a, b), lower(b, a), similar(a, b)].count(True) == 1


def test_a_difference_counts_beyond_a_millimetre_and_beyond_5_percent():
    assert lower(0.010, 0.0112) and not lower(0.010, 0.0109)
    assert lower(0.100, 0.106) and not lower(0.100, 0.105)


def test_a_hypothesis_fails_with_any_part_and_stays_open_with_any_other():
    h = Hypothesis("H0", "S", "R", lambda lab: [], "because")
    parts = {v: Part("claim", v, {}, seen="seen") for v in (HOLDS, FAILS, OPEN)}
    for given_parts, expected in (
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, OPEN), OPEN),
        ((OPEN, FAILS), FAILS),
        ((), OPEN),
    ):
        finding = conclude(h, "clip", [parts[v] for v in given_parts])
        assert finding.verdict == expected
        assert finding.reason == ("because; seen" if expected == FAILS else "")
    assert (decide(True, False), decide(True), decide(False)) == (OPEN, HOLDS, FAILS)


def test_the_order_of_the_robots_holds_only_as_printed():
    right = dict(zip(hypotheses.BEST_FIRST, (Made(e / 100) for e in (2, 3, 5, 6, 9)), strict=True))
    assert verdict(hypotheses.H1, right) == HOLDS
    assert verdict(hypotheses.H1, right | {"hrp2": Made(0.04)}) == FAILS


@pytest.mark.parametrize(
    ("one", "two", "three", "expected"), [(7, 4, 3, HOLDS), (7, 6, 3, FAILS), (3.05, 3.0, 3.0, OPEN)]
)
def test_waist_joints_are_compared_by_what_each_gains(one, two, three, expected):
    trials = {
        ("armar3", "locked waist_flexion waist_lateral_flexion"): Made(one / 100),
        ("armar3", "locked waist_lateral_flexion"): Made(two / 100),
        ("armar3", "locked waist_flexion"): Made(two / 100),
        "armar3": Made(three / 100),
    }
    assert verdict(girdle_waist.H4, trials) == expected


@pytest.mark.parametrize(("rotation", "suralp", "expected"), [(8, 9, HOLDS), (5, 9, FAILS), (8, 2, FAILS)])
def test_rotation_only_must_double_the_error_and_suralp_be_worst(rotation, suralp, expected):
    trials = {name: Made(0.03) for name in ROBOTS} | {"suralp": Made(suralp / 100)}
    trials["armar3", "locked waist_flexion waist_lateral_flexion"] = Made(rotation / 100)
    assert verdict(girdle_waist.H5, trials) == expected


@pytest.mark.parametrize(
    ("errors", "hits", "expected"),
    [
        ((3, 3.2, 3.6, 4, 5), (0, 0, 1, 2, 5), HOLDS),
        ((3, 3.2, 3.6, 4, 5), (0, 0, 0, 0, 0), OPEN),
        ((3, 3.2, 3.6, 4, 5), (5, 0, 0, 0, 0), FAILS),
        ((5, 4, 3, 3, 3), (0, 0, 1, 2, 5), FAILS),
    ],
)
def test_waist_height_needs_error_and_collisions_to_grow(monkeypatch, errors, hits, expected):
    monkeypatch.setattr(girdle_waist, "_sideways", lambda trial: 0.5)
    at = zip(girdle_waist.HEIGHTS, errors, hits, strict=True)
    trials = {("hrp2", f"waist at {h:.2f}"): Made(e / 100, hits=n) for h, e, n in at}
    assert verdict(girdle_waist.H6, trials) == expected


@pytest.mark.parametrize(
    ("shoulders", "wrists", "expected"), [(0.02, 0.015, HOLDS), (0.02, 0.005, FAILS), (0.0005, 0.0005, OPEN)]
)
def test_compensation_is_what_wrists_lose_of_what_shoulders_lose(shoulders, wrists, expected):
    class Locked(Made):
        def error(self, *links, frames=None):
            return 0.02 + {girdle_waist.GH: shoulders, girdle_waist.WRISTS: wrists}[links]

    assert verdict(girdle_waist.H3, {"we4rii": Made(0.02), ("we4rii", "girdle locked"): Locked()}) == expected


@pytest.mark.parametrize(
    ("hits", "mean", "spread", "expected"),
    [(5, 0.03, 0.02, HOLDS), (5, 0.03, 0.005, FAILS), (5, 0.01, 0.02, FAILS), (0, 0.02, 0.01, OPEN)],
)
def test_avoidance_must_raise_mean_and_spread_on_every_robot_that_collides(hits, mean, spread, expected):
    trials = {name: Made(0.02, 0.01, hits) for name in ROBOTS}
    trials |= {(name, way): Made(mean, spread) for name in ROBOTS for way in ("Dube 2012", "constrained")}
    assert verdict(hypotheses.H15, trials) == expected


@pytest.mark.parametrize(("before", "left", "expected"), [(5, 0, HOLDS), (5, 1, FAILS), (0, 0, OPEN)])
def test_avoidance_must_leave_nothing(before, left, expected):
    trials = {name: Made(hits=before) for name in ROBOTS}
    trials |= {(name, way): Made(hits=left) for name in ROBOTS for way in ("Dube 2012", "constrained")}
    assert verdict(hypotheses.H16, trials) == expected


def test_collisions_too_few_to_compare_decide_nothing():
    class Hits(Made):
        def __init__(self, *counts):
            super().__init__()
            table = dict(zip(hypotheses.ARM_TORSO_COLUMNS, counts, strict=True))
            self.collisions = type("Count", (), {"total": sum(counts), "arm_torso": table})

    published = {
        "armar3": Hits(665, 167, 447, 0),
        "hrp2": Hits(798, 397, 641, 22),
        "suralp": Hits(767, 31, 29, 0),
        "wabian2": Hits(497, 45, 0, 0),
        "we4rii": Hits(388, 43, 0, 0),
    }
    assert verdict(hypotheses.H17, published) == HOLDS, "Table 6.6 itself"
    assert verdict(hypotheses.H17, published | {"hrp2": Hits(1, 0, 0, 0)}) == FAILS
    assert verdict(hypotheses.H17, {name: Hits(1, 0, 0, 0) for name in ROBOTS}) == OPEN


@pytest.mark.parametrize(("own", "opened", "expected"), [(0.012, 0.009, HOLDS), (0.012, 0.004, FAILS)])
def test_recommended_ranges_suffice_when_more_gains_little(own, opened, expected):
    trials = {"recommended": Made(own), ("recommended", "opened"): Made(opened), "we4rii": Made()}
    assert verdict(hypotheses.H20, trials) == expected
