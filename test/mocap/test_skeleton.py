"""Rotations and forward kinematics of skeletons: as scipy has them, and as products of homogeneous matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.mocap.skeleton import fixed_axes, forward_kinematics, moving_axes, rotation, turned


@pytest.mark.parametrize("axis", range(3))
def test_agrees_with_scipy(axis):
    angle = np.linspace(-7, 7, 30)
    expected = Rotation.from_rotvec(angle[:, None] * np.eye(3)[axis]).as_matrix()
    np.testing.assert_allclose(rotation(axis, angle), expected, atol=1e-12)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 1, 0)])
def test_moving_axes_are_the_new_ones_and_fixed_axes_the_old_ones(order):
    angles = np.random.default_rng(sum(order)).uniform(-3, 3, (3, 20))
    single = [Rotation.from_rotvec(a[:, None] * np.eye(3)[k]) for k, a in zip(order, angles, strict=True)]
    turns = list(zip(order, angles, strict=True))
    moving, fixed = single[0] * single[1] * single[2], single[2] * single[1] * single[0]
    np.testing.assert_allclose(moving_axes(turns, 20), moving.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(fixed_axes(turns, 20), fixed.as_matrix(), atol=1e-12)


def test_no_axes_do_not_turn():
    np.testing.assert_array_equal(moving_axes([], 3), np.broadcast_to(np.eye(3), (3, 3, 3)))


@pytest.mark.parametrize("seed", range(3))
def test_poses_down_a_tree_are_products_of_homogeneous_matrices(seed):
    rng = np.random.default_rng(seed)
    parents, n_frames = [-1, 0, 1, 1, 0, -1, 5], 6
    p = [rng.normal(size=(n_frames, 3) if k % 2 else 3) for k in range(len(parents))]
    R = [Rotation.random(n_frames, rng=rng).as_matrix() for _ in parents]
    p_WB, R_WB = forward_kinematics(parents, p, R)
    for t in range(n_frames):
        X: list[np.ndarray] = []
        for k, parent in enumerate(parents):
            local = np.eye(4)
            local[:3, :3], local[:3, 3] = R[k][t], np.broadcast_to(p[k], (n_frames, 3))[t]
            X.append(local if parent < 0 else X[parent] @ local)
            np.testing.assert_allclose(R_WB[k, t], X[k][:3, :3], atol=1e-12)
            np.testing.assert_allclose(p_WB[k, t], X[k][:3, 3], atol=1e-12)


def test_turned_vectors_may_be_one_or_one_a_frame():
    R = Rotation.random(4, rng=np.random.default_rng(0)).as_matrix()
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(turned(R, v), turned(R, np.tile(v, (4, 1))), atol=1e-15)
    np.testing.assert_allclose(turned(R, v)[2], R[2] @ v, atol=1e-15)
