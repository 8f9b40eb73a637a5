"""Lengths, moment arms and how these change: finite differences, pinocchio, mirror images, other places."""

import itertools

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.tendons.mappings.exact import exact_mapping
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import Pulley, Tendon, TendonSet, ViaPoint, Wrap


def straight(name, points):
    """A tendon that runs straight from point to point, each (link, xyz)."""
    return Tendon(name, tuple(ViaPoint(link, xyz) for link, xyz in points))


BICEPS = straight(
    "biceps", [("chest", (0.05, 0.2, 0.2)), ("l_upper_arm", (0.02, 0.03, -0.1)), ("l_hand", (0.02, 0, -0.05))]
)
OVER_SPHERE = Tendon(
    "over sphere",
    (
        ViaPoint("chest", (0.0, 0.2, 0.26)),
        Wrap("sphere", "l_shoulder_1", (0.005, 0, 0.01), 0.04),
        ViaPoint("l_upper_arm", (0.01, 0.05, -0.1)),
    ),
)
SIDED = Tendon(
    "past cylinder",
    (
        ViaPoint("l_upper_arm", (-0.03, 0.01, -0.12)),
        Wrap("cylinder", "l_upper_arm", (0, 0, -0.25), 0.03, (0.1, 1, 0.2), side=(-0.1, 0, -0.27)),
        ViaPoint("l_elbow", (-0.045, 0.02, -0.1)),
        Pulley(2.0),
        ViaPoint("chest", (0.05, 0.15, 0.1)),
        ViaPoint("l_elbow", (0.03, 0.0, -0.05)),
    ),
)
THROUGH = Tendon(
    "through ring",
    (
        ViaPoint("chest", (0.06, 0.2, 0.25)),
        Wrap("cylinder", "l_upper_arm", (0, 0, -0.15), 0.02, (0, 0.1, 1), side=(0.001, 0, -0.15)),
        ViaPoint("l_elbow", (0.04, 0.0, -0.05)),
        Wrap("sphere", "l_forearm", (0, 0, -0.02), 0.015, side=(0, 0, -0.021)),
        ViaPoint("l_hand", (0.03, 0.02, -0.04)),
    ),
)
ALL = TendonSet((BICEPS, OVER_SPHERE, SIDED, THROUGH))


@pytest.fixture(scope="module")
def hrp2():
    return load_robot("hrp2", "fixed")


@pytest.fixture(scope="module")
def arm(hrp2):
    return TendonGeometry(hrp2.model, ALL)


def postures(geometry, count, seed=0):
    return np.random.default_rng(seed).uniform(*geometry.limits.T, size=(count, len(geometry.joint_names)))


def difference(f, x, h, along=None):
    """Central difference of fourth order, of each coordinate or along a direction."""
    if along is not None:
        return (8 * (f(x + h * along) - f(x - h * along)) - (f(x + 2 * h * along) - f(x - 2 * h * along))) / (12 * h)
    return np.stack([difference(f, x, h, e) for e in np.eye(len(x))], axis=-1)


def test_moment_arms_are_the_derivatives_of_the_lengths(arm):
    worst = [np.abs(difference(arm.lengths, x, 1e-4) - arm.jacobian(x)).max(axis=1) for x in postures(arm, 100)]
    assert np.median(worst, axis=0).max() < 1e-10
    assert np.quantile(worst, 0.9) < 1e-8, "where no tendon begins to touch within the step"


def test_straight_tendons_agree_to_1e_8_everywhere(hrp2):
    geometry = TendonGeometry(hrp2.model, TendonSet((BICEPS,)))
    for x in postures(geometry, 100, 1):
        assert np.abs(difference(geometry.lengths, x, 1e-3) - geometry.jacobian(x)).max() < 1e-8


def test_directional_derivatives_are_those_of_the_moment_arms(arm):
    rng, worst = np.random.default_rng(2), []
    for x in postures(arm, 100, 2):
        v = rng.normal(size=len(x))
        B = arm.jacobian_directional(x, v)
        worst.append(np.abs(difference(arm.jacobian, x, 1e-4, v) - B).max(axis=1))
        w = rng.normal(size=len(x))
        np.testing.assert_allclose(B @ w, arm.jacobian_directional(x, w) @ v, atol=1e-12, err_msg="not symmetric")
    assert np.median(worst, axis=0).max() < 1e-8 and np.quantile(worst, 0.9) < 1e-6


def test_every_way_around_a_solid_occurs_in_these_tests(arm):
    length, bare = arm.raw(postures(arm, 200))[0], TendonSet(tuple(_without_solids(t) for t in ALL))
    straight_length = TendonGeometry(arm.model, bare, arm.joint_names).raw(postures(arm, 200))[0]
    longer = (length > straight_length + 1e-6).mean(axis=0)
    assert longer[0] == 0 and (longer[1:] > 0.1).all() and (length >= straight_length - 1e-12).all()


def _without_solids(t):
    return Tendon(t.name, tuple(e for e in t.path if not isinstance(e, Wrap)))


def test_many_postures_at_once_are_the_single_ones(arm):
    X = postures(arm, 20)
    lengths, G = arm.raw(X)
    for x, whole, g in zip(X, lengths, G, strict=True):
        np.testing.assert_array_equal(whole - arm.zero, arm.lengths(x))
        np.testing.assert_array_equal(g, arm.jacobian(x))
    np.testing.assert_array_equal(arm.lengths_of(X), lengths - arm.zero)
    assert arm.raw(X[:0])[0].shape == (0, 4)


def test_lengths_are_zero_where_all_joints_are(arm):
    np.testing.assert_array_equal(arm.lengths(np.zeros(len(arm.joint_names))), np.zeros(4))
    assert (arm.zero > 0.05).all()


def test_lengths_are_distances_between_pinocchios_link_frames(arm, hrp2):
    data = hrp2.model.createData()
    for x in postures(arm, 10):
        q = hrp2.q("zero")
        for name, value in zip(arm.joint_names, x, strict=True):
            q[hrp2.model.joints[hrp2.model.getJointId(name)].idx_q] = value
        pin.framesForwardKinematics(hrp2.model, data, q)
        p = [data.oMf[hrp2.model.getFrameId(e.link)].act(np.array(e.xyz)) for e in BICEPS.path]
        total = sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(p))
        assert arm.raw(x[None])[0][0, 0] == pytest.approx(total, abs=1e-12)
        np.testing.assert_allclose(arm.paths(x)[0], p, atol=1e-12)
        np.testing.assert_array_equal(arm.theta(q), x)


def test_drawn_paths_are_as_long_as_the_tendons(arm):
    for x in postures(arm, 20, 5):
        for k, path in enumerate(arm.paths(x)):
            if k == 2:  # in two branches
                cut = int(np.flatnonzero(np.isnan(path[:, 0]))[0])
                drawn = _length(path[:cut]) + _length(path[cut + 1 :]) / 2
            else:
                drawn = _length(path)
            assert drawn == pytest.approx(arm.raw(x[None])[0][0, k], rel=3e-3)


def _length(path):
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def test_a_floating_base_changes_nothing(arm, hrp2):
    free = TendonGeometry(load_robot("hrp2", "floating").model, ALL)
    assert free.joint_names == arm.joint_names
    X = postures(arm, 20)
    for a, b in zip(free.raw(X), arm.raw(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def _mirrored(t):
    flip = lambda x: (x[0], -x[1], x[2])  # noqa: E731
    path = []
    for e in t.path:
        if isinstance(e, Pulley):
            path.append(e)
            continue
        link = "r_" + e.link[2:] if e.link.startswith("l_") else e.link
        if isinstance(e, ViaPoint):
            path.append(ViaPoint(link, flip(e.xyz)))
        else:
            path.append(Wrap(e.kind, link, flip(e.centre), e.radius, flip(e.axis), e.side and flip(e.side)))
    return Tendon(t.name, tuple(path))


def test_the_right_arm_is_the_mirror_image_of_the_left(arm, hrp2):
    right = TendonGeometry(hrp2.model, TendonSet(tuple(_mirrored(t) for t in ALL)))
    assert right.joint_names == tuple("r" + n[1:] for n in arm.joint_names)
    X = postures(arm, 50)
    for a, b in zip(right.raw(X), arm.raw(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@settings(max_examples=30)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.integers(0, 5))
def test_a_joint_that_is_held_counts_as_part_of_the_link(values, held):
    robot = _ROBOT
    whole = TendonGeometry(robot.model, ALL)
    x = np.array(values)
    names = [n for k, n in enumerate(whole.joint_names) if k != held]
    rest = TendonGeometry(robot.model, ALL, names[::-1], {whole.joint_names[held]: float(x[held])})
    y = np.delete(x, held)[::-1]
    for a, b in zip(whole.raw(x[None]), rest.raw(y[None]), strict=True):
        a = np.delete(a, held, axis=-1)[..., ::-1] if a.ndim == 3 else a
        np.testing.assert_allclose(a, b, atol=1e-12)


_ROBOT = load_robot("hrp2", "fixed")


def test_a_tendon_crosses_the_joints_between_its_links(arm):
    assert arm.joint_names[0] == "l_shoulder_flexion" and len(arm.joint_names) == 6
    assert arm.crossed[0].all() and not arm.crossed[1, 3:].any() and arm.crossed[1, :3].all()
    G = arm.jacobians_of(postures(arm, 50))
    assert not G[:, ~arm.crossed].any()


def test_the_geometry_is_a_joint_muscle_mapping_with_exact_derivatives(arm):
    mapping = exact_mapping(arm)
    assert (mapping.joint_names, mapping.muscle_names) == (arm.joint_names, arm.tendon_names)
    rng = np.random.default_rng(9)
    for x in postures(arm, 20, 9):
        v = rng.normal(size=len(x))
        np.testing.assert_array_equal(mapping.lengths(x), arm.lengths(x))
        np.testing.assert_array_equal(mapping.jacobian(x), arm.jacobian(x))
        np.testing.assert_array_equal(mapping.jacobian_directional(x, v), arm.jacobian_directional(x, v))


def test_the_hash_tells_one_routing_from_another(arm, hrp2):
    assert TendonGeometry(hrp2.model, ALL).model_hash == arm.model_hash == exact_mapping(arm).model_hash
    moved = straight("biceps", [*((e.link, e.xyz) for e in BICEPS.path[:2]), ("l_hand", (0.02, 0, -0.0501))])
    others = TendonSet((moved, OVER_SPHERE, SIDED, THROUGH))
    hashes = {
        arm.model_hash,
        TendonGeometry(hrp2.model, others).model_hash,
        TendonGeometry(hrp2.model, ALL, arm.joint_names[::-1]).model_hash,
        TendonGeometry(hrp2.model, ALL, arm.joint_names[:-1], {arm.joint_names[-1]: 0.1}).model_hash,
        TendonGeometry(hrp2.model, ALL.only(ALL.names[::-1])).model_hash,
    }
    assert len(hashes) == 5
    elsewhere = TendonGeometry(load_robot("hrp2", "floating").model, ALL, held={"waist_flexion": 0.3})
    assert elsewhere.model_hash == arm.model_hash, "where the chest is changes nothing"


LOST = TendonSet((straight("a", [("chest", (0, 0, 0)), ("l_elbwo", (0, 0, 0))]),))
BALL = Wrap("sphere", "chest", (0, 0, 0), 1)
BAD = {
    "link": (lambda m: TendonGeometry(m, LOST), "unknown link 'l_elbwo': did you mean l_elbow"),
    "joint": (lambda m: TendonGeometry(m, ALL, ["l_elbow_flexoin"]), "'l_elbow_flexoin': did you mean l_elbow_flexion"),
    "twice": (lambda m: TendonGeometry(m, ALL, ["l_elbow_flexion"] * 2), "named twice"),
    "held": (lambda m: TendonGeometry(m, ALL, held=np.zeros(3)), r"must be \(30,\), got \(3,\)"),
    "shape": (lambda m: TendonGeometry(m, ALL).raw(np.zeros((4, 2))), r"must be \(N, 6\), got \(4, 2\)"),
    "base": (lambda m: TendonGeometry(load_robot("hrp2").model, ALL, ["root_joint"]), "has 6 degrees of freedom"),
    "one point": (lambda m: straight("a", [("chest", (0, 0, 0))]), "tendon 'a': needs a point at both ends"),
    "solids": (lambda m: Tendon("a", (BICEPS.path[0], BALL, BALL, BICEPS.path[1])), "two consecutive wrapping solids"),
    "kind": (lambda m: Wrap("cube", "chest", (0, 0, 0), 1), "unknown wrapping solid 'cube'"),
    "radius": (lambda m: Wrap("sphere", "chest", (0, 0, 0), 0), "must be above zero, got 0"),
    "axis": (lambda m: Wrap("cylinder", "chest", (0, 0, 0), 1, (0, 0, 0)), "axis of a cylinder must not be zero"),
    "divisor": (lambda m: Pulley(-1), "divisor of a pulley must be above zero"),
    "name": (lambda m: TendonSet((BICEPS, BICEPS)), "'biceps' appears twice"),
    "tension": (lambda m: Tendon("a", BICEPS.path, "", 5, 1), "needs 0 <= min_tension <= max_tension, got 5 and 1"),
    "unknown": (lambda m: ALL.only(["bicps"]), "unknown tendon 'bicps': did you mean biceps"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_in_one_line(case, hrp2):
    make, says = BAD[case]
    with pytest.raises((RobotError, UnknownNameError), match=says) as e:
        make(hrp2.model)
    assert "\n" not in str(e.value)
