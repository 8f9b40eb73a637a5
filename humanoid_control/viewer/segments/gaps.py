"""Lines across the smallest gaps, and a red mark on the smallest (Fig. 6.15)."""

from __future__ import annotations

import numpy as np
import viser

from humanoid_control.viewer.segments.colors import color_of
from humanoid_control.viewer.segments.distances import Gap

LINES = 12  # nearest pairs that are joined by a line
WIDTH, MARK_RADIUS = 0.008, 0.022  # [m]
MARK = (215, 0, 0)


class GapLines:
    """Drawn in the world, anew at each call."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._scene = server.scene
        self._handles: list[viser.SceneNodeHandle] = []

    def draw(self, gaps: tuple[Gap, ...], largest: float) -> None:
        """Draw the first gaps of a list that is sorted by distance; largest: upper end of the colours [m]."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        near = gaps[:LINES]
        if not near:
            return
        scene = self._scene
        points = np.array([[g.point_1, g.point_2] for g in near], dtype=np.float32)
        colors = np.array([[color_of(g.distance, largest)] * 2 for g in near], dtype=np.uint8)
        place, smallest = points[0].mean(axis=0), f"{1000 * near[0].distance:.0f} mm"
        self._handles = [
            scene.add_line_segments("/gaps/lines", points, colors, thickness=WIDTH),
            scene.add_icosphere("/gaps/mark", radius=MARK_RADIUS, color=MARK, position=place, cast_shadow=False),
            scene.add_label("/gaps/label", smallest, position=place, anchor="bottom-left"),
        ]
