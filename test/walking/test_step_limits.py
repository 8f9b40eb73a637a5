"""Limits of steps from the robot alone: what they accept can be walked, with its shapes watched."""

from functools import cache

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.robots import load_robot
from humanoid_control.walking.feet import Feet, LegReach
from humanoid_control.walking.footsteps import Footstep, StepTimes, VelocityPlanner
from humanoid_control.walking.step_limits import TrialWalk, step_limits_of

ROBOTS = ("lola", "hrp2", "suralp", "wabian2")
MISS = 2e-3


@cache
def parts(name, dt=0.01):
    robot = load_robot(name, "floating")
    feet = Feet(robot, 0.005)
    height = LegReach(robot, feet, 0.03).height
    limits = step_limits_of(robot, feet, height)
    return limits, TrialWalk(robot, feet, height, True, dt), robot, feet, height


def walk(limits, trial, command, count=3, first=0, before=None):
    """Steps by a velocity, the greatest change allowed at once, and one that closes; their greatest length."""
    planner = VelocityPlanner(limits, StepTimes())
    planner.command = np.array(command)
    d = np.array(command) * 0.8 if before is None else before
    stance, out, length = Footstep(1 - first, trial.soles[1 - first], 0.0, 0.0, 0.0), [], 0.0
    for _ in range(count):
        steps, d = planner.next_steps(stance, d, 1)
        stance, length = steps[0], max(length, float(np.hypot(d[0], d[1])))
        out.append(stance)
    return [*out, planner.closing_steps(stance, 1)[0]], length


@pytest.mark.parametrize("name", ROBOTS)
def test_no_accepted_step_makes_the_inverse_kinematics_miss_a_sole(name):
    limits, trial, *_ = parts(name)
    rng = np.random.default_rng(7)
    for _ in range(3):
        steps, length = walk(limits, trial, rng.uniform([-1, -0.5, -1.5], [1.5, 0.5, 1.5]), first=int(rng.integers(2)))
        assert trial.miss(steps, length) < MISS


@pytest.mark.parametrize("name", ROBOTS)
def test_limits_are_such_as_the_robots_are_known_to_walk_with(name):
    """Nothing needlessly tight. SURALP's knees turn at 1.6 rad/s: its steps are short."""
    limits, *_ = parts(name)
    least = {"lola": (0.385, 0.25), "hrp2": (0.2, 0.15), "suralp": (0.06, 0.06), "wabian2": (0.2, 0.15)}[name]
    assert limits.forward >= least[0]
    assert limits.backward >= least[1]
    assert limits.sideways >= 0.05
    assert limits.turn_out >= 0.2
    assert limits.turn_in >= 0.1
    assert all(0.0 <= share <= 1.0 for share in limits.quick)
    assert limits.lift >= 0.02
    assert limits.gap <= limits.width


def test_a_step_well_beyond_a_limit_cannot_be_walked():
    limits, trial, *_ = parts("hrp2")
    planner = VelocityPlanner(limits, StepTimes())
    stance, steps = Footstep(1, trial.soles[1], 0.0, 0.0, 0.0), []
    for _ in range(3):
        stance = planner.make(stance, np.array([1.3 * limits.forward, 0.0, 0.0]), 0.8)
        steps.append(stance)
    assert trial.miss(steps, 1.3 * limits.forward) > 1e-3


def test_they_are_found_once_for_a_robot_and_refused_for_a_height_out_of_reach():
    limits, _, robot, feet, height = parts("hrp2")
    assert step_limits_of(robot, feet, height) is limits
    with pytest.raises(ConfigError, match="cannot stand"):
        step_limits_of(robot, feet, lambda length: height(0.0) + 0.15)
