"""Who commands a robot goes on, rests, or begins anew, by what the robot says of its joints: in made-up time."""

import numpy as np
import pytest

from humanoid_control.estimation import RobotSupervision, Verdict

NAMES, SPEED = ("hip", "knee"), np.array([3.0, 3.0])
BOTH, PERIOD = np.arange(2), 0.01


class Run:
    """A robot that is where it is commanded, unless `robot` says otherwise; the knee moves at 1 rad/s."""

    def __init__(self, known=True, error=0.15, timeout=0.5):
        self.s = RobotSupervision(NAMES, SPEED, "states")
        self.s.configure(error, timeout)
        self.now, self.heard, self.q = 10.0, 10.0, np.zeros(2)
        self.s.begin(known)

    def go(self, seconds, robot=lambda q: q, judged=True, silent=False):
        """The verdicts of some time; after one to begin anew it begins where the robot is."""
        found = []
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            if not silent:
                self.heard, at = self.now, robot(self.q.copy())
                self.s.measure(self.now, BOTH, at, self.now)
            found.append(self.s.judge(self.now, self.now - self.heard, judged))
            if found[-1] is Verdict.BEGIN:
                self.s.reset()
                self.s.begin(True)
                self.q = robot(self.q.copy())
            elif found[-1] is Verdict.MOVE:
                self.q[1] += 1.0 * PERIOD
            self.s.command(self.now, self.q)
        return found


def stuck(at):
    """The knee stays, though its encoder lives."""
    rng = np.random.default_rng(0)
    return lambda q: np.array([q[0], at + 1e-6 * rng.normal()])


def test_a_robot_that_follows_moves_and_one_that_does_not_is_stopped_until_it_begins_anew():
    run = Run()
    assert set(run.go(0.5)) == {Verdict.MOVE}
    found = run.go(1.0, stuck(run.q[1]))
    assert found[-1] is Verdict.HOLD and run.s.stopped and "knee: following error" in run.s.fault
    assert 0.15 + 0.05 < PERIOD * found.count(Verdict.MOVE) < 0.15 + 0.05 + 0.05 + 0.03, "limit, lag, debounce"
    joint, error = run.s.take_worst()
    assert joint == "knee" and error > 0.15 and run.s.take_worst() == ("", 0.0)
    assert set(run.go(1.0)) == {Verdict.HOLD}, "it does not go on by itself"
    run.s.reset()
    run.s.begin(True)
    assert set(run.go(1.0)) == {Verdict.MOVE} and not run.s.fault


def test_a_robot_that_is_elsewhere_by_intent_is_not_judged_and_is_so_anew_afterwards():
    run = Run()
    run.go(0.2)
    rest = run.q[1]
    assert set(run.go(1.0, lambda q: np.array([q[0], rest]), judged=False)) == {Verdict.MOVE}, "frozen, and behind"
    run.s.restart()  # now its driver follows
    assert set(run.go(0.3)) == {Verdict.MOVE} and not run.s.fault, "what was before is forgotten"
    run.go(1.0, stuck(run.q[1]))
    assert run.s.stopped


def test_a_silent_robot_is_waited_for_and_begun_with_where_it_is():
    run = Run()
    run.go(0.2)
    found = run.go(1.0, silent=True)
    assert PERIOD * found.count(Verdict.MOVE) < 0.12 and Verdict.BEGIN not in found, "late after 0.1 s"
    assert run.s.away and run.s.gone and "no states for 1.0 s: stopped until they return" in run.s.silence
    assert run.go(PERIOD, lambda q: q + [0.3, 0.0]) == [Verdict.BEGIN]
    assert set(run.go(0.5)) == {Verdict.MOVE}
    assert not run.s.silence and not run.s.fault


def test_silence_that_is_short_is_told_and_rested_through():
    run = Run()
    run.go(0.2)
    assert run.go(0.3, silent=True)[-1] is Verdict.HOLD
    assert not run.s.away and not run.s.gone and run.s.silence == "no states for 0.3 s: late"
    assert set(run.go(0.5)) == {Verdict.MOVE} and not run.s.silence


@pytest.mark.parametrize("repeats", [0.2, 0.6], ids=["then silent", "frozen"])
def test_what_brakes_while_nothing_new_is_known_is_not_cut_off(repeats):
    """At full speed it gets ahead of the last states by more than the limit; the estimator repeats them at first."""
    run, found = Run(), []
    run.go(1.2)
    last, speed = run.q.copy(), 3.0
    for k in range(round(1.0 / PERIOD)):
        run.now += PERIOD
        if k * PERIOD < repeats:
            run.heard = run.now
            run.s.measure(run.now, BOTH, last, run.now)
        found.append(run.s.judge(run.now, run.now - run.heard))
        if found[-1] is Verdict.HOLD:
            speed = max(0.0, speed - 20.0 * PERIOD)
        run.q[1] += speed * PERIOD
        run.s.command(run.now, run.q)
    assert run.q[1] - last[1] > 0.4 and Verdict.BEGIN not in found and found[-1] is Verdict.HOLD
    if repeats < 0.3:
        assert not run.s.fault
        assert run.go(PERIOD, lambda q: last) == [Verdict.BEGIN]
    else:
        assert "knee: measurement frozen" in run.s.fault


def test_a_robot_that_does_not_hear_its_new_controller_yet_is_begun_with_once_more():
    for deaf, stops in ((0.5, False), (1.0, True)):
        run = Run(error=0.5)
        rest = run.q.copy()
        found = run.go(deaf, lambda q, rest=rest: rest.copy())
        assert found.count(Verdict.BEGIN) == 1 and (not run.s.fault or stops)
        run.go(0.6, (lambda q, rest=rest: rest.copy()) if stops else (lambda q: q))
        assert run.s.stopped is stops and ("frozen" in run.s.fault) is stops


def test_a_simulator_that_does_not_hear_yet_is_begun_with_as_often_as_is_said():
    run = Run()
    run.s.tries = 3
    at = run.q[1]
    found = run.go(3.0, lambda q: np.array([q[0], at]))
    assert found.count(Verdict.BEGIN) == 3 and run.s.stopped and "frozen" in run.s.fault
    assert found.index(Verdict.BEGIN) > 2 and found[-1] is Verdict.HOLD


def test_a_robot_that_is_elsewhere_just_after_it_was_late_is_begun_with_once():
    """It was out of reach, so it is no fault; where it is so again soon, it is one."""
    run = Run()
    run.go(0.2)
    for begins in (1, 0):
        run.go(0.3, silent=True)
        found = run.go(0.5, stuck(run.q[1] - 0.2))
        assert found.count(Verdict.BEGIN) == begins
    assert run.s.stopped and "following error" in run.s.fault


def test_a_robot_that_is_elsewhere_after_a_silence_in_which_it_should_have_rested_is_begun_with_once():
    """A simulator that is started again is back before it counts as away; where the commands rested it was not late."""
    run, rests = Run(), np.zeros(2)
    for elsewhere, again in ((np.array([0.0, 1.5]), False), (np.array([0.0, -1.5]), True)):
        found = []
        for k in range(90):  # heard, silent for 0.4 s, back elsewhere
            run.now += PERIOD
            if k < 20 or k >= 60:
                run.heard = run.now
                run.s.measure(run.now, BOTH, rests if k < 20 else elsewhere, run.now)
            found.append(run.s.judge(run.now, run.now - run.heard))
            if found[-1] is Verdict.BEGIN:
                run.s.reset()
                run.s.begin(True)
                rests = elsewhere
            run.s.command(run.now, rests)
        assert found.count(Verdict.BEGIN) == (not again) and run.s.stopped is again


def test_while_time_stands_still_nothing_is_wrong_and_then_it_begins_anew():
    run = Run()
    run.go(0.2)
    run.s.paused = True
    assert set(run.go(2.0, silent=True)) == {Verdict.HOLD} and not run.s.silence and not run.s.gone
    run.s.paused = False
    run.heard = run.now
    assert run.go(0.1)[0] is Verdict.BEGIN


@pytest.mark.parametrize("known", [True, False])
def test_a_robot_that_was_never_measured_is_not_supervised(known):
    run = Run(known)
    found = run.go(2.0, silent=True)
    assert (set(found) == {Verdict.MOVE}) is not known
    run.s.paused = True
    assert run.go(0.1, silent=True)[-1] is Verdict.HOLD


def test_a_limit_of_zero_lets_nothing_of_a_joint_stop_it():
    run = Run(error=0.0)
    run.go(0.2)
    assert set(run.go(1.0, stuck(run.q[1]))) == {Verdict.MOVE} and not run.s.fault
    wild = np.random.default_rng(1)
    assert set(run.go(1.0, lambda q: wild.normal(size=2))) == {Verdict.MOVE} and not run.s.fault
    run.s.restart()
    run.s.configure(0.1, 0.5)
    run.go(1.0, stuck(run.q[1]))
    assert run.s.stopped


@pytest.mark.parametrize(("stall", "jump", "fault"), [(0.06, 0.0, False), (0.0, 1.0, True)])
def test_what_was_held_up_is_no_jump_and_a_jump_is_one(stall, jump, fault):
    """States whose sender stalls are stamped when they are sent on: at full speed they leap, but not for long."""
    run = Run(error=10.0)
    run.go(0.2)
    begin, q = run.now, np.zeros(2)
    for k in range(200):
        run.now += 0.004
        moving = 3.0 * (run.now - begin) if k < 25 or k > 25 + stall / 0.004 else q[1]
        q = np.array([0.0, moving + (jump if k > 50 else 0.0)])
        run.s.measure(run.now, BOTH, q, run.now)
        run.s.command(run.now, q)
        run.s.judge(run.now, 0.0)
    assert ("knee: measurement jumped" in run.s.fault) is fault
