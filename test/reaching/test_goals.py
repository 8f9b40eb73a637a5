"""Goals for two hands: reachable and unreachable ones are what they are called, and their script keeps its shares."""

import functools

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.reaching import FAR, HANDS, INSIDE, REACHABLE, GoalSampler, ReachScript, ScriptSettings
from humanoid_control.robots import load_robot

ROBOTS = ("armar3", "hrp2", "lola", "suralp", "wabian2", "we4rii")


@pytest.fixture(scope="module", params=ROBOTS)
def sampler(request):
    return GoalSampler(load_robot(request.param, "fixed"))


def wrists(robot, joints):
    """Both wrists (2, 3) by pinocchio itself."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, joints)
    return np.array([data.oMf[robot.model.getFrameId(h)].translation for h in HANDS])


def coal_distance(robot, joints):
    """The nearest pair by coal [m]."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, joints)
    return measured(robot).all_distances(data).min()


@functools.cache
def measured(robot):
    return robot.self_distance()


def test_a_reachable_goal_is_where_a_free_posture_has_the_hands(sampler):
    r, rng = sampler.robot, np.random.default_rng(3)
    for _ in range(10):
        g = sampler.sample(REACHABLE, rng)
        assert (g.posture > r.lower).all() and (g.posture < r.upper).all()
        assert np.abs(wrists(r, g.posture) - g.points).max() < 1e-12
        assert coal_distance(r, g.posture) > 0.9 * sampler.clearance


def test_no_posture_comes_to_what_is_called_unreachable(sampler):
    """Neither 400 random postures, wherever their shapes are, nor, inside the body, one that touches nothing."""
    r, rng = sampler.robot, np.random.default_rng(4)
    far = [sampler.sample(FAR, rng) for _ in range(10)]
    inside = [sampler.sample(INSIDE, rng) for _ in range(10)]
    for k in range(400):
        joints = rng.uniform(r.lower, r.upper)
        p = wrists(r, joints)
        asked = far + inside if k % 4 == 0 and coal_distance(r, joints) > 0 else far
        for g in asked:
            assert np.linalg.norm(p - g.points, axis=1).max() > 0.02, g.kind


def test_the_bound_on_an_arms_length_holds_and_is_not_generous(sampler):
    r, rng = sampler.robot, np.random.default_rng(5)
    seen = np.zeros(2)
    for _ in range(800):
        p = wrists(r, rng.uniform(r.lower, r.upper))
        seen = np.maximum(seen, [np.linalg.norm(p[k] - sampler.origins[k]) for k in range(2)])
    assert (seen < np.array(sampler.lengths) + 1e-9).all()
    assert (seen > 0.5 * np.array(sampler.lengths)).all()


def lola_script(seed=1, **settings):
    sampler = GoalSampler(load_robot("lola", "fixed"))
    begin = wrists(sampler.robot, sampler.robot.postures["neutral"])
    return ReachScript(sampler, begin, seed, ScriptSettings(**settings)), begin


def test_a_script_is_the_same_for_the_same_seed_and_has_the_shares_that_were_asked_for():
    script, begin = lola_script(stay=0.5, faults=0.1)
    again, _ = lola_script(stay=0.5, faults=0.1)
    other, _ = lola_script(2, stay=0.5, faults=0.1)
    assert (script.at(0.0) == begin).all(), "at first the hands may stay where they are"
    legs, spoilt, staying = {}, 0, 0
    for k in range(6000):
        p, q = script.at(k / 60), again.at(k / 60)
        assert np.array_equal(p, q, equal_nan=True)
        other.at(k / 60)
        legs[script.leg.number] = script.leg
        arrived = script.leg.number > 0 and k / 60 > script.leg.arrive
        assert arrived or not np.isnan(p).any(), "no fault on the way: a moving target must not be lost"
        staying, spoilt = staying + arrived, spoilt + np.isnan(p).all()
    assert abs(spoilt / staying - 0.1) < 0.03
    assert not np.array_equal(other.leg.goal.points, script.leg.goal.points)
    block = [legs[k] for k in range(1, 21)]
    assert sum(leg.goal.kind == REACHABLE for leg in block) == 12
    assert {leg.goal.kind for leg in block} == {REACHABLE, FAR, INSIDE}
    assert sum(leg.jump for leg in block) in (4, 5), "a jump that would be the first is left out"
    assert block[0].goal.kind == REACHABLE and not block[0].jump


def test_targets_on_their_way_keep_the_speed():
    script, _ = lola_script(jump=0.0, faults=0.0, speed=0.4)
    p = np.array([script.at(0.005 * k) for k in range(5000)])
    speed = np.linalg.norm(np.diff(p, axis=0), axis=2) / 0.005
    assert 0.35 < speed.max() <= 0.4 + 1e-6


def test_settings_and_robots_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="shares between 0 and 1"):
        ScriptSettings(unreachable=1.5)
    with pytest.raises(RobotError, match="base that is held"):
        GoalSampler(load_robot("lola", "floating"))
