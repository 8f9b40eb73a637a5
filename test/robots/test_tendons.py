"""The files of tendons: those of the robots, what a row by hand may say, and what is said about a bad one."""

import numpy as np
import pytest
import yaml

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.paths import share_dir
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.robots.tendons import read_tendon_file, tendon_geometry, tendons_of
from test.robots_under_test import by_kind

BY_HAND = """
schema: humanoid_tendons/1
tendons:
- {name: l_biceps, mirror: y, group: l_arm, points: [[chest, 0.04, 0.23, 0.2], [l_elbow, 0.025, 0, -0.045]]}
- name: l_triceps
  mirror: y
  group: l_arm
  min_tension: 10
  max_tension: 300
  points:
  - [chest, -0.04, 0.23, 0.15]
  - {cylinder: l_upper_arm, centre: [0, 0, -0.25], axis: [0, 1, 0], radius: 0.02, side: [-0.05, 0, -0.25]}
  - [l_elbow, -0.02, 0, -0.05]
  - {pulley: 2}
  - [l_elbow, -0.02, 0.01, -0.05]
  - {sphere: l_elbow, centre: [0, 0, 0], radius: 0.01}
  - [l_forearm, -0.02, 0.01, 0.05]
groups:
  l_arm: {own: [l_shoulder_flexion, l_elbow_flexion], borrow: [l_shoulder_abduction]}
  r_arm: {own: [r_shoulder_flexion, r_elbow_flexion], borrow: [], tendons: [r_biceps]}
"""


@pytest.fixture(scope="module")
def hrp2():
    return load_robot("hrp2", "fixed")


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_virtual_tendons_of_every_arm_see_all_its_joints(name):
    robot = load_robot(name, "fixed")
    whole = tendon_geometry(robot)
    joints = [k for k, n in enumerate(whole.joint_names) if n.startswith("l_")]
    tendons = [k for k, n in enumerate(whole.tendon_names) if n.startswith("l_")]
    assert len(joints) * 2 == len(whole.joint_names) and len(tendons) * 2 == len(whole.tendon_names)
    arm = [n for n in robot.joint_names if n.startswith(("l_girdle", "l_shoulder", "l_elbow", "l_forearm", "l_wrist"))]
    assert {whole.joint_names[k] for k in joints} == set(arm) and len(tendons) >= len(joints) + 2
    X = np.random.default_rng(0).uniform(*whole.limits.T, size=(2000, len(whole.joint_names)))
    lengths, G = whole.raw(X)
    G = G[:, tendons][:, :, joints]
    largest = np.abs(G).max(axis=(0, 2))
    assert largest.min() > 0.015 and np.abs(G).max() < 0.070
    assert lengths.min() > 0.004, "no tendon vanishes"
    smallest = np.linalg.svd(G, compute_uv=False)[:, -1]
    # Where shoulder axes fall together (abduction of 90 deg) no tendon can tell two of them apart.
    assert (smallest > 0.005).mean() > 0.89 and (smallest > 0.001).mean() > 0.97


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_virtual_tendons_are_marked_as_ours_and_grouped(name):
    text = (share_dir() / "urdf" / f"{name}.tendons.yaml").read_text()
    assert yaml.safe_load(text)["provenance"].startswith("estimated, by the rule of")
    robot = load_robot(name)
    groups = tendons_of(robot).groups
    owned = [j for g in groups.values() for j in g.own]
    assert len(owned) == len(set(owned)), "each joint has one owner"
    for group in groups.values():
        geometry = tendon_geometry(robot, group.name)
        assert geometry.joint_names == group.joints and len(group.joints) <= 8
        assert geometry.crossed.any(axis=0).all(), "no joint of a group without a tendon"


def test_a_robot_without_such_a_file_has_no_tendons():
    robot = load_robot("recommended")
    assert len(tendons_of(robot)) == 0
    with pytest.raises(
        RobotError,
        match=r"recommended has no tendons: it needs a file next to its URDF, .* ending in \.tendons\.yaml",
    ):
        tendon_geometry(robot)


def test_a_file_by_hand_has_solids_pulleys_mirror_images_and_groups(tmp_path, hrp2):
    (tmp_path / "hrp2.tendons.yaml").write_text(BY_HAND)
    tendons = read_tendon_file(tmp_path / "hrp2.tendons.yaml", hrp2)
    assert tendons.names == ("l_biceps", "r_biceps", "l_triceps", "r_triceps")
    left, right = tendons["l_triceps"], tendons["r_triceps"]
    assert right.group == "r_arm" and right.max_tension == 300 and right.divisors() == [1, 2]
    assert right.path[1].side == (-0.05, 0, -0.25) and right.path[4].xyz == (-0.02, -0.01, -0.05)
    assert left.links() == ("chest", "l_upper_arm", "l_elbow", "l_forearm")
    assert tendons.groups["l_arm"].tendons == ("l_biceps", "l_triceps")
    assert tendons.groups["l_arm"].joints == ("l_shoulder_flexion", "l_elbow_flexion", "l_shoulder_abduction")
    assert tendons.groups["r_arm"].tendons == ("r_biceps",)


def _row(d, k=0):
    return d["tendons"][k]


BAD = {
    "schema": (lambda d: d.update(schema="tendons"), "first key must be 'schema: humanoid_tendons/1'"),
    "file key": (lambda d: d.update(muscles=[]), "unknown key 'muscles'"),
    "key": (lambda d: _row(d).update(tension=1), "unknown key 'tension': did you mean m.._tension.*'l_biceps'"),
    "link": (
        lambda d: _row(d)["points"][0].__setitem__(0, "chset"),
        "unknown link 'chset': did you mean chest.*l_biceps",
    ),
    "millimetres": (
        lambda d: _row(d)["points"][0].__setitem__(slice(1, 4), [40, 230, 200]),
        r"'l_biceps': a coordinate of 230 on a link looks like millimetres; give metres",
    ),
    "three": (lambda d: _row(d)["points"][0].pop(), r"a point must be \[link, x, y, z\]"),
    "nan": (lambda d: _row(d)["points"][0].__setitem__(1, float("nan")), r"must be \[x, y, z\]"),
    "text": (lambda d: _row(d)["points"].append("chest"), "a step of a path is"),
    "one point": (lambda d: _row(d)["points"].pop(), "needs a point at both ends"),
    "no points": (lambda d: _row(d).pop("points"), "lacks the key 'points'"),
    "solid": (
        lambda d: _row(d, 1)["points"].__setitem__(1, {"cube": "chest"}),
        "must be a point, a sphere, a cylinder or a pulley",
    ),
    "radius": (
        lambda d: _row(d, 1)["points"][1].update(radius=-1),
        "'l_triceps': the radius of a cylinder must be above",
    ),
    "no centre": (lambda d: _row(d, 1)["points"][1].pop("centre"), "lacks the key 'centre'"),
    "pulley": (lambda d: _row(d, 1)["points"][3].update(pulley=0), "divisor of a pulley must be above zero"),
    "tension": (lambda d: _row(d, 1).update(min_tension=500), "needs 0 <= min_tension <= max_tension, got 500 and 300"),
    "mirror": (lambda d: _row(d).update(mirror="left"), "mirror must be x, y or z, got 'left'"),
    "no side": (lambda d: _row(d).update(name="biceps"), "'biceps' names no side"),
    "twice": (lambda d: d["tendons"].append(dict(_row(d))), "tendon 'l_biceps' appears twice"),
    "group": (lambda d: _row(d).update(group="l_amr"), "unknown group 'l_amr': did you mean l_arm"),
    "joint": (
        lambda d: d["groups"]["l_arm"].update(own=["l_elbow"]),
        "unknown joint 'l_elbow': did you mean l_elbow_fl",
    ),
    "both": (lambda d: d["groups"]["l_arm"].update(borrow=["l_elbow_flexion"]), "both owns and borrows"),
    "member": (
        lambda d: d["groups"]["l_arm"].update(tendons=["l_bicep"]),
        "unknown tendon 'l_bicep': did you mean l_biceps",
    ),
    "names": (lambda d: d["groups"]["l_arm"].update(own=["l_elbow_flexion"] * 2), "contains 'l_elbow_flexion' twice"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_answered_in_one_line(case, tmp_path, hrp2):
    change, says = BAD[case]
    d = yaml.safe_load(BY_HAND)
    change(d)
    path = tmp_path / "hrp2.tendons.yaml"
    path.write_text(yaml.safe_dump(d))
    with pytest.raises((RobotError, UnknownNameError), match=says) as e:
        read_tendon_file(path, hrp2)
    assert "\n" not in str(e.value) and str(path) in str(e.value)


def test_a_file_that_is_no_yaml_is_refused(tmp_path, hrp2):
    path = tmp_path / "hrp2.tendons.yaml"
    path.write_text("tendons: [")
    with pytest.raises(RobotError, match="not a readable tendon file"):
        read_tendon_file(path, hrp2)


def test_an_unknown_group_offers_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown group 'l_shuolder': did you mean l_shoulder"):
        tendon_geometry(load_robot("hrp2"), "l_shuolder")


UNITS = """
units:
  big: {rotor: 5.5e-7, gear: 29, drum: 0.008, torque_constant: 0.0136, efficiency: 0.8, speed: 1680, current: [6, 20],
        friction: 15, stiffness: 5.0e4, thermal: [1.0, 4.0, 12, 150]}
  small: {mass: 5.0, force: 200, speed: 0.3}
tendons:
- {name: l_biceps, mirror: y, unit: big, stiffness: 6.0e4, points: [[chest, 0.04, 0.23, 0.2], [l_elbow, 0.02, 0, 0]]}
- {name: l_brachialis, unit: small, points: [[chest, 0.03, 0.2, 0.2], [l_elbow, 0.03, 0, 0]]}
- {name: l_triceps, friction: 4, points: [[chest, -0.04, 0.23, 0.15], [l_elbow, -0.02, 0, -0.05]]}
- {name: l_anconeus, points: [[chest, -0.04, 0.2, 0.15], [l_elbow, -0.03, 0, -0.05]]}
"""


def with_units(tmp_path, text, robot):
    path = tmp_path / "hrp2.tendons.yaml"
    path.write_text("schema: humanoid_tendons/1" + text)
    return read_tendon_file(path, robot)


def test_muscle_units_are_those_of_the_file_and_a_tendons_own_numbers_beat_them(tmp_path, hrp2):
    t = with_units(tmp_path, UNITS, hrp2)
    big, small, own = t["l_biceps"].unit, t["l_brachialis"].unit, t["l_triceps"].unit
    assert big == t["r_biceps"].unit and big.mass == pytest.approx(7.23, abs=0.01) and big.stiffness == 6e4
    assert big.force == pytest.approx(0.0136 * 20 * 29 * 0.8 / 0.008) and not big.estimated
    assert (small.mass, small.force, small.speed) == (5.0, 200.0, 0.3)
    assert own.friction == 4.0 and own.mass == 7.3 and own.estimated and t["l_anconeus"].unit is None


@pytest.mark.parametrize(
    "before,after,error,text",
    [
        ("unit: big", "unit: bgi", UnknownNameError, "'bgi'.*big"),
        ("drum: 0.008, ", "", RobotError, "units 'big': lacks the key 'drum'"),
        ("drum: 0.008", "drum: -8", RobotError, "units 'big': muscle unit: drum must be above 0, got -8"),
        ("friction: 15", "frction: 15", UnknownNameError, "'frction'.*friction"),
        ("mass: 5.0", "mass: heavy", RobotError, "units 'small': 'mass' must be a number"),
        ("friction: 4", "friction: -4", RobotError, "l_triceps.*friction must not be negative, got -4"),
        ("12, 150]", "12]", RobotError, "'thermal' must be .a, b, c, d."),
    ],
)
def test_a_bad_muscle_unit_is_told_in_one_line(tmp_path, hrp2, before, after, error, text):
    assert before in UNITS
    with pytest.raises(error, match=text) as e:
        with_units(tmp_path, UNITS.replace(before, after), hrp2)
    assert "\n" not in str(e.value)
