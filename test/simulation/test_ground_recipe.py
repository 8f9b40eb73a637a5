"""Grounds made from a line of text: heights against the formulas they stand for, and bad lines (0.2 s)."""

import numpy as np
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.ground_recipe import LEVEL, ground_of


def test_a_plane_in_degrees():
    ground = ground_of("plane:slope=8,direction=90,height=0.1")
    assert ground.height(3.0, 2.0) == pytest.approx(0.1 + 2 * np.tan(np.radians(8)))
    assert ground_of("").as_plane() == (0.0, 0.0, 0.0)
    assert ground.as_plane() == pytest.approx((0.1, 0.0, np.tan(np.radians(8))), abs=1e-12)


def test_stairs_up_a_landing_and_down():
    up = ground_of("stairs:rise=0.15,run=0.3,steps=5,start=0.6")
    both = ground_of("stairs:rise=0.15,run=0.3,steps=5,start=0.6,top=1.0")
    for x in np.arange(0.0, 2.75, 0.051):
        assert both.height(x, 0.3) == pytest.approx(up.height(x, 0.3), abs=1e-9)
    end = 0.6 + 4 * 0.3 + 1.0  # of the landing
    for k in range(5):
        assert both.height(end + 0.15 + 0.3 * k, 0.0) == pytest.approx(0.15 * (4 - k), abs=1e-9)
    assert both.height(9.0, 0.0) == 0.0


def test_rough_grounds_are_level_at_the_start_bounded_and_repeatable():
    rng = np.random.default_rng(0)
    for kind in ("waves", "rough", "tiles"):
        ground, again = ground_of(f"{kind}:height=0.012"), ground_of(f"{kind}:height=0.012")
        away = rng.uniform(-5, 5, (2000, 2))
        z = ground.heights(away)
        assert np.abs(z).max() <= 0.012 + 1e-12 and np.ptp(z) > 0.01, kind
        assert np.array_equal(z, again.heights(away))
        assert not ground.heights(rng.uniform(-0.2, 0.2, (100, 2))).any() and LEVEL > 0.2
    assert not np.array_equal(ground_of("tiles:seed=1").array, ground_of("tiles:seed=2").array)


def test_heights_of_many_points_are_those_of_each():
    rng = np.random.default_rng(1)
    for ground in (Ground.plane(0.1, 0.2, 0.5), ground_of("waves"), ground_of("stairs"), ground_of("rough")):
        points = rng.uniform(-9, 9, (300, 2))
        assert ground.heights(points) == pytest.approx([ground.height(*p) for p in points], abs=1e-12)


def test_maps_of_files(tmp_path):
    heights = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]])
    np.savetxt(tmp_path / "map.csv", heights, delimiter=",")
    np.savez(tmp_path / "map.npz", heights=heights, spacing=0.5, origin=(1.0, 2.0))
    for text in (f"file:path={tmp_path}/map.csv,spacing=0.5,x=1,y=2", f"file:path={tmp_path}/map.npz"):
        ground = ground_of(text)
        assert [ground.height(1.0, 2.0), ground.height(1.5, 3.0)] == pytest.approx([0.0, 0.5])


@pytest.mark.parametrize(
    "text,part",
    [
        ("plan", "unknown kind of ground 'plan'"),
        ("plane:slop=3", "unknown number of ground 'plane' 'slop'"),
        ("plane:slope=x", "slope must be a number, got 'x'"),
        ("plane:slope", "expected name=value, got 'slope'"),
        ("plane:slope=70", "within 60 degrees"),
        ("stairs:rise=nan", "finite"),
        ("stairs:steps=2.5", "whole number"),
        ("stairs:run=0.005", "edge < run"),
        ("stairs:top=-1", "top must be 0 or more"),
        ("waves:length=0", "at least 0.05"),
        ("tiles:length=0.001", "0.02 to"),
        ("rough:seed=-1", "whole number"),
        ("file:spacing=1", "needs path"),
        ("file:path=/not/there.csv", "no file '/not/there.csv'"),
        (f"file:path={__file__}", "not a table of heights"),
    ],
)
def test_a_bad_recipe_is_refused_in_one_line(text, part):
    with pytest.raises(HumanoidError) as e:
        ground_of(text)
    assert part in str(e.value) and "\n" not in str(e.value)


def test_a_world_takes_a_recipe_and_a_stiffness():
    engine = SimulationConfig("lola", ground="plane:slope=5", contact_stiffness=2e4).build()
    assert engine.settings.ground.normal(0, 0) == pytest.approx([-np.sin(np.radians(5)), 0, np.cos(np.radians(5))])
    assert engine.settings.contact.stiffness == engine.settings.contact.shear_stiffness == 2e4
    for bad in ({"ground": "stairs", "slope": 0.1}, {"contact_stiffness": 0.0}, {"ground": "hills"}):
        with pytest.raises(HumanoidError):
            SimulationConfig("lola", **bad).build()
