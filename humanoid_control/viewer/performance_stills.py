"""Pictures of a simulated performance at several moments, with forces and plan."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.performing import DynamicMotion, WholeBodyController
from humanoid_control.performing.plan_view import PlanView, plan_view
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.robots import Robot
from humanoid_control.simulation import Engine
from humanoid_control.viewer.dance.dancer import DancerView
from humanoid_control.viewer.film import FINER, NAME_COLOR, DancerPainter
from humanoid_control.viewer.raster import Camera, Lines, look_at
from humanoid_control.walking.gait import GRAVITY

SPACING, VIEW = 1.15, 0.42  # [m] between moments; [rad] field of view
ABOVE, AHEAD, TALL = 0.26, 0.0, 1.6  # [rad], [rad] camera elevation and azimuth; [m] minimum visible height
LOOK, GROUND = 0.42, 0.25  # height of the target point, margin below the feet, as shares of the height
FORCE_LENGTH, SHOWN = 0.6, 2  # [m] arrow length of the robot's weight; number of landings
FORCE_COLOR, SUPPORT_COLOR, SOLE_COLORS = (242, 140, 25), (40, 40, 40), ((50, 115, 230), (230, 130, 40))
ZMP_COLOR, PLANNED_COLOR, DCM_COLOR = (217, 38, 38), (140, 51, 191), (25, 153, 77)
SHAFT, BALL, EDGE, UP = 0.022, 0.05, 0.012, 0.008  # [m] thickness of arrows, balls and edges; height above the floor
LIFTED = 0.5  # [rad] equivalent of a lifted foot in the choice of moments
THROUGH = 0.85  # opacity of lines seen through the robots


class Moment(NamedTuple):
    """Observation: time [s], joints (n,) [rad], root pose in the world, plan."""

    time: float
    joints: np.ndarray
    X_world_root: pin.SE3
    view: PlanView


class PerformanceMoments:
    """Observer of `perform` at given times.

    Attributes:
        seen: moments so far.
    """

    def __init__(self, controller: WholeBodyController, times: Sequence[float]) -> None:
        """Create the observer for increasing motion times [s]."""
        self._controller, self._times = controller, list(times)
        self.seen: list[Moment] = []

    def __call__(self, t: float, engine: Engine) -> None:
        """Record due moments."""
        c = self._controller
        while self._times and t >= self._times[0] - 1e-9 and c.estimate is not None:
            root = engine.link_pose(engine.robot.root_link)
            self.seen.append(Moment(t, engine.joints.copy(), root, plan_view(c)))
            self._times.pop(0)


def striking_times(motion: DynamicMotion, robot: Robot, count: int) -> list[float]:
    """Return clip times [s] far from standing, one in each of `count` parts."""
    on = np.flatnonzero(motion.playing) if motion.playing.any() else np.arange(len(motion))
    far = np.linalg.norm(motion.q[:, robot.iq :] - robot.postures["neutral"], axis=1)
    far += LIFTED * (~motion.stands).any(axis=1)
    parts = [part for part in np.array_split(on, count) if len(part)]
    return [float(motion.clock[part[int(np.argmax(far[part]))]]) for part in parts]


def times_of(motion: DynamicMotion, clip_times: Sequence[float]) -> list[float]:
    """Return motion times [s] of clip times [s]."""
    frames = np.searchsorted(motion.clock, np.asarray(clip_times) - 1e-9)
    return [float(k) / motion.rate for k in np.minimum(frames, len(motion) - 1)]


def stacked_pictures(pictures: Sequence[bytes]) -> bytes:
    """Return one PNG of vertically stacked pictures."""
    from PIL import Image

    images = [Image.open(io.BytesIO(picture)) for picture in pictures]
    whole = Image.new("RGB", (images[0].width, sum(image.height for image in images)))
    y = 0
    for image in images:
        whole.paste(image, (0, y))
        y += image.height
    file = io.BytesIO()
    whole.save(file, "PNG", optimize=True)
    return file.getvalue()


def performance_picture(
    robot: Robot, moments: Sequence[Moment], width: int = 1400, height: int = 560, at: float = AHEAD
) -> bytes:
    """Return a PNG of moments from left to right, rendered on the CPU.

    Orange: foot forces, 0.6 m for the weight; red, violet: measured, planned ZMP; green: DCM; dark: support polygon;
    rectangles: next landings.

    Args:
        moments: at least one moment.
        width: picture width [pixels].
        height: picture height [pixels].
        at: camera azimuth, 0 in front of the robots [rad].
    """
    from PIL import Image, ImageDraw, ImageFont

    painter = DancerPainter([robot] * len(moments), width, height)
    places = np.array([_place(k, moment) for k, moment in enumerate(moments)])
    views = [_view(robot, moment) for moment in moments]
    top = max(float(X.translation[2]) for view in views for X in view.poses.values())
    camera = _camera(len(moments), width, height, at, max(TALL, 1.1 * top))
    picture = painter.draw(camera, views, places, lines=_lines(robot, moments, places))
    image = Image.fromarray(picture)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(max(12, round(0.035 * height)))
    for k, moment in enumerate(moments):
        x, _, z = camera.R @ (np.array([0.0, k * SPACING, 0.0]) - camera.eye)
        across = 0.5 * width + camera.focal / FINER * x / z
        draw.text((across, 0.97 * height), f"{moment.time:.1f} s", fill=NAME_COLOR, font=font, anchor="ms")
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _place(k: int, moment: Moment) -> np.ndarray:
    return np.array([0.0, k * SPACING, 0.0]) - moment.X_world_root.translation * [1.0, 1.0, 0.0]


def _view(robot: Robot, moment: Moment) -> DancerView:
    nothing = np.zeros((0, 3))
    # Copies, because the next posture overwrites the poses.
    found = robot.link_poses(robot.q(moment.joints, moment.X_world_root))
    poses = {link: X.copy() for link, X in found.items()}
    root = moment.X_world_root.translation
    return DancerView(poses, nothing, nothing, nothing, nothing, np.zeros(0, bool), np.zeros(0), root)


def _camera(count: int, width: int, height: int, at: float, tall: float) -> Camera:
    middle = np.array([0.0, 0.5 * SPACING * (count - 1), LOOK * tall])
    wide = SPACING * count + 0.7
    far = max(0.5 * wide * height / width, 0.5 * (1.0 + GROUND) * tall) / np.tan(0.5 * VIEW)
    eye = middle + far * np.array([np.cos(at) * np.cos(ABOVE), np.sin(at) * np.cos(ABOVE), np.sin(ABOVE)])
    return look_at(eye, middle, VIEW, FINER * height)


def _lines(robot: Robot, moments: Sequence[Moment], places: np.ndarray) -> Lines:
    ends, radii, colors, opacities = [], [], [], []

    def add(a: np.ndarray, b: np.ndarray, thick: float, color: tuple[int, int, int], opacity: float = 1.0) -> None:
        ends.append([a, b])
        opacities.append(opacity)
        radii.append(0.5 * thick)
        colors.append(np.array(color) / 255.0)

    def outline(corners: np.ndarray, thick: float, color: tuple[int, int, int]) -> None:
        for k in range(len(corners)):
            add(corners[k - 1], corners[k], thick, color)

    soles = RigidSoles.of(robot)
    for moment, place in zip(moments, places, strict=True):
        view = moment.view
        for at, force in view.forces.values():
            arrow = FORCE_LENGTH / (robot.mass * GRAVITY) * force
            add(at + place, at + place + 0.92 * arrow, SHAFT, FORCE_COLOR, THROUGH)
            add(at + place + 0.92 * arrow, at + place + arrow, 2.5 * SHAFT, FORCE_COLOR, THROUGH)
        for _, f, X in view.landings[:SHOWN]:
            outline(soles.corners[f][[0, 1, 3, 2]] @ X.rotation.T + X.translation + place, EDGE, SOLE_COLORS[f])
        flat = np.full(len(view.support), UP)
        outline(np.column_stack([view.support, flat]) + place, EDGE, SUPPORT_COLOR)
        for xy, color in ((view.dcm, DCM_COLOR), (view.zmp_planned, PLANNED_COLOR), (view.zmp, ZMP_COLOR)):
            ball = np.array([*xy, UP]) + place
            add(ball, ball + [0.0, 0.0, 1e-3], BALL, color, THROUGH)
    return Lines(
        np.array(ends, dtype=float).reshape(-1, 2, 3),
        np.array(radii, dtype=float),
        np.array(colors, dtype=float).reshape(-1, 3),
        np.array(opacities, dtype=float),
    )
