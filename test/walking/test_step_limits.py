"""Limits of steps from the robot alone: what they accept can be walked, with its shapes watched."""

from functools import cache, partial

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.robots import load_robot
from humanoid_control.walking.feet import Feet, LegReach
from humanoid_control.walking.footsteps import VelocityPlanner
from humanoid_control.walking.planning.plan import WalkPlan
from humanoid_control.walking.planning.step import BRISK, CALM, EVEN, Footstep, StepTimes
from humanoid_control.walking.planning.toe_roll import RollSettings
from humanoid_control.walking.step_limits import MOST, SHARE, TrialWalk, step_limits_of
from humanoid_control.walking.walker import Walker
from test.robots_under_test import by_kind

ROBOTS = ("lola", "hrp2", "suralp", "wabian2")
MISS = 2e-3


@cache
def parts(name, dt=0.01):
    robot = load_robot(name, "floating")
    feet = Feet(robot, 0.005)
    height = LegReach(robot, feet, 0.03).height
    limits, roll = step_limits_of(robot, feet, height, roll=RollSettings()), RollSettings()
    return limits, TrialWalk(robot, feet, height, True, dt, roll), robot, feet, height


@cache
def walker_of(name):
    return Walker(load_robot(name, "floating"))


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
    return [*out, planner.make(stance, np.zeros(3), stance.swing + stance.double, stance.style)], length


@pytest.mark.parametrize("name", [*ROBOTS[:2], *(pytest.param(n, marks=pytest.mark.thorough) for n in ROBOTS[2:])])
def test_no_accepted_step_makes_the_inverse_kinematics_miss_a_sole(name):
    trial, replanner = parts(name)[1], walker_of(name).replanner
    rng, heights = np.random.default_rng(7), trial.height
    for _ in range(2):
        command = rng.uniform([-1, -0.5, -1.5], [1.5, 0.5, 1.5])
        steps, length = walk(replanner.footsteps.limits, trial, command, first=int(rng.integers(2)))
        trial.height = partial(replanner.height_of, style=steps[-2].style)
        assert trial.miss(steps, length) < 1.05 * MISS  # limits are searched along axes; a turn ahead is between them
    trial.height = heights


@pytest.mark.parametrize("name", by_kind(ROBOTS))
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


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "asked", "reached", "style"),
    [
        ("hrp2", 0.67, 0.65, BRISK),
        ("wabian2", 0.6, 0.595, BRISK),
        ("suralp", 0.5, 0.35, EVEN),
        ("lola", 0.5, 0.49, CALM),
    ],
)
def test_a_robot_takes_the_calmest_steps_that_reach_the_speed_or_says_that_none_do(name, asked, reached, style):
    """The last of a dozen steps. HRP-2's limit is 0.66 m/s, SURALP's 0.38: her knees turn at 1.6 rad/s."""
    planner = walker_of(name).planner
    planner.command = np.array([asked, 0.0, 0.0])
    stance, d = Footstep(1, pin.SE3.Identity(), 0.0, 0.0, 0.0), np.zeros(3)
    for _ in range(12):
        (stance,), d = planner.next_steps(stance, d, 1)
    assert reached <= d[0] / (stance.swing + stance.double) <= asked + 1e-9
    assert stance.style is style
    assert stance.limited == (name == "suralp")
    planner.command = np.zeros(3)
    for _ in range(6):
        (stance,), d = planner.next_steps(stance, d, 1)
    assert stance.style is CALM
    assert np.abs(d).max() == 0.0


@pytest.mark.parametrize("name", by_kind(ROBOTS))
def test_no_command_makes_a_robot_faster_than_a_quarter_of_the_speed_of_its_pendulum(name):
    walker = walker_of(name)
    fastest = 0.25 * np.sqrt(9.81 * walker.replanner.height)
    for limits in walker.planner.limits.faster:
        for T in np.linspace(0.5, 0.8, 7):
            assert limits.most(np.array([1.0, 0.0, 0.0]), T, True)[0] / T <= fastest + 0.02


def test_a_step_well_beyond_a_limit_cannot_be_walked():
    limits, trial, *_ = parts("hrp2")
    planner = VelocityPlanner(limits, StepTimes())
    stance, steps = Footstep(1, trial.soles[1], 0.0, 0.0, 0.0), []
    for _ in range(3):
        stance = planner.make(stance, np.array([1.3 * limits.forward, 0.0, 0.0]), 0.8)
        steps.append(stance)
    assert trial.miss(steps, 1.3 * limits.forward) > 1e-3


@pytest.mark.parametrize(
    ("name", "direction"),
    [("hrp2", "forward"), ("hrp2", "sideways"), ("hrp2", "turn_out"), ("lola", "turn_out"), ("lola", "turn_in")],
)
def test_every_limit_lies_between_a_walk_that_is_made_and_one_that_is_not(name, direction):
    """Reach, width and yaw each end where a sole is missed: by less than 2 mm at the limit, by more at 1.4 times it."""
    limits, trial, *_ = parts(name, 0.04)
    axis = {"forward": 0, "sideways": 1, "turn_out": 2, "turn_in": 2}[direction]
    planner, first = VelocityPlanner(limits, StepTimes()), int(direction == "turn_in")

    def miss(share):
        d = share * getattr(limits, direction) * np.eye(3)[axis]
        stance, steps = Footstep(1 - first, trial.soles[1 - first], 0.0, 0.0, 0.0), []
        for k in range(4):
            still = k == 3 or (axis == 2 and k % 2)
            stance = planner.make(stance, np.zeros(3) if still else d, StepTimes().nominal)
            steps.append(stance)
        return trial.miss(steps, float(np.hypot(d[0], d[1])))

    assert miss(1.0) < MISS
    most = SHARE * MOST[3] if axis == 2 else np.inf  # no leg turns farther than is of use
    assert miss(1.4) > MISS or getattr(limits, direction) == pytest.approx(most)


@pytest.mark.parametrize("dt", [0.01, 0.037])
def test_a_trial_looks_at_every_sample_from_the_first_to_the_end_of_the_last_rest(monkeypatch, dt):
    """A step that cannot be made is seen whenever it is made; a sample left out at an end would hide one."""
    limits, trial, *_ = parts("hrp2", dt)
    steps, _ = walk(limits, trial, [0.0, 0.0, 0.0], count=1)
    seen, at = [], WalkPlan.at

    def recorded(plan, t):
        seen.append((t, plan.end))
        return at(plan, t)

    monkeypatch.setattr(WalkPlan, "at", recorded)
    trial.miss(steps)
    times, end = np.array([t for t, _ in seen]), seen[0][1]
    assert times == pytest.approx(trial.dt * np.arange(1, len(times) + 1))
    assert end - 1e-9 <= times[-1] < end + trial.dt


def test_they_are_found_once_for_a_robot_and_refused_for_a_height_out_of_reach():
    limits, _, robot, feet, height = parts("hrp2")
    assert step_limits_of(robot, feet, height, roll=RollSettings()) is limits
    with pytest.raises(ConfigError, match="cannot stand"):
        step_limits_of(robot, feet, lambda length: height(0.0) + 0.15)
