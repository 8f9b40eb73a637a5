"""Robots' collision volumes in a row, each coloured by the distance to its nearest partner: for a picture."""

from __future__ import annotations

import json

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv_model import SsvModel
from humanoid_control.robots import Robot
from humanoid_control.viewer.line_up import LineUp
from humanoid_control.viewer.segments.colors import UNKNOWN, bar_html, color_of
from humanoid_control.viewer.segments.distances import Distances, Measure
from humanoid_control.viewer.segments.drawing import layered, triangles
from humanoid_control.viewer.segments.gaps import MARK, MARK_RADIUS

SHADE, VOLUME, FAR = 0.25, 0.8, 0.35  # opacity of a robot, of its nearest volumes, and of the others
VIEW = 0.7  # [rad] angle of the camera: robots at the ends are not drawn askew
WIDE = 1.3  # [m] from one robot to the next


class CollisionRow:
    """Robots side by side with their volumes; a red ball marks the smallest gap of each."""

    def __init__(self, port: int) -> None:
        """Open the page at a port."""
        self.row = LineUp(port, WIDE)
        self._robots: list[tuple[Robot, SsvModel, Distances, dict[str, pin.SE3], np.ndarray]] = []

    def add(self, robot: Robot, model: SsvModel, joints: np.ndarray) -> None:
        """Put a robot in a posture (n,) at the right end."""
        place = self.row.add_robot(robot, joints, SHADE)
        poses = dict(robot.link_poses(robot.q(joints)))
        self._robots.append((robot, model, Measure(robot)(model, joints), poses, place))

    def look(self, aspect: float) -> None:
        """Draw the volumes in colours common to all, and put the camera in front of the row."""
        scene, largest = self.row.server.scene, self.largest
        for robot, model, distances, poses, place in self._robots:
            volumes = [(s.link, v) for s in model.segments for v in s.ssvs]
            for k, ((link, ssv), d) in enumerate(zip(volumes, distances.volumes, strict=True)):
                vertices, faces = triangles(layered(ssv, k))
                near = bool(np.isfinite(d))
                scene.add_mesh_simple(
                    f"/volumes/{robot.name}/{k}",
                    vertices @ poses[link].rotation.T + poses[link].translation + place,
                    faces,
                    color=color_of(d, largest) if near else UNKNOWN,
                    opacity=VOLUME if near else FAR,
                    cast_shadow=False,
                )
            gap = distances.smallest
            if gap is not None:
                middle = (gap.point_1 + gap.point_2) / 2 + place
                scene.add_icosphere(f"/mark/{robot.name}", radius=1.3 * MARK_RADIUS, color=MARK, position=middle)
            word = f"{robot.title}: {1000 * gap.distance:.0f} mm" if gap else robot.title
            scene.add_label(f"/name/{robot.name}", word, position=place + [0.35, 0, 0.03], anchor="top-center")
        self.row.look(aspect, VIEW)

    @property
    def largest(self) -> float:
        """Upper end of the colours [m]: the largest gap of all."""
        return max(distances.largest for _, _, distances, _, _ in self._robots)

    def bar_script(self, width: int) -> str:
        """JavaScript that lays the colour bar over the bottom of the page."""
        smallest = min((d.smallest.distance for _, _, d, _, _ in self._robots if d.smallest), default=0.0)
        html = bar_html(self.largest, smallest, font=15)
        style = f"position:fixed;left:50%;bottom:6px;width:{width}px;margin-left:-{width // 2}px;font-family:sans-serif"
        return (
            f"(() => {{ const e = document.createElement('div'); e.style.cssText = {json.dumps(style)};"
            f"e.innerHTML = {json.dumps(html)}; document.body.appendChild(e) }})()"
        )

    def stop(self) -> None:
        """Close the page."""
        self.row.stop()
