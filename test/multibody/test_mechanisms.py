"""Drives both ways: motor angles from joint angles, and back by Newton's method."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.multibody.couplings import CouplerGeometry, FourBarGeometry, VergenceGeometry
from humanoid_control.multibody.mechanisms import AnkleScrews, FourBar, HarmonicDrive, KneeScrew, Vergence

RNG = np.random.default_rng(6)
ANKLE = {
    "r_pc_a": [0, 0, -0.43],
    "r_pc_f": [0, 0, 0],
    "axis_2": [0, -1, 0],
    "direction": [0, 0, -1],
    "length": 0.18,
}


def ankle(side=1):
    y = side * np.array([[0, 1, 0]])
    bot, top = np.array([[-0.055, 0, 0]] * 2), np.array([[-0.047, 0, -0.09]] * 2)
    out = np.array([[0.045], [-0.045]])
    bottoms, tops = bot + out * y, top + 0.9 * out * y
    screws = [CouplerGeometry(**ANKLE, axis_1=[side, 0, 0], r_bot=bottoms[k], r_top=tops[k]) for k in range(2)]
    return AnkleScrews("ankle", [-0.4, -0.765], [0.41, 0.838], screws, lead=0.005)


def knee(side=1):
    b, a = np.array([-0.045, side * 0.003, 0.3]), np.array([-0.034, side * 0.001, -0.043])
    return KneeScrew("knee", -0.077, 2.086, r_b=b, r_a=a, axis=[side * 0.02, 1, 0], lead=0.005)


DRIVES = {
    "harmonic": HarmonicDrive("hip", -1, 2, -80.0, 0.1),
    "knee": knee(),
    "ankle": ankle(),
    "four_bar": FourBar("finger", -0.8, 0.9, FourBarGeometry(0.04, 0.11, 0.05, 0.12, crank_zero=1.4), ratio=3),
    "vergence": Vergence(
        "eyes", -0.087, 0.35, VergenceGeometry(0.02, 0.02, 0.0632, [0.05, 0, 0.06], [-0.03, 0, 0], share=1), ratio=50
    ),
}


def inside(d, count):
    return RNG.uniform(d.lower, d.upper, (count, d.n))


def test_a_turn_of_the_screw_of_the_knee_is_its_lead():
    d = knee()
    for q in inside(d, 20):
        r = pin.AngleAxis(float(q[0]), d.axis).toRotationMatrix() @ d.r_a - d.r_b
        travel = np.linalg.norm(r) - np.linalg.norm(d.r_a - d.r_b)
        assert d.motor(q) == pytest.approx(2 * np.pi * travel / 0.005)


@pytest.mark.parametrize("kind", DRIVES)
def test_newton_comes_back_from_bad_starts(kind):
    d = DRIVES[kind]
    d.check()
    for q in inside(d, 60):
        start = d.lower + (d.upper - d.lower) * RNG.integers(-1, 3, d.n)  # at the ends, and far outside
        np.testing.assert_allclose(d.joint(d.motor(q), start), q, atol=1e-12, rtol=0)
    for end in (d.lower, d.upper):
        np.testing.assert_allclose(d.joint(d.motor(end)), end, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", [k for k in DRIVES if k != "harmonic"])
def test_newton_doubles_its_digits(kind, monkeypatch):
    """From a start 0.05 rad away, rounding is reached in steps whose number only quadratic convergence allows."""
    d = DRIVES[kind]
    steps = []
    jacobian = d.jacobian
    monkeypatch.setattr(d, "jacobian", lambda q: (steps.append(1), jacobian(q))[1])
    for q in inside(d, 40):
        steps.clear()
        d.joint(d.motor(q), np.clip(q + 0.05, d.lower, d.upper))
        assert len(steps) <= 7  # 0.05, 1e-3, 1e-6, 1e-12, rounding, and the last look


@pytest.mark.parametrize("kind", DRIVES)
def test_jacobian_and_its_rate_equal_finite_differences(kind):
    d = DRIVES[kind]
    h = 1e-4
    for q in inside(d, 40):
        v = RNG.normal(size=d.n)
        J, rate = d.jacobian(q), d.jacobian_rate(q, v)
        along = (8 * (d.motor(q + h * v) - d.motor(q - h * v)) - d.motor(q + 2 * h * v) + d.motor(q - 2 * h * v)) / (
            12 * h
        )
        np.testing.assert_allclose(J @ v, along, rtol=0, atol=1e-6 * np.abs(J).max())
        along = 8 * (d.jacobian(q + h * v) - d.jacobian(q - h * v))
        along = (along - d.jacobian(q + 2 * h * v) + d.jacobian(q - 2 * h * v)) / (12 * h)
        np.testing.assert_allclose(rate, along, rtol=0, atol=1e-6 * np.abs(J).max())
        assert np.abs(d.closure(q)).max() < 1e-12


def test_the_second_derivatives_of_the_ankle_are_symmetric_and_the_axes_couple():
    H = DRIVES["ankle"].hessian(np.array([0.2, 0.3]))
    np.testing.assert_array_equal(H, H.transpose(0, 2, 1))
    assert np.abs(H[:, 0, 1]).min() > 1e-3 * np.abs(H).max()


def test_left_and_right_mirror():
    left, right = ankle(1), ankle(-1)
    for q in inside(left, 20):
        np.testing.assert_allclose(left.motor(q), right.motor(q), atol=1e-12)
        np.testing.assert_allclose(left.jacobian(q), right.jacobian(q), atol=1e-11)
    left, right = knee(1), knee(-1)
    for q in inside(left, 20):
        np.testing.assert_allclose(left.motor(q), right.motor(q), atol=1e-11)
    swapped = ankle(1)
    q = np.array([0.2, 0.3])
    np.testing.assert_allclose(swapped.motor(q), swapped.motor(q * [-1, 1])[::-1], atol=1e-12)


def test_motor_angles_that_no_joint_angle_gives_are_refused():
    for d in (DRIVES["knee"], DRIVES["ankle"]):
        with pytest.raises(RobotError, match="no joint angles between") as e:
            d.joint(d.motor((d.lower + d.upper) / 2) + 1e4)
        assert "\n" not in str(e.value)


def test_a_loop_that_cannot_close_and_a_singular_transmission_are_refused():
    loose = FourBar("finger", -3, 3, FourBarGeometry(0.04, 0.05, 0.05, 0.12, crank_zero=1.4))
    with pytest.raises(RobotError, match=r"finger: the loop cannot close at joint angle .* deg"):
        loose.check()
    straight = KneeScrew("knee", -1, 1, r_b=[0, 0, 0.3], r_a=[0, 0, -0.05], axis=[0, 1, 0], lead=0.005)
    with pytest.raises(RobotError, match="knee: the transmission is singular near"):
        straight.check()
    with pytest.raises(RobotError, match="the lead must be above zero"):
        KneeScrew("knee", -1, 1, r_b=[0, 0, 0.3], r_a=[0, 0, -0.05], axis=[0, 1, 0], lead=0.0)
