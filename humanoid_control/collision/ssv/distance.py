"""Distances of swept-sphere volumes, and of segments of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import NearPairs, PairsFound, pair_joints
from humanoid_control.collision.ssv.distance_kernels import (
    CORE,
    DISTANCE,
    FIRST,
    FUNCTIONS,
    LANES,
    MEET,
    NORMAL,
    POINT_0,
    POINT_1,
    RADIUS,
    ROWS,
    SECOND,
    measure_block,
)
from humanoid_control.collision.ssv.model import (
    BROAD_PHASES,
    NO_BOXES,
    OBB,
    PlacedSegments,
    SegmentArrays,
    SsvModel,
    bounds_apart,
    boxes_apart,
    place_segments,
)
from humanoid_control.compiled.array_types import F1, F2, I1, I2, I3
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError, UnknownNameError

CODES = 9  # number of codes of type pairs
COLUMNS = 11  # of a result: d, normal, points on both surfaces, core distance

# -------- Many pairs of volumes of the same two types


@dataclass(frozen=True)
class VolumeDistances:
    """Signed distances of P pairs (Schwienbacher 2014, eq. (6.9) to (6.11)).

    Attributes:
        distance: d = d* - r0 - r1 (P,) [m], negative inside.
        normal: unit vector to the second (P, 3), the gradient of d by its motions.
        point_0: nearest points of the first (P, 3) [m].
        point_1: nearest points of the second, point_0 + d normal (P, 3) [m].
        penetrating: True where cores meet (P,); the normal is then a rule's.
    """

    distance: np.ndarray
    normal: np.ndarray
    point_0: np.ndarray
    point_1: np.ndarray
    core: np.ndarray

    @property
    def penetrating(self) -> np.ndarray:
        return self.core <= MEET

    @classmethod
    def of(cls, table: np.ndarray) -> VolumeDistances:
        """Return the columns of a table (P, COLUMNS) as views."""
        return cls(table[:, 0], table[:, 1:4], table[:, 4:7], table[:, 7:10], table[:, 10])


@kernel
def measure_blocks(code: int, blocks: np.ndarray, total: int) -> None:
    """Measure the first `total` pairs of blocks (B, ROWS * LANES) with one function."""
    for b in range(blocks.shape[0]):
        measure_block(code, blocks[b], min(LANES, total - b * LANES))


def to_blocks(vertices_0: np.ndarray, radius_0: np.ndarray, vertices_1: np.ndarray, radius_1: np.ndarray) -> np.ndarray:
    """Pack P pairs into blocks (B, ROWS * LANES)."""
    total = len(radius_0)
    rows = np.zeros((ROWS, -(-total // LANES) * LANES))
    for row, vertices in ((FIRST, np.asarray(vertices_0)), (SECOND, np.asarray(vertices_1))):
        for k in range(vertices.shape[1]):
            rows[row + 3 * k : row + 3 * k + 3, :total] = vertices[:, k].T
    rows[RADIUS, :total], rows[RADIUS + 1, :total] = radius_0, radius_1
    return np.ascontiguousarray(rows.reshape(ROWS, -1, LANES).swapaxes(0, 1)).reshape(-1, ROWS * LANES)


def from_blocks(blocks: np.ndarray, total: int) -> VolumeDistances:
    """Return the results in the first `total` lanes of measured blocks."""
    rows = blocks.reshape(-1, ROWS, LANES)[:, DISTANCE : DISTANCE + COLUMNS]
    return VolumeDistances.of(rows.swapaxes(1, 2).reshape(-1, COLUMNS)[:total])


def volume_distances(
    function: str, vertices_0: np.ndarray, radius_0: np.ndarray, vertices_1: np.ndarray, radius_1: np.ndarray
) -> VolumeDistances:
    """Return the signed distances of P pairs by one of the nine functions.

    Args:
        function: types of first and second: p point, l line, t triangle (table 6.1).
        vertices_0: first vertices (P, n, 3) [m]; n = 1 point, 2 line, 3 triangle.

    Raises:
        UnknownNameError: if there is no such function.
    """
    if function[::-1] in FUNCTIONS and function not in FUNCTIONS:
        r = volume_distances(function[::-1], vertices_1, radius_1, vertices_0, radius_0)
        return VolumeDistances(r.distance, -r.normal, r.point_1, r.point_0, r.core)
    if function not in FUNCTIONS:
        raise UnknownNameError("distance function", function, [*FUNCTIONS, "lp", "tp", "tl"])
    blocks = to_blocks(vertices_0, radius_0, vertices_1, radius_1)
    measure_blocks(FUNCTIONS[function], blocks, len(radius_0))
    return from_blocks(blocks, len(radius_0))


# -------- The nearest pair of volumes of every pair of segments


class Lanes(NamedTuple):
    """Memory of `nearest_volumes`.

    Attributes:
        pairs: segment and volume pair of each lane (CODES, LANES + 1, 2); counts in the last row.
        last_normal: last normal with separated cores (P, 3), or zero; intersecting cores are pushed back that way.
    """

    blocks: F2
    pairs: I3
    table: F2
    nearest: I1
    last_normal: F2

    @classmethod
    def of(cls, pairs: int) -> Lanes:
        """Allocate memory for a number of segment pairs."""
        return cls(
            np.zeros((CODES, ROWS * LANES)),
            np.zeros((CODES, LANES + 1, 2), dtype=np.int64),
            np.zeros((pairs, COLUMNS)),
            np.zeros(pairs, dtype=np.int64),
            np.zeros((pairs, 3)),
        )


class VolumesFound(NamedTuple):
    """Results of `nearest_volumes`."""

    pairs: PairsFound
    volumes: I2
    core: F1


@kernel
def nearest_volumes(
    a: SegmentArrays, placed: PlacedSegments, broad_phase: int, activation: float, w: Lanes, out: VolumesFound
) -> int:
    """Find the nearest volumes of every pair of segments below the activation distance; return their number.

    Args:
        broad_phase: NO_BOXES, OBB or AABB.
        activation: [m], may be infinite.
    """
    pair_rows, volume_pairs, table, last_normal = a.pair_rows, a.volume_pairs, w.table, w.last_normal
    for code in range(CODES):
        w.pairs[code, LANES, 0] = 0
    for k in range(pair_rows.shape[0]):
        table[k, 0] = np.inf
        i, j = pair_rows[k, 0], pair_rows[k, 1]
        if broad_phase != NO_BOXES and bounds_apart(placed.bounds[i], placed.bounds[j], activation):
            continue
        if broad_phase == OBB and boxes_apart(placed.boxes[i], placed.boxes[j], activation):
            continue
        for m in range(pair_rows[k, 2], pair_rows[k, 3]):
            code = volume_pairs[m, 2]
            # Put the pair of volumes into the next lane of its function.
            lane = w.pairs[code, LANES, 0]
            w.pairs[code, lane, 0], w.pairs[code, lane, 1], w.pairs[code, LANES, 0] = k, m, lane + 1
            if lane + 1 == LANES:
                measure_lanes(code, a, placed.vertices, w)
    for code in range(CODES):
        if w.pairs[code, LANES, 0] > 0:
            measure_lanes(code, a, placed.vertices, w)
    found, count = out.pairs, 0
    for k in range(pair_rows.shape[0]):
        if table[k, 0] >= activation:
            continue
        m = w.nearest[k]
        i, j = volume_pairs[m, 0], volume_pairs[m, 1]
        # Volume pairs are stored with the simpler type first; restore the order of the segments.
        if volume_pairs[m, 3] == 1:
            i, j = j, i
        out.volumes[count, 0], out.volumes[count, 1], out.core[count] = i, j, table[k, 10]
        found.pair[count], found.distance[count] = k, table[k, 0]
        for c in range(3):
            found.normal[count, c], found.point_1[count, c] = table[k, 1 + c], table[k, 4 + c]
            found.point_2[count, c] = table[k, 7 + c]
        x, y, z = last_normal[k, 0], last_normal[k, 1], last_normal[k, 2]
        # Cores apart: remember the normal. Cores that meet: use the remembered normal, if there is one.
        if table[k, 10] > MEET:
            last_normal[k, 0], last_normal[k, 1], last_normal[k, 2] = table[k, 1], table[k, 2], table[k, 3]
        elif x * x + y * y + z * z > 0.5:
            turn_normal(found, count, last_normal[k], a.radii[i])
        count += 1
    return count


@kernel
def load_block(code: int, a: SegmentArrays, vertices: np.ndarray, w: Lanes) -> None:
    block, lanes = w.blocks[code], w.pairs[code]
    count = min(lanes[LANES, 0], LANES)
    for side in range(2):
        row = (FIRST if side == 0 else SECOND) * LANES
        # Type code + 1 is the number of vertices.
        for v in range((code // 3 if side == 0 else code % 3) + 1):
            for lane in range(count):
                i = a.volume_pairs[lanes[lane, 1], side]
                block[row + lane] = vertices[i, v, 0]
                block[row + LANES + lane] = vertices[i, v, 1]
                block[row + 2 * LANES + lane] = vertices[i, v, 2]
            row += 3 * LANES
        for lane in range(count):
            block[(RADIUS + side) * LANES + lane] = a.radii[a.volume_pairs[lanes[lane, 1], side]]


@kernel
def measure_lanes(code: int, a: SegmentArrays, vertices: np.ndarray, w: Lanes) -> None:
    """Measure the used lanes, keep the nearest result of each pair, and empty the lanes.

    NaN is kept: a pair that cannot be measured must not seem far away.
    """
    load_block(code, a, vertices, w)
    block, lanes, table = w.blocks[code], w.pairs[code], w.table
    measure_block(code, block, lanes[LANES, 0])
    for lane in range(lanes[LANES, 0]):
        k, d = lanes[lane, 0], block[DISTANCE * LANES + lane]
        # The second condition keeps a stored NaN.
        if d >= table[k, 0] or table[k, 0] != table[k, 0]:
            continue
        swapped = a.volume_pairs[lanes[lane, 1], 3] == 1
        sign, first, second = (-1.0, POINT_1, POINT_0) if swapped else (1.0, POINT_0, POINT_1)
        table[k, 0], table[k, 10] = d, block[CORE * LANES + lane]
        for c in range(3):
            table[k, 1 + c] = sign * block[(NORMAL + c) * LANES + lane]
            table[k, 4 + c] = block[(first + c) * LANES + lane]
            table[k, 7 + c] = block[(second + c) * LANES + lane]
        w.nearest[k] = lanes[lane, 1]
    lanes[LANES, 0] = 0


@kernel
def turn_normal(found: PairsFound, k: int, normal: np.ndarray, radius_0: float) -> None:
    """Replace the normal of a result; the contact of the cores stays."""
    for c in range(3):
        # Core point behind the first surface point.
        core = found.point_1[k, c] - radius_0 * found.normal[k, c]
        found.normal[k, c] = normal[c]
        found.point_1[k, c] = core + radius_0 * normal[c]
        found.point_2[k, c] = found.point_1[k, c] + found.distance[k] * normal[c]


# -------- The segments of one mechanism: placed, then asked


class SegmentMemory(NamedTuple):
    """Memory of the kernels of one mechanism."""

    arrays: SegmentArrays
    placed: PlacedSegments
    lanes: Lanes
    found: VolumesFound


@kernel
def place_at(table: Table[SegmentMemory], poses: np.ndarray) -> None:
    """Call `place_segments` for packed `SegmentMemory`."""
    m = unpack(table, SegmentMemory)
    place_segments(poses, m.arrays, m.placed)


@kernel
def nearest_at(table: Table[SegmentMemory], broad_phase: int, activation: float) -> int:
    """Call `nearest_volumes` for packed `SegmentMemory`."""
    m = unpack(table, SegmentMemory)
    return nearest_volumes(m.arrays, m.placed, broad_phase, activation, m.lanes, m.found)


@kernel
def measure_segments(
    table: Table[SegmentMemory], R: np.ndarray, p: np.ndarray, poses: np.ndarray, activation: float
) -> int:
    """Place the segments at joint poses R (J, 3, 3), p (J, 3) and find the near pairs.

    Args:
        activation: [m], finite.
    """
    for j in range(poses.shape[0]):
        # Layout of PoseArray: columns of the rotation, then the position.
        for i in range(3):
            poses[j, i], poses[j, 3 + i], poses[j, 6 + i], poses[j, 9 + i] = R[j, i, 0], R[j, i, 1], R[j, i, 2], p[j, i]
    m = unpack(table, SegmentMemory)
    place_segments(poses, m.arrays, m.placed)
    # The type that other callers pass: a literal would compile a second version of the kernels.
    return nearest_volumes(m.arrays, m.placed, np.int64(OBB), activation, m.lanes, m.found)


@dataclass(frozen=True)
class NearSegments(NearPairs):
    """Near pairs of segments, each with its nearest pair of volumes.

    Attributes:
        volumes: nearest volumes (k, 2).
        core: core distance d* = distance + r1 + r2 (k,) [m].
    """

    volumes: np.ndarray
    core: np.ndarray

    @property
    def penetrating(self) -> np.ndarray:
        """True where the cores touch (k,): a safety layer should stop the robot."""
        return self.core <= MEET

    def where(self, rows: np.ndarray) -> NearSegments:
        """Select results by rows or by a mask (k,)."""
        found = PairsFound(*(a[rows] for a in self.found))
        return NearSegments(found, self.joints, self.volumes[rows], self.core[rows])


class SegmentPairs:
    """Pairs of segments of one mechanism, with memory.

    Call `place`, then `nearest`; results are copies.
    """

    def __init__(
        self, model: SsvModel, ancestor_mask: np.ndarray, activation: float = math.inf, broad_phase: str = "obb"
    ) -> None:
        """Allocate the memory.

        Args:
            ancestor_mask: as `Robot.ancestor_mask` (njoints, nv).
            broad_phase: 'obb', 'aabb' or 'none'.

        Raises:
            UnknownNameError: if the broad phase is unknown.
            ConfigError: if the activation distance is NaN.
        """
        if broad_phase not in BROAD_PHASES:
            raise UnknownNameError("broad phase", broad_phase, BROAD_PHASES)
        if math.isnan(activation):
            raise ConfigError("the activation distance must be in metres, or inf")
        self.model, self.activation, self.broad_phase = model, activation, broad_phase
        self.joints = Packed(pair_joints(model.arrays.joint, model.arrays.pair_rows, ancestor_mask))
        count = len(model.pairs)
        self.placed, self._lanes = PlacedSegments.of(model.arrays), Lanes.of(count)
        volumes = np.zeros((count, 2), dtype=np.int64)
        self._out = VolumesFound(PairsFound.buffer(count), volumes, np.zeros(count))
        self.packed = Packed(SegmentMemory(model.arrays, self.placed, self._lanes, self._out))

    def place(self, poses: np.ndarray) -> None:
        """Move the segments to the joint poses (J, 12) of a PoseArray."""
        place_at(self.packed.table, poses)

    def nearest(self, activation: float | None = None) -> NearSegments:
        """Return the nearest volumes of every pair below the activation distance, default: the constructor's [m]."""
        d_a = self.activation if activation is None else activation
        # An infinite distance excludes no pair.
        boxes = BROAD_PHASES[self.broad_phase] if d_a < math.inf else NO_BOXES
        n = nearest_at(self.packed.table, boxes, d_a)
        out = self._out
        return NearSegments(out.pairs.first(n), self.joints, out.volumes[:n].copy(), out.core[:n].copy())

    def reset(self) -> None:
        """Discard remembered normals, as after a jump."""
        self._lanes.last_normal[:] = 0.0
