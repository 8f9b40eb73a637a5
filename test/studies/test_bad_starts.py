"""Bad starts are left for good only when the robot stays out for a second with its targets on."""

import numpy as np
import pytest

from evidence.studies import bad_starts as study
from evidence.studies.bad_starts import BadStart, bad_starts, recover, summary
from humanoid_control.ik import WholeBodyIk
from humanoid_control.robots import load_robot

DT = 0.004


@pytest.fixture(scope="module")
def robot():
    return load_robot("wabian2", "fixed")


@pytest.fixture(scope="module")
def solver(robot):
    return WholeBodyIk(robot)


class Watched(WholeBodyIk):
    """Keeps how many tasks every tick had; leaves a range after so many ticks, where it is told to."""

    def __init__(self, robot, wrong_from=None):
        self.tasks, self.wrong_from = [], None
        super().__init__(robot)  # takes steps to be ready
        self.tasks, self.wrong_from = [], wrong_from

    def step(self, q, tasks, dt):
        self.tasks.append(len(tasks))
        result = super().step(q, tasks, dt)
        if self.wrong_from is not None and len(self.tasks) > self.wrong_from:
            result.q[self.robot.iq] = self.robot.upper[0] + 0.01  # out of its range again
        return result


def test_every_start_has_targets_half_of_them_late(robot):
    starts = list(bad_starts(robot, 6, seed=3))
    assert [s.late for s in starts] == [True, False] * 3 and all(s.goal is not None for s in starts)


@pytest.mark.parametrize("late", [False, True])
def test_a_run_ends_after_a_second_of_calm_with_targets_on(robot, late):
    start = next(s for s in bad_starts(robot, 8, seed=2) if s.late == late)
    watched = Watched(robot)
    run = recover(watched, start, DT)
    assert run.recovered is not None
    ticks = len(watched.tasks)
    assert (ticks * DT - run.recovered) >= study.GOOD
    with_targets = watched.tasks[-round(study.GOOD / DT) :]
    assert set(with_targets) == {2}, "targets are on in all of the second that counts"
    assert (1 in watched.tasks) == late and watched.tasks == sorted(watched.tasks)
    if late:
        begin = watched.tasks.index(2)
        assert begin * DT == pytest.approx(run.recovered + study.SETTLED * DT, abs=2 * DT)


def test_who_comes_to_be_in_again_has_not_left(robot):
    """A quiet tenth of a second, which once was enough, is not for good."""
    start = BadStart(robot.q("neutral"), robot.q("neutral"), False, 0.0, 0.0)
    quiet = study.SETTLED + 25
    run = recover(Watched(robot, wrong_from=quiet), start, DT, seconds=1.5)
    assert run.recovered is None and run.relapses == 1 and run.limit_violation == pytest.approx(0.01)
    assert recover(Watched(robot), start, DT, seconds=1.5).recovered == 0.0


def test_a_run_that_is_too_short_shows_nothing(robot, solver):
    start = BadStart(robot.q("neutral"), robot.q("neutral"), False, 0.0, 0.0)
    run = recover(solver, start, DT, seconds=0.5 * study.GOOD)
    assert run.recovered is None and run.closest > 0
    told = summary(robot, [run])
    assert told["not_left"] == 1 and told["relapses"] == 0 and np.isfinite(told["closest_end"])
