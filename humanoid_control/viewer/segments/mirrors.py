"""Mirrored volumes: about a plane of the link's axes, in the same segment or on the link of the other side."""

from __future__ import annotations

from dataclasses import replace

from humanoid_control.collision.ssv_file import SsvFile
from humanoid_control.collision.ssv_segments import AXES, Segment, Ssv, expand, other_side
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.viewer.segments.edits import add_volume, free_name, points_of, segment_of, with_segment
from humanoid_control.viewer.segments.watched import pairs_that_exist


def image_of(ssv: Ssv, axis: str) -> Ssv:
    """A volume with one coordinate negated, to the micrometre.

    Raises:
        UnknownNameError: another axis than x, y, z.
    """
    if axis not in AXES:
        raise UnknownNameError("mirror axis", axis, AXES)
    image = ssv.mirrored(axis)
    return replace(image, vertices=points_of(image.vertices))  # type: ignore[arg-type]


def flip_volume(file: SsvFile, segment: str, volume: str, axis: str) -> tuple[SsvFile, str]:
    """The image of a volume added to its segment; the new file and the image's name."""
    s = segment_of(file, segment)
    image = image_of(next(v for v in s.ssvs if v.name == volume), axis)
    image = replace(image, name=free_name(image.name, (v.name for v in s.ssvs)))
    return add_volume(file, segment, image), image.name


def copy_to_other_side(file: SsvFile, segment: str, axis: str) -> tuple[SsvFile, str]:
    """The segment of the other side replaced by the image of this one, each its own from now on.

    Returns:
        The new file, and the name of the other segment.

    Raises:
        RobotError: the name has no side, or the segment stands for both sides already.
    """
    s = segment_of(file, segment)
    name = _other_name(s)
    if s.mirror:
        raise RobotError(f"'{segment}' stands for both sides already: its image follows every change")
    other = Segment(name, other_side(s.link), tuple(image_of(v, axis) for v in s.ssvs))
    return with_segment(file, other), name


def stand_for_both(file: SsvFile, segment: str, axis: str) -> SsvFile:
    """One segment drawn for both sides (an axis), or each side its own again (empty).

    Raises:
        RobotError: the name has no side.
    """
    s = segment_of(file, segment)
    name = _other_name(s)
    if axis and axis not in AXES:
        raise UnknownNameError("mirror axis", axis, AXES)
    if axis == s.mirror:
        return file
    if axis:
        kept = [x for x in file.segments if x.name != name]
        return pairs_that_exist(replace(file, segments=tuple(replace(x, mirror=axis) if x is s else x for x in kept)))
    own = expand([s])  # both sides, the second made from the first
    segments = [y for x in file.segments for y in ((replace(s, mirror=""), own[1]) if x is s else (x,))]
    return replace(file, segments=tuple(segments))


def _other_name(s: Segment) -> str:
    name = other_side(s.name)
    if name == s.name:
        raise RobotError(f"'{s.name}' has no other side: its name would need l_ or _left")
    return name
