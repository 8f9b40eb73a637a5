"""The built-in dance: smooth, repeatable, within human ranges, with all that was promised, and nothing touching."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.mocap import find_body_points, load_clip, synthetic_dance
from humanoid_control.mocap.dance import BEATS, GENTLE_BOW, SCORE, STANDING, STEPS, dance_posture
from humanoid_control.mocap.human_model import JOINT_RANGES, MARKERS, human_markers
from humanoid_control.mocap.skeleton import X, Y, Z, rotation

BEAT = np.linspace(0, BEATS, 1201)
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module", params=[*((seed, 1.0) for seed in SEEDS), (0, GENTLE_BOW)])
def posture(request):
    return dance_posture(BEAT, *request.param)


@pytest.fixture(scope="module")
def clip():
    return synthetic_dance()


def test_shape_of_the_clip(clip):
    assert clip.positions.shape == (1201, 17, 3)
    assert clip.rate == 50.0
    assert clip.duration == pytest.approx(24.0)
    assert len(clip.labels) - 1 == 16  # the markers of Dube 2012, and the sternum
    assert np.isfinite(clip.positions).all()
    assert clip.warnings == ()


def test_same_arguments_give_the_same_clip(clip):
    np.testing.assert_array_equal(synthetic_dance().positions, clip.positions)
    noisy = synthetic_dance(seed=4, noise=0.001).positions
    np.testing.assert_array_equal(synthetic_dance(seed=4, noise=0.001).positions, noisy)
    assert np.abs(synthetic_dance(seed=4).positions - clip.positions).max() > 0.01
    assert np.std(noisy - synthetic_dance(seed=4).positions) == pytest.approx(0.001, rel=0.02)


def test_seed_zero_plays_the_score_as_written_and_others_go_less_far():
    written = np.radians(STANDING["wt_flex"]) + sum(np.radians(m.at(BEAT)) for m in SCORE if m.joint == "wt_flex")
    np.testing.assert_allclose(dance_posture(BEAT)["wt_flex"], written, atol=1e-12)
    varied = dance_posture(BEAT, 3)["wt_flex"]
    assert 0.89 * written.max() < varied.max() < written.max()


def test_begins_and_ends_at_rest_in_the_same_posture(clip):
    half_a_second = clip.positions[:26]
    np.testing.assert_array_equal(half_a_second, np.repeat(clip.positions[:1], 26, axis=0))
    np.testing.assert_array_equal(clip.positions[-26:], half_a_second)


def test_two_rounds_join_without_a_jump(clip):
    twice = np.concatenate([clip.positions, clip.positions[1:]])
    acceleration = np.diff(twice, n=2, axis=0) * clip.rate**2
    at_the_joint = np.linalg.norm(acceleration[1190:1210], axis=2).max()
    assert at_the_joint < 0.1 * np.linalg.norm(acceleration, axis=2).max()


def test_acceleration_is_continuous():
    # Twice as many samples must halve the largest step of the acceleration; a jump would stay as it is.
    steps = []
    for rate in (200.0, 400.0):
        acceleration = np.diff(synthetic_dance(rate=rate).positions, n=2, axis=0) * rate**2
        steps.append(np.linalg.norm(np.diff(acceleration, axis=0), axis=2).max())
    assert steps[1] < 0.65 * steps[0]


@pytest.mark.parametrize("joint", JOINT_RANGES)
def test_joints_stay_within_human_ranges(posture, joint):
    angle = np.degrees(posture.get(joint, np.zeros(1)))
    low, high = JOINT_RANGES[joint]
    assert low <= angle.min() and angle.max() <= high


@pytest.mark.parametrize(
    ("joint", "low", "high"),
    [("wt_flex", -8, 45), ("wt_lat", -18, 18), ("wt_rot", -18, 18), ("l_sg_prot", -12, 12), ("l_sg_elev", 4, 22),
     ("r_sg_elev", 4, 22), ("l_gh_flex", -25, 130), ("l_gh_abd", 10, 120), ("r_gh_abd", 10, 120),
     ("l_gh_rot", -40, 45), ("l_el_flex", 20, 75), ("r_el_flex", 20, 75), ("l_kn_flex", 25, 70)],
)  # fmt: skip
@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_motion_is_there(seed, joint, low, high):
    angle = np.degrees(dance_posture(BEAT, seed)[joint])
    assert angle.min() < low and angle.max() > high


def test_the_gentle_dance_bends_less_and_is_the_same_elsewhere():
    whole, gentle = synthetic_dance(30.0), load_clip("gentle_dance")
    bow = np.abs(np.linspace(0, BEATS, 1501) - 20.2) < 2.5
    assert np.array_equal(whole.positions[~bow], gentle.positions[~bow]) and gentle.name == "gentle_dance"
    at, lean = whole.labels.index("Sternum"), []
    for clip in (whole, gentle):
        hips = (clip.positions[:, clip.labels.index("Hip_L")] + clip.positions[:, clip.labels.index("Hip_R")]) / 2
        spine = clip.positions[:, at] - hips
        lean.append(np.degrees(np.arctan2(spine[bow, 0], spine[bow, 2]).max()))
    assert lean[1] < 45 < 55 < lean[0]


def test_arms_move_apart_from_each_other_and_at_several_speeds(posture):
    arms = np.stack([posture["l_gh_abd"] - posture["r_gh_abd"], posture["l_gh_flex"] - posture["r_gh_flex"]])
    assert (np.degrees(np.abs(arms)).max(axis=1) > 50).all()
    speed = np.degrees(np.abs(np.gradient(posture["l_gh_flex"], 24.0 / 1200)))
    assert 300 < speed.max() < 700
    raise_slowly = (BEAT > 8.5) & (BEAT < 11)
    lower_fast = (BEAT > 34) & (BEAT < 38)
    assert speed[lower_fast].max() > 1.5 * speed[raise_slowly].max()


def test_hands_cross_the_middle_of_the_body(clip):
    inside = find_body_points(clip)
    left, right = (inside.in_pelvis()[:, inside.names.index(f"{side}_wrist"), 1] for side in "lr")
    assert left.min() < -0.03 and right.max() > 0.03


def test_one_foot_stands_at_any_time_and_feet_alternate(clip):
    height = np.stack([clip.marker(f"Ankle_{side}")[:, 2] for side in "LR"])
    floor = height[:, 0].min()
    assert height.min() == pytest.approx(floor, abs=1e-9)
    assert (height.min(axis=0) < floor + 1e-9).all()
    assert height.max() > floor + 0.1
    assert all(here != after for (here, *_), (after, *_) in pairwise(STEPS))


def test_planted_feet_do_not_slide(clip):
    for side in "LR":
        ankle = clip.marker(f"Ankle_{side}")
        planted = ankle[:, 2] < ankle[:, 2].min() + 1e-9
        assert planted.mean() > 0.5
        assert np.ptp(ankle[planted], axis=0).max() < 1e-8
        slip = np.ptp(clip.marker(f"Foot_{side}")[planted], axis=0)
        assert slip[0] < 1e-8
        assert slip.max() < 0.01  # the ankle cannot roll: the foot leans with the leg


def test_hips_sway_to_the_standing_leg(clip):
    hips_y = (clip.marker("Hip_L")[:, 1] + clip.marker("Hip_R")[:, 1]) / 2
    for side, sign in (("L", -1), ("R", 1)):
        lifted = clip.marker(f"Ankle_{side}")[:, 2] > clip.marker(f"Ankle_{side}")[0, 2] + 0.05
        assert (sign * hips_y[lifted] > 0).all()


# --- Clearance. Torso: an elliptic cylinder round the chest and one round the pelvis, half of the chest depth of
# Table 2.1 (250 mm) deep; arms: radii from the circumferences there (316 and 265 mm).
CHEST, PELVIS = (0.125, 0.140), (0.125, 0.165)
UPPER_ARM_RADIUS, FOREARM_RADIUS, HEAD_RADIUS, THIGH_RADIUS = 0.050, 0.042, 0.11, 0.08


def distance_to_cylinder(points_W, R_WT, p_WT, semi_axes, bottom, top):
    """(T, K) signed distance of points (T, K, 3) from an upright elliptic cylinder at pose (R_WT, p_WT)."""
    local = np.einsum("tji,tkj->tki", R_WT, points_W - p_WT[:, None])
    turn = np.linspace(0, 2 * np.pi, 121)
    rim = np.stack([semi_axes[0] * np.cos(turn), semi_axes[1] * np.sin(turn)], axis=1)
    aside = np.linalg.norm(local[:, :, None, :2] - rim, axis=3).min(axis=2)
    inside = (local[..., 0] / semi_axes[0]) ** 2 + (local[..., 1] / semi_axes[1]) ** 2 < 1
    aside = np.where(inside, -aside, aside)
    beyond = np.maximum(np.maximum(bottom - local[..., 2], local[..., 2] - top), 0)
    return np.where(beyond > 0, np.hypot(np.maximum(aside, 0), beyond), aside)


def between(a, b, start, end, n=8):
    """(T, n, 3) points from share `start` to `end` of the way from a to b."""
    return a[:, None] + np.linspace(start, end, n)[None, :, None] * (b - a)[:, None]


@pytest.fixture(scope="module")
def clearances(posture):
    """Clearance of both arms (T,) [m] from what they could touch."""
    angle = {name: posture.get(name, np.zeros(len(BEAT))) for name in ("pelvis_yaw", "pelvis_pitch", "pelvis_roll",
             "wt_rot", "wt_flex", "wt_lat")}  # fmt: skip
    R_pelvis = rotation(Z, angle["pelvis_yaw"]) @ rotation(Y, angle["pelvis_pitch"]) @ rotation(X, angle["pelvis_roll"])
    R_chest = R_pelvis @ rotation(Z, angle["wt_rot"]) @ rotation(Y, angle["wt_flex"]) @ rotation(X, angle["wt_lat"])
    at = dict(zip(MARKERS, human_markers(posture).swapaxes(0, 1), strict=True))
    hips = (at["Hip_L"] + at["Hip_R"]) / 2
    waist = hips + R_pelvis @ np.array([0, 0, 0.1])
    head = waist + R_chest @ np.array([0.02, 0, 0.56])
    arms = {}
    torso, skull, thighs = [], [], []
    for side in "LR":
        upper = between(at[f"GH_{side}"], at[f"Elbow_{side}"], 0.5, 1.0)
        fore = between(at[f"Elbow_{side}"], at[f"Wrist_{side}"], 0.0, 1.3, 12)  # with the hand
        arms[side] = np.concatenate([upper, fore], axis=1)
        for points, radius in ((upper, UPPER_ARM_RADIUS), (fore, FOREARM_RADIUS)):
            torso.append(distance_to_cylinder(points, R_chest, waist, CHEST, 0.0, 0.36).min(axis=1) - radius)
            torso.append(distance_to_cylinder(points, R_pelvis, hips, PELVIS, -0.08, 0.1).min(axis=1) - radius)
            skull.append(np.linalg.norm(points - head[:, None], axis=2).min(axis=1) - HEAD_RADIUS - radius)
        for leg in "LR":
            thigh = between(at[f"Hip_{leg}"], at[f"Knee_{leg}"], 0.0, 1.0)
            gap = np.linalg.norm(fore[:, :, None] - thigh[:, None], axis=3).min(axis=(1, 2))
            thighs.append(gap - THIGH_RADIUS - FOREARM_RADIUS)
    across = np.linalg.norm(arms["L"][:, :, None] - arms["R"][:, None], axis=3).min(axis=(1, 2)) - 2 * FOREARM_RADIUS
    return {"torso": np.min(torso, axis=0), "head": np.min(skull, axis=0), "thighs": np.min(thighs, axis=0),
            "each other": across}  # fmt: skip


@pytest.mark.parametrize("what", ["torso", "head", "thighs", "each other"])
def test_arms_never_touch(clearances, what):
    assert clearances[what].min() > 0.0


def test_arms_come_close_to_the_torso(clearances):
    assert clearances["torso"].min() < 0.02


def test_score_is_within_its_beats_and_names_real_joints():
    names = {*JOINT_RANGES, *(f"pelvis_{name}" for name in ("x", "y", "z", "yaw", "pitch", "roll"))}
    for move in SCORE:
        assert 1 <= move.start < move.end <= BEATS - 1
        assert move.joint in names
        assert move.ramp + (move.fade or move.ramp) <= move.end - move.start + 1e-9


@pytest.mark.parametrize("duration", [12.0, 24.0, 60.0])
def test_duration_changes_the_tempo_only(clip, duration):
    other = synthetic_dance(duration=duration, rate=1200 / duration)
    np.testing.assert_allclose(other.positions, clip.positions, atol=1e-9)


@pytest.mark.parametrize(
    "arguments", [{"duration": 5}, {"duration": float("nan")}, {"rate": 0}, {"rate": -1}, {"noise": -1}, {"bow": 1.5}]
)
def test_arguments_out_of_range(arguments):
    with pytest.raises(ConfigError, match="synthetic_dance"):
        synthetic_dance(**arguments)
