"""Filter and derivatives: those of OpenSim, exact on polynomials, honest about gaps and short clips."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.human.derivatives import SHORTEST, differentiate, low_pass

# Printed by OpenSim 4.6 (Storage.pad of half the length, lowpassIIR(6), GCVSplineSet(5)) for the published joint angles
# of Gait2354: frame, value, first and second derivative [deg or m, s].
OPENSIM = {
    "knee_angle_r": [
        (0, -54.91979330977494, 313.4685973321201, -0.0032048230712078407),
        (10, -0.015078478668953788, 135.42015577404663, -5512.343626041664),
        (36, -10.613020164377344, 52.38404303062972, -175.91796880848733),
        (72, -62.8581535750835, 144.72515083426592, 0.09668715886675727),
    ],
    "pelvis_tx": [
        (0, 0.6010202931431141, -0.15388908802113233, -6.758446337655141e-05),
        (10, 0.5851049121842957, -0.031937493818793974, 1.0135236392534068),
        (36, 0.5920538332570399, -0.12173671108363704, -0.1360557945701405),
        (72, 0.5905278971095231, -0.09620535626929541, -0.00020850160384731095),
    ],
}
T = np.arange(240) / 100


@pytest.fixture(scope="module")
def angles(model_file):
    lines = model_file("human_motion/gait2354_walk/reference/subject01_walk1_ik.mot").read_text().splitlines()
    head = lines.index("endheader") + 1
    return lines[head].split(), np.array([line.split() for line in lines[head + 1 :]], dtype=float)


@pytest.mark.parametrize("name", OPENSIM)
def test_pipeline_is_that_of_opensim(angles, name):
    names, table = angles
    column = table[:, names.index(name)]
    motion = differentiate(table[:, 0], column, 6.0)
    assert motion.warnings == ()
    size = np.ptp(column), np.abs(motion.velocity).max(), np.abs(motion.acceleration).max()
    for frame, *expected in OPENSIM[name]:
        # Its filter starts its recursion differently, half the length away from the ends.
        tolerance = np.array(size) * (2e-6 if 5 < frame < 67 else 2e-4)
        ours = motion.values[frame], motion.velocity[frame], motion.acceleration[frame]
        assert (np.abs(np.array(ours) - expected) <= tolerance).all(), frame


def test_spline_alone_differentiates_a_cubic_exactly():
    motion = differentiate(T, np.stack([T**3 - T, 2 * T], axis=1), None)
    inside = slice(20, -20)  # the natural ends bend what is near them
    np.testing.assert_allclose(motion.velocity[inside, 0], (3 * T**2 - 1)[inside], atol=1e-6)
    np.testing.assert_allclose(motion.acceleration[inside, 0], 6 * T[inside], atol=1e-4)
    np.testing.assert_allclose(motion.velocity[:, 1], 2.0, atol=1e-9)
    np.testing.assert_allclose(motion.values[:, 1], 2 * T, atol=1e-12)


@pytest.mark.parametrize(("frequency", "gain"), [(0.7, 1.0), (6.0, 0.5), (30.0, 0.0)])
def test_gain_is_one_half_at_the_cutoff_without_delay(frequency, gain):
    t = np.arange(1000) / 100
    wave = np.sin(2 * np.pi * frequency * t)
    inside = slice(300, 700)
    np.testing.assert_allclose(low_pass(t, wave, 6.0)[inside], gain * wave[inside], atol=2e-3)


def test_low_pass_gives_what_differentiate_gives():
    wave = np.cumsum(np.random.default_rng(0).normal(size=(240, 2, 3)), axis=0)
    np.testing.assert_allclose(low_pass(T, wave, 8.0), differentiate(T, wave, 8.0).values, atol=1e-9)


def test_uneven_times_are_resampled_and_said():
    t = T + 0.003 * np.sin(7 * T)
    motion = differentiate(t, np.sin(3 * t), 12.0)
    np.testing.assert_allclose(motion.values, np.sin(3 * t), atol=1e-3)
    inside = slice(20, -20)
    np.testing.assert_allclose(motion.velocity[inside], 3 * np.cos(3 * t)[inside], atol=5e-3)
    assert "time steps vary" in motion.warnings[0]
    as_if_even = differentiate(T, np.sin(3 * t), 12.0)
    assert np.abs(as_if_even.velocity - 3 * np.cos(3 * t))[inside].max() > 0.03, "this clip tells the two apart"


def test_short_gap_is_bridged_and_a_long_one_parts_the_signal():
    values = np.stack([np.sin(3 * T), np.cos(3 * T)], axis=1)
    gappy = values.copy()
    gappy[40:45, 0] = np.nan  # 0.06 s from the frame before to the one after
    gappy[100:160, 0] = np.nan
    motion = differentiate(T, gappy, 6.0)
    assert np.isfinite(motion.acceleration[:, 1]).all()
    for part in motion.values, motion.velocity, motion.acceleration:
        assert np.flatnonzero(np.isnan(part[:, 0])).tolist() == list(range(100, 160))
    np.testing.assert_allclose(motion.values[:100, 0], values[:100, 0], atol=2e-2)
    assert "5 missing samples" in motion.warnings[0] and "60 samples" in motion.warnings[1]
    # Each part is filtered as if the other were not there.
    alone = differentiate(T[160:], values[160:, 0], 6.0)
    np.testing.assert_allclose(motion.velocity[160:, 0], alone.velocity, atol=1e-9)
    whole = differentiate(T, gappy, 6.0, max_gap=0.7)
    assert np.isfinite(whole.values).all() and len(whole.warnings) == 1


def test_hole_in_the_times_is_a_gap():
    t = np.concatenate([T[:100], T[100:] + 1.0])
    motion = differentiate(t, np.where(t < 1.5, 0.0, 1.0), 6.0)
    np.testing.assert_allclose(motion.values, np.where(t < 1.5, 0.0, 1.0), atol=1e-12)


@pytest.mark.parametrize("n", [1, 5])
def test_too_short_to_differentiate_is_said(n):
    motion = differentiate(T[:n], np.arange(n) + 1.0, 6.0)
    assert motion.values.tolist() == (np.arange(n) + 1.0).tolist()
    assert np.isnan(motion.velocity).all() and np.isnan(motion.acceleration).all()
    assert f"only {n} frame(s)" in motion.warnings[0] and str(SHORTEST) in motion.warnings[0]
    assert np.isfinite(differentiate(T[:SHORTEST], np.ones(SHORTEST), 6.0).velocity).all()


def test_nothing_seen_gives_nothing():
    motion = differentiate(T, np.full((240, 2), np.nan), 6.0)
    assert np.isnan(motion.values).all() and "480 samples are missing" in motion.warnings[0]


@pytest.mark.parametrize("cutoff", [50.0, 50.1, 0.0, -6.0, np.nan, np.inf])
@pytest.mark.parametrize("call", [differentiate, low_pass])
def test_cutoff_out_of_range_is_refused_with_the_range(call, cutoff):
    with pytest.raises(ConfigError, match="above 0 and below 50 Hz"):
        call(T, np.sin(T), cutoff)


def test_times_and_values_that_cannot_be_used():
    with pytest.raises(SizeError, match=r"\(240, ...\)"):
        differentiate(T, np.zeros(239), 6.0)
    with pytest.raises(ConfigError, match="do not increase at sample 7"):
        differentiate(np.where(np.arange(240) == 7, 0.0, T), np.zeros(240), 6.0)
    with pytest.raises(ConfigError, match="infinite in sample 3"):
        differentiate(T, np.where(np.arange(240) == 3, np.inf, 0.0), 6.0)
