"""Live markers: seen ones pass unchanged, hidden ones are held and fade, wrong ones are not believed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from humanoid_control.mocap.live import MarkerTracks, TrackSettings

RATE = 100.0
DT = 1 / RATE
BODY = np.array(
    [[0.1, 0.12, 1.0], [0.1, -0.12, 1.0], [-0.1, 0.0, 1.02], [0, 0.2, 1.45], [0, -0.2, 1.45], [0.3, 0.3, 1.1]]
)
TRUNK = np.arange(5)
WRIST = 5


def tracks(**changes):
    return MarkerTracks(BODY, TRUNK, TrackSettings(**changes))


def moving(velocity, seconds):
    """The trunk at rest, the wrist at constant velocity."""
    t = np.arange(round(seconds * RATE)) * DT
    p = np.tile(BODY, (len(t), 1, 1))
    p[:, WRIST] += t[:, None] * np.asarray(velocity, float)
    return p


def run(t, frames):
    return np.array([t.update(p, DT).copy() for p in frames])


def test_seen_markers_pass_unchanged():
    frames = moving((1.0, 0.5, -0.3), 1.0) + 0.001 * np.random.default_rng(0).normal(size=(100, 6, 3))
    np.testing.assert_array_equal(run(tracks(), frames), frames)


@pytest.mark.parametrize("fade", [0.1, 0.3, 0.8])
def test_hidden_marker_goes_on_with_a_velocity_that_fades_to_zero(fade):
    frames = moving((1.0, 0.0, 0.0), 3.0)
    frames[100:, WRIST] = np.nan
    x = run(tracks(fade=fade), frames)[:, WRIST, 0]
    assert x[-1] - x[99] == pytest.approx(fade / 2, rel=0.05), "the area below the fading velocity"
    v = np.diff(x)[99:] * RATE
    assert v[0] == pytest.approx(1.0, abs=0.12) and (np.diff(v) <= 1e-9).all()
    assert v[round(fade * RATE) + 1 :] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("hidden", [[0], [3], [WRIST], [1, WRIST], [2, 4, WRIST]])
def test_hidden_markers_are_carried_along_with_the_trunk(hidden):
    """All markers on one rigid body that walks, turns and leans: what is hidden is where it must be."""
    t = np.arange(300) * DT
    R = Rotation.from_euler("zyx", np.stack([1.2 * t, 0.3 * np.sin(2 * t), 0.2 * np.sin(3 * t)], axis=1))
    truth = np.stack([R.apply(p) for p in BODY], axis=1) + np.stack([t, 0.3 * t, 0 * t], axis=1)[:, None]
    frames = truth.copy()
    frames[50:250, hidden] = np.nan
    shown = run(MarkerTracks(truth[0], TRUNK), frames)
    assert np.abs(shown - truth).max() < 1e-6


def test_a_marker_that_is_back_is_reached_at_a_bounded_speed_and_without_a_kick():
    frames = np.tile(BODY, (500, 1, 1))
    frames[200:, WRIST, 1] += 0.3
    frames[100:200, WRIST] = np.nan
    y = run(tracks(return_speed=0.5), frames)[:, WRIST, 1]
    v = np.diff(y) * RATE
    assert v.max() == pytest.approx(0.5, rel=0.05), "the peak of the move is the speed that was asked for"
    assert np.abs(np.diff(v)).max() * RATE < 10.0, "no kick"
    assert y[-1] == BODY[WRIST, 1] + 0.3


def test_return_while_the_marker_moves_on_ends_exactly_on_it():
    frames = moving((0.5, 0.0, 0.0), 5.0)
    frames[100:150, WRIST] = np.nan
    shown = run(tracks(), frames)
    np.testing.assert_array_equal(shown[-100:], frames[-100:])
    assert np.abs(np.diff(shown[:, WRIST], axis=0)).max() * RATE < 0.5 + 1.0 + 0.02, "its own speed and the return's"


def test_vanishing_again_during_the_return_does_not_jump():
    frames = np.tile(BODY, (400, 1, 1))
    frames[150:, WRIST, 2] += 0.4
    frames[100:150, WRIST] = frames[170:200, WRIST] = frames[205:260, WRIST] = np.nan
    shown = run(tracks(), frames)
    assert np.linalg.norm(np.diff(shown[:, WRIST], axis=0), axis=1).max() * RATE < 1.1


def test_a_jump_is_not_believed_until_it_stays():
    frames = np.tile(BODY, (300, 1, 1))
    frames[100:120, WRIST, 0] += 1.0
    assert np.abs(run(tracks(), frames)[:, WRIST] - BODY[WRIST]).max() < 1e-9, "away and back"
    frames[100:, WRIST, 0] = BODY[WRIST, 0] + 1.0
    x = run(tracks(jump_hold=0.5, return_speed=2.0), frames)[:, WRIST, 0] - BODY[WRIST, 0]
    assert np.abs(x[:148]).max() < 1e-9 and x[-1] == pytest.approx(1.0)
    assert np.diff(x).max() * RATE <= 2.0 * 1.05


def test_hidden_times_are_counted():
    t = tracks()
    gone = BODY.copy()
    gone[[0, WRIST]] = np.nan
    for _ in range(25):
        t.update(gone, DT)
    assert t.hidden == pytest.approx([0.25, 0, 0, 0, 0, 0.25])
    t.update(BODY, DT)
    assert (t.hidden == 0).all()


def test_two_trunk_markers_carry_without_turning_and_none_do_not_carry():
    for seen, shift in ((2, 0.1), (0, 0.0)):
        frames = np.tile(BODY, (11, 1, 1))
        frames[:, :, 0] += np.linspace(0, 0.1, 11)[:, None]
        frames[1:, seen:] = np.nan
        shown = run(tracks(), frames)
        assert shown[-1, WRIST] == pytest.approx(BODY[WRIST] + [shift, 0, 0], abs=1e-9)


number = st.one_of(st.floats(-3, 3), st.just(float("nan")), st.floats(allow_nan=True, allow_infinity=True))


@settings(max_examples=150)
@given(st.lists(st.tuples(st.lists(number, min_size=18, max_size=18), st.floats(-1, 3)), max_size=12))
def test_whatever_is_fed_the_paths_are_numbers(frames):
    t = tracks()
    for values, dt in frames:
        with np.errstate(all="ignore"):
            shown = t.update(np.array(values).reshape(6, 3), dt)
        assert np.isfinite(shown).all() and np.abs(shown).max() < 1e3
