"""Footholds against planes that are known and grounds that must be refused; swings over edges (1 s)."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.walking import StepTimes
from humanoid_control.walking.footsteps import Pace, VelocityPlanner, check_list
from humanoid_control.walking.ground.terrain import CLEARANCE, SLACK, Terrain
from humanoid_control.walking.planning.step import Footstep, StepLimits
from humanoid_control.walking.swing_foot import SwingPath

OUTLINE = np.array([[-0.1, -0.06], [0.17, -0.06], [0.17, 0.06], [-0.1, 0.06]])
OUTLINES = np.array([OUTLINE, OUTLINE])


def sole(x=0.0, y=0.0, yaw=0.0, z=0.0):
    return pin.SE3(pin.rpy.rpyToMatrix(0, 0, yaw), np.array([x, y, z]))


@pytest.mark.parametrize("yaw", [0.0, 0.7, -2.0])
def test_a_sole_on_a_plane_has_its_normal_and_the_heading_that_was_asked_for(yaw):
    """By the formula of planes, and by the fit through points of a grid of the same plane."""
    plane = Ground.plane(0.2, np.radians(8), 0.4)
    grid = Ground.from_function(lambda x, y: np.vectorize(plane.height)(x, y), (-2, 2), (-2, 2), 0.1)
    for ground in (plane, grid):
        place = Terrain(ground, OUTLINES).foothold(sole(0.3, -0.5, yaw), 0)
        assert place.why == ""
        assert place.X.rotation[:, 2] == pytest.approx(plane.normal(0, 0), abs=1e-9)
        assert place.X.translation == pytest.approx([0.3, -0.5, plane.height(0.3, -0.5)], abs=1e-9)
        assert np.arctan2(place.X.rotation[1, 0], place.X.rotation[0, 0]) == pytest.approx(yaw)
        assert np.linalg.det(place.X.rotation) == pytest.approx(1.0)


def test_bad_places_are_refused_with_the_reason():
    steep = Terrain(Ground.plane(slope=np.radians(16)), OUTLINES)
    assert "a slope of 16 deg" in steep.foothold(sole(), 0).why
    assert Terrain(Ground.plane(slope=np.radians(14)), OUTLINES).foothold(sole(), 0).why == ""
    stairs = Terrain(ground_of("stairs:rise=0.1,run=0.35,steps=3,start=0.5"), OUTLINES)
    assert stairs.foothold(sole(0.31), 0).why == "" and stairs.foothold(sole(0.63), 0).why == ""
    for x in np.arange(0.335, 0.6, 0.01):  # the toe beyond the edge to the heel before it
        assert "an edge under the sole" in stairs.foothold(sole(x), 0).why, x
    bump = Ground.from_function(lambda x, y: 0.03 * np.exp(-(x**2) / 0.002), (-1, 1), (-1, 1), 0.01)
    assert Terrain(bump, OUTLINES).foothold(sole(0.03), 0).why != ""
    assert Terrain(Ground.waves(0.004, 0.4), OUTLINES).foothold(sole(), 0).why == ""


@pytest.mark.parametrize("rise", [0.05, -0.05, 0.04])
def test_an_edge_under_the_middle_of_a_sole_is_no_slope(rise):
    """Half of it on either tread: a plane through few points came within 10 mm of all of them."""
    half = 0.12
    outline = np.array([[-half, -0.06], [half, -0.06], [half, 0.06], [-half, 0.06]])
    stairs = Terrain(ground_of(f"stairs:rise={rise},run=0.35,steps=3,start=0.6"), np.array([outline, outline]))
    for x in np.arange(0.605 - half, 0.605 + half, 0.001):
        assert "under the sole" in stairs.foothold(sole(x), 0).why, x


@pytest.mark.parametrize("rise", [0.15, -0.15, 0.1, -0.08, 0.015])
def test_a_swing_clears_the_edges_of_stairs(rise):
    """Heel and toe at 200 times: never into the ground, and above the edges by what is asked for in mid-swing."""
    ground = ground_of(f"stairs:rise={rise},run=0.35,steps=4,start=0.6")
    terrain = Terrain(ground, OUTLINES)
    start, end = (terrain.foothold(sole(x, 0.1), 0) for x in (0.75, 1.45))
    assert start.why == end.why == "" and end.X.translation[2] - start.X.translation[2] == pytest.approx(2 * rise)
    path = terrain.swing(start.X, end.X, (2.0, 3.0), 0.06, 0)
    corners = np.column_stack([OUTLINE, np.zeros(4)])
    for t in np.linspace(2.0, 3.0, 200):
        points = corners @ path.at(t).rotation.T + path.at(t).translation
        room = (points[:, 2] - ground.heights(points[:, :2])).min()
        assert room > -2 * SLACK, t
        if 2.3 < t < 2.7:
            assert room > CLEARANCE - 2 * SLACK
    assert path.at(3.0).translation == pytest.approx(end.X.translation)


def test_footsteps_go_from_tread_to_tread():
    ground = ground_of("stairs:rise=0.1,run=0.32,steps=5,start=0.5")
    planner = VelocityPlanner(StepLimits(), StepTimes(), Terrain(ground, OUTLINES))
    planner.command = np.array([0.4, 0.0, 0.0])
    steps, before = [], np.zeros(3)
    stance = Footstep(1, sole(0.0, -0.1), 0.0, 0.0, 0.0)
    for _ in range(9):
        (step,), before = planner.next_steps(stance, before, 1)
        assert planner.terrain.foothold(step.X, step.foot).why == ""
        assert step.X.translation[2] == pytest.approx(ground.height(*step.X.translation[:2]), abs=1e-9)
        steps.append(step)
        stance = step
    assert steps[-1].X.translation[2] == pytest.approx(0.5), "it got up"
    assert np.diff([s.X.translation[2] for s in steps]).max() < 0.11, "no tread is left out"


def test_on_bad_ground_a_step_is_moved_and_beyond_reach_it_is_shortened_alike_in_all_directions():
    """Only the ground moves a step forward or back: what the legs cannot reach is made smaller, turn and all."""
    planner = VelocityPlanner(
        StepLimits(), StepTimes(), Terrain(ground_of("stairs:rise=0.1,run=0.35,steps=3"), OUTLINES)
    )
    flat = VelocityPlanner(StepLimits(), StepTimes())
    stance, limits = Footstep(1, sole(-5.0, -0.1), 0.0, 0.0, 0.0), planner.limits
    for d in (np.array([1.3 * limits.forward, 0.05, 0.1]), np.array([0.0, 0.0, 1.5 * limits.turn_out])):
        step, made = planner._step(stance, d, Pace(0.8))
        assert step.limited and 0.3 < made @ d / (d @ d) < 1.0
        assert made == pytest.approx(d * (made @ d) / (d @ d), abs=1e-12), "the same direction"
        there, known = flat._step(stance, d, Pace(0.8))
        assert made == pytest.approx(known, abs=1e-9) and there.limited
        assert step.X.translation == pytest.approx(there.X.translation, abs=1e-9)
    stairs = Terrain(ground_of("stairs:rise=0.1,run=0.35,steps=3,start=0.4"), OUTLINES)
    edge = VelocityPlanner(StepLimits(), StepTimes(), stairs)
    for d, sign in ((0.13, -1), (0.31, 1)):  # the toe, or the heel, is just over the edge
        stance, wanted = Footstep(1, sole(0.15, -0.1), 0.0, 0.0, 0.0), np.array([d, 0.02, 0.0])
        assert "an edge" in edge.refusal(edge.make(stance, wanted, 0.8), stance.X)
        step, made = edge._step(stance, wanted, Pace(0.8))
        assert not edge.refusal(step, stance.X) and step.limited
        assert made[1:] == pytest.approx(wanted[1:]) and 0.0 < sign * (made[0] - d) < 0.1, "to the nearer side"


def test_a_list_is_checked_by_the_ground_under_its_steps():
    terrain = Terrain(ground_of("stairs:rise=0.1,run=0.35,steps=3,start=0.4"), OUTLINES)
    feet = [sole(0.0, 0.1), sole(0.0, -0.1)]

    def step(x, z):
        return [Footstep(0, sole(x, 0.1, z=z), 0.64, 0.16, 0.05)]

    check_list(StepLimits(), step(0.15, 0.0), feet, None, terrain)
    with pytest.raises(ConfigError, match="footstep 0: an edge under the sole"):
        check_list(StepLimits(), step(0.3, 0.0), feet, None, terrain)
    with pytest.raises(ConfigError, match=r"footstep 0: it is \+0.05 m off the ground"):
        check_list(StepLimits(), step(0.15, 0.05), feet, None, terrain)


class Ridge:
    """Level ground with a thin ridge across the way."""

    def __init__(self, x):
        self.x = x

    def heights(self, points):
        return np.where(np.abs(points[:, 0] - self.x) < 0.012, 0.2, 0.0)

    def as_plane(self):
        return None


def test_nothing_thin_slips_through_between_two_looks_at_a_swing():
    """Wherever a ridge stands that the foot goes through, some look sees it."""
    outline = np.array([[-0.1, -0.06], [0.15, -0.06], [0.15, 0.06], [-0.1, 0.06]])
    start, end = (pin.SE3(np.eye(3), np.array([x, 0.1, 0.0])) for x in (0.0, 0.9))
    path = SwingPath.between(start, end, 0.0, 1.0, 0.06)
    for x in np.arange(0.3, 0.75, 0.01):
        assert Terrain(Ridge(x), np.array([outline, outline]))._clear(path, 0) < -0.1
