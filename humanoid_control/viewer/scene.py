"""The three-dimensional scene: robot, targets, dancer, collision shapes, centre of mass."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pinocchio as pin
import viser

from humanoid_control.robots import Robot
from humanoid_control.robots.urdf_tree import parse_urdf
from humanoid_control.viewer.markers import MarkerLayer
from humanoid_control.viewer.meshes import link_meshes, shape_mesh
from humanoid_control.viewer.panel import HIDDEN, MARKERS, SHOWN

TARGET_COLOR = (255, 115, 25)
TARGET_RADIUS = 0.065  # [m] larger than the limbs, so that a target that is reached can still be seen
DANCER_COLOR = (50, 120, 230)
COM_COLOR = (230, 40, 160)
FREE, NEAR, TOUCHING = (70, 190, 90), (245, 190, 40), (225, 50, 40)
NEAR_DISTANCE = 0.05
MOVED = 1e-4


class Scene:
    """What is seen. Poses and positions are handed in; nothing is computed here but colours."""

    def __init__(
        self,
        server: viser.ViserServer,
        robot: Robot,
        folder: Path | None = None,
        hidden: tuple[str, ...] = HIDDEN,
    ) -> None:
        """Build the scene.

        Args:
            server: of the page.
            robot: whose URDF is shown.
            folder: where its mesh files are, if it has any.
            hidden: what of the panel's SHOWN is not shown at first.
        """
        self.server, self.robot = server, robot
        scene = server.scene
        scene.set_up_direction("+z")
        scene.configure_default_lights(cast_shadow=True)
        scene.add_grid("/floor", width=6.0, height=6.0, cell_size=0.25, section_size=1.0, shadow_opacity=0.25)
        self._links: dict[str, viser.FrameHandle] = {}
        tree = parse_urdf(robot.urdf, robot.name)
        for link, meshes in link_meshes(tree, folder).items():
            if meshes:
                self._links[link] = scene.add_frame(f"/robot/{link}", show_axes=False)
                for k, ((vertices, faces), color) in enumerate(meshes):
                    scene.add_mesh_simple(f"/robot/{link}/{k}", vertices, faces, color=color, flat_shading=False)
        self._shapes = []
        self._shape_color = [FREE] * len(robot.shapes)
        self._shape_frames: dict[str, viser.FrameHandle] = {}
        for k, item in enumerate(robot.shapes):
            if item.link not in self._shape_frames:
                self._shape_frames[item.link] = scene.add_frame(f"/shapes/{item.link}", show_axes=False)
            vertices, faces = shape_mesh(item.shape)
            name = f"/shapes/{item.link}/{k}"
            mesh = scene.add_mesh_simple(name, vertices, faces, color=FREE, opacity=0.45, cast_shadow=False)
            self._shapes.append(mesh)
        self._targets: dict[str, viser.IcosphereHandle] = {}
        self._dancer: viser.LineSegmentsHandle | None = None
        self._dancer_points: viser.PointCloudHandle | None = None
        self._com = scene.add_icosphere("/com/ball", radius=0.03, color=COM_COLOR)
        self._com_floor = scene.add_cylinder("/com/floor", radius=0.035, height=0.004, color=COM_COLOR)
        self._markers = {topic: MarkerLayer(server, f"/{topic}") for topic in MARKERS}
        self._visible = {name: name not in hidden for name in SHOWN}
        self._folders: dict[str, list] = {
            "robot": list(self._links.values()),
            "shapes": list(self._shape_frames.values()),
            "com": [self._com, self._com_floor],
        }
        for name in self._visible:
            self.show(name, self._visible[name])

    def show(self, what: str, visible: bool) -> None:
        """Show or hide one of the panel's SHOWN."""
        self._visible[what] = visible
        if what in self._markers:
            self._markers[what].show(visible)
        handles = list(self._folders.get(what, []))
        if what == "targets":
            handles = list(self._targets.values())
        if what == "dancer":
            handles = [h for h in (self._dancer, self._dancer_points) if h is not None]
        for handle in handles:
            handle.visible = visible

    def visible(self, what: str) -> bool:
        """Whether something is shown."""
        return self._visible[what]

    def move_robot(self, poses: dict[str, pin.SE3]) -> None:
        """Put the links where they are."""
        for frames in (self._links, self._shape_frames if self._visible["shapes"] else {}):
            for link, handle in frames.items():
                X = poses[link]
                quaternion = pin.Quaternion(X.rotation)
                wxyz = np.array([quaternion.w, quaternion.x, quaternion.y, quaternion.z])
                if np.abs(handle.position - X.translation).max() + np.abs(handle.wxyz - wxyz).max() > MOVED:
                    handle.position, handle.wxyz = X.translation, wxyz

    def color_shapes(self, distance: Iterable[float]) -> None:
        """Colour each collision shape by its distance to the nearest other one [m]."""
        for k, d in enumerate(distance):
            color = TOUCHING if d <= 0 else NEAR if d < NEAR_DISTANCE else FREE
            if color != self._shape_color[k]:
                self._shapes[k].color, self._shape_color[k] = color, color

    def move_targets(self, positions: dict[str, tuple[float, float, float]]) -> None:
        """Put a ball where each target is."""
        for name, p in positions.items():
            if name not in self._targets:
                self._targets[name] = self.server.scene.add_icosphere(
                    f"/targets/{name}",
                    radius=TARGET_RADIUS,
                    color=TARGET_COLOR,
                    opacity=0.6,
                    cast_shadow=False,
                    visible=self._visible["targets"],
                )
            self._targets[name].position = np.array(p)

    def move_dancer(self, segments: np.ndarray) -> None:
        """Draw the dancer from the end points (2 B, 3) of his bones."""
        if not len(segments):
            return
        lines = segments.reshape(-1, 2, 3).astype(np.float32)
        scene, visible = self.server.scene, self._visible["dancer"]
        if self._dancer is None or self._dancer.points.shape != lines.shape:
            self._dancer = scene.add_line_segments(
                "/dancer/bones", lines, DANCER_COLOR, thickness=0.025, visible=visible
            )
            self._dancer_points = scene.add_point_cloud(
                "/dancer/points", segments, (20, 60, 140), point_size=0.045, point_shape="circle", visible=visible
            )
            return
        assert self._dancer_points is not None
        self._dancer.points, self._dancer_points.points = lines, segments.astype(np.float32)

    def draw_markers(self, topic: str, markers: list) -> None:
        """Draw the markers of a topic, a list of visualization_msgs/Marker."""
        self._markers[topic].draw(markers)

    def move_com(self, com: np.ndarray) -> None:
        """Put the ball of the centre of mass (3,) and its shadow on the floor."""
        self._com.position = com
        self._com_floor.position = np.array([com[0], com[1], 0.002])
