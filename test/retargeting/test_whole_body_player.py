"""Playing a clip with the whole body: the robot steps over seams, and feet, limits and root are as elsewhere."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler
from humanoid_control.retargeting.frame_solver import HELD
from humanoid_control.retargeting.whole_body.player import WholeBodyPlayer
from humanoid_control.robots import load_robot
from test.walking_person import walking_person

DT = 1.0 / 60.0


@pytest.fixture(scope="module")
def scene():
    robot, body = load_robot("hrp2", "floating"), walking_person()[0]
    targets = WholeBodyScaler(body, robot).targets(body)
    solver = WholeBodyRetargeter.following(targets, robot)
    return robot, targets, solver


def play(scene, player, seconds, begin=True):
    """Postures (T, nq), contacts (T, 4) of the robot, and contacts that were asked for."""
    solver = scene[2]
    if begin:
        solver.start(player.advance(0.0), player.heading)
    q, contacts, asked = [], [], []
    for _ in range(round(seconds / DT)):
        frame = player.advance(DT)
        solver.step(frame, 0, DT)
        q.append(np.concatenate([pin.SE3ToXYZQUAT(solver.root), solver.joints]))
        contacts.append(solver.contacts.copy())
        asked.append(frame.contact[0].copy())
    return np.array(q), np.array(contacts), np.array(asked)


def test_a_clip_that_is_played_at_its_own_rate_is_the_clip(scene):
    _, targets, solver = scene
    frames = solver.inputs(targets)
    player = WholeBodyPlayer(targets, frames, solver.legs.soles, loop=False)
    for k in range(1, 20):
        one = player.advance(1.0 / targets.rate)
        assert one.points[0] == pytest.approx(frames.points[k], abs=1e-9)
        assert one.soles[0, :, [0, 1, 3, 4]] == pytest.approx(frames.soles[k][:, [0, 1, 3, 4]].T, abs=1e-9)
    while not player.finished:
        player.advance(1.0)
    assert player.time == player.duration


def test_the_robot_walks_on_where_a_clip_loops_and_where_a_moment_is_sought(scene):
    robot, targets, solver = scene
    player = WholeBodyPlayer(targets, solver.inputs(targets), solver.legs.soles)
    player.time = player.duration - 1.0
    first, first_contacts, _ = play(scene, player, 1.0 + player.transition + 1.0)  # over the end, and on
    player.seek(0.4 * player.duration)
    then, then_contacts, asked = play(scene, player, player.transition + 0.5, begin=False)
    q, contacts = np.vstack([first, then]), np.vstack([first_contacts, then_contacts])
    ground = measure_ground_contact(robot, q, contacts, 1.0 / DT)
    assert ground.slip.max() < 1e-3 and ground.penetration.max() < 1e-3 and len(ground.slip) >= 8
    step = np.linalg.norm(np.diff(q[:, :3], axis=0), axis=1)
    assert step.max() < 2.5 * DT, "the root never jumps"
    assert np.linalg.norm(np.diff(q[:, :3], 2, axis=0), axis=1).max() / DT**2 < 60.0
    assert (q[:, 7:] >= robot.lower - 1e-9).all() and (q[:, 7:] <= robot.upper + 1e-9).all()
    seam = asked[: round(player.transition / DT)]
    assert (seam[:, :2].any(axis=1) | seam[:, 2:].any(axis=1)).all(), "one foot always stands"
    assert not seam[:, :2].all() and not seam[:, 2:].all(), "each steps over"
    # It went on from where it was: the clip itself is elsewhere.
    assert np.linalg.norm(player.X_world_clip.translation[:2]) > 0.3


def test_a_pause_holds_and_the_speed_counts(scene):
    _, targets, solver = scene
    player = WholeBodyPlayer(targets, solver.inputs(targets), solver.legs.soles, speed=0.5)
    player.advance(1.0)
    assert player.time == pytest.approx(0.5)
    player.playing = False
    held = player.advance(1.0)
    assert player.time == pytest.approx(0.5) and np.array_equal(player.advance(1.0).points, held.points)
    player.seek(float("nan"))
    assert player.time == pytest.approx(0.5)


def test_the_figure_has_feet_where_the_soles_are_asked_for(scene):
    _, targets, solver = scene
    player = WholeBodyPlayer(targets, solver.inputs(targets), solver.legs.soles)
    bones = player.skeleton()
    soles = player.advance(0.0).soles[0]
    for pose in soles:
        assert np.abs(bones[:, :2] - pose[:2]).sum(axis=1).min() < 0.08
    assert len(bones) % 2 == 0 and np.isfinite(bones).all() and bones[:, 2].min() >= 0.0


def test_a_frame_whose_program_has_no_solution_is_held_and_counted(scene):
    _, targets, solver = scene
    player = WholeBodyPlayer(targets, solver.inputs(targets), solver.legs.soles)
    play(scene, player, 1.0)
    before, weights = solver.joints.copy(), solver.problem.weight.copy()
    solver.problem.weight[:] = -1e6  # the curvature of the cost is negative: no optimum
    solver.step(player.advance(DT), 0, DT)
    assert np.array_equal(solver.joints, before) and solver.used_fallback == HELD
    solver.problem.weight[:] = weights
    solver.step(player.advance(DT), 0, DT)
    assert solver.used_fallback != HELD and np.abs(solver.joints - before).max() > 0
