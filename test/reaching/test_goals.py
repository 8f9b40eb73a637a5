"""Goals for two hands: reachable and unreachable ones are what they are called, and their script keeps its shares."""

import copy
import functools
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.pair_distance import pair_distance
from humanoid_control.collision.shapes import KINDS as SHAPES
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.reaching import FAR, HANDS, INSIDE, REACHABLE, GoalSampler, ReachScript, ScriptSettings, goals
from humanoid_control.reaching.goals import FAR_SHARE, MIN_HEIGHT, _contains, _span
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind

ROBOTS = ("armar3", "hrp2", "lola", "suralp", "wabian2", "we4rii")


@pytest.fixture(scope="module", params=by_kind(ROBOTS))
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


def test_goals_are_before_the_body_above_the_floor_and_far_ones_on_the_hands_own_side(sampler):
    """A hand drawn behind the back or across it would be stopped by the body long before its goal is."""
    r, rng = sampler.robot, np.random.default_rng(6)
    front, hands = min(o[0] for o in sampler.origins), set()
    for _ in range(30):
        p = sampler.sample(REACHABLE, rng).points
        assert (p[:, 0] > front).all() and (p[:, 2] > MIN_HEIGHT).all()
        g = sampler.sample(FAR, rng)
        (hand,) = np.flatnonzero(np.abs(wrists(r, g.posture) - g.points).max(axis=1) > 1e-9)
        d = g.points[hand] - sampler.origins[hand]
        far = np.linalg.norm(d) / sampler.lengths[hand]
        assert FAR_SHARE[0] - 1e-9 <= far <= FAR_SHARE[1] + 1e-9
        assert d[1] * (1, -1)[hand] > 0 and d[0] > -0.3 * np.linalg.norm(d) - 1e-9 and g.points[hand, 2] > MIN_HEIGHT
        hands.add(hand)
    assert hands == {0, 1}


def test_a_robot_whose_shapes_may_all_touch_has_goals_that_are_reached_or_too_far():
    robot = copy.copy(load_robot("lola", "fixed"))
    robot.pairs = robot.pairs[:0]
    sampler = GoalSampler(robot)
    assert sampler.kinds == (REACHABLE, FAR)
    g = sampler.sample(REACHABLE, np.random.default_rng(0))
    assert np.abs(wrists(robot, g.posture) - g.points).max() < 1e-12


@pytest.mark.parametrize("kind", SHAPES)
def test_a_point_is_inside_a_shape_where_a_speck_of_dust_would_be(kind):
    """Beside the exact distance of shapes."""
    rng, seen = np.random.default_rng(7), {True: 0, False: 0}
    a, b, c, h = 0.09, 0.17, 0.12, 0.08
    size = {"sphere": (a, a, a, 0), "capsule": (a, a, a, h), "box": (a, b, c, 0), "cylinder": (a, a, 0, h)}
    size |= {"ellipsoid": (a, b, c, 0), "elliptic_capsule": (a, b, c, h)}
    for p in rng.uniform(-0.16, 0.16, (600, 3)):
        both = [kind, "sphere"]
        A = ShapeArrays.build(both, [size[kind], (1e-9, 1e-9, 1e-9, 0)], [0, 0], [np.eye(3)] * 2, [np.zeros(3), p])
        d = pair_distance(A, A.R, A.p, 0, 1)[0]
        if abs(d) > 1e-6:
            assert _contains(int(A.kinds[0]), A.sizes[0], p) == (d < 0), p
            seen[d < 0] += 1
    assert min(seen.values()) > 20


def test_a_sliding_joint_makes_an_arm_longer_by_as_far_as_it_slides():
    model = pin.Model()
    X = pin.SE3(np.eye(3), np.array([0.0, 0.1, 1.0]))
    turns = model.addJoint(0, pin.JointModelRY(), X, "turns")
    slides = model.addJoint(turns, pin.JointModelPZ(), pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.2])), "slides")
    place = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))
    frame = model.addFrame(pin.Frame("hand", slides, 0, place, pin.FrameType.OP_FRAME))
    for lower, upper in ((-0.1, 0.3), (-1.1, 0.3)):
        robot = SimpleNamespace(model=model, lower=[-3, lower], upper=[3, upper], joint_index=("turns", "slides").index)
        origin, length = _span(robot, [turns, slides], frame)
        assert origin == pytest.approx([0, 0.1, 1.0])
        data, most = model.createData(), 0.0
        for x in np.linspace(lower, upper, 50):
            pin.framesForwardKinematics(model, data, np.array([0.4, x]))
            most = max(most, np.linalg.norm(data.oMf[frame].translation - origin))
        assert most <= length + 1e-12
    assert length == pytest.approx(0.2 + 0.1 + 1.1)


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


@pytest.mark.parametrize("stiff", [0, 1])
def test_a_robot_with_a_hand_that_no_joint_moves_is_refused(stiff, monkeypatch):
    robot, chain = load_robot("lola", "fixed"), goals._chain
    fixed = robot.point_frame(HANDS[stiff])
    monkeypatch.setattr(goals, "_chain", lambda model, frame: [] if frame == fixed else chain(model, frame))
    with pytest.raises(RobotError, match="no joint moves the hands"):
        GoalSampler(robot)


def test_settings_and_robots_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="shares between 0 and 1"):
        ScriptSettings(unreachable=1.5)
    with pytest.raises(RobotError, match="fixed base"):
        GoalSampler(load_robot("lola", "floating"))
