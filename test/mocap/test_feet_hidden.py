"""Feet that are hidden for long, or labelled for the other side: what is seen of the legs is used, and said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.mocap import find_body_points, load_clip

FOOT = ("LeftFoot", "LeftToeBase", "LeftToeBase_end")


@pytest.fixture(scope="module")
def clip(mocap):
    return load_clip(mocap("cmu_bvh/07_01.bvh"))


def hidden(clip, labels, first, last):
    positions = np.array(clip.positions)
    for label in labels:
        positions[first:last, clip.index(label)] = np.nan
    return replace(clip, positions=positions)


def exchanged(clip, pairs):
    positions = np.array(clip.positions)
    for a, b in pairs:
        i, j = clip.index(a), clip.index(b)
        positions[:, [i, j]] = positions[:, [j, i]]
    return replace(clip, positions=positions)


@pytest.mark.parametrize("labels", [FOOT, FOOT[:1], FOOT[-1:], ("LeftLeg", *FOOT)])
@pytest.mark.parametrize(("first", "last"), [(100, 175), (0, 70), (250, 316)])
def test_a_hidden_foot_goes_along_with_the_leg(clip, labels, first, last):
    whole, found = find_body_points(clip), find_body_points(hidden(clip, labels, first, last))
    assert found.names == whole.names
    gone = [w for w in found.warnings if "is hidden for" in w]
    assert gone and all("it moves with the" in w for w in gone)
    seen = np.ones(clip.n_frames, dtype=bool)
    seen[first:last] = False
    offset = whole.mid_hip - found.mid_hip  # the floor may be found a little higher or lower
    assert np.ptp(offset, axis=0).max() < 1e-9
    for name in ("l_knee", "l_ankle", "l_toe"):
        off = np.linalg.norm(found.point(name) + offset - whole.point(name), axis=1)
        assert off[seen].max() < 1e-9
        assert off.max() < 0.8, "no farther than a step"
    for a, b in (("hip", "knee"), ("knee", "ankle")):
        bone = np.linalg.norm(found.point(f"l_{a}") - found.point(f"l_{b}"), axis=1)
        original = np.linalg.norm(whole.point(f"l_{a}") - whole.point(f"l_{b}"), axis=1)
        if {"knee": "LeftLeg", "ankle": "LeftFoot"}[b] in labels or a == "hip":
            np.testing.assert_allclose(bone, original, atol=2e-3)
    share = 1 - seen.mean()
    assert found.missing[found.names.index("l_toe")] == pytest.approx(share if FOOT[-1] in labels else 0.0, abs=0.3)


def test_a_foot_that_is_mostly_hidden_is_left_out(clip):
    found = find_body_points(hidden(clip, FOOT, 50, 250))
    assert {"l_ankle", "l_toe"}.isdisjoint(found.names)
    assert any("l_ankle" in w and "left out" in w for w in found.warnings)


def test_feet_of_the_other_side_are_noticed(clip):
    pairs = [(label, label.replace("Left", "Right")) for label in FOOT]
    assert any("with the other foot" in w for w in find_body_points(exchanged(clip, pairs)).warnings)
    assert not any("with the other foot" in w for w in find_body_points(clip).warnings)


@pytest.mark.parametrize("name", ["cmu_bvh/02_01.bvh", "cmu_bvh/05_02.bvh", "dance_markers/dance1.trc"])
def test_feet_of_people_who_dance_are_not_taken_for_exchanged_ones(mocap, name):
    assert not any("with the other foot" in w for w in find_body_points(load_clip(mocap(name))).warnings)
