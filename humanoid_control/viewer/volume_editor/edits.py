"""Edits of a volume file: functions from old to new file, with consistent pairs."""

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

SHIFT = 0.02  # [m] offset of a copy
# Core of a new volume, in radii, about the size of a limb.
CORES = {
    "point": ((0.0, 0.0, 0.0),),
    "line": ((0.0, 0.0, -1.5), (0.0, 0.0, 1.5)),
    "triangle": ((-1.5, -1.0, 0.0), (1.5, -1.0, 0.0), (0.0, 1.5, 0.0)),
}


# -- segments and volumes


def segment_of(file: SegmentFile, name: str) -> Segment:
    """Return a segment by its name.

    Raises:
        UnknownNameError: if it does not exist.
    """
    for s in file.segments:
        if s.name == name:
            return s
    raise UnknownNameError("segment", name, [s.name for s in file.segments])


def with_segment(file: SegmentFile, segment: Segment) -> SegmentFile:
    """Replace or add a segment."""
    kept = [segment if s.name == segment.name else s for s in file.segments]
    if segment not in kept:
        kept.append(segment)
    return pairs_that_exist(replace(file, segments=tuple(kept)))


def without_segment(file: SegmentFile, name: str) -> SegmentFile:
    """Delete a segment and its pairs."""
    segment_of(file, name)
    return pairs_that_exist(replace(file, segments=tuple(s for s in file.segments if s.name != name)))


def rename_segment(file: SegmentFile, name: str, new: str) -> SegmentFile:
    """Rename a segment, also in pairs.

    Raises:
        RobotError: if the new name is taken or empty.
    """
    if any(s.name == new for s in file.segments) and new != name:
        raise RobotError(f"segment '{new}' exists already")
    old = segment_of(file, name)
    segment = replace(old, name=checked_name(new))
    segments = tuple(segment if s.name == name else s for s in file.segments)
    return segment_renamed(replace(file, segments=segments), old, segment)


def add_volume(file: SegmentFile, segment: str, ssv: Volume) -> SegmentFile:
    """Add a volume to a segment; its name must be free there."""
    s = segment_of(file, segment)
    return with_segment(file, replace(s, volumes=(*s.volumes, ssv)))


def replace_volume(file: SegmentFile, segment: str, volume: str, ssv: Volume) -> SegmentFile:
    """Replace a volume; pairs follow a renamed group."""
    s = segment_of(file, segment)
    after = replace(s, volumes=tuple(ssv if v.name == volume else v for v in s.volumes))
    checked_name(ssv.name)
    return groups_renamed(replace(file, segments=tuple(after if x is s else x for x in file.segments)), s, after)


def delete_volume(file: SegmentFile, segment: str, volume: str) -> SegmentFile:
    """Delete a volume, with its segment if empty."""
    s = segment_of(file, segment)
    kept = tuple(v for v in s.volumes if v.name != volume)
    return with_segment(file, replace(s, volumes=kept)) if kept else without_segment(file, segment)


def new_volume(kind: str, taken: Iterable[str], radius: float, center: np.ndarray) -> Volume:
    """Return a volume of a type around a point in the link frame [m].

    Raises:
        UnknownNameError: if the type is unknown.
    """
    if kind not in TYPE_NAMES:
        raise UnknownNameError("type", kind, TYPE_NAMES)
    return Volume(free_name(kind, taken), kind, radius, points_of(np.array(CORES[kind]) * radius + center))


def copied(ssv: Volume, taken: Iterable[str]) -> Volume:
    return replace(moved(ssv, np.array([SHIFT, 0.0, 0.0])), name=free_name(ssv.name, taken))


def moved(ssv: Volume, by: np.ndarray, R: np.ndarray | None = None) -> Volume:
    """Rotate a volume about its centre by R (3, 3), then shift it by (3,) [m]."""
    v = np.array(ssv.vertices)
    if R is not None:
        v = (v - v.mean(axis=0)) @ R.T + v.mean(axis=0)
    return replace(ssv, vertices=points_of(v + by))


def resized(ssv: Volume, factor: float) -> Volume:
    """Scale a volume about its centre.

    Raises:
        RobotError: if the factor is not positive.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise RobotError(f"a volume grows by a positive factor, got {factor:g}")
    v = np.array(ssv.vertices)
    return replace(ssv, radius=ssv.radius * factor, vertices=points_of((v - v.mean(axis=0)) * factor + v.mean(axis=0)))


def with_vertex(ssv: Volume, k: int, place: np.ndarray) -> Volume:
    """Move a vertex to (3,) in the link frame [m]."""
    v = np.array(ssv.vertices)
    v[k] = place
    return replace(ssv, vertices=points_of(v))


def points_of(rows: np.ndarray) -> tuple[Vec3, ...]:
    """Return rows (n, 3) as vertices, rounded to a micrometre."""
    rounded = np.round(np.asarray(rows, dtype=float), 6) + 0.0
    return tuple((float(x), float(y), float(z)) for x, y, z in rounded)


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, numbered if taken."""
    names = set(taken)
    if name not in names:
        return name
    stem, _, number = name.rpartition("_")
    stem = stem if number.isdigit() and stem else name
    return next(f"{stem}_{k}" for k in range(2, len(names) + 3) if f"{stem}_{k}" not in names)


def checked_name(name: str) -> str:
    """Return the name if it is valid in a file.

    Raises:
        RobotError: if it is invalid.
    """
    if not name or name != name.strip() or any(c in name for c in ":+,/[]{}#\n"):
        raise RobotError(f"'{name}' is not a valid name: use letters, digits, _ and -")
    return name


# -- mirror images


def image_of(ssv: Volume, axis: str) -> Volume:
    """Return a volume with one coordinate negated, rounded to a micrometre.

    Raises:
        UnknownNameError: if the axis is not x, y or z.
    """
    if axis not in AXES:
        raise UnknownNameError("mirror axis", axis, AXES)
    image = ssv.mirrored(axis)
    return replace(image, vertices=points_of(image.vertices))  # type: ignore[arg-type]


def flip_volume(file: SegmentFile, segment: str, volume: str, axis: str) -> tuple[SegmentFile, str]:
    """Add the mirror image of a volume; return new file and name."""
    s = segment_of(file, segment)
    image = image_of(next(v for v in s.volumes if v.name == volume), axis)
    image = replace(image, name=free_name(image.name, (v.name for v in s.volumes)))
    return add_volume(file, segment, image), image.name


def copy_to_other_side(file: SegmentFile, segment: str, axis: str) -> tuple[SegmentFile, str]:
    """Replace the opposite segment by an independent mirror image.

    Returns:
        New file, and name of the opposite segment.

    Raises:
        RobotError: if the name has no side, or the segment defines both sides.
    """
    s = segment_of(file, segment)
    name = _other_name(s)
    if s.mirror:
        raise RobotError(f"'{segment}' stands for both sides already: its image follows every change")
    other = Segment(name, mirrored_name(s.link), tuple(image_of(v, axis) for v in s.volumes))
    return with_segment(file, other), name


def stand_for_both(file: SegmentFile, segment: str, axis: str) -> SegmentFile:
    """Let one segment define both sides (an axis), or separate the sides (empty).

    Raises:
        RobotError: if the name has no side.
        UnknownNameError: if the axis is unknown.
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
    own = expand([s])  # both sides, the second as image of the first
    segments = [y for x in file.segments for y in ((replace(s, mirror=""), own[1]) if x is s else (x,))]
    return replace(file, segments=tuple(segments))


def _other_name(s: Segment) -> str:
    name = mirrored_name(s.name)
    if name == s.name:
        raise RobotError(f"'{s.name}' has no other side: its name lacks l_ or _left")
    return name


# -- pairs


def with_pair(file: SegmentFile, pair: SegmentPair) -> SegmentFile:
    """Add a pair.

    Raises:
        RobotError: if it exists.
    """
    pairs = file.pairs or ()
    if any(same(pair, p) for p in pairs):
        raise RobotError(f"{pair.first} - {pair.second} is monitored already")
    return replace(file, pairs=(*pairs, pair))


def without_pairs(file: SegmentFile, first: str, second: str) -> SegmentFile:
    """Remove all pairs of two segments.

    Raises:
        RobotError: if there is none.
    """
    kept = tuple(p for p in file.pairs or () if {p.first, p.second} != {first, second})
    if len(kept) == len(file.pairs or ()):
        raise RobotError(f"{first} - {second} is not monitored")
    return replace(file, pairs=kept)


def pairs_that_exist(file: SegmentFile) -> SegmentFile:
    """Remove pairs of missing segments or groups."""
    if file.pairs is None:
        return file
    groups = {s.name: {v.group for v in s.volumes} for s in expand(file.segments)}

    def kept(name: str, asked: tuple[str, ...]) -> tuple[str, ...] | None:
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
    names = {before.name: after.name}
    if before.mirror:
        names[mirrored_name(before.name)] = mirrored_name(after.name)
    return _sides(file, lambda name, groups: (names.get(name, name), groups))


def groups_renamed(file: SegmentFile, before: Segment, after: Segment) -> SegmentFile:
    """Follow a group's new name in pairs; remove missing groups."""
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
    return {(a.first, a.groups_1), (a.second, a.groups_2)} == {(b.first, b.groups_1), (b.second, b.groups_2)}


def _sides(file: SegmentFile, new: Callable[[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]) -> SegmentFile:
    if file.pairs is None:
        return file
    rows = [(new(p.first, p.groups_1), new(p.second, p.groups_2)) for p in file.pairs]
    return replace(file, pairs=tuple(SegmentPair(a, b, ga, gb) for (a, ga), (b, gb) in rows))
