"""Couplings of drives against their mechanisms, built from points by scipy, and against finite differences."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from humanoid_control.errors import RobotError
from humanoid_control.multibody.couplings import (
    CouplerGeometry,
    FourBarGeometry,
    VergenceGeometry,
    coupler_parameters,
    coupler_screw,
    four_bar,
    four_bar_parameters,
    hinge_parameters,
    hinge_screw,
    hinge_tilt,
    linear,
    linear_parameters,
    polynomial,
    polynomial_parameters,
    spline,
    spline_parameters,
    vergence_lever,
    vergence_parameters,
)

RNG = np.random.default_rng(5)
KNEE_B, KNEE_A, KNEE_AXIS = (
    np.array([-0.045, 0.004, 0.3]),
    np.array([-0.034, -0.006, -0.043]),
    np.array([0.1, 1, -0.05]),
)
ANKLE = {
    "r_pc_a": np.array([0, 0, -0.43]),
    "axis_1": np.array([1, 0.05, 0]),
    "axis_2": np.array([0, -1, 0.1]),
    "r_bot": np.array([-0.055, 0.045, 0.004]),
    "r_top": np.array([-0.046, 0.04, -0.09]),
    "direction": np.array([0.02, 0.03, -1]),
    "length": 0.18,
}
FOUR_BAR = {"crank": 0.04, "coupler": 0.11, "rocker": 0.05, "ground": 0.12, "crank_zero": 1.4}
VERGENCE = {"r_ax": 0.02, "lever": 0.02, "coupler": 0.0632, "r_k": [0.05, 0, 0.06], "r_b": [-0.03, 0, 0.004]}


def slope(f, x, h=2e-4):
    """Derivative by differences of fourth order."""
    f = np.vectorize(f)
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def same(ours, other, scale, share=1e-6):
    assert np.abs(ours - other).max() <= share * scale, np.abs(ours - other).max() / scale


def turn(axis, angle):
    axis = np.asarray(axis, float)
    return Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))


KNEE_POINTS = (
    [-2.0944, -1.74533, -1.39626, -1.0472, -0.698132, -0.349066, -0.174533, 0.197344],
    [-0.0032, 0.00179, 0.00411, 0.0041, 0.00212, -0.001, -0.0031, -0.005227],
)  # travel of a shank on its thigh [m] over the flexion [rad]
ONE_CAMERA = VergenceGeometry(**VERGENCE, share=1.0, branch=-1)
ONE_JOINT = {
    "hinge_screw": (hinge_screw, hinge_parameters(KNEE_B, KNEE_A, KNEE_AXIS), -0.1, 2.1),
    "hinge_tilt": (hinge_tilt, hinge_parameters(KNEE_B, KNEE_A, KNEE_AXIS), -0.1, 2.1),
    "four_bar": (four_bar, four_bar_parameters(FourBarGeometry(**FOUR_BAR)), -0.8, 0.9),
    "four_bar, other branch": (four_bar, four_bar_parameters(FourBarGeometry(**FOUR_BAR, branch=-1)), -0.8, 0.9),
    "vergence": (vergence_lever, vergence_parameters(VergenceGeometry(**VERGENCE)), -0.2, 0.7),
    "vergence, one camera": (vergence_lever, vergence_parameters(ONE_CAMERA), -0.1, 0.35),
    "linear": (linear, linear_parameters(-80.0, 0.3), -2.0, 2.0),
    "polynomial": (polynomial, polynomial_parameters([0.3, -0.2, 0.7, 0.1, -0.3]), -1.5, 1.5),
    "spline": (spline, spline_parameters(*KNEE_POINTS), -2.0, 0.15),
    "spline, outside": (spline, spline_parameters(*KNEE_POINTS), 0.3, 1.0),
}


@pytest.mark.parametrize("case", ONE_JOINT)
def test_gradient_and_hessian_of_one_joint_equal_finite_differences(case):
    coupling, par, lower, upper = ONE_JOINT[case]
    par = np.concatenate([[7.0, 8.0], par])  # read at an offset
    q = np.linspace(lower, upper, 200)
    g, g_q, g_qq = np.array([coupling(par, 2, x) for x in q]).T
    assert np.isfinite(g).all()
    same(g_q, slope(lambda x: coupling(par, 2, x)[0], q), np.abs(g_q).max())
    same(g_qq, slope(lambda x: coupling(par, 2, x)[1], q), np.abs(g_q).max())


@pytest.mark.parametrize("offset", [[0, 0, 0], [0.004, -0.003, -0.02]], ids=["axes meet", "axes apart"])
@pytest.mark.parametrize("branch", [-1, 1])
def test_gradient_and_hessian_of_the_ankle_equal_finite_differences(offset, branch):
    par = coupler_parameters(CouplerGeometry(**ANKLE, r_pc_f=offset, branch=branch))
    q = RNG.uniform([-0.45, -0.8], [0.45, 0.85], (300, 2))
    value, l1, l2, l11, l12, l22 = np.array([coupler_screw(par, 0, *x) for x in q]).T
    assert np.isfinite(value).all()
    size = max(np.abs(l1).max(), np.abs(l2).max())

    def by(k, entry):
        out = []
        for x in q:
            step = np.eye(2)[k]
            out.append(slope(lambda t, x=x, s=step: coupler_screw(par, 0, *(x + t * s))[entry], 0.0))
        return np.array(out)

    for ours, k, entry in ((l1, 0, 0), (l2, 1, 0), (l11, 0, 1), (l12, 1, 1), (l12, 0, 2), (l22, 1, 2)):
        same(ours, by(k, entry), size)


def test_the_knee_screw_is_the_distance_of_its_ends_and_the_side_of_a_triangle():
    par = hinge_parameters(KNEE_B, KNEE_A, KNEE_AXIS)
    for q in np.linspace(-3, 3, 60):
        assert hinge_screw(par, 0, q)[0] == pytest.approx(
            np.linalg.norm(turn(KNEE_AXIS, q).apply(KNEE_A) - KNEE_B), abs=1e-14
        )
    b, a = np.array([-0.045, 0, 0.3]), np.array([-0.034, 0, -0.043])
    par = hinge_parameters(b, a, [0, 1, 0])
    between = np.arctan2(np.cross(b, a)[1], b @ a)  # from b to a about the axis
    for q in np.linspace(-0.1, 2.1, 60):
        side = np.sqrt(a @ a + b @ b - 2 * np.linalg.norm(a) * np.linalg.norm(b) * np.cos(between + q))
        assert hinge_screw(par, 0, q)[0] == pytest.approx(side, abs=1e-14)


def test_the_tilt_is_the_turn_of_the_screw_about_the_joint_axis():
    """The rate has the sign of the screw's angular velocity (r x dr) / l^2, not the opposite one that is printed."""
    b, a, axis = np.array([-0.045, 0, 0.3]), np.array([-0.034, 0, -0.043]), np.array([0.0, 1.0, 0.0])
    par = hinge_parameters(b, a, axis)
    for q in np.linspace(-0.1, 2.1, 50):
        alpha, rate, _ = hinge_tilt(par, 0, q)
        r = turn(axis, q).apply(a) - b
        now = turn(axis, alpha).apply((a - b) / np.linalg.norm(a - b))
        np.testing.assert_allclose(now, r / np.linalg.norm(r), atol=1e-13)
        dr = np.cross(axis, turn(axis, q).apply(a))
        assert rate == pytest.approx(axis @ np.cross(r, dr) / (r @ r), rel=1e-12)
    assert abs(rate) > 1e-3


def test_the_printed_rate_of_the_knee_is_not_the_derivative():
    """(3.14) prints |r'| for dl/dq, from which (3.11) follows; the length itself decides."""
    b, a, axis = np.array([-0.045, 0, 0.3]), np.array([-0.034, 0, -0.043]), np.array([0.0, 1.0, 0.0])
    par = hinge_parameters(b, a, axis)
    q = np.linspace(0, 2, 50)
    true = slope(lambda x: hinge_screw(par, 0, x)[0], q)
    printed = np.linalg.norm(a)
    assert np.abs(true - printed).min() > 0.05 and (true < 0).all()
    # (3.11) with r'' = -(r' turned): r'^T dr / |r'| = |r'| v; the true one is the second derivative times v
    second = slope(lambda x: hinge_screw(par, 0, x)[1], q)
    assert np.abs(second - printed).max() > 0.02


def test_the_coupler_keeps_its_length_over_the_whole_ankle_range_and_lies_above_the_foot():
    par = coupler_parameters(CouplerGeometry(**ANKLE, r_pc_f=[0.004, -0.003, -0.02]))
    plus = coupler_parameters(CouplerGeometry(**ANKLE, r_pc_f=[0.004, -0.003, -0.02], branch=1))
    e = ANKLE["direction"] / np.linalg.norm(ANKLE["direction"])
    for q1 in np.linspace(-0.45, 0.45, 19):
        for q2 in np.linspace(-0.8, 0.85, 23):
            below = turn(ANKLE["axis_2"], q2).apply(ANKLE["r_bot"]) + [0.004, -0.003, -0.02]
            foot = ANKLE["r_pc_a"] + turn(ANKLE["axis_1"], q1).apply(below)
            for p, side in ((par, -1), (plus, 1)):
                carriage = ANKLE["r_top"] + coupler_screw(p, 0, q1, q2)[0] * e
                assert np.linalg.norm(foot - carriage) == pytest.approx(0.18, abs=1e-12)
                assert np.sign((carriage - foot) @ e) == side


def test_the_four_bar_equals_a_root_found_without_closed_form():
    for branch in (-1, 1):
        par = four_bar_parameters(FourBarGeometry(**FOUR_BAR, branch=branch))
        for q in np.linspace(-0.8, 0.9, 40):
            t = q + FOUR_BAR["crank_zero"]
            a = 0.04 * np.array([np.cos(t), np.sin(t)])

            def gap(p, a=a):
                return np.hypot(*(np.array([0.12 + 0.05 * np.cos(p), 0.05 * np.sin(p)]) - a)) - 0.11

            to_a = np.arctan2(a[1], a[0] - 0.12)
            root = brentq(gap, to_a, to_a + branch * np.pi, xtol=1e-15)
            away = four_bar(par, 0, q)[0] + par[6] - root
            assert abs(away - 2 * np.pi * np.round(away / (2 * np.pi))) < 1e-12


def test_a_loop_that_cannot_close_gives_nan_and_not_a_number_that_looks_right():
    assert np.isnan(four_bar(four_bar_parameters(FourBarGeometry(0.1, 0.02, 0.03, 0.12, 0.0)), 0, 2.5)[0])
    assert np.isnan(
        coupler_screw(coupler_parameters(CouplerGeometry(**(ANKLE | {"length": 0.005}), r_pc_f=[0, 0, 0])), 0, 0.3, 0.8)
    ).all()
    assert np.isnan(vergence_lever(vergence_parameters(VergenceGeometry(**VERGENCE)), 0, 2.0)[0])


def test_the_vergence_coupler_keeps_its_length_and_the_printed_transmission_is_wrong():
    par = vergence_parameters(VergenceGeometry(**VERGENCE))
    wrong = []
    for q in np.linspace(-0.2, 0.7, 40):
        phi = vergence_lever(par, 0, q)[0] + par[9]
        a = np.array([0.02, 0.02 * np.sin(phi), 0.02 * np.cos(phi)])
        b = np.array([0.05, 0, 0.06]) + turn([0, 1, 0], q / 2).apply([-0.03, 0, 0.004])
        assert np.linalg.norm(a - b) == pytest.approx(0.0632, abs=1e-14)
        g = np.cross([0, 0.5, 0], b - [0.05, 0, 0.06])
        s = (0.02 - b[0]) ** 2 + 0.02**2 - 0.0632**2 + b[2] ** 2
        below = 2 * 0.02 * b[2] ** 2 * np.sqrt(1 - (s / (2 * 0.02 * b[2])) ** 2)
        corrected = (2 * b[2] * (0.02 - b[0]) * g[0] + (s - 2 * b[2] ** 2) * g[2]) / below
        printed = (2 * b[2] * (0.02 - b[0]) * g[0] - s * g[2]) / below
        assert vergence_lever(par, 0, q)[1] == pytest.approx(corrected, rel=1e-10)
        wrong.append(abs(printed - corrected))
    assert max(wrong) > 0.05


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: linear_parameters(0.0), "ratio must not be zero"),
        (lambda: hinge_parameters([0, 0, 0.3], [0, 0, -0.05], [0, 0, 0]), "joint axis must not be zero"),
        (lambda: hinge_parameters([0, 0.3], [0, 0, -0.05], [0, 1, 0]), "r_b must be three numbers"),
        (lambda: four_bar_parameters(FourBarGeometry(0.1, -0.1, 0.1, 0.1, 0.0)), "the coupler must be above zero"),
        (lambda: four_bar_parameters(FourBarGeometry(0.1, 0.1, 0.1, 0.1, 0.0, 2)), "branch must be -1 or 1"),
        (lambda: coupler_parameters(CouplerGeometry(**ANKLE, r_pc_f=[0, 0, 0], branch=0)), "branch must be -1 or 1"),
        (lambda: vergence_parameters(VergenceGeometry(0.02, 0.02, 0.06, [0, 0.1, 0.06], [0, 0, 0])), "x-z plane"),
    ],
)
def test_bad_geometry_is_said_in_one_line(make, says):
    with pytest.raises(RobotError, match=says) as e:
        make()
    assert "\n" not in str(e.value)
