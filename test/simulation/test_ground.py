"""Heights and normals of the ground against the formulas they were made from."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.contact.ground import Ground


def test_a_plane_rises_by_its_slope_in_its_direction():
    ground = Ground.plane(0.3, np.radians(10), np.radians(90))
    assert ground.height(5.0, 0.0) == pytest.approx(0.3)
    assert ground.height(5.0, 2.0) == pytest.approx(0.3 + 2 * np.tan(np.radians(10)))
    assert ground.normal(1.0, 1.0) == pytest.approx([0, -np.sin(np.radians(10)), np.cos(np.radians(10))])


def test_a_grid_of_a_bilinear_function_is_exact_and_ends_in_its_edge():
    """a + b x + c y + d x y is what bilinear cells can hold, so height and normal are exact inside."""
    a, b, c, d = 0.1, 0.2, -0.15, 0.3
    ground = Ground.from_function(lambda x, y: a + b * x + c * y + d * x * y, (-1, 2), (0, 1), 0.125)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform([-1, 0], [2, 1], (200, 2)):
        assert ground.height(x, y) == pytest.approx(a + b * x + c * y + d * x * y, abs=1e-12)
        slope = np.array([-(b + d * y), -(c + d * x), 1.0])
        assert ground.normal(x, y) == pytest.approx(slope / np.linalg.norm(slope), abs=1e-11)
    assert ground.height(9.0, 0.5) == pytest.approx(ground.height(2.0, 0.5))
    assert ground.height(-7.0, -3.0) == pytest.approx(a - b)
    n = ground.normal(9.0, 0.5)
    assert n[0] == 0 and n[1] == pytest.approx(-(c + 2 * d) / np.hypot(1, c + 2 * d)), "flat outward, sloped along"


def test_the_height_is_continuous_and_the_normal_is_its_gradient():
    ground = Ground.waves(0.05, 0.7, size=4.0)
    rng = np.random.default_rng(1)
    for x, y in rng.uniform(-2.5, 2.5, (100, 2)):
        e = 1e-7
        dx = (ground.height(x + e, y) - ground.height(x - e, y)) / (2 * e)
        dy = (ground.height(x, y + e) - ground.height(x, y - e)) / (2 * e)
        n = ground.normal(x, y)
        assert np.linalg.norm(n) == pytest.approx(1) and n[2] > 0
        assert -n[:2] / n[2] == pytest.approx([dx, dy], abs=1e-5)
    wanted = 0.05 * np.sin(2 * np.pi * 0.3 / 0.7) * np.sin(2 * np.pi * -0.2 / 0.7)
    assert ground.height(0.3, -0.2) == pytest.approx(wanted, abs=1.5e-3), "to within the cells' curvature"


def test_stairs_have_flat_treads_at_the_right_heights():
    ground = Ground.stairs(rise=0.12, run=0.3, steps=3, start=0.5)
    for k, x in enumerate([0.4, 0.65, 0.95, 1.25, 5.0]):
        assert ground.height(x, 0.4) == pytest.approx(0.12 * min(k, 3))
        assert ground.normal(x, 0.4) == pytest.approx([0, 0, 1])
    assert Ground.stairs(-0.1, 0.3).height(1.0, 9.0) == pytest.approx(-0.1)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: Ground.plane(slope=1.3), "60 degrees"),
        (lambda: Ground.plane(height=float("nan")), "height must be a finite number"),
        (lambda: Ground.stairs(0.1, 0.005), "edge < run"),
        (lambda: Ground.waves(0.1, 0.01), "two spacings"),
        (lambda: Ground.from_grid(np.zeros((1, 5)), (1, 1)), "at least 2 x 2"),
        (lambda: Ground.from_grid(np.zeros((3, 5)), (1, 0)), "positive"),
        (lambda: Ground.from_grid(np.array([[0, 1], [np.inf, 0]]), (1, 1)), r"height \[1, 0\]"),
        (lambda: Ground.from_function(np.hypot, (0, 1000), (0, 1000), 1e-3), "too many.*larger spacing"),
        (lambda: Ground.from_grid(np.broadcast_to(0.0, (3000, 3000)), (1, 1)), "too many.*coarser grid"),
        (lambda: Ground.stairs(0.1, 0.3, 1000, edge=1e-12), "too many.*longer edge"),
    ],
)
def test_ground_that_makes_no_sense_is_refused_in_one_line(make, says):
    with pytest.raises(ConfigError, match=says) as e:
        make()
    assert "\n" not in str(e.value)
