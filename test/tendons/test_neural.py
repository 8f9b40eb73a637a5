"""Neural mappings: their fit, their derivatives, and learning while running (TE-02, TE-05, TE-16)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.tendons import AntagonismUpdater, EstimatorSettings, NeuralMapping, TendonGroup
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.mappings.mapping import MappingInterrupted
from humanoid_control.tendons.mappings.neural import fit_neural
from humanoid_control.tendons.mappings.postures import random_postures
from test.reference.straight_tendons import ARM_LENGTHS, EXACT, JOINTS, LIMITS, MUSCLES, random_walk

NAMES = (JOINTS, MUSCLES, LIMITS)


def test_the_network_fits_the_arm(network):
    q = random_postures(LIMITS, 1000, seed=9)
    lengths, jacobians = EXACT.evaluate(q)
    error = network.lengths(q) - lengths
    error -= error.mean(axis=0)  # the zero posture lies outside the range of the elbow, where the fit is looser
    assert np.sqrt(np.mean(error**2)) < 1e-3
    assert np.sqrt(np.mean((network.jacobian(q) - jacobians) ** 2)) < 0.05 * np.abs(jacobians).max()
    assert network.fit.rms < 1e-3 and np.abs(network.lengths(np.zeros(4))).max() < 1e-15


def test_the_network_fits_five_times_as_well_as_straight_lines(network):
    """Moment arms change over the range: what a linear mapping leaves is what a network is for."""
    q = random_postures(LIMITS, 1000, seed=11)
    lengths = EXACT.lengths(q)
    A = np.column_stack([q, np.ones(len(q))])
    straight = lengths - A @ np.linalg.lstsq(A, lengths, rcond=None)[0]
    error = network.lengths(q) - lengths
    error -= error.mean(axis=0)
    assert (np.sqrt((error**2).mean(axis=0)) < 0.2 * np.sqrt((straight**2).mean(axis=0))).all()


@pytest.mark.parametrize("seed", range(3))
def test_angles_found_by_the_network_are_those_of_the_exact_arm(network, seed):
    """A walk of 700 steps by the lengths of the arm itself, begun 10 degrees off."""
    q = random_walk(LIMITS, LIMITS.mean(axis=1), 700, np.deg2rad(1), seed)
    f = GroupFilter(TendonGroup("arm", JOINTS, (), MUSCLES), network, EstimatorSettings("absolute", gate=0.0))
    f.reset(q[0] + np.deg2rad(10.0))
    offset = network.lengths(q[:1]) - EXACT.lengths(q[:1])  # the zero posture lies outside the range of the elbow
    error = np.rad2deg([f.step(z) - a for z, a in zip(EXACT.lengths(q) + offset, q, strict=True)])
    assert np.sqrt(np.mean(error[200:] ** 2)) < 2.0
    assert np.abs(error[200:]).max() < 8.0


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
        fit_neural(ARM_LENGTHS, random_postures(LIMITS, 200), 8, 50, progress=lambda _: next(calls))


def test_one_iteration_of_one_unit_from_two_postures_is_the_least_there_is():
    postures = random_postures(LIMITS, 2)
    assert fit_neural(ARM_LENGTHS, postures, width=1, iterations=1).fit.samples == 2
    for width, iterations, count in ((0, 1, 2), (1, 0, 2), (1, 1, 1)):
        with pytest.raises(ConfigError, match="width and iterations from 1"):
            fit_neural(ARM_LENGTHS, postures[:count], width, iterations)


def compared(mapping, q, z, updater=None):
    """Mean difference between absolute and relative estimates [deg]; the updater, if any, learns from the former."""
    absolute = GroupFilter(TendonGroup("arm", JOINTS, (), MUSCLES), mapping, EstimatorSettings("absolute", gate=0.0))
    relative = GroupFilter(absolute.group, mapping, EstimatorSettings("r2", gate=0.0))
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


def test_the_oldest_samples_are_forgotten(network):
    """Whatever was seen before the last `size` samples, the same is learnt."""
    q = random_postures(LIMITS, 120, seed=8)
    z, wrong = 1.1 * network.lengths(q), 3.0 * network.lengths(q[::-1])
    learnt = []
    for before in (None, wrong[:37], wrong):
        mapping = NeuralMapping(network.weights, *NAMES)
        updater = AntagonismUpdater(mapping, random_postures(LIMITS, 200), size=len(q))
        updater.start()
        if before is not None:
            for a, b in zip(q, before, strict=False):
                updater.add(a, b)
        for a, b in zip(q, z, strict=True):
            updater.add(a, b)
        updater.update()
        learnt.append(mapping.lengths(q))
    assert np.allclose(learnt[1:], learnt[0], rtol=1e-9) and not np.allclose(learnt[0], network.lengths(q))


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
    learnt = mapping.lengths(q).copy()
    updater.stop()
    assert not updater.add(q[0], 2.0 * z[0], np.full(10, 5.0)) and np.isnan(updater.update())
    assert np.array_equal(mapping.lengths(q), learnt), "stopped: not a bit changes"
    assert misfits[-1] < 0.4 * misfits[0] and np.abs(mapping.lengths(np.zeros(4))).max() < 1e-15
    updater.revert()
    assert np.allclose(mapping.lengths(q), network.lengths(q), rtol=0, atol=1e-15)
