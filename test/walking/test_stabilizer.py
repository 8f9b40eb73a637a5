"""Feedback of a walk: what it asks of the zero-moment point, of each foot, and where it leads the feet."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.estimation.floating_base import BaseEstimate
from humanoid_control.robots import load_robot
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.planning.plan import References, mean_heading
from humanoid_control.walking.stabilizer import Stabilizer, StabilizerGains
from humanoid_control.walking.support import edge_distance

OMEGA, DT = 3.3, 0.004


@pytest.fixture(scope="module")
def robot():
    return load_robot("lola", "floating")


@pytest.fixture
def stabilizer(robot):
    return Stabilizer(Feet(robot), robot.mass)


def soles(width=0.19, ahead=0.0):
    return (
        pin.SE3(np.eye(3), np.array([ahead, 0.5 * width, 0.0])),
        pin.SE3(np.eye(3), np.array([0.0, -0.5 * width, 0.0])),
    )


def references(zmp, dcm=None, swinging=None, u=0.5, at=None):
    at = soles() if at is None else at
    return References(at, mean_heading(at), swinging, u, np.array(zmp), np.array(zmp if dcm is None else dcm))


def estimate(robot, center, velocity=(0.0, 0.0, 0.0), at=None):
    q = robot.q("neutral")
    weights = np.array([0.5, 0.5])
    return BaseEstimate(
        q, np.zeros(robot.nv), np.array(center), np.array(velocity), list(at or soles()), weights, 0.0, np.zeros(2)
    )


def test_the_zero_moment_point_goes_beyond_the_error(robot, stabilizer):
    ref = references([0.02, 0.0])
    now = estimate(robot, [0.02, 0.005, 0.9], [OMEGA * 0.01, 0.0, 0.0])  # xi is 1 cm ahead and 5 mm left
    b = stabilizer.balance(ref, now, OMEGA, DT)
    np.testing.assert_allclose(b.error, [0.01, 0.005], atol=1e-12)
    np.testing.assert_allclose(b.zmp, ref.zmp + (1 + 3.0 / OMEGA) * b.error, atol=1e-12)
    assert b.cut == 0.0


@pytest.mark.parametrize("swinging", [None, 0, 1])
def test_what_is_asked_for_lies_in_the_support_and_the_cut_is_told(robot, stabilizer, swinging):
    ref = references([0.02, 0.0], swinging=swinging)
    b = stabilizer.balance(ref, estimate(robot, [0.3, 0.2, 0.9]), OMEGA, DT)
    assert edge_distance(stabilizer.polygon(ref), b.zmp) >= -1e-9
    assert b.cut > 0.1
    assert not stabilizer.integral.any()  # it does not wind up


@pytest.mark.parametrize("zmp", [[0.0, 0.0], [0.03, 0.02], [0.06, -0.06], [0.2, 0.08]])
def test_the_wrenches_of_both_feet_have_the_weight_and_the_zero_moment_point(robot, stabilizer, zmp):
    at = soles(ahead=0.2)
    ref = references(zmp, at=at)
    b = stabilizer.balance(ref, estimate(robot, [*zmp, 0.9], at=at), OMEGA, DT)
    force, x, y = 0.0, 0.0, 0.0
    for (f, mx, my), X in zip(b.wrenches, at, strict=True):
        force += f
        x += f * X.translation[0] - my
        y += f * X.translation[1] + mx
    assert force == pytest.approx(stabilizer.weight)
    np.testing.assert_allclose([x / force, y / force], b.zmp, atol=1e-9)


def test_a_foot_in_the_air_is_asked_for_nothing(robot, stabilizer):
    b = stabilizer.balance(references([0.0, -0.09], swinging=0), estimate(robot, [0.0, -0.09, 0.9]), OMEGA, DT)
    np.testing.assert_allclose(b.wrenches[0], 0.0)
    assert b.wrenches[1, 0] == pytest.approx(stabilizer.weight)


def test_a_sole_turns_so_that_the_missing_side_presses(robot, stabilizer):
    desired, measured = np.array([[300.0, 10.0, 0.0], [300.0, 0.0, 0.0]]), np.zeros((2, 6))
    measured[:, 2] = 300.0
    stabilizer.press(desired, measured, None, DT)
    turned = pin.exp3(np.array([*stabilizer.ankles[0], 0.0])) @ [0.0, 0.06, 0.0]
    assert turned[2] < 0.0  # more moment about +x: the left edge goes down
    assert not stabilizer.ankles[1].any()


def test_the_foot_that_carries_too_little_reaches_down(robot, stabilizer):
    desired, measured = np.array([[400.0, 0.0, 0.0], [200.0, 0.0, 0.0]]), np.zeros((2, 6))
    measured[:, 2] = 300.0
    stabilizer.press(desired, measured, None, DT)
    low, high = (X.translation[2] for X in stabilizer.commanded(references([0.0, 0.0]))[0])
    assert low < 0.0 < high and low + high == pytest.approx(0.0)


@pytest.mark.parametrize("before", [0.0, 0.004, -0.004])
def test_heights_integrate_what_is_missing_between_both_feet_and_leak(robot, stabilizer, before):
    """The difference of the desired forces of both feet, less that of the measured forces."""
    g = stabilizer.gains
    desired, measured = np.array([[400.0, 0.0, 0.0], [220.0, 0.0, 0.0]]), np.zeros((2, 6))
    measured[:, 2] = 350.0, 290.0
    stabilizer.height = before
    stabilizer.press(desired, measured, None, DT)
    assert stabilizer.height == pytest.approx(before + DT * (g.height * 120.0 - g.height_leak * before), rel=1e-12)
    for swinging in (0, 1):
        stabilizer.height = 0.004
        stabilizer.press(desired, measured, swinging, DT)
        assert stabilizer.height == pytest.approx(0.004 * np.exp(-g.height_return * DT)), (
            "forces of one foot say nothing"
        )


def test_ankles_integrate_the_moment_that_is_missing_and_leak(robot, stabilizer):
    g = stabilizer.gains
    desired, measured = np.array([[300.0, 10.0, -4.0], [300.0, 2.0, 3.0]]), np.zeros((2, 6))
    measured[:, 2:5] = [[300.0, 4.0, 5.0], [300.0, -1.0, 6.0]]
    before = np.array([[0.01, -0.02], [-0.005, 0.015]])
    stabilizer.ankles = before.copy()
    stabilizer.press(desired, measured, None, DT)
    missing = desired[:, 1:] - measured[:, 3:5]
    assert stabilizer.ankles == pytest.approx(
        before - DT * (np.array(stabilizer._ankle) * missing + g.ankle_leak * before)
    )


def test_everything_stays_in_its_bounds_however_long_it_is_wrong(robot, stabilizer):
    g = StabilizerGains()
    desired, measured = np.array([[600.0, 90.0, 90.0], [0.0, 0.0, 0.0]]), np.zeros((2, 6))
    for _ in range(5000):
        stabilizer.press(desired, measured, None, DT)
    assert np.abs(stabilizer.ankles).max() <= g.ankle_limit
    assert abs(stabilizer.height) <= g.height_limit


def test_a_swinging_foot_is_led_to_its_place_in_the_world_without_a_jump(robot, stabilizer):
    """The robot stands 2 cm off and turned by 1 deg against what it believes; the swing corrects it."""
    lean = pin.SE3(pin.exp3(np.array([0.0, 0.0, np.radians(1.0)])), np.array([0.02, 0.0, 0.01]))
    now, last = estimate(robot, [0.0, 0.0, 0.9]), np.zeros(3)
    for k in range(160):
        ref = references([0.0, -0.09], swinging=0, u=k / 160)
        stabilizer.lead(ref, now, lean, DT)
        assert np.abs(stabilizer.offsets[0] - last).max() < 6e-4
        last = stabilizer.offsets[0].copy()
    there = lean * stabilizer.commanded(references([0.0, -0.09], swinging=0, u=1.0))[0][0]
    np.testing.assert_allclose(there.translation[:2], soles()[0].translation[:2], atol=1e-4)
    np.testing.assert_allclose(pin.log3(there.rotation), 0.0, atol=1e-4)
    assert stabilizer.offsets[0][2] == pytest.approx(0.0)  # in a quick swing heights are the business of the forces


def test_a_calm_swing_is_led_in_height_too(robot, stabilizer):
    """The leg that stands has given way by 1 cm: the foot must go 1 cm higher against it, or it comes down too soon."""
    sunk, now = pin.SE3(np.eye(3), np.array([0.0, 0.0, -0.01])), estimate(robot, [0.0, 0.0, 0.9])
    for k in range(160):
        stabilizer.lead(references([0.0, -0.09], swinging=0, u=k / 160)._replace(swing=0.64), now, sunk, DT)
    assert (sunk * stabilizer.commanded(references([0.0, -0.09], swinging=0, u=1.0))[0][0]).translation[2] == (
        pytest.approx(0.0, abs=1e-4)
    )


@pytest.mark.parametrize("swinging", [None, 0, 1])
def test_the_way_that_soles_crept_is_dropped_and_nothing_else_changes(robot, stabilizer, swinging):
    ref = references([0.0, 0.02], swinging=swinging)
    stabilizer.offsets[:] = [[-0.4, 0.3, 0.004], [-0.38, 0.31, 0.0]]
    before, along = stabilizer.commanded(ref)
    shift = stabilizer.drop_drift(ref)
    after, rest = stabilizer.commanded(ref)
    for X, Y in zip(before, after, strict=True):
        np.testing.assert_allclose(X.translation, Y.translation + shift, atol=1e-12)
        np.testing.assert_array_equal(X.rotation, Y.rotation)
    np.testing.assert_allclose(along, rest + shift, atol=1e-12)
    np.testing.assert_allclose(rest[:2], 0.0, atol=1e-12)
    if swinging is not None:
        np.testing.assert_allclose(stabilizer.offsets[1 - swinging, :2], 0.0, atol=1e-12)


def test_a_walk_turned_in_the_world_is_corrected_alike(robot):
    turn = pin.SE3(pin.exp3(np.array([0.0, 0.0, 0.7])), np.array([3.0, -2.0, 0.0]))
    R = turn.rotation[:2, :2]
    plain, turned = Stabilizer(Feet(robot), robot.mass), Stabilizer(Feet(robot), robot.mass)
    at = soles(ahead=0.2)
    there = tuple(turn * X for X in at)
    zmp, c, v = np.array([0.05, 0.02]), np.array([0.08, 0.01, 0.9]), np.array([0.1, -0.05, 0.0])
    a = plain.balance(references(zmp, at=at), estimate(robot, c, v, at), OMEGA, DT)
    moved = references(turn.act(np.array([*zmp, 0.0]))[:2], at=there)
    b = turned.balance(moved, estimate(robot, turn.act(c), turn.rotation @ v, there), OMEGA, DT)
    np.testing.assert_allclose(b.error, R @ a.error, atol=1e-12)
    np.testing.assert_allclose(b.wrenches, a.wrenches, atol=1e-9)
    assert b.margin == pytest.approx(a.margin)
