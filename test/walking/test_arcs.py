"""Robots of others walk along arcs in the simulated world, where their models lie on this machine.

Their legs keep apart by shapes that were laid around meshes, their steps and turns are those that the inverse
kinematics finds. What is not followed must be reported: by a fall with its reason, or by steps marked as limited.
"""

import math
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.walking.trial import NOISE, NoisySensors, WalkConditions, steady, walk
from humanoid_control.errors import HumanoidError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking import Walker, WalkState
from humanoid_control.walking.footsteps import VelocityPlanner, middle_of
from humanoid_control.walking.planning.step import Footstep, StepTimes

FALLS = pytest.mark.xfail(reason="falls, straight ahead too")
STRANGERS = ("talos", "g1", "h1", "h1_2", pytest.param("t1", marks=FALLS))
# [m/s], [rad/s] by which a walk may miss its velocity without a word; G1 drifts aside, a hip at its torque limit.
FOLLOWED = 0.05
GOAL = (0.5, 0.2, 0.4)  # [m], [m], [rad]


@cache
def stranger(name):
    """A robot and its walker; the search for its step limits takes half a minute."""
    try:
        robot = load_robot(name, "floating")
    except HumanoidError as e:
        pytest.skip(str(e))
    return robot, Walker(robot)


def world(name):
    return SimulationConfig(name, "floating").build()


def true_middle(engine, walker):
    data = engine.robot.model.createData()
    pin.framesForwardKinematics(engine.robot.model, data, engine.q)
    return middle_of([data.oMf[f] for f in walker.feet.frames])


def error_of(X):
    """Distance [m] and turn [deg] of a pose that should be the identity."""
    return math.hypot(*X.translation[:2]), abs(math.degrees(math.atan2(X.rotation[1, 0], X.rotation[0, 0])))


@pytest.mark.thorough
@pytest.mark.parametrize("name", STRANGERS)
def test_arcs_are_planned(name):
    _, walker = stranger(name)
    limits = walker.planner.limits
    planner = VelocityPlanner(limits, StepTimes())
    planner.command = np.array([0.2, 0.0, 0.1])
    soles = [pin.SE3(np.eye(3), np.array([0.0, s * limits.width / 2, 0.0])) for s in (1, -1)]
    stance, d = Footstep(1, soles[1], 0.0, 0.0, 0.0), np.zeros(3)
    for _ in range(20):
        (stance,), d = planner.next_steps(stance, d, 1)
    assert pin.log3(stance.X.rotation)[2] > 0.4 and np.hypot(*stance.X.translation[:2]) > 1.0


@pytest.mark.thorough
@pytest.mark.parametrize("velocity", [(0.15, 0.0, 0.05), (0.2, 0.0, -0.15)], ids=["gentle", "tight"])
@pytest.mark.parametrize("name", STRANGERS)
def test_arcs_are_walked_or_the_velocity_is_reported(name, velocity):
    robot, _ = stranger(name)
    walker, limited = Walker(robot), []

    def watch(engine, walker, report):
        limited.append(any(phase.step.limited for phase in walker.plan.phases))

    o = walk(world(name), walker, WalkConditions(steady(velocity), 16, noise=NOISE), watch)
    share = f"{o.torque_joint} at {100 * o.torque_share:.0f} % of its torque, {o.torque_full:.1f} s at the limit"
    print(f"{name}: {o.velocity.round(3)} of {velocity}, limited {any(limited)}, {share}, {o.fell or 'stands'}")
    assert o.fell == "", f"{o.fell}; {share}"
    assert o.steps >= 16 and np.degrees(o.tilt) < 5.0
    assert math.copysign(1.0, velocity[2]) * o.velocity[2] > 0.6 * abs(velocity[2]), "it turns"
    assert o.velocity[0] > 0.6 * velocity[0], "it goes ahead"
    assert any(limited) or np.abs(o.velocity - velocity).max() < FOLLOWED, "what is not followed is reported"


@pytest.mark.thorough
@pytest.mark.parametrize("name", STRANGERS)
def test_a_pose_aside_and_turned_is_walked_to(name):
    robot, _ = stranger(name)
    engine, walker, begin, goal, limited = world(name), Walker(robot), None, None, False
    engine.step(300)
    sensors = NoisySensors(engine, NOISE, 0)
    while walker.t < 40.0:
        engine.step(2)
        sensors.read()
        engine.step(2)
        if (measured := sensors.read()) is None:
            continue
        if goal is None and walker.t > 2.0:
            begin = true_middle(engine, walker)
            x, y, yaw = GOAL
            goal = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.array([x, y, 0.0]))
            felt_goal = middle_of(walker.plan.soles(walker.t)) * goal
            walker.walk_to(felt_goal)
        report = walker.step(measured)
        limited |= any(phase.step.limited for phase in walker.plan.phases)
        assert report.state != WalkState.FALLEN, (report.why, report.steps)
        engine.command(walker.joints, walker.joint_velocity)
        if report.steps and not walker.planner.queue and report.state == WalkState.STAND:
            break
    assert report.state == WalkState.STAND and not walker.planner.queue
    by_odometry = error_of(felt_goal.actInv(middle_of(report.estimate.soles)))
    truly = error_of(goal.actInv(begin.actInv(true_middle(engine, walker))))
    print(f"{name}: off by {by_odometry} felt, {truly} in truth [m, deg], limited {limited}")
    # TALOS's feet turn away from each other by 2.6 degrees: where soles crept, steps of the list are shortened, and the
    # list is continued. G1 made a step in place beside the goal, which its step adjustment moved by 6 cm.
    assert by_odometry[0] < 0.02 and by_odometry[1] < 2.0, "the goal is reached"
    assert truly[0] < 0.05 and truly[1] < 3.0
