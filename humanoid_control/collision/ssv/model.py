"""Segments of a mechanism as arrays, their world poses, and boxes that exclude far pairs.

If boxes enlarged by half the relevant distance do not overlap, their segments are farther apart: the midpoint of the
shortest connection would lie in both (Schwienbacher 2014, section 6.7).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.distance_kernels import TYPE_NAMES
from humanoid_control.collision.ssv.segments import Segment, SegmentPair, expand
from humanoid_control.compiled.array_types import F1, F2, F3, I1, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import RobotError, UnknownNameError

# -------- Boxes

NO_BOXES, OBB, AABB = range(3)
BROAD_PHASES = {"none": NO_BOXES, "obb": OBB, "aabb": AABB}
BOX_COLUMNS = 15  # of an oriented box: centre, axes (a rotation matrix by rows), half sides
PARALLEL = 1e-12  # prevents the cross product of parallel axes from separating boxes


def tight_box(vertices: np.ndarray, radii: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return the smallest box (BOX_COLUMNS,) with given axes around volumes.

    Args:
        R: axes as columns (3, 3).
    """
    local = vertices @ R
    low, high = (local - radii[:, None, None]).min(axis=(0, 1)), (local + radii[:, None, None]).max(axis=(0, 1))
    return np.concatenate([R @ (low + high) / 2, R.ravel(), (high - low) / 2])


@kernel
def boxes_apart(a: np.ndarray, b: np.ndarray, distance: float) -> bool:
    """Return True if two oriented boxes, enlarged by distance / 2, do not touch: fifteen separating axes."""
    x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    # Enlarge both boxes by half the distance.
    h = 0.5 * distance
    ax, ay, az = a[12] + h, a[13] + h, a[14] + h
    bx, by, bz = b[12] + h, b[13] + h, b[14] + h
    # In the frame of a: t between the centres, r the axes of b, m their magnitudes.
    tx, ty, tz = a[3] * x + a[6] * y + a[9] * z, a[4] * x + a[7] * y + a[10] * z, a[5] * x + a[8] * y + a[11] * z
    rxx = a[3] * b[3] + a[6] * b[6] + a[9] * b[9]
    rxy = a[3] * b[4] + a[6] * b[7] + a[9] * b[10]
    rxz = a[3] * b[5] + a[6] * b[8] + a[9] * b[11]
    mxx, mxy, mxz = abs(rxx) + PARALLEL, abs(rxy) + PARALLEL, abs(rxz) + PARALLEL
    if abs(tx) > ax + bx * mxx + by * mxy + bz * mxz:
        return True
    ryx = a[4] * b[3] + a[7] * b[6] + a[10] * b[9]
    ryy = a[4] * b[4] + a[7] * b[7] + a[10] * b[10]
    ryz = a[4] * b[5] + a[7] * b[8] + a[10] * b[11]
    myx, myy, myz = abs(ryx) + PARALLEL, abs(ryy) + PARALLEL, abs(ryz) + PARALLEL
    if abs(ty) > ay + bx * myx + by * myy + bz * myz:
        return True
    rzx = a[5] * b[3] + a[8] * b[6] + a[11] * b[9]
    rzy = a[5] * b[4] + a[8] * b[7] + a[11] * b[10]
    rzz = a[5] * b[5] + a[8] * b[8] + a[11] * b[11]
    mzx, mzy, mzz = abs(rzx) + PARALLEL, abs(rzy) + PARALLEL, abs(rzz) + PARALLEL
    if abs(tz) > az + bx * mzx + by * mzy + bz * mzz:
        return True
    # The axes of b, then the nine cross products.
    return (
        abs(tx * rxx + ty * ryx + tz * rzx) > bx + ax * mxx + ay * myx + az * mzx
        or abs(tx * rxy + ty * ryy + tz * rzy) > by + ax * mxy + ay * myy + az * mzy
        or abs(tx * rxz + ty * ryz + tz * rzz) > bz + ax * mxz + ay * myz + az * mzz
        or abs(tz * ryx - ty * rzx) > ay * mzx + az * myx + by * mxz + bz * mxy
        or abs(tz * ryy - ty * rzy) > ay * mzy + az * myy + bx * mxz + bz * mxx
        or abs(tz * ryz - ty * rzz) > ay * mzz + az * myz + bx * mxy + by * mxx
        or abs(tx * rzx - tz * rxx) > ax * mzx + az * mxx + by * myz + bz * myy
        or abs(tx * rzy - tz * rxy) > ax * mzy + az * mxy + bx * myz + bz * myx
        or abs(tx * rzz - tz * rxz) > ax * mzz + az * mxz + bx * myy + by * myx
        or abs(ty * rxx - tx * ryx) > ax * myx + ay * mxx + by * mzz + bz * mzy
        or abs(ty * rxy - tx * ryy) > ax * myy + ay * mxy + bx * mzz + bz * mzx
        or abs(ty * rxz - tx * ryz) > ax * myz + ay * mxz + bx * mzy + by * mzx
    )


@kernel
def bounds_apart(a: np.ndarray, b: np.ndarray, distance: float) -> bool:
    """Return True if boxes (low, high) along the world axes are farther apart than `distance` [m]."""
    return (
        max(a[0] - b[3], b[0] - a[3]) > distance
        or max(a[1] - b[4], b[1] - a[4]) > distance
        or max(a[2] - b[5], b[2] - a[5]) > distance
    )


# -------- Segments and pairs as arrays

Frame = tuple[int, np.ndarray, np.ndarray]  # joint that carries a link, rotation (3, 3) and position (3,) in it


class SegmentArrays(NamedTuple):
    """N volumes in S segments, with P pairs, for kernels.

    Attributes:
        radii: (N,) [m].
        vertices: in the joint frame (N, 3, 3) [m]; unused ones are the mean.
        kinds: 0 point, 1 line, 2 triangle (N,).
        start: first volume of each segment (S + 1,).
        boxes: oriented box in the joint frame (S, 15): centre, axes, half sides.
        pair_rows: both segments, and the range of rows in volume_pairs (P, 4).
        volume_pairs: two volumes, the simpler type first, their function code, 1 if exchanged (M, 4).
    """

    radii: F1
    vertices: F3
    kinds: I1
    start: I1
    joint: I1
    boxes: F2
    pair_rows: I2
    volume_pairs: I2


@dataclass(frozen=True)
class SsvModel:
    """Segments of one mechanism, and the pairs that must not touch."""

    segments: tuple[Segment, ...]
    pairs: tuple[SegmentPair, ...]
    arrays: SegmentArrays

    @classmethod
    def build(
        cls, segments: Iterable[Segment], frames: Mapping[str, Frame], pairs: Iterable[SegmentPair] = ()
    ) -> SsvModel:
        """Build the model.

        Args:
            frames: link -> (joint, rotation, position in the joint frame).

        Raises:
            UnknownNameError: if a link, segment or group does not exist.
            RobotError: if a segment is paired with itself.
        """
        plain, pairs = expand(segments), tuple(pairs)
        radii, vertices, kinds, start, joint, boxes = [], [], [], [0], [], []
        for s in plain:
            if s.link not in frames:
                raise UnknownNameError("link", s.link, frames, hint=f"(segment '{s.name}')")
            j, R, p = frames[s.link]
            for v in s.volumes:
                corners = [*v.vertices, *[np.mean(v.vertices, axis=0)] * (3 - len(v.vertices))]
                vertices.append(np.array(corners) @ R.T + p)
                radii.append(v.radius)
                kinds.append(TYPE_NAMES.index(v.type))
            start.append(len(radii))
            joint.append(j)
            first = start[-2]
            boxes.append(tight_box(np.array(vertices[first:]), np.array(radii[first:]), np.asarray(R, dtype=float)))
        arrays = SegmentArrays(
            np.array(radii, dtype=float),
            np.array(vertices, dtype=float).reshape(-1, 3, 3),
            np.array(kinds, dtype=np.int64),
            np.array(start, dtype=np.int64),
            np.array(joint, dtype=np.int64),
            np.array(boxes, dtype=float).reshape(-1, BOX_COLUMNS),
            *_pair_tables(pairs, plain, start, kinds),
        )
        return cls(plain, pairs, arrays)

    def names(self, pair: int) -> tuple[str, str]:
        """Return the names of both segments of a pair."""
        return self.pairs[pair].first, self.pairs[pair].second

    def volume_name(self, volume: int) -> str:
        """Return 'segment.volume' of a volume index."""
        start = self.arrays.start
        s = int(np.searchsorted(start, volume, side="right")) - 1
        return f"{self.segments[s].name}.{self.segments[s].volumes[volume - int(start[s])].name}"


def _pair_tables(
    pairs: tuple[SegmentPair, ...], segments: tuple[Segment, ...], start: list[int], kinds: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return (pair_rows, volume_pairs) of SegmentArrays."""
    index = {s.name: k for k, s in enumerate(segments)}
    rows: list[tuple[int, int, int, int]] = []
    volumes: list[tuple[int, int, int, int]] = []
    for pair in pairs:
        first = len(volumes)
        sides = [
            _chosen(name, wanted, segments, index, start)
            for name, wanted in ((pair.first, pair.groups_1), (pair.second, pair.groups_2))
        ]
        if pair.first == pair.second:
            raise RobotError(f"segment '{pair.first}' is paired with itself")
        for i, j in product(*sides):
            swap = kinds[i] > kinds[j]
            a, b = (j, i) if swap else (i, j)
            volumes.append((a, b, 3 * kinds[a] + kinds[b], int(swap)))
        rows.append((index[pair.first], index[pair.second], first, len(volumes)))
    return np.array(rows, dtype=np.int64).reshape(-1, 4), np.array(volumes, dtype=np.int64).reshape(-1, 4)


def _chosen(
    name: str, wanted: tuple[str, ...], segments: tuple[Segment, ...], index: dict[str, int], start: list[int]
) -> list[int]:
    if name not in index:
        raise UnknownNameError("segment", name, index, hint="(in a pair)")
    ssvs = segments[index[name]].volumes
    own = {v.group for v in ssvs if v.group}
    for g in wanted:
        if g not in own:
            raise UnknownNameError("group", g, own, hint=f"(segment '{name}' in a pair)")
    return [start[index[name]] + k for k, v in enumerate(ssvs) if not wanted or v.group in wanted]


class PlacedSegments(NamedTuple):
    """Segments in the world.

    Attributes:
        bounds: world-aligned low and high corners (S, 6).
    """

    vertices: F3
    boxes: F2
    bounds: F2

    @classmethod
    def of(cls, arrays: SegmentArrays) -> PlacedSegments:
        """Allocate memory for the segments of a model."""
        volumes, segments = len(arrays.radii), len(arrays.joint)
        return cls(np.zeros((volumes, 3, 3)), np.zeros((segments, BOX_COLUMNS)), np.zeros((segments, 6)))


@kernel
def place_segments(poses: np.ndarray, arrays: SegmentArrays, out: PlacedSegments) -> None:
    """Move all volumes and boxes to the joint `poses` (J, 12)."""
    joint, start, vertices, radii, boxes = arrays.joint, arrays.start, arrays.vertices, arrays.radii, arrays.boxes
    out_vertices, out_boxes, out_bounds = out.vertices, out.boxes, out.bounds
    for s in range(joint.shape[0]):
        X = poses[joint[s]]
        low0, low1, low2, high0, high1, high2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(start[s], start[s + 1]):
            r = radii[i]
            for k in range(3):
                a, b, c = vertices[i, k, 0], vertices[i, k, 1], vertices[i, k, 2]
                # Pose layout: three columns of the rotation, then the position.
                x = X[9] + X[0] * a + X[3] * b + X[6] * c
                y = X[10] + X[1] * a + X[4] * b + X[7] * c
                z = X[11] + X[2] * a + X[5] * b + X[8] * c
                out_vertices[i, k, 0], out_vertices[i, k, 1], out_vertices[i, k, 2] = x, y, z
                if i == start[s] and k == 0:  # not from infinity: NaN must persist
                    low0, low1, low2, high0, high1, high2 = x - r, y - r, z - r, x + r, y + r, z + r
                # World-aligned bounds of all vertices with their radii.
                low0, low1, low2 = min(low0, x - r), min(low1, y - r), min(low2, z - r)
                high0, high1, high2 = max(high0, x + r), max(high1, y + r), max(high2, z + r)
        # NaN in one coordinate makes the sum NaN.
        total = low0 + low1 + low2 + high0 + high1 + high2
        if total != total:  # with one NaN coordinate, no other may exclude the segment
            low0, low1, low2, high0, high1, high2 = total, total, total, total, total, total
        out_bounds[s, 0], out_bounds[s, 1], out_bounds[s, 2] = low0, low1, low2
        out_bounds[s, 3], out_bounds[s, 4], out_bounds[s, 5] = high0, high1, high2
        a, b, c = boxes[s, 0], boxes[s, 1], boxes[s, 2]
        for r3 in range(3):
            x, y, z = X[r3], X[3 + r3], X[6 + r3]
            # Centre and axes move with the joint; half sides are constant.
            out_boxes[s, r3] = X[9 + r3] + x * a + y * b + z * c
            for k in range(3):
                out_boxes[s, 3 + 3 * r3 + k] = x * boxes[s, 3 + k] + y * boxes[s, 6 + k] + z * boxes[s, 9 + k]
            out_boxes[s, 12 + r3] = boxes[s, 12 + r3]


# -------- Poses of joints as one array, read from pinocchio's data without copying

POSE_COLUMNS = 12  # three columns of the rotation, then the position


class PoseArray:
    """Poses of all joints as rows (J, 12): columns of the rotation, then the position.

    The layout of pinocchio is viewed without a copy where possible.

    Attributes:
        data: source; keeps the memory alive.
    """

    def __init__(self, data: pin.Data) -> None:
        """View the poses of `data`, which may be updated but not replaced."""
        self.data = data
        count = len(data.oMi)
        address = data.oMi[0].rotation.__array_interface__["data"][0]
        last = data.oMi[count - 1].translation.__array_interface__["data"][0]
        self._in_place = last - address == 8 * (POSE_COLUMNS * count - 3)
        if self._in_place:
            memory = (ctypes.c_double * (POSE_COLUMNS * count)).from_address(address)
            self._rows = np.ctypeslib.as_array(memory).reshape(count, POSE_COLUMNS)
            self._in_place = bool(np.array_equal(self._rows, pose_array(list(data.oMi)), equal_nan=True))
        if not self._in_place:
            self._rows = np.empty((count, POSE_COLUMNS))

    def rows(self) -> np.ndarray:
        """Return the present poses (J, 12), valid until the next call or update."""
        if not self._in_place:
            self._rows[:] = pose_array(list(self.data.oMi))
        return self._rows


def pose_array(poses: list[pin.SE3]) -> np.ndarray:
    """Return the same layout for a list of poses."""
    return np.array([np.concatenate([X.rotation.T.ravel(), X.translation]) for X in poses]).reshape(-1, POSE_COLUMNS)
