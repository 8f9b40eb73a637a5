"""Plates and feet: right on real clips, a wrong file contradicted, shares of two feet, forces of nobody, clocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError, SizeError
from humanoid_control.human.forces.force_clock import propose_offset
from humanoid_control.human.forces.force_plates import read_force_plates
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.human.forces.plate_assignment import assign_plates, split
from humanoid_control.human.forces.sole_contact import AssignmentSettings, outline_distance
from humanoid_control.human.forces.wrenches import MeasuredWrench, check_same_gravity
from humanoid_control.mocap import load_clip

UP = np.array([0.0, 0.0, 1.0])
BODIES = {"calcn_r": "right", "talus_r": "right", "calcn_l": "left", "talus_l": "left"}
CLIPS = {
    "gait2354_walk/subject01_walk1": ("R.Heel R.Toe.Lat R.Toe.Tip R.Toe.Med", "L.Heel L.Toe.Lat L.Toe.Tip L.Toe.Med"),
    "rajagopal_run/motion_capture_run": ("RCAL RTOE RMT5", "LCAL LTOE LMT5"),
    "rajagopal_walk/motion_capture_walk": ("R.Heel R.MT5 R.Toe", "L.Heel L.MT5 L.Toe"),
    "addbiomechanics_subject4/walking2": ("r_5meta r_calc r_toe", "L_5meta L_calc L_toe"),
    "addbiomechanics_subject4/DJ1": ("r_5meta r_calc r_toe", "L_5meta L_calc L_toe"),
}  # fmt: skip
FORCES = {
    "gait2354_walk": "subject01_walk1_grf", "rajagopal_run": "grf_run", "rajagopal_walk": "grf_walk",
}  # fmt: skip


@pytest.fixture
def real(model_file):
    def load(name):
        clip = load_clip(model_file(f"human_motion/{name}.trc"))
        folder, own = name.split("/")
        loads = model_file(f"human_motion/{folder}/{FORCES.get(folder, own + '_external_forces')}.xml")
        feet = zip(("right", "left"), CLIPS[name], strict=True)
        points = {foot: clip.select(labels.split()).positions for foot, labels in feet}
        return [w.zeroed() for w in read_loads(loads)], clip.timestamps, points

    return load


@pytest.mark.parametrize("name", list(CLIPS)[:3])
def test_right_files_are_confirmed(real, name):
    """Over ground and on two treadmills, whose soles move at up to 4 m/s."""
    wrenches, times, feet = real(name)
    loads = assign_plates(wrenches, times, feet, BODIES)
    assert len(loads.contacts) > 2 and not loads.estimated.any()
    for contact in loads.contacts:
        (wrench,) = [w for w in wrenches if w.name == contact.plate]
        assert contact.feet == (BODIES[wrench.body],), contact
    for wrench in wrenches:
        foot = loads.wrenches[BODIES[wrench.body]]
        np.testing.assert_array_equal(foot.force, wrench.cut().force)
        np.testing.assert_array_equal(foot.moment, wrench.cut().moment)
    treadmill = np.linalg.norm(loads.floor_velocity)
    assert treadmill == pytest.approx({"gait2354_walk": 1.12, "rajagopal_run": 3.8}.get(name.split("/")[0], 0), abs=0.1)
    assert len(loads.warnings) == (treadmill > 0)
    check_same_gravity(np.array([0, 1.0, 0]), wrenches, "clip", "forces")


@pytest.mark.parametrize("name", list(CLIPS)[3:])
def test_file_that_hangs_both_plates_on_one_foot_is_contradicted(real, name):
    wrenches, times, feet = real(name)
    assert {w.body for w in wrenches} == {"talus_r"}
    loads = assign_plates(wrenches, times, feet, BODIES)
    assert {c.feet for c in loads.contacts if c.plate == "ForcePlate1"} == {("right",)}
    left = [c for c in loads.contacts if c.plate == "ForcePlate2"]
    assert left and {c.feet for c in left} == {("left",)}
    assert len(loads.warnings) == len(left)
    assert all("assigns it to 'talus_r', but left stands there" in text for text in loads.warnings)
    assert assign_plates(wrenches, times, feet).warnings == ()


def test_plates_of_a_c3d_file(mocap):
    path = mocap("vicon_c3d/PiG_Motion-FlatFoot-One.c3d")
    clip = load_clip(path)
    feet = {"right": clip.select(["RHEE", "RTOE"]).positions, "left": clip.select(["LHEE", "LTOE"]).positions}
    wrenches = [w.zeroed() for w in read_force_plates(path)]
    found = {(c.plate, c.feet) for c in assign_plates(wrenches, clip.timestamps, feet).contacts}
    assert found == {("force plate 1", ("right",)), ("force plate 2", ("left",))}
    rows = np.arange(clip.n_frames) / clip.rate  # matched by row, as if both began at zero, nothing fits
    with pytest.raises(ClipError, match=r"from 0\.00 to 2\.54 s, the forces from 3\.41 to 5\.96 s: no time in common"):
        assign_plates(wrenches, rows, feet)


# -------- made up: two feet beside each other, 0.3 m apart, on one plate

T = np.arange(1000) / 500
FRAMES = np.arange(200) / 100
SOLE = np.array([(-0.1, 0.04, 0), (-0.1, -0.04, 0), (0.15, 0.04, 0), (0.15, -0.04, 0)])
LEFT, RIGHT = np.array([1.0, 0.15, 0]), np.array([1.0, -0.15, 0])


def standing(left=LEFT, right=RIGHT):
    return {"left": np.tile(SOLE + left, (len(FRAMES), 1, 1)), "right": np.tile(SOLE + right, (len(FRAMES), 1, 1))}


def shares(part):
    """Wrench (n, 6) of each foot about the origin; `part` (n,) is the left one's share of 800 N."""
    f = {"left": np.outer(800 * part, UP), "right": np.outer(800 * (1 - part), UP)}
    return {k: np.hstack([f[k], np.cross(p, f[k])]) for k, p in (("left", LEFT), ("right", RIGHT))}


def plate(both, name="plate", body=""):
    return MeasuredWrench(name, T, both[:, :3], both[:, 3:], UP, np.zeros(3), body)


def test_two_feet_on_one_plate_share_it_and_it_is_marked():
    true = shares(0.5 + 0.3 * np.sin(4 * T))
    loads = assign_plates([plate(true["left"] + true["right"])], FRAMES, standing())
    assert loads.estimated.all() and loads.contacts[0].estimated
    assert loads.contacts[0].feet == ("left", "right")
    assert "left and right share it: their shares are estimates" in loads.warnings[0]
    total = np.hstack([sum(w.force for w in loads.wrenches.values()), sum(w.moment for w in loads.wrenches.values())])
    np.testing.assert_allclose(total, true["left"] + true["right"], atol=1e-9)
    for foot, wrench in loads.wrenches.items():
        np.testing.assert_allclose(wrench.force[:, 2], true[foot][:, 2], atol=8.0)
        assert wrench.normal_force.min() >= 0


def test_foot_that_is_lifted_gives_all_to_the_other():
    """Weight goes over to the left foot within 0.5 s; after 1 s the right one moves away."""
    true = shares(np.clip(0.5 + T, 0, 1))
    feet = standing()
    feet["right"] = feet["right"] + np.clip(FRAMES - 1, 0, 1)[:, None, None] * [2.0, 0, 0]
    loads = assign_plates([plate(true["left"] + true["right"])], FRAMES, feet)
    late = T > 1.05
    assert not loads.estimated[late].any() and loads.estimated[T < 0.4].all()
    assert (loads.wrenches["right"].force[late] == 0).all()
    np.testing.assert_allclose(loads.wrenches["right"].force[:, 2], true["right"][:, 2], atol=20.0)


def test_one_foot_on_each_plate_is_no_sharing():
    true = shares(np.full(1000, 0.5))
    loads = assign_plates([plate(true["left"], "a"), plate(true["right"], "b")], FRAMES, standing())
    assert [c.feet for c in loads.contacts] == [("left",), ("right",)] and loads.warnings == ()


@pytest.mark.parametrize("change", ["far", "fast", "unseen"])
def test_force_with_nobody_on_it_is_ignored_and_said(change):
    true = shares(np.ones(1000))
    feet = standing()
    if change == "far":
        feet = standing(LEFT + [0, 0.2, 0], LEFT + [0, 0.6, 0])
    elif change == "fast":  # both feet swing to and fro over the plate
        feet = {k: v + 0.5 * np.sin(20 * FRAMES)[:, None, None] * [1.0, 0, 0] for k, v in feet.items()}
    else:
        feet = {k: v * np.nan for k, v in feet.items()}
    loads = assign_plates([plate(true["left"])], FRAMES, feet)
    assert loads.contacts[0].feet == () and all((w.force == 0).all() for w in loads.wrenches.values())
    says = {"far": r"the nearest sole is 0.16 m away", "fast": "nearest sole", "unseen": "no sole was seen"}[change]
    assert "800 N without a foot on it" in loads.warnings[0] and says in loads.warnings[0]
    assert "hardly any foot is where forces act" in loads.warnings[1]


def test_distance_and_speed_can_be_set():
    true = shares(np.ones(1000))
    far = standing(LEFT + [0, 0.1, 0], LEFT + [0, 0.6, 0])  # its edge is 60 mm from the force
    near = assign_plates([plate(true["left"])], FRAMES, far, settings=AssignmentSettings(distance=0.065))
    assert near.contacts[0].feet == ("left",) and near.contacts[0].distance == pytest.approx(0.06)
    off = assign_plates([plate(true["left"])], FRAMES, far, settings=AssignmentSettings(distance=0.055))
    assert off.contacts[0].feet == ()
    with pytest.raises(ConfigError, match="speed must be positive, got 0"):
        AssignmentSettings(speed=0.0)


def test_split_keeps_the_sum_and_pushes():
    rng = np.random.default_rng(0)
    n = 200
    both = np.hstack(
        [rng.normal(scale=80, size=(n, 2)), rng.uniform(20, 900, (n, 1)), rng.normal(scale=150, size=(n, 3))]
    )
    p1, p2 = rng.normal(scale=0.2, size=(2, n, 3))
    normal = np.array([0.1, -0.2, 1.0]) / np.linalg.norm([0.1, -0.2, 1.0])
    first = split(both, p1, p2, normal)
    second = split(both, p2, p1, normal)
    np.testing.assert_allclose(first + second, both, atol=1e-6)
    push = first[:, :3] @ normal
    whole = both[:, :3] @ normal
    assert (push >= 0).all() and (push <= whole + 1e-6).all()
    alone = push < 1e-9
    assert 10 < alone.sum() < 150 and (first[alone] == 0).all()

    # Of least variance: no exchange of force and moment about the soles makes the cost smaller.
    def cost(share):
        out = 0.0
        for s, p in ((share, p1), (both - share, p2)):
            out = out + (s[:, :3] ** 2).sum(axis=1) + ((s[:, 3:] - np.cross(p, s[:, :3])) ** 2).sum(axis=1) / 0.02**2
        return out

    inside = (push > 1e-6) & (push < whole - 1e-6)
    assert inside.sum() > 20
    for _ in range(20):
        step = rng.normal(scale=1e-2, size=6)
        for sign in (1, -1):
            assert (cost(first + sign * step) >= cost(first) - 1e-9)[inside].all()


def test_split_does_not_depend_on_place_and_axes():
    true = shares(np.full(5, 0.7))
    both = (true["left"] + true["right"])[:5]
    R = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    R *= np.sign(np.linalg.det(R))
    shift = np.array([3.0, -2.0, 1.0])
    moved = np.hstack([both[:, :3] @ R.T, both[:, 3:] @ R.T + np.cross(shift, both[:, :3] @ R.T)])
    ours = split(both, np.tile(LEFT, (5, 1)), np.tile(RIGHT, (5, 1)), UP)
    theirs = split(moved, np.tile(R @ LEFT + shift, (5, 1)), np.tile(R @ RIGHT + shift, (5, 1)), R @ UP)
    np.testing.assert_allclose(theirs[:, :3], ours[:, :3] @ R.T, atol=1e-6)


def test_distance_from_an_outline():
    square = np.tile([(0.0, 0), (1, 0), (1, 1), (0, 1)], (5, 1, 1))
    p = np.array([(0.5, 0.5), (0.9, 0.2), (2.0, 0.5), (2.0, 2.0), (np.nan, 0)])
    np.testing.assert_allclose(outline_distance(p, square), [0, 0, 1, np.sqrt(2), np.nan])
    np.testing.assert_allclose(outline_distance(p[:3], square[:3, :2]), [0.5, 0.2, np.hypot(1, 0.5)])
    np.testing.assert_allclose(outline_distance(p[:1], square[:1, :1]), [np.sqrt(0.5)])
    hidden = square[:3].copy()
    hidden[:, 3] = np.nan
    np.testing.assert_allclose(outline_distance(p[:3], hidden), [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "late"), [("addbiomechanics_subject4/walking2", 1.3), ("rajagopal_run/motion_capture_run", -7.0)]
)
def test_clocks_that_start_apart_are_refused_or_said_and_the_offset_proposed(real, name, late):
    wrenches, times, feet = real(name)
    assert propose_offset(wrenches, times, feet) == pytest.approx(0.0, abs=0.05)
    assert propose_offset(wrenches, times + late, feet) == pytest.approx(late, abs=0.05)
    with pytest.raises(ClipError, match="no time in common: give the offset") as caught:
        assign_plates(wrenches, times + 20, feet)
    assert float(str(caught.value).split("with forces ")[1].split(" s later")[0]) == pytest.approx(20, abs=0.05)


def test_clocks_half_a_second_apart_are_doubted(real):
    wrenches, times, feet = real("addbiomechanics_subject4/walking2")
    loads = assign_plates(wrenches, times + 0.8, feet)
    assert "hardly any foot is where forces act; feet and forces fit with forces +0." in loads.warnings[-1]


def test_what_cannot_be_used():
    true = plate(shares(np.ones(1000))["left"])
    with pytest.raises(SizeError, match=r"foot 'left': expected points of shape \(200, k, 3\)"):
        assign_plates([true], FRAMES, {"left": np.zeros((100, 4, 3))})
    with pytest.raises(SizeError, match="other times than"):
        assign_plates([true, replace(true, times=T + 0.001, name="late")], FRAMES, standing())
    with pytest.raises(SizeError, match="at least one plate"):
        assign_plates([], FRAMES, standing())


def test_foot_that_stands_on_its_own_plate_shares_no_other():
    """The force on one plate lies between the feet, too far from the left sole; the right foot is on its own plate."""
    right = shares(np.zeros(1000))["right"]
    astray = np.hstack([np.outer(np.full(1000, 500.0), UP), np.tile(np.cross([1.0, 0.03, 0], 500 * UP), (1000, 1))])
    loads = assign_plates([plate(astray, "a"), plate(right, "b")], FRAMES, standing())
    assert [c.feet for c in loads.contacts] == [(), ("right",)]
    assert not loads.estimated.any() and "a from 0.00 to 2.00 s: 500 N without a foot on it" in loads.warnings[0]
