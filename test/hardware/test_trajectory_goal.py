"""Goals of trajectories: rejected with their codes, tolerances on the way and at the end, time, feedback, rest."""

import numpy as np
import pytest

from humanoid_control.hardware.commands.trajectory import TrajectoryPlayer, TrajectoryPoint
from humanoid_control.hardware.commands.trajectory_goal import (
    DefaultTolerances,
    GoalCode,
    GoalFollower,
    Tolerance,
    TrajectoryGoal,
)

NAMES = ("hip", "knee", "ankle")
Q0, STILL = np.array([0.1, 0.2, 0.3]), np.zeros(3)
POINTS = [TrajectoryPoint(0.5, [0.3], [0.4]), TrajectoryPoint(1.0, [0.5], [0.0])]
KNEE = TrajectoryGoal(["knee"], POINTS)
DEFAULTS = DefaultTolerances(0.2, 0.02, 0.5)
BEGIN = 100.0


class Robot:
    """A follower, and joints that are wherever the test says, else where the trajectory wants them."""

    def __init__(self):
        self.player = TrajectoryPlayer(NAMES)
        limits = np.full(3, -1.0), np.full(3, 1.0), np.array([2.0, 4.0, 4.0])
        self.follower = GoalFollower(self.player, NAMES, *limits)

    def begin(self, goal=KNEE, defaults=DEFAULTS):
        return self.follower.begin(goal, Q0, STILL, defaults)

    def at(self, t, off=0.0, v_off=0.0):
        """Outcome at a time, where the knee is off the trajectory."""
        command = self.player.command(BEGIN + t, True)
        q, v = Q0.copy(), STILL.copy()
        if command is not None and np.isfinite(command.q[1]):
            q[1], v[1] = command.q[1] + off, command.v[1] + v_off
        return self.follower.update(BEGIN + t, q, v)


@pytest.fixture
def robot():
    return Robot()


def test_a_goal_succeeds_at_its_end_and_not_before(robot):
    assert robot.begin() is None
    assert [robot.at(t) for t in (0.0, 0.3, 0.99)] == [None] * 3
    assert robot.at(1.0) == (GoalCode.SUCCESSFUL, "")
    assert int(GoalCode.SUCCESSFUL) == 0


REFUSED = {
    "unknown joint": (KNEE._replace(names=["kne"]), GoalCode.INVALID_JOINTS, "did you mean knee"),
    "joint twice": (KNEE._replace(names=["knee", "knee"]), GoalCode.INVALID_JOINTS, "named once"),
    "no joints": (KNEE._replace(names=[]), GoalCode.INVALID_JOINTS, "named once"),
    "no points": (KNEE._replace(points=[]), GoalCode.INVALID_GOAL, "no points"),
    "wrong length": (KNEE._replace(points=[TrajectoryPoint(1.0, [0.1, 0.2])]), GoalCode.INVALID_GOAL, "point 0 needs"),
    "times": (KNEE._replace(points=POINTS[::-1]), GoalCode.INVALID_GOAL, "the time of point 1"),
    "no number": (KNEE._replace(points=[TrajectoryPoint(1.0, [np.nan])]), GoalCode.INVALID_GOAL, "nan"),
    "range": (KNEE._replace(points=[TrajectoryPoint(1.0, [1.2])]), GoalCode.INVALID_GOAL, "point 0: knee at 1.200 rad"),
    "old": (KNEE._replace(age=1.2), GoalCode.OLD_HEADER_TIMESTAMP, "ended 0.20 s ago"),
    "tolerance of another": (KNEE._replace(path=[Tolerance("hip", 0.1)]), GoalCode.INVALID_GOAL, "unknown joint 'hip'"),
    "tolerance": (KNEE._replace(end=[Tolerance("knee", 0.1, -2.0)]), GoalCode.INVALID_GOAL, "tolerance of knee: -2"),
    "no tolerance": (KNEE._replace(end=[Tolerance("knee", np.nan)]), GoalCode.INVALID_GOAL, "tolerance of knee: nan"),
}


@pytest.mark.parametrize(("goal", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_a_bad_goal_is_refused_with_its_code_and_what_runs_goes_on(robot, goal, code, words):
    robot.begin()
    robot.at(0.0)
    outcome = robot.begin(goal)
    assert outcome.code == code and words in outcome.text
    assert robot.at(0.5) is None and robot.at(1.0).code == GoalCode.SUCCESSFUL


def test_a_stamp_that_has_not_passed_is_no_reason(robot):
    assert robot.begin(KNEE._replace(age=0.9)) is None


@pytest.mark.parametrize(
    ("path", "off", "v_off", "text"),
    [
        ((), 0.21, 0.0, "knee 0.210 rad off the trajectory (tolerance 0.2)"),
        ((), -0.21, 0.0, "knee 0.210 rad off"),
        ((), 0.19, 9.0, None),
        ([Tolerance("knee", 0.05)], 0.06, 0.0, "(tolerance 0.05)"),
        ([Tolerance("knee", 0.05)], 0.04, 0.0, None),
        ([Tolerance("knee", -1.0)], 0.5, 0.0, None),
        ([Tolerance("knee", 0.0, 0.3)], 0.1, 0.31, "knee 0.310 rad/s off the trajectory (tolerance 0.3)"),
        ([Tolerance("knee", 0.0, 0.3)], 0.21, 0.0, "tolerance 0.2"),
    ],
)
def test_tolerances_on_the_way(robot, path, off, v_off, text):
    robot.begin(KNEE._replace(path=path))
    assert robot.at(0.0) is None
    outcome = robot.at(0.4, off, v_off)
    if text is None:
        assert outcome is None
    else:
        assert outcome.code == GoalCode.PATH_TOLERANCE_VIOLATED and text in outcome.text


def test_on_the_way_nothing_else_is_a_tolerance_where_there_is_none(robot):
    robot.begin(defaults=DefaultTolerances())
    robot.at(0.0)
    assert robot.at(0.4, 0.9) is None
    assert robot.at(1.0, 0.9).code == GoalCode.SUCCESSFUL


@pytest.mark.parametrize(
    ("end", "off", "v_off", "ok"),
    [
        ((), 0.019, 9.0, True),
        ((), 0.021, 0.0, False),
        ([Tolerance("knee", 0.1)], 0.09, 0.0, True),
        ([Tolerance("knee", 0.1)], 0.11, 0.0, False),
        ([Tolerance("knee", -1.0)], 0.5, 0.0, True),
        ([Tolerance("knee", 0.0, 0.1)], 0.0, 0.11, False),
    ],
)
def test_the_end_must_be_reached_in_time(robot, end, off, v_off, ok):
    robot.begin(KNEE._replace(end=end))
    robot.at(0.0)
    if ok:
        assert robot.at(1.0, off, v_off).code == GoalCode.SUCCESSFUL
        return
    assert robot.at(1.0, off, v_off) is None and robot.at(1.5, off, v_off) is None
    outcome = robot.at(1.51, off, v_off)
    assert (
        outcome.code == GoalCode.GOAL_TOLERANCE_VIOLATED and "knee" in outcome.text and "off the goal" in outcome.text
    )


@pytest.mark.parametrize(
    ("time", "at", "over"), [(2.0, 2.9, False), (2.0, 3.1, True), (0.0, 1.6, True), (-1, 99, False)]
)
def test_a_goal_may_give_the_time_itself(robot, time, at, over):
    robot.begin(KNEE._replace(time=time))
    robot.at(0.0)
    assert (robot.at(at, 0.1) is not None) is over
    if not over:
        assert robot.at(at, 0.01).code == GoalCode.SUCCESSFUL, "late, but in time"


def test_what_is_not_measured_has_not_arrived(robot):
    robot.begin()
    robot.at(0.0)
    assert robot.at(1.0, np.nan) is None and "nan" in robot.at(9.0, np.nan).text
    assert robot.at(1.0, 0.0, np.nan).code == GoalCode.SUCCESSFUL, "velocities are not asked for"


def test_nothing_is_judged_before_the_robot_follows(robot):
    robot.begin()
    assert robot.follower.update(BEGIN, np.full(3, 9.0), STILL) is None
    assert robot.follower.feedback(BEGIN, Q0, STILL).time == 0.0


def test_feedback_is_what_is_wanted_and_what_is(robot):
    robot.begin()
    robot.at(0.0)
    f = robot.follower.feedback(BEGIN + 0.5, np.array([9.0, 0.25, 9.0]), np.array([9.0, 0.1, 9.0]))
    assert f.names == ("knee",) and f.time == pytest.approx(0.5)
    assert f.desired[:, 0] == pytest.approx([0.3, 0.4]) and f.actual[:, 0] == pytest.approx([0.25, 0.1])


@pytest.mark.parametrize("other", ["trajectory", "commands"])
def test_whoever_commands_else_ends_it(robot, other):
    robot.begin()
    robot.at(0.0)
    if other == "commands":
        robot.player.stop()
    else:
        robot.player.start(["hip"], [TrajectoryPoint(1.0, [0.0])], Q0, STILL)
    running = robot.player.spline
    outcome = robot.at(0.5)
    assert outcome.code == GoalCode.INVALID_GOAL and "another source is commanding" in outcome.text
    robot.follower.halt(Q0, STILL)
    assert robot.player.spline is running, "what others command is theirs"


def test_it_comes_to_rest_at_the_deceleration_of_each_joint(robot):
    both = TrajectoryGoal(["hip", "knee"], [TrajectoryPoint(1.0, [0.5, 0.5])])
    robot.begin(both)
    q, v = np.array([0.0, 0.0, 0.0]), np.array([0.8, 0.4, 0.0])
    robot.follower.halt(q, v)
    times = np.linspace(0.0, 0.4, 401)  # the hip needs 0.4 s
    rows = np.array([np.hstack(robot.player.spline.at(t)) for t in times])
    assert robot.player.spline.duration == pytest.approx(0.4)
    assert rows[0] == pytest.approx([0.0, 0.0, 0.8, 0.4]) and rows[-1] == pytest.approx([0.16, 0.08, 0.0, 0.0])
    slowing = -np.diff(rows[:, 2:], axis=0) / np.diff(times)[:, None]
    assert slowing == pytest.approx(np.tile([2.0, 1.0], (400, 1)), abs=1e-6)


def test_at_rest_it_stays_where_it_is_and_inside_its_range(robot):
    robot.begin()
    robot.follower.halt(Q0, STILL)
    assert robot.player.spline.at(5.0)[0] == pytest.approx([0.2])
    robot.begin()
    robot.follower.halt(np.array([0.0, 0.99, 0.0]), np.array([0.0, 1.0, 0.0]))
    assert robot.player.spline.at(5.0)[0] == pytest.approx([1.0])
