"""The estimated sternum: three spheres in any pose, constants fitted to a person, the published accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import fsolve, minimize
from scipy.spatial.transform import Rotation

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap import SternumSettings, estimate_sternum, fit_sternum
from humanoid_control.mocap.sternum import METHODS, link_lengths, three_sphere_intersection
from test.mocap.conftest import distance, of


def torsos(n, seed=0):
    """Shoulders and sternum of random people from their hips, in random poses [m]."""
    rng = np.random.default_rng(seed)
    breadth, height = rng.uniform(0.28, 0.44, n), rng.uniform(0.4, 0.58, n)
    lean = rng.normal(scale=0.04, size=n)
    p_L = np.stack(
        [rng.normal(scale=0.03, size=n), breadth / 2 + lean, height + rng.normal(scale=0.03, size=n)], axis=1
    )
    p_R = np.stack(
        [rng.normal(scale=0.03, size=n), -breadth / 2 + lean, height + rng.normal(scale=0.03, size=n)], axis=1
    )
    p_S = np.stack([rng.uniform(0.08, 0.17, n), lean + rng.normal(scale=0.02, size=n), height - 0.06], axis=1)
    turn = Rotation.random(n, random_state=seed).as_matrix()
    return [np.einsum("tij,tj->ti", turn, p) for p in (p_L, p_R, p_S)]


def lengths(p_L, p_R, p_S):
    return [np.linalg.norm(p, axis=1) for p in (p_S, p_S - p_L, p_S - p_R)]


def test_true_lengths_give_the_true_sternum_in_any_pose():
    p_L, p_R, p_S = torsos(5000)
    found = three_sphere_intersection(p_L, p_R, *lengths(p_L, p_R, p_S))
    np.testing.assert_allclose(found, p_S, atol=1e-12)


def test_agrees_with_a_numerical_solution():
    p_L, p_R, p_S = torsos(50, seed=3)
    R_w, R_L, R_R = (r * np.random.default_rng(1).uniform(0.98, 1.05, 50) for r in lengths(p_L, p_R, p_S))
    found = three_sphere_intersection(p_L, p_R, R_w, R_L, R_R)
    for k in range(50):

        def spheres(x, k=k):
            return [x @ x - R_w[k] ** 2, (x - p_L[k]) @ (x - p_L[k]) - R_L[k] ** 2,
                    (x - p_R[k]) @ (x - p_R[k]) - R_R[k] ** 2]  # fmt: skip

        solution, _, status, _ = fsolve(spheres, p_S[k], full_output=True, xtol=1e-12)
        assert status == 1
        np.testing.assert_allclose(found[k], solution, atol=1e-7)


def test_upright_posture_where_the_printed_formula_is_zero_by_zero():
    p_L, p_R = np.array([[0.0, 0.17, 0.5]]), np.array([[0.0, -0.17, 0.5]])
    p_S = np.array([[0.12, 0.0, 0.44]])
    found = three_sphere_intersection(p_L, p_R, *lengths(p_L, p_R, p_S))
    np.testing.assert_allclose(found, p_S, atol=1e-13)


def test_the_point_in_front_is_taken_even_when_the_trunk_bends_below_the_hips():
    p_L, p_R, p_S = np.array([[0.0, 0.17, 0.5]]), np.array([[0.0, -0.17, 0.5]]), np.array([[0.12, 0.0, 0.44]])
    for degrees in (0, 60, 120, 179):
        R = Rotation.from_euler("y", degrees, degrees=True).as_matrix()
        turned = [p @ R.T for p in (p_L, p_R, p_S)]
        found = three_sphere_intersection(*turned[:2], *lengths(p_L, p_R, p_S))
        np.testing.assert_allclose(found, turned[2], atol=1e-12)


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_mirror_image_gives_the_mirror_image(seed):
    p_L, p_R, p_S = torsos(3, seed)
    radii = lengths(p_L, p_R, p_S)
    mirror = np.array([1.0, -1.0, 1.0])
    mirrored = three_sphere_intersection(p_R * mirror, p_L * mirror, radii[0], radii[2], radii[1])
    np.testing.assert_allclose(mirrored, p_S * mirror, atol=1e-11)


def test_spheres_that_miss_give_the_nearest_point_of_the_line_and_no_nan():
    p_L, p_R = np.array([[0.0, 0.17, 0.5]]), np.array([[0.0, -0.17, 0.5]])
    found = three_sphere_intersection(p_L, p_R, np.array([0.2]), np.array([0.2]), np.array([0.2]))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0, :2], 0.0, atol=1e-12)


@pytest.mark.parametrize("p_R", [[0.0, 0.17, 0.5], [0.0, 0.34, 1.0], [0.0, 0.0, 0.0]])
def test_centres_on_one_line_have_no_answer(p_R):
    one = np.array([0.3])
    found = three_sphere_intersection(np.array([[0.0, 0.17, 0.5]]), np.array([p_R]), one, one, one)
    assert np.isnan(found).all()


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
    with pytest.raises(UnknownNameError, match="did you mean rigid_chest"):
        SternumSettings("rigid_chst")


def test_missing_points_give_nan_and_spoil_no_other_frame(dance):
    l_hip, r_hip, l_gh, r_gh, _ = (p[:50].copy() for p in of(dance))
    l_gh[20] = np.nan
    for method in METHODS:
        found = estimate_sternum(l_hip, r_hip, l_gh, r_gh, SternumSettings(method))
        assert np.flatnonzero(np.isnan(found[:, 0])).tolist() == [20]


def shoulders(L_g, L_gs, aside=0.0):
    """One frame: shoulders L_g apart, their middle L_gs from the hips and `aside` along the line between them."""
    z = np.sqrt(L_gs**2 - aside**2)
    return np.array([[0.0, aside + L_g / 2, z]]), np.array([[0.0, aside - L_g / 2, z]])


def test_lengths_of_a_still_person_by_hand():
    p_L, p_R = shoulders(0.36, 0.50)
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("three_spheres", k_c=1.2, k_s=0.5))
    assert L_c[0] == pytest.approx((0.36 + 1.2 * (0.395 - 0.36)) / 2)
    assert L_s[0] == pytest.approx(0.50 - 0.5 * (0.555 - 0.50))


def test_lengths_vary_with_the_frame():
    p_L, p_R = (np.concatenate(p) for p in zip(shoulders(0.34, 0.50), shoulders(0.38, 0.48), strict=True))
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("three_spheres", k_c=1.2, k_s=0.5))
    assert L_c == pytest.approx([(0.34 + 1.2 * 0.035) / 2, (0.38 + 1.2 * 0.035) / 2])
    assert L_s == pytest.approx([0.50 - 0.5 * 0.065, 0.48 - 0.5 * 0.065])


@pytest.mark.parametrize("k_s", [2.0, -2.0])
def test_spine_is_kept_where_the_spheres_meet(k_s):
    # Eq. (5.21): L_gs - sqrt(L_c^2 - (L_g / 2)^2) below, and + above, which Dube 2012 does not mention.
    p_L, p_R = shoulders(0.36, 0.45)
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("three_spheres", k_c=1.0, k_s=k_s))
    h = np.sqrt(L_c**2 - 0.18**2)
    assert L_s == pytest.approx(0.45 - np.sign(k_s) * h)


def test_clavicles_are_never_shorter_than_half_the_shoulders():
    p_L, p_R = shoulders(0.45, 0.50)
    L_c, L_s = link_lengths(p_L, p_R, SternumSettings("three_spheres", k_c=1.0))
    assert L_c[0] == pytest.approx(0.225)
    assert L_s[0] == pytest.approx(0.50)


@pytest.mark.parametrize("aside", [0.0, 0.05, 0.12])
@pytest.mark.parametrize(("k_c", "k_s"), [(0.5, 5.0), (1.5, -5.0), (3.0, 0.5), (-1.0, 1.0)])
def test_spheres_of_the_guarded_lengths_always_meet(aside, k_c, k_s):
    p_L, p_R = shoulders(0.36, 0.47, aside)
    settings = SternumSettings("three_spheres", k_c=k_c, k_s=k_s)
    L_c, L_s = link_lengths(p_L, p_R, settings)
    hip = np.zeros((1, 3))
    found = estimate_sternum(hip, hip, p_L, p_R, settings)
    assert np.linalg.norm(found, axis=1) == pytest.approx(L_s)
    assert np.linalg.norm(found - p_L, axis=1) == pytest.approx(L_c)
    assert np.linalg.norm(found - p_R, axis=1) == pytest.approx(L_c)


def test_fit_recovers_a_rigid_chest_exactly(dance):
    l_hip, r_hip, l_gh, r_gh, _ = of(dance)
    truth = SternumSettings("rigid_chest", forward=0.4, left=-0.03, up=-0.1)
    sternum = estimate_sternum(l_hip, r_hip, l_gh, r_gh, truth)
    found = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum)
    assert (found.forward, found.left, found.up) == pytest.approx((0.4, -0.03, -0.1))


def test_fit_of_the_source_method_gives_the_mean_lengths(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    settings = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum, SternumSettings("three_spheres"))
    assert settings.k_c > 0 and settings.k_s > 0  # as the body facts of Dube 2012 demand for a small person
    hips = (l_hip + r_hip) / 2
    L_c, L_s = link_lengths(l_gh - hips, r_gh - hips, settings)
    clavicles = [np.linalg.norm(sternum - p, axis=1).mean() for p in (l_gh, r_gh)]
    assert L_c.mean() == pytest.approx(np.mean(clavicles))
    assert L_s.mean() == pytest.approx(np.linalg.norm(sternum - hips, axis=1).mean(), abs=2e-4)


def test_fit_cannot_be_beaten_by_much_by_a_search(dance):
    l_hip, r_hip, l_gh, r_gh, sternum = of(dance)
    for method, names in (("rigid_chest", ("forward", "left", "up")), ("three_spheres", ("k_c", "k_s"))):
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

    for method, names in (("rigid_chest", ("forward", "up")), ("three_spheres", ("k_c", "k_s"))):
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


def test_goal_of_the_source_is_met_on_frames_not_used_for_fitting(report):
    """H18: 1.7 cm mean and 0.8 cm standard deviation, for both methods, each half judged with the other's constants."""
    for method in METHODS:
        row = report[method, "its other half"]
        assert row.sample == "out"
        assert row.mean["distance"] <= 0.017
        assert row.std["distance"] <= 0.008
    rigid_chest, three_spheres = (report[method, "its other half"].mean["distance"] for method in METHODS)
    assert rigid_chest < 0.9 * three_spheres


def test_from_another_person_only_the_rigid_chest_stays_near_the_goal(report):
    assert report["rigid_chest", "walk1"].mean["distance"] < 0.02
    assert report["rigid_chest", "walk1"].mean["distance"] > 0.017  # the goal is not met there, and we do not say so
    assert report["three_spheres", "walk1"].mean["distance"] > 0.10
