"""Distances of swept-sphere volumes: of many pairs of one kind, and the nearest of every pair of segments.

`volume_distances` measures P pairs of volumes of the same two types. `SegmentPairs` places the segments of a mechanism
and finds, for every pair of them that is near, the nearest pair of their volumes, in one call.
"""

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
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2, I1, I2, I3
from humanoid_control.numerics.packed import Packed, Table, unpack

CODES = 9  # of pairs of types
COLUMNS = 11  # of a result: d, normal, points on both surfaces, distance of the cores

# -------- Many pairs of volumes of the same two types


@dataclass(frozen=True)
class VolumeDistances:
    """Signed distances of P pairs (Schwienbacher 2014, eq. (6.9) to (6.11)).

    Attributes:
        distance: (P,) d = d* - r0 - r1 [m], negative inside.
        normal: (P, 3) unit vector from the first to the second; a motion of the second along it increases d.
        point_0: (P, 3) nearest points of the first surfaces [m].
        point_1: (P, 3) nearest points of the second surfaces, point_0 + d normal [m].
        core: (P,) d*, distance of the cores [m].
        penetrating: (P,) True where the cores themselves touch or pierce; the normal is then a rule's choice.
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
        """The columns of a table (P, COLUMNS), as views."""
        return cls(table[:, 0], table[:, 1:4], table[:, 4:7], table[:, 7:10], table[:, 10])


@kernel
def measure_blocks(code: int, blocks: np.ndarray, total: int) -> None:
    """Measure the first `total` pairs of some blocks, all of one function.

    Args:
        code: of FUNCTIONS.
        blocks: (B, ROWS * LANES) from `to_blocks`; the rows of results are filled.
        total: number of pairs.
    """
    for b in range(blocks.shape[0]):
        measure_block(code, blocks[b], min(LANES, total - b * LANES))


def to_blocks(vertices_0: np.ndarray, radius_0: np.ndarray, vertices_1: np.ndarray, radius_1: np.ndarray) -> np.ndarray:
    """P pairs as blocks (B, ROWS * LANES), in the order of `volume_distances`."""
    total = len(radius_0)
    rows = np.zeros((ROWS, -(-total // LANES) * LANES))
    for row, vertices in ((FIRST, np.asarray(vertices_0)), (SECOND, np.asarray(vertices_1))):
        for k in range(vertices.shape[1]):
            rows[row + 3 * k : row + 3 * k + 3, :total] = vertices[:, k].T
    rows[RADIUS, :total], rows[RADIUS + 1, :total] = radius_0, radius_1
    return np.ascontiguousarray(rows.reshape(ROWS, -1, LANES).swapaxes(0, 1)).reshape(-1, ROWS * LANES)


def from_blocks(blocks: np.ndarray, total: int) -> VolumeDistances:
    """The results in the first `total` lanes of measured blocks."""
    rows = blocks.reshape(-1, ROWS, LANES)[:, DISTANCE : DISTANCE + COLUMNS]
    return VolumeDistances.of(rows.swapaxes(1, 2).reshape(-1, COLUMNS)[:total])


def volume_distances(
    function: str, vertices_0: np.ndarray, radius_0: np.ndarray, vertices_1: np.ndarray, radius_1: np.ndarray
) -> VolumeDistances:
    """Signed distances of P pairs by one of the nine functions, all in one frame.

    Args:
        function: two letters for the types of first and second: p point, l line, t triangle. `lp`, `tp` and `tl` are
            `pl`, `pt` and `lt` with the arguments exchanged (table 6.1).
        vertices_0: (P, n, 3) vertices of the first volumes [m]; n = 1 point, 2 line, 3 triangle.
        vertices_1: (P, n, 3) vertices of the second volumes [m].
        radius_0: (P,) radii of the first volumes [m].
        radius_1: (P,) radii of the second volumes [m].

    Raises:
        UnknownNameError: no such function.
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
        blocks: (CODES, ROWS * LANES) one block for each function.
        pairs: (CODES, LANES + 1, 2) pair of segments and of volumes in each lane; the last row counts them.
        table: (P, COLUMNS) nearest result of each pair of segments.
        nearest: (P,) its pair of volumes.
        last_normal: (P, 3) the normal each pair had when its cores were last apart; kept from call to call, so that
            cores that pierce each other are pushed back the way they came. Zero: none known.
    """

    blocks: F2
    pairs: I3
    table: F2
    nearest: I1
    last_normal: F2

    @classmethod
    def of(cls, pairs: int) -> Lanes:
        """Memory for so many pairs of segments."""
        return cls(
            np.zeros((CODES, ROWS * LANES)),
            np.zeros((CODES, LANES + 1, 2), dtype=np.int64),
            np.zeros((pairs, COLUMNS)),
            np.zeros(pairs, dtype=np.int64),
            np.zeros((pairs, 3)),
        )


class VolumesFound(NamedTuple):
    """Results of `nearest_volumes`; the first rows count.

    Attributes:
        pairs: of segments, rising.
        volumes: (P, 2) the nearest volumes of both.
        core: (P,) distance of the cores [m].
    """

    pairs: PairsFound
    volumes: I2
    core: F1


@kernel
def nearest_volumes(
    a: SegmentArrays, placed: PlacedSegments, broad_phase: int, activation: float, w: Lanes, out: VolumesFound
) -> int:
    """One result a pair of segments that is nearer than the activation distance.

    Pairs of volumes are collected by function until a block is full, and measured side by side.

    Args:
        a: segments and pairs.
        placed: from `place_segments`.
        broad_phase: NO_BOXES, OBB or AABB. Pairs that the boxes leave out are farther apart than `activation`.
        activation: [m], may be infinite.
        w: memory.
        out: filled.

    Returns:
        the number of rows that are filled.
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
        if volume_pairs[m, 3] == 1:
            i, j = j, i
        out.volumes[count, 0], out.volumes[count, 1], out.core[count] = i, j, table[k, 10]
        found.pair[count], found.distance[count] = k, table[k, 0]
        for c in range(3):
            found.normal[count, c], found.point_1[count, c] = table[k, 1 + c], table[k, 4 + c]
            found.point_2[count, c] = table[k, 7 + c]
        x, y, z = last_normal[k, 0], last_normal[k, 1], last_normal[k, 2]
        if table[k, 10] > MEET:
            last_normal[k, 0], last_normal[k, 1], last_normal[k, 2] = table[k, 1], table[k, 2], table[k, 3]
        elif x * x + y * y + z * z > 0.5:
            turn_normal(found, count, last_normal[k], a.radii[i])
        count += 1
    return count


@kernel
def load_block(code: int, a: SegmentArrays, vertices: np.ndarray, w: Lanes) -> None:
    """Put the volumes of all lanes in use into the block of their function."""
    block, lanes = w.blocks[code], w.pairs[code]
    count = min(lanes[LANES, 0], LANES)
    for side in range(2):
        row = (FIRST if side == 0 else SECOND) * LANES
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
    """Measure the lanes in use, keep the nearest for each pair of segments, and empty them.

    Results that are not numbers are kept as well: a pair that cannot be measured must not seem far.
    """
    load_block(code, a, vertices, w)
    block, lanes, table = w.blocks[code], w.pairs[code], w.table
    measure_block(code, block, lanes[LANES, 0])
    for lane in range(lanes[LANES, 0]):
        k, d = lanes[lane, 0], block[DISTANCE * LANES + lane]
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
    """Give a result another normal: the cores stay where they touch, the points on the surfaces follow."""
    for c in range(3):
        core = found.point_1[k, c] - radius_0 * found.normal[k, c]
        found.normal[k, c] = normal[c]
        found.point_1[k, c] = core + radius_0 * normal[c]
        found.point_2[k, c] = found.point_1[k, c] + found.distance[k] * normal[c]


# -------- The segments of one mechanism: placed, then asked


class SegmentMemory(NamedTuple):
    """All that the kernels of one mechanism take."""

    arrays: SegmentArrays
    placed: PlacedSegments
    lanes: Lanes
    found: VolumesFound


@kernel
def place_at(table: Table[SegmentMemory], poses: np.ndarray) -> None:
    """`place_segments` of packed `SegmentMemory`."""
    m = unpack(table, SegmentMemory)
    place_segments(poses, m.arrays, m.placed)


@kernel
def nearest_at(table: Table[SegmentMemory], broad_phase: int, activation: float) -> int:
    """`nearest_volumes` of packed `SegmentMemory`."""
    m = unpack(table, SegmentMemory)
    return nearest_volumes(m.arrays, m.placed, broad_phase, activation, m.lanes, m.found)


@kernel
def measure_segments(
    table: Table[SegmentMemory], R: np.ndarray, p: np.ndarray, poses: np.ndarray, activation: float
) -> int:
    """Place the segments at the poses R (J, 3, 3), p (J, 3) of the joints and find those that are near.

    Args:
        table: of packed `SegmentMemory`.
        poses: (J, 12) memory.
        activation: [m], finite.

    Returns:
        the number of rows that are filled, as `nearest_volumes`.
    """
    for j in range(poses.shape[0]):
        for i in range(3):
            poses[j, i], poses[j, 3 + i], poses[j, 6 + i], poses[j, 9 + i] = R[j, i, 0], R[j, i, 1], R[j, i, 2], p[j, i]
    m = unpack(table, SegmentMemory)
    place_segments(poses, m.arrays, m.placed)
    # Of the type that other callers give: a constant would be compiled as another version of all behind.
    return nearest_volumes(m.arrays, m.placed, np.int64(OBB), activation, m.lanes, m.found)


@dataclass(frozen=True)
class NearSegments(NearPairs):
    """One result for each pair of segments that is near: of the nearest of their volumes.

    Attributes:
        volumes: (k, 2) the nearest volume of either segment.
        core: (k,) distance d* of the cores [m]; distance = d* - r1 - r2.
    """

    volumes: np.ndarray
    core: np.ndarray

    @property
    def penetrating(self) -> np.ndarray:
        """(k,) True where the cores themselves touch: a safety layer should stop the robot."""
        return self.core <= MEET

    def where(self, rows: np.ndarray) -> NearSegments:
        """Some of the results, by their rows or by a mask (k,)."""
        found = PairsFound(*(a[rows] for a in self.found))
        return NearSegments(found, self.joints, self.volumes[rows], self.core[rows])


class SegmentPairs:
    """The pairs of segments of one mechanism, with all memory that measuring them takes.

    Each cycle: `place`, then `nearest`, which returns a copy.

    Attributes:
        model: segments and pairs.
        joints: that carry them, packed.
        packed: tables for the kernels.
    """

    def __init__(
        self, model: SsvModel, ancestor_mask: np.ndarray, activation: float = math.inf, broad_phase: str = "obb"
    ) -> None:
        """Create the segment pairs.

        Args:
            model: segments and pairs.
            ancestor_mask: (njoints, nv) 1 where a column of the Jacobian moves a joint.
            activation: d_a [m], pairs farther apart than this are left out; infinite: none is.
            broad_phase: 'obb', 'aabb' or 'none': the boxes that leave out far pairs without measuring them.

        Raises:
            UnknownNameError: another broad phase.
            ConfigError: an activation distance that is not a number.
        """
        if broad_phase not in BROAD_PHASES:
            raise UnknownNameError("broad phase", broad_phase, BROAD_PHASES)
        if math.isnan(activation):
            raise ConfigError("the activation distance must be a number of metres, or inf")
        self.model, self.activation, self.broad_phase = model, activation, broad_phase
        self.joints = Packed(pair_joints(model.arrays.joint, model.arrays.pair_rows, ancestor_mask))
        count = len(model.pairs)
        self.placed, self._lanes = PlacedSegments.of(model.arrays), Lanes.of(count)
        volumes = np.zeros((count, 2), dtype=np.int64)
        self._out = VolumesFound(PairsFound.buffer(count), volumes, np.zeros(count))
        self.packed = Packed(SegmentMemory(model.arrays, self.placed, self._lanes, self._out))

    def place(self, poses: np.ndarray) -> None:
        """Move the segments to where the joints are; `poses` (J, 12) as in PoseArray."""
        place_at(self.packed.table, poses)

    def nearest(self, activation: float | None = None) -> NearSegments:
        """The nearest pair of volumes of every pair of segments nearer than the activation distance.

        Args:
            activation: instead of the one given on construction [m].
        """
        d_a = self.activation if activation is None else activation
        # Nothing is beyond an infinite distance.
        boxes = BROAD_PHASES[self.broad_phase] if d_a < math.inf else NO_BOXES
        n = nearest_at(self.packed.table, boxes, d_a)
        out = self._out
        return NearSegments(out.pairs.first(n), self.joints, out.volumes[:n].copy(), out.core[:n].copy())

    def forget(self) -> None:
        """Drop the normals remembered from earlier calls, as after a jump to another posture."""
        self._lanes.last_normal[:] = 0.0
