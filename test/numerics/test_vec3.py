"""3-vectors of kernels beside numpy."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.numerics import vec3


def test_operations_are_those_of_numpy():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b, s, R = rng.normal(size=3), rng.normal(size=3), float(rng.normal()), Rotation.random(rng=rng).as_matrix()
        u, v = tuple(a), tuple(b)
        assert vec3.row(np.array([b, a]), 1) == u
        for found, expected in (
            (vec3.add(u, v), a + b),
            (vec3.sub(u, v), a - b),
            (vec3.mul(s, u), s * a),
            (vec3.along(u, s, v), a + s * b),
            (vec3.dot(u, v), a @ b),
            (vec3.cross(u, v), np.cross(a, b)),
            (vec3.norm(u), np.linalg.norm(a)),
            (vec3.rotate(R, u), R @ a),
            (vec3.unrotate(R, u), R.T @ a),
        ):
            assert found == pytest.approx(expected, rel=1e-14, abs=1e-14)


AXES = [*np.eye(3), *-np.eye(3)]
EQUAL = [
    np.array(p, dtype=float) for p in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (-2, 1, 1), (1, -2, 1), (1, 1, -2))
]


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_a_perpendicular_is_a_unit_vector_at_a_right_angle_whichever_component_is_least(size):
    rng = np.random.default_rng(1)
    for u in (*AXES, *EQUAL, *rng.normal(size=(100, 3))):
        w = np.array(vec3.perpendicular(tuple(size * u)))
        assert np.linalg.norm(w) == pytest.approx(1, abs=4e-15)
        assert abs(w @ u) < 4e-15 * np.linalg.norm(u)
    assert vec3.perpendicular((0.0, 0.0, 0.0)) == (1.0, 0.0, 0.0)
