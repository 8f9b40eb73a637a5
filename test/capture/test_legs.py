"""Legs: forward kinematics of the found angles puts the ankles exactly where they were wanted."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.mocap.human_model import MARKERS, HumanBody, forward_kinematics, legs_to_feet

BODY = HumanBody()


@pytest.fixture(params=range(4))
def problem(request):
    rng = np.random.default_rng(request.param)
    n = 40
    pelvis = {
        "pelvis_x": rng.uniform(-0.1, 0.1, n),
        "pelvis_y": rng.uniform(-0.1, 0.1, n),
        "pelvis_z": rng.uniform(0.75, 0.85, n),
        "pelvis_yaw": rng.uniform(-0.5, 0.5, n),
        "pelvis_pitch": rng.uniform(-0.2, 0.4, n),
        "pelvis_roll": rng.uniform(-0.2, 0.2, n),
    }
    ankles = {
        side: np.stack([rng.uniform(-0.1, 0.1, n), s + rng.uniform(-0.1, 0.1, n), rng.uniform(0.07, 0.3, n)], axis=1)
        for side, s in (("l", 0.1), ("r", -0.1))
    }
    return pelvis, ankles, {side: rng.uniform(0, 0.4, n) for side in "lr"}


def test_ankles_arrive_and_knees_bend_the_right_way(problem):
    pelvis, ankles, toes_down = problem
    legs = legs_to_feet(pelvis, ankles, toes_down, BODY)
    found = dict(zip(MARKERS, forward_kinematics({**pelvis, **legs}).swapaxes(0, 1), strict=True))
    for side in "lr":
        np.testing.assert_allclose(found[f"Ankle_{side.upper()}"], ankles[side], atol=1e-9)
        assert (legs[f"{side}_kn_flex"] > 0).all()
        assert (np.abs(legs[f"{side}_hp_flex"]) < 2).all()


def test_foot_points_forward_with_the_wanted_slope(problem):
    pelvis, ankles, toes_down = problem
    legs = legs_to_feet(pelvis, ankles, toes_down, BODY)
    low = HumanBody(foot_height=BODY.ankle_height)  # puts the marker straight in front of the ankle
    found = dict(zip(MARKERS, forward_kinematics({**pelvis, **legs}, low).swapaxes(0, 1), strict=True))
    for side in "lr":
        foot = (found[f"Foot_{side.upper()}"] - found[f"Ankle_{side.upper()}"]) / BODY.foot_forward
        slope = toes_down[side]
        np.testing.assert_allclose(foot, np.stack([np.cos(slope), 0 * slope, -np.sin(slope)], axis=1), atol=1e-9)
