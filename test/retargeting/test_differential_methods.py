"""Methods of Dube 2012: weights by finite differences, limits kept, and after the joint shift no arm in the trunk."""

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import RetargetSettings, retarget_clip, scale_to_robot
from humanoid_control.retargeting.differential_methods import STEP, dls_step, limit_gradient, limit_weights
from humanoid_control.retargeting.retargeter import Retargeter
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind

ARM, TRUNK = ("upper_arm", "lower_arm", "hand"), ("upper_torso", "lower_torso")
LOOSE = {"method": "weighted_dls", "velocity_scale": np.inf}


def arm_trunk_pairs(robot):
    """Columns of the watched pairs that are an arm against the trunk."""
    names = [[robot.shapes[k].name for k in pair] for pair in robot.pairs]
    arm = np.array([any(n[2:] in ARM for n in pair) for pair in names])
    return np.flatnonzero(arm & np.array([any(n in TRUNK for n in pair) for pair in names]))


@lru_cache(maxsize=4)
def trunk_distance(robot):
    """What tells the distances of a robot: to build it takes longer than to ask it for one."""
    return robot.self_distance(), robot.model.createData(), arm_trunk_pairs(robot)


def depth(robot, joints):
    """(T,) least distance of an arm and the trunk, by coal, whose polyhedra are up to 0.9 % larger than the shapes."""
    distance, data, columns = trunk_distance(robot)
    out = []
    for q in joints:
        pin.forwardKinematics(robot.model, data, robot.q(q))
        out.append(distance.all_distances(data)[columns].min())
    return np.array(out)


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "we4rii"]))
def test_no_arm_is_left_in_the_trunk(name):
    robot = load_robot(name, "fixed")
    targets = scale_to_robot(find_body_points(load_clip("dance")), robot)
    before = Retargeter(robot, RetargetSettings(**LOOSE)).solve(targets)
    solver = Retargeter(robot, RetargetSettings(avoidance="shift", **LOOSE))
    after = solver.solve(targets)
    assert solver.shift.failures == 0
    bad = np.flatnonzero(depth(robot, before.positions) < -5e-3)
    assert (depth(robot, after.positions[bad]) > -2e-3).all()
    changed = np.abs(after.positions - before.positions).max(axis=0) > 0
    shiftable = {robot.joint_index(f"{s}_{j}") for s in "lr" for j in ("shoulder_abduction", "elbow_flexion")}
    assert set(np.flatnonzero(changed)) <= shiftable
    assert (after.positions >= robot.lower).all() and (after.positions <= robot.upper).all()


@pytest.mark.parametrize("name", by_kind(["hrp2", "we4rii"]))
def test_postures_put_into_the_trunk_at_random_are_freed(name):
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(5)
    solver = Retargeter(robot, RetargetSettings(avoidance="shift", **LOOSE))
    m, freed = robot.imitation_joints, 0
    for _ in range(300):
        joints = robot.postures["neutral"].copy()
        joints[m] = rng.uniform(robot.lower[m], robot.upper[m])
        if depth(robot, [joints])[0] > -5e-3:
            continue
        failures = solver.shift.failures
        joints[m] = solver.shift(joints[m])
        if solver.shift.failures == failures:
            freed += 1
            assert depth(robot, [joints])[0] > -2e-3
    assert freed > 10


def test_an_arm_that_one_shift_frees_is_freed_by_one_shift():
    """The shift that brings most distance comes first: where one of abduction is enough, nothing else moves."""
    robot, rng = load_robot("armar3", "fixed"), np.random.default_rng(8)
    shift = Retargeter(robot, RetargetSettings(avoidance="shift", **LOOSE)).shift
    m, compared = robot.imitation_joints, 0
    k = robot.joint_index("l_shoulder_abduction")
    for _ in range(900):
        joints = robot.postures["neutral"].copy()
        own = [j for j in m if robot.joint_names[j].startswith("l_")]
        joints[own] = rng.uniform(robot.lower[own], robot.upper[own])
        trials = np.repeat(joints[None], 3, axis=0)
        trials[1:, k] = np.clip(joints[k] + STEP * np.array([1, -1]), robot.lower[k], robot.upper[k])
        now, *then = depth(robot, trials)
        if now > -5e-3 or max(then) < 5e-3:
            continue
        after = joints.copy()
        after[m] = shift(joints[m])
        assert np.abs(after - joints).sum() < 1.2 * STEP
        compared += 1
    assert compared > 5


@pytest.mark.parametrize(("stuck", "failures"), [("", 0), ("l", 1), ("r", 1), ("lr", 1)])
def test_a_posture_fails_where_one_arm_stays_inside(stuck, failures, monkeypatch):
    robot = load_robot("wabian2", "fixed")
    shift = Retargeter(robot, RetargetSettings(avoidance="shift", **LOOSE)).shift
    arms = dict(zip("lr", shift._arms, strict=True))
    monkeypatch.setattr(shift, "_free", lambda arm, x: all(arm is not arms[side] for side in stuck))
    shift(robot.postures["neutral"][robot.imitation_joints])
    assert shift.failures == failures


@pytest.fixture(scope="module")
def dance():
    return find_body_points(load_clip("dance"))


def cost(q, lower, upper):
    return 0.25 * np.sum((upper - lower) ** 2 / ((upper - q) * (q - lower)))


def test_limit_gradient_is_the_derivative_of_the_cost():
    rng, eps = np.random.default_rng(0), 1e-7
    for _ in range(50):
        lower, upper = rng.uniform(-3, -0.2, 4), rng.uniform(0.2, 3, 4)
        q = lower + (upper - lower) * rng.uniform(0.05, 0.95, 4)
        numeric = [(cost(q + eps * d, lower, upper) - cost(q - eps * d, lower, upper)) / (2 * eps) for d in np.eye(4)]
        assert limit_gradient(q, lower, upper) == pytest.approx(numeric, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("width", "expected"), [(40, 22), (75, 43), (150, 86), (360, 206)])
def test_limit_gradient_five_degrees_inside_a_limit(width, expected):
    """Check values of eq. (4.23)."""
    upper = np.radians([float(width)])
    assert limit_gradient(upper - np.radians(5), np.zeros(1), upper)[0] == pytest.approx(expected, rel=0.03)


def test_limit_gradient_is_finite_at_and_beyond_the_limit():
    lower, upper = np.array([-1.0]), np.array([1.0])
    for q in (-2.0, -1.0, 1.0, 2.0):
        assert np.isfinite(limit_gradient(np.array([q]), lower, upper)).all()


def test_weights_brake_only_toward_the_limit():
    g = np.array([5.0, -5.0, 5.0])
    assert limit_weights(g, np.full(3, np.nan)).tolist() == [6, 6, 6]
    assert limit_weights(g, np.array([4.0, -6.0, 5.0])).tolist() == [6, 1, 6]


def test_two_forms_of_the_weighted_inverse_agree():
    """(J^T J + l^2 W)^-1 J^T = W^-1 J^T (J W^-1 J^T + l^2 I)^-1, eq. (4.19)."""
    rng = np.random.default_rng(1)
    J, e, w = rng.normal(size=(21, 10)), rng.normal(size=21), rng.uniform(1, 50, 10)
    lam = 0.3
    Wi = np.diag(1 / w)
    long_form = Wi @ J.T @ np.linalg.solve(J @ Wi @ J.T + lam**2 * np.eye(21), e)
    assert dls_step(J, e, w, lam) == pytest.approx(long_form)


@pytest.mark.parametrize("method", ["pinv", "dls", "weighted_dls"])
def test_differential_methods_follow_and_keep_range_and_speed(method, dance):
    robot = load_robot("wabian2", "fixed")
    targets = scale_to_robot(dance, robot)
    t = retarget_clip(targets, robot, RetargetSettings(method=method))
    assert (t.positions >= robot.lower).all() and (t.positions <= robot.upper).all()
    assert (np.abs(t.velocities) <= robot.velocity * (1 + 1e-9)).all()
    assert t.errors.mean() < 0.08
    constrained = retarget_clip(targets, robot)
    assert constrained.errors.mean() < t.errors.mean(), "with the same limits it comes nearer"


def test_feed_forward_drifts_and_feedback_does_not(dance):
    robot = load_robot("wabian2", "fixed")
    targets = scale_to_robot(dance, robot)
    loose = {"method": "dls", "velocity_scale": np.inf}
    back = retarget_clip(targets, robot, RetargetSettings(**loose)).errors[-100:].mean()
    forward = retarget_clip(targets, robot, RetargetSettings(**loose, feed_forward=True)).errors[-100:].mean()
    assert forward > 2 * back
