"""A mistake is answered with the nearest right name, in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.errors import HumanoidError, UnknownNameError, nearest_names

ROBOTS = ["armar3", "hrp2", "suralp", "wabian2", "we4rii", "lola"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("hpr2", "hrp2"), ("wabian", "wabian2"), ("Lola", "lola"), ("we4r2", "we4rii"), ("suralpp", "suralp")],
)
def test_a_typo_is_answered_with_what_was_meant(typed, meant):
    assert nearest_names(typed, ROBOTS)[0] == meant
    assert meant in str(UnknownNameError("robot", typed, ROBOTS))


def test_without_a_near_name_all_are_listed():
    text = str(UnknownNameError("robot", "xyzzy", ROBOTS))
    assert all(name in text for name in ROBOTS)


def test_where_nothing_is_known_the_error_says_so():
    assert str(UnknownNameError("group", "front", [], hint="(in a pair)")) == (
        "unknown group 'front': none available (in a pair)"
    )


@given(st.text(max_size=30))
def test_any_text_gives_one_line_and_only_known_names(typed):
    assert set(nearest_names(typed, ROBOTS)) <= set(ROBOTS)
    error = UnknownNameError("robot", typed.replace("\n", " ").replace("\r", " "), ROBOTS)
    assert isinstance(error, HumanoidError)
    assert str(error).startswith("unknown robot")
