"""Live targets: the clip's own while all is seen; hidden or wrong markers are held, faded, said, and never jump."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.mocap import find_body_points, load_clip, synthetic_dance
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.retargeting import POINTS, scale_to_robot
from humanoid_control.retargeting.live import LiveSettings, LiveTargets
from humanoid_control.retargeting.scaling import Scaler
from humanoid_control.robots import load_robot

ROBOT = load_robot("hrp2", "fixed")
DANCE = synthetic_dance(duration=24, rate=50).crop(0, 9)
QUICK = {"calibration": 1.0, "lead_in": 0.2}


def play(clip, change=None, labels=None, live=None, frames=None, **options):
    """Feed a clip frame by frame; the object, and the targets (T, 7, 3), NaN where there were none."""
    live = live or LiveTargets(ROBOT, LiveSettings(**{**QUICK, **options}))
    out = np.full((clip.n_frames, len(POINTS), 3), np.nan)
    for k in frames if frames is not None else range(clip.n_frames):
        positions = np.array(clip.positions[k])
        if change is not None:
            positions = change(k, positions)
        now = k / clip.rate
        if positions is None:
            for tick in range(2):
                live.hold(now + tick * 0.5 / clip.rate)
            targets = live.targets
        else:
            targets = live.frame(labels or clip.labels, positions, now)
        if targets is not None:
            out[k] = targets
    return live, out


@cache
def clear():
    """The targets (T, 7, 3) of the dance with every marker seen, played once for all tests."""
    out = play(DANCE)[1]
    out.flags.writeable = False
    return out


def offline(clip, seconds=None, upright=True):
    """The clip's targets; calibrated over its first seconds, as live markers are, or over the whole."""
    body = find_body_points(clip)
    n = body.n_frames if seconds is None else round(seconds * clip.rate) + 1
    first = BodyPoints(body.name, body.rate, body.names, body.positions[:n].copy(), body.missing.copy())
    return Scaler(first, ROBOT, upright).targets(body).positions


def speed(targets, rate):
    """(T - 1,) of the fastest target [m/s]."""
    return np.linalg.norm(np.diff(targets, axis=0), axis=2).max(axis=1) * rate


def error(a, b):
    """(T,) of the worst target [m]."""
    return np.linalg.norm(a - b, axis=2).max(axis=1)


def delayed(clip, delay, tick=0.004):
    """The targets of a clip whose frames come late by a time `delay(t)` [s], with a node's ticks between them."""
    live, out = LiveTargets(ROBOT, LiveSettings(**QUICK)), np.full((clip.n_frames, len(POINTS), 3), np.nan)
    stamps = np.arange(clip.n_frames) / clip.rate
    arrivals = np.maximum.accumulate(stamps + np.vectorize(delay)(stamps))
    k = 0
    for now in np.arange(0.0, arrivals[-1] + tick, tick):
        came = k
        while k < clip.n_frames and arrivals[k] <= now:
            targets = live.frame(clip.labels, clip.positions[k], stamps[k], arrivals[k])
            k += 1
            if targets is not None:
                out[k - 1] = targets
        if came == k:
            live.hold(now)
    return live, out


@pytest.mark.parametrize("late", [0.04, 0.15])
def test_frames_that_come_late_for_a_while_are_not_taken_for_hidden_markers(late):
    """As over a wireless network that is busy: each frame was given up before it came, its markers drifted away."""
    live, out = delayed(DANCE, lambda t: 0.002 if t < 4 else late)
    ideal, after = clear(), round(5.5 * DANCE.rate)
    assert error(out, ideal)[after:].max() < 1e-6 and not live.problems
    assert np.nanmax(error(out, ideal)) < 0.3, "nor is the first of them far off"


def test_a_frame_that_was_given_up_counts_when_it_comes():
    """A stall of 0.3 s, after which all frames come at once: they are on the path that they always were on."""
    live, out = delayed(DANCE, lambda t: max(0.0, 5.3 - t) if 5.0 <= t < 5.3 else 0.0)
    ideal = clear()
    stall, rate = round(5.3 * DANCE.rate), DANCE.rate
    assert error(out, ideal)[stall + round(0.5 * rate) :].max() < 1e-3 and not live.problems


def hide(labels, first, last, clip=DANCE):
    columns = [clip.index(label) for label in labels]

    def change(k, positions):
        if first <= k < last:
            positions[columns] = np.nan
        return positions

    return change


CLIPS = ["dance_markers/dance1.trc", "cmu_bvh/05_02.bvh", "cmu_asf/11_01.amc"]  # markers, two kinds of joints


@pytest.mark.parametrize(("upright", "relative"), [*((True, clip) for clip in CLIPS), (False, "dance")])
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
    _, out = play(DANCE, live=live, frames=range(300, 350))
    assert out[300:350] == pytest.approx(np.tile(held, (50, 1, 1)))
    live.playing = True
    _, out = play(DANCE, live=live, frames=range(350, DANCE.n_frames))
    assert speed(np.concatenate([held[None], out[350:]]), DANCE.rate).max() < 6.0 + 1e-9
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


def test_the_rate_at_which_frames_come_is_told_and_a_pause_does_not_count():
    live, _ = play(DANCE, frames=range(100))
    assert live.frame_rate == pytest.approx(50.0, rel=1e-3)
    play(DANCE, live=live, frames=range(200, 260))  # two seconds later
    assert live.frame_rate == pytest.approx(50.0, rel=1e-3)


def test_a_frame_takes_less_than_two_milliseconds(mocap):
    """28 markers; nothing is buffered, so this is all that is added. Once in three: other work disturbs the caches."""
    clip = load_clip(mocap("dance_markers/dance1.trc")).crop(0, 8)

    def quarter():
        live, took = LiveTargets(ROBOT, LiveSettings(**QUICK)), []
        for k in range(clip.n_frames):
            begin = time.thread_time()
            live.frame(clip.labels, clip.positions[k], k / clip.rate)
            took.append(time.thread_time() - begin)
        return float(np.quantile(took[150:], 0.25))

    assert any(quarter() < 2e-3 for _ in range(3))


def test_settings_are_checked():
    with pytest.raises(UnknownNameError, match="axis"):
        LiveSettings(up="north")
    with pytest.raises(ConfigError, match="max_speed"):
        LiveSettings(max_speed=0.0)
    with pytest.raises(ConfigError, match="lead_in"):
        LiveSettings(lead_in=float("nan"))


@pytest.mark.parametrize("side", "LR")
def test_a_hidden_wrist_fades_is_said_and_comes_back_smoothly(side):
    """Half a second in the liveliest part, without and with it."""
    seen = clear()
    worst = 250 + int(np.argmax(speed(seen[250:350], DANCE.rate)))
    live = LiveTargets(ROBOT, LiveSettings(**QUICK))
    change = hide([f"Wrist_{side}"], worst, worst + 25)
    _, out = play(DANCE, change, live=live, frames=range(worst + 25))
    assert f"{side.lower()}_wrist (Wrist_{side})" in live.problems["hidden"]
    _, rest = play(DANCE, change, live=live, frames=range(worst + 25, DANCE.n_frames))
    out[worst + 25 :] = rest[worst + 25 :]
    assert not live.problems
    assert speed(out[80:], DANCE.rate).max() < speed(seen[80:], DANCE.rate).max() + 1.5
    others = [k for k, name in enumerate(POINTS) if name != f"{side.lower()}_wrist"]
    assert np.abs(out - seen)[80:, others].max() < 1e-9, "only what hangs on the marker is held"
    assert error(out, seen)[-50:].max() < 1e-9, "and it is reached again exactly"


@cache
def real_dance(path):
    """A clip and its targets with every marker seen."""
    clip = load_clip(path).crop(0, 11)
    return clip, play(clip)[1]


@pytest.mark.parametrize("label", ["Hip_FL", "Shoulder_L"])
def test_a_trunk_marker_hidden_for_two_seconds_hardly_matters(label, mocap):
    """It is carried along with the others of the trunk: on the real dance the targets stay within 8 cm."""
    clip, seen = real_dance(mocap("dance_markers/dance1.trc"))
    columns = clip.index(label)

    def change(k, positions):
        if 400 <= k < 520:
            positions[columns] = np.nan
        return positions

    _, out = play(clip, change)
    e = error(out, seen)
    assert 1e-4 < e[400:].max() < 0.08
    assert e[-60:].max() < 1e-9
    assert speed(out[120:], clip.rate).max() < speed(seen[120:], clip.rate).max() + 1.0


@pytest.mark.parametrize("how", ["no frames", "all hidden", "other labels", "zeros", "not a number"])
def test_silence_holds_the_posture_says_so_and_recovers_by_itself(how):
    names = [f"x{k}" for k in range(len(DANCE.labels))]

    def change(k, positions):
        if not 220 <= k < 300:
            return positions
        if how == "no frames":
            return None
        return positions if how == "other labels" else np.full_like(positions, 0.0 if how == "zeros" else np.nan)

    live, out = LiveTargets(ROBOT, LiveSettings(**QUICK)), np.empty((DANCE.n_frames, 7, 3))
    said = []
    for k in range(DANCE.n_frames):
        labels = names if how == "other labels" and 220 <= k < 300 else DANCE.labels
        _, one = play(DANCE, change, labels, live, frames=[k])
        out[k] = one[k]
        said.append(live.problems.get("silence", ""))
    assert "the last good posture is held" in said[299] and not any(said[:240]) and not said[-1]
    assert speed(out[260:300], DANCE.rate).max() < 1e-9, "at rest once the velocity has faded"
    assert speed(out[80:], DANCE.rate).max() < speed(clear()[80:], DANCE.rate).max() + 2.5
    assert error(out, clear())[-50:].max() < 1e-9


def test_a_marker_that_jumps_by_a_metre_and_back_counts_as_hidden():
    column = DANCE.index("Wrist_L")

    def change(k, positions):
        if 300 <= k < 308:
            positions[column] += [0.8, -0.6, 0.0]
        return positions

    jumped, hidden = play(DANCE, change)[1], play(DANCE, hide(["Wrist_L"], 300, 308))[1]
    assert error(jumped, hidden)[80:].max() < 1e-9
    assert error(jumped, clear())[-90:].max() < 1e-9


def test_exchanged_labels_never_jump_and_mixed_up_segments_are_held_and_said():
    a, b = DANCE.index("Elbow_L"), DANCE.index("Wrist_L")
    swap = list(DANCE.labels)
    swap[a], swap[b] = swap[b], swap[a]
    live = LiveTargets(ROBOT, LiveSettings(**QUICK))
    _, before = play(DANCE, live=live, frames=range(300))
    _, after = play(DANCE, labels=swap, live=live, frames=range(300, 450))
    out = np.concatenate([before[80:300], after[300:450]])
    assert np.isfinite(out).all() and speed(out, DANCE.rate).max() < 6.0 + 1e-9
    far = DANCE.index("Toe_L") if "Toe_L" in DANCE.labels else DANCE.index("Foot_L")
    foot = list(DANCE.labels)
    foot[far], foot[b] = foot[b], foot[far]
    live, _ = play(DANCE, frames=range(300))
    _, after = play(DANCE, labels=foot, live=live, frames=range(300, 400))
    assert "lower arm" in live.problems["segments"] or "Wrist_L" in live.problems.get("hidden", "")
    assert speed(after[300:400], DANCE.rate).max() < 6.0 + 1e-9


def test_a_label_that_occurs_twice_is_held_and_said():
    labels = ["Wrist_L" if label == "Foot_L" else label for label in DANCE.labels]
    live, _ = play(DANCE, frames=range(200))
    play(DANCE, labels=labels, live=live, frames=range(200, 240))
    assert "Wrist_L is duplicate" in live.problems["labels"]
    play(DANCE, live=live, frames=range(240, 300))
    assert not live.problems


label = st.sampled_from([*DANCE.labels, "LASI", "nobody", ""])
coordinate = st.one_of(st.floats(-3, 3), st.floats(allow_nan=True, allow_infinity=True), st.just(0.0))
frame = st.tuples(
    st.lists(st.tuples(label, st.tuples(coordinate, coordinate, coordinate)), max_size=20),
    st.one_of(st.floats(-0.05, 0.3), st.floats(0, 100)),
    st.sampled_from(["frame", "frame", "hold", "real", "pause", "play"]),
)


@settings(max_examples=20)
@given(st.lists(frame, max_size=25))
def test_whatever_is_fed_no_target_jumps_and_none_is_not_a_number(frames):
    live, _ = play(DANCE, frames=range(70))
    now, last, before = 70 / DANCE.rate, 69 / DANCE.rate, live.targets
    for markers, dt, what in frames:
        now = max(now, now + dt)
        if what in ("pause", "play"):
            live.playing = what == "play"
        if what == "hold":
            live.hold(now)
        elif what == "real":
            live.frame(DANCE.labels, DANCE.positions[70 + int(1000 * now) % 300], now)
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


@settings(max_examples=20)
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
