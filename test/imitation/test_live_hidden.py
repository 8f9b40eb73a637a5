"""Live markers that are hidden, jump, fall silent or have wrong names: held, faded, said, and back by themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from humanoid_control.mocap import load_clip
from humanoid_control.retargeting import POINTS
from humanoid_control.retargeting.live import LiveSettings, LiveTargets
from test.imitation.live_play import DANCE, QUICK, ROBOT, clear, error, hide, play, speed


@pytest.mark.parametrize("side", "LR")
def test_a_hidden_wrist_fades_is_said_and_comes_back_smoothly(side):
    """Half a second in the liveliest part, without and with it."""
    seen = clear()
    worst = 300 + int(np.argmax(speed(seen[300:600], DANCE.rate)))
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
    clip = load_clip(path).crop(0, 15)
    return clip, play(clip)[1]


@pytest.mark.parametrize("label", ["Hip_FL", "Hip_BR", "Sternum", "Shoulder_L"])
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
        if not 300 <= k < 450:
            return positions
        if how == "no frames":
            return None
        return positions if how == "other labels" else np.full_like(positions, 0.0 if how == "zeros" else np.nan)

    live, out = LiveTargets(ROBOT, LiveSettings(**QUICK)), np.empty((DANCE.n_frames, 7, 3))
    said = []
    for k in range(DANCE.n_frames):
        labels = names if how == "other labels" and 300 <= k < 450 else DANCE.labels
        _, one = play(DANCE, change, labels, live, frames=[k])
        out[k] = one[k]
        said.append(live.problems.get("silence", ""))
    assert "the last good posture is held" in said[449] and not any(said[:320]) and not said[-1]
    assert speed(out[340:450], DANCE.rate).max() < 1e-9, "at rest once the velocity has faded"
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
    assert error(jumped, clear())[-100:].max() < 1e-9


def test_exchanged_labels_never_jump_and_mixed_up_segments_are_held_and_said():
    a, b = DANCE.index("Elbow_L"), DANCE.index("Wrist_L")
    swap = list(DANCE.labels)
    swap[a], swap[b] = swap[b], swap[a]
    live = LiveTargets(ROBOT, LiveSettings(**QUICK))
    _, before = play(DANCE, live=live, frames=range(300))
    _, after = play(DANCE, labels=swap, live=live, frames=range(300, 650))
    out = np.concatenate([before[80:300], after[300:650]])
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
    assert "Wrist_L occurs twice" in live.problems["labels"]
    play(DANCE, live=live, frames=range(240, 300))
    assert not live.problems
