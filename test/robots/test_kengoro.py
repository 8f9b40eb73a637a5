"""The tendon-driven reference model: its numbers beside those worked out for its specification."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import nnls

from humanoid_control.robots import CATALOGUE, MODELS, REFERENCES, load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendons_of
from humanoid_control.tendons.control.holdable import HoldableSet


def straight_lengths(robot, theta, names):
    """Lengths (M,) of straight lines through the points of the tendons, by pinocchio alone [m]."""
    model, data, q = robot.model, robot.model.createData(), np.zeros(robot.model.nq)
    q[[model.joints[model.getJointId(n)].idx_q for n in names]] = theta
    pin.framesForwardKinematics(model, data, q)
    out = []
    for tendon in tendons_of(robot):
        x = np.array([data.oMf[model.getFrameId(e.link, pin.FrameType.BODY)].act(np.array(e.xyz)) for e in tendon.path])
        out.append(np.linalg.norm(np.diff(x, axis=0), axis=1).sum())
    return np.array(out)


@pytest.fixture(scope="module")
def kengoro():
    return load_robot("kengoro_upper", "fixed")


@pytest.fixture(scope="module")
def whole(kengoro):
    return tendon_geometry(kengoro)


def random_postures(geometry, count=1500, seed=0):
    return np.random.default_rng(seed).uniform(*geometry.limits.T, size=(count, len(geometry.joint_names)))


def test_it_is_a_reference_model_and_not_one_of_the_robots():
    assert REFERENCES == ("kengoro_upper",) and not {*CATALOGUE, *MODELS} & {*REFERENCES}


def test_46_tendons_over_20_joints_have_the_lengths_of_their_points(whole, kengoro):
    assert len(whole.tendon_names) == 46 and set(whole.joint_names) == set(kengoro.joint_names) and kengoro.n == 20
    for theta in (np.zeros(20), *random_postures(whole, 5)):
        lengths = straight_lengths(kengoro, theta, whole.joint_names)
        assert whole.raw(theta[None])[0][0] == pytest.approx(lengths, abs=1e-12)
    assert whole.raw(random_postures(whole))[0].min() == pytest.approx(0.0274, abs=0.002)


def test_moment_arms_are_the_slopes_of_the_lengths(whole, kengoro):
    for theta in random_postures(whole, 1):
        G = whole.jacobian(theta)
        for k, step in enumerate(1e-6 * np.eye(20)):
            ahead, behind = (straight_lengths(kengoro, theta + d, whole.joint_names) for d in (step, -step))
            assert G[:, k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-7)


def test_the_three_groups_have_the_sizes_and_ranks_of_the_specification(kengoro):
    expected = {"neck": (10, 6, 2.39), "l_scapula": (8, 7, 2.36), "l_shoulder": (10, 7, 2.48)}
    for name, (tendons, rank, condition) in expected.items():
        group = tendon_geometry(kengoro, name)
        assert (len(group.tendon_names), len(group.joint_names)) == (tendons, 8)
        assert np.linalg.matrix_rank(group.jacobian(np.zeros(8)), tol=1e-6) == rank
        own = group.jacobians_of(random_postures(group))[:, :, :4]
        s = np.linalg.svd(own, compute_uv=False)
        assert s[:, 3].min() > 0.01, "full rank over the own joints in every posture"
        assert np.median(s[:, 0] / s[:, 3]) == pytest.approx(condition, rel=0.05)
    groups = tendons_of(kengoro).groups
    assert list(groups) == ["neck", "l_scapula", "r_scapula", "l_shoulder", "r_shoulder"]
    assert len({j for g in groups.values() for j in g.own}) == 20 == sum(len(g.own) for g in groups.values())


def test_tendons_stay_off_the_centres_of_the_joints_they_cross(kengoro, whole):
    """At least 2 mm between each straight part and each joint centre, over random postures."""
    model, data, nearest = kengoro.model, kengoro.model.createData(), np.inf
    tendons = list(tendons_of(kengoro))
    for theta in random_postures(whole, 100):
        q = np.zeros(model.nq)
        q[[model.joints[model.getJointId(n)].idx_q for n in whole.joint_names]] = theta
        pin.framesForwardKinematics(model, data, q)
        for t in tendons:
            frames = [model.frames[model.getFrameId(e.link, pin.FrameType.BODY)] for e in t.path]
            x = [
                data.oMi[f.parentJoint].act(f.placement.act(np.array(e.xyz)))
                for f, e in zip(frames, t.path, strict=True)
            ]
            for k in range(len(x) - 1):
                between = set(model.supports[frames[k].parentJoint]) ^ set(model.supports[frames[k + 1].parentJoint])
                c = np.array([data.oMi[j].translation for j in between])
                if len(c):
                    d = x[k + 1] - x[k]
                    s = np.clip((c - x[k]) @ d / (d @ d), 0, 1)
                    nearest = min(nearest, np.linalg.norm(x[k] + s[:, None] * d - c, axis=1).min())
    assert nearest > 0.002


def test_tensions_can_balance_every_joint(whole):
    """Antagonism at zero: pulling tensions, all above zero, with no torque left on any of the 20 joints."""
    G = whole.jacobian(np.zeros(20))
    more, rest = nnls(G.T, -G.T @ np.ones(46), maxiter=2000)
    assert rest < 1e-9 and (1 + more > 0).all()


def test_left_tendons_are_mirror_images_of_right_ones(whole):
    """Roll and yaw of the neck change sign in the mirror; the joints of the arms are defined so that they do not."""
    X = random_postures(whole, 50)
    other = [("r_" if n.startswith("l_") else "l_") + n[2:] if n[:2] in ("l_", "r_") else n for n in whole.joint_names]
    order = [whole.joint_names.index(n) for n in other]
    sign = np.array([-1.0 if n in ("neck_roll", "neck_yaw") else 1.0 for n in whole.joint_names])
    swap = [whole.tendon_names.index(("r_" if n.startswith("l_") else "l_") + n[2:]) for n in whole.tendon_names]
    a, b = whole.raw(X)[0], whole.raw(X[:, order] * sign)[0]
    np.testing.assert_allclose(a, b[:, swap], atol=1e-12)


def test_the_tendons_hold_the_whole_range_against_gravity(kengoro, whole):
    """Within the least tensions of the file, also with 1 kg in each hand in nearly all of it."""
    neutral = kengoro.q("neutral")
    bare = HoldableSet(kengoro.model, whole, held=neutral)
    missed = np.abs(bare.missed(random_postures(whole, 300, seed=7))).max(axis=1)
    assert (missed > 0.5).sum() == 0 and np.mean(missed > 0.1) < 0.02
    hands = {kengoro.model.frames[kengoro.points[p]].name: 1.0 for p in ("l_wrist", "r_wrist")}
    loaded = HoldableSet(kengoro.model, whole, payload=hands, held=neutral)
    assert np.mean(np.abs(loaded.missed(random_postures(whole, 200, seed=8))).max(axis=1) <= 0.5) > 0.8
