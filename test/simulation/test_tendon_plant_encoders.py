"""Simulated encoders of tendons (TE-18)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors, TendonEncoders


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
