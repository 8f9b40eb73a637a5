"""Stage: scene of dancers side by side, with figures, errors and soles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.viewer.dance.dancer import Dancer, DancerView
from humanoid_control.viewer.meshes import Color, Triangles, link_meshes, shape_mesh
from humanoid_control.viewer.scene import DANCER_COLOR, FLOOR_SECTION, MOVED, WORLD, quaternion_wxyz
from humanoid_control.viewer.server import light_scene

if TYPE_CHECKING:
    import viser

SPACING = 2.0  # [m] between neighbours, with figures beside the robots
ASIDE = np.array([0.0, 0.95, 0.0])  # [m] from a robot to its figure
SEEN_THROUGH = 0.45  # opacity of robots with the figure inside
NAME_ABOVE = 0.12  # [m] above the robot's head
TALL = 1.75  # [m] default height of a robot
VIEW = 0.7  # [rad] vertical field of view; small to limit perspective distortion
PANEL = 0.27  # share of the page width covered by the panel, on the right
# share of the distance corrected per picture; [m] larger distances are corrected at once
FOLLOW_SHARE, FOLLOW_JUMP = 0.1, 2.0
SHAPE_COLOR: Color = (165, 175, 190)
HELD, FREE = (40, 190, 80), (150, 150, 150)
GOOD, FAIR, POOR = (60, 190, 90), (245, 180, 40), (225, 40, 45)
FAIR_ERROR, POOR_ERROR = 0.05, 0.12  # [m] errors with these colours
GHOST_THICK, ERROR_THICK, SOLE_THICK = 0.026, 0.018, 0.02  # [m] line thickness
SHOWN = {
    "ghost": "the person's figure, scaled",
    "errors": "errors: green below 2 cm, amber 5 cm, red 12 cm",
    "contacts": "edges of the soles: green while in contact",
    "robots": "the robots",
    "names": "names",
}
INSIDE = "the figure inside the transparent robot"


def error_colors(lengths: np.ndarray) -> np.ndarray:
    """Return colours (K, 3) of errors (K,) [m]: green, amber, red."""
    at = (0.0, 0.02, FAIR_ERROR, POOR_ERROR)
    channels = [np.interp(lengths, at, [color[c] for color in (GOOD, GOOD, FAIR, POOR)]) for c in range(3)]
    return np.round(np.stack(channels, axis=-1)).astype(np.uint8)


def visible_meshes(robot: Robot) -> dict[str, list[tuple[Triangles, Color]]]:
    """Return the meshes of each link: visuals, else collision shapes."""
    found = link_meshes(parse_urdf(robot.urdf, robot.name), robot.folder)
    if any(found.values()):
        return found
    shapes: dict[str, list[tuple[Triangles, Color]]] = {}
    for item in robot.shapes:
        shapes.setdefault(item.link, []).append((shape_mesh(item.shape), SHAPE_COLOR))
    return shapes


def slot_places(n: int, spacing: float = SPACING) -> np.ndarray:
    """Return positions (n, 3) [m] of n dancers in a row, from the camera's left."""
    places = np.zeros((n, 3))
    places[:, 1] = spacing * (np.arange(n) - 0.5 * (n - 1))
    return places


def stage_camera(n: int, aspect: float, panel: float = 0.0, spacing: float = SPACING) -> tuple[np.ndarray, np.ndarray]:
    """Return eye and target point (3,) [m] of a camera for n dancers.

    Args:
        n: number of dancers.
        aspect: width over height.
        panel: share of the width covered on the right.
        spacing: distance of dancers [m]; large spacings include the figures.
    """
    beside = ASIDE[1] if spacing >= SPACING else 0.0
    wide = spacing * (n - 1) + 1.9 + beside
    far = max(wide / (aspect * (1.0 - panel)), 2.6) / (2.0 * math.tan(VIEW / 2.0))
    # Centre the row and its figures in the uncovered part.
    aside = panel * far * math.tan(VIEW / 2.0) * aspect + 0.5 * beside
    return np.array([far, aside, 0.9 + 0.12 * far]), np.array([0.0, aside, 0.92])


class StageRobot:
    """Scene objects of one dancer, below one frame."""

    def __init__(self, scene: viser.SceneApi, path: str, dancer: Dancer, place: np.ndarray) -> None:
        """Add the robot to the scene.

        Args:
            place: position (3,) [m].
        """
        self._scene, self._path = scene, path
        self.frame = scene.add_frame(path, show_axes=False, position=place)
        self._links: dict[str, Any] = {}
        self._meshes: list[Any] = []
        self.robot_frame = scene.add_frame(f"{path}/robot", show_axes=False)
        for link, meshes in visible_meshes(dancer.robot).items():
            if meshes:
                self._links[link] = scene.add_frame(f"{path}/robot/{link}", show_axes=False)
                for k, ((vertices, faces), color) in enumerate(meshes):
                    name = f"{path}/robot/{link}/{k}"
                    self._meshes.append(scene.add_mesh_simple(name, vertices, faces, color=color, flat_shading=False))
        height = dancer.robot.height
        self.height = height if math.isfinite(height) else TALL
        self.title = dancer.robot.title
        self.label = scene.add_label(
            f"{path}/name", self.title, position=(0.0, 0.0, self.height + NAME_ABOVE), anchor="bottom-center"
        )
        self._lines: dict[str, Any] = {}

    def draw(self, view: DancerView, shown: dict[str, bool], inside: bool) -> None:
        """Update the objects; `inside`: the figure stands in the robot."""
        if shown["robots"]:
            for link, handle in self._links.items():
                _place(handle, view.poses[link])
        figure = view.figure.reshape(-1, 2, 3) + (0.0 if inside else ASIDE)
        self._segments("ghost", figure, DANCER_COLOR, GHOST_THICK, shown)
        ends = np.stack([view.targets, view.reached], axis=1)
        colors = error_colors(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1))
        self._segments("errors", ends, np.repeat(colors[:, None], 2, axis=1), ERROR_THICK, shown)
        if len(view.soles):
            held = np.where(view.contacts[:, None], HELD, FREE).astype(np.uint8)
            edges = view.soles.reshape(-1, 2, 3) + [0.0, 0.0, 0.004]  # slightly above the floor to be visible
            self._segments("contacts", edges, np.repeat(held[:, None], 2, axis=1), SOLE_THICK, shown)
        if shown["names"]:
            at = np.array([view.place[0], view.place[1], self.height + NAME_ABOVE])
            if np.abs(self.label.position - at).max() > 0.02:
                self.label.position = at

    def _segments(self, name: str, ends: np.ndarray, colors: Any, thickness: float, shown: dict[str, bool]) -> None:
        handle, ends = self._lines.get(name), ends.astype(np.float32)
        if handle is None or handle.points.shape != ends.shape:
            self._lines[name] = self._scene.add_line_segments(
                f"{self._path}/{name}", ends, colors, thickness=thickness, visible=shown[name]
            )
        elif shown[name]:
            handle.points = ends
            if isinstance(colors, np.ndarray) and not np.array_equal(handle.colors, colors):
                handle.colors = colors

    def show(self, what: str, visible: bool) -> None:
        handle = {"robots": self.robot_frame, "names": self.label}.get(what, self._lines.get(what))
        if handle is not None:
            handle.visible = visible

    def see_through(self, through: bool) -> None:
        for mesh in self._meshes:
            mesh.opacity = SEEN_THROUGH if through else None

    def remove(self) -> None:
        self.frame.remove()


class DanceStage:
    """Scene of all dancers; it follows them by moving the world."""

    def __init__(self, server: viser.ViserServer, shadows: bool = False) -> None:
        self.server = server
        scene = server.scene
        scene.set_up_direction("+z")
        light_scene(scene, shadows)
        self._world = scene.add_frame(WORLD, show_axes=False)
        self._floor = scene.add_grid(
            f"{WORLD}/floor", width=20.0, height=20.0, cell_size=0.25, section_size=FLOOR_SECTION, shadow_opacity=0.25
        )
        self.shown = dict.fromkeys(SHOWN, True)
        self._robots: dict[int, StageRobot] = {}
        self._dancers: list[Dancer] = []
        self._added, self._offset, self._inside = 0, np.zeros(3), False

    def set_dancers(self, dancers: Sequence[Dancer]) -> None:
        """Put dancers on the stage, keeping existing ones."""
        wanted = {id(d) for d in dancers}
        for key in [k for k in self._robots if k not in wanted]:
            self._robots.pop(key).remove()
        places = slot_places(len(dancers))
        for dancer, place in zip(dancers, places, strict=True):
            robot = self._robots.get(id(dancer))
            if robot is None:
                self._added += 1
                self._robots[id(dancer)] = robot = StageRobot(
                    self.server.scene, f"{WORLD}/dancer_{self._added}", dancer, place
                )
                for what, visible in self.shown.items():
                    robot.show(what, visible)
                if self._inside:
                    robot.see_through(True)
            else:
                robot.frame.position = place
        self._dancers = list(dancers)

    def draw(self, follow: bool) -> list[DancerView]:
        """Draw all dancers and return their views.

        Args:
            follow: keep their centre in view.
        """
        views = [d.view() for d in self._dancers]
        for dancer, view in zip(self._dancers, views, strict=True):
            self._robots[id(dancer)].draw(view, self.shown, self._inside)
        if views and follow:
            self._follow(np.mean([v.place for v in views], axis=0) * [1.0, 1.0, 0.0])
        return views

    def show(self, what: str, visible: bool) -> None:
        self.shown[what] = visible
        for robot in self._robots.values():
            robot.show(what, visible)

    def put_inside(self, inside: bool) -> None:
        """Place the figures inside translucent robots, or next to them."""
        self._inside = inside
        for robot in self._robots.values():
            robot.see_through(inside)

    def set_title(self, dancer: Dancer, text: str) -> None:
        robot = self._robots.get(id(dancer))
        if robot is not None and robot.label.text != text:
            robot.label.text = text

    def look_at_all(self, aspect: float, panel: float = PANEL) -> None:
        """Set the initial camera of pages."""
        camera = self.server.initial_camera
        eye, at = stage_camera(max(len(self._dancers), 1), aspect, panel)
        camera.position, camera.look_at, camera.up = eye, at, (0.0, 0.0, 1.0)
        camera.fov = VIEW

    def _follow(self, place: np.ndarray) -> None:
        way = -place - self._offset
        self._offset = self._offset + (way if np.abs(way).max() > FOLLOW_JUMP else FOLLOW_SHARE * way)
        if np.abs(self._world.position - self._offset).max() > MOVED:
            self._world.position = self._offset
        x, y = FLOOR_SECTION * np.round(-self._offset[:2] / FLOOR_SECTION)
        if (x, y) != tuple(self._floor.position[:2]):
            self._floor.position = (x, y, 0.0)


def _place(handle: Any, X: pin.SE3) -> None:
    """Move a frame, unless the change is below MOVED."""
    wxyz = quaternion_wxyz(X.rotation)
    if np.abs(handle.position - X.translation).max() + np.abs(handle.wxyz - wxyz).max() > MOVED:
        handle.position, handle.wxyz = X.translation, wxyz
