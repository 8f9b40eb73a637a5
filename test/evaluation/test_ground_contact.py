"""Contact with the ground: slip, penetration and floating of motions whose numbers are known by construction."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.robots import load_robot

BIPEDS = ("lola", "hrp2", "suralp", "wabian2")
ROUNDED = 1e-4  # [m] as the numbers of the robots are
ALWAYS = np.ones((11, 4), dtype=bool)


def moved(robot, translations, pitch=0.0):
    """Neutral postures (T, nq) whose root is moved by each translation, pitched about the world's origin."""
    turn = pin.SE3(pin.rpy.rpyToMatrix(0.0, pitch, 0.0), np.zeros(3))
    return np.array([robot.q("neutral", pin.SE3(np.eye(3), t) * turn * robot.X_world_root) for t in translations])


@pytest.mark.parametrize("name", BIPEDS)
def test_standing_still_is_perfect(name):
    robot = load_robot(name, "floating")
    contact = measure_ground_contact(robot, moved(robot, np.zeros((11, 3))), ALWAYS, 100.0)
    assert len(contact.slip) == 4 and contact.slip.max() < 1e-9 and contact.skating < 1e-9
    assert contact.penetration.max() < ROUNDED and contact.floating.max() < ROUNDED
    assert contact.contact_share == pytest.approx(np.ones(4))


def test_rising_is_no_slip():
    robot = load_robot("hrp2", "floating")
    way = np.linspace(0, 0.004, 11)[:, None] * [0.0, 0.0, 1.0]
    contact = measure_ground_contact(robot, moved(robot, way), ALWAYS, 100.0)
    assert contact.slip.max() < 1e-9 and contact.slip_speed.max() < 1e-6 and contact.skating < 1e-6


@pytest.mark.parametrize("name", BIPEDS)
def test_a_slide_is_as_long_and_as_fast_as_it_is(name):
    robot = load_robot(name, "floating")
    way = np.linspace(0, 1, 11)[:, None] * [0.003, 0.004, 0.0]
    contact = measure_ground_contact(robot, moved(robot, way), ALWAYS, 100.0)
    assert contact.slip == pytest.approx(np.full(4, 0.005))
    assert contact.slip_speed == pytest.approx(np.full(4, 0.05)) and contact.skating == pytest.approx(0.05)
    halves = ALWAYS.copy()
    halves[5, 1] = False  # two contacts of the left toe, each of 4 steps of half a millimetre
    row = measure_ground_contact(robot, moved(robot, way), halves, 100.0).row()
    assert row["contacts"] == 5 and row["slip_max_mm"] == pytest.approx(5.0)
    split = measure_ground_contact(robot, moved(robot, way), halves, 100.0).slip
    assert sorted(split)[:2] == pytest.approx([0.002, 0.002])


def test_heights_are_told_apart():
    robot = load_robot("hrp2", "floating")
    low = measure_ground_contact(robot, moved(robot, np.tile([0, 0, -0.002], (11, 1))), ALWAYS, 100.0)
    assert low.penetration == pytest.approx(np.full(11, 0.002), abs=ROUNDED) and low.floating.max() == 0.0
    high = measure_ground_contact(robot, moved(robot, np.tile([0, 0, 0.007], (11, 1))), ALWAYS, 100.0)
    assert high.floating == pytest.approx(np.full(11, 0.007), abs=ROUNDED) and high.penetration.max() == 0.0
    both = np.zeros((11, 3))
    both[3, 2], both[8, 2] = 0.007, -0.002
    row = measure_ground_contact(robot, moved(robot, both), ALWAYS, 100.0).row()
    assert (row["floating_mm"], row["penetration_mm"]) == pytest.approx((7.0, 2.0), abs=1e3 * ROUNDED)
    nowhere = measure_ground_contact(robot, moved(robot, np.tile([0, 0, 0.007], (11, 1))), ~ALWAYS, 100.0)
    assert nowhere.floating.max() == 0.0 and len(nowhere.slip) == 0 and nowhere.row()["contacts"] == 0


def test_a_robot_on_its_toes_floats_at_the_heels_only():
    robot = load_robot("hrp2", "floating")
    toes = ALWAYS & [False, True, False, True]
    q = moved(robot, np.tile([0, 0, 0.1356 * np.sin(0.1)], (11, 1)), pitch=0.1)  # its toe edge is 0.1356 m ahead
    contact = measure_ground_contact(robot, q, toes, 100.0)
    assert contact.floating.max() < ROUNDED and contact.penetration.max() < ROUNDED
    assert measure_ground_contact(robot, q, ALWAYS, 100.0).floating.max() == pytest.approx(
        0.2412 * np.sin(0.1), abs=ROUNDED
    )


def test_what_does_not_fit_is_refused():
    robot = load_robot("hrp2", "floating")
    with pytest.raises(ConfigError, match="expected q"):
        measure_ground_contact(robot, np.zeros((3, 5)), ALWAYS[:3], 100.0)
    with pytest.raises(RobotError, match="floating base"):
        fixed = load_robot("hrp2", "fixed")
        measure_ground_contact(fixed, np.zeros((3, fixed.nq)), ALWAYS[:3], 100.0)
