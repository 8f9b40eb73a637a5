"""Footholds are within reach, keep the distance of the steps, and soles move between them without a jump."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.performing import FeasibilitySettings
from humanoid_control.performing.contact_plan import ContactPlan, Stance
from humanoid_control.performing.footholds import StepReach, reachable_footholds, way_kept
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.robots import load_robot

RULES = FeasibilitySettings()


@pytest.fixture(scope="module")
def soles():
    return RigidSoles.of(load_robot("hrp2", "floating"))


def walk(soles, step, steps=6, yaw=0.0, seconds=0.5):
    """Plan of a walk by steps (2,) forward and outward [m], each turned by a yaw."""
    heading, places, first = 0.0, [np.array([0.0, 0.5 * soles.width]), np.array([0.0, -0.5 * soles.width])], [0, 0]
    stances, swing, both = ([], []), RULES.frames(seconds), 15
    yaws, t = [0.0, 0.0], 100
    for k in range(steps):
        f = k % 2
        stances[f].append(Stance(f, first[f], t, places[f], yaws[f], t, 0.0))
        heading += yaw
        c, s = np.cos(heading), np.sin(heading)
        side = 1 - 2 * f
        off = np.array([step[0], side * (soles.width + step[1])])
        places[f] = places[1 - f] + np.array([[c, -s], [s, c]]) @ off
        yaws[f], first[f], t = heading, t + swing, t + swing + both
    for f in (0, 1):
        stances[f].append(Stance(f, first[f], t + 100, places[f], yaws[f], t + 100, 0.0))
    stands = np.zeros((t + 100, 2), dtype=bool)
    for own in stances:
        for s in own:
            stands[s.first : s.end, s.foot] = True
    return ContactPlan(stands, np.zeros_like(stands), stances)


def all_stances(plan):
    return [s for own in plan.stances for s in own]


def test_steps_within_reach_stay_where_they_are(soles):
    plan = walk(soles, (0.25, 0.02))
    planned = reachable_footholds(plan, soles, RULES)
    for a, b in zip(all_stances(plan), all_stances(planned), strict=True):
        assert np.allclose(a.place, b.place, atol=1e-12) and a.yaw == pytest.approx(b.yaw)
    assert not planned.changes and way_kept(plan, planned) == 1.0


def test_long_steps_are_shortened_and_told_and_the_distance_of_the_others_is_kept(soles):
    plan = walk(soles, (0.6, 0.0), seconds=1.0)
    planned = reachable_footholds(plan, soles, RULES)
    for before, landing in planned.swings():
        other = planned.stance_at(1 - landing.foot, landing.first)
        assert np.linalg.norm(landing.place - other.place) < 0.72 * soles.length + soles.width
        assert before.foot == landing.foot
    assert {c.unit for c in planned.changes} == {"mm"} and all(c.amount > 5 for c in planned.changes)
    assert 0.5 < way_kept(plan, planned) < 1.0


def test_a_turn_that_was_cut_is_made_up_for(soles):
    plan = walk(soles, (0.0, 0.0), steps=8, yaw=1.2)
    plan.stances[0][-1] = replace(plan.stances[0][-1])
    planned = reachable_footholds(plan, soles, RULES)
    reach = StepReach(soles, RULES)
    for _, landing in planned.swings():
        other = planned.stance_at(1 - landing.foot, landing.first)
        side = 1 - 2 * landing.foot
        turn = side * (landing.yaw - other.yaw)
        assert reach.turn[landing.foot, 0] - 1e-9 <= turn <= reach.turn[landing.foot, 1] + 1e-9
    assert any(c.unit == "deg" for c in planned.changes)


def test_random_landings_are_within_reach_and_apart(soles):
    rng, reach = np.random.default_rng(1), StepReach(soles, RULES)
    for _ in range(500):
        foot = int(rng.integers(2))
        own = Stance(foot, 0, 9, rng.normal(size=2), rng.uniform(-4, 4), 9, 0.0)
        stood = Stance(1 - foot, 0, 9, rng.normal(size=2), rng.uniform(-4, 4), 9, 0.0)
        stands = Stance(1 - foot, 0, 9, rng.normal(size=2), rng.uniform(-4, 4), 9, 0.0)
        place, yaw, moved, _ = reach.land(own, stood, stands, rng.normal(size=2), 0.5)
        c, s = np.cos(stands.yaw), np.sin(stands.yaw)
        step = np.array([[c, s], [-s, c]]) @ (place - stands.place)
        side = 1 - 2 * foot
        assert side * step[1] >= reach.narrowest - 1e-9 and moved >= 0
        assert side * step[1] <= reach.neutral + reach.outward + 1e-9
        assert abs(step[0]) <= 0.72 * reach.length + 1e-9 and np.isfinite(yaw)


def test_a_quick_step_is_no_longer_than_the_foot_is_fast(soles):
    reach, own = StepReach(soles, RULES), Stance(0, 0, 9, np.array([0.35, 0.1]), 0.0, 9, 0.0)
    stood = Stance(1, 0, 9, np.array([0.0, -0.1]), 0.0, 9, 0.0)
    last = np.array([-0.3, 0.1])
    place, *_ = reach.land(own, stood, stood, last, 0.2)
    assert np.linalg.norm(place - last) <= RULES.swing_speed * soles.length * (0.2 - 0.06) + 1e-6
    unhurried, *_ = reach.land(own, stood, stood, last, 1.0)
    assert np.allclose(unhurried, own.place, atol=1e-9)


@pytest.mark.parametrize(("tilt", "outward"), [(1.0, 0.45), (0.26, 0.8 * 0.26), (0.0, 0.05)])
def test_a_foot_lands_no_farther_out_than_its_ankle_tilts(soles, tilt, outward):
    """G1's ankles tilt by 0.26 rad: it landed on the edge of its sole, bent its waist within 0.06 s, and fell."""
    reach = StepReach(replace(soles, tilt=tilt), RULES)
    own = Stance(0, 0, 9, np.array([0.0, 0.9]), 0.0, 9, 0.0)
    stood = Stance(1, 0, 9, np.array([0.0, -0.1]), 0.0, 9, 0.0)
    place, *_ = reach.land(own, stood, stood, np.array([0.0, 0.2]), 1.0)
    assert place[1] - stood.place[1] == pytest.approx(soles.width + outward * soles.length)


@pytest.mark.parametrize("name", ["hrp2", "lola"])
def test_the_tilt_of_the_ankles_is_the_lesser_range_about_their_forward_axis(name):
    robot = load_robot(name, "floating")
    joints = [robot.joint_names.index(f"{side}_ankle_abduction") for side in "lr"]
    least = min(min(-robot.lower[k], robot.upper[k]) for k in joints)
    assert RigidSoles.of(robot).tilt == pytest.approx(least)
