"""A stack over two hosts whose link is cut while the robot dances: who says so, and what the joints do then."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from evidence.studies.hosts import split
from evidence.studies.hosts.link import why_not
from evidence.studies.hosts.split import ROBOT_SIDE, SplitStack, speeds
from evidence.studies.hosts.study import AGAIN, FOLLOWABLE, NAMED, SPEED, TINY, cut_row, jobs_of
from test.places import domain

pytestmark = [
    pytest.mark.ros,
    pytest.mark.stack,
    pytest.mark.patient,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


# Slower than a user has them: this is a stack and its observers on both sides of the link, on one machine.
RATES = {"simulator.rate": "250.0", "state_estimator.rate": "125.0", "whole_body_ik.rate": "125.0"}
PERIOD = 0.004  # [s] of the simulator then


@pytest.mark.nightly
@pytest.mark.timed
def test_a_cut_is_named_on_both_hosts_and_the_robot_moves_on_within_its_limits(monkeypatch):
    monkeypatch.setattr(split, "PERIOD", PERIOD)
    with SplitStack("hrp2", domain("nodes"), settings=FOLLOWABLE | RATES) as stack:
        found = cut_row(stack, 1.0)
        states = stack.window(0.5).topics[ROBOT_SIDE]["joint_states"]
    assert found["named_robot"] <= NAMED and found["named_control"] <= NAMED, found["words"]
    assert "simulator: no commands" in found["words"][0] and "whole_body_ik" in found["words"][1]
    assert found["moving_again"] <= AGAIN + 1.0, "a slow machine may take its time"
    assert found["speed"] <= SPEED and found["beyond"] <= TINY
    assert len(states) > 60


def rows(robot, seconds, jump=None):
    """A window in which one joint turns at half of its speed; `jump`: of its reference in one period [rad]."""
    t = np.arange(0.0, seconds, 0.002)
    q = np.zeros((len(t), robot.n))
    q[:, 3] = 0.5 * robot.velocity[3] * t
    v = np.gradient(q, t, axis=0)
    if jump is not None:
        q[len(t) // 2 :, 3] += jump
    return np.column_stack([t, t, q, v])


def test_speeds_tell_a_reference_that_steps_and_a_robot_that_stands():
    from evidence.studies.hosts.split import Window
    from humanoid_control.robots import load_robot

    robot = load_robot("hrp2", "fixed")
    calm, still = rows(robot, 2.0), rows(robot, 2.0)
    still[: len(still) // 2, 2:] = 0.0
    still[len(still) // 2 :, 2:] -= still[len(still) // 2, 2:]

    def seen(states, applied):
        return speeds(
            robot, Window(0.0, 2.0, ({"joint_states": states, "applied_commands": applied}, {}), ([], []), 0.0), 0.0
        )

    assert seen(calm, calm).beyond == 0.0 and seen(calm, calm).moving == 0.0
    assert seen(calm, calm).speed == pytest.approx(0.5)
    step = seen(calm, rows(robot, 2.0, 0.1)).beyond
    assert step == pytest.approx(0.1 - 0.5 * robot.velocity[3] * 0.002, rel=1e-6)
    assert seen(still, calm).moving == pytest.approx(1.0, abs=0.03)


def test_parts_of_the_study_may_be_asked_for():
    assert jobs_of(["cuts"], (0.2, 3.0)) == [["cut", 0.2], ["cut", 3.0]]
    assert {job[0] for job in jobs_of(["links", "clocks"], ())} == {"link", "clock", "step", "agreeing"}
