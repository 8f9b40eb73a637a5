"""All segments of a mechanism and the pairs to watch, as plain arrays, and their places in the world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from humanoid_control.collision.jit import kernel
from humanoid_control.collision.ssv_boxes import BOX_COLUMNS, tight_box
from humanoid_control.collision.ssv_lanes import TYPE_NAMES
from humanoid_control.collision.ssv_segments import Segment, SegmentPair, expand
from humanoid_control.errors import RobotError, UnknownNameError

Frame = tuple[int, np.ndarray, np.ndarray]  # joint that carries a link, rotation (3, 3) and position (3,) in it


@dataclass(frozen=True)
class SsvModel:
    """N volumes in S segments, with P pairs of segments.

    Attributes:
        segments: (S,) as drawn, mirror images made; frames of the links.
        pairs: (P,) pairs of them.
        radii: (N,) [m].
        vertices: (N, 3, 3) in the frame of the joint that carries the segment; unused ones hold the mean of the others.
        kinds: (N,) type: 0 point, 1 line, 2 triangle.
        start: (S + 1,) the volumes of segment s are start[s] to start[s + 1] - 1.
        joint: (S,) joint that carries the segment.
        boxes: (S, 15) oriented box in the joint's frame, tight along the axes of the link: centre, axes, half sides.
        pair_rows: (P, 4) indices of both segments; the pairs of their volumes are rows c0 to c1 - 1 of volume_pairs.
        volume_pairs: (M, 4) the two volumes, the simpler type first, the code of their function, 1 if that order is not
            the order of the segments.
    """

    segments: tuple[Segment, ...]
    pairs: tuple[SegmentPair, ...]
    radii: np.ndarray
    vertices: np.ndarray
    kinds: np.ndarray
    start: np.ndarray
    joint: np.ndarray
    boxes: np.ndarray
    pair_rows: np.ndarray
    volume_pairs: np.ndarray

    @classmethod
    def build(
        cls, segments: Iterable[Segment], frames: Mapping[str, Frame], pairs: Iterable[SegmentPair] = ()
    ) -> SsvModel:
        """Arrays from segments.

        Args:
            segments: mirror images are made here.
            frames: link -> (joint, rotation, position of the link in the joint's frame).
            pairs: of segments.

        Raises:
            UnknownNameError: a link, segment or group that does not exist, with the nearest names.
            RobotError: a pair of a segment with itself.
        """
        plain, pairs = expand(segments), tuple(pairs)
        radii, vertices, kinds, start, joint, boxes = [], [], [], [0], [], []
        for s in plain:
            if s.link not in frames:
                raise UnknownNameError("link", s.link, frames, hint=f"(segment '{s.name}')")
            j, R, p = frames[s.link]
            for v in s.ssvs:
                corners = [*v.vertices, *[np.mean(v.vertices, axis=0)] * (3 - len(v.vertices))]
                vertices.append(np.array(corners) @ R.T + p)
                radii.append(v.radius)
                kinds.append(TYPE_NAMES.index(v.type))
            start.append(len(radii))
            joint.append(j)
            first = start[-2]
            boxes.append(tight_box(np.array(vertices[first:]), np.array(radii[first:]), np.asarray(R, dtype=float)))
        return cls(
            plain,
            pairs,
            np.array(radii, dtype=float),
            np.array(vertices, dtype=float).reshape(-1, 3, 3),
            np.array(kinds, dtype=np.int64),
            np.array(start, dtype=np.int64),
            np.array(joint, dtype=np.int64),
            np.array(boxes, dtype=float).reshape(-1, BOX_COLUMNS),
            *_pair_tables(pairs, plain, start, kinds),
        )

    def names(self, pair: int) -> tuple[str, str]:
        """The names of both segments of a pair."""
        return self.pairs[pair].first, self.pairs[pair].second

    def ssv_name(self, ssv: int) -> str:
        """'segment.volume' of a volume's index."""
        s = int(np.searchsorted(self.start, ssv, side="right")) - 1
        return f"{self.segments[s].name}.{self.segments[s].ssvs[ssv - int(self.start[s])].name}"


def _pair_tables(
    pairs: tuple[SegmentPair, ...], segments: tuple[Segment, ...], start: list[int], kinds: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(pair_rows, volume_pairs) of SsvModel."""
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
    """The volumes of a segment that belong to the wanted groups, or all."""
    if name not in index:
        raise UnknownNameError("segment", name, index, hint="(in a pair)")
    ssvs = segments[index[name]].ssvs
    own = {v.group for v in ssvs}
    for g in wanted:
        if g not in own:
            raise UnknownNameError("group", g, own, hint=f"(segment '{name}' in a pair)")
    return [start[index[name]] + k for k, v in enumerate(ssvs) if not wanted or v.group in wanted]


@kernel
def place_segments(
    poses: np.ndarray,
    joint: np.ndarray,
    start: np.ndarray,
    vertices: np.ndarray,
    radii: np.ndarray,
    boxes: np.ndarray,
    out_vertices: np.ndarray,
    out_boxes: np.ndarray,
    out_bounds: np.ndarray,
) -> None:
    """Move all volumes and boxes to where the joints are.

    Args:
        poses: (J, 12) of PoseRows.
        joint, start, vertices, radii, boxes: of SsvModel.
        out_vertices: (N, 3, 3), out_boxes: (S, 15), in the world, filled.
        out_bounds: (S, 6) low and high corner of each segment along the world's axes, filled.
    """
    for s in range(joint.shape[0]):
        X = poses[joint[s]]
        low0, low1, low2, high0, high1, high2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(start[s], start[s + 1]):
            r = radii[i]
            for k in range(3):
                a, b, c = vertices[i, k, 0], vertices[i, k, 1], vertices[i, k, 2]
                x = X[9] + X[0] * a + X[3] * b + X[6] * c
                y = X[10] + X[1] * a + X[4] * b + X[7] * c
                z = X[11] + X[2] * a + X[5] * b + X[8] * c
                out_vertices[i, k, 0], out_vertices[i, k, 1], out_vertices[i, k, 2] = x, y, z
                if i == start[s] and k == 0:  # not from infinity: what is not a number has to stay
                    low0, low1, low2, high0, high1, high2 = x - r, y - r, z - r, x + r, y + r, z + r
                low0, low1, low2 = min(low0, x - r), min(low1, y - r), min(low2, z - r)
                high0, high1, high2 = max(high0, x + r), max(high1, y + r), max(high2, z + r)
        total = low0 + low1 + low2 + high0 + high1 + high2
        if total != total:  # one coordinate unknown: nothing may be left out by another
            low0, low1, low2, high0, high1, high2 = total, total, total, total, total, total
        out_bounds[s, 0], out_bounds[s, 1], out_bounds[s, 2] = low0, low1, low2
        out_bounds[s, 3], out_bounds[s, 4], out_bounds[s, 5] = high0, high1, high2
        a, b, c = boxes[s, 0], boxes[s, 1], boxes[s, 2]
        for r3 in range(3):
            x, y, z = X[r3], X[3 + r3], X[6 + r3]
            out_boxes[s, r3] = X[9 + r3] + x * a + y * b + z * c
            for k in range(3):
                out_boxes[s, 3 + 3 * r3 + k] = x * boxes[s, 3 + k] + y * boxes[s, 6 + k] + z * boxes[s, 9 + k]
            out_boxes[s, 12 + r3] = boxes[s, 12 + r3]
