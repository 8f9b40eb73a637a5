"""Proof of a reaching run: every fault that is planted in its recording is found."""

import functools

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.evaluation.reaching import GoalRecord, closed_loop, reach_parts, recorded_percent, verify_run
from humanoid_control.evaluation.recorded_run import MEASURED, Signal
from humanoid_control.reaching import FAR, REACHABLE, GoalSampler
from humanoid_control.robots import load_robot

RATE, LIMIT = 500.0, 50.0


def coal_distance(robot, joints):
    """The nearest pair by coal [m]."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, joints)
    return measured(robot).all_distances(data).min()


@functools.cache
def measured(robot):
    return robot.self_distance()


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
    report = verify_run(*run, LIMIT)
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
    report = verify_run(robot, commands, goals, LIMIT)
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
    wrong = broken(verify_run(robot, commands, goals, LIMIT))
    assert wrong[0 if what != "acceleration" else -1] == {"acceleration": "acceleration kept"}.get(what, "limits kept")


def test_a_goal_not_reached_and_one_reached_against_all_reason_are_found(run):
    robot, commands, goals = run
    away = [GoalRecord(1, REACHABLE, 2.0, 3.0, goals[0].points + 0.02), goals[1]]
    assert broken(verify_run(robot, commands, away, LIMIT)) == ["reachable goals reached"]
    there = [goals[0], GoalRecord(2, FAR, 3.0, 3.9, goals[0].points)]
    assert broken(verify_run(robot, commands, there, LIMIT)) == ["others not reached, and held"]


def test_a_goal_at_whose_end_nothing_was_recorded_is_not_judged(run):
    robot, commands, goals = run
    kept = (commands.time < 3.7) | (commands.time > 3.8)
    report = verify_run(
        robot, Signal(commands.time[kept], commands.position[kept], commands.velocity[kept]), goals, LIMIT
    )
    assert [g["number"] for g in report["goals"]] == [1]


def test_a_goal_that_was_left_before_the_end_is_not_judged(run):
    robot, commands, goals = run
    late = [*goals, GoalRecord(3, REACHABLE, 3.9, 9.0, goals[0].points + 1.0)]
    report = verify_run(robot, commands, late, LIMIT)
    assert report["good"] and len(report["goals"]) == 2


def test_missed_ticks_are_counted_from_when_the_stack_has_settled():
    row = {"state": "active", "latency_p50_ms": "1.5"}
    rows = [row | {"ticks": str(100 * k), "missed_ticks": str(m)} for k, m in enumerate((5, 50, 60, 60, 64))]
    loop = closed_loop([{"state": "inactive", "ticks": "0", "missed_ticks": "0"}, *rows])
    assert (loop["ticks"], loop["missed_ticks"]) == (200, 4)
    assert loop["missed_percent"] == pytest.approx(100 * 4 / 204)
    assert loop["latency_p50_ms"] == 1.5 and np.isnan(loop["latency_p99_ms"])
    assert closed_loop([]) == {}


def test_commands_that_were_not_recorded_are_noticed():
    rows = [{"stamp": str(10**9 * k), "commands": str(500 * k)} for k in range(6)]
    every = np.arange(0.0005, 5.0, 0.002)
    assert recorded_percent(every, rows) == pytest.approx(100.0)
    assert recorded_percent(every[::2], rows) == pytest.approx(50.0)
    assert recorded_percent(every, rows[:1]) is None, "nothing to compare with"


@pytest.mark.parametrize("percent", [None, 60.0, 98.9, 99.1, 100.0])
def test_the_report_says_in_words_what_was_found(run, percent):
    robot, commands, goals = run
    parts = reach_parts(
        {
            **verify_run(robot, commands, goals, LIMIT),
            "recorded_percent": percent,
            "loop": {},
            "postures_from": MEASURED,
        }
    )
    table, text = parts[0], "\n".join(p for p in parts if isinstance(p, str))
    assert [row[:2] for row in table.rows] == [[1, REACHABLE], [2, FAR]]
    assert "reachable goals: 1 of 1 within 10 mm" in text and "unreachable goals: 1 of 1 held" in text
    assert f"self-collision: 0 of {2 * len(commands.time) - 1} postures" in text
    assert f"limits: kept in {len(commands.time)} commands" in text and "BROKEN" not in text
    assert ("too slow for the recorder" in text) == (percent is not None and percent < 99)
