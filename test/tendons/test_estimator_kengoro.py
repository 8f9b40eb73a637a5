"""The tendon-driven reference robot: its groups, fits, and estimates from its tendons (TE-01, TE-04, TE-09, T2, T4)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.files import mirrored_name
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendons_of
from humanoid_control.tendons.estimator import diagnosis, group_filter
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.grouping import find_groups
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.exact import exact_mapping, fit_target, group_mappings
from humanoid_control.tendons.mappings.fitting import load_mapping, save_mapping
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup, complete_groups, joint_owners, owner_table
from test.reference.straight_tendons import random_walk

ARM = ("l_gh_roll", "l_gh_pitch", "l_gh_yaw", "l_elbow_pitch")


@pytest.fixture(scope="module")
def robot():
    return load_robot("kengoro_upper", "fixed")


@pytest.fixture(scope="module")
def whole(robot):
    return tendon_geometry(robot)


@pytest.fixture(scope="module")
def groups(robot):
    return tuple(tendons_of(robot).groups.values())


def test_the_sources_groups_have_its_sizes_and_owners(groups):
    """Section III-B and table I: 8 joints each, 4 of them own; 10, 8 and 10 tendons; five groups for 20 joints."""
    sizes = {g.name: (len(g.own), len(g.joints), len(g.tendons)) for g in groups}
    sides = {f"{s}_{part}": size for s in "lr" for part, size in (("scapula", (4, 8, 8)), ("shoulder", (4, 8, 10)))}
    assert sizes == {"neck": (4, 8, 10), **sides}
    assert len(joint_owners(groups)) == 20 and len({m for g in groups for m in g.tendons}) == 46
    table = {joint: (owner, borrowers) for joint, owner, borrowers in owner_table(groups)}
    assert table["l_ac_roll"][0] == "l_scapula" and set(table["l_ac_roll"][1]) == {"neck", "l_shoulder"}
    assert table["neck_roll"][0] == "neck" and set(table["neck_roll"][1]) == {"l_scapula", "r_scapula"}
    assert table["r_elbow_pitch"] == ("r_shoulder", ())
    named = {g.name: g for g in groups}
    for part in ("scapula", "shoulder"):
        left, right = named[f"l_{part}"], named[f"r_{part}"]
        for names, others in ((left.own, right.own), (left.borrow, right.borrow), (left.tendons, right.tendons)):
            assert {mirrored_name(n) for n in names} == set(others)


def test_the_sources_groups_are_found_automatically(whole, groups):
    """TE-20: neck, both scapulae, both shoulders with elbows, from nothing but the moment arms."""
    J = whole.jacobians_of(random_postures(whole.limits, 150))
    found = find_groups(J, whole.joint_names, whole.tendon_names, whole.limits, 8)
    assert {frozenset(g.own) for g in found.groups} == {frozenset(g.own) for g in groups}
    assert not found.blind and max(len(g.joints) for g in found.groups) == 8


class Walk:
    """The upper body with the groups of Kawaharazuka 2018, walking at random: angles, lengths and an estimator."""

    def __init__(self, robot, whole, groups, steps, seed=0, still=()):
        self.groups = complete_groups(groups, whole.crossed, whole.joint_names, whole.tendon_names)
        self.mappings = group_mappings(robot.model, tendons_of(robot), self.groups)
        self.joints = [j for g in self.groups for j in g.own]
        self.muscles = list(dict.fromkeys(t for g in self.groups for t in g.tendons))
        middle = np.clip(0.0, whole.limits[:, 0] + 0.1, whole.limits[:, 1] - 0.1)
        q = random_walk(whole.limits, middle, steps, np.deg2rad(0.5), seed)
        for joint in still:
            q[:, whole.joint_names.index(joint)] = 0.2
        self.q = q[:, [whole.joint_names.index(j) for j in self.joints]]
        self.lengths = whole.lengths_of(q)[:, [whole.tendon_names.index(t) for t in self.muscles]]

    def errors(self, settings, z, off=10.0):
        """(T, 20) errors [deg] from a start that is off [deg], and the estimator."""
        estimator = TendonEstimator(self.groups, self.mappings, settings)
        assert list(estimator.joint_names) == self.joints and list(estimator.muscle_names) == self.muscles
        estimator.reset(dict(zip(self.joints, self.q[0] + np.deg2rad(off), strict=True)))
        return np.rad2deg(np.array([estimator.step(a) for a in z]) - self.q), estimator


def test_the_whole_upper_body_is_found_to_a_degree(robot, whole, groups):
    """T2: 20 joints of five groups from 46 tendons with 0.1 mm of noise, start 10 deg off."""
    walk = Walk(robot, whole, groups, 400)
    z = walk.lengths + 1e-4 * np.random.default_rng(0).standard_normal(walk.lengths.shape)
    error, estimator = walk.errors(EstimatorSettings("absolute"), z)
    assert np.sqrt(np.mean(error[200:] ** 2, axis=0)).max() < 1.0
    assert estimator.faults.report() == {}


def test_spikes_lead_no_joint_astray(robot, whole, groups):
    """T3: 0.5 mm of noise and 5 mm in 2 % of all lengths, settings as they come."""
    walk = Walk(robot, whole, groups, 800)
    rng = np.random.default_rng(0)
    z = walk.lengths + 5e-4 * rng.standard_normal(walk.lengths.shape)
    z += np.where(rng.uniform(size=z.shape) < 0.02, 5e-3 * rng.choice([-1.0, 1.0], z.shape), 0.0)
    error, estimator = walk.errors(EstimatorSettings("absolute"), z)
    assert np.sqrt(np.mean(error[100:] ** 2, axis=0)).max() < 1.5
    assert not estimator.faults.excluded.any() and not any(f.recoveries for f in estimator.filters)


def test_joints_that_rest_while_others_move_are_not_lost(robot, whole, groups):
    """A neck that stands still for long keeps its angles by changes of length, and knows how unsure it is of them."""
    neck = groups[0].own
    walk = Walk(robot, whole, groups, 2000, 1, still=neck)
    z = walk.lengths + 1e-4 * np.random.default_rng(0).standard_normal(walk.lengths.shape)
    error, estimator = walk.errors(EstimatorSettings("r2", length_noise=1e-4), z)
    assert (np.abs(error[-1]) < 4 * np.rad2deg(estimator.deviation)).all()
    moving = [k for k, joint in enumerate(walk.joints) if joint not in neck]
    assert np.abs(error[-300:, moving]).mean(axis=0).max() < 2
    assert np.abs(error[-300:]).max() < 20  # neck top and neck pitch move tendons alike


def test_a_filter_that_is_sure_of_a_wrong_posture_begins_anew(robot, whole, groups, monkeypatch):
    """When most tendons contradict the estimate it is the estimate that is wrong; updates made again leave few such."""
    monkeypatch.setattr(group_filter, "ITERATIONS", 0)
    monkeypatch.setattr(diagnosis, "SURPRISING", 0.0)
    walk = Walk(robot, whole, groups, 300)
    estimator = TendonEstimator(walk.groups, walk.mappings, EstimatorSettings("absolute", length_noise=1e-4))
    for f in estimator.filters:
        f.reset(np.clip(f.theta + 1.0, *f.mapping.limits.T), np.full(f.d, 1e-3))
    error = np.rad2deg(np.array([estimator.step(a) for a in walk.lengths]) - walk.q)
    assert any(f.recoveries for f in estimator.filters)
    assert np.abs(error[-1]).max() < 0.5 and not estimator.faults.excluded.any()


def test_an_arm_that_was_zeroed_wrongly_is_found_from_changes_of_length(robot):
    """T4b, E4: from (0, 0, 0, -45) deg to the truth; median and worst over walks."""
    geometry = tendon_geometry(robot, "l_shoulder", ARM)
    mapping = exact_mapping(geometry)
    group = TendonGroup("arm", ARM, (), geometry.tendon_names)
    start, guess = np.deg2rad([30, -30, 30, -30]), np.deg2rad([0, 0, 0, -45])
    found = []
    for seed in range(4):
        q = np.vstack([start, random_walk(geometry.limits, start, 1500, np.deg2rad(1), seed)])
        z = geometry.lengths_of(q) + 1e-4 * np.random.default_rng(seed).standard_normal((len(q), 10))
        f = GroupFilter(group, mapping, EstimatorSettings(length_noise=1e-4))
        f.reset(guess)
        error = np.array([f.step(a) for a in z]) - q
        found.append(np.rad2deg(np.abs(error[-300:]).mean(axis=0)))
    assert np.median(found, axis=0).max() < 1.0 and np.max(found) < 5.0


def test_a_group_fitted_on_a_grid_keeps_to_the_geometry_and_to_its_robot(robot, tmp_path):
    """T1d with a reduced grid: eight joints and ten tendons of the shoulder."""
    geometry = tendon_geometry(robot, "l_shoulder")
    made = geometry.model_hash
    mapping = fit_polynomial_on_grid(fit_target(geometry), (6, 6, 5, 5, 3, 3, 3, 3), 5)
    q = random_postures(geometry.limits, 500, seed=2)
    lengths, jacobians = geometry.raw(q)
    found, slopes = mapping.evaluate(q)
    error = found + geometry.zero - lengths
    assert np.sqrt(np.mean((error - error.mean(axis=0)) ** 2)) < 1e-3
    assert np.sqrt(np.mean((slopes - jacobians) ** 2)) < 0.03 * np.abs(jacobians).max()
    save_mapping(tmp_path / "shoulder.npz", mapping)
    load_mapping(tmp_path / "shoulder.npz", made, geometry.joint_names, geometry.tendon_names)
    other = TendonGeometry(robot.model, geometry.tendons, geometry.joint_names, {"neck_roll": 0.0})
    assert other.model_hash == made
    mirrored = tendon_geometry(robot, "r_shoulder").model_hash
    with pytest.raises(ConfigError, match="another robot or model"):
        load_mapping(tmp_path / "shoulder.npz", mirrored)
