"""A cylinder and a box that are apart: an answer proves itself by two points and by the gap between two planes."""

import coal
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.collision.cylinder_box_distance import NEAR, cylinder_box
from humanoid_control.collision.pair_distance import pair_distance

TURNS = Rotation.create_group("O").as_matrix()


def cases(rng, count):
    """Any turn, axes along each other and nearly so; discs, needles and plates; centres over faces, too."""
    for k in range(count):
        r, h, sides = *rng.uniform(0.02, 0.2, 2), rng.uniform(0.02, 0.2, 3)
        if k % 5 == 1:
            r, h = rng.permutation([0.2, 2e-3])
        if k % 5 == 2:
            sides[k % 3] = 1e-3
        R1 = Rotation.random(rng=rng).as_matrix()
        R2 = R1 @ TURNS[k % 24] if k % 3 else Rotation.random(rng=rng).as_matrix()
        if k % 3 == 2:
            R2 = R2 @ Rotation.from_rotvec(10.0 ** rng.uniform(-9, -2) * rng.standard_normal(3)).as_matrix()
        p1, way = 0.1 * rng.standard_normal(3), rng.standard_normal(3)
        if k % 4 == 0:
            way[rng.integers(3)] = 0.0
        far = np.hypot(r, h) + np.linalg.norm(sides) + rng.uniform(0.01, 0.5)
        yield np.array([r, r, 0.0, h]), R1, p1, sides, R2, p1 + R1 @ (far * way / np.linalg.norm(way))


def ask(size, R1, p1, sides, R2, p2):
    return cylinder_box(size, R1, tuple(p1), tuple(sides), R2, tuple(p2))


def by_coal(size, R1, p1, sides, R2, p2):
    cylinder, box = coal.Cylinder(size[0], 2 * size[3]), coal.Box(*(2 * sides))
    where = coal.Transform3s(R1, p1), coal.Transform3s(R2, p2)
    return coal.distance(cylinder, where[0], box, where[1], coal.DistanceRequest(), coal.DistanceResult())


@pytest.mark.parametrize("near", [False, True])
def test_an_answer_proves_itself(near):
    rng, unproved, count = np.random.default_rng(1), list[int](), 1200
    for k, case in enumerate(cases(rng, count)):
        answer = ask(*case)
        if near and answer[0]:  # towards each other, to any distance
            *rest, p2 = case
            case = *rest, p2 + (10.0 ** rng.uniform(-4, -1) - answer[1]) * np.array(answer[2])
            answer = ask(*case)
        if not answer[0]:
            unproved.append(k)
            continue
        size, R1, p1, sides, R2, p2 = case
        _, d, n, x1, x2 = answer
        n, x1, x2 = np.array(n), np.array(x1), np.array(x2)
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12) and np.abs(x1 + d * n - x2).max() < 1e-13
        on_1 = (x1 - p1) @ R1
        assert np.hypot(*on_1[:2]) <= size[0] + 1e-12 and abs(on_1[2]) <= size[3] + 1e-12
        assert np.all(np.abs((x2 - p2) @ R2) <= sides + 1e-12)
        m = n @ R1
        gap = n @ (p2 - p1) - size[0] * np.hypot(*m[:2]) - size[3] * abs(m[2]) - np.abs(n @ R2) @ sides
        assert gap == pytest.approx(d, abs=1e-11)
        assert by_coal(*case) == pytest.approx(d, abs=1e-5)
    assert len(unproved) < 0.05 * count and all(k % 3 == 2 for k in unproved), "but of axes nearly along each other"


def test_what_touches_is_not_answered_here():
    R, size, sides, origin = np.eye(3), np.array([0.1, 0.1, 0.0, 0.1]), (0.1, 0.1, 0.1), (0.0, 0.0, 0.0)
    for away, answered in ((0.2 + 0.5 * NEAR, False), (0.15, False), (0.0, False), (0.2 + 2 * NEAR, True)):
        assert cylinder_box(size, R, origin, sides, R, (away, 0.0, 0.0))[0] == answered


@pytest.mark.parametrize("turned", [False, True])
def test_both_orders_of_a_pair_say_the_same(brute, turned):
    """And what is not answered is sought as before: all of it agrees with the best of all directions."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        A = brute.two_shapes("cylinder", "box", rng, spread=0.25)
        i, j = (1, 0) if turned else (0, 1)
        d, n, x1, x2 = pair_distance(A, A.R, A.p, i, j)
        e, m, _, _ = pair_distance(A, A.R, A.p, j, i)
        assert d == pytest.approx(e, abs=1e-9) and np.array(n) == pytest.approx(-np.array(m), abs=1e-6)
        assert np.abs(np.array(x1) + d * np.array(n) - x2).max() < 1e-12
        wanted, _ = brute.best_gap(A, rng)
        assert d >= wanted - 1e-9 and (d < 0 or d == pytest.approx(wanted, abs=2e-5))
