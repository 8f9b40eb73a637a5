"""A mapping that learns: what it finds, when it does not learn, and its file (TC-24)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.simulation.drives.winches import perturbed
from humanoid_control.tendons.control.body_image import BodyImage, CorrectedGeometry, group_images
from humanoid_control.tendons.routing.geometry import TendonGeometry

STIFFNESS = 5e4


@pytest.fixture(scope="module")
def geometry():
    return tendon_geometry(load_robot("kengoro_upper", "fixed"), "l_shoulder")


def image_of(geometry):
    return BodyImage.of_geometry(geometry, np.full(len(geometry.tendon_names), STIFFNESS))


def postures(geometry, count, seed, share=0.6):
    low, high = geometry.limits.T
    at = np.random.default_rng(seed).uniform(-1, 1, (count, len(low)))
    return 0.5 * (low + high) + share * 0.5 * (high - low) * at


def test_factors_offsets_and_compliance_are_found_exactly_without_noise(geometry):
    m, rng = len(geometry.tendon_names), np.random.default_rng(0)
    a, b, kappa = 0.05 * rng.standard_normal(m), 3e-3 * rng.standard_normal(m), 0.3 / STIFFNESS * rng.standard_normal(m)
    image = image_of(geometry)
    image.covariance[:, 3:, 3:] = 0.0  # attachments are known
    for theta in postures(geometry, 400, 1):
        T = rng.uniform(10, 100, m)
        assert image.add(theta, (1 + a) * geometry.lengths(theta) + b - kappa * T, T, noise=1e-6) == m
    assert image.parameters[:, 0] == pytest.approx(a, abs=2e-3)
    assert image.offsets == pytest.approx(b, abs=1e-4)
    assert image.parameters[:, 2] * STIFFNESS == pytest.approx(kappa * STIFFNESS, abs=0.05)
    theta, T = postures(geometry, 1, 5)[0], np.full(m, 50.0)
    paths = (1 + a) * geometry.lengths(theta) + b - kappa * T
    assert image.corrected_paths(paths, T) == pytest.approx(image.mapping().lengths(theta), abs=5e-5)


def test_derivatives_of_the_corrected_mapping(geometry):
    image = image_of(geometry)
    image.parameters[:, 3:] = 5e-3 * np.random.default_rng(3).standard_normal(image.parameters[:, 3:].shape)
    image.parameters[:, 3:] *= np.tile(image.crossed, 2)
    image.parameters[:, 0] = 0.05
    mapping, h = image.mapping(), 1e-6
    theta, v = postures(geometry, 1, 2)[0], np.linspace(-1, 1, len(geometry.joint_names))
    steps = np.eye(len(theta)) * h
    G = np.array([(mapping.lengths(theta + e) - mapping.lengths(theta - e)) / (2 * h) for e in steps]).T
    assert mapping.jacobian(theta) == pytest.approx(G, abs=1e-8)
    along = (mapping.jacobian(theta + h * v) - mapping.jacobian(theta - h * v)) / (2 * h)
    assert mapping.jacobian_directional(theta, v) == pytest.approx(along, abs=1e-6)
    assert mapping.lengths(np.zeros(len(theta))) == pytest.approx(np.zeros(len(mapping.muscle_names)), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_held_out_postures_are_never_worse_and_mostly_much_better(geometry, seed):
    """Arms 5 %, attachments 3 mm, wires 30 %; angles with 0.5 deg of noise, 350 samples."""
    robot = load_robot("kengoro_upper", "fixed")
    moved = perturbed(geometry.tendons, 3e-3, seed)
    true = TendonGeometry(robot.model, moved, geometry.joint_names)
    m, rng = len(geometry.tendon_names), np.random.default_rng(seed)
    a, kappa = 0.05 * rng.standard_normal(m), 0.3 / STIFFNESS * rng.standard_normal(m)
    image = image_of(geometry)

    def paths(theta, T):
        return (1 + a) * true.lengths(theta) + true.zero - geometry.zero - kappa * T

    for theta in postures(geometry, 350, 10 + seed):
        T = rng.uniform(10, 100, m)
        seen = theta + np.radians(0.5) * rng.standard_normal(len(theta))
        image.add(seen, paths(theta, T) + 1e-4 * rng.standard_normal(m), T)
    before, after = [], []
    for theta in postures(geometry, 60, 100 + seed):
        T = rng.uniform(10, 100, m)
        before.append(paths(theta, T) - geometry.lengths(theta))
        after.append(image.corrected_paths(paths(theta, T), T) - image.mapping().lengths(theta))
    before, after = (np.sqrt(np.mean(np.square(x), axis=0)) for x in (before, after))
    assert (after < np.maximum(before, 3e-4)).all() and np.median(after / before) < 0.2


def test_slack_tendons_fast_motions_and_unseen_joints_teach_nothing(geometry):
    image = image_of(geometry)
    m, d = image.crossed.shape
    theta, T = postures(geometry, 1, 0)[0], np.full(m, 30.0)
    paths = 1.1 * geometry.lengths(theta)
    assert image.add(theta, paths, np.full(m, 1.0)) == 0
    assert image.add(theta, paths, T, rates=np.full(d, 4.0)) == 0
    assert image.add(theta, paths, T, seen=np.zeros(d, dtype=bool)) == 0
    assert image.add(np.full(d, np.nan), paths, T) == 0
    assert not image.parameters.any() and not image.samples.any()
    one = np.ones(d, dtype=bool)
    one[0] = False
    T[3] = 0.0
    crossing = image.crossed[:, 0].copy()
    expected = ~crossing & (np.arange(m) != 3)
    assert image.add(theta, paths, T, seen=one) == expected.sum() and ((image.samples == 1) == expected).all()


def test_groups_of_an_estimator_get_their_part():
    robot = load_robot("kengoro_upper", "fixed")
    whole, groups = tendon_geometry(robot), tendon_groups(robot)
    image = BodyImage.of_geometry(whole, np.full(len(whole.tendon_names), STIFFNESS))
    image.parameters[:, 0] = np.linspace(-0.05, 0.05, len(whole.tendon_names))
    mappings = tendon_mappings(robot, groups)
    theta = whole.limits.mean(axis=1)
    lengths = image.mapping().lengths(theta)
    for name, mapping in group_images(image, mappings).items():
        own = theta[[whole.joint_names.index(j) for j in mapping.joint_names]]
        rows = [whole.tendon_names.index(t) for t in mapping.muscle_names]
        assert mapping.lengths(own) == pytest.approx(lengths[rows], abs=1e-9), name
    image.parameters[:] = 0.0
    assert mapping.lengths(own) == pytest.approx(lengths[rows], abs=1e-9), "a snapshot"


def test_a_controllers_geometry_is_the_corrected_mapping_with_its_offsets(geometry):
    image = image_of(geometry)
    image.parameters[:, 0], image.parameters[:, 1] = 0.03, 2e-3
    theta = postures(geometry, 1, 7)[0]
    lengths, G = np.zeros(len(geometry.zero)), np.zeros(image.crossed.shape)
    corrected = CorrectedGeometry(image, geometry)
    corrected.raw_into(theta, lengths, G)
    assert lengths == pytest.approx(geometry.zero + 1.03 * geometry.lengths(theta) + 2e-3, abs=1e-12)
    assert pytest.approx(1.03 * geometry.jacobian(theta), abs=1e-12) == G
    assert corrected.tendon_names == geometry.tendon_names


def test_its_file_is_refused_for_another_robot(geometry, tmp_path):
    image = image_of(geometry)
    theta = postures(geometry, 1, 0)[0]
    image.add(theta, 1.02 * geometry.lengths(theta), np.full(len(geometry.tendon_names), 30.0))
    image.save(tmp_path / "image.npz")
    again = image_of(geometry)
    again.load(tmp_path / "image.npz")
    assert np.array_equal(again.parameters, image.parameters) and again.samples.sum() == image.samples.sum() > 0
    right = tendon_geometry(load_robot("kengoro_upper", "fixed"), "r_shoulder")
    with pytest.raises(ConfigError, match="another robot or routing"):
        image_of(right).load(tmp_path / "image.npz")
    with pytest.raises(ConfigError, match="another stiffness"):
        BodyImage.of_geometry(geometry, np.full(len(geometry.tendon_names), 6e4)).load(tmp_path / "image.npz")
    with pytest.raises(ConfigError, match="not found"):
        image.load(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK not")
    with pytest.raises(ConfigError, match="damaged or not a body image"):
        image.load(tmp_path / "bad.npz")
    with pytest.raises(SizeError, match="angles"):
        image.add(theta[1:], geometry.lengths(theta), np.zeros(len(geometry.tendon_names)))
    with pytest.raises(ConfigError, match="stiffness of every wire"):
        BodyImage.of_geometry(geometry, np.zeros(len(geometry.tendon_names)))
