"""Mappings put together from smaller ones."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendons_of
from humanoid_control.tendons.mappings.exact import exact_mapping
from humanoid_control.tendons.mappings.fitting import load_mapping, save_mapping
from humanoid_control.tendons.mappings.per_tendon import PartedMapping, fit_polynomial_parts
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.routing.geometry import TendonGeometry


@pytest.fixture(scope="module")
def robot():
    return load_robot("kengoro_upper", "fixed")


@pytest.fixture(scope="module")
def scapula(robot):
    """Ten joints, of which no tendon crosses more than seven."""
    group = tendons_of(robot).groups["l_scapula"]
    joints = (*group.joints, "l_gh_yaw", "neck_yaw")
    return tendons_of(robot).only(group.tendons), joints, tendon_geometry(robot, "l_scapula", joints)


def test_exact_parts_are_the_whole(robot, scapula):
    tendons, joints, whole = scapula
    sets = {}
    for name, row in zip(whole.tendon_names, whole.crossed, strict=True):
        sets.setdefault(tuple(np.array(joints)[row]), []).append(name)
    parts = [exact_mapping(TendonGeometry(robot.model, tendons.only(tuple(t)), j)) for j, t in sets.items()]
    assert len(parts) > 1
    mapping = PartedMapping(parts, joints, whole.tendon_names, whole.limits)
    for q, v in random_postures(whole.limits, 20).reshape(10, 2, -1):
        lengths, arms = mapping.evaluate(q)
        np.testing.assert_allclose(lengths, whole.lengths(q), atol=1e-12)
        np.testing.assert_allclose(arms, whole.jacobian(q), atol=1e-12)
        np.testing.assert_allclose(mapping.jacobian_directional(q, v), whole.jacobian_directional(q, v), atol=1e-12)


def test_polynomials_of_the_joints_that_each_tendon_crosses_fit_a_group_too_large_for_a_grid(robot, scapula):
    tendons, joints, whole = scapula
    mapping = fit_polynomial_parts(robot.model, tendons, joints)
    assert max(len(p.joint_names) for p in mapping.parts) <= 7 and mapping.fit.rms < 3e-4
    q = random_postures(whole.limits, 300)
    lengths, arms = mapping.evaluate(q)
    truth, slopes = whole.lengths_of(q), whole.jacobians_of(q)
    assert np.sqrt(np.mean((lengths - truth) ** 2)) < 1e-3, "T1d"
    assert np.sqrt(np.mean((arms - slopes) ** 2)) < 0.03 * np.abs(slopes).max(), "T1d"
    assert np.abs(mapping.lengths(np.zeros(len(joints)))).max() < 1e-12


def test_a_saved_mapping_of_parts_comes_back_the_same_and_is_refused_for_other_robots(robot, scapula, tmp_path):
    tendons, joints, whole = scapula
    mapping = fit_polynomial_parts(robot.model, tendons, joints, degree=3, fewest=4, most=4)
    path = tmp_path / "scapula.npz"
    save_mapping(path, mapping)
    back = load_mapping(path, whole.model_hash, joints, whole.tendon_names)
    assert (
        isinstance(back, PartedMapping)
        and back.fit == mapping.fit
        and [p.name for p in tmp_path.iterdir()] == [path.name]
    )
    assert [(p.joint_names, p.muscle_names, p.fit) for p in back.parts] == [
        (p.joint_names, p.muscle_names, p.fit) for p in mapping.parts
    ]
    for q, v in random_postures(whole.limits, 10).reshape(5, 2, -1):
        for one, other in zip(back.evaluate(q), mapping.evaluate(q), strict=True):
            assert one == pytest.approx(other, abs=1e-15), "but for the order of sums"
        assert np.array_equal(back.jacobian_directional(q, v), mapping.jacobian_directional(q, v))
    with pytest.raises(ConfigError, match="another robot or model"):
        load_mapping(path, "another")
    with pytest.raises(ConfigError, match="has other joints"):
        load_mapping(path, joint_names=joints[::-1])
    with np.load(path) as file:
        content = dict(file)
    for key, value in (("part1_coefficients", None), ("parts", np.array(1)), ("part0_kind", np.array("spline"))):
        changed = {k: v for k, v in content.items() if k != key} | ({} if value is None else {key: value})
        np.savez(path, **changed)
        with pytest.raises(ConfigError, match="is incomplete"):
            load_mapping(path)
    with pytest.raises(ConfigError, match="keep its model file"):
        save_mapping(path, PartedMapping([exact_mapping(whole)], joints, whole.tendon_names, whole.limits))


def test_parts_that_do_not_make_a_whole_are_refused(robot, scapula):
    tendons, joints, whole = scapula
    exact = exact_mapping(whole)
    first = exact_mapping(TendonGeometry(robot.model, tendons.only(whole.tendon_names[:1]), joints))
    for parts, names, words in (
        ([first], joints, f"tendon '{sorted(whole.tendon_names[1:])[0]}' must be in exactly one part"),
        ([exact, first], joints, f"tendon '{whole.tendon_names[0]}' must be in exactly one part"),
        ([exact], joints[:-1], "has joint 'neck_yaw', which the whole does not have"),
    ):
        with pytest.raises(ConfigError, match=words):
            PartedMapping(parts, names, whole.tendon_names, whole.limits[: len(names)])
