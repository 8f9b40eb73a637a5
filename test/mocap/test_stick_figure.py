"""Stick figures: upright, from the front, joined along the limbs, whatever the labels are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.stick_figure import StickFigure, build_stick_figure, text_figure


@pytest.fixture(scope="module")
def clip():
    return load_clip("dance")


def joined(figure):
    return {frozenset((figure.labels[a], figure.labels[b])) for a, b in figure.bones}


def test_limbs_are_joined_and_left_is_left(clip):
    figure = build_stick_figure(clip, 100)
    assert figure.placed and figure.frame == 100
    assert len(figure.bones) == len(figure.labels) - 1
    for side in "LR":
        for a, b in (("GH", "Elbow"), ("Elbow", "Wrist"), ("Hip", "Knee"), ("Knee", "Ankle")):
            assert frozenset((f"{a}_{side}", f"{b}_{side}")) in joined(figure)
    front = dict(zip(figure.labels, figure.views()["front"], strict=True))
    assert front["Hip_L"][0] > front["Hip_R"][0]  # who faces us has the left side at our right
    assert front["GH_L"][1] > front["Hip_L"][1] > front["Ankle_L"][1]
    side = dict(zip(figure.labels, figure.views()["left side"], strict=True))
    assert side["Foot_L"][0] < side["Ankle_L"][0]  # looks to the left


def test_labels_and_axes_do_not_matter_to_the_bones(clip):
    turned = replace(clip, labels=tuple(f"Channel{k}" for k in range(len(clip.labels))),
                     positions=clip.positions[..., [1, 2, 0]])  # fmt: skip
    figure = build_stick_figure(turned, 100)
    assert not figure.placed
    assert figure.bones == build_stick_figure(clip, 100).bones
    assert np.ptp(figure.positions[:, 2]) == pytest.approx(
        np.ptp(build_stick_figure(clip, 100).positions[:, 2]), rel=0.1
    )


def test_text_has_every_row_and_both_views(clip):
    rows = text_figure(build_stick_figure(clip, 0), rows=20).splitlines()
    assert len(rows) == 21
    assert "front" in rows[0] and "left side" in rows[0]
    assert "o" in rows[1] and "o" in rows[-1]


@pytest.mark.parametrize("rows", [2, 3, 8])
@pytest.mark.parametrize("across", [0, 1, -1, 2, -5, 12, -13])
def test_a_line_has_one_dot_for_each_place_on_its_way_and_none_between_neighbours(rows, across):
    step = 1 / (rows - 1)  # [m] a row; a column is half of it
    ends = np.array([[0.0, 0.0, 1.0], [0.0, across * step / 2, 0.0]])
    text = text_figure(StickFigure(("head", "foot"), ends, ((0, 1),), 0, True), rows).splitlines()
    front = [row[: max(abs(across) + 1, len("front"))] for row in text[1:]]
    assert sum(row.count("o") for row in front) == 2
    assert sum(row.count(".") for row in front) == max(abs(across), rows - 1) - 1


def test_frames_that_cannot_be_drawn(clip):
    with pytest.raises(ClipError, match="frame must be between 0 and 1200, got 99999"):
        build_stick_figure(clip, 99999)
    positions = np.array(clip.positions)
    positions[5, 1:] = np.nan
    with pytest.raises(ClipError, match=r"shows 1 point\(s\) in frame 5"):
        build_stick_figure(replace(clip, positions=positions), 5)
