"""The tendon-driven reference model: its numbers beside those worked out for its specification."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import nnls

from humanoid_control.robots import CATALOGUE, MODELS, REFERENCES, load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendons_of

# Lengths at zero [m], worked out independently and rounded to 0.1 mm.
LENGTHS = {
    "sternocleidomastoid": 0.1928, "scalenus": 0.1284, "splenius": 0.12, "longus_colli": 0.1987,
    "trapezius_upper": 0.2529, "trapezius_middle": 0.1141, "trapezius_lower": 0.2345, "levator_scapulae": 0.1779,
    "serratus_anterior": 0.1346, "rhomboid": 0.1189, "pectoralis_minor": 0.1191, "pectoralis_major_abdominal": 0.1557,
    "latissimus_dorsi_upper": 0.1753, "deltoid_front": 0.1665, "deltoid_middle": 0.1692, "deltoid_rear": 0.1818,
    "pectoralis_major_sternal": 0.1249, "latissimus_dorsi_lower": 0.2519, "infraspinatus": 0.1352,
    "subscapularis": 0.1264, "biceps": 0.358, "triceps": 0.2662, "brachialis": 0.1391,
}  # fmt: skip

# Moment arms at zero [mm], of a pull in the positive direction of the joint (minus d length / d angle), rounded to 1.
ARMS = {
    "l_sternocleidomastoid": {"neck_top_pitch": 4, "neck_roll": -32, "neck_pitch": 45, "neck_yaw": -17},
    "l_trapezius_upper": {"neck_top_pitch": -67, "neck_roll": -63, "neck_yaw": -40, "l_ac_roll": 42, "l_ac_yaw": 4},
    "l_serratus_anterior": {"l_sc_roll": 41, "l_sc_pitch": 107, "l_ac_roll": 65, "l_ac_yaw": -85},
    "l_levator_scapulae": {"l_sc_roll": 82, "l_sc_pitch": -30, "l_ac_roll": -39, "l_ac_yaw": 37, "neck_roll": -63},
    "l_deltoid_front": {"l_gh_roll": -20, "l_gh_pitch": -49, "l_gh_yaw": -2, "l_ac_roll": -7, "l_ac_yaw": -61},
    "l_latissimus_dorsi_lower": {"l_gh_roll": -30, "l_gh_pitch": 20, "l_ac_roll": -70, "l_sc_roll": -151},
    "l_biceps": {"l_gh_roll": -14, "l_gh_pitch": -30, "l_gh_yaw": -10, "l_elbow_pitch": -35},
    "l_triceps": {"l_gh_roll": -27, "l_gh_pitch": 58, "l_gh_yaw": -1, "l_elbow_pitch": 28},
    "l_brachialis": {"l_elbow_pitch": -21},
}


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


def test_46_tendons_over_20_joints_have_the_lengths_of_the_specification(whole, kengoro):
    assert len(whole.tendon_names) == 46 and set(whole.joint_names) == set(kengoro.joint_names) and kengoro.n == 20
    for name, value in zip(whole.tendon_names, whole.zero, strict=True):
        assert value == pytest.approx(LENGTHS[name[2:]], abs=6e-5), name
    assert whole.raw(random_postures(whole))[0].min() == pytest.approx(0.047, abs=0.002)


def test_moment_arms_at_zero_are_those_of_the_specification(whole):
    G = whole.jacobian(np.zeros(20))
    for tendon, arms in ARMS.items():
        for joint, expected in arms.items():
            found = -1e3 * G[whole.tendon_names.index(tendon), whole.joint_names.index(joint)]
            assert found == pytest.approx(expected, abs=0.6), (tendon, joint)


def test_the_three_groups_have_the_sizes_and_ranks_of_the_specification(kengoro):
    expected = {"neck": (10, 6, 4.1), "l_scapula": (8, 7, 3.3), "l_shoulder": (10, 7, 3.1)}
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
    """At least 5 mm between each straight part and each joint centre, over random postures."""
    model, data, nearest = kengoro.model, kengoro.model.createData(), np.inf
    tendons = list(tendons_of(kengoro))
    for theta in random_postures(whole, 300):
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
    assert nearest > 0.005


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
