"""Live markers as targets where all is seen: the clip's own; before the calibration none, and it is said."""

from __future__ import annotations

import time

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import POINTS, scale_to_robot
from humanoid_control.retargeting.live import LiveSettings, LiveTargets
from test.imitation.live_play import DANCE, QUICK, ROBOT, clear, error, offline, play, speed

CLIPS = ["dance", "dance_markers/dance1.trc", "vicon_c3d/shd01.c3d", "cmu_bvh/05_02.bvh", "cmu_asf/11_01.amc"]


@pytest.mark.parametrize("relative", CLIPS)
@pytest.mark.parametrize("upright", [True, False])
def test_live_and_offline_agree_where_nothing_is_hidden(relative, upright, mocap):
    """With the same calibration to rounding; a file's own calibration, over all of it, differs by some centimetres."""
    clip = load_clip(relative if relative == "dance" else mocap(relative))
    seconds = min(2.0, clip.duration / 3)
    live, ours = play(clip, calibration=seconds, upright=upright, max_speed=20.0)
    assert live.calibrated and not live.problems
    led = np.flatnonzero(np.isfinite(ours[:, 0, 0]))[0] + round(0.25 * clip.rate)
    assert error(ours[led:], offline(clip, seconds, upright)[led:]).max() < 1e-9
    whole = error(ours[led:], scale_to_robot(find_body_points(clip), ROBOT, upright).positions[led:])
    assert np.median(whole) < 0.03


def test_no_targets_before_the_calibration_and_its_progress_is_said():
    live, out = play(DANCE, frames=range(40))
    assert live.targets is None and np.isnan(out[:40]).all() and not live.calibrated
    assert "stand upright: 0.8 of 1 s" in live.problems["calibration"]
    live, out = play(DANCE, frames=range(70))
    assert live.calibrated and np.isfinite(out[69]).all() and not live.problems


def test_missing_arms_are_named_and_there_are_no_targets():
    labels = [label for label in DANCE.labels if not label.startswith(("Elbow", "Wrist"))]
    arms = [k for k, label in enumerate(DANCE.labels) if label in labels]
    live, out = play(DANCE, change=lambda k, p: p[arms], labels=labels)
    assert np.isnan(out).all()
    for label in ("Elbow_L", "Wrist_L", "Elbow_R", "Wrist_R"):
        assert label in live.problems["calibration"]
    live, _ = play(DANCE, change=lambda k, p: None)
    assert "no markers" in live.problems["calibration"]


def test_the_lead_in_begins_where_the_robot_is_and_does_not_jump():
    start = ROBOT.point_positions(ROBOT.q("neutral"), POINTS)
    _, out = play(DANCE, lead_in=1.5)
    first = np.flatnonzero(np.isfinite(out[:, 0, 0]))[0]
    assert out[first] == pytest.approx(start)
    assert speed(out[first:], DANCE.rate).max() < 6.0 + 1e-9


def test_where_the_laboratory_has_its_axes_does_not_matter():
    """y up, turned, a kilometre... well, fifty metres away."""
    R = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [0.8, -0.6, 0.0]])
    _, out = play(DANCE, change=lambda k, p: p @ R.T + [50.0, 0.0, -20.0])
    assert error(out, clear())[60:].max() < 1e-9
    _, told = play(DANCE, change=lambda k, p: p @ R.T, up="+y")
    assert error(told, clear())[60:].max() < 1e-9


def test_pause_holds_and_play_moves_over():
    live, _ = play(DANCE, frames=range(300))
    held = live.targets.copy()
    live.playing = False
    _, out = play(DANCE, live=live, frames=range(300, 400))
    assert out[300:400] == pytest.approx(np.tile(held, (100, 1, 1)))
    live.playing = True
    _, out = play(DANCE, live=live, frames=range(400, DANCE.n_frames))
    assert speed(np.concatenate([held[None], out[400:]]), DANCE.rate).max() < 6.0 + 1e-9
    assert error(out, clear())[-50:].max() < 1e-9


def test_calibrating_again_keeps_the_targets_meanwhile():
    live, _ = play(DANCE, frames=range(200))
    held = live.targets.copy()
    live.calibrate()
    assert not live.calibrated
    _, out = play(DANCE, live=live, frames=range(200, 245))
    assert out[200:245] == pytest.approx(np.tile(held, (45, 1, 1)))
    _, out = play(DANCE, live=live, frames=range(245, 400))
    assert live.calibrated and speed(np.concatenate([held[None], out[245:400]]), DANCE.rate).max() < 6.0 + 1e-9


def test_a_frame_takes_less_than_two_milliseconds(mocap):
    """28 markers; nothing is buffered, so this is all that is added."""
    clip = load_clip(mocap("dance_markers/dance1.trc")).crop(0, 8)
    live = LiveTargets(ROBOT, LiveSettings(**QUICK))
    took = []
    for k in range(clip.n_frames):
        begin = time.perf_counter()
        live.frame(clip.labels, clip.positions[k], k / clip.rate)
        took.append(time.perf_counter() - begin)
    assert np.quantile(took[150:], 0.25) < 2e-3, "other work on the machine disturbs the upper quantiles"


def test_settings_are_checked():
    with pytest.raises(UnknownNameError, match="axis"):
        LiveSettings(up="north")
    with pytest.raises(ConfigError, match="max_speed"):
        LiveSettings(max_speed=0.0)
    with pytest.raises(ConfigError, match="lead_in"):
        LiveSettings(lead_in=float("nan"))
