"""Feet of the robots and their wrenches."""

from dataclasses import replace as changed
from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.robots import load_robot
from humanoid_control.walking.feet import Feet, LegReach, reaction_of

ROBOTS = ("lola", "hrp2", "suralp", "wabian2")


@cache
def robot_of(name):
    return load_robot(name, "floating")


@pytest.mark.parametrize("name", ROBOTS)
def test_soles_lie_on_the_ground_around_their_frames_and_mirror_each_other(name):
    robot = robot_of(name)
    feet = Feet(robot)
    assert np.allclose(feet.lower[0] * [1, -1], [feet.lower[1][0], feet.upper[1][1]], atol=1e-3)
    assert (feet.lower < 0).all()
    assert (feet.upper > 0).all()
    assert 0.15 < feet.width < 0.25
    for side in (0, 1):
        outline = feet.outlines[side]
        assert (outline.min(axis=0) <= feet.lower[side] + 1e-12).all()
        assert (outline.max(axis=0) >= feet.upper[side] - 1e-12).all()
        area = np.sum(outline[:, 0] * np.roll(outline[:, 1], -1) - outline[:, 1] * np.roll(outline[:, 0], -1))
        assert area > 0
        assert feet.middle[side, 0] == pytest.approx(0.5 * (feet.lower + feet.upper)[side, 0])


def test_the_toe_of_a_drive_carries_no_farther_than_the_drive_holds():
    """Lola: 30 N m at the toe joint against a weight of 590 N reach 5 cm beyond it."""
    robot = robot_of("lola")
    feet = Feet(robot)
    pin.framesForwardKinematics(robot.model, robot.data, robot.q("neutral"))
    joint = next(n for n in robot.joint_names if "toe" in n and n.startswith("l"))
    toe = robot.data.oMi[robot.model.getJointId(joint)].translation
    at = robot.data.oMf[feet.frames[0]].actInv(toe)[0]
    reach = feet.upper[0, 0] - at
    assert reach <= robot.effort[robot.index[joint]] / (robot.mass * 9.81) + 0.03
    assert feet.outlines[0][:, 0].max() > feet.upper[0, 0]


@pytest.mark.parametrize(("name", "weak"), [("lola", 1.0), ("suralp", 1.0), ("hrp2", 0.2)])
def test_a_sole_ends_where_the_ankle_no_longer_holds_the_weight(name, weak):
    """The torque of the weight at its ends about each axis of the ankle, by the transposed Jacobian."""
    robot = load_robot(name, "floating")
    ankles = [k for k, n in enumerate(robot.joint_names) if "ankle" in n]
    robot.effort[ankles] *= weak
    feet = Feet(robot)
    pin.computeJointJacobians(robot.model, robot.data, robot.q("neutral"))
    pin.updateFramePlacements(robot.model, robot.data)
    shares = []
    for side, frame in enumerate(feet.frames):
        X = robot.data.oMf[frame]
        J = pin.getFrameJacobian(robot.model, robot.data, frame, pin.LOCAL_WORLD_ALIGNED)
        for corner in (feet.lower[side], feet.upper[side]):
            lever = X.rotation @ np.array([*corner, 0.0])
            force = np.array([0.0, 0.0, robot.mass * 9.81])
            tau = J.T @ np.concatenate([force, np.cross(lever, force)])
            shares += [abs(tau[robot.iv + k]) / robot.effort[k] for k in ankles]
    assert max(shares) < 0.92
    if name != "lola":
        assert max(shares) > 0.88, "no more is taken away than must be"


def test_the_point_to_stand_on_moves_toward_the_other_foot():
    feet = Feet(robot_of("hrp2"), inward=0.007)
    assert feet.middle[:, 1].tolist() == [-0.007, 0.007]


@pytest.mark.parametrize("name", ROBOTS)
def test_wrenches_are_the_sums_of_forces_at_points_of_the_soles(name):
    """Forces at points in the world, each sole's sensor sees its own in its frame: the sum about the sole frame."""
    robot = robot_of(name)
    feet, rng = Feet(robot), np.random.default_rng(4)
    joints = robot.postures["neutral"] + rng.uniform(-0.2, 0.2, robot.n)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.q(joints, pin.SE3.Random()))
    measured, expected = {}, np.zeros((2, 6))
    for side in (0, 1):
        S = data.oMf[feet.frames[side]]
        for sole in feet.soles[side]:
            X = data.oMi[sole.joint] * sole.X_joint_sensor
            total = np.zeros(6)
            for _ in range(4):
                at, force = X.translation + rng.normal(size=3) * 0.1, rng.normal(size=3) * 100
                local = X.rotation.T @ force
                total += np.concatenate([local, np.cross(X.actInv(at), local)])
                own = S.rotation.T @ force
                expected[side] += np.concatenate([own, np.cross(S.actInv(at), own)])
            measured[sole.name] = total
    assert np.allclose(feet.wrenches(data, measured), expected, atol=1e-9)
    measured.pop(feet.soles[0][0].name)
    with pytest.raises(KeyError):
        feet.wrenches(data, measured)


def test_robots_that_cannot_walk_are_told_what_is_missing():
    with pytest.raises(RobotError, match="fixed base"):
        Feet(load_robot("hrp2", "fixed"))
    robot = load_robot("hrp2", "floating")
    robot.points.pop("l_foot_tcp")
    with pytest.raises(RobotError, match="lacks the points l_foot_tcp"):
        Feet(robot)
    robot = load_robot("hrp2", "floating")
    robot.feet = (*robot.feet, changed(robot.feet[0], name="extra", link=robot.root_link))
    with pytest.raises(RobotError, match="'extra' belongs to neither leg"):
        Feet(robot)
    robot.feet = robot.feet[:1]
    with pytest.raises(RobotError, match="two soles"):
        Feet(robot)


def test_the_reaction_is_the_sum_of_forces_at_points_of_both_soles():
    """Random forces on points of tilted soles at two heights, summed one by one."""
    rng = np.random.default_rng(4)
    soles = [pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.05, y), np.array([0.1, y, 0.02 * y])) for y in (0.1, -0.1)]
    points, forces, wrenches = [], [], np.zeros((2, 6))
    for k, X in enumerate(soles):
        for _ in range(4):
            at, f = rng.uniform(-0.1, 0.1, 3) * [1, 1, 0], rng.normal(size=3) * [30, 30, 20] + [0, 0, 80]
            wrenches[k] += [*f, *np.cross(at, f)]
            points.append(X.act(at))
            forces.append(X.rotation @ f)
    got = reaction_of(soles, wrenches)
    np.testing.assert_allclose(got.force, np.sum(forces, axis=0))
    weights = [sum(f[2] for f in forces[4 * k : 4 * k + 4]) for k in (0, 1)]
    ground = np.average([X.translation[2] for X in soles], weights=weights)
    about = np.array([*got.zmp, ground])
    moment = sum(np.cross(p - about, f) for p, f in zip(points, forces, strict=True))
    np.testing.assert_allclose(moment, [0.0, 0.0, got.yaw_torque], atol=1e-9)
    assert got.friction == pytest.approx(np.hypot(*got.force[:2]) / got.force[2])
    for newtons, side in ((0.0, 0.0), (0.9, 0.0), (1.1, 0.1)):
        light = np.array([[0.0, 0.0, newtons, 0.0, 0.0, 0.0], np.zeros(6)])
        upright = [pin.SE3(np.eye(3), X.translation) for X in soles]
        assert reaction_of(upright, light).zmp == pytest.approx([0.1, side]), "less than a newton is nothing"


def test_the_height_over_a_step_follows_the_crouch_the_legs_and_the_rise():
    reach = object.__new__(LegReach)
    reach.length, reach.above, reach.neutral, reach.crouch = 0.8, 0.79, 0.9, 0.02
    assert reach.height(0.0) == pytest.approx(0.9 - 0.02), "the crouch counts where legs reach"
    legs = np.sqrt(0.8**2 - 0.3**2)
    assert reach.height(0.5) == pytest.approx(0.9 - (0.79 - legs)), "the legs, where they are nearly stretched"
    assert reach.height(9.0) == pytest.approx(0.9 - (0.79 - 0.4)), "no leg is bent by more than half"
    assert reach.height(0.0, rise=0.02) == reach.height(0.0)
    assert reach.height(0.0, rise=0.12) == pytest.approx(reach.height(0.0) - 0.2 * 0.1)
    assert reach.height(0.0, raised=0.01) == pytest.approx(0.9 - 0.01)
    assert reach.height(0.0, raised=1.0) == pytest.approx(0.9 + 0.01), "as far as the legs reach"
