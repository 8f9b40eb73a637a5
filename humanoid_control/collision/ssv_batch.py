"""Many pairs of swept-sphere volumes of the same two types in one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.collision.ssv_blocks import measure_block
from humanoid_control.collision.ssv_lanes import (
    DISTANCE,
    FIRST,
    FUNCTIONS,
    LANES,
    MEET,
    RADIUS,
    ROWS,
    SECOND,
)
from humanoid_control.errors import UnknownNameError
from humanoid_control.jit import kernel

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
