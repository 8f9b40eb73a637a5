"""Whatever is fed as live markers, targets are numbers, never jump, and the calibration never breaks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.retargeting.live import LiveSettings, LiveTargets
from test.imitation.live_play import DANCE, ROBOT, play

label = st.sampled_from([*DANCE.labels, "LASI", "nobody", ""])
coordinate = st.one_of(st.floats(-3, 3), st.floats(allow_nan=True, allow_infinity=True), st.just(0.0))
frame = st.tuples(
    st.lists(st.tuples(label, st.tuples(coordinate, coordinate, coordinate)), max_size=20),
    st.one_of(st.floats(-0.05, 0.3), st.floats(0, 100)),
    st.sampled_from(["frame", "frame", "hold", "real", "pause", "play"]),
)


@settings(max_examples=40)
@given(st.lists(frame, max_size=25))
def test_whatever_is_fed_no_target_jumps_and_none_is_not_a_number(frames):
    live, _ = play(DANCE, frames=range(120))
    now, last, before = 120 / DANCE.rate, 119 / DANCE.rate, live.targets
    for markers, dt, what in frames:
        now = max(now, now + dt)
        if what in ("pause", "play"):
            live.playing = what == "play"
        if what == "hold":
            live.hold(now)
        elif what == "real":
            live.frame(DANCE.labels, DANCE.positions[120 + int(1000 * now) % 400], now)
        else:
            live.frame([name for name, _ in markers], np.array([p for _, p in markers]).reshape(-1, 3), now)
        assert np.isfinite(live.targets).all()
        step = np.linalg.norm(live.targets - before, axis=1).max()
        assert step <= live.settings.max_speed * min(now - last, 0.1) + 1e-9
        if step > 0:
            last = now
        before = live.targets
        assert all(isinstance(text, str) and text for text in live.problems.values())


def test_a_frame_older_than_the_moment_it_was_missed_gives_no_extra_speed():
    """What is sent never goes back in time, so a target may only use the time since the latest moment."""
    live, _ = play(DANCE, frames=range(120))
    now = 120 / DANCE.rate
    far = DANCE.positions[120] + [3.0, 0.0, 0.0]
    live.hold(now + 0.08)
    held = live.targets.copy()
    live.frame(DANCE.labels, far, now + 0.02)
    assert np.abs(live.targets - held).max() < 1e-12, "no time has passed"
    live.frame(DANCE.labels, far, now + 0.09)
    step = np.linalg.norm(live.targets - held, axis=1).max()
    assert 0.001 < step <= live.settings.max_speed * 0.01 + 1e-9


@settings(max_examples=40)
@given(st.lists(frame, max_size=25))
def test_whatever_is_fed_the_calibration_never_breaks(frames):
    live, now = LiveTargets(ROBOT, LiveSettings(calibration=0.5)), 0.0
    for markers, dt, _ in frames:
        now += dt
        targets = live.frame([n for n, _ in markers], np.array([p for _, p in markers]).reshape(-1, 3), now)
        assert targets is None or np.isfinite(targets).all()


def test_shapes_that_disagree_are_passed_over():
    live, _ = play(DANCE, frames=range(100))
    held = live.targets.copy()
    live.frame(DANCE.labels, np.zeros((3, 3)), 2.5)
    live.frame([], np.zeros((0, 3)), 2.6)
    assert np.isfinite(live.targets).all() and live.targets == pytest.approx(held, abs=0.2)
