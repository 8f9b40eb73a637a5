"""Random goals for the hands: what is called reachable is reached by a posture, what is called unreachable by none."""

import functools

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.evaluation.reaching import GoalRecord, prove
from humanoid_control.evaluation.recorded_run import Signal
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


# -- the proof -------------------------------------------------------------------------------------------------


RATE, LIMIT = 500.0, 50.0


def smooth_way(a, b, seconds=2.0):
    """Commands from posture a to posture b, starting and ending at rest."""
    t = np.arange(0.0, seconds, 1 / RATE)
    s = t / seconds
    along, speed = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2 / seconds
    return Signal(t, a + along[:, None] * (b - a), speed[:, None] * (b - a))


@pytest.fixture
def run():
    """A good run of Lola: to a reachable goal and there; and a goal that is far."""
    sampler, rng = GoalSampler(load_robot("lola", "fixed")), np.random.default_rng(1)
    r = sampler.robot
    goal = sampler.sample(REACHABLE, rng)
    way = smooth_way(r.postures["neutral"], goal.posture)
    stay = Signal(way.time + 2.0, np.repeat(way.position[-1:], len(way.time), axis=0), 0 * way.velocity)
    both = Signal(
        *(np.concatenate(c) for c in zip(*((s.time, s.position, s.velocity) for s in (way, stay)), strict=True))
    )
    goals = [
        GoalRecord(1, REACHABLE, 2.0, 3.0, goal.points),
        GoalRecord(2, FAR, 3.0, 3.9, sampler.sample(FAR, rng).points),
    ]
    return r, both, goals


def test_a_good_run_is_good(run):
    report = prove(*run, LIMIT)
    assert report["good"], report["checks"]
    assert report["reachable"]["reached"] == 1 and report["unreachable"]["held"] == 1
    assert report["self_collision"]["postures"] == 2 * len(run[1].time) - 1


def broken(report):
    return [name for name, holds in report["checks"].items() if not holds]


def test_one_command_in_collision_among_thousands_is_found(run):
    robot, commands, goals = run
    k = 700
    hit = commands.position[k].copy()
    while coal_distance(robot, hit) > -0.01:  # the arm into the trunk
        hit[robot.joint_index("l_shoulder_abduction")] -= 0.02
    commands.position[k] = hit
    report = prove(robot, commands, goals, LIMIT)
    assert "no self-collision" in broken(report)
    assert report["self_collision"]["in_collision"] == 1
    assert report["self_collision"]["closest_m"] == pytest.approx(coal_distance(robot, hit), abs=2e-3), (
        "coal has a polyhedron for the elliptic trunk"
    )
    assert report["self_collision"]["closest_at_s"] == pytest.approx(commands.time[k])


@pytest.mark.parametrize("what", ["range", "speed between commands", "speed", "not a number", "acceleration"])
def test_a_limit_that_is_broken_once_is_found(run, what):
    robot, commands, goals = run
    k, j = 1500, robot.joint_index("neck_rotation") if "neck_rotation" in robot.index else 0
    if what == "range":
        commands.position[k:, j] = robot.upper[j] + 1e-4
    elif what == "speed between commands":
        commands.position[k, j] += 1.1 * robot.velocity[j] / RATE
    elif what == "speed":
        commands.velocity[k, j] = 1.01 * robot.velocity[j]
    elif what == "not a number":
        commands.position[k, j] = np.nan
    else:
        commands.velocity[k, j] += 1.01 * LIMIT / RATE
    wrong = broken(prove(robot, commands, goals, LIMIT))
    assert wrong[0 if what != "acceleration" else -1] == {"acceleration": "acceleration kept"}.get(what, "limits kept")


def test_a_goal_not_reached_and_one_reached_against_all_reason_are_found(run):
    robot, commands, goals = run
    away = [GoalRecord(1, REACHABLE, 2.0, 3.0, goals[0].points + 0.02), goals[1]]
    assert broken(prove(robot, commands, away, LIMIT)) == ["reachable goals reached"]
    there = [goals[0], GoalRecord(2, FAR, 3.0, 3.9, goals[0].points)]
    assert broken(prove(robot, commands, there, LIMIT)) == ["others not reached, and held"]


def test_a_goal_at_whose_end_nothing_was_recorded_is_not_judged(run):
    robot, commands, goals = run
    kept = (commands.time < 3.7) | (commands.time > 3.8)
    report = prove(robot, Signal(commands.time[kept], commands.position[kept], commands.velocity[kept]), goals, LIMIT)
    assert [g["number"] for g in report["goals"]] == [1]


def test_a_goal_that_was_left_before_the_end_is_not_judged(run):
    robot, commands, goals = run
    late = [*goals, GoalRecord(3, REACHABLE, 3.9, 9.0, goals[0].points + 1.0)]
    report = prove(robot, commands, late, LIMIT)
    assert report["good"] and len(report["goals"]) == 2
