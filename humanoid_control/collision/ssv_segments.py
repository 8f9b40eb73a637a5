"""Segments: swept-sphere volumes that move with one link, drawn once and mirrored to the other side (section 4.12)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from humanoid_control.collision.ssv_lanes import TYPE_NAMES
from humanoid_control.errors import RobotError, UnknownNameError

Vec3 = tuple[float, float, float]
AXES = ("x", "y", "z")
_SIDES = {"l": "r", "r": "l", "left": "right", "right": "left", "L": "R", "R": "L", "Left": "Right", "Right": "Left"}
_SIDE = re.compile(r"^(l|r|left|right|L|R|Left|Right)(?=_)|(?<=_)(l|r|left|right|L|R|Left|Right)$")


@dataclass(frozen=True)
class Ssv:
    """All points within `radius` of a point, a line or a triangle.

    Attributes:
        name: within its segment.
        type: 'point', 'line' or 'triangle' (PSS, LSS, TSS of the source).
        radius: [m].
        vertices: one, two or three points in the frame of the link [m].
        group: a pair of segments may ask for the volumes of some groups only; empty: none.
        mirror: 'x', 'y' or 'z' adds the image with that coordinate negated to the same segment; empty: none.

    Raises:
        RobotError, UnknownNameError: on construction, for an unknown type or axis, a wrong number of vertices, a
            radius below zero, or what is not finite.
    """

    name: str
    type: str
    radius: float
    vertices: tuple[Vec3, ...]
    group: str = ""
    mirror: str = ""

    def __post_init__(self) -> None:
        if self.type not in TYPE_NAMES:
            raise UnknownNameError("type", self.type, TYPE_NAMES, hint=f"(volume '{self.name}')")
        count = TYPE_NAMES.index(self.type) + 1
        if len(self.vertices) != count or any(len(v) != 3 for v in self.vertices):
            raise RobotError(f"volume '{self.name}': a {self.type} has {count} vertices of x, y, z")
        if not all(math.isfinite(x) for v in self.vertices for x in v):
            raise RobotError(f"volume '{self.name}': vertices must be finite")
        if not (math.isfinite(self.radius) and self.radius >= 0.0):
            raise RobotError(f"volume '{self.name}': the radius must be zero or more, got {self.radius}")
        _check_axis(self.mirror, f"volume '{self.name}'")

    def mirrored(self, axis: str) -> Ssv:
        """The image with one coordinate negated, under the name of the other side."""
        k = AXES.index(axis)
        vertices = tuple(tuple(-x if c == k else x for c, x in enumerate(v)) for v in self.vertices)
        return replace(self, name=other_side(self.name), vertices=vertices, mirror="")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Segment:
    """A compound of volumes fixed to one link; need not be convex.

    Attributes:
        name: of the segment.
        link: that carries it.
        ssvs: at least one.
        mirror: 'x', 'y' or 'z' adds the segment of the other side, `l_thigh` -> `r_thigh`, on the link of the other
            side, with that coordinate negated; empty: none.

    Raises:
        RobotError, UnknownNameError: on construction, for no volume, a name used twice, an unknown axis.
    """

    name: str
    link: str
    ssvs: tuple[Ssv, ...]
    mirror: str = ""

    def __post_init__(self) -> None:
        where = f"segment '{self.name}'"
        _check_axis(self.mirror, where)
        if not self.ssvs:
            raise RobotError(f"{where} has no volume")
        names = [s.name for s in self.ssvs]
        if len(set(names)) < len(names):
            raise RobotError(f"{where} has two volumes named '{next(n for n in names if names.count(n) > 1)}'")
        if self.mirror and other_side(self.name) == self.name:
            raise RobotError(f"{where} cannot be mirrored: its name has no side, such as l_ or _left")


@dataclass(frozen=True)
class SegmentPair:
    """Two segments that must not touch (eq. (5.3)); of each the volumes of some groups, or all of them.

    A segment may hold several versions of itself in groups, each for the pairs that can touch it there: the inner
    thigh for the other thigh, the outer one for the arm.
    """

    first: str
    second: str
    groups_1: tuple[str, ...] = ()
    groups_2: tuple[str, ...] = ()


def other_side(name: str) -> str:
    """The name of the other side: l_thigh -> r_thigh, thigh_left -> thigh_right; a name without side stays."""
    return _SIDE.sub(lambda m: _SIDES[m[0]], name, count=1)


def expand(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """The segments with all mirror images made, each after its original.

    Raises:
        RobotError: two segments, or two volumes of one, get the same name.
    """
    out: list[Segment] = []
    for s in segments:
        ssvs: list[Ssv] = []
        for v in s.ssvs:
            ssvs.append(replace(v, mirror=""))
            if v.mirror:
                image = v.mirrored(v.mirror)
                ssvs.append(image if image.name != v.name else replace(image, name=f"{v.name}_mirrored"))
        plain = Segment(s.name, s.link, tuple(ssvs))
        out.append(plain)
        if s.mirror:
            out.append(Segment(other_side(s.name), other_side(s.link), tuple(v.mirrored(s.mirror) for v in ssvs)))
    names = [s.name for s in out]
    for name in names:
        if names.count(name) > 1:
            raise RobotError(f"two segments are named '{name}': a mirrored one stands for both sides")
    return tuple(out)


def _check_axis(axis: str, where: str) -> None:
    if axis and axis not in AXES:
        raise UnknownNameError("mirror axis", axis, AXES, hint=f"({where})")
