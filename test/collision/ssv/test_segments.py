"""What a person draws: names of the other side, mirror images, and one clear line for each mistake."""

import numpy as np
import pytest

from humanoid_control.collision.ssv.model import SsvModel
from humanoid_control.collision.ssv.segments import Segment, SegmentPair, Volume, expand
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.files import mirrored_name

BALL = Volume("ball", "point", 0.1, ((0.0, 0.0, 0.0),))


@pytest.mark.parametrize(
    "name, other",
    [
        ("l_thigh", "r_thigh"),
        ("r_foot", "l_foot"),
        ("left_arm", "right_arm"),
        ("arm_right", "arm_left"),
        ("Left_hand", "Right_hand"),
        ("thigh_l", "thigh_r"),
        ("R_foot", "L_foot"),
        ("torso", "torso"),
        ("leg", "leg"),
        ("lower_torso", "lower_torso"),
        ("ball", "ball"),
    ],
)
def test_the_other_side_of_a_name(name, other):
    assert mirrored_name(name) == other and mirrored_name(other) == name


@pytest.mark.parametrize("axis, sign", [("x", (-1, 1, 1)), ("y", (1, -1, 1)), ("z", (1, 1, -1))])
def test_a_volume_of_a_middle_link_is_mirrored_in_its_place(axis, sign):
    v = Volume("bump", "triangle", 0.1, ((1, 2, 3), (4, 5, 6), (7, 8, 10)), "front", axis)
    (s,) = expand([Segment("torso", "torso", (v,))])
    assert [x.name for x in s.volumes] == ["bump", "bump_mirrored"]
    assert np.array_equal(np.array(s.volumes[1].vertices), np.array(v.vertices) * sign)
    assert s.volumes[1].group == "front" and s.volumes[1].radius == 0.1 and not s.volumes[1].mirror


MISTAKES = [
    (lambda: Volume("a", "lime", 0.1, ((0, 0, 0),)), "unknown type 'lime': did you mean line"),
    (lambda: Volume("a", "line", 0.1, ((0, 0, 0),)), "volume 'a': a line has 2 vertices"),
    (lambda: Volume("a", "point", 0.1, ((0, 0),)), "volume 'a': a point has 1 vertices of x, y, z"),
    (lambda: Volume("a", "point", -0.1, ((0, 0, 0),)), "radius must be zero or more, got -0.1"),
    (lambda: Volume("a", "point", float("nan"), ((0, 0, 0),)), "radius must be zero or more, got nan"),
    (lambda: Volume("a", "point", 0.1, ((0, float("inf"), 0),)), "vertices must be finite"),
    (lambda: Volume("a", "point", 0.1, ((0, 0, 0),), mirror="w"), "unknown mirror axis 'w'"),
    (lambda: Segment("s", "s", ()), "segment 's' has no volume"),
    (lambda: Segment("s", "s", (BALL, BALL)), "segment 's' has two volumes named 'ball'"),
    (lambda: Segment("s", "s", (BALL,), "y"), "segment 's' cannot be mirrored: its name has no side"),
    (
        lambda: expand([Segment("l_s", "l_s", (BALL,), "y"), Segment("r_s", "r_s", (BALL,))]),
        "two segments are named 'r_s'",
    ),
]


@pytest.mark.parametrize("make, message", MISTAKES)
def test_mistakes_are_one_clear_line(make, message):
    with pytest.raises((RobotError, UnknownNameError), match=message):
        make()


FRAMES = {n: (0, np.eye(3), np.zeros(3)) for n in ("trunk", "l_hand")}
SEGMENTS = [
    Segment("trunk", "trunk", (BALL,)),
    Segment("hand", "l_hand", (Volume("tip", "point", 0.1, ((0, 0, 1),), "front"),)),
]


@pytest.mark.parametrize(
    "segments, pairs, message",
    [
        ([Segment("hand", "r_hand", (BALL,))], [], "unknown link 'r_hand': did you mean l_hand.*segment 'hand'"),
        (SEGMENTS, [SegmentPair("trunk", "hnad")], "unknown segment 'hnad': did you mean hand"),
        (SEGMENTS, [SegmentPair("trunk", "hand", (), ("frnt",))], "unknown group 'frnt': did you mean front"),
        (SEGMENTS, [SegmentPair("trunk", "trunk")], "segment 'trunk' is paired with itself"),
    ],
)
def test_models_name_what_does_not_exist(segments, pairs, message):
    with pytest.raises((RobotError, UnknownNameError), match=message):
        SsvModel.build(segments, FRAMES, pairs)


def test_an_empty_model_is_a_model():
    model = SsvModel.build([], {}, [])
    assert (
        len(model.arrays.radii) == 0
        and model.arrays.pair_rows.shape == (0, 4)
        and model.arrays.vertices.shape == (0, 3, 3)
    )
