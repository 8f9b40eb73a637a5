"""The plan while it goes on: no jump of the references at any step, start or stop; steps that follow the command."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.estimation.floating_base import BaseEstimate
from humanoid_control.robots import load_robot
from humanoid_control.walking import WalkSettings
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.planning.lipm import follow_dcm
from humanoid_control.walking.planning.plan import standing_point
from humanoid_control.walking.replanner import Commanded, Replanner
from humanoid_control.walking.stabilizer import Stabilizer
from humanoid_control.walking.step_adjustment import AdjustmentSettings
from humanoid_control.walking.support import edge_distance

DT = 0.004


@pytest.fixture(scope="module")
def robot():
    return load_robot("lola", "floating")


class Walked:
    """Plans of a walk followed in time, without a robot: only references."""

    def __init__(self, robot, X=None, mirrored=False):
        self.plans = Replanner(robot, Feet(robot), WalkSettings(horizon=0.0))
        X = pin.SE3.Identity() if X is None else X
        soles = [X * pin.SE3(np.eye(3), np.array([0.0, s * 0.095, 0.0])) for s in (1, -1)]
        self.q, self.v, self.t = robot.q("neutral"), np.zeros(robot.nv), 0.0
        self.center = X.act(np.array([0.0, 0.0, 0.9]))
        self.plans.stand(0.0, soles, self.center)
        self.center[:2] = self.plans.plan.at(0.0).dcm
        self.first = 1 if not mirrored else 0
        self.jumps, self.velocities, self.zmp = [], [], []

    @property
    def now(self):
        return Commanded(self.t, self.q, self.v, self.center)

    def change(self, call):
        """Replan, and remember by how much xi, as the centre of mass and its velocity make it, jumped."""
        plan = self.plans.plan
        before = plan.path.omega * (plan.at(self.t).dcm - self.center[:2])
        call()
        plan = self.plans.plan
        self.jumps.append(np.abs(plan.path.omega * (plan.at(self.t).dcm - self.center[:2]) - before).max())

    def step(self, lift, foot):
        self.plans.prepare(self.now, lift, foot)
        self.plans.take(self.now)

    def run(self, seconds):
        for _ in range(round(seconds / DT)):
            k = self.plans.plan.index(self.t)
            if k > 0:
                foot = self.plans.plan.phases[k].step.foot
                self.change(lambda foot=foot: self.step(self.t, foot))
            plan = self.plans.plan
            a, b = plan.at(self.t), plan.at(self.t + DT)
            self.center[:2] = follow_dcm(self.center[:2], a.dcm, b.dcm, plan.path.omega, DT)
            self.zmp.append((a, a.zmp))
            self.t += DT

    def go(self, velocity, seconds):
        begins = not self.plans.wanted and not self.plans.plan.phases
        self.plans.footsteps.command = np.array(velocity, dtype=float)
        if begins:
            self.change(lambda: self.step(self.t + 1.0, self.first))
        self.run(seconds)


COURSE = (
    ((0.4, 0.0, 0.0), 5.0),
    ((0.2, 0.0, 0.3), 3.0),
    ((0.0, 0.1, 0.0), 3.0),
    ((-0.2, 0.0, -0.2), 3.0),
    ((0.0, 0.0, 0.0), 4.0),
)


def test_velocity_of_the_centre_of_mass_is_continuous_at_every_plan(robot):
    walk = Walked(robot)
    for velocity, seconds in COURSE:
        walk.go(velocity, seconds)
    assert len(walk.jumps) > 15
    assert max(walk.jumps) < 1e-9


def test_the_zero_moment_point_stays_on_the_soles_that_stand(robot):
    walk, feet = Walked(robot), Feet(robot)
    for velocity, seconds in COURSE:
        walk.go(velocity, seconds)
    stabilizer = Stabilizer(feet, robot.mass)
    inside = [edge_distance(stabilizer.polygon(ref), p) for ref, p in walk.zmp]
    assert min(inside) > 0.0


@pytest.mark.parametrize("when", [0.5, 1.2, 2.0, 2.3, 2.75, 3.1])
def test_an_emergency_stop_goes_on_from_the_motion_and_ends_at_rest_in_two_steps(robot, when):
    walk = Walked(robot)
    walk.go((0.5, 0.0, 0.0), when)
    walk.plans.footsteps.command[:] = 0.0
    walk.change(lambda: walk.plans.stop_now(walk.now))
    assert walk.jumps[-1] < 1e-9
    assert len(walk.plans.plan.phases) <= 2
    while walk.t < walk.plans.plan.end + 1.0:
        walk.run(0.1)
    left, right = walk.plans.plan.soles(walk.t)
    rest = 0.5 * (standing_point(walk.plans.feet, (left, right), 0) + standing_point(walk.plans.feet, (left, right), 1))
    assert np.abs(walk.center[:2] - rest).max() < 0.015
    assert abs(left.actInv(right).translation[0]) < 1e-6  # side by side


def test_a_walk_in_a_turned_and_moved_world_is_the_same_walk(robot):
    X = pin.SE3(pin.exp3(np.array([0.0, 0.0, 2.5])), np.array([4.0, -3.0, 0.0]))
    here, there = Walked(robot), Walked(robot, X)
    for velocity, seconds in COURSE[:2]:
        here.go(velocity, seconds)
        there.go(velocity, seconds)
    np.testing.assert_allclose(there.center, X.act(here.center), atol=1e-9)
    for a, b in zip(here.plans.plan.soles(here.t), there.plans.plan.soles(there.t), strict=True):
        np.testing.assert_allclose((X * a).homogeneous, b.homogeneous, atol=1e-9)


def test_a_mirrored_command_gives_the_mirrored_walk(robot):
    here, there = Walked(robot), Walked(robot, mirrored=True)
    here.go((0.3, 0.08, 0.2), 6.0)
    there.go((0.3, -0.08, -0.2), 6.0)
    np.testing.assert_allclose(there.center, here.center * [1, -1, 1], atol=1e-9)
    left, right = here.plans.plan.soles(here.t)
    for a, b in zip((right, left), there.plans.plan.soles(there.t), strict=True):
        np.testing.assert_allclose(a.translation * [1, -1, 1], b.translation, atol=1e-9)


def test_the_way_is_that_of_the_command(robot):
    walk = Walked(robot)
    walk.go((0.4, 0.0, 0.0), 9.0)
    begin = walk.center.copy()
    walk.run(8.0)
    assert walk.center[0] - begin[0] == pytest.approx(3.2, rel=0.02)


def test_after_a_foot_that_came_down_at_another_height_all_steps_are_as_much_higher(robot):
    walked = Walked(robot)
    walked.go((0.3, 0.0, 0.0), 3.3)
    for height in (0.015, 0.005, -0.01):
        before = walked.plans.plan.phases
        assert len(before) > 1 and walked.plans.plan.index(walked.t) == 0
        walked.plans.settle(walked.now, height)
        after = walked.plans.plan.phases
        rise = [new.step.X.translation - old.step.X.translation for new, old in zip(after, before, strict=True)]
        by = height - before[0].step.X.translation[2]
        np.testing.assert_allclose(rise, np.tile([0.0, 0.0, by], (len(before), 1)), atol=1e-12)
        assert (after[0].lift, after[0].land, after[0].end) == (before[0].lift, before[0].land, before[0].end)


def pushed(robot, walk, by, seconds):
    """Adjust the present step for a robot whose xi is off the plan, tick by tick; the plan before."""
    old, a = walk.plans.plan, AdjustmentSettings()
    stabilizer = Stabilizer(walk.plans.feet, robot.mass)
    for _ in range(round(seconds / DT)):
        ref = walk.plans.plan.at(walk.t)
        center = np.array([*(old.at(walk.t).dcm + by), 0.9])
        still = np.zeros(3)
        now = BaseEstimate(walk.q, walk.v, center, still, list(ref.soles), np.ones(2) / 2, 0.0, np.zeros(2))
        walk.plans.adjust(walk.t, now, stabilizer.polygon(ref), a)
        walk.t += DT
    return old


@pytest.mark.parametrize("braking", [True, False])
def test_a_step_that_is_adjusted_is_followed_by_the_steps_that_were_planned(robot, braking):
    """While a robot brakes, or closes its feet, a small push must not lead its weight to where other steps want it."""
    walk = Walked(robot)
    walk.go((0.4, 0.0, 0.0), 5.0)
    walk.plans.footsteps.command = np.zeros(3)
    while not 0.05 < walk.plans.plan.at(walk.t).u < 0.3 or (len(walk.plans.plan.phases) > 1) != braking:
        walk.run(DT)
    outward = 1.0 if walk.plans.plan.phases[0].step.foot == 0 else -1.0
    old = pushed(robot, walk, np.array([0.0, 0.1 * outward]), DT)
    new = walk.plans.plan
    assert new is not old and len(new.phases) == len(old.phases)
    assert [p.step.foot for p in new.phases] == [p.step.foot for p in old.phases]


def test_feet_that_a_push_left_askew_are_closed_by_another_step(robot):
    walk = Walked(robot)
    walk.go((0.4, 0.0, 0.0), 5.0)
    walk.plans.footsteps.command = np.zeros(3)
    while not 0.05 < walk.plans.plan.at(walk.t).u < 0.3 or len(walk.plans.plan.phases) > 1:
        walk.run(DT)
    side = 1.0 if walk.plans.plan.phases[0].step.foot == 0 else -1.0
    pushed(robot, walk, np.array([0.0, 0.08 * side]), 0.1)
    assert walk.plans.askew
