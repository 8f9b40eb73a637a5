"""What soles feel: a slope is believed, an IMU's error is not; Lola walks on slopes, known and unknown.

The two walks simulate 5 s each: 8 s on a slow core.
"""

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.walking.trial import WalkConditions, steady, walk
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.walking import Walker, WalkSettings
from humanoid_control.walking.ground.standing import stand_on_ground
from humanoid_control.walking.ground.terrain import FeltGround
from test.robots_under_test import nightly


def tilted(along, across=0.0):
    return pin.SE3(pin.rpy.rpyToMatrix(across, -along, 0.0), np.array([0.5, 0.1, 0.3]))


def test_small_tilts_are_level_and_others_are_believed_after_a_while():
    ground = FeltGround()
    ground.begin(tilted(np.radians(0.5)))
    assert not ground.slope.any()
    for _ in range(1000):
        ground.feel(tilted(np.radians(3.0), np.radians(2.0)), 0.004)
    ground.place = np.array([0.5, 0.1, 0.3])
    n = tilted(np.radians(3.0), np.radians(2.0)).rotation[:, 2]
    z, dx, dy = ground.as_plane()
    assert [dx, dy] == pytest.approx(-n[:2] / n[2], rel=0.08)
    assert ground.heights(np.array([[0.5, 0.1], [1.5, 0.1]])) == pytest.approx([0.3, 0.3 + dx]) and z < 0.3


@pytest.mark.parametrize("recipe,known", [("plane:slope=8", True), nightly("plane:slope=-3", False)])
def test_lola_walks_on_a_slope(recipe, known):
    ground = ground_of(recipe)
    engine = SimulationConfig("lola", ground=recipe).build()
    stand_on_ground(engine)
    walker = Walker(load_robot("lola", "floating"), WalkSettings(ground=ground if known else None))
    begin = engine.q[:3].copy()
    out = walk(engine, walker, WalkConditions(steady((0.375, 0.0, 0.0), 0.5), 2, longest=6.0))
    assert out.fell == "" and out.steps >= 3
    moved = engine.q[:3] - begin
    assert moved[0] > 0.3 and moved[2] == pytest.approx(ground.height(moved[0], 0.0), abs=0.04)
    assert np.degrees(out.tilt) < 2.5 and out.sole_error < 0.015 and out.dcm_error.max() < 0.02
