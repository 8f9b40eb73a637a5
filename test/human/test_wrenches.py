"""Measured wrenches: zero, load with hysteresis, filter about the origin, frames, and checks against the clip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError, SizeError
from humanoid_control.human.forces.force_plates import read_force_plates
from humanoid_control.human.forces.wrenches import MeasuredWrench, check_same_gravity, saturated_intervals

RATE = 1000.0
T = 0.23 + np.arange(2000) / RATE
UP = np.array([0.0, 0.0, 1.0])
NOISE = np.random.default_rng(1).normal(scale=1.0, size=(len(T), 6))


def step_of(size=800.0, zero=(0.0, 0.0, 0.0)):
    """Somebody steps on the plate from 0.73 to 1.43 s; two meters from the origin; z up."""
    inside = np.clip((T - 0.73) / 0.7, 0, 1)
    force = np.outer(size * np.sin(np.pi * inside), [0.1, -0.05, 1.0])
    point = np.stack([2.0 + 0.2 * inside, 1.0 + 0 * inside, 0 * inside], axis=1)
    moment = np.cross(point, force)
    force = force + zero
    return MeasuredWrench("plate", T, force, moment + np.cross([2.1, 1.0, 0.0], zero), UP, np.array([2.1, 1.0, 0.0]))


def test_point_and_free_moment_of_a_known_wrench():
    wrench = step_of()
    pressing = wrench.normal_force != 0
    assert np.isnan(wrench.center_of_pressure()[~pressing]).all() and np.isnan(wrench.free_moment()[~pressing]).all()
    inside = np.clip((T - 0.73) / 0.7, 0, 1)[pressing]
    np.testing.assert_allclose(wrench.center_of_pressure()[pressing, 0], 2.0 + 0.2 * inside, atol=1e-9)
    np.testing.assert_allclose(wrench.free_moment()[pressing], 0.0, atol=1e-9)
    with pytest.raises(SizeError, match="expected a moment of shape"):
        replace(wrench, moment=np.zeros((3, 3)))


@pytest.mark.parametrize("zero", [(3.0, -2.0, -19.8), (0.0, 1.0, 35.0), (0.0, 0.0, 0.0)])
def test_zero_of_the_unloaded_plate_is_taken_out(zero):
    noisy = step_of(zero=zero)
    noisy = replace(noisy, force=noisy.force + NOISE[:, :3], moment=noisy.moment + 0.1 * NOISE[:, 3:])
    clean = noisy.zeroed()
    true = step_of()
    np.testing.assert_allclose((clean.force - true.force).mean(axis=0), 0, atol=0.15)
    np.testing.assert_allclose((clean.moment - true.moment).mean(axis=0), 0, atol=0.15)
    assert bool(clean.warnings) == (zero[2] != 0.0)


def test_samples_that_are_missing_leave_the_zero_and_the_load_alone():
    raw = step_of(zero=(0.0, 0.0, 12.0))
    holes = raw.force.copy()
    holes[[5, 900]] = np.nan
    moment = raw.moment.copy()
    moment[7] = np.nan
    clean = replace(raw, force=holes, moment=moment).zeroed()
    np.testing.assert_allclose(np.nanmedian(clean.normal_force), 0, atol=1e-9)
    assert np.isfinite(clean.moment).all(axis=1).sum() == 1999 and np.isnan(clean.force[900]).all()
    assert np.isfinite(clean.low_passed(12.0).force).all(), "short gaps are bridged by the filter"


@pytest.mark.parametrize("size", [60.0, 300.0])
def test_plate_that_is_never_unloaded_keeps_its_zero(size):
    standing = replace(step_of(), force=np.outer(size + 10 * np.sin(T), [0, 0, 1.0]))
    kept = standing.zeroed()
    np.testing.assert_array_equal(kept.force, standing.force)
    assert "never unloaded" in kept.warnings[0]


def test_load_has_hysteresis():
    v = np.zeros(2000)
    v[100:110] = 15.0  # never reaches 20
    v[200:300] = 25.0
    v[220:240] = 12.0  # stays above 10
    v[400:500] = 700.0
    v[440] = 5.0
    wrench = replace(step_of(), force=np.outer(v, UP), moment=np.ones((2000, 3)))
    assert wrench.loaded() == [(200, 300), (400, 440), (441, 500)]
    assert wrench.loaded(on=14.0) == [(100, 110), (200, 300), (400, 440), (441, 500)]
    cut = wrench.cut()
    assert np.flatnonzero(cut.force[:, 2]).tolist() == [*range(200, 300), *range(400, 440), *range(441, 500)]
    np.testing.assert_array_equal((cut.moment != 0).all(axis=1), cut.force[:, 2] != 0)
    assert replace(wrench, force=np.outer(v + 30, UP)).loaded() == [(0, 2000)]


def test_filter_works_about_the_origin_and_keeps_the_point():
    smooth = step_of().low_passed(12.0)
    inside = (T > 0.85) & (T < 1.3)
    np.testing.assert_allclose(smooth.center_of_pressure()[inside, 1], 1.0, atol=1e-6)
    np.testing.assert_allclose(smooth.force[inside], step_of().force[inside], atol=8.0)
    with pytest.raises(ConfigError, match="below 500 Hz"):
        step_of().low_passed(500.0)


def test_rubbish_point_of_the_unloaded_plate_never_reaches_the_first_loaded_frame():
    """Frames between the samples at a foot strike: the point stays on the plate, although it was nowhere before."""
    wrench = step_of()
    frames = T[:-1:10] + 0.00037
    at = wrench.resampled(frames)
    struck = at.normal_force > 0
    assert np.abs(at.center_of_pressure()[struck] - [2.1, 1.0, 0.0]).max() < 0.11


def test_frames_outside_the_record_have_no_force():
    frames = np.array([0.1, 0.2295, 1.0, 2.2285, 2.2305])
    at = step_of().resampled(frames)
    assert np.isnan(at.force[:, 0]).tolist() == [True, False, False, False, True]
    np.testing.assert_allclose(at.force[2], step_of().force[770], atol=1e-9)


def test_other_axes_are_the_same_wrench():
    R = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # z up to y up
    wrench = step_of()
    turned = wrench.rotated(R)
    np.testing.assert_allclose(turned.normal, [0, 1, 0])
    np.testing.assert_allclose(turned.normal_force, wrench.normal_force)
    np.testing.assert_allclose(turned.center_of_pressure(), wrench.center_of_pressure() @ R.T)


def clipped(limit=600.0, quantum=0.5, seed=2):
    v = np.abs(np.cumsum(np.random.default_rng(seed).normal(scale=0.2, size=2000))) + 1000 * np.sin(6 * T) ** 2
    return np.round(np.minimum(v, limit) / quantum) * quantum


def test_plateau_at_the_limit_is_saturation():
    found = saturated_intervals(T, clipped()[:, None])
    assert found and all(clipped()[np.searchsorted(T, (a + b) / 2)] == 600.0 for a, b in found)


@pytest.mark.parametrize("quantum", [0.5, 5.0])
def test_rounded_peak_held_samples_and_rest_are_no_saturation(quantum):
    smooth = np.round(800 * np.sin(3 * T) ** 2 / quantum) * quantum
    held = np.repeat(1000 * np.random.default_rng(0).normal(size=200), 10)
    unloaded = np.maximum(800 * np.sin(3 * T), 0.0)
    assert saturated_intervals(T, np.stack([smooth, held, unloaded, np.zeros(2000)], axis=1)) == ()


@pytest.mark.parametrize(
    "name", ["human_motion/force_plates/walking2.c3d", "mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d"]
)
def test_real_plates_are_zeroed_and_not_called_saturated(model_file, name):
    for raw in read_force_plates(model_file(name)):
        wrench = raw.zeroed()
        assert raw.saturated == () and wrench.loaded()
        assert np.abs(np.median(wrench.normal_force[: wrench.loaded()[0][0]])) < 1.0


def test_gravity_of_markers_and_forces_must_agree():
    wrenches = [step_of(), step_of(400.0)]
    check_same_gravity(np.array([0.05, 0.05, 1.0]), wrenches, "walk.trc", "walk.mot")
    with pytest.raises(ClipError, match=r"up is \+y by the markers of walk.trc and .* by the mean force of walk.mot"):
        check_same_gravity(np.array([0.0, 1.0, 0.0]), wrenches, "walk.trc", "walk.mot")
    upright = [replace(w, force=w.normal_force[:, None] * UP) for w in wrenches]
    with pytest.raises(ClipError, match=r"and \+z by the mean force of walk.mot, 90 deg apart"):
        check_same_gravity(np.array([0.0, 1.0, 0.0]), upright, "walk.trc", "walk.mot")
    check_same_gravity(np.array([0.0, 0.17, 1.0]), upright, "walk.trc", "walk.mot")
    with pytest.raises(ClipError, match="11 deg apart"):
        check_same_gravity(np.array([0.0, 0.19, 1.0]), upright, "walk.trc", "walk.mot")
    empty = replace(step_of(), force=np.zeros((2000, 3)))
    check_same_gravity(np.array([0.0, 1.0, 0.0]), [empty], "walk.trc", "walk.mot")
