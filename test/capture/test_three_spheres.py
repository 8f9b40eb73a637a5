"""F8: three spheres meet where they should, in any pose, also where the printed formula divides by zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import fsolve
from scipy.spatial.transform import Rotation

from humanoid_control.mocap.sternum import three_sphere_intersection


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
