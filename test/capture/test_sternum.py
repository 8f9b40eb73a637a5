"""The sternum estimated from hips and shoulders: by hand, in a mirror, anywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.errors import UnknownNameError
from humanoid_control.mocap import SternumSettings, estimate_sternum
from humanoid_control.mocap.sternum import METHODS, link_lengths
from test.capture.sternum_people import of


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
