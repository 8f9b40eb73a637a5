"""Rotation matrices: right-handed, proper, about the right axis."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.mocap.formats.common import rotation


@pytest.mark.parametrize("axis", range(3))
def test_agrees_with_scipy(axis):
    angle = np.linspace(-7, 7, 30)
    expected = Rotation.from_rotvec(angle[:, None] * np.eye(3)[axis]).as_matrix()
    np.testing.assert_allclose(rotation(axis, angle), expected, atol=1e-12)
