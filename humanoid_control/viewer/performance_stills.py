"""Pictures of a performance under physics: a robot at several moments, with forces and plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.performing import WholeBodyController
from humanoid_control.performing.plan_view import PlanView, plan_view
from humanoid_control.robots import Robot
from humanoid_control.simulation import Engine
from humanoid_control.viewer.scene import quaternion_wxyz
from humanoid_control.viewer.stills import SOLE_COLORS, LineUp, Shot

SPACING, VIEW = 1.25, 0.5  # [m] from one moment to the next; [rad] of the camera
FORCE_LENGTH = 0.6  # [m] of the robot's weight
FORCE_COLOR, SUPPORT_COLOR = (242, 140, 25), (40, 40, 40)
ZMP_COLOR, PLANNED_COLOR, DCM_COLOR = (217, 38, 38), (140, 51, 191), (25, 153, 77)
BALL, LINE, THICK = 0.025, 0.012, 0.008  # [m]
ARROW = {"shaft_radius": 0.012, "head_radius": 0.03, "head_length": 0.08}  # [m]
TURNED, NEAR, HIGH, LOW = 0.45, 1.15, 1.5, 0.62  # [rad] of the camera; of its distance; [m] it is, and looks at


class Moment(NamedTuple):
    """What was seen at a time [s]: joints (n,), pose of the root link in the world and in the controller's, plan."""

    time: float
    joints: np.ndarray
    X_world_root: pin.SE3
    view: PlanView


class Moments:
    """Looks at a performance at given times: a watcher of `perform`.

    Attributes:
        seen: moments so far.
    """

    def __init__(self, controller: WholeBodyController, times: Sequence[float]) -> None:
        """Prepare; times: of the motion, in order [s]."""
        self._controller, self._times = controller, list(times)
        self.seen: list[Moment] = []

    def __call__(self, t: float, engine: Engine) -> None:
        """See `perform`."""
        c = self._controller
        while self._times and t >= self._times[0] - 1e-9 and c.estimate is not None:
            root = engine.link_pose(engine.robot.root_link)
            self.seen.append(Moment(t, engine.joints.copy(), root, plan_view(c)))
            self._times.pop(0)


def performance_picture(robot: Robot, moments: Sequence[Moment], shot: Shot) -> bytes:
    """A PNG of moments of a performance, from left to right as the robot faces the camera.

    Orange: the forces on the feet; red and violet: the zero-moment point that is felt, and that of the plan; green:
    the divergent component; dark: the support polygon; blue and orange boxes: where the feet come down next.

    Args:
        robot: that performed. moments: of `Moments`. shot: port and size.

    Raises:
        EnvironmentProblem: as `Shot.take`.
    """
    row = LineUp(shot.port, 0.0, shot.shadows)
    try:
        for k, moment in enumerate(moments):
            _add_moment(row, robot, k, moment)
        _set_camera(row, len(moments), shot.aspect)
        return shot.take()
    finally:
        row.stop()


def _add_moment(row: LineUp, robot: Robot, k: int, moment: Moment) -> None:
    """Draw one moment at its place in the row."""
    root, view, scene, name = moment.X_world_root, moment.view, row.server.scene, f"/moment/{k}"
    place = np.array([0.0, k * SPACING, 0.0]) - [*root.translation[:2], 0.0]
    there = pin.SE3(root.rotation, root.translation + place)
    row.add_robot(robot, moment.joints, None, there, f"_{k}")
    for f, (at, force) in view.forces.items():
        ends = np.array([[at + place, at + place + FORCE_LENGTH / (robot.mass * 9.81) * force]], dtype=np.float32)
        scene.add_arrows(f"{name}/force/{f}", ends, FORCE_COLOR, **ARROW)
    points = (("zmp", view.zmp, ZMP_COLOR), ("planned", view.zmp_planned, PLANNED_COLOR), ("dcm", view.dcm, DCM_COLOR))
    for what, xy, color in points:
        scene.add_icosphere(f"{name}/{what}", radius=BALL, color=color, position=place + [*xy, THICK])
    if len(view.support):
        corners = np.column_stack([view.support, np.full(len(view.support), THICK)]) + place
        lines = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1).astype(np.float32)
        scene.add_line_segments(f"{name}/support", lines, SUPPORT_COLOR, thickness=LINE)
    for number, f, X in view.landings[:2]:
        _add_landing(row, robot, f"{name}/landing/{number}", f, pin.SE3(X.rotation, X.translation + place))
    scene.add_label(
        f"{name}/label", f"{moment.time:.1f} s", position=place + [*root.translation[:2], 0.0] + [0.55, 0, 0]
    )


def _add_landing(row: LineUp, robot: Robot, name: str, f: int, X: pin.SE3) -> None:
    """A box where a foot comes down."""
    from humanoid_control.performing.source_motion import RigidSoles

    corners = RigidSoles.of(robot).corners[f]
    low, high = corners.min(axis=0), corners.max(axis=0)
    row.server.scene.add_box(
        name, color=SOLE_COLORS[f], dimensions=(*(high - low)[:2].tolist(), THICK),
        position=X.act(np.array([*(0.5 * (low + high))[:2], 0.5 * THICK])), wxyz=quaternion_wxyz(X.rotation),
        opacity=0.6, cast_shadow=False,
    )  # fmt: skip


def _set_camera(row: LineUp, count: int, aspect: float) -> None:
    """Lay the floor, and put the camera in front of the row, a little aside."""
    middle, wide = 0.5 * SPACING * (count - 1), SPACING * count
    row.server.scene.add_grid(
        "/floor", width=wide + 6.0, height=wide + 6.0, cell_size=0.25, section_size=1.0, shadow_opacity=0.25,
        position=(0.0, middle, 0.0),
    )  # fmt: skip
    camera = row.server.initial_camera
    far = NEAR * max(0.5 * wide / aspect, 0.9) / np.tan(VIEW / 2)
    camera.position = (far * float(np.cos(TURNED / 4)), middle + far * float(np.sin(TURNED / 4)), HIGH)
    camera.look_at = (0.0, middle, LOW)
    camera.up = (0.0, 0.0, 1.0)
    camera.fov = VIEW
