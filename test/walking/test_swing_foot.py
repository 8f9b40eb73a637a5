"""The path of a swinging sole: at rest at both ends, clear of the ground, smooth, the same in every heading."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.walking.plane_geometry import planar_exp
from humanoid_control.walking.swing_foot import STILL, Cruise, SwingPath

A = pin.SE3(pin.exp3(np.array([0, 0.05, 0.1])), np.array([0.1, 0.2, 0.0]))
poses = st.tuples(*[st.floats(-0.5, 0.5)] * 2, st.floats(-0.2, 0.2), *[st.floats(-0.3, 0.3)] * 3).map(
    lambda x: pin.SE3(pin.exp3(np.array(x[3:])), np.array(x[:3]))
)
U = np.linspace(0, 1, 401)


def places(path):
    return np.array([path.at(u).translation for u in U])


@settings(max_examples=30)
@given(poses, st.floats(0.02, 0.2))
def test_it_begins_and_ends_at_rest_where_it_must(end, lift):
    path = SwingPath.between(A, end, 0.0, 1.0, lift)
    assert np.allclose(path.at(0).homogeneous, A.homogeneous)
    assert np.allclose(path.at(1).homogeneous, end.homogeneous)
    assert np.allclose(path.at(-1).homogeneous, A.homogeneous)
    assert np.allclose(path.at(2).homogeneous, end.homogeneous, atol=1e-12)
    h = 1e-4
    for u, v in ((0.0, h), (1.0 - h, 1.0)):
        X = path.at(u).actInv(path.at(v))
        assert np.linalg.norm(pin.log6(X).vector) / h < 1e-4  # speed, and nearly acceleration


@settings(max_examples=30)
@given(poses, st.floats(0.02, 0.2))
def test_it_rises_to_the_lift_above_the_higher_end_and_falls(end, lift):
    z = places(SwingPath.between(A, end, 0.0, 1.0, lift))[:, 2]
    assert z.max() == pytest.approx(max(A.translation[2], end.translation[2]) + lift)
    assert np.argmax(z) == 200
    assert (np.diff(z[:201]) >= -1e-12).all()
    assert (np.diff(z[200:]) <= 1e-12).all()
    assert z.min() >= min(A.translation[2], end.translation[2]) - 1e-12


def test_it_moves_straight_and_only_between_the_first_and_the_last_twentieth():
    end = pin.SE3(pin.exp3(np.array([0, 0, 0.4])), np.array([0.5, 0.25, 0.0]))
    path = SwingPath.between(A, end, 0.0, 1.0, 0.06)
    p = places(path)
    assert np.abs(p[U <= STILL, :2] - A.translation[:2]).max() < 1e-12
    assert np.abs(p[U >= 1 - STILL, :2] - end.translation[:2]).max() < 1e-12
    d = (end.translation - A.translation)[:2]
    off = p[:, :2] - A.translation[:2]
    assert np.abs(off @ [d[1], -d[0]]).max() < 1e-12
    assert (np.diff(off @ d) >= -1e-12).all()
    assert p[200, :2] == pytest.approx(A.translation[:2] + d / 2)
    for u in (0.3, 0.5, 0.8):  # it turns about one axis, as far as it has gone
        done = np.linalg.norm(pin.log3(A.rotation.T @ path.at(u).rotation))
        whole = np.linalg.norm(pin.log3(A.rotation.T @ end.rotation))
        gone = np.linalg.norm(path.at(u).translation[:2] - A.translation[:2]) / np.linalg.norm(d)
        assert done / whole == pytest.approx(gone)


def test_speed_and_acceleration_have_no_jump():
    p = places(SwingPath.between(A, pin.SE3(np.eye(3), np.array([0.7, 0.1, 0.05])), 0.0, 1.0, 0.06))
    h = U[1] - U[0]
    v, a = np.diff(p, axis=0) / h, np.diff(p, 2, axis=0) / h**2
    assert np.abs(np.diff(v, axis=0)).max() < 0.05
    assert np.abs(np.diff(a, axis=0)).max() < 1.0  # of some 10 at its greatest
    assert np.linalg.norm(v, axis=1).max() < 1.875 / (1 - 2 * STILL) * 0.62 * 1.05


@settings(max_examples=20)
@given(poses, st.floats(-3, 3), st.floats(-9, 9), st.floats(-9, 9), st.floats(0, 1))
def test_the_same_path_wherever_the_world_begins(end, turn, x, y, u):
    X = planar_exp([x, y, turn])
    here, there = (
        SwingPath.between(A, end, 0.0, 1.0, 0.06).at(u),
        SwingPath.between(X * A, X * end, 0.0, 1.0, 0.06).at(u),
    )
    assert np.allclose((X * here).homogeneous, there.homogeneous, atol=1e-9)


@settings(max_examples=25)
@given(poses, poses, st.floats(0.05, 0.9), st.floats(-0.3, 0.4))
def test_a_change_on_the_way_goes_on_from_where_the_foot_is(end, other, u, later):
    """Place, speed and acceleration have no jump; it lands at rest, at its new place and time."""
    D = 0.7
    t, land = 2.0 + u * D, max(2.0 + D + later, 2.0 + u * D + 0.1)
    path = SwingPath.between(A, end, 2.0, 2.0 + D, 0.06)
    new = path.changed(t, other, land)
    if new is path:
        return
    h = 1e-5
    for before, after in ((path, new),):
        assert np.allclose(before.at(t).homogeneous, after.at(t).homogeneous, atol=1e-9)
        v = (before.at(t).translation - before.at(t - h).translation) / h
        w = (after.at(t + h).translation - after.at(t).translation) / h
        assert np.allclose(v, w, atol=2e-2)
    assert np.allclose(new.at(land).homogeneous, other.homogeneous, atol=1e-9)
    assert np.linalg.norm(new.at(land).translation - new.at(land - 1e-4).translation) / 1e-4 < 1e-3
    p = np.array([new.at(s).translation for s in np.linspace(2.0, land, 300)])
    assert np.isfinite(p).all()
    assert p[:, 2].min() > min(A.translation[2], end.translation[2], other.translation[2]) - 0.05


def test_an_even_swing_begins_and_ends_at_rest_and_is_hardly_quicker_than_its_mean():
    way = Cruise(2.0, 3.0, np.array([1.0, 0.0]), np.array([1.5, -0.2]), (0.25, 0.35))
    t = np.linspace(2.0, 3.0, 2001)
    x, v, a = (np.array(rows) for rows in zip(*(way.state(u) for u in t), strict=True))
    assert np.array([x[0], x[-1]]).ravel() == pytest.approx([1.0, 0.0, 1.5, -0.2], abs=1e-12)
    assert np.abs([v[0], v[-1], a[0], a[-1]]).max() < 1e-12
    assert np.gradient(x, t, axis=0)[1:-1] == pytest.approx(v[1:-1], abs=1e-5)
    assert np.gradient(v, t, axis=0)[1:-1] == pytest.approx(a[1:-1], abs=2e-2)
    assert v[:, 0].max() == pytest.approx(0.5 / 0.7)
    assert np.array([way.at(u) for u in t]) == pytest.approx(x)


@pytest.mark.parametrize("ever_later", [0.0, 0.001])
def test_changes_in_every_tick_leave_it_the_whole_second_half_to_come_down(ever_later):
    """As after a push, when the foothold goes on to move while the foot is on its way."""
    dt, land = 0.004, 0.4
    end = pin.SE3(np.eye(3), np.array([0.3, 0.1, 0.0]))
    path = once = SwingPath.between(A, end, 0.0, land, 0.06)
    z = []
    for k in range(round(1.2 * land / dt)):
        t = k * dt
        if 0.1 < path.phase(t) < 0.9:
            land += ever_later
            path = path.changed(t, pin.SE3(np.eye(3), np.array([0.3, 0.1 + 0.5 * t, 0.0])), land)
        z.append(path.at(t).translation[2])
    usual = np.diff([once.at(k * dt).translation[2] for k in range(100)]).min()
    assert np.diff(z).min() > 1.15 * usual
    assert max(z) == pytest.approx(0.06, abs=0.003)
    assert path.at(path.land).translation[2] == pytest.approx(0.0)
