"""Arms against the momentum of the legs: along plans, walked by the inverse kinematics alone."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import UnknownNameError
from humanoid_control.kinematics.centroidal import inertia_about_center
from humanoid_control.robots import load_robot
from humanoid_control.walking import WalkSettings
from humanoid_control.walking.arm_swing import ARM_SWINGS, ArmSwing
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.momentum_reference import TurnMomentum
from humanoid_control.walking.replanner import Commanded, Replanner

T = 0.8


@cache
def walked(way, turning=0.0):
    """Lola walks along a plan of steps of 0.4 m; the plan, its times, and the momentum about the vertical [N m s]."""
    robot = load_robot("lola", "floating")
    replanner = Replanner(robot, Feet(robot), WalkSettings(arms=way, horizon=3.0))
    q = robot.q("neutral")
    inertia = inertia_about_center(robot.model, robot.data, q)[2, 2]
    replanner.filter.turning = TurnMomentum(inertia)
    pin.framesForwardKinematics(robot.model, robot.data, q)
    soles = [robot.data.oMf[f].copy() for f in replanner.feet.frames]
    center = robot.center_of_mass(q)
    replanner.stand(0.0, soles, center)
    replanner.footsteps.command = np.array([0.5, 0.0, turning])
    replanner.prepare(Commanded(0.0, q, np.zeros(robot.nv), center), 0.6, 0)
    phases = replanner.coming.phases
    while not replanner.filter.done:
        replanner.filter.advance(10)
    L = np.array(replanner.filter._L)[:, 2]
    plan = replanner._plan_of(0.0, soles, phases)
    return plan, replanner.filter.dt * np.arange(len(L)), L, inertia


def size(way, turning=0.0):
    _, t, L, _ = walked(way, turning)
    return np.ptp(L[t > 0.6 + T])  # the first step begins from rest


@pytest.mark.parametrize(("way", "most"), [("legs", 0.85), ("nullspace", 0.35), ("weighted", 0.4), ("task", 0.3)])
def test_each_method_lowers_the_momentum(way, most):
    assert 0.02 < size(way) / size("still") < most


def test_arms_that_only_swing_like_legs_go_with_the_other_leg():
    assert size("legs") > 2 * size("nullspace")


@pytest.mark.parametrize("way", ["nullspace", "task"])
def test_in_a_curve_it_is_that_of_a_rigid_robot_that_turns(way):
    plan, t, L, inertia = walked(way, 0.3)
    reference = TurnMomentum(inertia)
    wanted = np.array([reference.at(plan, x) for x in t])
    still = walked("still", 0.3)[2]
    assert wanted.max() == pytest.approx(inertia * 0.3, rel=0.1)  # I dphi / T at 0.3 rad/s
    late = t > 0.6 + T
    off, before = (np.sqrt(np.mean((x - wanted)[late] ** 2)) for x in (L, still))
    assert off < 0.35 * before


def test_in_a_curve_arms_do_not_go_to_the_end_of_their_range():
    """They did where they only balanced: the momentum jumped there, its rate above that of still arms."""
    rate = {way: np.abs(np.gradient(walked(way, 0.3)[2], 0.02))[70:].max() for way in ("still", "task")}
    assert rate["task"] < 0.5 * rate["still"]


def test_the_reference_of_a_plan_is_continuous_and_a_copy_goes_its_own_way():
    plan, _, _, inertia = walked("still", 0.3)
    reference, times = TurnMomentum(inertia), np.arange(0.0, plan.phases[2].end, 0.004)
    values = np.array([reference.at(plan, t) for t in times])
    assert (values[times < plan.phases[0].lift - 1e-9] == 0.0).all()
    assert np.abs(np.diff(values)).max() < 0.02 * values.max()
    fresh, first = TurnMomentum(inertia), plan.phases[0]
    begin, then, far = (first.lift + share * (first.end - first.lift) for share in (0.02, 0.5, 2.4))
    fresh.at(plan, begin)
    copy = fresh.copy()
    copy.at(plan, far)
    assert fresh.at(plan, then) == pytest.approx(float(np.interp(then, times, values)), abs=0.05 * values.max())
    straight = walked("still")[0]
    assert TurnMomentum(inertia).at(straight, 1.0) == pytest.approx(0.0, abs=1e-9)


def test_a_way_that_is_none_is_refused():
    with pytest.raises(UnknownNameError, match="nullspace"):
        ArmSwing(load_robot("lola", "floating"), "nulspace")
    assert ARM_SWINGS[0] == WalkSettings().arms
