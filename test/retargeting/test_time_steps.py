"""A time step that is none: solvers refuse it by name; playback and paths of live points stay where they are."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.mocap.live import MarkerTracks
from humanoid_control.retargeting import (
    Retargeter,
    RetargetSettings,
    WholeBodyRetargeter,
    WholeBodyScaler,
    scale_to_robot,
)
from humanoid_control.retargeting.live import SteadyPoints
from humanoid_control.retargeting.player import ClipPlayer
from humanoid_control.retargeting.whole_body.player import WholeBodyPlayer
from humanoid_control.robots import load_robot
from test.walking_person import walking_person

REFUSED = (0.0, -0.01, np.nan, np.inf)
PASSED_OVER = (-0.01, np.nan, -np.inf)


@pytest.fixture(scope="module")
def upper():
    robot = load_robot("hrp2", "fixed")
    return robot, scale_to_robot(find_body_points(load_clip("dance")), robot)


@pytest.fixture(scope="module")
def whole():
    robot, body = load_robot("hrp2", "floating"), walking_person()[0]
    targets = WholeBodyScaler(body, robot).targets(body)
    solver = WholeBodyRetargeter.following(targets, robot)
    return solver, WholeBodyPlayer(targets, solver.inputs(targets), solver.legs.soles)


@pytest.mark.parametrize("dt", REFUSED)
@pytest.mark.parametrize("method", ["constrained", "dls"])
def test_an_upper_body_refuses_it(upper, method, dt):
    robot, targets = upper
    solver = Retargeter(robot, RetargetSettings(method=method))
    before = solver.start(targets.positions[0]).copy()
    with pytest.raises(ConfigError, match="retargeting: dt must be positive and finite"):
        solver.step(targets.positions[1], dt)
    assert np.array_equal(solver.joints, before)
    assert np.isfinite(solver.step(targets.positions[1], 0.01)).all()


@pytest.mark.parametrize("dt", REFUSED)
def test_a_whole_body_refuses_it(whole, dt):
    solver, player = whole
    solver.start(player.advance(0.0), player.heading)
    before = solver.joints.copy()
    with pytest.raises(ConfigError, match="retargeting: dt must be positive and finite"):
        solver.step(player.advance(0.01), 0, dt)
    assert np.array_equal(solver.joints, before)


@pytest.mark.parametrize("dt", PASSED_OVER)
def test_playback_and_live_points_stay(upper, whole, dt):
    clip = ClipPlayer(upper[1], np.zeros((7, 3)), lead_in=0.0)
    for player in (clip, whole[1]):
        player.advance(0.5)
        player.advance(0.5)
        time = player.time
        player.advance(dt)
        assert player.time == time > 0.0
    points = SteadyPoints(np.zeros((2, 3)), 2.0, 1.0)
    assert np.array_equal(points.follow(np.ones((2, 3)), dt), np.zeros((2, 3)))
    tracks = MarkerTracks(np.zeros((4, 3)) + np.eye(4, 3), np.arange(4))
    assert np.isfinite(tracks.update(np.eye(4, 3) + 0.001, dt)).all()
    assert np.isfinite(tracks.update(np.eye(4, 3), 0.01)).all()
