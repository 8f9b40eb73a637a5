"""A robot put on its ground: soles flat on it, trunk upright, at rest (1 s)."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.robots import load_robot
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.ground.standing import standing_configuration
from test.robots_under_test import nightly


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        ("plane:slope=8", "hrp2"),
        ("plane:slope=8,direction=90", "lola"),
        nightly("plane:slope=-8,height=0.5", "hrp2"),
        nightly("plane:slope=8", "lola"),
        nightly("plane:slope=8,direction=90", "hrp2"),
        ("plane:slope=-8,height=0.5", "lola"),
    ],
)
def test_soles_lie_on_the_slope_and_the_trunk_stays_upright(recipe, name):
    robot, ground = load_robot(name, "floating"), ground_of(recipe)
    q = standing_configuration(robot, ground)
    frames = Feet(robot).frames
    pin.framesForwardKinematics(robot.model, robot.data, q)
    for f in frames:
        X = robot.data.oMf[f]
        assert X.translation[2] == pytest.approx(ground.height(*X.translation[:2]), abs=2e-3)
        assert np.degrees(np.arccos(min(X.rotation[:, 2] @ ground.normal(0, 0), 1.0))) < 0.5
    assert q[:2] == pytest.approx(robot.q("neutral")[:2], abs=3e-3), "a walker's map begins there"
    up = pin.XYZQUATToSE3(q[:7]).rotation @ robot.X_world_root.rotation.T
    assert np.degrees(np.arccos(min(up[2, 2], 1.0))) < 1.0
    assert (q[robot.iq :] >= robot.lower - 1e-9).all() and (q[robot.iq :] <= robot.upper + 1e-9).all()


def test_no_place_to_stand_is_refused():
    with pytest.raises(ConfigError, match="cannot stand at its start: a slope of 20 deg"):
        standing_configuration(load_robot("lola", "floating"), ground_of("plane:slope=20"))
