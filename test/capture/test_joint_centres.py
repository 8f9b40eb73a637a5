"""Joint centres: the regression by hand, plausible on real people, independent of the axes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.mocap.marker_sets import hip_centre, shoulder_centre

PELVIS = {  # 0.24 m wide, 0.16 m deep, facing +x, level
    "l_asis": np.array([[0.10, 0.12, 1.0]]),
    "r_asis": np.array([[0.10, -0.12, 1.0]]),
    "mid_psis": np.array([[-0.06, 0.0, 1.0]]),
}
ACROMIA = {"l_acromion": np.array([[0.02, 0.2, 1.5]]), "r_acromion": np.array([[0.02, -0.2, 1.5]])}


@pytest.mark.parametrize("side", [1, -1])
def test_hip_regression_by_hand(side):
    expected = [0.10 - 0.24 * 0.16 - 0.0099, side * (0.33 * 0.24 + 0.0073), 1.0 - 0.30 * 0.24 - 0.0109]
    np.testing.assert_allclose(hip_centre(side, **PELVIS), [expected], atol=1e-12)


def test_shoulder_by_hand():
    # Straight down: the middle of the pelvis is under the middle of the acromia.
    np.testing.assert_allclose(shoulder_centre(1, **ACROMIA, **PELVIS), [[0.02, 0.2, 1.5 - 0.17 * 0.4]], atol=1e-12)
    np.testing.assert_allclose(shoulder_centre(-1, **ACROMIA, **PELVIS), [[0.02, -0.2, 1.5 - 0.17 * 0.4]], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_centres_move_with_the_markers(seed):
    R = Rotation.from_rotvec(np.random.default_rng(seed).normal(size=3)).as_matrix()
    p = np.random.default_rng(seed).normal(size=3)

    def moved(markers):
        return {name: position @ R.T + p for name, position in markers.items()}

    for side in (1, -1):
        np.testing.assert_allclose(hip_centre(side, **moved(PELVIS)), hip_centre(side, **PELVIS) @ R.T + p, atol=1e-12)
        np.testing.assert_allclose(
            shoulder_centre(side, **moved(ACROMIA), **moved(PELVIS)),
            shoulder_centre(side, **ACROMIA, **PELVIS) @ R.T + p,
            atol=1e-12,
        )


def test_missing_marker_gives_a_missing_centre_in_that_frame_only():
    markers = {name: np.repeat(position, 3, axis=0) for name, position in PELVIS.items()}
    markers["mid_psis"][1] = np.nan
    assert np.isnan(hip_centre(1, **markers)).all(axis=1).tolist() == [False, True, False]


def test_markers_on_one_spot_give_a_number():
    spot = dict.fromkeys(PELVIS, np.ones((2, 3)))
    assert np.isfinite(hip_centre(1, **spot)).all()
