"""Rows of a table of shapes: what they say is what is read, and mistakes are named with shape and file."""

import pytest

from humanoid_control.collision import Box, LinkShape, Sphere
from humanoid_control.collision.shapes import shape_from_row
from humanoid_control.errors import HumanoidError

BALL = {"name": "a", "link": "base", "shape": "sphere", "center": [0, 0, 1], "radius": 0.1}
BOX = {"name": "a", "link": "base", "shape": "box", "center": [0, 0, 0], "size": [1, 2, 3]}
CAPSULE = {"name": "a", "link": "base", "shape": "capsule", "p0": [0, 0, 0], "p1": [0, 0, 1], "radius": 1}
TORSO = {"name": "a", "link": "base", "shape": "elliptic_capsule", "top_center": [0, 0, 0], "a": 1, "b": 1, "c": 1}


def test_rows_may_say_more_than_the_shape_needs_and_leave_out_what_has_a_default():
    assert shape_from_row(BALL | {"from": "M1"}, "here") == LinkShape("a", "base", Sphere((0.0, 0.0, 1.0), 0.1))
    assert shape_from_row(BOX, "here").shape == Box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    "row, message",
    [
        (7, "here: a shape must be a mapping .* got 7"),
        ({k: v for k, v in BALL.items() if k != "link"}, "shape 'a' in here lacks the key 'link'"),
        ({k: v for k, v in BALL.items() if k != "radius"}, "shape 'a' in here lacks a number: 'radius'"),
        (BALL | {"shape": "bal"}, r"unknown shape 'bal': .* \(shape 'a' in here\)"),
        (BALL | {"shape": ["ball"]}, "unknown shape"),
        (BALL | {"center": 0}, r"shape 'a' in here: 'center' must be \[x, y, z\], got 0"),
        (BALL | {"center": [0, 0, float("nan")]}, "'center' must be"),
        (BALL | {"center": [0, 0, "x"]}, "'center' must be"),
        (BALL | {"radius": float("inf")}, "'radius' must be a number, got inf"),
        (BALL | {"radius": [1]}, "'radius' must be a number"),
        (BALL | {"radius": 0}, "radius must be positive, got 0"),
        (BOX | {"size": [1, 2]}, r"'size' must be \[x, y, z\]"),
        (BOX | {"size": [1, 2, 0]}, "size must be positive"),
        (CAPSULE | {"p1": [0, 1]}, r"'p1' must be \[x, y, z\]"),
        (TORSO | {"l": -1}, "l must not be negative, got -1"),
    ],
)
def test_mistakes_are_named(row, message):
    with pytest.raises(HumanoidError, match=message):
        shape_from_row(row, "here")
