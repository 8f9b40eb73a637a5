"""Calibration: sizes that are known come back, derivatives are right, real clips fit to millimetres."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.human import CalibrationSettings, FitSettings, calibrate, fit, read_osim
from humanoid_control.human.calibration import add_size_prior, body_groups, columns
from humanoid_control.mocap import load_clip

PLAIN = FitSettings(outliers=0.0, swaps=False)
REAL = {
    "rajagopal_run": ("computed_opensim46/subject_scaled_run.osim", "motion_capture_run.trc", 6.5),
    "rajagopal_walk": ("computed_opensim46/subject_scaled_walk.osim", "motion_capture_walk.trc", 8.0),
}


@pytest.mark.parametrize("name", REAL)
def test_frames_that_were_not_used_fit_to_millimetres(human_motion, name):
    model, trc, most = REAL[name]
    person, clip = read_osim(human_motion(f"{name}/{model}")), load_clip(human_motion(f"{name}/{trc}"))
    result = calibrate(person, clip.positions, clip.labels)
    others = np.setdiff1d(np.arange(clip.n_frames), result.frames)
    assert len(result.frames) == 40 and len(others) > 190
    before, after = (fit(p, clip.positions[others], clip.labels, None, PLAIN) for p in (person, result.person))
    rms = [1000 * np.sqrt(np.nanmean(f.residuals**2)) for f in (before, after)]
    assert rms[1] <= most < rms[0] and result.after.rms.mean() < result.before.rms.mean()
    assert all(0.8 < factor < 1.2 for factor in result.factors.values())
    assert result.factors["femur_r"] == result.factors["femur_l"] == result.factors["patella_r"]
    assert {m.name for m in result.person.markers} == {m.name for m in person.markers}
    assert result.person.mass == pytest.approx(person.mass)


def motion(person, frames=60, seed=20):
    rng, t = np.random.default_rng(seed), np.linspace(0, 2 * np.pi, frames)[:, None]
    lower = np.array([max(c.lower, -1.0) for c in person.coordinates])
    upper = np.array([min(c.upper, 1.0) for c in person.coordinates])
    q = (lower + upper) / 2 + 0.35 * (upper - lower) * np.sin(
        t * rng.integers(1, 3, person.n) + rng.uniform(0, 6, person.n)
    )
    return np.where([c.locked for c in person.coordinates], person.rest, q)


def test_known_sizes_and_places_come_back(walker):
    factors = {"femur": 1.08, "patella": 1.08, "tibia": 0.94, "humerus": 1.1, "torso": 1.05}
    truth = walker.scaled({b: f for b in walker.body_names for key, f in factors.items() if b.startswith(key)})
    shift = {"R.TH1": np.array([0.01, -0.015, 0.005]), "L.SH2": np.array([-0.01, 0.0, 0.01])}
    truth = truth.with_markers([replace(m, place=m.place + shift.get(m.name, 0.0)) for m in truth.markers])
    labels = [m.name for m in truth.markers]
    q = motion(truth)
    markers = truth.marker_positions(q)
    wide = CalibrationSettings(rounds=8, tracking=0.05, anatomical=0.05, noise=0.002, size=1.0)
    result = calibrate(walker, markers, labels, None, wide)
    after = fit(result.person, markers, labels, None, PLAIN)
    assert after.rms.max() < 1e-3
    for body, factor in result.factors.items():
        known = next((f for key, f in factors.items() if body.startswith(key)), 1.0)
        if body[:5] in ("femur", "tibia", "torso", "humer"):
            assert factor == pytest.approx(known, abs=0.02), body
    assert result.moved["R.TH1"] == pytest.approx(0.0187, abs=0.008)


def test_derivatives_are_those_of_the_positions(walker):
    group, h = body_groups(walker), 1e-6
    bodies = np.array([walker.body_index(m.body) for m in walker.markers])
    places = np.array([m.place for m in walker.markers])
    q = motion(walker)[:3]
    lengths = ~walker.rotational
    J, D, R = columns(walker.chain.table, q, (bodies, places), group, lengths)
    for c in range(walker.n):
        ends = [walker.marker_positions(q + s * h * np.eye(walker.n)[c]) for s in (1, -1)]
        assert np.allclose(J[..., c], (ends[0] - ends[1]) / (2 * h), atol=1e-8)
    for g in range(group.max() + 1):
        own = [name for name, k in zip(walker.body_names, group, strict=True) if k == g]
        bigger = walker.scaled(dict.fromkeys(own, 1.01))
        assert np.allclose(D[..., g], (bigger.marker_positions(q) - walker.marker_positions(q)) / 0.01, atol=1e-9)
    moved = walker.with_markers([replace(m, place=m.place + [0.01, 0.02, 0.03]) for m in walker.markers])
    assert np.allclose(R @ [0.01, 0.02, 0.03], moved.marker_positions(q) - walker.marker_positions(q), atol=1e-12)


def test_bodies_of_both_sides_and_those_without_markers_share_a_factor(walker):
    group = dict(zip(walker.body_names, body_groups(walker), strict=True))
    assert group["tibia_l"] == group["tibia_r"] != group["femur_r"] == group["patella_r"]
    assert group["talus_r"] == group["calcn_l"]


def test_without_markers_all_segments_go_to_their_common_size():
    S, s, log_size = np.zeros((4, 4)), np.zeros(4), np.log([0.9, 1.0, 1.3])
    add_size_prior(S, s, log_size, 0.1)
    assert np.allclose(log_size + np.linalg.solve(S[:3, :3], s[:3]), log_size.mean(), atol=1e-6)
    assert not S[3].any() and not s[3]


def test_what_is_no_size_of_a_person_is_refused(walker):
    labels = [m.name for m in walker.markers]
    markers = walker.marker_positions(motion(walker))
    with pytest.raises(ClipError, match=r"beyond 0\.5 to 1\.6: are the markers in millimetres"):
        calibrate(walker, 2.0 * markers, labels)
    with pytest.raises(ClipError, match="no frame shows three markers"):
        calibrate(walker, np.full_like(markers, np.nan), labels)
    with pytest.raises(ConfigError, match="rounds of the calibration must be positive, got 0"):
        calibrate(walker, markers, labels, None, CalibrationSettings(rounds=0))
