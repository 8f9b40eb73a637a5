"""An ellipsoid and a box: an answer proves itself by two points and by the gap between two planes."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.collision.ellipsoid_box_distance import ellipsoid_box
from humanoid_control.collision.pair_distance import pair_distance

GAPS = {"apart": (0.005, 0.3), "close": (1e-9, 1e-4), "dipping": (-0.01, -1e-9)}


def cases(rng, count):
    """Any turn, and such that axes lie along each other; balls, discs, needles, plates; centres over faces, too."""
    for k in range(count):
        e, b = rng.uniform(0.03, 0.2, 3), rng.uniform(0.03, 0.2, 3)
        if k % 5 == 1:
            e[:] = e[0]
        if k % 5 == 2:
            e[1:] = e[1]
        if k % 5 == 3:
            e[k % 3], b[k % 2] = 2e-3, 1e-3
        R1 = Rotation.random(rng=rng).as_matrix()
        R2 = R1 @ Rotation.create_group("O")[k % 24].as_matrix() if k % 3 == 0 else Rotation.random(rng=rng).as_matrix()
        p1, way = rng.standard_normal(3), rng.standard_normal(3)
        if k % 4 == 0:
            way[rng.integers(3)] = 0.0
        yield e, R1, p1, b, R2, p1 + R1 @ (way / np.linalg.norm(way)) * 2.0 * (e.max() + b.max())


def put(case, low, high, rng):
    """The case with the box moved along the normal, so that it is about so far away; None where it is unproved."""
    e, R1, p1, b, R2, p2 = case
    for _ in range(4):
        ok, d, n, _, _ = ellipsoid_box(tuple(e), R1, tuple(p1), tuple(b), R2, tuple(p2))
        if not ok:
            return None
        p2 = p2 + (rng.uniform(low, high) - d) * np.array(n)
    return e, R1, p1, b, R2, p2


@pytest.mark.parametrize("kind", GAPS)
def test_an_answer_proves_itself(brute, kind):
    rng, unproved = np.random.default_rng(1), 0
    for case in cases(rng, 400):
        case = put(case, *GAPS[kind], rng)
        answer = (False,) if case is None else ellipsoid_box(*(tuple(v) if v.ndim == 1 else v for v in case))
        if not answer[0]:
            unproved += 1
            continue
        e, R1, p1, b, R2, p2 = case
        _, d, n, x1, x2 = answer
        n, x1, x2 = np.array(n), np.array(x1), np.array(x2)
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12) and np.abs(x1 + d * n - x2).max() < 1e-13
        assert np.linalg.norm((x1 - p1) @ R1 / e) == pytest.approx(1.0, abs=1e-9)
        assert np.all(np.abs((x2 - p2) @ R2) <= b + 1e-12)
        others = np.vstack([n, -n, R2.T, -R2.T, brute.directions(400)])
        gaps = others @ (p2 - p1) - np.linalg.norm(others @ R1 * e, axis=1) - np.abs(others @ R2) @ b
        assert gaps[0] == pytest.approx(d, abs=3e-12)
        assert gaps.max() <= d + 3e-12
    assert unproved <= {"apart": 0, "close": 16, "dipping": 100}[kind]  # of plates of 1 and 2 mm, deep on their way


def test_what_is_not_proved_is_sought_as_before(brute):
    """Deep in each other the shortest way out is found among all directions; here by brute force."""
    rng = np.random.default_rng(2)
    for _ in range(8):
        A = brute.two_shapes("ellipsoid", "box", rng, spread=0.03)
        d, n, x1, x2 = pair_distance(A, A.R, A.p, 0, 1)
        wanted, _ = brute.best_gap(A, rng)
        assert d < 0 and d == pytest.approx(wanted, abs=2e-5) and d >= wanted - 1e-9
        assert np.abs(np.array(x1) + d * np.array(n) - x2).max() < 1e-12


def test_beside_a_face_an_edge_and_a_corner():
    """A ball, of which the distances are those of its centre from the box."""
    b, R = (0.1, 0.2, 0.3), Rotation.from_rotvec([0.3, -0.5, 0.2]).as_matrix()
    for off in ((0.3, 0.1, 0.05), (0.3, 0.4, 0.05), (0.3, 0.4, 0.5), (-0.3, -0.1, -0.5)):
        ok, d, n, x1, x2 = ellipsoid_box((0.05,) * 3, np.eye(3), tuple(R @ off), b, R, (0.0, 0.0, 0.0))
        nearest = np.clip(off, -np.array(b), b)
        assert ok and d == pytest.approx(np.linalg.norm(off - nearest) - 0.05, abs=1e-14)
        assert np.array(x2) == pytest.approx(R @ nearest, abs=1e-13)
        assert np.array(n) == pytest.approx(R @ (nearest - off) / np.linalg.norm(nearest - off), abs=1e-12)
        assert np.array(x1) + d * np.array(n) == pytest.approx(np.array(x2), abs=1e-13)
