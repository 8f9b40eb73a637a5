"""The pairs of a file of volumes, kept in step with its segments and groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from humanoid_control.collision.ssv_file import SsvFile
from humanoid_control.collision.ssv_segments import Segment, SegmentPair, expand, other_side
from humanoid_control.errors import RobotError


def with_pair(file: SsvFile, pair: SegmentPair) -> SsvFile:
    """A pair to watch added.

    Raises:
        RobotError: it is watched already.
    """
    pairs = file.pairs or ()
    if any(same(pair, p) for p in pairs):
        raise RobotError(f"{pair.first} - {pair.second} is watched already")
    return replace(file, pairs=(*pairs, pair))


def without_pairs(file: SsvFile, first: str, second: str) -> SsvFile:
    """No pair of these two segments watched any more.

    Raises:
        RobotError: none was.
    """
    kept = tuple(p for p in file.pairs or () if {p.first, p.second} != {first, second})
    if len(kept) == len(file.pairs or ()):
        raise RobotError(f"{first} - {second} is not watched")
    return replace(file, pairs=kept)


def pairs_that_exist(file: SsvFile) -> SsvFile:
    """Pairs of segments or groups that are gone left out."""
    if file.pairs is None:
        return file
    groups = {s.name: {v.group for v in s.ssvs} for s in expand(file.segments)}

    def kept(name: str, wanted: tuple[str, ...]) -> tuple[str, ...] | None:
        """The groups that are left; None: nothing is."""
        own = groups.get(name)
        if own is None:
            return None
        left = tuple(g for g in wanted if g in own)
        return left if left or not wanted else None

    out = []
    for p in file.pairs:
        first, second = kept(p.first, p.groups_1), kept(p.second, p.groups_2)
        if first is not None and second is not None:
            out.append(SegmentPair(p.first, p.second, first, second))
    return replace(file, pairs=tuple(out))


def segment_renamed(file: SsvFile, before: Segment, after: Segment) -> SsvFile:
    """Pairs follow a segment's new name, and that of its mirror image."""
    names = {before.name: after.name}
    if before.mirror:
        names[other_side(before.name)] = other_side(after.name)
    return _sides(file, lambda name, groups: (names.get(name, name), groups))


def groups_renamed(file: SsvFile, before: Segment, after: Segment) -> SsvFile:
    """Pairs follow a group whose only volume is in another group now; groups that are gone are left out."""
    old, new = {v.group for v in before.ssvs}, {v.group for v in after.ssvs}
    gone, come = old - new - {""}, new - old - {""}
    if len(gone) == len(come) == 1:
        of = (before.name, other_side(before.name)) if before.mirror else (before.name,)
        names = {gone.pop(): come.pop()}

        def renamed(name: str, groups: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
            return name, tuple(names.get(g, g) for g in groups) if name in of else groups

        file = _sides(file, renamed)
    return pairs_that_exist(file)


def same(a: SegmentPair, b: SegmentPair) -> bool:
    """Whether two pairs are of the same segments and groups, in either order."""
    return {(a.first, a.groups_1), (a.second, a.groups_2)} == {(b.first, b.groups_1), (b.second, b.groups_2)}


def _sides(file: SsvFile, new: Callable[[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]) -> SsvFile:
    """Every side of every pair replaced."""
    if file.pairs is None:
        return file
    rows = [(new(p.first, p.groups_1), new(p.second, p.groups_2)) for p in file.pairs]
    return replace(file, pairs=tuple(SegmentPair(a, b, ga, gb) for (a, ga), (b, gb) in rows))
