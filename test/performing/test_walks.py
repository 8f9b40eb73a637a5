"""Walks with a person's step length: swings keep an acceleration bound, torques a reserve, and all steps are made."""

import numpy as np
import pytest

from humanoid_control.mocap import load_body_points
from humanoid_control.performing import (
    FeasibilitySettings,
    WholeBodyController,
    feasibility_row,
    make_feasible,
    perform,
)
from humanoid_control.performing.foot_paths import CALM, CALM_SHARE, _calmed, _peak_acceleration
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from humanoid_control.walking.gait import GRAVITY
from test.performing.pieces import piece

RATE = 100.0


@pytest.fixture(scope="module")
def walk(mocap):
    robot = load_robot("hrp2", "floating")
    clip = mocap("vicon_c3d/PiG_Motion-FlatFoot-One.c3d")
    return robot, make_feasible(retarget_whole_body(load_body_points(clip), robot, method="clip"), robot)


def test_all_steps_of_a_walk_are_made_with_noisy_sensors(walk):
    robot, motion = walk
    world = SimulationConfig(robot.name, "floating").build(robot)
    controller = WholeBodyController(robot, motion, read=NoisySensors(world, NOISE, 0).read)
    outcome = perform(motion, world, controller)
    assert outcome.survived, outcome.why
    assert outcome.made == outcome.placed == outcome.on_beat == outcome.steps == 4
    assert outcome.slip < 0.01 and outcome.saturated < 0.06
    assert feasibility_row(motion, robot.mass * GRAVITY)["torque_share"] < 1.15


def test_a_swing_is_hardly_quicker_than_its_way_needs(walk):
    """The bound is that of a minimum-jerk way of the same length and time; avoiding the other foot adds to it."""
    _, motion = walk
    for f in (0, 1):
        swings = np.flatnonzero(np.diff(motion.stands[:, f].astype(int)))
        for a, b in zip(swings[::2] + 1, swings[1::2] + 1, strict=False):
            xy = motion.sole_position[a - 1 : b + 1, f, :2]
            way, seconds = np.linalg.norm(xy[-1] - xy[0]), (b - a + 1) / motion.rate
            planned = 5.78 * way / (0.81 * seconds) ** 2
            peak = np.linalg.norm(np.diff(xy, 2, axis=0), axis=1).max() * motion.rate**2
            assert peak < 1.3 * max(CALM, CALM_SHARE * planned)


@pytest.mark.parametrize("size", [0.001, 0.05, 0.1])
def test_a_deviation_is_scaled_until_the_path_keeps_the_bound(size):
    u = np.linspace(0.0, 1.0, 62)
    share = u**3 * (10 - 15 * u + 6 * u**2)
    way = share[:, None] * [0.6, 0.1]
    deviation = size * np.sin(4 * np.pi * u[1:-1])[:, None] * [0.0, 1.0]
    bound = max(CALM, CALM_SHARE * _peak_acceleration(way, RATE))
    kept = _calmed(deviation, way, bound, RATE)
    scale = kept[10, 1] / deviation[10, 1]
    np.testing.assert_allclose(kept, scale * deviation, atol=1e-15)
    peak = _peak_acceleration(way + np.vstack([[0, 0], kept, [0, 0]]), RATE)
    assert peak <= bound
    assert scale == 1.0 if size == 0.001 else peak > 0.8 * bound and scale < 1.0


def test_a_walk_without_double_support_is_made_too(mocap):
    robot = load_robot("hrp2", "floating")
    clip = load_body_points(mocap("dance_markers/walk1.trc"))
    retargeted = piece(retarget_whole_body(clip, robot, method="clip"), 0.0, 4.0)
    motion = make_feasible(retargeted, robot, FeasibilitySettings(double_support=0.0, pace=1.0))
    assert motion.stands.any(axis=1).all() and np.isfinite(motion.q).all()
