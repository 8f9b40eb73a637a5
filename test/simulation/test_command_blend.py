"""Blend of commands that come back: speed limits, continuity, arrival."""

import numpy as np
import pytest

from humanoid_control.robots import load_robot
from humanoid_control.simulation.drives.command_blend import CommandBlend, ReferenceRate
from humanoid_control.simulation.drives.position_control import DriveCommands, default_gains

SPEED, DT = np.array([3.0, 1.0, 8.0]), 0.002


def blend(hold, command, seconds=4.0):
    """References (k, n) from the one that is held, until the blend ends; `command` is a function of time."""
    b = CommandBlend(SPEED)
    b.begin(np.array(hold, dtype=float), command(0.0))
    rows, k = [b.reference], 0
    while b.active:
        k += 1
        assert k * DT < seconds, "it ends"
        rows.append(b.step(command(k * DT), DT).copy())
    return np.array(rows)


def test_a_posture_is_reached_at_the_speed_limit_without_a_jerk():
    goal = np.array([1.5, 0.2, -1.0])
    q = blend([0.0, 0.0, 0.0], lambda t: goal)
    v = np.diff(q, axis=0) / DT
    assert (np.abs(v) <= SPEED + 1e-9).all()
    assert np.abs(v[:, 0]).max() == pytest.approx(3.0, rel=1e-3), "the joint with the longest way is as fast as it may"
    assert len(v) * DT == pytest.approx(1.875 * 1.5 / 3.0, abs=2 * DT)
    assert np.abs(np.diff(v, axis=0)).max() / DT < 1.01 * 10 / np.sqrt(3) * 1.5 / (1.875 * 0.5) ** 2
    assert q[-1] == pytest.approx(goal, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_commands_that_move_at_full_speed_are_caught_without_a_faster_step(seed):
    rng = np.random.default_rng(seed)
    w, phase = rng.uniform(1.0, 4.0, 3), rng.uniform(0.0, 6.0, 3)
    moving = lambda t: 0.95 * SPEED / w * np.sin(w * t + phase)  # noqa: E731
    q = blend(rng.uniform(-1.0, 1.0, 3), moving, 20.0)
    assert (np.abs(np.diff(q, axis=0)) <= SPEED * DT + 1e-12).all()
    assert q[-1] == pytest.approx(moving((len(q) - 1) * DT), abs=1e-9)


def test_joints_without_a_command_stay_and_no_way_is_no_blend():
    q = blend([0.3, 0.1, 0.2], lambda t: np.array([0.5, np.nan, 0.2]))
    assert (q[:, 1] == 0.1).all() and q[-1, 0] == pytest.approx(0.5)
    assert len(blend([0.3, 0.1, 0.2], lambda t: np.array([0.3, np.nan, 0.2]))) == 1


def test_a_command_that_is_missing_for_a_moment_stops_its_joint_and_does_not_send_it_back():
    b, goal = CommandBlend(SPEED), np.array([0.5, 0.4, 0.0])
    b.begin(np.zeros(3), goal)
    for _ in range(190):
        at = b.step(goal, DT).copy()
    assert at[1] > 0.1
    gone = b.step(np.array([0.5, np.nan, 0.0]), DT)
    assert gone[1] == at[1] and gone[0] > at[0] and b.active
    while b.active:
        b.step(goal, DT)
    assert b.reference == pytest.approx(goal, abs=1e-9)


def test_what_is_led_back_at_a_share_of_its_speed_slows_nobody_else():
    b, goal = CommandBlend(SPEED, 0.9), np.array([0.5, 0.4, 0.0])
    b.begin(np.zeros(3), goal, np.array([False, True, False]))
    assert b.step(goal, DT)[0] == pytest.approx(SPEED[0] * DT), "it was commanded all along"
    fastest, before = 0.0, b.reference
    while b.active:
        now = b.step(goal, DT)
        fastest, before = max(fastest, (now[1] - before[1]) / DT), now.copy()
    assert fastest == pytest.approx(0.9 * SPEED[1], rel=1e-3)


def test_an_end_leaves_the_references_where_they_are():
    b = CommandBlend(SPEED)
    b.begin(np.zeros(3), np.ones(3))
    at = b.step(np.ones(3), DT).copy()
    b.end()
    assert not b.active and (b.reference == at).all()


def test_joints_that_come_back_alone_do_not_slow_those_that_were_commanded_all_along():
    b, goal = CommandBlend(SPEED), np.array([0.5, 0.4, 0.0])
    b.begin(np.zeros(3), goal, np.array([False, True, False]))
    first = b.step(goal, DT)
    assert first[0] == pytest.approx(SPEED[0] * DT) and 0 < first[1] < 1e-6
    b.begin(first.copy(), goal, np.array([False, False, True]))
    assert 0 < b.step(goal, DT)[1] - first[1] < 1e-6, "one that was on its way still is"
    while b.active:
        b.step(goal, DT)
    assert b.reference == pytest.approx(goal, abs=1e-9)


# -------- Commands that come late and together


def drives_of_hrp2():
    robot = load_robot("hrp2", "fixed")
    return robot, DriveCommands(robot, default_gains(robot), coast=0.1)


def lead(robot, drives, commands, periods, after=lambda k: None):
    """References (periods + 1, n) at the ends of periods; `commands`: period -> (positions, velocities)."""
    rate, rows, still = ReferenceRate(robot.velocity), [drives.q_ref.copy()], np.zeros(robot.n, dtype=bool)
    rate.restart(drives, drives.q_ref)
    for k in range(periods):
        fresh = still.copy()
        if k in commands:
            positions, velocities = commands[k]
            drives.set(k * DT, drives.q_ref, positions, velocities)
            fresh[:] = np.isfinite(positions)
        rate.limit(drives, fresh, k * DT, DT)
        drives.advance(k * DT, drives.q_ref, DT)
        rate.note(drives, drives.q_ref)
        rows.append(drives.q_ref.copy())
        after(rate)
    return np.array(rows)


@pytest.mark.parametrize("seed", range(4))
def test_no_reference_goes_farther_in_a_period_than_its_joint_may_whatever_is_commanded(seed):
    robot, drives = drives_of_hrp2()
    rng = np.random.default_rng(seed)
    commands = {}
    for k in sorted(rng.choice(400, 60, replace=False)):
        q = rng.uniform(robot.lower - 0.2, robot.upper + 0.2)
        q[rng.random(robot.n) < 0.3] = np.nan
        commands[k] = q, rng.normal(0.0, 5.0, robot.n)
    q = lead(robot, drives, commands, 400)
    assert (np.abs(np.diff(q, axis=0)) <= robot.velocity * DT + 1e-9).all()
    assert np.abs(np.diff(q, axis=0)).max() > 0.9 * robot.velocity.max() * DT


def test_a_step_is_followed_at_the_speed_limit_and_reached():
    robot, drives = drives_of_hrp2()
    k, begin, way = robot.index["l_elbow_flexion"], drives.q_ref.copy(), 0.3
    goal = begin.copy()
    goal[k] += way
    q = lead(robot, drives, {0: (goal, np.zeros(robot.n))}, 300)
    speed = np.diff(q[:, k]) / DT
    fast = int((way - robot.velocity[k] * 0.05) / robot.velocity[k] / DT)
    assert speed[:fast] == pytest.approx(robot.velocity[k], rel=1e-6)
    assert np.diff(speed[fast:]).max() < 0.03 * robot.velocity[k], "it slows down on the way"
    assert q[fast + 190 :, k] == pytest.approx(goal[k], abs=1e-9)
    assert np.delete(q - begin, k, axis=1) == pytest.approx(0.0, abs=1e-12)


def test_a_stream_within_the_limits_is_not_touched():
    robot, drives = drives_of_hrp2()
    _, other = drives_of_hrp2()
    q0, fast = drives.q_ref.copy(), 0.9 * robot.velocity * np.sign(robot.upper - drives.q_ref - 0.5)
    commands = {k: (q0 + fast * k * DT, fast) for k in range(0, 60, 2)}
    behind = []
    q = lead(robot, drives, commands, 60, lambda rate: behind.append(rate.behind.any()))
    rows = [other.q_ref.copy()]
    for k in range(60):
        if k in commands:
            other.set(k * DT, other.q_ref, *commands[k])
        other.advance(k * DT, other.q_ref, DT)
        rows.append(other.q_ref.copy())
    assert not any(behind) and (q == np.array(rows)).all()


def test_a_command_that_moved_on_while_the_reference_was_behind_is_caught():
    """Forty milliseconds of commands are lost: the next one is led to at the limit, and its speed carries on."""
    robot, drives = drives_of_hrp2()
    k, q0 = robot.index["r_shoulder_flexion"], drives.q_ref.copy()
    v = np.zeros(robot.n)
    v[k] = 0.5 * robot.velocity[k]
    commands = {j: (q0 + v * j * DT, v) for j in range(20, 200, 2)}
    q = lead(robot, drives, commands, 200)
    assert (np.abs(np.diff(q[:, k])) <= robot.velocity[k] * DT + 1e-9).all()
    assert np.diff(q[:, k]).max() > 1.2 * v[k] * DT, "faster than the command, to catch it"
    assert q[190, k] == pytest.approx(q0[k] + v[k] * 190 * DT, abs=1e-9)


def test_references_slow_down_where_commands_fail_to_come():
    robot, drives = drives_of_hrp2()
    k, q0 = robot.index["r_shoulder_flexion"], drives.q_ref.copy()
    v = np.zeros(robot.n)
    v[k] = 0.8 * robot.velocity[k]
    q = lead(robot, drives, {j: (q0 + v * j * DT, v) for j in range(0, 20, 2)}, 200)
    speed = np.diff(q[:, k]) / DT
    assert speed[:19] == pytest.approx(v[k])
    assert np.abs(np.diff(speed)).max() / DT < 1.2 * v[k] / 0.05, "no stop that no drive could follow"
    assert speed[100:] == pytest.approx(0.0, abs=1e-12) and (speed >= -1e-12).all()


@pytest.mark.parametrize("dt", [0.0, -0.01, np.nan])
def test_references_stay_while_no_time_passes(dt):
    b = CommandBlend(SPEED)
    b.begin(np.zeros(3), np.ones(3))
    before = b.step(np.ones(3), 0.02).copy()
    assert np.array_equal(b.step(np.ones(3), dt), before)
    assert (b.step(np.ones(3), 0.02) > before).all()
