"""Edits of a file of volumes: functions from the file before to the file after, with its pairs kept in step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from humanoid_control.collision.ssv.distance_kernels import TYPE_NAMES
from humanoid_control.collision.ssv.segments import (
    AXES,
    Segment,
    SegmentFile,
    SegmentPair,
    Vec3,
    Volume,
    expand,
)
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.files import mirrored_name

SHIFT = 0.02  # [m] a copy lies next to its original
# Core of a new volume, in radii: as large as a limb's.
CORES = {
    "point": ((0.0, 0.0, 0.0),),
    "line": ((0.0, 0.0, -1.5), (0.0, 0.0, 1.5)),
    "triangle": ((-1.5, -1.0, 0.0), (1.5, -1.0, 0.0), (0.0, 1.5, 0.0)),
}


# -- segments and volumes


def segment_of(file: SegmentFile, name: str) -> Segment:
    """A segment by its name.

    Raises:
        UnknownNameError: there is none.
    """
    for s in file.segments:
        if s.name == name:
            return s
    raise UnknownNameError("segment", name, [s.name for s in file.segments])


def with_segment(file: SegmentFile, segment: Segment) -> SegmentFile:
    """A segment put in the place of the one of its name, or added."""
    kept = [segment if s.name == segment.name else s for s in file.segments]
    if segment not in kept:
        kept.append(segment)
    return pairs_that_exist(replace(file, segments=tuple(kept)))


def without_segment(file: SegmentFile, name: str) -> SegmentFile:
    """A segment deleted, with its pairs."""
    segment_of(file, name)
    return pairs_that_exist(replace(file, segments=tuple(s for s in file.segments if s.name != name)))


def rename_segment(file: SegmentFile, name: str, new: str) -> SegmentFile:
    """A segment renamed, also in pairs.

    Raises:
        RobotError: the new name is taken or empty.
    """
    if any(s.name == new for s in file.segments) and new != name:
        raise RobotError(f"there is a segment '{new}' already")
    old = segment_of(file, name)
    segment = replace(old, name=checked_name(new))
    segments = tuple(segment if s.name == name else s for s in file.segments)
    return segment_renamed(replace(file, segments=segments), old, segment)


def add_volume(file: SegmentFile, segment: str, ssv: Volume) -> SegmentFile:
    """A volume added to a segment; its name must be free there."""
    s = segment_of(file, segment)
    return with_segment(file, replace(s, volumes=(*s.volumes, ssv)))


def replace_volume(file: SegmentFile, segment: str, volume: str, ssv: Volume) -> SegmentFile:
    """A volume changed; pairs follow a group that is renamed with its only volume."""
    s = segment_of(file, segment)
    after = replace(s, volumes=tuple(ssv if v.name == volume else v for v in s.volumes))
    checked_name(ssv.name)
    return groups_renamed(replace(file, segments=tuple(after if x is s else x for x in file.segments)), s, after)


def delete_volume(file: SegmentFile, segment: str, volume: str) -> SegmentFile:
    """A volume deleted, and its segment with the last one."""
    s = segment_of(file, segment)
    kept = tuple(v for v in s.volumes if v.name != volume)
    return with_segment(file, replace(s, volumes=kept)) if kept else without_segment(file, segment)


def new_volume(kind: str, taken: Iterable[str], radius: float, center: np.ndarray) -> Volume:
    """A volume of a type around a place in the link's frame [m].

    Raises:
        UnknownNameError: another type.
    """
    if kind not in TYPE_NAMES:
        raise UnknownNameError("type", kind, TYPE_NAMES)
    return Volume(free_name(kind, taken), kind, radius, points_of(np.array(CORES[kind]) * radius + center))


def copied(ssv: Volume, taken: Iterable[str]) -> Volume:
    """A copy under a free name, a little to the side."""
    return replace(moved(ssv, np.array([SHIFT, 0.0, 0.0])), name=free_name(ssv.name, taken))


def moved(ssv: Volume, by: np.ndarray, R: np.ndarray | None = None) -> Volume:
    """Shifted by (3,) [m], after being turned about its middle by R (3, 3)."""
    v = np.array(ssv.vertices)
    if R is not None:
        v = (v - v.mean(axis=0)) @ R.T + v.mean(axis=0)
    return replace(ssv, vertices=points_of(v + by))


def resized(ssv: Volume, factor: float) -> Volume:
    """Grown about its middle, radius and core.

    Raises:
        RobotError: the factor is not a positive number.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise RobotError(f"a volume grows by a positive factor, got {factor:g}")
    v = np.array(ssv.vertices)
    return replace(ssv, radius=ssv.radius * factor, vertices=points_of((v - v.mean(axis=0)) * factor + v.mean(axis=0)))


def with_vertex(ssv: Volume, k: int, place: np.ndarray) -> Volume:
    """One vertex put elsewhere, (3,) in the link's frame [m]."""
    v = np.array(ssv.vertices)
    v[k] = place
    return replace(ssv, vertices=points_of(v))


def points_of(rows: np.ndarray) -> tuple[Vec3, ...]:
    """Rows (n, 3) as a volume holds them, to a micrometre: what a person can read in a file."""
    rounded = np.round(np.asarray(rows, dtype=float), 6) + 0.0
    return tuple((float(x), float(y), float(z)) for x, y, z in rounded)


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or with the first free number behind it."""
    names = set(taken)
    if name not in names:
        return name
    stem, _, number = name.rpartition("_")
    stem = stem if number.isdigit() and stem else name
    return next(f"{stem}_{k}" for k in range(2, len(names) + 3) if f"{stem}_{k}" not in names)


def checked_name(name: str) -> str:
    """A name that a pair in the file can call.

    Raises:
        RobotError: it cannot be one.
    """
    if not name or name != name.strip() or any(c in name for c in ":+,/[]{}#\n"):
        raise RobotError(f"'{name}' cannot be a name: letters, digits, _ and - please")
    return name


# -- mirror images


def image_of(ssv: Volume, axis: str) -> Volume:
    """A volume with one coordinate negated, to the micrometre.

    Raises:
        UnknownNameError: another axis than x, y, z.
    """
    if axis not in AXES:
        raise UnknownNameError("mirror axis", axis, AXES)
    image = ssv.mirrored(axis)
    return replace(image, vertices=points_of(image.vertices))  # type: ignore[arg-type]


def flip_volume(file: SegmentFile, segment: str, volume: str, axis: str) -> tuple[SegmentFile, str]:
    """The image of a volume added to its segment; the new file and the image's name."""
    s = segment_of(file, segment)
    image = image_of(next(v for v in s.volumes if v.name == volume), axis)
    image = replace(image, name=free_name(image.name, (v.name for v in s.volumes)))
    return add_volume(file, segment, image), image.name


def copy_to_other_side(file: SegmentFile, segment: str, axis: str) -> tuple[SegmentFile, str]:
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
    other = Segment(name, mirrored_name(s.link), tuple(image_of(v, axis) for v in s.volumes))
    return with_segment(file, other), name


def stand_for_both(file: SegmentFile, segment: str, axis: str) -> SegmentFile:
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
    name = mirrored_name(s.name)
    if name == s.name:
        raise RobotError(f"'{s.name}' has no other side: its name would need l_ or _left")
    return name


# -- pairs


def with_pair(file: SegmentFile, pair: SegmentPair) -> SegmentFile:
    """A pair to watch added.

    Raises:
        RobotError: it is watched already.
    """
    pairs = file.pairs or ()
    if any(same(pair, p) for p in pairs):
        raise RobotError(f"{pair.first} - {pair.second} is watched already")
    return replace(file, pairs=(*pairs, pair))


def without_pairs(file: SegmentFile, first: str, second: str) -> SegmentFile:
    """No pair of these two segments watched any more.

    Raises:
        RobotError: none was.
    """
    kept = tuple(p for p in file.pairs or () if {p.first, p.second} != {first, second})
    if len(kept) == len(file.pairs or ()):
        raise RobotError(f"{first} - {second} is not watched")
    return replace(file, pairs=kept)


def pairs_that_exist(file: SegmentFile) -> SegmentFile:
    """Pairs of segments or groups that are gone left out."""
    if file.pairs is None:
        return file
    groups = {s.name: {v.group for v in s.volumes} for s in expand(file.segments)}

    def kept(name: str, asked: tuple[str, ...]) -> tuple[str, ...] | None:
        """The groups that are left; None: nothing is."""
        own = groups.get(name)
        if own is None:
            return None
        left = tuple(g for g in asked if g in own)
        return left if left or not asked else None

    out = []
    for p in file.pairs:
        first, second = kept(p.first, p.groups_1), kept(p.second, p.groups_2)
        if first is not None and second is not None:
            out.append(SegmentPair(p.first, p.second, first, second))
    return replace(file, pairs=tuple(out))


def segment_renamed(file: SegmentFile, before: Segment, after: Segment) -> SegmentFile:
    """Pairs follow a segment's new name, and that of its mirror image."""
    names = {before.name: after.name}
    if before.mirror:
        names[mirrored_name(before.name)] = mirrored_name(after.name)
    return _sides(file, lambda name, groups: (names.get(name, name), groups))


def groups_renamed(file: SegmentFile, before: Segment, after: Segment) -> SegmentFile:
    """Pairs follow a group whose only volume is in another group now; groups that are gone are left out."""
    old, new = {v.group for v in before.volumes}, {v.group for v in after.volumes}
    gone, come = old - new - {""}, new - old - {""}
    if len(gone) == len(come) == 1:
        of = (before.name, mirrored_name(before.name)) if before.mirror else (before.name,)
        names = {gone.pop(): come.pop()}

        def renamed(name: str, groups: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
            return name, tuple(names.get(g, g) for g in groups) if name in of else groups

        file = _sides(file, renamed)
    return pairs_that_exist(file)


def same(a: SegmentPair, b: SegmentPair) -> bool:
    """Test whether two pairs are of the same segments and groups, in either order."""
    return {(a.first, a.groups_1), (a.second, a.groups_2)} == {(b.first, b.groups_1), (b.second, b.groups_2)}


def _sides(file: SegmentFile, new: Callable[[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]) -> SegmentFile:
    """Every side of every pair replaced."""
    if file.pairs is None:
        return file
    rows = [(new(p.first, p.groups_1), new(p.second, p.groups_2)) for p in file.pairs]
    return replace(file, pairs=tuple(SegmentPair(a, b, ga, gb) for (a, ga), (b, gb) in rows))
