"""Labels: swaps and jumps put into a clip are found where they are, undone on request, and a good clip has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.mocap import labels as label_check
from humanoid_control.mocap import load_clip, synthetic_dance
from humanoid_control.mocap.labels import Swap, check_labels, repair_swaps

DANCE = synthetic_dance(duration=20, rate=60)


def swapped(clip, a, b, start, end=None):
    """The clip with two labels exchanged from frame `start` until before `end`."""
    positions = np.array(clip.positions)
    columns = [clip.index(a), clip.index(b)]
    positions[start:end, columns] = positions[start:end, columns[::-1]]
    return replace(clip, positions=positions)


def moved(clip, label, frames, by):
    positions = np.array(clip.positions)
    positions[frames, clip.index(label)] += by
    return replace(clip, positions=positions)


GOOD = ("dance_markers/dance1.trc", "dance_markers/walk1.trc", "dance_markers/btk_T_pose.trc", "vicon_c3d/shd01.c3d",
        "vicon_c3d/PiG_Motion-FlatFoot-One.c3d", "c3d_encodings/Eb015pi.c3d", "odd_files/Dance.c3d",
        "cmu_bvh/02_01.bvh", "cmu_bvh/02_05.bvh", "cmu_bvh/07_01.bvh", "cmu_asf/11_01.amc")  # fmt: skip


@pytest.mark.parametrize("relative", GOOD)
def test_good_recordings_raise_no_alarm(mocap, relative):
    assert check_labels(load_clip(mocap(relative))) == ((), ())


def test_built_in_dance_raises_no_alarm():
    assert check_labels(DANCE) == ((), ())


def test_toe_that_shakes_in_a_converted_file_is_found(mocap):
    # LeftToeBase of this file jumps by 4 cm from frame to frame round frame 168 while the ankle rests.
    swaps, jumps = check_labels(load_clip(mocap("cmu_bvh/05_02.bvh")))
    assert swaps == ()
    assert {jump.label for jump in jumps} == {"LeftToeBase", "LeftToeBase_end"}
    assert all(150 < jump.first <= jump.last < 190 and 0.07 < jump.distance < 0.1 for jump in jumps)


@pytest.mark.parametrize("pair", [("Elbow_L", "Elbow_R"), ("Wrist_L", "Elbow_L"), ("Knee_L", "Ankle_L")])
@pytest.mark.parametrize(("start", "end"), [(200, 500), (200, 201), (900, None), (3, 60)])
def test_swap_is_found_where_it_begins_and_ends(pair, start, end):
    swaps, jumps = check_labels(swapped(DANCE, *pair, start, end))
    expected = [start] if end is None else [start, end]
    assert [(set(swap.labels), swap.frame, swap.unambiguous) for swap in swaps] == [
        (set(pair), f, True) for f in expected
    ]
    assert jumps == ()


def test_swap_on_a_real_dance_is_found(mocap):
    clip = load_clip(mocap("dance_markers/dance1.trc"))
    for pair in (("Ankle_L", "Ankle_R"), ("Radius_L", "Ulna_L"), ("Head_FL", "Head_BL")):
        swaps, _ = check_labels(swapped(clip, *pair, 700, 720))
        assert [swap.frame for swap in swaps] == [700, 720]
        assert all(set(swap.labels) == set(pair) for swap in swaps)


@settings(max_examples=25)
@given(
    pair=st.lists(st.sampled_from(DANCE.labels), min_size=2, max_size=2, unique=True),
    start=st.integers(3, 1100),
    length=st.integers(1, 90),
)
def test_repair_gives_the_original_back(pair, start, length):
    wrong = swapped(DANCE, *pair, start, start + length)
    apart = np.linalg.norm(DANCE.marker(pair[0]) - DANCE.marker(pair[1]), axis=1)
    swaps, _ = check_labels(wrong)
    positions, undone = repair_swaps(wrong, swaps)
    if apart.min() > 0.1:  # nearer markers may be exchanged unseen
        assert len(undone) == 2
        np.testing.assert_array_equal(positions, DANCE.positions)


def test_repair_keeps_the_labels_that_hold_longer():
    late, early = swapped(DANCE, "Knee_L", "Knee_R", 1000), swapped(DANCE, "Knee_L", "Knee_R", 0, 200)
    for wrong in (late, early):
        positions, undone = repair_swaps(wrong, check_labels(wrong)[0])
        assert len(undone) == 1
        np.testing.assert_array_equal(positions, DANCE.positions)


def test_two_pairs_at_once_are_told_apart():
    wrong = swapped(swapped(DANCE, "Knee_L", "Knee_R", 400, 450), "Wrist_L", "Wrist_R", 430)
    swaps, _ = check_labels(wrong)
    assert [(set(s.labels), s.frame) for s in swaps] == [
        ({"Knee_L", "Knee_R"}, 400), ({"Wrist_L", "Wrist_R"}, 430), ({"Knee_L", "Knee_R"}, 450)
    ]  # fmt: skip
    positions, _ = repair_swaps(wrong, swaps)
    expected = swapped(DANCE, "Wrist_L", "Wrist_R", 0)  # 771 of 1201 frames have them so
    np.testing.assert_array_equal(positions, expected.positions)


def test_ambiguous_swap_is_reported_and_left_alone():
    swap = Swap((DANCE.labels[0], DANCE.labels[1]), 10, False)
    positions, undone = repair_swaps(DANCE, [swap])
    assert undone == ()
    np.testing.assert_array_equal(positions, DANCE.positions)


@pytest.mark.parametrize("frames", [slice(300, 301), slice(300, 340), slice(1150, None)])
def test_jump_is_found_with_its_distance(frames):
    swaps, jumps = check_labels(moved(DANCE, "Wrist_R", frames, [0.0, 0.3, 0.4]))
    assert swaps == ()
    assert jumps[0].label == "Wrist_R" and jumps[0].first == frames.start
    assert jumps[0].distance == pytest.approx(0.5, abs=0.02)
    assert {jump.label for jump in jumps} == {"Wrist_R"}


def test_jump_over_a_gap_is_found_but_a_walk_through_it_is_none():
    positions = np.array(DANCE.positions)
    positions[300:312, DANCE.index("Wrist_R")] = np.nan  # 0.2 s
    hidden = replace(DANCE, positions=positions)
    assert check_labels(hidden) == ((), ())
    _, jumps = check_labels(moved(hidden, "Wrist_R", slice(312, None), [0.0, 6.0, 0.0]))
    assert [(jump.label, jump.first) for jump in jumps] == [("Wrist_R", 312)]


def test_fast_arm_of_a_person_is_no_jump_but_of_nobody_is_one():
    time = np.arange(120) / 60
    angle = 2 * np.pi * 1.5 * time  # an arm of 0.7 m at 9.4 rad/s: 6.6 m/s, 62 m/s^2
    positions = np.array(DANCE.positions[:120])
    positions[:, DANCE.index("Wrist_R")] = 0.7 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    clip = replace(DANCE, positions=positions)
    assert check_labels(clip) == ((), ())
    positions[:, DANCE.index("Wrist_R")] *= 10
    assert check_labels(replace(DANCE, positions=positions))[1]


def test_report_does_not_depend_on_place_and_axes():
    wrong = swapped(DANCE, "Elbow_L", "Elbow_R", 200, 500)
    turned = replace(wrong, positions=wrong.positions[..., [2, 0, 1]] + [100.0, -50.0, 3.0])
    assert check_labels(turned) == check_labels(wrong)


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_skipping_quiet_frames_changes_nothing(seed):
    # Gaps, swaps and jumps anywhere; the same search with every frame taken one by one.
    rng = np.random.default_rng(seed)
    clip = synthetic_dance(duration=12, rate=50, noise=0.002, seed=seed % 7)
    positions = np.array(clip.positions)
    for _ in range(6):
        start, marker = rng.integers(3, 550), rng.integers(len(clip.labels))
        positions[start : start + rng.integers(1, 60), marker] = np.nan
        positions[rng.integers(600), rng.integers(len(clip.labels))] += rng.normal(size=3)
    wrong = swapped(replace(clip, positions=positions), *rng.choice(clip.labels, 2, replace=False), 200, 300)
    fast = check_labels(wrong)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_check, "_quiet", lambda positions: np.zeros(len(positions), dtype=bool))
        assert check_labels(wrong) == fast
    assert fast[1]
