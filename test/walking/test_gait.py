"""The walk: smooth feet, a centre of mass that is a pendulum's, and steps that repeat."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from humanoid_control.errors import ConfigError
from humanoid_control.walking.gait import GRAVITY, Gait, GaitSettings


def walk(**changes):
    return Gait(GaitSettings(**changes), 0.19, 0.9, (0.03, 0.0, 0.0))


def sampled(gait, h=1e-3):
    t = np.arange(0, 2 * gait.cycle, h)
    return t, [gait.at(x) for x in t]


@settings(max_examples=12)
@given(
    st.floats(-0.2, 0.6),
    st.floats(0.5, 1.5),
    st.floats(0.15, 0.5),
    st.floats(-0.2, 0.2),
    st.sampled_from([0, 0.3, -0.1]),
)
def test_the_center_of_mass_is_that_of_the_pendulum_and_moves_at_walking_speed(length, time, both, side, turn):
    gait = walk(step_length=length, step_time=time, double_support=both, side_step=side, turn=turn)
    t, points = sampled(gait, 5e-3)
    c, a, p = (np.array([getattr(x, k) for x in points])[:, :2] for k in ("center", "acceleration", "zmp"))
    bend = (c[2:] - 2 * c[1:-1] + c[:-2]) / (t[1] - t[0]) ** 2
    assert np.abs(bend - a[1:-1]).max() < 0.02 + 0.02 * np.abs(a).max()
    assert np.abs(a - GRAVITY / gait.height * (c - p)).max() < 5e-3
    cycle = round(gait.cycle / (t[1] - t[0]))
    moved = gait.at(gait.cycle).center - gait.at(0.0).center
    assert cycle > 0
    if turn == 0:
        assert np.allclose(moved, [2 * length, 2 * side, 0], atol=1e-12)


@settings(max_examples=12)
@given(st.floats(-0.1, 0.5), st.floats(-0.15, 0.15), st.sampled_from([0.0, 0.2, -0.4]), st.floats(0, 3))
def test_each_cycle_is_the_one_before_moved_and_turned(length, side, turn, t):
    """Forward, sideways and in a curve: where the feet stand tells how the robot has moved, and all else goes along."""
    gait = walk(step_length=length, side_step=side, turn=turn)
    a, b = gait.at(t), gait.at(t + gait.cycle)
    R = np.array([[np.cos(2 * turn), -np.sin(2 * turn)], [np.sin(2 * turn), np.cos(2 * turn)]])
    shift = b.soles[0, :2] - R @ a.soles[0, :2]
    for before, after in ((a.soles[1, :2], b.soles[1, :2]), (a.center[:2], b.center[:2]), (a.zmp, b.zmp)):
        assert np.allclose(after, R @ before + shift, atol=1e-9)
    assert np.allclose(b.headings - a.headings, 2 * turn)
    assert np.allclose(b.acceleration[:2], R @ a.acceleration[:2], atol=1e-9)


@pytest.mark.parametrize(("side", "turn"), [(0.12, 0.0), (-0.12, 0.0), (0.0, 0.3), (0.0, -0.3)])
def test_soles_side_by_side_never_come_nearer_than_the_stance(side, turn):
    gait = walk(step_length=0.0 if side else 0.2, side_step=side, turn=turn)
    aside = []
    for t in np.arange(0, gait.cycle, 0.01):
        p = gait.at(t)
        ahead = np.array([-np.sin(p.headings[2]), np.cos(p.headings[2])])
        aside.append((p.soles[0] - p.soles[1])[:2] @ ahead)
        assert np.abs(p.headings[:2] - p.headings[2]).max() <= abs(turn) + 1e-12
    assert min(aside) > 0.19 - 0.01 - 0.2 * abs(turn)
    if side:
        assert max(aside) == pytest.approx(0.19 + 2 * abs(side), abs=1e-6)


def test_the_pendulum_integrated_numerically_goes_the_same_way():
    """An integrator that knows only the zero-moment point, over one step: the unstable pendulum lets no error pass."""
    gait = walk()
    start, eps = gait.at(0.0), 1e-6
    speed = (gait.at(eps).center - gait.at(-eps).center)[:2] / (2 * eps)
    w2 = GRAVITY / gait.height
    found = solve_ivp(
        lambda t, s: [*s[2:], *(w2 * (s[:2] - gait.zmp(t)))],
        (0.0, gait.settings.step_time),
        [*start.center[:2], *speed],
        max_step=1e-3,
        rtol=1e-10,
    )
    assert np.abs(found.y[:2, -1] - gait.at(gait.settings.step_time).center[:2]).max() < 1e-3


def test_feet_stand_or_swing_and_never_jump():
    gait = walk()
    t, points = sampled(gait)
    h = t[1] - t[0]
    soles = np.array([p.soles for p in points])
    speed = np.diff(soles, axis=0) / h
    acceleration = np.diff(speed, axis=0) / h
    assert np.abs(speed).max() < 3.0 and np.abs(np.diff(acceleration, axis=0)).max() < 2.5
    for k, p in enumerate(points[1:-1], 1):
        standing = {"left": [0], "right": [1], "both": [0, 1]}[p.support]
        assert all(np.allclose(speed[k - 1 : k + 1, s], 0, atol=2e-2) and soles[k, s, 2] < 1e-4 for s in standing)
    assert soles[..., 2].max() == pytest.approx(gait.settings.lift, abs=1e-4) and soles[..., 2].min() >= 0
    assert np.allclose(soles[:, 0, 1], 0.095) and np.allclose(soles[:, 1, 1], -0.095)


def test_left_and_right_are_mirror_images_half_a_cycle_apart():
    gait = walk()
    for t in np.linspace(0, gait.cycle, 17):
        a, b = gait.at(t), gait.at(t + gait.settings.step_time)
        shift = np.array([gait.settings.step_length, 0, 0])
        assert np.allclose(b.soles[::-1] * [1, -1, 1], a.soles + shift, atol=1e-9)
        assert np.allclose(b.center * [1, -1, 1], a.center + shift, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step_time": 0.0}, "step_time must be positive"),
        ({"double_support": 1.0}, "between 0 and 1"),
        ({"step_length": float("nan")}, "not a valid step size"),
        ({"lift": -0.1}, "not a valid step size"),
        ({"side_step": float("inf")}, "not a valid step size"),
        ({"turn": 1.2}, "less than 1 rad"),
    ],
)
def test_impossible_steps_are_refused(change, words):
    with pytest.raises(ConfigError, match=words):
        GaitSettings(**change)
