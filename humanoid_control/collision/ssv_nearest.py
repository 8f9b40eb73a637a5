"""The nearest pair of volumes of every pair of segments, in one call: the kernel for a real-time loop."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import kernel
from humanoid_control.collision.ssv_blocks import measure_block
from humanoid_control.collision.ssv_boxes import AABB, OBB, bounds_apart, boxes_apart
from humanoid_control.collision.ssv_lanes import (
    CORE,
    DISTANCE,
    FIRST,
    LANES,
    MEET,
    NORMAL,
    POINT_0,
    POINT_1,
    RADIUS,
    SECOND,
)


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
