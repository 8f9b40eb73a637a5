"""The nearest pair of volumes of every pair of segments, in one call: the kernel for a real-time loop.

Also here:

* Many pairs of swept-sphere volumes of the same two types in one call.
* How the distance of each pair changes with the mechanism's velocity.
* Distances between the segments of one mechanism: placed, asked, and differentiated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
    AABB,
    BROAD_PHASES,
    OBB,
    SsvModel,
    bounds_apart,
    boxes_apart,
    place_segments,
)
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.jit import kernel

# -------- The nearest pair of volumes of every pair of segments, in one call: the kernel for a real-time loop


@kernel
def nearest_pairs(
    pair_rows: np.ndarray,
    volume_pairs: np.ndarray,
    radii: np.ndarray,
    vertices: np.ndarray,
    boxes: np.ndarray,
    bounds: np.ndarray,
    broad_phase: int,
    reach: float,
    blocks: np.ndarray,
    lanes: np.ndarray,
    table: np.ndarray,
    nearest: np.ndarray,
    last_normal: np.ndarray,
    out_pair: np.ndarray,
    out_table: np.ndarray,
    out_ssv: np.ndarray,
) -> int:
    """One result a pair of segments that is nearer than `reach`.

    Pairs of volumes are collected by function until a block is full, and measured side by side.

    Args:
        pair_rows, volume_pairs, radii: of SsvModel.
        vertices, boxes, bounds: from `place_segments`.
        broad_phase: NO_BOXES, OBB or AABB. What the boxes leave out is farther than `reach`.
        reach: [m], may be infinite.
        blocks: (9, ROWS * LANES), lanes: (9, LANES + 1, 2) integers, table: (P, 11), nearest: (P,): scratch.
        last_normal: (P, 3) the normal each pair had when its cores were last apart; kept from call to call, so that
            cores that pierce each other are pushed back the way they came (E-20). Zero: none known.
        out_pair: (P,) rows of pair_rows, rising. out_table: (P, 11) d, normal, points on both surfaces, distance of
            the cores. out_ssv: (P, 2) the two volumes. Filled.

    Returns:
        how many rows of the outputs are filled.
    """
    for code in range(9):
        lanes[code, LANES, 0] = 0
    for k in range(pair_rows.shape[0]):
        table[k, 0] = np.inf
        a, b = pair_rows[k, 0], pair_rows[k, 1]
        if (broad_phase == OBB and boxes_apart(boxes[a], boxes[b], reach)) or (
            broad_phase == AABB and bounds_apart(bounds[a], bounds[b], reach)
        ):
            continue
        for m in range(pair_rows[k, 2], pair_rows[k, 3]):
            code = volume_pairs[m, 2]
            lane = lanes[code, LANES, 0]
            lanes[code, lane, 0], lanes[code, lane, 1], lanes[code, LANES, 0] = k, m, lane + 1
            if lane + 1 == LANES:
                measure_lanes(code, blocks[code], lanes[code], volume_pairs, vertices, radii, table, nearest)
    for code in range(9):
        if lanes[code, LANES, 0] > 0:
            measure_lanes(code, blocks[code], lanes[code], volume_pairs, vertices, radii, table, nearest)
    count = 0
    for k in range(pair_rows.shape[0]):
        if table[k, 0] >= reach:
            continue
        m = nearest[k]
        i, j = volume_pairs[m, 0], volume_pairs[m, 1]
        if volume_pairs[m, 3] == 1:
            i, j = j, i
        out_pair[count], out_ssv[count, 0], out_ssv[count, 1] = k, i, j
        for c in range(11):
            out_table[count, c] = table[k, c]
        x, y, z = last_normal[k, 0], last_normal[k, 1], last_normal[k, 2]
        if table[k, 10] > MEET:
            last_normal[k, 0], last_normal[k, 1], last_normal[k, 2] = table[k, 1], table[k, 2], table[k, 3]
        elif x * x + y * y + z * z > 0.5:
            turn_normal(out_table[count], last_normal[k], radii[i])
        count += 1
    return count


@kernel
def load_block(
    block: np.ndarray, code: int, lanes: np.ndarray, volume_pairs: np.ndarray, vertices: np.ndarray, radii: np.ndarray
) -> None:
    """Put the volumes of all lanes in use into the block of their function."""
    count = min(lanes[LANES, 0], LANES)
    for side in range(2):
        row = (FIRST if side == 0 else SECOND) * LANES
        for v in range((code // 3 if side == 0 else code % 3) + 1):
            for lane in range(count):
                i = volume_pairs[lanes[lane, 1], side]
                block[row + lane] = vertices[i, v, 0]
                block[row + LANES + lane] = vertices[i, v, 1]
                block[row + 2 * LANES + lane] = vertices[i, v, 2]
            row += 3 * LANES
        for lane in range(count):
            block[(RADIUS + side) * LANES + lane] = radii[volume_pairs[lanes[lane, 1], side]]


@kernel
def measure_lanes(
    code: int,
    block: np.ndarray,
    lanes: np.ndarray,
    volume_pairs: np.ndarray,
    vertices: np.ndarray,
    radii: np.ndarray,
    table: np.ndarray,
    nearest: np.ndarray,
) -> None:
    """Measure the lanes in use, keep the nearest for each pair of segments, and empty them.

    What is not a number is kept as well: a pair that cannot be measured must not look far.
    """
    load_block(block, code, lanes, volume_pairs, vertices, radii)
    measure_block(code, block, lanes[LANES, 0])
    for lane in range(lanes[LANES, 0]):
        k, d = lanes[lane, 0], block[DISTANCE * LANES + lane]
        if d >= table[k, 0] or table[k, 0] != table[k, 0]:
            continue
        swapped = volume_pairs[lanes[lane, 1], 3] == 1
        sign, a, b = (-1.0, POINT_1, POINT_0) if swapped else (1.0, POINT_0, POINT_1)
        table[k, 0], table[k, 10] = d, block[CORE * LANES + lane]
        for c in range(3):
            table[k, 1 + c] = sign * block[(NORMAL + c) * LANES + lane]
            table[k, 4 + c] = block[(a + c) * LANES + lane]
            table[k, 7 + c] = block[(b + c) * LANES + lane]
        nearest[k] = lanes[lane, 1]
    lanes[LANES, 0] = 0


@kernel
def turn_normal(row: np.ndarray, normal: np.ndarray, radius_0: float) -> None:
    """Give a result another normal: the cores stay where they touch, the points on the surfaces follow."""
    for c in range(3):
        core = row[4 + c] - radius_0 * row[1 + c]
        row[1 + c] = normal[c]
        row[4 + c] = core + radius_0 * normal[c]
        row[7 + c] = row[4 + c] + row[0] * normal[c]


# -------- Many pairs of swept-sphere volumes of the same two types in one call

COLUMNS = 11  # of a result: d, normal, points on both surfaces, distance of the cores


@dataclass(frozen=True)
class SsvDistances:
    """Signed distances of P pairs (the source's result record, section 4.3).

    Attributes:
        distance: (P,) d = d* - r0 - r1 [m], negative inside.
        normal: (P, 3) unit vector from the first to the second; a motion of the second along it increases d.
        point_0, point_1: (P, 3) nearest points of the surfaces [m]; point_1 = point_0 + d normal.
        core: (P,) d*, distance of the cores [m].
        penetrating: (P,) whether the cores themselves touch or pierce; the normal is then a rule's choice.
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
    def of(cls, table: np.ndarray) -> SsvDistances:
        """The columns of a table (P, COLUMNS), as views."""
        return cls(table[:, 0], table[:, 1:4], table[:, 4:7], table[:, 7:10], table[:, 10])


@kernel
def measure_blocks(code: int, blocks: np.ndarray, total: int) -> None:
    """Measure the first `total` pairs of some blocks, all of one function.

    Args:
        code: of FUNCTIONS.
        blocks: (B, ROWS * LANES) from `pack`; the rows of results are filled.
        total: number of pairs.
    """
    for b in range(blocks.shape[0]):
        measure_block(code, blocks[b], min(LANES, total - b * LANES))


def pack(vertices_0: np.ndarray, radius_0: np.ndarray, vertices_1: np.ndarray, radius_1: np.ndarray) -> np.ndarray:
    """P pairs as blocks (B, ROWS * LANES), in the order of `distances`."""
    total = len(radius_0)
    rows = np.zeros((ROWS, -(-total // LANES) * LANES))
    for row, vertices in ((FIRST, np.asarray(vertices_0)), (SECOND, np.asarray(vertices_1))):
        for k in range(vertices.shape[1]):
            rows[row + 3 * k : row + 3 * k + 3, :total] = vertices[:, k].T
    rows[RADIUS, :total], rows[RADIUS + 1, :total] = radius_0, radius_1
    return np.ascontiguousarray(rows.reshape(ROWS, -1, LANES).swapaxes(0, 1)).reshape(-1, ROWS * LANES)


def unpack(blocks: np.ndarray, total: int) -> SsvDistances:
    """The results in the first `total` lanes of measured blocks."""
    rows = blocks.reshape(-1, ROWS, LANES)[:, DISTANCE : DISTANCE + COLUMNS]
    return SsvDistances.of(rows.swapaxes(1, 2).reshape(-1, COLUMNS)[:total])


def distances(
    function: str, vertices_0: np.ndarray, radius_0: np.ndarray, vertices_1: np.ndarray, radius_1: np.ndarray
) -> SsvDistances:
    """Signed distances of P pairs by one of the nine functions, all in one frame.

    Args:
        function: two letters for the types of first and second: p point, l line, t triangle. `lp`, `tp` and `tl` are
            `pl`, `pt` and `lt` with the arguments exchanged (table 6.1).
        vertices_0, vertices_1: (P, n, 3) [m]; n = 1 point, 2 line, 3 triangle.
        radius_0, radius_1: (P,) [m].

    Raises:
        UnknownNameError: no such function.
    """
    if function[::-1] in FUNCTIONS and function not in FUNCTIONS:
        r = distances(function[::-1], vertices_1, radius_1, vertices_0, radius_0)
        return SsvDistances(r.distance, -r.normal, r.point_1, r.point_0, r.core)
    if function not in FUNCTIONS:
        raise UnknownNameError("distance function", function, [*FUNCTIONS, "lp", "tp", "tl"])
    blocks = pack(vertices_0, radius_0, vertices_1, radius_1)
    measure_blocks(FUNCTIONS[function], blocks, len(radius_0))
    return unpack(blocks, len(radius_0))


# -------- How the distance of each pair changes with the mechanism's velocity


@kernel
def gradient_rows(
    J: np.ndarray,
    support: np.ndarray,
    pair_rows: np.ndarray,
    joint: np.ndarray,
    pair: np.ndarray,
    table: np.ndarray,
    columns: np.ndarray,
    out: np.ndarray,
) -> None:
    """d distance / d v = n . (velocity of the second core point - velocity of the first) (section 3.3, E-2).

    Both points lie on one line along n, so both have the same wrench (n, p x n): one product with all columns of the
    Jacobian, counted +1 where a column moves only the second segment, -1 where only the first, 0 where both or none.

    Args:
        J: (nv, 6) Jacobian of all joints at the world's origin, transposed: linear, then angular.
        support: (njoints, nv) 1 where a column moves a joint.
        pair_rows, joint: of SsvModel.
        pair, table: (k,), (k, 11) of `nearest_pairs`.
        columns: (6, nv) scratch. out: (k, nv), filled.
    """
    for c in range(6):
        for v in range(J.shape[0]):
            columns[c, v] = J[v, c]
    for k in range(out.shape[0]):
        n0, n1, n2 = table[k, 1], table[k, 2], table[k, 3]
        x, y, z = table[k, 4], table[k, 5], table[k, 6]
        m0, m1, m2 = y * n2 - z * n1, z * n0 - x * n2, x * n1 - y * n0
        first, second = joint[pair_rows[pair[k], 0]], joint[pair_rows[pair[k], 1]]
        for v in range(J.shape[0]):
            rate = n0 * columns[0, v] + n1 * columns[1, v] + n2 * columns[2, v]
            rate += m0 * columns[3, v] + m1 * columns[4, v] + m2 * columns[5, v]
            out[k, v] = (support[second, v] - support[first, v]) * rate


# -------- Distances between the segments of one mechanism: placed, asked, and differentiated


@dataclass(frozen=True)
class NearestSsv:
    """One result for each pair of segments that is near.

    Attributes:
        pair: (k,) indices into the model's pairs, rising.
        table: (k, 11) d, normal, point_0, point_1, core.
        ssv: (k, 2) the nearest volume of either segment.
    """

    pair: np.ndarray
    table: np.ndarray
    ssv: np.ndarray

    def __len__(self) -> int:
        return len(self.pair)

    @property
    def distance(self) -> np.ndarray:
        """(k,) signed distance [m]: d = d* - r0 - r1."""
        return self.table[:, 0]

    @property
    def normal(self) -> np.ndarray:
        """(k, 3) unit vector from the first segment to the second, world frame."""
        return self.table[:, 1:4]

    @property
    def point_0(self) -> np.ndarray:
        """(k, 3) nearest point on the first segment's surface, world frame [m]."""
        return self.table[:, 4:7]

    @property
    def point_1(self) -> np.ndarray:
        """(k, 3) on the second: point_0 + d normal."""
        return self.table[:, 7:10]

    @property
    def core(self) -> np.ndarray:
        """(k,) distance d* of the cores [m]."""
        return self.table[:, 10]

    @property
    def penetrating(self) -> np.ndarray:
        """(k,) whether the cores themselves touch: a safety layer should stop the robot."""
        return self.core <= MEET


class SsvDistance:
    """The calculator of one mechanism, with all memory that it takes.

    Each cycle: `place`, `nearest`, `gradient`; what they return is a copy.
    """

    def __init__(
        self, model: SsvModel, support: np.ndarray, activation: float = math.inf, broad_phase: str = "obb"
    ) -> None:
        """Prepare.

        Args:
            model: segments and pairs.
            support: (njoints, nv) of `ancestor_mask`.
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
        self._support = np.ascontiguousarray(support, dtype=float)
        rows, n, segments = len(model.pairs), len(model.radii), len(model.segments)
        self.vertices, self.boxes, self.bounds = np.zeros((n, 3, 3)), np.zeros((segments, 15)), np.zeros((segments, 6))
        self._blocks, self._lanes = np.zeros((9, ROWS * LANES)), np.zeros((9, LANES + 1, 2), dtype=np.int64)
        self._scratch, self._nearest = np.zeros((rows, COLUMNS)), np.zeros(rows, dtype=np.int64)
        self._last_normal = np.zeros((rows, 3))
        self._pair, self._table = np.zeros(rows, dtype=np.int64), np.zeros((rows, COLUMNS))
        self._ssv = np.zeros((rows, 2), dtype=np.int64)
        self._columns = np.zeros((6, self._support.shape[1]))

    def place(self, poses: np.ndarray) -> None:
        """Move the segments to where the joints are; `poses` (J, 12) as in PoseRows."""
        m = self.model
        place_segments(poses, m.joint, m.start, m.vertices, m.radii, m.boxes, self.vertices, self.boxes, self.bounds)

    def nearest(self, activation: float | None = None) -> NearestSsv:
        """The nearest pair of volumes of every pair of segments nearer than the activation distance.

        Args:
            activation: instead of the calculator's own [m].
        """
        m, reach = self.model, self.activation if activation is None else activation
        n = nearest_pairs(
            m.pair_rows,
            m.volume_pairs,
            m.radii,
            self.vertices,
            self.boxes,
            self.bounds,
            # Nothing is beyond an infinite distance.
            BROAD_PHASES[self.broad_phase] if reach < math.inf else 0,
            reach,
            self._blocks,
            self._lanes,
            self._scratch,
            self._nearest,
            self._last_normal,
            self._pair,
            self._table,
            self._ssv,
        )
        return NearestSsv(self._pair[:n].copy(), self._table[:n].copy(), self._ssv[:n].copy())

    def gradient(self, J: np.ndarray, near: NearestSsv) -> np.ndarray:
        """d distance / d v of near pairs, (k, nv).

        Args:
            J: (6, nv) `data.J` after `pin.computeJointJacobians` at the same configuration.
            near: result of `nearest`.
        """
        return pair_gradients(J, self._support, self.model, near, self._columns)

    def forget(self) -> None:
        """Drop the normals remembered from earlier calls, as after a jump to another posture."""
        self._last_normal[:] = 0.0


def pair_gradients(
    J: np.ndarray, support: np.ndarray, model: SsvModel, near: NearestSsv, columns: np.ndarray | None = None
) -> np.ndarray:
    """d distance / d v (k, nv) of near pairs from the Jacobian of all joints; world frame.

    Args:
        J: (6, nv) columns of all joints at the world's origin, linear then angular (pinocchio's `data.J`).
        support: (njoints, nv) 1 where a column moves a joint.
        model: whose pairs they are.
        near: the pairs.
        columns: (6, nv) scratch, made where absent.
    """
    nv = support.shape[1]
    out = np.empty((len(near), nv))
    scratch = np.empty((6, nv)) if columns is None else columns
    gradient_rows(np.ascontiguousarray(J.T), support, model.pair_rows, model.joint, near.pair, near.table, scratch, out)
    return out
