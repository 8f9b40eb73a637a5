"""Changes to a file of volumes, each a function from the file before to the file after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from humanoid_control.collision.ssv_file import SsvFile
from humanoid_control.collision.ssv_lanes import TYPE_NAMES
from humanoid_control.collision.ssv_segments import Segment, Ssv, Vec3
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.viewer.segments.watched import groups_renamed, pairs_that_exist, segment_renamed

SHIFT = 0.02  # [m] a copy lies beside its original
# Core of a new volume, in radii: as large as a limb's.
CORES = {
    "point": ((0.0, 0.0, 0.0),),
    "line": ((0.0, 0.0, -1.5), (0.0, 0.0, 1.5)),
    "triangle": ((-1.5, -1.0, 0.0), (1.5, -1.0, 0.0), (0.0, 1.5, 0.0)),
}


def segment_of(file: SsvFile, name: str) -> Segment:
    """A segment by its name.

    Raises:
        UnknownNameError: there is none.
    """
    for s in file.segments:
        if s.name == name:
            return s
    raise UnknownNameError("segment", name, [s.name for s in file.segments])


def with_segment(file: SsvFile, segment: Segment) -> SsvFile:
    """A segment put in the place of the one of its name, or added."""
    kept = [segment if s.name == segment.name else s for s in file.segments]
    if segment not in kept:
        kept.append(segment)
    return pairs_that_exist(replace(file, segments=tuple(kept)))


def without_segment(file: SsvFile, name: str) -> SsvFile:
    """A segment deleted, with its pairs."""
    segment_of(file, name)
    return pairs_that_exist(replace(file, segments=tuple(s for s in file.segments if s.name != name)))


def rename_segment(file: SsvFile, name: str, new: str) -> SsvFile:
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


def add_volume(file: SsvFile, segment: str, ssv: Ssv) -> SsvFile:
    """A volume added to a segment; its name must be free there."""
    s = segment_of(file, segment)
    return with_segment(file, replace(s, ssvs=(*s.ssvs, ssv)))


def replace_volume(file: SsvFile, segment: str, volume: str, ssv: Ssv) -> SsvFile:
    """A volume changed; pairs follow a group that is renamed with its only volume."""
    s = segment_of(file, segment)
    after = replace(s, ssvs=tuple(ssv if v.name == volume else v for v in s.ssvs))
    checked_name(ssv.name)
    return groups_renamed(replace(file, segments=tuple(after if x is s else x for x in file.segments)), s, after)


def delete_volume(file: SsvFile, segment: str, volume: str) -> SsvFile:
    """A volume deleted, and its segment with the last one."""
    s = segment_of(file, segment)
    kept = tuple(v for v in s.ssvs if v.name != volume)
    return with_segment(file, replace(s, ssvs=kept)) if kept else without_segment(file, segment)


def new_volume(kind: str, taken: Iterable[str], radius: float, center: np.ndarray) -> Ssv:
    """A volume of a type around a place in the link's frame [m].

    Raises:
        UnknownNameError: another type.
    """
    if kind not in TYPE_NAMES:
        raise UnknownNameError("type", kind, TYPE_NAMES)
    return Ssv(free_name(kind, taken), kind, radius, points_of(np.array(CORES[kind]) * radius + center))


def copied(ssv: Ssv, taken: Iterable[str]) -> Ssv:
    """A copy under a free name, a little beside."""
    return replace(moved(ssv, np.array([SHIFT, 0.0, 0.0])), name=free_name(ssv.name, taken))


def moved(ssv: Ssv, by: np.ndarray, R: np.ndarray | None = None) -> Ssv:
    """Shifted by (3,) [m], after being turned about its middle by R (3, 3)."""
    v = np.array(ssv.vertices)
    if R is not None:
        v = (v - v.mean(axis=0)) @ R.T + v.mean(axis=0)
    return replace(ssv, vertices=points_of(v + by))


def resized(ssv: Ssv, factor: float) -> Ssv:
    """Grown about its middle, radius and core.

    Raises:
        RobotError: the factor is not a positive number.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise RobotError(f"a volume grows by a positive factor, got {factor:g}")
    v = np.array(ssv.vertices)
    return replace(ssv, radius=ssv.radius * factor, vertices=points_of((v - v.mean(axis=0)) * factor + v.mean(axis=0)))


def with_vertex(ssv: Ssv, k: int, place: np.ndarray) -> Ssv:
    """One vertex put elsewhere, (3,) in the link's frame [m]."""
    v = np.array(ssv.vertices)
    v[k] = place
    return replace(ssv, vertices=points_of(v))


def points_of(rows: np.ndarray) -> tuple[Vec3, ...]:
    """Rows (n, 3) as a volume holds them, to a micrometre: what a person can read in a file."""
    rounded = np.round(np.asarray(rows, dtype=float), 6) + 0.0
    return tuple((float(x), float(y), float(z)) for x, y, z in rounded)


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """The wanted name, or with the first free number behind it."""
    names = set(taken)
    if wanted not in names:
        return wanted
    stem, _, number = wanted.rpartition("_")
    stem = stem if number.isdigit() and stem else wanted
    return next(f"{stem}_{k}" for k in range(2, len(names) + 3) if f"{stem}_{k}" not in names)


def checked_name(name: str) -> str:
    """A name that a pair in the file can call.

    Raises:
        RobotError: it cannot be one.
    """
    if not name or name != name.strip() or any(c in name for c in ":+,/[]{}#\n"):
        raise RobotError(f"'{name}' cannot be a name: letters, digits, _ and - please")
    return name
