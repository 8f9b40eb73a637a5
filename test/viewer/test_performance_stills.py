"""Pictures of a performance: what was seen at given times is drawn where it was."""

import io
from dataclasses import replace

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
from humanoid_control.viewer.performance_stills import (
    PerformanceMoments,
    performance_picture,
    stacked_pictures,
    striking_times,
    times_of,
)


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


def test_striking_moments_are_the_farthest_from_standing_of_each_part(standing):
    robot, _, _ = standing
    motion = standing_motion(robot, robot.q("neutral"), 3.0)
    motion = replace(motion, clock=np.linspace(0.0, 1.5, len(motion)))  # at half its pace
    for frame in (40, 180):
        motion.q[frame, 7:] += 0.3
    assert striking_times(motion, robot, 2) == pytest.approx([motion.clock[40], motion.clock[180]])
    motion.stands[250, 0] = False
    assert striking_times(motion, robot, 3)[2] == pytest.approx(motion.clock[250]), "a foot in the air counts"
    assert times_of(motion, [motion.clock[40], 9.0]) == pytest.approx([0.4, (len(motion) - 1) / motion.rate])


def test_each_moment_is_drawn_in_its_own_posture(standing):
    """Both arms up in one of two moments, or in both: the pictures differ only where the arms are down in one."""
    robot, _, seen = standing
    raised = seen[0].joints.copy()
    for side in "lr":
        raised[robot.index[f"{side}_shoulder_flexion"]] = -3.0
    drawn = {}
    for name, postures in (("up, down", (raised, seen[0].joints)), ("up, up", (raised, raised))):  # one camera for both
        moments = [seen[0]._replace(joints=joints) for joints in postures]
        drawn[name] = np.array(Image.open(io.BytesIO(performance_picture(robot, moments, 400, 200)))).astype(int)
    changed = np.abs(drawn["up, down"] - drawn["up, up"]).max(axis=2) > 30
    left, right = changed[:, :160], changed[:, 200:]
    assert right.sum() > 200 and left.sum() < 0.1 * right.sum()


def test_pictures_are_stacked_in_their_order(standing):
    robot, _, seen = standing
    one, other = (performance_picture(robot, seen[:k], 300, 120) for k in (1, 2))
    whole = np.array(Image.open(io.BytesIO(stacked_pictures([one, other]))))
    assert whole.shape[:2] == (240, 300)
    assert np.array_equal(whole[:120], np.array(Image.open(io.BytesIO(one)).convert("RGB")))


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
