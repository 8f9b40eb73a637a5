"""Ways into a motion and out of it: motions that obey physics, from rest and to rest."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.mocap import load_body_points
from humanoid_control.performing import (
    approach,
    coming_to_rest,
    joined,
    make_feasible,
    placed_on,
    standing_motion,
    stopping_frame,
)
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.performing.transitions import placed, way_to
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.robots import load_robot
from humanoid_control.walking.support import convex_hull, edge_distance
from test.performing.pieces import piece

GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.fixture(scope="module")
def dance():
    robot = load_robot("hrp2", "floating")
    trajectory = retarget_whole_body(load_body_points("dance"), robot, method="clip")
    return robot, make_feasible(piece(trajectory, 3.0, 8.0), robot)


@pytest.fixture(scope="module")
def begun(dance):
    """The motion with the way from the neutral posture, a foot of which stands elsewhere than in the motion."""
    robot, motion = dance
    return approach(robot, robot.q("neutral"), motion)


def poses_of(robot, q):
    return (x[0] for x in RigidSoles.of(robot).poses(robot, q[None]))


def test_placed_elsewhere_it_is_the_same_motion(dance):
    robot, motion = dance
    other = placed(motion, 1.1, np.array([3.0, -2.0]))
    for k in (0, 200, len(motion) - 1):
        R, p = poses_of(robot, other.q[k])
        own_R, own_p = poses_of(robot, motion.q[k])
        X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 1.1), np.array([3.0, -2.0, 0.0]))
        assert np.allclose(p, own_p @ X.rotation.T + X.translation, atol=1e-9)
        assert np.allclose(R, X.rotation @ own_R, atol=1e-9)
        assert np.allclose(robot.center_of_mass(other.q[k])[:2] - other.center[k, :2],
                           X.rotation[:2, :2] @ (robot.center_of_mass(motion.q[k]) - motion.center[k])[:2])  # fmt: skip
        base = pin.rnea(robot.model, robot.data, other.q[k], other.v[k], other.a[k])
        assert np.allclose(base, pin.rnea(robot.model, robot.data, motion.q[k], motion.v[k], motion.a[k]), atol=1e-6)
    total = other.forces.sum(axis=1) / robot.mass + GRAVITY
    assert np.allclose(total, (motion.forces.sum(axis=1) / robot.mass + GRAVITY) @ X.rotation.T, atol=1e-9)
    shift = np.linalg.norm(other.zmp - motion.zmp @ X.rotation[:2, :2].T, axis=1)
    assert np.allclose(shift, np.hypot(3.0, 2.0))


def test_a_first_stance_beyond_the_reach_of_a_step_is_reached(mocap):
    """The clip begins with both feet turned out by 22 degrees: a step of the plan would keep further away."""
    robot = load_robot("hrp2", "floating")
    retargeted = retarget_whole_body(load_body_points(mocap("cmu_bvh/02_05.bvh")), robot, method="clip")
    motion = make_feasible(piece(retargeted, 0.0, 3.0), robot)
    begun = approach(robot, robot.q("neutral"), motion)
    soles = RigidSoles.of(robot).poses(robot, begun.q)[1]
    for places in (soles, begun.sole_position):
        assert np.linalg.norm(np.diff(places, axis=0), axis=2).max() < 0.006, "no sole jumps where both are joined"


def test_the_way_begins_as_the_robot_stands_steps_and_ends_in_the_first_posture(dance, begun):
    robot, motion = dance
    n = len(begun) - len(motion)
    assert 1.0 < n / begun.rate < 6.0
    assert np.abs(begun.q[0, 7:] - robot.postures["neutral"]).max() < 0.01
    assert np.abs(begun.q[n, 7:] - motion.q[0, 7:]).max() < 0.01
    _, p = poses_of(robot, robot.q("neutral"))
    assert np.linalg.norm(begun.sole_position[0] - p, axis=1).max() < 0.005
    assert begun.stands[:n].any(axis=1).all(), "a foot always stands"
    steps = [(begun.stands[1:n, f] & ~begun.stands[: n - 1, f]).sum() for f in (0, 1)]
    assert sum(steps) in (1, 2) and max(steps) == 1, "each foot steps once at most"
    speeds = np.abs(np.diff(begun.q[:, 7:], axis=0)) * begun.rate / robot.velocity
    assert speeds[:n].max() < 0.8
    assert np.abs(np.diff(begun.center, axis=0)[n - 2 : n + 2]).max() < 2e-3, "no jump where both are joined"
    assert np.linalg.norm(np.diff(begun.sole_position, axis=0), axis=2).max() * begun.rate < 4.0
    assert begun.infeasible[:n].max() < 2e-3 and begun.torque_share[:n].max() < 1.0
    assert (begun.clock[: n + 1] == motion.clock[0]).all() and begun.clock[-1] == motion.clock[-1]


def test_a_robot_that_stands_in_the_first_posture_has_no_way_to_go(dance):
    robot, motion = dance
    R, p = poses_of(robot, motion.q[0])
    assert way_to(robot, RigidSoles.of(robot), motion.q[0], placed_on(motion, R, p)) is None
    assert len(approach(robot, motion.q[0], motion)) == len(motion)


def test_it_may_stand_anywhere_and_look_anywhere(dance, begun):
    robot, motion = dance
    X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 2.0), np.array([50.0, -7.0, 0.0]))
    q = robot.q("neutral")
    q[:7] = pin.SE3ToXYZQUAT(X * pin.XYZQUATToSE3(q[:7]))
    there = approach(robot, q, motion)
    assert len(there) == len(begun)
    assert np.allclose(there.q[:, 7:], begun.q[:, 7:], atol=2e-4)
    where = begun.sole_position @ X.rotation.T + X.translation
    assert np.linalg.norm(there.sole_position - where, axis=2).max() < 1e-3


def test_two_motions_are_joined_frame_by_frame(dance):
    _, motion = dance
    twice = joined(motion, motion)
    assert len(twice) == 2 * len(motion) - 1
    assert np.array_equal(twice.q[len(motion) :], motion.q[1:])
    assert np.array_equal(twice.stands[: len(motion)], motion.stands)
    late = [c.time for c in twice.changes]
    assert late == [c.time + (len(motion) - 1) / motion.rate for c in motion.changes]


def test_it_stops_where_both_feet_stand_flat_and_go_on_doing_so(dance):
    _, motion = dance
    flat = (motion.stands & ~motion.toe_only).all(axis=1)
    swings = np.flatnonzero(~motion.stands.all(axis=1))
    for k in [0, *swings[::7].tolist()]:
        frame = stopping_frame(motion, k / motion.rate)
        assert frame >= k and (frame == len(motion) - 1 or flat[frame : frame + 5].all())
        between = flat[k:frame]
        assert not any(between[i : i + 5].all() for i in range(len(between) - 5)), "not later than it could"
    assert stopping_frame(motion, 1e9) == len(motion) - 1


def test_it_comes_to_rest_without_a_jump_between_its_feet(dance):
    robot, motion = dance
    for k in np.flatnonzero(np.diff(motion.stands.all(axis=1).astype(int)) > 0)[:4] + 1:
        frame = stopping_frame(motion, k / motion.rate)
        rest = coming_to_rest(robot, motion, frame)
        assert np.allclose(rest.q[0], motion.q[frame]) and np.allclose(rest.v[0], motion.v[frame])
        assert np.allclose(rest.center[0], motion.center[frame])
        assert np.allclose(rest.center_velocity[0], motion.center_velocity[frame])
        assert np.allclose(rest.center_acceleration[0], motion.center_acceleration[frame], atol=1e-9)
        velocity = np.gradient(rest.center, 1 / rest.rate, axis=0)
        assert np.allclose(velocity[2:-2], rest.center_velocity[2:-2], atol=2e-3)
        acceleration = np.gradient(rest.center_velocity, 1 / rest.rate, axis=0)
        assert np.allclose(acceleration[2:-2], rest.center_acceleration[2:-2], atol=2e-2)
        assert np.allclose(np.gradient(rest.q[:, 7:], 1 / rest.rate, axis=0)[2:-2], rest.v[2:-2, 6:], atol=0.05)
        for x in (rest.v, rest.center_velocity, rest.center_acceleration, rest.momentum):
            assert np.abs(x[-1]).max() < 1e-9
        assert (rest.q[:, 7:] >= robot.lower).all() and (rest.q[:, 7:] <= robot.upper).all()
        middle = motion.sole_position[frame, :, :2].mean(axis=0)
        assert np.linalg.norm(rest.center[-1, :2] - middle) < 1e-9
        corners = RigidSoles.of(robot).corners
        R, p = motion.sole_rotation[frame], motion.sole_position[frame]
        polygon = convex_hull(np.vstack([(corners[f] @ R[f].T + p[f])[:, :2] for f in (0, 1)]))
        assert min(edge_distance(polygon, z) for z in rest.zmp) > 0.0, "the soles can give what it asks for"


def test_a_robot_that_stands_still_is_a_motion(dance):
    robot, _ = dance
    still = standing_motion(robot, robot.q("neutral"))
    assert still.stands.all() and not still.toe_only.any() and np.abs(still.v).max() == 0.0
    assert np.allclose(still.center[0], robot.center_of_mass(robot.q("neutral")))
    assert len(still.trajectory().positions) == len(still)
