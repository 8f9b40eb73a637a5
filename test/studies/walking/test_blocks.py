"""Each block of the walker does what it is there for: without it a walk gets worse, or ends in a fall."""

import functools

import numpy as np
import pytest

from evidence.studies.walking.rows import (
    ADJUSTED_TIMES,
    BLOCKS,
    LONG_ROWS,
    PLANNER_ROWS,
    WITHOUT,
    StudyRow,
    try_row,
)

ROWS = [r for r in LONG_ROWS if r.group == BLOCKS]


def pair(block: str) -> tuple[StudyRow, StudyRow]:
    """The row without a block, and the same with all of them."""
    off = next(r for r in ROWS if r.without == block)
    return next(r for r in ROWS if r.name == off.name and not r.without), off


@functools.cache
def walked(row: StudyRow, steps: int):
    """The row with all blocks is the same for several of them."""
    return try_row(row, steps, 0)


def test_every_block_has_its_pair_of_rows():
    assert {r.without for r in ROWS} == set(WITHOUT) - {ADJUSTED_TIMES}
    assert all(pair(block)[0].title == pair(block)[1].name for block in WITHOUT if block != ADJUSTED_TIMES)
    titles = [r.title for r in PLANNER_ROWS if r.name == "20 N s back"]
    assert titles[0] == "20 N s back" and len(set(titles)) == 4, "the same push, planned in four ways"


@pytest.mark.nightly
@pytest.mark.parametrize("block", ["foot force control", "disturbance observer", "adjusted steps"])
def test_a_robot_falls_without(block):
    on, off = (walked(r, 12) for r in pair(block))
    assert not on.fell and on.steps >= 12
    assert off.fell and off.steps < 12


@pytest.mark.nightly
@pytest.mark.parametrize(("block", "times"), [("dynamics filter", 3.0), ("feedback of the divergent component", 1.7)])
def test_the_divergent_component_is_farther_from_its_plan_without(block, times):
    on, off = (walked(r, 12) for r in pair(block))
    assert not on.fell and on.steps >= 12
    assert off.dcm_error[0] > times * on.dcm_error[0] and np.hypot(*off.dcm_error) > 1.5 * np.hypot(*on.dcm_error)


@pytest.mark.nightly
def test_soles_come_down_elsewhere_without_their_guide():
    on, off = (walked(r, 20) for r in pair("landing where planned"))
    assert not on.fell and off.fell
    assert on.sole_error < 0.015 < 2 * on.sole_error < off.sole_error
