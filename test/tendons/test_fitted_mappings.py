"""Neural and table mappings, their files, and learning while running (TE-02, TE-03, TE-05, TE-16)."""

import contextlib

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import FilterSettings
from humanoid_control.tendons.mappings.exact import GeometryMapping
from humanoid_control.tendons.mappings.fitting import load_mapping, save_mapping
from humanoid_control.tendons.mappings.mapping import MappingInterrupted
from humanoid_control.tendons.mappings.neural import AntagonismUpdater, NeuralMapping, fit_neural
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.mappings.postures import grid_axes, grid_postures, random_postures
from humanoid_control.tendons.mappings.table import build_table
from humanoid_control.tendons.tendon import TendonGroup
from test.tendons.straight_lines import JOINTS, LIMITS, MUSCLES, arm, random_walk

NAMES = (JOINTS, MUSCLES, LIMITS)
EXACT = GeometryMapping(arm, *NAMES)


@pytest.fixture(scope="module")
def network():
    return fit_neural(arm, *NAMES, random_postures(LIMITS, 1500), 24, 500, model_hash="abc")


@pytest.fixture(scope="module")
def table():
    return build_table(arm, *NAMES, grid_postures(grid_axes(LIMITS, (12, 11, 12, 11))), "abc")


def test_the_network_fits_the_arm(network):
    q = random_postures(LIMITS, 1000, seed=9)
    lengths, jacobians = EXACT.evaluate(q)
    error = network.lengths(q) - lengths
    error -= error.mean(axis=0)  # the zero posture lies outside the range of the elbow, where the fit is looser
    assert np.sqrt(np.mean(error**2)) < 1e-3
    assert np.sqrt(np.mean((network.jacobian(q) - jacobians) ** 2)) < 0.05 * np.abs(jacobians).max()
    assert network.fit.rms < 1e-3 and np.abs(network.lengths(np.zeros(4))).max() < 1e-15


def test_the_networks_derivatives_are_those_of_its_values(network):
    rng, h = np.random.default_rng(0), 1e-6
    for q in random_postures(LIMITS, 4, seed=2):
        v = rng.standard_normal(4)
        columns = [(network.lengths(q + h * e) - network.lengths(q - h * e)) / (2 * h) for e in np.eye(4)]
        assert np.abs(np.stack(columns, axis=1) - network.jacobian(q)).max() < 1e-8
        columns = [(network.jacobian(q + h * e) @ v - network.jacobian(q - h * e) @ v) / (2 * h) for e in np.eye(4)]
        assert np.abs(np.stack(columns, axis=1) - network.jacobian_directional(q, v)).max() < 1e-7
        w = network.weights
        assert np.allclose(network.features(q[None])[0] @ w.W3.T, network.lengths(q), atol=1e-14)


def test_training_can_be_interrupted():
    with pytest.raises(MappingInterrupted, match="after 3 of 50 iterations"):
        calls = iter([None, None, False])
        fit_neural(arm, *NAMES, random_postures(LIMITS, 200), 8, 50, progress=lambda _: next(calls))


def test_the_table_gives_its_nearest_row_and_its_slope(table):
    q = random_postures(LIMITS * 0.8 + 0.2 * LIMITS.mean(axis=1, keepdims=True), 100, seed=4)
    lengths, jacobians = EXACT.evaluate(q)
    found, slopes = table.evaluate(q)
    assert np.sqrt(np.mean((found - lengths - (found - lengths).mean(axis=0)) ** 2)) < 5e-3
    assert np.sqrt(np.mean((slopes - jacobians) ** 2)) < 5e-3
    assert table.jacobian_directional(q[0], np.ones(4)).shape == (10, 4)


def test_the_search_of_the_table_finds_the_row(table):
    rows = table.postures[::97]
    assert np.array_equal(table.search(table.lengths(rows)), rows)
    q = random_postures(LIMITS, 200, seed=5)
    np.testing.assert_allclose(table.lengths(rows), EXACT.lengths(rows), atol=1e-12)
    error = np.abs(table.search(EXACT.lengths(q)) - q)
    assert np.rad2deg(np.median(error)) < 6  # half a cell of 10 deg, no better: it knows no time series


@pytest.mark.parametrize("kind", ["polynomial", "neural", "table"])
def test_a_saved_mapping_comes_back_the_same(kind, network, table, tmp_path):
    mapping = {
        "neural": network,
        "table": table,
        "polynomial": fit_polynomial_on_grid(arm, *NAMES, (5, 4, 6, 5), 5, "abc"),
    }[kind]
    save_mapping(tmp_path / "a.npz", mapping)
    back = load_mapping(tmp_path / "a.npz", "abc", JOINTS, MUSCLES)
    q = random_postures(LIMITS, 20, seed=1)
    for x, y in zip(back.evaluate(q), mapping.evaluate(q), strict=True):
        assert np.allclose(x, y, rtol=0, atol=1e-12)
    assert back.fit == mapping.fit and back.kind == kind and [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def path_of(mapping, folder):
    save_mapping(folder / "whole.npz", mapping)
    return folder / "whole.npz"


def test_a_mapping_of_another_robot_is_refused(network, tmp_path):
    path = tmp_path / "a.npz"
    save_mapping(path, network)
    with pytest.raises(ConfigError, match="another robot or model"):
        load_mapping(path, "def")
    with pytest.raises(ConfigError, match="has other joints"):
        load_mapping(path, joint_names=JOINTS[::-1])
    with pytest.raises(ConfigError, match="does not exist"):
        load_mapping(tmp_path / "b.npz")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ConfigError, match="damaged"):
        load_mapping(path)
    save_mapping(path, network)
    whole = bytearray(path.read_bytes())
    for place in range(60, len(whole), len(whole) // 60):  # a bit turned anywhere: told, or in what is not read
        turned = whole.copy()
        turned[place] ^= 0x10
        path.write_bytes(turned)
        with contextlib.suppress(ConfigError):
            load_mapping(path)
    with np.load(path_of(network, tmp_path)) as file:
        content = dict(file)
    for key, value in (("W1", None), ("W1", content["W1"] * np.nan), ("fit", np.zeros(2)), ("kind", np.array("x"))):
        np.savez(path, **{k: v for k, v in content.items() if k != key}, **({} if value is None else {key: value}))
        with pytest.raises(ConfigError, match="does not hold a whole mapping"):
            load_mapping(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ConfigError, match="damaged or no mapping"):
        load_mapping(tmp_path / "one.npy")
    np.savez(path, a=np.zeros(2))
    with pytest.raises(ConfigError, match="no joint-muscle mapping"):
        load_mapping(path)
    with pytest.raises(ConfigError, match="keep its model file"):
        save_mapping(path, EXACT)


def compared(mapping, q, z, updater=None):
    """Mean difference between absolute and relative estimates [deg]; the updater, if any, learns from the former."""
    absolute = GroupFilter(TendonGroup("arm", JOINTS, (), MUSCLES), mapping, FilterSettings("absolute", gate=0.0))
    relative = GroupFilter(absolute.group, mapping, FilterSettings("r2", gate=0.0))
    apart = []
    for f in (absolute, relative):
        f.reset(q[0])
    for k, a in enumerate(z):
        apart.append(np.abs(absolute.step(a) - relative.step(a)))
        if updater is not None:
            updater.add(absolute.theta, a)
            if k % 50 == 49:
                updater.update()
    return np.rad2deg(np.mean(apart))


def test_learning_keeps_the_shape_of_lengths_and_not_their_factor(network):
    """Samples from a corner of the range correct the lengths everywhere; a tendon that rests there keeps its own."""
    mapping = NeuralMapping(network.weights, *NAMES)
    scales = np.linspace(0.85, 1.15, 10)
    middle = LIMITS.mean(axis=1)
    far = random_walk(LIMITS, middle, 600, np.deg2rad(3), 1)
    near = middle + 0.3 * (far - middle)
    z = network.lengths(near) * scales
    updater = AntagonismUpdater(mapping, far[::2], rate=1.0)
    updater.start()
    for theta, lengths in zip(near, z, strict=True):
        updater.add(theta, lengths)
    updater.update()
    truth = network.lengths(far) * scales
    left, was = mapping.lengths(far) - truth, network.lengths(far) - truth
    assert rms(left) < 0.05 * rms(was)
    updater.revert()
    assert np.abs(mapping.lengths(far) - network.lengths(far)).max() < 1e-12
    updater.start()
    rng = np.random.default_rng(0)
    for theta in 0.01 * rng.standard_normal((200, 4)):  # near the zero posture, where noise is as large as the lengths
        updater.add(theta, network.lengths(theta) + 3e-4 * rng.standard_normal(10))
    updater.update()
    assert rms(mapping.lengths(far) - network.lengths(far)) < 0.02 * rms(network.lengths(far))


def rms(values):
    return np.sqrt(np.mean(values**2))


def test_learning_brings_both_estimators_together(network):
    """T5, T6: a plant whose moment arms differ by 10 % from the model's; both filters before and after learning."""
    before, after = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scales = 1 + 0.1 * rng.standard_normal(10)
        mapping = NeuralMapping(network.weights, *NAMES)
        q = random_walk(LIMITS, LIMITS.mean(axis=1), 700, np.deg2rad(1), seed)
        z = network.lengths(q) * scales + 1e-4 * rng.standard_normal((len(q), 10))
        updater = AntagonismUpdater(mapping, random_postures(LIMITS, 500))
        before.append(compared(mapping, q, z))
        updater.start()
        compared(mapping, q, z, updater)
        updater.stop()
        after.append(compared(mapping, q, z))
    assert np.median(before) < 40 and np.median(after) < 20
    assert np.median(after) < 0.8 * np.median(before)


def test_learning_is_frozen_when_stopped_and_can_be_taken_back(network):
    mapping = NeuralMapping(network.weights, *NAMES)
    updater = AntagonismUpdater(mapping, random_postures(LIMITS, 200), tension=2.0)
    q = random_postures(LIMITS, 300, seed=8)
    z = 1.1 * network.lengths(q)
    assert not updater.add(q[0], z[0]) and np.isnan(updater.update())
    updater.start()
    assert not updater.add(q[0], z[0], np.ones(10))
    for a, b in zip(q, z, strict=True):
        assert updater.add(a, b, np.full(10, 5.0))
    misfits = [updater.update() for _ in range(30)]
    assert misfits[-1] < 0.4 * misfits[0] and np.abs(mapping.lengths(np.zeros(4))).max() < 1e-15
    updater.revert()
    assert np.allclose(mapping.lengths(q), network.lengths(q), rtol=0, atol=1e-15)
