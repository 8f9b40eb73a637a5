"""Orientation errors, Euler angles and interpolation against scipy's rotations."""

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from humanoid_control.numerics import rotation as o

ANGLES = st.floats(-np.pi, np.pi)
NEAR_PI = [np.pi, np.pi - 1e-15, np.pi - 1e-12, np.pi - 1e-9, np.pi - 1e-7, np.pi - 1e-5, np.pi - 1e-3, np.pi - 0.3]
NEAR_0 = [0.0, 1e-300, 1e-15, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3]


def random_matrix(rng):
    return Rotation.random(random_state=rng).as_matrix()


@pytest.mark.parametrize("gamma", [*NEAR_0, 0.01, 0.5, 1.5, 2.6, 2.7, 3.0, *NEAR_PI])
def test_error_is_the_rotation_vector_also_at_0_and_at_half_a_turn(gamma):
    rng = np.random.default_rng(0)
    for _ in range(200):
        axis, A = rng.normal(size=3), random_matrix(rng)
        axis /= np.linalg.norm(axis)
        A_d = Rotation.from_rotvec(gamma * axis).as_matrix() @ A
        e = o.rotation_error(A, A_d)
        assert np.allclose(Rotation.from_rotvec(e).as_matrix() @ A, A_d, atol=1e-14)
        assert np.linalg.norm(e) == pytest.approx(gamma, abs=2e-15 + 1e-15 * gamma)
        if gamma < np.pi - 1e-12:
            assert np.allclose(e, gamma * axis, atol=1e-14 / max(1e-3, np.pi - gamma) + 1e-15)
        else:  # half a turn: either way round
            assert min(np.abs(e - gamma * axis).max(), np.abs(e + gamma * axis).max()) < 1e-6


def test_error_equals_the_printed_formula_where_that_is_defined():
    """gamma and e_e of Fig. C.1, literally, on angles where arccos and the quotient are harmless."""
    rng = np.random.default_rng(1)
    for _ in range(500):
        A, A_d = random_matrix(rng), random_matrix(rng)
        gamma = np.arccos(0.5 * (np.trace(A.T @ A_d) - 1))
        if 0.01 < gamma < 3.1:
            e_e = sum(np.cross(A[:, i], A_d[:, i]) for i in range(3)) / (2 * np.sin(gamma))
            assert np.allclose(o.rotation_error(A, A_d), gamma * e_e, atol=1e-12)


def test_error_turns_with_the_axes_and_mirrors_with_them():
    rng = np.random.default_rng(2)
    M = np.diag([1.0, -1.0, 1.0])
    for _ in range(200):
        A, A_d, R = (random_matrix(rng) for _ in range(3))
        e = o.rotation_error(A, A_d)
        assert np.allclose(o.rotation_error(R @ A, R @ A_d), R @ e, atol=1e-9)
        assert np.allclose(o.rotation_error(A_d, A), -e, atol=1e-9)
        # A rotation vector is axial: seen in the mirror it is reversed besides.
        assert np.allclose(o.rotation_error(M @ A @ M, M @ A_d @ M), -M @ e, atol=1e-9)


@given(ANGLES, ANGLES, ANGLES)
def test_zxz_matrix_is_the_product_of_three_turns(phi, theta, psi):
    assert np.allclose(
        o.euler_zxz_matrix(phi, theta, psi), Rotation.from_euler("ZXZ", [phi, theta, psi]).as_matrix(), atol=1e-14
    )


@given(ANGLES, st.one_of(st.floats(0, np.pi), st.sampled_from([0.0, np.pi])), ANGLES)
def test_zxz_angles_give_the_matrix_back_also_where_they_are_singular(phi, theta, psi):
    A = o.euler_zxz_matrix(phi, theta, psi)
    angles = o.euler_zxz_angles(A)
    assert np.allclose(o.euler_zxz_matrix(*angles), A, atol=1e-11)
    assert -1e-12 <= angles[1] <= np.pi + 1e-12


def test_zxz_rate_maps_are_the_derivative_of_the_matrix_and_inverse_to_each_other():
    rng, h = np.random.default_rng(3), 1e-6
    for _ in range(100):
        angles, rates = rng.uniform(-3, 3, 3), rng.normal(size=3)
        plus, minus = (o.euler_zxz_matrix(*(angles + s * h * rates)) for s in (1, -1))
        W = (plus - minus) / (2 * h) @ o.euler_zxz_matrix(*angles).T
        omega = np.array([W[2, 1], W[0, 2], W[1, 0]])
        assert np.allclose(o.omega_of_zxz_rates(angles[0], angles[1]) @ rates, omega, atol=1e-8)
        if abs(np.sin(angles[1])) > 0.05:
            back = o.zxz_rates_of_omega(angles[0], angles[1]) @ o.omega_of_zxz_rates(angles[0], angles[1])
            assert np.allclose(back, np.eye(3), atol=1e-12)


def test_interpolation_is_scipys_slerp_with_a_fixed_axis():
    rng = np.random.default_rng(4)
    for _ in range(100):
        A_0, A_1 = random_matrix(rng), random_matrix(rng)
        slerp = Slerp([0, 1], Rotation.from_matrix([A_0, A_1]))
        for share in (0.0, 0.1, 0.5, 0.9, 1.0):
            assert np.allclose(o.interpolate_rotation(A_0, A_1, share), slerp([share]).as_matrix()[0], atol=1e-9)


def test_interpolated_euler_angles_may_go_the_long_way_round():
    """Why Schwienbacher 2014 warns of them: two orientations 5 degrees apart, and the angles between turn by 355."""
    A_0, A_1 = o.euler_zxz_matrix(-3.1, 0.2, 0.0), o.euler_zxz_matrix(3.1, 0.2, 0.0)
    steps = np.linspace(0, 1, 200)
    a_0, a_1 = np.array(o.euler_zxz_angles(A_0)), np.array(o.euler_zxz_angles(A_1))

    def length(way):
        return sum(np.linalg.norm(o.rotation_error(a, b)) for a, b in pairwise(way))

    assert length([o.euler_zxz_matrix(*(a_0 + s * (a_1 - a_0))) for s in steps]) == pytest.approx(6.2, abs=1e-3)
    assert length([o.interpolate_rotation(A_0, A_1, s) for s in steps]) == pytest.approx(2 * np.pi - 6.2, abs=1e-9)


@given(st.floats(0, 20), st.integers(0, 1000))
def test_rotation_matrix_is_the_exponential(angle, seed):
    axis = np.random.default_rng(seed).normal(size=3)
    v = angle * axis / np.linalg.norm(axis)
    assert np.allclose(o.rotation_matrix(v), pin.exp3(v), atol=1e-13)
