"""Still scenes and pictures without ROS: robots in a row, with a dancer, standing or walking.

```python
from humanoid_control.mocap import load_body_points
from humanoid_control.robots import load_robots
from humanoid_control.viewer.stills import Shot, line_up_picture

picture = line_up_picture(load_robots(["hrp2", "lola"], "fixed"), load_body_points("dance"), 9.0, Shot(height=560))
```
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.model import SsvModel
from humanoid_control.errors import RobotError
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.robots import Robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.volumes import volumes_of
from humanoid_control.viewer.browser import photograph
from humanoid_control.viewer.meshes import link_meshes
from humanoid_control.viewer.scene import DANCER_COLOR, quaternion_wxyz
from humanoid_control.viewer.server import light_scene, open_server
from humanoid_control.viewer.volume_editor.distances import UNKNOWN, Distances, EditorDistances, bar_html, color_of
from humanoid_control.viewer.volume_editor.scene import MARK, MARK_RADIUS, layered, triangles

if TYPE_CHECKING:
    from humanoid_control.simulation import Engine

HIDE_PANEL = """(() => { const e = document.createElement('style');
e.textContent = '[class*=mantine-Paper-root], [class*=Notification] { display: none !important }';
document.head.appendChild(e) })()"""  # by style, so that later elements are hidden too
CLOSE_NOTICES = "document.querySelectorAll('[class*=Notification-closeButton]').forEach(b => b.click())"
SPACING, COLLISION_SPACING = 1.15, 1.3  # [m] between robots
VIEW, COLLISION_VIEW = 1.309, 0.7  # [rad] field of view; small to limit perspective distortion
TALL = 2.2  # [m] height with raised arms
# of the robot, of its nearest volumes, of other volumes
ROBOT_OPACITY, NEAREST_OPACITY, OTHER_OPACITY = 0.25, 0.8, 0.35
FORCE_COLOR = (30, 140, 60)
METRES_PER_NEWTON = 1 / 500.0
STANDING_OPACITY, STANDING_SPACING, STANDING_VIEW = 0.5, 1.3, 0.7  # translucent, so that forces are visible
BAR = 620  # [px] width of the colour bar
# film strip: number of robots, [s] between them, [rad] field of view
STRIP_MOMENTS, STRIP_EVERY, STRIP_VIEW = 5, 1.9, 0.35
STRIP_SPEED = 0.5  # [m/s] for the leg length of an adult
SOLE_COLORS = ((50, 115, 230), (230, 130, 40))  # left, right
SOLE_THICK, PRINT_APART = 0.008, 0.05  # [m]


class Shot(NamedTuple):
    """Picture of a still scene: port, width and height [pixels], shadows (see `light_scene`)."""

    port: int = 8096
    width: int = 1400
    height: int = 860
    shadows: bool = True

    @property
    def aspect(self) -> float:
        return self.width / self.height

    def take(self, *scripts: str) -> bytes:
        """Return a PNG of the page without its panel, after running scripts.

        Raises:
            EnvironmentProblem: if Chromium is missing.
        """
        return photograph(self.port, self.width, self.height, (CLOSE_NOTICES, HIDE_PANEL, *scripts))


class LineUp:
    """Page with robots and a dancer in a row, facing the camera."""

    def __init__(self, port: int, spacing: float = SPACING, shadows: bool = True) -> None:
        """Open the page.

        Args:
            spacing: distance between neighbours [m].
        """
        self.server = open_server(port)
        self.spacing, self._count, self._prints = spacing, 0, 0
        scene = self.server.scene
        scene.set_up_direction("+z")
        light_scene(scene, shadows)

    def add_robot(
        self,
        robot: Robot,
        joints: np.ndarray,
        opacity: float | None = None,
        X_world_root: pin.SE3 | None = None,
        label: str = "",
    ) -> np.ndarray:
        """Add a robot at the right end of the row; return its offset (3,) [m].

        Args:
            joints: posture (n,) [rad].
            opacity: opacity of its meshes.
            X_world_root: root pose of a floating base; default: standing.
            label: suffix of its scene name.
        """
        place = self._next()
        poses = robot.link_poses(robot.q(joints, X_world_root))
        for link, meshes in link_meshes(parse_urdf(robot.urdf, robot.name), robot.folder).items():
            if not meshes:
                continue
            X, name = poses[link], f"/{robot.name}{label}/{link}"
            wxyz = quaternion_wxyz(X.rotation)
            self.server.scene.add_frame(name, show_axes=False, position=X.translation + place, wxyz=wxyz)
            for k, ((vertices, faces), color) in enumerate(meshes):
                self.server.scene.add_mesh_simple(f"{name}/{k}", vertices, faces, color=color, opacity=opacity)
        return place

    def add_dancer(self, segments: np.ndarray) -> None:
        """Draw the dancer from bone ends (2 B, 3) [m]."""
        place = self._next()
        points = (segments + place).astype(np.float32)
        scene = self.server.scene
        scene.add_line_segments("/dancer/bones", points.reshape(-1, 2, 3), DANCER_COLOR, thickness=0.03)
        scene.add_point_cloud("/dancer/points", points, (20, 60, 140), point_size=0.05, point_shape="circle")

    def add_standing(self, robot: Robot, seconds: float) -> None:
        """Add a robot that stands on simulated ground, with contact forces.

        Args:
            robot: robot with a floating base; drives are elastic if it has a motor file.
            seconds: simulated time [s].

        Raises:
            RobotError: if it cannot stand.
        """
        from humanoid_control.robots.drives import drives_of
        from humanoid_control.simulation import WorldSettings, make_engine

        drives = "elastic" if any(d.motor for d in drives_of(robot).drives) else "ideal"
        world = make_engine(robot, settings=WorldSettings(drives=drives))
        start = world.q[:3].copy()
        world.step(round(seconds / world.settings.step))
        if world.diverged:
            raise RobotError(f"{robot.name}: {world.failure}")
        place = self.add_robot(
            robot, robot.joints(world.q), STANDING_OPACITY, X_world_root=world.link_pose(robot.root_link)
        )
        self._draw_forces(robot, world, place)
        moved = 1e3 * float(np.linalg.norm(world.q[:3] - start))
        word = f"{robot.title}: {robot.mass:.0f} kg, {drives} drives, {seconds:g} s, moved {moved:.1f} mm"
        self.server.scene.add_label(f"/name/{robot.name}", word, position=place + [0.45, 0, 0.03], anchor="top-center")

    def _draw_forces(self, robot: Robot, world: Engine, place: np.ndarray) -> None:
        segments = []
        for foot in robot.feet:
            wrench, X = world.foot_wrenches()[foot.name], world.link_pose(foot.link)
            if wrench[2] > 1.0:  # centre of pressure in sole coordinates about its centre
                centre = foot.corners().mean(axis=0) + [-wrench[4] / wrench[2], wrench[3] / wrench[2], 0.0]
                at = X.act(centre) + place
                segments.append([at, at + METRES_PER_NEWTON * X.rotation @ wrench[:3]])
        if segments:
            lines = np.array(segments, dtype=np.float32)
            self.server.scene.add_line_segments(f"/force/{robot.name}", lines, FORCE_COLOR, thickness=0.03)

    def _next(self) -> np.ndarray:
        self._count += 1
        return np.array([0.0, -self.spacing * (self._count - 1), 0.0])

    def set_camera(self, aspect: float, view: float = VIEW) -> None:
        """Add the floor, and place the camera in front.

        Args:
            aspect: width over height.
            view: vertical field of view [rad].
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

    def add_sole(self, lower: np.ndarray, upper: np.ndarray, X: pin.SE3, foot: int) -> None:
        """Draw a footprint from `lower` to `upper` (2,) [m] in the sole frame, at a pose."""
        at = X.act(np.array([*(0.5 * (lower + upper)), 0.5 * SOLE_THICK]))
        size = (float(upper[0] - lower[0]), float(upper[1] - lower[1]), SOLE_THICK)
        self._prints += 1
        self.server.scene.add_box(
            f"/prints/{self._prints}", color=SOLE_COLORS[foot], dimensions=size, position=at,
            wxyz=quaternion_wxyz(X.rotation), cast_shadow=False,
        )  # fmt: skip

    def look_from_the_side(self, begin: float, end: float, aspect: float) -> None:
        """Add the floor and view a path along x [m] from its side."""
        middle, wide = 0.5 * (begin + end), end - begin + 1.3
        self.server.scene.add_grid(
            "/floor", width=wide + 6.0, height=8.0, cell_size=0.25, section_size=1.0, shadow_opacity=0.25,
            position=(middle, 0.0, 0.0),
        )  # fmt: skip
        camera = self.server.initial_camera
        far = max(0.5 * wide / aspect, 0.48 * TALL) / math.tan(STRIP_VIEW / 2)
        camera.position = (middle, -far, 0.16 * far)
        camera.look_at = (middle, 0.0, 0.85)
        camera.up = (0.0, 0.0, 1.0)
        camera.fov = STRIP_VIEW

    def stop(self) -> None:
        self.server.stop()


class CollisionRow:
    """Row of robots with their volumes and smallest gaps."""

    def __init__(self, port: int, shadows: bool = True) -> None:
        self.row = LineUp(port, COLLISION_SPACING, shadows)
        self._robots: list[tuple[Robot, SsvModel, Distances, dict[str, pin.SE3], np.ndarray]] = []

    def add(self, robot: Robot, model: SsvModel, joints: np.ndarray) -> None:
        """Add a robot in a posture (n,) [rad] at the right end."""
        place = self.row.add_robot(robot, joints, ROBOT_OPACITY)
        poses = dict(robot.link_poses(robot.q(joints)))
        self._robots.append((robot, model, EditorDistances(robot).at(model, joints), poses, place))

    def draw(self, aspect: float) -> None:
        """Draw all volumes on a common colour scale."""
        scene, largest = self.row.server.scene, self.largest
        for robot, model, distances, poses, place in self._robots:
            volumes = [(s.link, v) for s in model.segments for v in s.volumes]
            for k, ((link, ssv), d) in enumerate(zip(volumes, distances.volumes, strict=True)):
                vertices, faces = triangles(layered(ssv, k))
                near = bool(np.isfinite(d))
                scene.add_mesh_simple(
                    f"/volumes/{robot.name}/{k}",
                    vertices @ poses[link].rotation.T + poses[link].translation + place,
                    faces,
                    color=color_of(d, largest) if near else UNKNOWN,
                    opacity=NEAREST_OPACITY if near else OTHER_OPACITY,
                    cast_shadow=False,
                )
            gap = distances.smallest
            if gap is not None:
                middle = (gap.point_1 + gap.point_2) / 2 + place
                scene.add_icosphere(f"/mark/{robot.name}", radius=1.3 * MARK_RADIUS, color=MARK, position=middle)
            word = f"{robot.title}: {1000 * gap.distance:.0f} mm" if gap else robot.title
            scene.add_label(f"/name/{robot.name}", word, position=place + [0.35, 0, 0.03], anchor="top-center")
        self.row.set_camera(aspect, COLLISION_VIEW)

    @property
    def largest(self) -> float:
        """Upper end of the colour scale [m]: the largest gap."""
        return max(distances.largest for _, _, distances, _, _ in self._robots)

    def bar_script(self, width: int) -> str:
        """Return JavaScript that shows the colour bar."""
        smallest = min((d.smallest.distance for _, _, d, _, _ in self._robots if d.smallest), default=0.0)
        html = bar_html(self.largest, smallest, font=15)
        style = f"position:fixed;left:50%;bottom:6px;width:{width}px;margin-left:-{width // 2}px;font-family:sans-serif"
        return (
            f"(() => {{ const e = document.createElement('div'); e.style.cssText = {json.dumps(style)};"
            f"e.innerHTML = {json.dumps(html)}; document.body.appendChild(e) }})()"
        )

    def stop(self) -> None:
        self.row.stop()


# -------- Pictures


def line_up_picture(robots: Sequence[Robot], body: BodyPoints, at: float, shot: Shot) -> bytes:
    """Return a PNG of the dancer and imitating robots at one time of a clip.

    Args:
        robots: robots with fixed bases.
        at: time in the clip [s].

    Raises:
        RobotError: see `scale_to_robot`.
        ClipError: see `scale_to_robot`.
        EnvironmentProblem: see `Shot.take`.
    """
    bones, postures = solved_moment(robots, body, at)
    scene = LineUp(shot.port, shadows=shot.shadows)
    try:
        scene.add_dancer(bones)
        for robot, joints in zip(robots, postures, strict=True):
            scene.add_robot(robot, joints)
        scene.set_camera(shot.aspect)
        return shot.take()
    finally:
        scene.stop()


def collision_picture(robots: Sequence[Robot], postures: Sequence[np.ndarray], shot: Shot) -> bytes:
    """Return a PNG of robots in postures (n,) [rad] with coloured volumes.

    Raises:
        EnvironmentProblem: see `Shot.take`.
    """
    row = CollisionRow(shot.port, shot.shadows)
    try:
        for robot, joints in zip(robots, postures, strict=True):
            row.add(robot, volumes_of(robot, by_link=True), joints)
        row.draw(shot.aspect)
        return shot.take(row.bar_script(min(BAR, shot.width - 40)))
    finally:
        row.stop()


def standing_picture(
    robots: Sequence[Robot], seconds: float, shot: Shot, progress: Callable[[int, str], None] = lambda done, name: None
) -> bytes:
    """Return a PNG of standing robots with contact forces.

    Args:
        robots: robots with floating bases.
        seconds: simulated time [s].
        progress: called with the number of finished robots and the next name.

    Raises:
        RobotError: see `LineUp.add_standing`.
        EnvironmentProblem: see `Shot.take`.
    """
    row = LineUp(shot.port, STANDING_SPACING, shot.shadows)
    try:
        for k, robot in enumerate(robots):
            progress(k, robot.name)
            row.add_standing(robot, seconds)
        row.set_camera(shot.aspect, STANDING_VIEW)
        return shot.take()
    finally:
        row.stop()


def strip_picture(robot: Robot, shot: Shot, progress: Callable[[int, str], None] = lambda done, name: None) -> bytes:
    """Return a PNG of a walking robot at several times, with footprints.

    Args:
        robot: robot with a floating base and two feet.
        progress: called with the number of finished times, and the activity.

    Raises:
        RobotError: if it lacks two feet, or falls.
        EnvironmentProblem: see `Shot.take`.
    """
    from humanoid_control.simulation import make_engine
    from humanoid_control.walking import Walker, WalkState
    from humanoid_control.walking.walk_task import leg_length

    walker, engine = Walker(robot), make_engine(robot)
    engine.step(300)
    row, seen, prints = LineUp(shot.port, 0.0, shot.shadows), list[float](), [np.full(3, np.inf), np.full(3, np.inf)]
    begin = 0.0
    try:
        while len(seen) < STRIP_MOMENTS:
            if walker.t > 1.0:
                walker.command(np.array([STRIP_SPEED * min(leg_length(robot) / 0.87, 1.0), 0.0, 0.0]))
            report = walker.step(engine.read())
            if report.state == WalkState.FALLEN:
                raise RobotError(f"{robot.name} fell: {report.why}")
            engine.command(walker.joints, walker.joint_velocity)
            engine.step(round(walker.settings.dt / engine.settings.step))
            for foot, X in enumerate(report.references.soles):
                new = not np.linalg.norm(X.translation - prints[foot]) < PRINT_APART
                if foot != report.references.swinging and new:
                    prints[foot] = X.translation.copy()
                    row.add_sole(walker.feet.lower[foot], walker.feet.upper[foot], X, foot)
            begin = begin or (walker.t if report.references.swinging is not None else 0.0)
            if begin and walker.t >= begin + 0.5 + STRIP_EVERY * len(seen):
                progress(len(seen), f"after {walker.t - begin:.1f} s")
                row.add_robot(robot, engine.joints, None, engine.link_pose(robot.root_link), f"_{len(seen)}")
                seen.append(float(engine.q[0]))
        row.look_from_the_side(min(seen), max(seen), shot.aspect)
        return shot.take()
    finally:
        row.stop()


def solved_moment(robots: Sequence[Robot], body: BodyPoints, at: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """Solve a clip from its beginning; return dancer and robots at time `at` [s].

    Returns:
        Bone ends of the dancer (2 B, 3) [m], and joint positions (n,) [rad] of each robot.
    """
    from humanoid_control.retargeting import Figure, retarget_clip, scale_to_robot

    frame = min(round(at * body.rate), body.n_frames - 1)
    targets = [scale_to_robot(body, robot) for robot in robots]
    bones = Figure(targets[0], 0.0).segments(targets[0].body[frame])
    return bones, [retarget_clip(goal, robot).positions[frame] for goal, robot in zip(targets, robots, strict=True)]
