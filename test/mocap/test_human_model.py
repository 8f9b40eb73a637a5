"""The human model: joints turn the way their names say, markers are where they belong, legs reach the feet."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.mocap.human_model import JOINT_RANGES, MARKERS, HumanBody, human_markers, legs_to_feet

BODY = HumanBody()


def markers(**degrees):
    """Markers of one posture, joints in degrees, as a dictionary."""
    posture = {"pelvis_z": np.array([0.9])} | {joint: np.radians([angle]) for joint, angle in degrees.items()}
    return dict(zip(MARKERS, human_markers(posture)[0], strict=True))


def random_posture(seed, n=50):
    rng = np.random.default_rng(seed)
    posture = {joint: np.radians(rng.uniform(*limits, n)) for joint, limits in JOINT_RANGES.items()}
    return posture | {f"pelvis_{name}": rng.normal(size=n) for name in ("x", "y", "z", "yaw", "pitch", "roll")}


ZERO = markers()


def test_zero_posture_stands_upright_with_hanging_arms():
    for side, s in (("L", 1), ("R", -1)):
        np.testing.assert_allclose(ZERO[f"Hip_{side}"], [0, s * 0.085, 0.9], atol=1e-12)
        np.testing.assert_allclose(ZERO[f"GH_{side}"], [0, s * 0.182, 0.9 + 0.1 + 0.39], atol=1e-12)
        np.testing.assert_allclose(ZERO[f"GH_{side}"] - ZERO[f"Elbow_{side}"], [0, 0, 0.315], atol=1e-12)
        np.testing.assert_allclose(ZERO[f"Elbow_{side}"] - ZERO[f"Wrist_{side}"], [0, 0, 0.270], atol=1e-12)
        np.testing.assert_allclose(ZERO[f"Hip_{side}"] - ZERO[f"Ankle_{side}"], [0, 0, 0.4165 + 0.4182], atol=1e-12)
        assert ZERO[f"Foot_{side}"][0] > 0.1


def test_lengths_follow_from_the_published_tables():
    radius = 0.316 / (2 * np.pi)  # circumference of the upper arm, Dube 2012, Table 2.1
    assert pytest.approx(0.465 - 2 * radius, abs=1e-3) == BODY.shoulder_width
    assert pytest.approx(0.365 - radius, abs=1e-3) == BODY.upper_arm
    assert BODY.forearm == 0.270
    stature = 1.70  # shares of it: Winter 2009
    assert pytest.approx(0.245 * stature, abs=1e-3) == BODY.thigh
    assert pytest.approx(0.246 * stature, abs=1e-3) == BODY.shank
    assert pytest.approx((0.818 - 0.530) * stature, abs=1e-3) == BODY.waist_height + BODY.shoulder_height
    assert pytest.approx((0.870 - 0.530) * stature, abs=1e-3) == BODY.waist_height + BODY.chin_height


# Joint, marker that moves, direction in which a positive angle moves it from the zero posture.
SIGNS = [
    ("wt_flex", "Sternum", (1, 0, 0)),
    ("wt_lat", "Chin", (0, -1, 0)),
    ("wt_rot", "Sternum", (0, 1, 0)),
    ("pelvis_yaw", "Hip_R", (1, 0, 0)),
    ("pelvis_pitch", "Chin", (1, 0, 0)),
    ("pelvis_roll", "Chin", (0, -1, 0)),
    ("l_sg_prot", "GH_L", (1, 0, 0)),
    ("r_sg_prot", "GH_R", (1, 0, 0)),
    ("l_sg_elev", "GH_L", (0, 0, 1)),
    ("r_sg_elev", "GH_R", (0, 0, 1)),
    ("l_gh_flex", "Elbow_L", (1, 0, 0)),
    ("r_gh_flex", "Elbow_R", (1, 0, 0)),
    ("l_gh_abd", "Elbow_L", (0, 1, 0)),
    ("r_gh_abd", "Elbow_R", (0, -1, 0)),
    ("l_el_flex", "Wrist_L", (1, 0, 0)),
    ("r_el_flex", "Wrist_R", (1, 0, 0)),
    ("l_hp_flex", "Knee_L", (1, 0, 0)),
    ("r_hp_flex", "Knee_R", (1, 0, 0)),
    ("l_hp_abd", "Knee_L", (0, 1, 0)),
    ("r_hp_abd", "Knee_R", (0, -1, 0)),
    ("l_hp_rot", "Foot_L", (0, -1, 0)),
    ("r_hp_rot", "Foot_R", (0, 1, 0)),
    ("l_kn_flex", "Ankle_L", (-1, 0, 0)),
    ("r_kn_flex", "Ankle_R", (-1, 0, 0)),
    ("l_an_flex", "Foot_L", (0, 0, 1)),
    ("r_an_flex", "Foot_R", (0, 0, 1)),
]


@pytest.mark.parametrize(("joint", "marker", "direction"), SIGNS)
def test_positive_angle_means_what_the_table_says(joint, marker, direction):
    moved = markers(**{joint: 5.0})[marker] - ZERO[marker]
    assert moved @ np.array(direction) > 0.9 * np.linalg.norm(moved) > 0


@pytest.mark.parametrize(("side", "inward"), [("l", -1), ("r", 1)])
def test_inward_rotation_turns_the_bent_forearm_to_the_middle(side, inward):
    bent = markers(**{f"{side}_el_flex": 90, f"{side}_gh_rot": 90})
    forearm = bent[f"Wrist_{side.upper()}"] - bent[f"Elbow_{side.upper()}"]
    np.testing.assert_allclose(forearm, [0, inward * 0.27, 0], atol=1e-12)


def test_flexion_comes_before_abduction_before_rotation():
    arm = markers(l_gh_flex=90, l_gh_abd=30)
    # Arm forward, then 30 degrees outward: it stays level.
    np.testing.assert_allclose(arm["Elbow_L"] - arm["GH_L"], [0.315 * np.cos(np.pi / 6), 0.315 * 0.5, 0], atol=1e-12)


def test_shrugging_does_not_turn_the_arm():
    arm = markers(l_sg_elev=30, l_sg_prot=20)
    np.testing.assert_allclose(arm["GH_L"] - arm["Elbow_L"], [0, 0, 0.315], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_bones_keep_their_length_in_any_posture(seed):
    found = dict(zip(MARKERS, human_markers(random_posture(seed)).swapaxes(0, 1), strict=True))
    clavicle = np.linalg.norm([0.070, 0.182, 0.030])
    for side in "LR":
        for a, b, expected in (
            (f"GH_{side}", f"Elbow_{side}", 0.315),
            (f"Elbow_{side}", f"Wrist_{side}", 0.270),
            (f"Hip_{side}", f"Knee_{side}", 0.4165),
            (f"Knee_{side}", f"Ankle_{side}", 0.4182),
            ("Sternum", f"GH_{side}", clavicle),
        ):
            np.testing.assert_allclose(np.linalg.norm(found[a] - found[b], axis=1), expected, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found["Hip_L"] - found["Hip_R"], axis=1), 0.17, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_mirrored_angles_give_the_mirrored_person(seed):
    posture = random_posture(seed)
    other = {}
    for joint, values in posture.items():
        if joint[1] == "_":
            other[f"{'r' if joint[0] == 'l' else 'l'}{joint[1:]}"] = values
        else:
            odd = joint in ("wt_rot", "wt_lat", "pelvis_y", "pelvis_yaw", "pelvis_roll")
            other[joint] = -values if odd else values
    here = dict(zip(MARKERS, human_markers(posture).swapaxes(0, 1), strict=True))
    there = dict(zip(MARKERS, human_markers(other).swapaxes(0, 1), strict=True))
    for marker, path in here.items():
        twin = marker[:-1] + {"L": "R", "R": "L"}[marker[-1]] if marker[-2] == "_" else marker
        np.testing.assert_allclose(there[twin], path * [1, -1, 1], atol=1e-12)


def test_other_lengths_can_be_given():
    tall = human_markers({"pelvis_z": np.array([1.0])}, HumanBody(upper_arm=0.4))[0]
    assert tall[MARKERS.index("GH_L")][2] - tall[MARKERS.index("Elbow_L")][2] == pytest.approx(0.4)


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
    found = dict(zip(MARKERS, human_markers({**pelvis, **legs}).swapaxes(0, 1), strict=True))
    for side in "lr":
        np.testing.assert_allclose(found[f"Ankle_{side.upper()}"], ankles[side], atol=1e-9)
        assert (legs[f"{side}_kn_flex"] > 0).all()
        assert (np.abs(legs[f"{side}_hp_flex"]) < 2).all()


def test_foot_points_forward_with_the_wanted_slope(problem):
    pelvis, ankles, toes_down = problem
    legs = legs_to_feet(pelvis, ankles, toes_down, BODY)
    low = HumanBody(foot_height=BODY.ankle_height)  # puts the marker straight in front of the ankle
    found = dict(zip(MARKERS, human_markers({**pelvis, **legs}, low).swapaxes(0, 1), strict=True))
    for side in "lr":
        foot = (found[f"Foot_{side.upper()}"] - found[f"Ankle_{side.upper()}"]) / BODY.foot_forward
        slope = toes_down[side]
        np.testing.assert_allclose(foot, np.stack([np.cos(slope), 0 * slope, -np.sin(slope)], axis=1), atol=1e-9)
