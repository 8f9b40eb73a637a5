"""Several robots side by side in one posture of a clip, with the dancer: a still scene for a picture, without ROS."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import viser

from humanoid_control.robots import Robot
from humanoid_control.robots.urdf_tree import parse_urdf
from humanoid_control.viewer.meshes import link_meshes
from humanoid_control.viewer.scene import DANCER_COLOR

HIDE_PANEL = """(() => { const e = document.createElement('style');
e.textContent = '[class*=mantine-Paper-root], [class*=Notification] { display: none !important }';
document.head.appendChild(e) })()"""  # by style: also what appears later
CLOSE_NOTICES = "document.querySelectorAll('[class*=Notification-closeButton]').forEach(b => b.click())"
VIEW = 1.309  # [rad] the camera's angle from top to bottom
TALL = 2.2  # [m] a dancer with raised arms


class LineUp:
    """A page in which robots and a dancer stand in a row, facing the camera."""

    def __init__(self, port: int, spacing: float = 1.15) -> None:
        """Open the page.

        Args:
            port: of the page.
            spacing: between neighbours [m].
        """
        self.server = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
        self.spacing, self._count = spacing, 0
        scene = self.server.scene
        scene.set_up_direction("+z")
        scene.configure_default_lights(cast_shadow=True)

    def add_robot(
        self,
        robot: Robot,
        joints: np.ndarray,
        opacity: float | None = None,
        X_world_root: pin.SE3 | None = None,
    ) -> np.ndarray:
        """Put a robot in a posture (n,) at the right end of the row, as the camera sees it; where (3,) that is.

        Args:
            X_world_root: where its root is, for a floating base; default: standing in the neutral posture.
        """
        place = self._next()
        poses = robot.link_poses(robot.q(joints, X_world_root))
        for link, meshes in link_meshes(parse_urdf(robot.urdf, robot.name), None).items():
            if not meshes:
                continue
            X, name = poses[link], f"/{robot.name}/{link}"
            quaternion = pin.Quaternion(X.rotation)
            wxyz = np.array([quaternion.w, quaternion.x, quaternion.y, quaternion.z])
            self.server.scene.add_frame(name, show_axes=False, position=X.translation + place, wxyz=wxyz)
            for k, ((vertices, faces), color) in enumerate(meshes):
                self.server.scene.add_mesh_simple(f"{name}/{k}", vertices, faces, color=color, opacity=opacity)
        return place

    def add_dancer(self, segments: np.ndarray) -> None:
        """Draw the dancer from the end points (2 B, 3) of his bones, who stands at the origin."""
        place = self._next()
        points = (segments + place).astype(np.float32)
        scene = self.server.scene
        scene.add_line_segments("/dancer/bones", points.reshape(-1, 2, 3), DANCER_COLOR, thickness=0.03)
        scene.add_point_cloud("/dancer/points", points, (20, 60, 140), point_size=0.05, point_shape="circle")

    def _next(self) -> np.ndarray:
        self._count += 1
        return np.array([0.0, -self.spacing * (self._count - 1), 0.0])

    def look(self, aspect: float, view: float = VIEW) -> None:
        """Lay the floor and put the camera in front of the whole row.

        Args:
            aspect: width over height of the picture.
            view: the camera's angle from top to bottom [rad].
        """
        middle = -self.spacing * (self._count - 1) / 2
        size = self.spacing * self._count + 4.0
        self.server.scene.add_grid(
            "/floor", width=size, height=size, cell_size=0.25, section_size=1.0, shadow_opacity=0.25,
            position=(0.0, middle, 0.0),
        )  # fmt: skip
        camera = self.server.initial_camera
        far = max((0.5 * self.spacing * self._count + 0.2) / aspect, 0.5 * TALL) / math.tan(view / 2)
        camera.position = (far + 0.3, middle, 1.1)
        camera.look_at = (0.0, middle, 0.9)
        camera.up = (0.0, 0.0, 1.0)
        camera.fov = view

    def stop(self) -> None:
        """Close the page."""
        self.server.stop()
