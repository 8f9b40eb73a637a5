"""Turning moments that no sole holds slow the clip, then shorten quick steps; swings stay within the joints' reach."""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.performing.clip_dynamics import Loads
from humanoid_control.performing.contact_plan import Stance
from humanoid_control.performing.feasible_motion import EXACT_TURN, _Run
from humanoid_control.performing.foot_paths import SolePaths
from humanoid_control.performing.footholds import reachable_footholds
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.performing.turning_moment import LEAST_SHARE, held_share, severe_lacks, shorter_steps
from humanoid_control.robots import load_robot
from test.performing.test_footholds import RULES, walk

WEIGHT = 350.0


def loads(lack):
    missing = np.zeros((len(lack), 6))
    missing[:, 5] = lack
    return Loads(np.arange(len(lack)) * 5, np.zeros((len(lack), 8, 3)), missing, np.zeros((1, 1)), np.zeros((1, 1)))


def test_the_share_is_that_of_the_needed_moment_beyond_the_tolerance():
    rate = np.zeros((20, 3))
    rate[::5, 2] = [20.0, -20.0, 20.0, 0.0]
    assert held_share(loads([5.0, -5.0, 1.0, 8.0]), rate, WEIGHT) == pytest.approx([0.75, 0.75, 1.0, 0.0])


def test_a_long_lack_is_severe_and_a_short_one_is_not():
    lack = np.zeros(100)
    lack[[20, 50, 51, 52]] = 0.02 * WEIGHT
    severe = severe_lacks(loads(lack), 20.0, WEIGHT)
    assert not severe[:40].any() and severe[40:63].all() and not severe[63:].any()
    assert not severe_lacks(loads(0.5 * lack), 20.0, WEIGHT).any()


def stances(first, end):
    at = np.zeros(2)
    return [Stance(0, 0, first, at, 0.0, first, 0.0), Stance(0, end, 400, at, 0.0, 400, 0.0)]


def test_quick_steps_are_shortened_again_and_slow_ones_stay():
    held = np.ones(400)
    held[120] = 0.8
    quick, slow = stances(100, 130), stances(100, 160)
    assert shorter_steps(held, 100.0, (quick, slow), {}) == {(0, 1): 0.8}
    assert shorter_steps(held, 100.0, (quick, slow), {(0, 1): 0.5}) == {(0, 1): pytest.approx(0.4)}
    held[120] = 0.0
    assert shorter_steps(held, 100.0, (quick, slow), {}) == {(0, 1): LEAST_SHARE}
    held[120] = 1.0
    assert shorter_steps(held, 100.0, (quick, slow), {(0, 1): 0.5}) == {(0, 1): 0.5}


def test_a_share_shortens_the_way_of_its_step_only():
    soles = RigidSoles.of(load_robot("hrp2", "floating"))
    plan = walk(soles, (0.25, 0.02))
    planned = reachable_footholds(plan, soles, RULES, {(0, 1): 0.5})
    first = plan.stances[0]
    way, before = planned.stances[0][1].place - first[0].place, first[1].place - first[0].place
    assert np.linalg.norm(way) == pytest.approx(0.5 * np.linalg.norm(before), abs=1e-9)
    step = planned.stances[1][1].place - planned.stances[0][1].place
    assert step == pytest.approx(plan.stances[1][1].place - first[1].place, abs=1e-9)
    assert next(c for c in planned.changes if "moved" in c.what).what == "step of the left foot moved"


def test_a_swing_turns_as_far_as_the_joints_reach_and_a_stance_stays():
    flat, reached = np.tile(np.eye(3), (3, 2, 1, 1)), np.tile(np.eye(3), (3, 2, 1, 1))
    reached[:, 0] = [pin.exp3(np.array([x, 0.0, 0.0])) for x in (0.2, 0.2, 0.005)]
    run = SimpleNamespace(
        source=SimpleNamespace(soles=SimpleNamespace(poses=lambda robot, q: (reached, None))),
        robot=None,
        last=SimpleNamespace(q=None),
        paths=SolePaths(flat, np.zeros((3, 2, 3))),
        plan=SimpleNamespace(stands=np.array([[True, True], [False, True], [False, True]])),
    )
    out = _Run._reached_paths(run)
    assert [pin.log3(R)[0] for R in out.R[:, 0]] == pytest.approx([0.0, 0.2 - EXACT_TURN, 0.0])
    assert (out.R[:, 1] == flat[:, 1]).all()
