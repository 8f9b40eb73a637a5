"""Three-dimensional scene of a robot page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin
import trimesh

from humanoid_control.robots import Robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.viewer.frame_layer import FrameLayer
from humanoid_control.viewer.meshes import link_meshes, shape_mesh
from humanoid_control.viewer.panel import HIDDEN, MARKERS, SHOWN
from humanoid_control.viewer.server import light_scene

if TYPE_CHECKING:
    import viser

ARROW, CUBE, SPHERE, CYLINDER, LINE_LIST, SPHERE_LIST = 0, 1, 2, 3, 5, 7  # constants of visualization_msgs/Marker
ADD = 0
SOLIDS = (CUBE, SPHERE, CYLINDER)
TARGET_COLOR, ERROR_COLOR = (255, 115, 25), (225, 30, 60)
TARGET_ARM = 0.09  # [m] arm of a target's cross: longer than a limb radius, so that reached targets stay visible
TARGET_THICKNESS, ERROR_THICKNESS = 0.008, 0.014  # [m] line thickness
DANCER_COLOR = (50, 120, 230)
COM_COLOR = (230, 40, 160)
FREE, NEAR, TOUCHING = (70, 190, 90), (245, 190, 40), (225, 50, 40)
FLOOR_SECTION = 1.0  # [m]
NEAR_DISTANCE = 0.05  # [m]
WORLD = "/world"  # root frame of all objects: moving it makes the page follow the robot
MOVED = 1e-4  # [m] and quaternion units: smaller link motions are not sent


class Scene:
    """Scene of a page; it draws given poses and positions."""

    def __init__(
        self,
        server: viser.ViserServer,
        robot: Robot,
        folder: Path | None = None,
        hidden: tuple[str, ...] = HIDDEN,
    ) -> None:
        """Build the scene.

        Args:
            hidden: entries of the panel's SHOWN that are hidden at first.
        """
        self.server, self.robot = server, robot
        scene = server.scene
        scene.set_up_direction("+z")
        self._world = scene.add_frame(WORLD, show_axes=False)
        self._floor = scene.add_grid(
            f"{WORLD}/floor", width=6.0, height=6.0, cell_size=0.25, section_size=FLOOR_SECTION, shadow_opacity=0.25
        )
        self._links: dict[str, viser.FrameHandle] = {}
        tree = parse_urdf(robot.urdf, robot.name)
        for link, meshes in link_meshes(tree, folder).items():
            if meshes:
                self._links[link] = scene.add_frame(f"{WORLD}/robot/{link}", show_axes=False)
                for k, ((vertices, faces), color) in enumerate(meshes):
                    scene.add_mesh_simple(f"{WORLD}/robot/{link}/{k}", vertices, faces, color=color, flat_shading=False)
        self._shapes = []
        self._shape_color = [FREE] * len(robot.shapes)
        self._shape_frames: dict[str, viser.FrameHandle] = {}
        for k, item in enumerate(robot.shapes):
            if item.link not in self._shape_frames:
                self._shape_frames[item.link] = scene.add_frame(f"{WORLD}/shapes/{item.link}", show_axes=False)
            vertices, faces = shape_mesh(item.shape)
            name = f"{WORLD}/shapes/{item.link}/{k}"
            mesh = scene.add_mesh_simple(name, vertices, faces, color=FREE, opacity=0.45, cast_shadow=False)
            self._shapes.append(mesh)
        self._targets: viser.LineSegmentsHandle | None = None
        self._errors: viser.LineSegmentsHandle | None = None
        self._dancer: viser.LineSegmentsHandle | None = None
        self._dancer_points: viser.PointCloudHandle | None = None
        self._com = scene.add_icosphere(f"{WORLD}/com/ball", radius=0.03, color=COM_COLOR)
        self._com_floor = scene.add_cylinder(f"{WORLD}/com/floor", radius=0.035, height=0.004, color=COM_COLOR)
        self.frames = FrameLayer(server, f"{WORLD}/frames", robot)
        self._markers = {topic: MarkerLayer(server, f"{WORLD}/{topic}") for topic in MARKERS}
        self._visible = {name: name not in hidden for name in SHOWN}
        self._folders: dict[str, list] = {
            "robot": list(self._links.values()),
            "shapes": list(self._shape_frames.values()),
            "com": [self._com, self._com_floor],
            "frames": list(self.frames.handles.values()),
        }
        for name in self._visible:
            self.show(name, self._visible[name])

    def show(self, what: str, visible: bool) -> None:
        self._visible[what] = visible
        if what == "shadows":
            light_scene(self.server.scene, visible)
        if what in self._markers:
            self._markers[what].show(visible)
        handles = list(self._folders.get(what, []))
        if what == "targets":
            handles = [h for h in (self._targets, self._errors) if h is not None]
        if what == "dancer":
            handles = [h for h in (self._dancer, self._dancer_points) if h is not None]
        for handle in handles:
            handle.visible = visible

    def visible(self, what: str) -> bool:
        return self._visible[what]

    def move_robot(self, poses: dict[str, pin.SE3]) -> None:
        """Update the link poses."""
        for frames in (self._links, self._shape_frames if self._visible["shapes"] else {}):
            for link, handle in frames.items():
                X = poses[link]
                wxyz = quaternion_wxyz(X.rotation)
                if np.abs(handle.position - X.translation).max() + np.abs(handle.wxyz - wxyz).max() > MOVED:
                    handle.position, handle.wxyz = X.translation, wxyz
        if self._visible["frames"]:
            self.frames.move(poses)

    def move_world(self, offset: np.ndarray) -> None:
        """Draw everything with an offset (3,) [m].

        This follows the robot without moving the cameras of users.
        """
        if np.abs(self._world.position - offset).max() > MOVED:
            self._world.position = offset

    def move_floor(self, place: np.ndarray) -> None:
        """Move the floor below (3,) by whole sections, so that its lines stay fixed."""
        x, y = FLOOR_SECTION * np.round(place[:2] / FLOOR_SECTION)
        if (x, y) != tuple(self._floor.position[:2]):
            self._floor.position = (x, y, 0.0)

    def color_shapes(self, distance: Iterable[float]) -> None:
        """Colour each collision shape by its clearance [m]."""
        for k, d in enumerate(distance):
            color = TOUCHING if d <= 0 else NEAR if d < NEAR_DISTANCE else FREE
            if color != self._shape_color[k]:
                self._shapes[k].color, self._shape_color[k] = color, color

    def draw_targets(self, targets: np.ndarray, reached: np.ndarray) -> None:
        """Draw a cross at each target, and a line to the robot point.

        Args:
            targets: targets (k, 3) [m].
            reached: robot points (k, 3) [m]; NaN: no line.
        """
        arms = TARGET_ARM * np.stack([-np.eye(3), np.eye(3)], axis=1)  # (3, 2, 3)
        crosses = (targets[:, None, None] + arms).reshape(-1, 2, 3).astype(np.float32)
        known = np.isfinite(reached).all(axis=1, keepdims=True)
        lines = np.stack([targets, np.where(known, reached, targets)], axis=1).astype(np.float32)
        self._targets = self._redrawn(self._targets, "crosses", crosses, TARGET_COLOR, TARGET_THICKNESS)
        self._errors = self._redrawn(self._errors, "errors", lines, ERROR_COLOR, ERROR_THICKNESS)

    def _redrawn(
        self, handle: viser.LineSegmentsHandle | None, name: str, lines: np.ndarray, color: tuple, thickness: float
    ) -> viser.LineSegmentsHandle:
        visible = self._visible["targets"]
        if handle is None or handle.points.shape != lines.shape:
            path = f"{WORLD}/targets/{name}"
            return self.server.scene.add_line_segments(path, lines, color, thickness=thickness, visible=visible)
        handle.points = lines
        return handle

    def move_dancer(self, segments: np.ndarray) -> None:
        """Draw the dancer from bone ends (2 B, 3) [m]."""
        if not len(segments):
            return
        lines = segments.reshape(-1, 2, 3).astype(np.float32)
        scene, visible = self.server.scene, self._visible["dancer"]
        if self._dancer is None or self._dancer.points.shape != lines.shape:
            self._dancer = scene.add_line_segments(
                f"{WORLD}/dancer/bones", lines, DANCER_COLOR, thickness=0.025, visible=visible
            )
            self._dancer_points = scene.add_point_cloud(
                f"{WORLD}/dancer/points",
                segments,
                (20, 60, 140),
                point_size=0.045,
                point_shape="circle",
                visible=visible,
            )
            return
        assert self._dancer_points is not None
        self._dancer.points, self._dancer_points.points = lines, segments.astype(np.float32)

    def draw_markers(self, topic: str, markers: list) -> None:
        self._markers[topic].draw(markers)

    def move_com(self, com: np.ndarray) -> None:
        """Place the centre-of-mass ball (3,) and its shadow on the floor."""
        self._com.position = com
        self._com_floor.position = np.array([com[0], com[1], 0.002])


class MarkerLayer:
    """Markers of one topic; solids of a kind form one batch. Other kinds are ignored."""

    def __init__(self, server: viser.ViserServer, path: str) -> None:
        self._scene, self._path = server.scene, path
        self._solids: dict[int, Any] = {}
        self._lines: dict[float, Any] = {}  # by width
        self._arrows: dict[str, Any] = {}
        self._visible = True

    def show(self, visible: bool) -> None:
        self._visible = visible
        for handle in (*self._solids.values(), *self._lines.values(), *self._arrows.values()):
            handle.visible = visible

    def draw(self, markers: list[Any]) -> None:
        """Replace the markers by those of a message."""
        shown = [m for m in markers if m.action == ADD]
        for kind in SOLIDS:
            rows = [_solid(m) for m in shown if m.type == kind]
            if kind == SPHERE:
                rows += [row for m in shown if m.type == SPHERE_LIST for row in _balls(m)]
            self._draw_solids(kind, rows)
        self._draw_lines([m for m in shown if m.type == LINE_LIST and len(m.points) >= 2])
        self._draw_arrows({m.ns: m for m in shown if m.type == ARROW and len(m.points) == 2})

    def _draw_solids(self, kind: int, rows: list[tuple]) -> None:
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
        by_width: dict[float, list[Any]] = {}
        for m in markers:
            by_width.setdefault(float(m.scale.x), []).append(m)
        for width, handle in self._lines.items():
            handle.visible = self._visible and width in by_width
        for width, own in by_width.items():
            self._draw_lines_of(width, own)

    def _draw_lines_of(self, width: float, markers: list[Any]) -> None:
        points = [_xyz(p) for m in markers for p in m.points]
        colors = [_rgb(c) for m in markers for c in (m.colors or [m.color] * len(m.points))]
        ends = np.array(points, dtype=np.float32).reshape(-1, 2, 3)
        paint = np.array(colors, dtype=np.uint8).reshape(-1, 2, 3)
        handle = self._lines.get(width)
        if handle is None or handle.points.shape != ends.shape:
            name = f"{self._path}/lines {width:g}"
            self._lines[width] = self._scene.add_line_segments(
                name, ends, paint, thickness=width, visible=self._visible
            )
            return
        handle.points, handle.colors, handle.visible = ends, paint, self._visible

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


def quaternion_wxyz(R: np.ndarray) -> np.ndarray:
    """Return the quaternion w x y z of a rotation matrix."""
    o = pin.Quaternion(R)
    return np.array([o.w, o.x, o.y, o.z])


def _unit(kind: int) -> trimesh.Trimesh:
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
