"""Joint ranges narrowed to what tendons hold: inside the robot's, and held (TC-02)."""

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, within_tendons
from humanoid_control.tendons.control.holdable import HELD, HoldableSet


@pytest.mark.parametrize("name", ["kengoro_upper", "hrp2", "suralp"])
def test_postures_of_the_narrowed_range_are_held(name):
    robot = load_robot(name, "fixed")
    narrow, share = within_tendons(robot)
    g = tendon_geometry(robot)
    joints = np.array([robot.joint_index(n) for n in g.joint_names])
    neutral = robot.postures["neutral"]
    assert (narrow.lower >= robot.lower - 1e-9).all() and (narrow.upper <= robot.upper + 1e-9).all()
    assert (narrow.lower <= neutral + 1e-9).all() and (neutral <= narrow.upper + 1e-9).all()
    others = np.setdiff1d(np.arange(robot.n), joints)
    assert np.array_equal(narrow.lower[others], robot.lower[others])
    assert (share == 1.0) == (name == "kengoro_upper")
    drawn = np.random.default_rng(5).uniform(narrow.lower[joints], narrow.upper[joints], (200, len(joints)))
    missed = np.abs(HoldableSet(robot.model, g, held=robot.q("neutral")).missed(drawn)).max(axis=1)
    assert np.mean(missed <= HELD) > 0.95


def test_a_robot_without_tendons_has_no_such_range(tmp_path):
    from test.hardware.test_hardware_file import URDF

    (tmp_path / "arm.urdf").write_text(URDF)
    with pytest.raises(RobotError, match="has no tendons"):
        within_tendons(load_robot(tmp_path / "arm.urdf", "fixed"))
