"""Playing a clip: nothing ever jumps, and time does what it is told."""

import numpy as np
import pytest

from humanoid_control.retargeting import Targets
from humanoid_control.retargeting.player import ClipPlayer, Figure

RATE, T = 50.0, 101


def targets():
    t = np.arange(T) / RATE
    p = np.zeros((T, 7, 3))
    p[:, :, 0] = 0.3 * np.sin(2 * np.pi * 0.4 * t)[:, None] + 0.2 * t[:, None]
    body = np.zeros((T, 4, 3))
    body[:, :, 2] = [1.0, 1.0, 0.05, 0.06]
    body[:, 0, 1], body[:, 1, 1] = 0.1, -0.1
    return Targets("test", RATE, p, body, ("l_hip", "r_hip", "l_ankle", "l_toe"))


def test_lead_in_begins_at_rest_and_ends_in_the_clip():
    rest = np.full((7, 3), 0.5)
    player = ClipPlayer(targets(), rest, lead_in=1.0)
    assert np.array_equal(player.points(), rest)
    player.advance(1.0)
    assert np.allclose(player.points(), targets().positions[0])
    assert player.time == 0.0


def test_no_jump_through_lead_in_loop_seek_and_pause():
    player, dt = ClipPlayer(targets(), np.full((7, 3), 0.4), lead_in=0.8), 0.01
    before, biggest = player.points(), 0.0
    for k in range(1200):
        if k == 300:
            player.seek(1.7)
        if k == 500:
            player.playing = False
        if k == 520:
            player.playing = True
        player.advance(dt)
        biggest = max(biggest, np.abs(player.points() - before).max())
        before = player.points()
    assert biggest < 3.0 * dt, "faster than 3 m/s is a jump here"


def test_speed_and_end():
    player = ClipPlayer(targets(), np.zeros((7, 3)), lead_in=0.0, loop=False, speed=2.0)
    player.advance(0.0)
    for _ in range(100):
        player.advance(0.01)
    assert player.time == pytest.approx(2.0 - 0.02, abs=0.021)
    player.advance(1.0)
    assert player.finished and player.time == player.duration
    assert np.allclose(player.points(), targets().positions[-1])


def test_seek_stays_inside_the_clip():
    player = ClipPlayer(targets(), np.zeros((7, 3)))
    for wanted in (-5.0, 99.0, float("inf"), float("nan")):
        player.seek(wanted)
        assert 0 <= player.time <= player.duration
    assert np.isfinite(player.points()).all()


def test_figure_stands_on_the_floor_beside_the_robot():
    figure = Figure(targets(), left=1.2)
    segments = figure.segments(targets().body[0])
    assert segments.shape == (4, 3)  # the hip line, and ankle to toe
    assert segments[:, 1].mean() == pytest.approx(1.2, abs=0.1)
    assert 0 <= segments[:, 2].min() < 0.06
    hidden = targets().body[0].copy()
    hidden[2] = np.nan
    assert len(figure.segments(hidden)) == 2, "a bone with a missing end is left out"
