"""A MarkerArray drawn in the scene: balls, cylinders, boxes, lines, balls in a row, arrows."""

from __future__ import annotations

from typing import Any

import numpy as np
import trimesh
import viser

ARROW, CUBE, SPHERE, CYLINDER, LINE_LIST, SPHERE_LIST = 0, 1, 2, 3, 5, 7  # of visualization_msgs/Marker
ADD = 0
SOLIDS = (CUBE, SPHERE, CYLINDER)


class MarkerLayer:
    """Draws one topic's markers; all solids of a kind are one batch, so that a message is a few updates of the page.

    Markers of other kinds are passed over. A message replaces what the one before it showed.
    """

    def __init__(self, server: viser.ViserServer, path: str) -> None:
        self._scene, self._path = server.scene, path
        self._solids: dict[int, Any] = {}
        self._lines: Any = None
        self._arrows: dict[str, Any] = {}
        self._visible = True

    def show(self, visible: bool) -> None:
        """Show or hide everything."""
        self._visible = visible
        for handle in (*self._solids.values(), self._lines, *self._arrows.values()):
            if handle is not None:
                handle.visible = visible

    def draw(self, markers: list[Any]) -> None:
        """Bring the layer up to date with the markers of a message; none: nothing is seen."""
        shown = [m for m in markers if m.action == ADD]
        for kind in SOLIDS:
            rows = [_solid(m) for m in shown if m.type == kind]
            if kind == SPHERE:
                rows += [row for m in shown if m.type == SPHERE_LIST for row in _balls(m)]
            self._draw_solids(kind, rows)
        self._draw_lines([m for m in shown if m.type == LINE_LIST and len(m.points) >= 2])
        self._draw_arrows({m.ns: m for m in shown if m.type == ARROW and len(m.points) == 2})

    def _draw_solids(self, kind: int, rows: list[tuple]) -> None:
        """One batch: position, quaternion w x y z, widths and colour of each."""
        handle = self._solids.get(kind)
        if not rows:
            if handle is not None:
                handle.visible = False
            return
        p, o, size, color = (np.array(c, dtype=np.float32) for c in zip(*rows, strict=True))
        rgb = np.round(255 * color[:, :3]).astype(np.uint8)
        if handle is not None and len(handle.batched_positions) == len(p):
            handle.batched_positions, handle.batched_wxyzs, handle.batched_scales = p, o, size
            handle.batched_colors, handle.batched_opacities = rgb, color[:, 3]
            handle.visible = self._visible
            return
        mesh = _unit(kind)
        self._solids[kind] = self._scene.add_batched_meshes_simple(
            f"{self._path}/{kind}",
            np.asarray(mesh.vertices, dtype=np.float32),
            np.asarray(mesh.faces, dtype=np.uint32),
            batched_positions=p,
            batched_wxyzs=o,
            batched_scales=size,
            batched_colors=rgb,
            batched_opacities=color[:, 3],
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
            visible=self._visible,
        )

    def _draw_lines(self, markers: list[Any]) -> None:
        points = [_xyz(p) for m in markers for p in m.points]
        colors = [_rgb(c) for m in markers for c in (m.colors or [m.color] * len(m.points))]
        if not points:
            if self._lines is not None:
                self._lines.visible = False
            return
        ends = np.array(points, dtype=np.float32).reshape(-1, 2, 3)
        paint = np.array(colors, dtype=np.uint8).reshape(-1, 2, 3)
        if self._lines is None or self._lines.points.shape != ends.shape:
            width = float(markers[0].scale.x)
            self._lines = self._scene.add_line_segments(
                f"{self._path}/lines", ends, paint, thickness=width, visible=self._visible
            )
            return
        self._lines.points, self._lines.colors, self._lines.visible = ends, paint, self._visible

    def _draw_arrows(self, markers: dict[str, Any]) -> None:
        for ns, handle in self._arrows.items():
            if ns not in markers:
                handle.visible = False
        for ns, m in markers.items():
            ends = np.array([[_xyz(p) for p in m.points]], dtype=np.float32)
            handle = self._arrows.get(ns)
            if handle is None:
                self._arrows[ns] = self._scene.add_arrows(
                    f"{self._path}/{ns}",
                    ends,
                    _rgb(m.color),
                    shaft_radius=float(m.scale.x) / 2,
                    head_radius=float(m.scale.y) / 2,
                    head_length=float(m.scale.z),
                    visible=self._visible,
                )
            else:
                handle.points, handle.visible = ends, self._visible


def _unit(kind: int) -> trimesh.Trimesh:
    """The solid of width 1 in every direction."""
    if kind == CUBE:
        return trimesh.creation.box((1.0, 1.0, 1.0))
    if kind == CYLINDER:
        return trimesh.creation.cylinder(radius=0.5, height=1.0, sections=24)
    return trimesh.creation.icosphere(subdivisions=2, radius=0.5)


def _solid(m: Any) -> tuple:
    o = m.pose.orientation
    return _xyz(m.pose.position), (o.w, o.x, o.y, o.z), _xyz(m.scale), (m.color.r, m.color.g, m.color.b, m.color.a)


def _balls(m: Any) -> list[tuple]:
    colors = m.colors or [m.color] * len(m.points)
    return [
        (_xyz(p), (1.0, 0.0, 0.0, 0.0), _xyz(m.scale), (c.r, c.g, c.b, c.a))
        for p, c in zip(m.points, colors, strict=True)
    ]


def _xyz(v: Any) -> tuple[float, float, float]:
    return v.x, v.y, v.z


def _rgb(c: Any) -> tuple[int, int, int]:
    return round(255 * c.r), round(255 * c.g), round(255 * c.b)
