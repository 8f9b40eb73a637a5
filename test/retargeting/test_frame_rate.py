"""Clips of few or of very many frames a second: as good as at a usual rate, and as many frames as the clip."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.mocap import clean, find_body_points, load_clip
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler, at_solving_rate, every
from humanoid_control.retargeting.frame_rate import FASTEST, SLOWEST, rate_factors
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def walk(mocap):
    return load_clip(mocap("cmu_bvh/07_01.bvh"))


def body_at(walk, rate):
    return find_body_points(clean(walk.resample(rate))[0])


@pytest.mark.parametrize("rate", [1, 5, 12.5, 24, 29.97, 30, 49.9, 50, 60, 119.88, 120, 250, 251, 300, 480, 1000])
def test_every_rate_is_brought_between_the_bounds(rate):
    more, fewer = rate_factors(rate)
    assert min(more, fewer) == 1
    assert SLOWEST - 1e-6 <= rate * more / fewer <= FASTEST + 1e-6
    if SLOWEST <= rate <= FASTEST:
        assert (more, fewer) == (1, 1)


def test_frames_of_the_clip_are_kept_and_those_between_lie_on_its_path(walk):
    slow, fine = body_at(walk, 30), body_at(walk, 120)
    body, between, notes = at_solving_rate(slow)
    assert (body.rate, between, notes) == (60.0, 2, ())
    np.testing.assert_allclose(body.positions[::2], slow.positions, atol=1e-12)
    middle = body.point("r_wrist")[1:-2:2] - body.mid_hip[1:-2:2]
    truth = (fine.point("r_wrist") - fine.mid_hip)[2::4][: len(middle)]
    assert np.abs(middle - truth).max() < 0.01
    body, between, notes = at_solving_rate(body_at(walk, 1000))
    assert (body.rate, between) == (250.0, 1)
    assert "250 of 1000 frames a second" in notes[0]


@pytest.mark.parametrize("rate", [5, 30, 1000])
def test_feet_stay_at_any_rate(walk, rate):
    robot = load_robot("hrp2", "floating")
    body, between, _ = at_solving_rate(body_at(walk, rate))
    targets = WholeBodyScaler(body, robot).targets(body)
    trajectory = WholeBodyRetargeter.following(targets, robot).solve(targets)
    thin = every(trajectory, between)
    contact = measure_ground_contact(robot, thin.q(), thin.contacts, thin.rate).row()
    assert contact["slip_max_mm"] < 2, "19 mm when 1,000 frames a second are solved"
    assert contact["penetration_mm"] < 1, "27 mm when 5 frames a second are solved, 32 mm at 1,000"
    assert trajectory.errors[:, :7].mean() < 0.02, "7 cm at 5, 14 cm at 1,000"
    assert len(thin.positions) == (len(body.positions) - 1) // between + 1
    assert thin.rate == pytest.approx(min(rate, 250))
    np.testing.assert_array_equal(thin.positions, trajectory.positions[::between])
    np.testing.assert_allclose(thin.velocities[0], (thin.positions[1] - thin.positions[0]) * thin.rate)
