"""Contact plan: a foot always stands, both do around every change, and swings have time, whatever the contacts."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.performing import FeasibilitySettings
from humanoid_control.performing.contact_plan import FootMotion, fill_flights, put_down, steady_stands, toe_roll
from humanoid_control.retargeting.whole_body.contacts import HEEL, TOE, runs

RULES = FeasibilitySettings()
T = 400


def motion(frames=T, place=None, height=0.2, yaw=None):
    """Feet that move far and high, so that no gap is a creep."""
    place = np.cumsum(np.full((frames, 2, 2), 0.02), axis=0) if place is None else place
    return FootMotion(
        place, np.full((frames, 2), height), np.zeros((frames, 2)) if yaw is None else yaw, np.ones(frames)
    )


def stands_from(*swings, frames=T):
    """Contacts (T, 2) of both feet but for swings (foot, first, end)."""
    out = np.ones((frames, 2), dtype=bool)
    for foot, first, end in swings:
        out[first:end, foot] = False
    return out


lengths = st.lists(st.integers(1, 60), min_size=2, max_size=20)


@given(lengths, lengths, st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_plan_can_be_carried(left, right, left_first, right_first):
    """At half of the pace or speed double support lasts twice as long: on one foot for as long, G1 fell in salsas."""
    flags = np.ones((T, 2), dtype=bool)
    for f, parts, first in ((0, left, left_first), (1, right, right_first)):
        t, on = 0, first
        for part in parts:
            flags[t : t + part, f] = on
            t, on = t + part, not on
    slow = RULES.at_speed(0.5)
    for rules, both in ((RULES, 10), (replace(RULES, pace=1.5), 10), (replace(RULES, pace=0.5), 20), (slow, 20)):
        plan = steady_stands(flags, motion(), rules)
        assert plan.any(axis=1).all()
        alone = np.where(plan.all(axis=1), -1, np.where(plan[:, 0], 0, 1))
        single = np.flatnonzero(alone >= 0)
        changes = alone[single[1:]] != alone[single[:-1]]
        assert (np.diff(single)[changes] - 1 >= both).all()
        for f in (0, 1):
            assert all(b - a >= RULES.frames(RULES.shortest_swing) for a, b in runs(~plan[:, f]))


def test_mirrored_contacts_have_the_mirrored_plan():
    rng = np.random.default_rng(3)
    for _ in range(15):
        flags = np.repeat(rng.random((40, 2)) < 0.6, 10, axis=0)
        same = steady_stands(flags, motion(), RULES)
        assert (steady_stands(flags[:, ::-1], motion(), RULES)[:, ::-1] == same).all()


def test_a_plain_walk_is_left_as_it_is():
    walk = stands_from((0, 50, 100), (1, 120, 170), (0, 190, 240))
    assert (steady_stands(walk, motion(), RULES) == walk).all()


def test_a_creep_is_no_step_and_a_brush_is_no_contact():
    still = motion(place=np.zeros((T, 2, 2)), height=0.01)
    assert steady_stands(stands_from((0, 50, 110)), still, RULES).all()
    turning = motion(place=np.zeros((T, 2, 2)), height=0.01, yaw=np.linspace(0, 6, 2 * T).reshape(T, 2))
    assert not steady_stands(stands_from((0, 50, 110)), turning, RULES)[80, 0]
    brushed = stands_from((0, 50, 80), (0, 90, 130))
    assert runs(~steady_stands(brushed, motion(), RULES)[:, 0]) == [(50, 130)]


def test_a_flight_is_filled_and_told():
    flags = stands_from((0, 100, 180), (1, 140, 260))
    changes = []
    plan = steady_stands(flags, motion(), RULES, changes)
    assert plan.any(axis=1).all()
    assert [(c.time, c.what, c.amount) for c in changes] == [(1.4, "flight filled", pytest.approx(0.4))]
    # The foot that left last stands until the middle, the one that lands from there.
    halves = stands_from((1, 140, 260), (0, 100, 180))
    fill_flights(halves)
    assert halves[159].tolist() == [False, True] and halves[160].tolist() == [True, False]


def test_a_hop_on_one_foot_and_one_on_both_stay_on_what_carried_them():
    hop = stands_from((0, 100, 300), (1, 180, 220))
    fill_flights(hop)
    assert hop[100:300, 1].all() and not hop[100:300, 0].any()
    both = stands_from((0, 180, 220), (1, 180, 220))
    fill_flights(both)
    assert both.all()


def test_a_hovering_foot_is_put_down():
    place, height = np.zeros((T, 2, 2)), np.full((T, 2), 0.2)
    place[:, 0, 0] = np.cumsum(np.where((np.arange(T) > 150) & (np.arange(T) < 250), 0.0, 0.02))
    height[145:255, 0] = 0.05
    flags = stands_from((0, 100, 300))
    put_down(flags, FootMotion(place, height, np.zeros((T, 2)), np.ones(T)), RULES)
    assert flags[160:240, 0].all() and not flags[110:140, 0].any()
    high = stands_from((0, 100, 300))
    put_down(high, FootMotion(place, height + 0.1, np.zeros((T, 2)), np.ones(T)), RULES)
    assert not high[100:300, 0].any()


def test_nobody_stands_on_one_leg_for_long_beside_a_low_foot():
    flags = stands_from((0, 50, 350))
    put_down(flags, motion(height=0.05), RULES)
    longest = max(b - a for a, b in runs(~flags[:, 0]))
    assert longest <= RULES.frames(RULES.hover_time)
    endless = stands_from((0, 50, 350))
    put_down(endless, motion(height=0.05), replace(RULES, hover_time=np.inf))
    assert runs(~endless[:, 0]) == [(50, 350)]


def test_short_swings_are_lengthened_where_the_other_foot_stands_or_left_out():
    assert runs(~steady_stands(stands_from((0, 200, 220)), motion(), RULES)[:, 0]) == [(195, 225)]
    changes = []
    tight = stands_from((1, 100, 190), (0, 200, 220), (1, 230, 320))
    plan = steady_stands(tight, motion(), RULES, changes)
    assert plan[:, 0].all() and "step of the left foot left out" in [c.what for c in changes]


def test_a_slowed_step_is_not_a_hovering_foot_and_its_swing_lasts_longer():
    flags, slow = stands_from((0, 100, 300)), motion(place=np.cumsum(np.full((T, 2, 2), 0.0015), axis=0), height=0.05)
    put_down(flags, slow._replace(tempo=np.full(T, 0.25)), RULES)
    assert runs(~flags[:, 0]) == [(100, 300)]
    put_down(flags, slow, RULES)
    assert runs(~flags[:, 0]) != [(100, 300)]
    quick = steady_stands(stands_from((0, 200, 220)), motion()._replace(tempo=np.full(T, 0.25)), RULES)
    assert runs(~quick[:, 0]) == [(180, 240)]


@pytest.mark.parametrize(
    ("toe_leaves", "pitch_at_end", "rolled"),
    [(100, 0.3, 0.3), (94, 0.3, 0.3), (80, 0.3, 0.3), (80, 1.0, RULES.toe_off_pitch[1]), (80, 0.0, 0.0)],
    ids=["held to the end", "left in the roll", "flight filled", "steeper than the range", "flat in the air"],
)
def test_a_foot_rolls_over_its_toes_also_where_the_person_had_left_the_floor(toe_leaves, pitch_at_end, rolled):
    pitch = np.interp(np.arange(150), [70, 99], [0.0, pitch_at_end])
    R = np.tile(np.eye(3), (150, 2, 1, 1))
    R[:, 0, 0, 0] = R[:, 0, 2, 2] = np.cos(pitch)
    R[:, 0, 0, 2], R[:, 0, 2, 0] = np.sin(pitch), -np.sin(pitch)
    edges = np.ones((150, 4), dtype=bool)
    edges[min(toe_leaves, 80) :, HEEL] = False
    edges[toe_leaves:, TOE] = False
    source = SimpleNamespace(edges=edges, sole_R=R, soles=SimpleNamespace(toe_links=()))
    stands = stands_from((0, 100, 140), (1, 20, 88), frames=150)
    first, found = toe_roll(source, stands, 0, (0, 100), RULES)
    last = min(toe_leaves, 100) - 1 if toe_leaves > 88 else 99
    assert found == pytest.approx(min(pitch[last], RULES.toe_off_pitch[1]) if rolled else 0.0)
    assert first == (88 if rolled else 100)
