"""Simulated encoders and the walks that they measure (TE-17, TE-18)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors, TendonEncoders
from humanoid_control.tendons.mappings.postures import random_walk

LIMITS = np.deg2rad([[-20, 90], [-60, 40], [-110, -5]])


def test_a_walk_stays_within_its_limits_and_moves_as_asked():
    start, sigma = np.deg2rad([90, 0, -50]), np.deg2rad(1.0)
    q = random_walk(LIMITS, start, 20000, sigma, seed=3)
    assert np.array_equal(q[0], start) and q.shape == (20001, 3)
    assert (q >= LIMITS[:, 0]).all() and (q <= LIMITS[:, 1]).all()
    assert (np.ptp(q, axis=0) > 0.95 * np.ptp(LIMITS, axis=1)).all()  # it gets about
    step = np.diff(q, axis=0)
    assert np.allclose(step.std(axis=0), sigma, rtol=0.05)
    inside = [np.corrcoef(step[:-1, j], step[1:, j])[0, 1] for j in range(3)]
    assert all(0.8 < c < 0.92 for c in inside)  # 0.9 but for the reflections
    assert np.array_equal(q, random_walk(LIMITS, start, 20000, sigma, seed=3))


def test_without_errors_an_encoder_measures_the_length():
    z = np.random.default_rng(0).uniform(-0.1, 0.1, (5, 4))
    assert np.array_equal(TendonEncoders(4).measure_many(z), z)


def test_each_error_is_of_its_size():
    true = np.tile([0.05, -0.02, 0.0], (20000, 1))

    def error(**kinds):
        return TendonEncoders(3, EncoderErrors(**kinds), seed=1).measure_many(true) - true

    assert np.allclose(error(noise=1e-4).std(axis=0), 1e-4, rtol=0.03)
    assert np.abs(error(quantum=7e-4)).max() <= 3.5e-4
    spiked = error(spikes=0.02, spike=5e-3)
    assert set(np.round(np.unique(spiked), 9)) == {-5e-3, 0.0, 5e-3} and np.mean(spiked != 0) == pytest.approx(
        0.02, rel=0.1
    )
    assert np.allclose(np.diff(error(drift=1e-5), axis=0).std(axis=0), 1e-5, rtol=0.03)
    assert not np.ptp(error(scale=0.1), axis=0).any() and error(scale=0.1)[0, 2] == 0.0
    assert np.std([TendonEncoders(50, EncoderErrors(scale=0.1), s).factors for s in range(20)]) == pytest.approx(
        0.1, rel=0.1
    )


def test_an_incremental_encoder_counts_from_its_start():
    encoders = TendonEncoders(2, EncoderErrors(from_start=True))
    assert np.array_equal(encoders.measure(np.array([0.1, -0.2])), [0.0, 0.0])
    encoders.slack[1] = 0.03
    assert np.allclose(encoders.measure(np.array([0.15, -0.2])), [0.05, 0.03])


@pytest.mark.parametrize("kind", [{"noise": -1.0}, {"spikes": 1.5}, {"drift": float("nan")}])
def test_errors_that_cannot_be_are_refused(kind):
    with pytest.raises(ConfigError, match=next(iter(kind))):
        EncoderErrors(**kind)


def test_a_walk_that_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="not within the joint limits"):
        random_walk(LIMITS, np.zeros(3), 10, 0.01)
    with pytest.raises(ConfigError, match="sigma"):
        random_walk(LIMITS, LIMITS.mean(axis=1), 10, 5.0)
