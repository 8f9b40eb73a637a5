"""Pictures of a performance: what was seen at given times is drawn where it was."""

import io

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("PIL", reason="needs humanoid_control[video]")

from PIL import Image

from humanoid_control.performing import OpenLoop, Stage, perform, standing_motion
from humanoid_control.performing.plan_view import PlanView, coming_landings, plan_view
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.viewer.performance_stills import PerformanceMoments, performance_picture


@pytest.fixture(scope="module")
def standing():
    """A robot that stands, its controller after a tick, and two moments of it."""
    robot = load_robot("hrp2", "floating")
    motion = standing_motion(robot, robot.q("neutral"), 0.2)
    controller = Stage(robot, motion).controller
    world = SimulationConfig(robot.name, "floating").build(load_robot("hrp2", "floating"))
    moments = PerformanceMoments(controller, [0.05, 0.1])
    perform(motion, world, OpenLoop(motion), moments)
    return robot, controller, moments.seen


def test_moments_are_kept_at_their_times(standing):
    robot, _, seen = standing
    assert [round(m.time, 3) for m in seen] == [0.05, 0.1]
    assert all(np.abs(m.joints - robot.postures["neutral"]).max() < 0.05 for m in seen)


def test_the_view_is_that_of_a_robot_on_both_feet(standing):
    robot, controller, _ = standing
    view = plan_view(controller)
    weight = sum(force[2] for _, force in view.forces.values())
    assert set(view.forces) == {0, 1} and weight == pytest.approx(robot.mass * 9.81, rel=0.01)
    corners = np.vstack([p + RigidSoles.of(robot).corners[f] for f, p in enumerate(controller.motion.sole_position[0])])
    assert np.allclose(view.support.min(axis=0), corners[:, :2].min(axis=0), atol=2e-3)
    assert np.allclose(view.support.max(axis=0), corners[:, :2].max(axis=0), atol=2e-3)
    for point in (view.zmp, view.zmp_planned, view.dcm):
        assert (point > view.support.min(axis=0)).all() and (point < view.support.max(axis=0)).all()
    assert view.landings == [] and view.center[2] > 0.4


def test_the_next_landings_come_in_the_order_of_time(standing):
    _, controller, _ = standing
    motion = controller.motion
    motion.stands[5:8, 0], motion.stands[10:14, 1] = False, False
    try:
        assert coming_landings(motion, 0) == [(8, 0), (14, 1)]
        assert coming_landings(motion, 8) == [(14, 1)] and coming_landings(motion, 14) == []
    finally:
        motion.stands[:] = True


def test_a_picture_shows_each_moment_with_its_forces(standing):
    robot, _, seen = standing
    at, up = np.array([5.3, -3.0, 0.0]), np.array([0.0, 0.0, robot.mass * 9.81])
    there = pin.SE3(np.eye(3), np.array([5.0, -3.0, 0.65]))
    moments = []
    for moment, forces in zip(seen, ({0: (at, up)}, {}), strict=True):
        view = PlanView([], forces, np.zeros((0, 2)), at[:2], at[:2], at[:2], at)
        moments.append(moment._replace(view=view, X_world_root=there))
    image = np.asarray(Image.open(io.BytesIO(performance_picture(robot, moments, 400, 240))).convert("RGB")).astype(int)
    assert image.shape == (240, 400, 3)
    red, green, blue = image.transpose(2, 0, 1)
    orange = (red > 180) & (green > 90) & (green < 190) & (blue < 110)
    rows, columns = np.nonzero(orange)
    assert len(rows) > 20 and columns.max() < 200, "the force is that of the left one"
    assert np.ptp(rows) > 3 * np.ptp(columns), "and points upward"
    dark = (image.sum(axis=2) < 480).sum(axis=0)
    assert dark[:200].sum() > 100 and dark[200:].sum() > 100, "a robot on each side"
