"""F8, F9, F10, H18: the estimated sternum against the real marker, the guards of its lengths, clips without it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from humanoid_control.capture import (
    SternumSettings,
    body_points,
    estimate_sternum,
    fit_sternum,
    load_clip,
    sternum_report,
    synthetic_dance,
)
from humanoid_control.capture.sternum import METHODS, link_lengths
from humanoid_control.capture.sternum_report import COLUMNS, PUBLISHED
from humanoid_control.cli.main import main
from humanoid_control.errors import ClipError, UnknownNameError

POINTS = ("l_hip", "r_hip", "l_shoulder", "r_shoulder", "sternum")
DANCE = synthetic_dance(duration=24, rate=25)


def of(points):
    return [points.point(name) for name in POINTS]


@pytest.fixture(scope="module")
def dance(mocap):
    return body_points(load_clip(mocap("dance_markers/dance1.trc")))


@pytest.fixture(scope="module")
def walk(mocap):
    return body_points(load_clip(mocap("dance_markers/walk1.trc")))


@pytest.fixture(scope="module")
def report(dance, walk):
    return {(row.method, row.fitted_on): row for row in sternum_report(dance, walk)}


def without(clip, label):
    keep = [name for name in clip.labels if name != label]
    return clip.select(keep)


def distance(points, path):
    return np.linalg.norm(points.point("sternum") - path, axis=1)


# --- The estimate


@pytest.mark.parametrize("method", METHODS)
def test_estimate_does_not_depend_on_place_and_heading(dance, method):
    l_hip, r_hip, l_gh, r_gh, _ = of(dance)
    settings = SternumSettings(method)
    R = Rotation.from_euler("zyx", [130, 25, -40], degrees=True).as_matrix()
    here = estimate_sternum(l_hip, r_hip, l_gh, r_gh, settings)
    there = estimate_sternum(*(p @ R.T + [50.0, -20.0, 3.0] for p in (l_hip, r_hip, l_gh, r_gh)), settings)
    np.testing.assert_allclose(there, here @ R.T + [50.0, -20.0, 3.0], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_mirrored_person_has_a_mirrored_sternum(dance, method):
    l_hip, r_hip, l_gh, r_gh, _ = of(dance)
    settings = SternumSettings(method, left=0.02)
    mirror = np.array([1.0, -1.0, 1.0])
    here = estimate_sternum(l_hip, r_hip, l_gh, r_gh, settings)
    there = estimate_sternum(*(p * mirror for p in (r_hip, l_hip, r_gh, l_gh)), replace(settings, left=-0.02))
    np.testing.assert_allclose(there, here * mirror, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_estimate_is_in_front_of_the_chest_and_between_the_shoulders(dance, method):
    l_hip, r_hip, l_gh, r_gh, _ = of(dance)
    offset = estimate_sternum(l_hip, r_hip, l_gh, r_gh, SternumSettings(method)) - (l_gh + r_gh) / 2
    across, up = l_gh - r_gh, (l_gh + r_gh - l_hip - r_hip) / 2
    assert (np.einsum("ti,ti->t", offset, np.cross(across, up)) > 0).all()
    assert (np.abs(np.einsum("ti,ti->t", offset, across)) < 0.02 * np.einsum("ti,ti->t", across, across)).all()


def test_unknown_method_offers_the_known_ones():
    with pytest.raises(UnknownNameError, match="did you mean ours"):
        SternumSettings("our")


def test_missing_points_give_nan_and_spoil_no_other_frame(dance):
    l_hip, r_hip, l_gh, r_gh, _ = (p[:50].copy() for p in of(dance))
    l_gh[20] = np.nan
    for method in METHODS:
        found = estimate_sternum(l_hip, r_hip, l_gh, r_gh, SternumSettings(method))
        assert np.flatnonzero(np.isnan(found[:, 0])).tolist() == [20]


# --- Lengths (5.18)-(5.21) and their guards


def shoulders(L_g, L_gs, aside=0.0):
    """One frame: shoulders L_g apart, their middle L_gs from the hips and `aside` along the line between them."""
    z = np.sqrt(L_gs**2 - aside**2)
    return np.array([[0.0, aside + L_g / 2, z]]), np.array([[0.0, aside - L_g / 2, z]])


def test_lengths_of_a_still_person_by_hand():
    p_L, p_R = shoulders(0.36, 0.50)
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("dube", k_c=1.2, k_s=0.5))
    assert L_c[0] == pytest.approx((0.36 + 1.2 * (0.395 - 0.36)) / 2)
    assert L_s[0] == pytest.approx(0.50 - 0.5 * (0.555 - 0.50))


def test_lengths_vary_with_the_frame():
    p_L, p_R = (np.concatenate(p) for p in zip(shoulders(0.34, 0.50), shoulders(0.38, 0.48), strict=True))
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("dube", k_c=1.2, k_s=0.5))
    assert L_c == pytest.approx([(0.34 + 1.2 * 0.035) / 2, (0.38 + 1.2 * 0.035) / 2])
    assert L_s == pytest.approx([0.50 - 0.5 * 0.065, 0.48 - 0.5 * 0.065])


@pytest.mark.parametrize("k_s", [2.0, -2.0])
def test_spine_is_kept_where_the_spheres_meet(k_s):
    # Eq. (5.21): L_gs - sqrt(L_c^2 - (L_g / 2)^2) below, and + above, which the source does not mention.
    p_L, p_R = shoulders(0.36, 0.45)
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("dube", k_c=1.0, k_s=k_s))
    h = np.sqrt(L_c**2 - 0.18**2)
    assert L_s == pytest.approx(0.45 - np.sign(k_s) * h)


def test_clavicles_are_never_shorter_than_half_the_shoulders():
    p_L, p_R = shoulders(0.45, 0.50)
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("dube", k_c=1.0))
    assert L_c[0] == pytest.approx(0.225)
    assert L_s[0] == pytest.approx(0.50)


@pytest.mark.parametrize("aside", [0.0, 0.05, 0.12])
@pytest.mark.parametrize(("k_c", "k_s"), [(0.5, 5.0), (1.5, -5.0), (3.0, 0.5), (-1.0, 1.0)])
def test_spheres_of_the_guarded_lengths_always_meet(aside, k_c, k_s):
    p_L, p_R = shoulders(0.36, 0.47, aside)
    settings = SternumSettings("dube", k_c=k_c, k_s=k_s)
    L_c, L_s = link_lengths(p_L, p_R, settings)
    hip = np.zeros((1, 3))
    found = estimate_sternum(hip, hip, p_L, p_R, settings)
    assert np.linalg.norm(found, axis=1) == pytest.approx(L_s)
    assert np.linalg.norm(found - p_L, axis=1) == pytest.approx(L_c)
    assert np.linalg.norm(found - p_R, axis=1) == pytest.approx(L_c)


# --- Fitting


def test_fit_recovers_a_rigid_chest_exactly(dance):
    l_hip, r_hip, l_gh, r_gh, _ = of(dance)
    truth = SternumSettings("ours", forward=0.4, left=-0.03, up=-0.1)
    sternum = estimate_sternum(l_hip, r_hip, l_gh, r_gh, truth)
    found = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum)
    assert (found.forward, found.left, found.up) == pytest.approx((0.4, -0.03, -0.1))


def test_fit_of_the_source_method_gives_the_mean_lengths(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    settings = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum, SternumSettings("dube"))
    assert settings.k_c > 0 and settings.k_s > 0  # as the body facts of the source demand for a small person
    hips = (l_hip + r_hip) / 2
    L_c, L_s = link_lengths(l_gh - hips, r_gh - hips, settings)
    clavicles = [np.linalg.norm(sternum - p, axis=1).mean() for p in (l_gh, r_gh)]
    assert L_c.mean() == pytest.approx(np.mean(clavicles))
    assert L_s.mean() == pytest.approx(np.linalg.norm(sternum - hips, axis=1).mean(), abs=2e-4)


def test_fit_cannot_be_beaten_by_much_by_a_search(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    for method, names in (("ours", ("forward", "left", "up")), ("dube", ("k_c", "k_s"))):
        fitted = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum, SternumSettings(method))

        def cost(values, fitted=fitted, names=names):
            settings = replace(fitted, **dict(zip(names, values, strict=True)))
            error = estimate_sternum(l_hip, r_hip, l_gh, r_gh, settings) - sternum
            return float(np.mean(np.sum(error**2, axis=1)))

        start = [getattr(fitted, name) for name in names]
        best = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 60}).fun
        assert cost(start) <= 1.02 * best


def test_constants_of_the_package_fit_the_two_recordings(dance, walk):
    def cost(settings):
        errors = [distance(p, estimate_sternum(*of(p)[:4], settings=settings)) for p in (dance, walk)]
        return sum(float(np.mean(error**2)) for error in errors)

    for method, names in (("ours", ("forward", "up")), ("dube", ("k_c", "k_s"))):
        start = SternumSettings(method)
        best = minimize(
            lambda v, s=start, n=names: cost(replace(s, **dict(zip(n, v, strict=True)))),
            [getattr(start, n) for n in names], method="Nelder-Mead", options={"maxiter": 60},
        ).fun  # fmt: skip
        assert cost(start) <= 1.05 * best


def test_nothing_to_learn_from_is_an_error(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    with pytest.raises(ClipError, match="no frame shows hips, shoulders and sternum"):
        fit_sternum(l_hip, r_hip, l_gh, r_gh, np.full_like(sternum, np.nan))


# --- The report of section 5.3.3, data set B replaced by dance1.trc


def test_goal_of_the_source_is_met_on_frames_not_used_for_fitting(report):
    """H18: 1.7 cm mean and 0.8 cm standard deviation, for both methods, each half judged with the other's constants."""
    for method in METHODS:
        row = report[method, "its other half"]
        assert row.sample == "out"
        assert row.mean["distance"] <= 0.017
        assert row.std["distance"] <= 0.008
    ours, dube = (report[method, "its other half"].mean["distance"] for method in METHODS)
    assert ours < 0.9 * dube


def test_from_another_person_only_our_method_stays_near_the_goal(report):
    assert report["ours", "walk1"].mean["distance"] < 0.02
    assert report["ours", "walk1"].mean["distance"] > 0.017  # the goal is not met there, and we do not say so
    assert report["dube", "walk1"].mean["distance"] > 0.10


def test_published_row_is_that_of_the_source():
    means = [100 * PUBLISHED.mean[k] for k in COLUMNS]
    stds = [100 * PUBLISHED.std[k] for k in COLUMNS]
    assert means == pytest.approx([-0.1, -0.4, 0.5, 0.9, 0.9, 0.7, 1.7])
    assert stds == pytest.approx([0.9, 1.3, 1.1, 0.7, 0.7, 0.6, 0.8])


def test_rows_are_what_their_columns_say(report, dance):
    row = report["ours", "this clip"]
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    found = estimate_sternum(l_hip, r_hip, l_gh, r_gh, fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum))
    error = found - sternum
    assert row.mean["distance"] == pytest.approx(np.linalg.norm(error, axis=1).mean())
    assert row.std["distance"] == pytest.approx(np.linalg.norm(error, axis=1).std())
    assert row.mean["up"] == pytest.approx(np.abs(error[:, 2]).mean())
    cos, sin = np.cos(dance.heading), np.sin(dance.heading)
    assert row.mean["front"] == pytest.approx(np.abs(cos * error[:, 0] + sin * error[:, 1]).mean())
    hips = (l_hip + r_hip) / 2
    spine = np.linalg.norm(found - hips, axis=1) - np.linalg.norm(sternum - hips, axis=1)
    assert (row.mean["spine"], row.std["spine"]) == pytest.approx((spine.mean(), spine.std()))
    clavicle = np.linalg.norm(found - r_gh, axis=1) - np.linalg.norm(sternum - r_gh, axis=1)
    assert row.mean["r_clavicle"] == pytest.approx(clavicle.mean())
    squares = sum(row.mean[k] ** 2 + row.std[k] ** 2 for k in ("side", "front", "up"))
    assert squares == pytest.approx(row.mean["distance"] ** 2 + row.std["distance"] ** 2)
    assert row.frames == dance.n_frames and row.worst >= row.mean["distance"]


def test_in_sample_errors_are_the_smallest(report):
    for method in METHODS:
        best = report[method, "this clip"].mean["distance"]
        assert all(best <= row.mean["distance"] for (m, _), row in report.items() if m == method)


def test_clip_without_a_sternum_cannot_be_judged(dance):
    bare = body_points(without(DANCE, "Sternum"))
    with pytest.raises(ClipError, match="has no marker on the sternum"):
        sternum_report(bare)
    with pytest.raises(ClipError, match="has no marker on the sternum"):
        sternum_report(dance, bare)


def test_command_prints_the_table_and_json(mocap, capsys):
    clip, other = (str(mocap(f"dance_markers/{name}.trc")) for name in ("dance1", "walk1"))
    assert main(["sternum", clip, "--fit", other]) == 0
    text = capsys.readouterr().out
    assert "published" in text and "1.70±0.80" in text
    assert "ours, its other half: 1.16 ± 0.69 cm, at or below the published 1.7 ± 0.8 cm" in text
    assert "ours, walk1: 1.90 ± 0.64 cm, above the published" in text
    assert main(["sternum", clip, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["study"], result["unit"]) == ("sternum", "cm") and result["machine"]["cores"]
    assert [(r["method"], r["sample"]) for r in result["rows"][:3]] == [
        ("published", ""),
        ("ours", "in"),
        ("ours", "out"),
    ]
    assert result["rows"][0]["distance"] == 1.7 and result["rows"][0]["worst"] is None


@pytest.mark.parametrize("clip", ["no_such_clip.trc", "vicon_c3d"])
def test_command_refuses_in_one_line(clip, capsys):
    assert main(["sternum", clip]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


# --- Clips without the marker


def test_clip_of_the_sixteen_markers_of_the_source_gets_a_sternum():
    """F5: the synthetic dance stands for data set A, which has no sternum marker."""
    clip = without(DANCE, "Sternum")
    assert len(clip.labels) == 16
    points = body_points(clip)
    assert points.estimated == ("sternum",)
    assert points.names == body_points(DANCE).names
    assert "the clip does not show the sternum" in points.warnings[-1]
    assert points.missing[points.names.index("sternum")] == 1.0
    # The model of that dance has the sternum 6 cm deeper than people wear the marker, and its shrugs are large.
    away = points.point("sternum") - body_points(DANCE).point("sternum")
    assert np.linalg.norm(away, axis=1).max() < 0.12


def test_real_clip_without_its_sternum_keeps_the_rest_and_finds_it_again(mocap, dance):
    points = body_points(without(load_clip(mocap("dance_markers/dance1.trc")), "Sternum"))
    others = [k for k, name in enumerate(points.names) if name != "sternum"]
    np.testing.assert_allclose(points.positions[:, others], dance.positions[:, others], atol=1e-12)
    assert distance(dance, points.point("sternum")).mean() < 0.017


def test_sternum_hidden_for_long_is_estimated_from_what_was_seen(mocap, dance):
    clip = load_clip(mocap("dance_markers/dance1.trc"))
    positions = np.array(clip.positions)
    positions[600:900, clip.index("Sternum")] = np.nan  # 5 s
    points = body_points(replace(clip, positions=positions))
    assert points.estimated == ("sternum",)
    assert "hidden in 20 % of the frames" in points.warnings[-1]
    error = distance(dance, points.point("sternum"))
    assert error[:600].max() < 1e-12 and error[900:].max() < 1e-12
    assert 0.001 < error[600:900].mean() < 0.02
    steps = np.linalg.norm(np.diff(points.point("sternum"), axis=0), axis=1)
    real = np.linalg.norm(np.diff(dance.point("sternum"), axis=0), axis=1)
    assert steps[[599, 899]].max() < 1.2 * real.max()  # no step where seen and estimated parts meet
